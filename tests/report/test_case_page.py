"""The form of the report in a real browser: it says what the library says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from case_pages import filled, opened, shown_proba, unjudged_page  # noqa: F401
from export_cases import case
from readings import LEAVES, random_classifier
from softsplit.advice.explanation import explain
from softsplit.data import Table, learn
from softsplit.data.learning import LabelledRows
from softsplit.report import fit_tree
from softsplit.report.anywhere import labelled_rows
from softsplit.report.case import position_of
from softsplit.report.study import FitOptions
from tables import people

KINDS = ("minmax", "standard", "quantile")


def random_page(seed, kind, leaves):
    tree, X = random_classifier(
        seed, depth=3, kind=kind, steepness=30.0, labels="integer", leaves=leaves
    )
    y = tree.classes_[np.arange(len(X)) % len(tree.classes_)]
    coding = replace(tree.tree_.table_coding, named=False)
    return tree, unjudged_page(tree, LabelledRows(coding.code(X), y, "y"))


@pytest.mark.parametrize(("kind", "leaves"), list(zip(KINDS, LEAVES, strict=True)))
def test_probabilities_are_those_of_predict_proba(opened, kind, leaves):  # noqa: F811
    tree, data = random_page(11, kind, leaves)
    page = opened(data)
    names = tree.tree_.feature_names
    rng = np.random.default_rng(3)
    for row in rng.integers(0, len(data.matrix), 4):
        x = data.matrix[row].copy()
        x[0] += rng.normal()  # between and outside of training values
        filled(page, x, names)
        expected = tree.tree_.predict_proba(x[None])[0]
        np.testing.assert_allclose(shown_proba(page), expected, rtol=0, atol=1e-9)
        label = tree.classes_[tree.tree_.predict_index(x[None])[0]]
        assert page.locator("#case-answer").inner_text() == f"The tree says {label}."


def test_the_nearest_change_is_that_of_explain(opened):  # noqa: F811
    tree, data = random_page(4, "standard", "shares")
    page = opened(data)
    model = tree.tree_
    checked = 0
    for row in range(6):
        x = data.matrix[row]
        filled(page, x, model.feature_names)
        offered = page.locator("#case-changes li").all_inner_texts()
        expected = explain(model, x).changes
        for change in expected[:1]:
            line = next(text for text in offered if text.startswith(f"{change.name}:"))
            if change.name in ("feature 1", "feature 2"):  # 0 or 1, and whole numbers
                assert f": {change.new_value:g} instead" in line
            assert f"instead: {change.label}" in line
            checked += 1
        if not expected:
            assert offered[0].startswith("No change of one feature alone")
    assert checked > 1


def test_a_text_column_is_one_choice(opened):  # noqa: F811
    table = people(120)
    rows = learn(Table("people", table), "risk")
    tree = fit_tree(rows, FitOptions(depth=1, strength=2.0)).tree
    assert set(tree.feature_names_in_[tree.selected_features_]) == {"age", "town"}
    page = opened(unjudged_page(tree, rows))
    form = page.locator("#case")
    town = form.get_by_label("town")
    assert town.locator("option").all_inner_texts() == ["Bern", "Lyon", "Oslo"]
    form.get_by_label("age").fill("45")
    for level in ("Bern", "Oslo"):
        town.select_option(label=level)
        case = table.drop(columns="risk").head(1).assign(age=45, town=level)
        expected = tree.predict_proba(case)[0]
        np.testing.assert_allclose(shown_proba(page), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("gaps", ["tell something", "tell nothing", "in no training row"])
def test_an_empty_number_is_a_missing_value(opened, gaps):  # noqa: F811
    rng = np.random.default_rng(1)
    table = people(300)
    if gaps != "in no training row":
        table["age"] = table["age"].astype(float).mask(rng.uniform(size=300) < 0.3)
    if gaps == "tell something":
        table["risk"] = np.where(table["age"].isna(), "high", table["risk"])
    rows = learn(Table("people", table), "risk")
    tree = fit_tree(rows, FitOptions(depth=1, strength=1.0, points=False)).tree
    columns = tree.tree_.coding.columns_of(0)
    indicator = gaps != "in no training row" and tree.weights_[columns[-1]].any()
    assert indicator == (gaps == "tell something") and tree.weights_[columns[0]].any()
    page = opened(unjudged_page(tree, rows))
    assert "An empty field is a missing value." in page.locator("main").inner_text()
    form = page.locator("#case")
    case = table.drop(columns="risk").head(1)
    form.get_by_label("town").select_option(label=str(case["town"].iloc[0]))
    field, counts = form.get_by_label("age"), rows.coding.variables[0].display_imputed
    for text, age in (("", np.nan), ("33", 33.0), ("", np.nan)):
        field.fill(text)
        expected = tree.predict_proba(case.assign(age=age))[0]
        np.testing.assert_allclose(shown_proba(page), expected, rtol=0, atol=1e-9)
        said = form.get_by_text(f"missing value: counts as {counts}", exact=True)
        assert said.is_visible() == (text == "")
    why = page.locator("#case-why").inner_text()
    assert f"age = unknown (counts as {counts}) speaks for" in why
    found = tree.explain(case.assign(age=np.nan)).changes
    offered = page.locator("#case-changes li").all_inner_texts()
    assert any("age" in line for line in offered) == ("age" in {one.name for one in found})


def test_a_tree_in_points_answers_as_predict(opened):  # noqa: F811
    """Numbers, parts of dates, levels and truth values, some of them missing."""
    tree, X = case("odd names, labels, points")
    rng = np.random.default_rng(0)
    y = tree.classes_[rng.integers(0, len(tree.classes_), len(X))]
    rows = labelled_rows(tree, X, y)[1]
    page, variables = opened(unjudged_page(tree, rows)), tree.coding_.variables
    used = [i for i in range(len(variables)) if i in tree.tree_.selected_variables]
    for row in range(20):
        for place, i in enumerate(used):
            variable, cells = variables[i], rows.rows.cells[i]
            value = "" if cells.missing[row] else repr(float(variable.imputed(cells)[row]))
            if variable.levels or variable.kind == "boolean":
                value = str(position_of(variable, cells, row))
            page.evaluate("([id, value]) => {document.getElementById(id).value = value}",
                          [f"case-{place}", value])  # fmt: skip
        page.evaluate("document.getElementById('case').dispatchEvent(new Event('input'))")
        expected = tree.predict_proba(X.iloc[[row]])[0]
        np.testing.assert_allclose(shown_proba(page), expected, rtol=0, atol=1e-9)
        label = tree.predict(X.iloc[[row]])[0]
        assert page.locator("#case-answer").inner_text() == f"The tree says {label}."
