"""Classes and requirements on the command line: weights, costs, rates, rules; signs of life."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from cli_runs import invoke, works
from requirement_cases import table as requirement_table
from slow_cases import slow
from softsplit import export_text, load_model
from softsplit.report import comparison
from softsplit.report.comparison import ComparisonOptions


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(7)
    ill = rng.random(400) < 0.12
    table = pd.DataFrame({"my_value": rng.normal(size=400) + 1.2 * ill, "b": rng.normal(size=400)})
    table["state"] = np.where(ill, "ill", "well")
    table.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def found_ill(table, tmp_path, *options) -> float:
    """Share of the ill rows that a tree with these options says are ill."""
    model, out = tmp_path / "m.json", tmp_path / "p.csv"
    given = ["--depth", "1", "--strength", "0.5", "--quiet", "--model", str(model)]
    works(invoke("fit", table, "-t", "state", *given, *options))
    works(invoke("predict", model, table, "-o", out, "--quiet"))
    said, true = pd.read_csv(out).iloc[:, -1], pd.read_csv(table)["state"]
    return float(np.mean(said[true == "ill"] == "ill"))


def test_weights_and_costs_find_more_of_a_rare_class(table, tmp_path):
    plain = found_ill(table, tmp_path)
    for options in (
        ["--class-weight", "balanced"],
        ["--class-weight", "ill=8"],
        ["--cost", "ill=8"],
    ):
        assert found_ill(table, tmp_path, *options) > plain + 0.2, options


@pytest.fixture
def loans(tmp_path):
    rng = np.random.default_rng(3)
    sex = rng.choice(["F", "M"], 200)
    table = pd.DataFrame({"a": rng.normal(size=200) + (sex == "M"), "b": rng.normal(size=200)})
    table["age"], table["sex"] = rng.integers(18, 70, 200), sex
    table["credit"] = np.where(table.a + table.b + 0.5 * rng.normal(size=200) > 0.5, "good", "bad")
    table.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def fit_loans(loans, *options) -> str:
    given = ("-t", "credit", "--depth", 1, "--strength", 1, "--quiet")
    return works(invoke("fit", loans, *given, *options))


@pytest.mark.slow
def test_a_column_that_is_no_feature_and_the_report(loans, tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "OPTIONS", ComparisonOptions(points=1))
    model, page = tmp_path / "m.json", tmp_path / "r.html"
    options = ["--parity", "sex=0.05", "--sensitive-only", "sex", "--rate", "good <= 0.6"]
    fit_loans(loans, *options, "--model", model, "--report", page)
    tree, rows = load_model(model), pd.read_csv(loans)
    assert "parity of sex: rate of good, differ by at most 0.05" in export_text(tree)
    X = rows.drop(columns="credit")
    said = tree.predict_proba(X)[:, 1]
    assert (said == tree.predict_proba(X.assign(sex="F"))[:, 1]).all()
    assert abs(said[rows.sex == "F"].mean() - said[rows.sex == "M"].mean()) <= 0.05 + 1e-6
    text = page.read_text(encoding="utf-8")
    assert "What must hold" in text and "decided, held out" in text


@pytest.mark.parametrize("apart", [["--sensitive-only", "age"], *slow([])])
def test_a_column_of_numbers_is_cut_and_named_by_value(loans, tmp_path, apart):
    rows = pd.read_csv(loans)
    rows["grade"] = np.where(rows.a > 0, 2.0, 1.0)
    rows.to_csv(loans, index=False)
    model = tmp_path / "m.json"
    options = ["--parity", "age>40=0.1", "--rate", "good on grade=2 <= 0.5", "--min-rate", "0.2"]
    others = ["good on b > -1.5 >= 0.2", "good on b <= 0.5 given bad <= 0.4"]
    options += [word for one in others for word in ("--rate", one)]
    fit_loans(loans, *options, *apart, "--effort", "fast", "--model", model)
    tree = load_model(model)
    proba = tree.predict_proba(rows.drop(columns="credit"))[:, 1]
    assert abs(proba[rows.age > 40].mean() - proba[rows.age <= 40].mean()) <= 0.1 + 1e-6
    assert proba[rows.grade == 2].mean() <= 0.5 + 1e-6
    assert proba[(rows.b <= 0.5) & (rows.credit == "bad")].mean() <= 0.4 + 1e-6


GIVEN = ["--depth", "1", "--strength", "1", "--effort", "fast", "--quiet"]
RULES = ["--required", "f,town", "--forbidden-together", "a,b", "--at-most-one", "b,c,d",
         "--feature-cost", "a=3", "--feature-cost", "town=0.5"]  # fmt: skip


def test_rules_and_costs_hold_and_are_told(tmp_path):
    frame, y = requirement_table()
    frame.assign(ill=y).to_csv(tmp_path / "rows.csv", index=False)
    fit = ("fit", tmp_path / "rows.csv", "-t", "ill", *GIVEN, *RULES)
    said = works(invoke(*fit))
    assert "a case costs" in said and "is needed for" in said
    found = json.loads(works(invoke(*fit, "--json")))
    used = set(found["selected_features"])
    assert {"f", "town"} <= used and not {"a", "b"} <= used and len(used & {"b", "c", "d"}) <= 1
    costs = {"a": 3.0, "town": 0.5}
    assert found["expected_cost"] == pytest.approx(sum(costs.get(name, 1.0) for name in used))
