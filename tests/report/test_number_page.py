"""The page of a tree that predicts a number: its figures, and its form in a real browser."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from case_pages import filled
from rate_tables import claims, patients
from softsplit import SoftTreeRegressor, SoftTreeRegressorCV, SoftTreeSurvivalCV, dumps_model
from softsplit import report as page_of
from softsplit.estimators.survival import concordance
from softsplit.report.number_figures import FOLDS, OTHERS, TRAINED
from softsplit.report.rate_figures import (
    curve_charts,
    leaf_rows,
    rate_chart,
    rate_table,
    risk_table,
)


@cache
def table(n_rows: int = 240) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 65, n_rows).astype(float),
            "smoker": rng.choice(["yes", "no"], n_rows),
            "noise": rng.normal(size=n_rows),
        }
    )
    X.loc[::17, "age"] = np.nan
    age = X.age.fillna(40)
    y = np.where(X.smoker == "yes", 20_000 + 300 * age, 1000 + 40 * np.maximum(age - 35, 0))
    return X, pd.Series(y + rng.normal(0, 300, n_rows), name="charges")


@cache
def chosen() -> SoftTreeRegressorCV:
    return SoftTreeRegressorCV(cv=3, random_state=0).fit(*table())


def test_the_figures_are_those_of_held_out_rows(tmp_path):
    (X, y), tree = table(), chosen()
    report = tree.report(X, y, tmp_path / "page.html")
    data = report.data
    assert data.judged == FOLDS and (tmp_path / "page.html").read_text("utf-8") == report.html
    sizes = np.abs(y - tree.held_out_predictions_)
    assert data.off == pytest.approx(sizes.mean())
    assert data.off_of_mean == pytest.approx(np.abs(y - y.mean()).mean())
    leaves = tree.tree_.arrive(np.asarray(data.rows.X))
    half = tree.tree_.numbers.half_widths(0.9)[leaves]
    within = sum(leaf.rows * leaf.within for leaf in data.leaf_errors)
    assert within == pytest.approx((sizes <= half).sum())
    assert sum(leaf.rows * leaf.off for leaf in data.leaf_errors) == pytest.approx(sizes.sum())
    used = len(tree.selected_features_)
    assert data.lead.startswith("Typically off by ") and f"{used} of 3 columns" in data.lead
    for absent in ("ROC", "threshold-box", "classes"):
        assert f'id="{absent}"' not in report.html


def test_other_rows_are_not_taken_for_training_rows(tmp_path):
    (X, y), tree = table(), SoftTreeRegressor(random_state=0).fit(*table())
    assert tree.report(X, y).data.judged == TRAINED
    assert tree.report(X[:100], y[:100]).data.judged == OTHERS
    assert chosen().report(X, y[::-1]).data.judged == OTHERS
    (tmp_path / "tree.json").write_text(dumps_model(tree), "utf-8")
    whole = X.assign(charges=y)
    assert page_of(tmp_path / "tree.json", whole).data.off == tree.report(X, y).data.off
    with pytest.raises(ValueError, match="by is for trees that predict classes"):
        tree.report(X, y, by="smoker")


@pytest.mark.parametrize("decision", ["walk", "mixture"])
def test_a_case_gives_the_number_of_predict(browser, tmp_path, decision):
    X, y = table()
    tree = chosen()
    if decision == "mixture":
        tree = SoftTreeRegressor(decision=decision, random_state=0).fit(X, y)
    tree.report(X, y, tmp_path / "page.html")
    page, said = browser.new_page(), []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector("html.ready")
    for age, smoker in ((30.0, "no"), (64.0, "yes"), (90.0, "yes"), (np.nan, "no")):
        page.locator("#case select").select_option(label=smoker)
        filled(page, [] if np.isnan(age) else [age], ["age"][: not np.isnan(age)])
        if np.isnan(age):
            page.locator("#case input").fill("")
        row = pd.DataFrame({"age": [age], "smoker": [smoker], "noise": [0.0]})
        shown = page.locator("#case-answer").get_attribute("data-value")
        assert float(shown) == pytest.approx(float(tree.predict(row)[0]), rel=1e-12)
        text = page.locator("#case-answer").inner_text()
        assert text.startswith("The tree says ") and ("90 of 100" in text) == (decision == "walk")
        assert "charges = " in page.locator("#case-why").inner_text()
    page.close()
    assert said == []


def test_counts_have_a_page(browser, tmp_path):
    X, _ = table()
    rng = np.random.default_rng(2)
    claims = rng.poisson(np.exp(0.03 * X.age.fillna(40) - np.where(X.smoker == "yes", 0, 1)))
    tree = SoftTreeRegressor(loss="poisson", random_state=0).fit(X, claims)
    tree.report(X, claims, tmp_path / "page.html")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    filled(page, [50.0], ["age"])
    row = pd.DataFrame({"age": [50.0], "smoker": ["no"], "noise": [0.0]})
    page.locator("#case select").select_option(label="no")
    shown = page.locator("#case-answer").get_attribute("data-value")
    assert float(shown) == pytest.approx(float(tree.predict(row)[0]), rel=1e-12)
    assert "multiplies by" in page.locator("#case-why").inner_text()
    page.close()


def test_a_page_of_rates_compares_counts_with_rate_times_exposure():
    X, y, years = claims(400)
    tree = SoftTreeRegressorCV(loss="poisson", cv=3, depth=1, random_state=0)
    tree.fit(X, y, exposure=years)
    report = tree.report(X.assign(years=years), y, exposure="years")
    data = report.data
    held_out = tree.held_out_predictions_
    assert data.judged == FOLDS and np.array_equal(data.predicted, held_out)
    mean = years * y.sum() / years.sum()
    left, whole = (2 * (y * np.log(np.where(y > 0, y / mu, 1)) - y + mu).sum()
                   for mu in (held_out, mean))  # fmt: skip
    assert data.figures == {"deviance_explained": pytest.approx(1 - left / whole)}
    assert data.lead.startswith("Explains ") and "Observed and expected by leaf" in report.html
    rows = rate_table(data).rows
    assert sum(float(row[2].replace(",", "")) for row in rows) == pytest.approx(
        years.sum(), rel=1e-3
    )
    assert sum(float(row[3].replace(",", "")) for row in rows) == y.sum()
    (chart,) = rate_chart(data)
    assert 5 < len(chart.spots) <= 10 and chart.spots[0].x < chart.spots[-1].x
    other = tree.report(X[:50], y[:50], exposure=years[:50]).data
    assert other.judged == OTHERS
    np.testing.assert_array_equal(other.predicted, tree.predict(X[:50]) * years[:50])
    with pytest.raises(ValueError, match="trained with exposure; give exposure= of these rows"):
        tree.report(X, y)


def test_a_page_of_hazards_has_a_curve_and_rows_at_risk_for_each_leaf(browser, tmp_path):
    X, y, _ = patients(400)
    tree = SoftTreeSurvivalCV(cv=3, depth=1, random_state=0).fit(X, y)
    report = tree.report(X, y, tmp_path / "page.html")
    data = report.data
    assert data.judged == FOLDS and data.figures["concordance"] == pytest.approx(
        concordance(*y.to_numpy(float).T, tree.held_out_predictions_, np.ones(400))
    )
    rows = risk_table(data).rows
    assert sum(int(row[1].replace(",", "")) for row in rows) == y["died"].sum()
    arrived = data.leaves
    for row, chart in zip(rows, curve_charts(data), strict=True):
        inside = np.isclose(arrived, arrived[leaf_rows(data)[int(row[0]) - 1][1][0]])
        assert int(row[3].replace(",", "")) == inside.sum()
        times = y["months"][inside]
        assert (
            int(row[-1].replace(",", ""))
            == (times >= float(f"{0.8 * y['months'].max():.2g}")).sum()
        )
        for line in chart.lines:
            assert np.all(np.diff(line.y) <= 0) and line.y[0] == 1.0
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector("html.ready")
    said = page.locator("#case-answer")
    hazard = float(said.get_attribute("data-value"))
    median = tree.tree_.numbers.baseline.medians(np.array([hazard]))[0]
    known = "fewer than half" if np.isinf(median) else f"by {median:g} months"
    assert known in said.inner_text()
    page.close()
    again = page_of(tree, X.join(y))
    assert again.data.figures == data.figures
