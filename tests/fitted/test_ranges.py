"""Values far outside of the training range are named, by all that speaks of single rows."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from case_pages import filled, opened, unjudged_page  # noqa: F401
from softsplit import FarOutsideWarning, SoftTreeClassifier, SoftTreeClassifierCV
from softsplit.data import Table, learn
from softsplit.report import report


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.integers(1000, 20_000, 80), "noise": rng.normal(size=80)})
    frame["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 100, 80), "D")
    frame.loc[5, "income"] = np.nan
    y = np.where(frame["income"].fillna(5000) / 200 > frame["since"].dt.day_of_year, "yes", "no")
    frame.loc[[0, 1], "income"] = [1000, 20_000]
    frame.loc[[0, 1], "since"] = pd.to_datetime(["2020-01-01", "2020-04-09"])
    tree = SoftTreeClassifier(depth=1, n_starts=1, points=False, random_state=0).fit(frame, y)
    assert set(tree.feature_names_in_[tree.selected_features_]) == {"income", "since"}
    return tree, frame, y


def test_a_warning_counts_rows_by_column(trained):
    tree, frame, _ = trained
    new = frame.assign(noise=1e9)  # which the tree does not use
    new.loc[:3, "income"] = [39_001, -18_001, 39_000, -18_000]  # beyond and at one width
    new.loc[[7], "since"] = pd.Timestamp("2021-01-01")
    for ask in (tree.predict, tree.predict_proba):
        with pytest.warns(FarOutsideWarning) as caught:
            ask(new)
        assert str(caught[0].message) == (
            "values far outside the training range, where the tree extrapolates: 'income' (2 rows, "
            "training 1000 to 20000), 'since' (1 row, training 2020-01-01 to 2020-04-09)."
        )
        assert len(caught) == 1 and caught[0].filename == __file__
    assert tree.explain(new.iloc[[0]]).remarks == (
        "income is far outside the training range (1000 to 20000)",
    )


def test_training_rows_folds_and_reports_do_not_warn(trained):
    tree, frame, y = trained
    plain = frame[["noise"]].to_numpy(copy=True)
    plain[3] = 1e6  # alone in its fold, far outside of the others
    with warnings.catch_warnings():
        warnings.simplefilter("error", FarOutsideWarning)
        tree.predict(frame)
        SoftTreeClassifierCV(depths=[1], n_strengths=2, cv=3, n_starts=1).fit(plain, y)
        report(SoftTreeClassifier(depth=1, n_starts=1).fit(plain, y), plain, y, time_limit=1)


def test_the_form_says_it_beside_the_input(opened, trained):  # noqa: F811
    tree, frame, y = trained
    rows = learn(Table("t", frame.assign(y=y)), "y")
    page = opened(unjudged_page(tree, rows))
    said = page.locator("#case .field").filter(has_text="income").locator(".far").first
    assert said.is_hidden()
    filled(page, [99_999.0], ["income (1000"])
    assert said.is_visible()
