"""Changing the tree on the report's page, in a real browser: the page and Python agree."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from typer.testing import CliRunner

from case_pages import opened, unjudged_page  # noqa: F401
from slow_cases import slow
from softsplit import SoftTreeClassifier, save_model
from softsplit.cli import app
from softsplit.reading.outline import outline
from softsplit.report import render_report
from softsplit.report.anywhere import labelled_rows
from softsplit.report.editor import FIGURES, editor_values

KINDS = {
    "walk": {},
    "ranks": {"scale": "quantile"},
    "mixture": {"decision": "mixture"},
    "two": {"curves": False},
}


def fitted(kind):
    """A tree, its report, and its rows."""
    if kind == "two":
        X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        X, y = X.iloc[:200, :6], y.iloc[:200]
    else:
        X, y = load_wine(return_X_y=True, as_frame=True)
        X = X[["alcohol", "flavanoids", "hue", "proline"]]
    tree = SoftTreeClassifier(n_starts=1, random_state=0, points=False, **KINDS[kind]).fit(X, y)
    return tree, unjudged_page(*labelled_rows(tree, X, y)), X, y


def shown_figures(page, when):
    cells = page.locator(f'#change [data-when="{when}"]').all()
    return {c.get_attribute("data-figure"): float(c.get_attribute("data-value")) for c in cells}


def changes(page, tree, rng):
    """Change a threshold, and a term where the page has terms."""
    question = outline(tree.tree_).questions()[0].split
    spread = np.ptp(question.sure) if question.sure else 2 * question.gate_width
    value = round(question.threshold + float(rng.uniform(0.4, 1.5)) * spread, 4)
    page.locator("#edit-0-threshold").fill(repr(value))
    terms = page.locator('[id^="edit-0-"]:not([id$="threshold"])')
    if terms.count() > 1:
        terms.nth(0).fill("1.5")
        terms.nth(terms.count() - 1).fill("0")


@pytest.mark.parametrize("kind", ["walk", "two", *slow("ranks", "mixture")])
def test_the_page_says_what_python_says(opened, kind):  # noqa: F811
    tree, data, X, y = fitted(kind)
    page = opened(data, viewport={"width": 390, "height": 800}, offline=True)
    assert page.locator("#edit-changed").inner_text() == "Nothing is changed yet."
    assert shown_figures(page, "before") == shown_figures(page, "after")
    changes(page, tree, np.random.default_rng(2))
    known = {"tree": tree}
    exec(page.locator("#edit-code").inner_text(), known)
    edited = known["edited"]
    assert len(edited.edits_) >= 1
    found = edited.compare(X, y)
    names = dict(FIGURES, area="ROC area")
    for when, column in (("before", 0), ("after", 1)):
        for key, value in shown_figures(page, when).items():
            assert value == pytest.approx(found.figures[names[key]][column], abs=1e-9)
    assert page.locator("#edit-changed").inner_text() == (
        f"{len(found.changed)} of {len(X)} rows change class."
    )
    assert len(found.changed) > 0
    page.locator("#edit button[type=reset]").click()
    from playwright.sync_api import expect

    expect(page.locator("#edit-changed")).to_have_text("Nothing is changed yet.")
    assert shown_figures(page, "after") == shown_figures(page, "before")


def test_held_out_rows_take_the_place_of_training_rows(tmp_path):
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X[["alcohol", "flavanoids", "hue", "proline"]]
    tree = SoftTreeClassifier(n_starts=1, random_state=0, points=False).fit(X[::2], y[::2])
    new, classes = X[1::20], y[1::20]
    data = tree.report(X[::2], y[::2], time_limit=0.1, held_out=(new, classes)).data
    values = editor_values(data)
    used = np.flatnonzero(np.any(tree.tree_.parameters.weights, axis=1))
    assert values["labels"] == classes.tolist()
    np.testing.assert_array_equal(values["rows"], tree.tree_.table_coding.code(new).X[:, used])
    text = render_report(data)
    assert f"the {len(new)} held-out rows" in text
    own = f"{100 * tree.score(new, classes):.1f}"
    assert re.search(rf"{own}.%[^%]*accuracy on the {len(new)} rows given as held out", text)
    with pytest.raises(ValueError, match=r"held_out must be a tuple \(X, y\)"):
        tree.report(X, y, time_limit=0.1, held_out=new)

    pd.concat([X[::2], y[::2]], axis=1).to_csv(tmp_path / "train.csv", index=False)
    pd.concat([new, classes], axis=1).to_csv(tmp_path / "test.csv", index=False)
    save_model(tree, tmp_path / "tree.json")
    command = ["report", str(tmp_path / "tree.json"), str(tmp_path / "train.csv")]
    command += ["--held-out", str(tmp_path / "test.csv"), "--out", str(tmp_path / "tree.html")]
    done = CliRunner().invoke(app, [*command, "--time-limit", "0.1", "--target", "target"])
    assert done.exit_code == 0, done.output
    assert f"the {len(new)} held-out rows" in (tmp_path / "tree.html").read_text("utf-8")


def test_a_page_without_rows_holds_none():
    data = fitted("two")[1]
    full, empty = render_report(data), render_report(replace(data, page_rows=0))
    value = repr(float(data.matrix[7, data.tree.selected_features_[0]]))
    assert value in full and value not in empty
    assert 'id="change"' in full and 'id="change"' not in empty
