"""Fairness and bounds of rates on the command line and in the report."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from slow_cases import slow
from softsplit import export_text, load_model
from softsplit.cli import app
from softsplit.report import comparison
from softsplit.report.comparison import ComparisonOptions


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(3)
    sex = rng.choice(["F", "M"], 200)
    table = pd.DataFrame({"a": rng.normal(size=200) + (sex == "M"), "b": rng.normal(size=200)})
    table["age"], table["sex"] = rng.integers(18, 70, 200), sex
    table["credit"] = np.where(table.a + table.b + 0.5 * rng.normal(size=200) > 0.5, "good", "bad")
    table.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def invoke(table, *options):
    given = ["fit", str(table), "-t", "credit", "--depth", "1", "--strength", "1", "--quiet"]
    return CliRunner().invoke(app, [*given, *options])


@pytest.mark.slow
def test_a_column_that_is_no_feature_and_the_report(table, tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "OPTIONS", ComparisonOptions(points=1))
    model, page = tmp_path / "m.json", tmp_path / "r.html"
    options = ["--parity", "sex=0.05", "--sensitive-only", "sex", "--rate", "good <= 0.6"]
    done = invoke(table, *options, "--model", str(model), "--report", str(page))
    assert done.exit_code == 0, done.output
    tree, rows = load_model(model), pd.read_csv(table)
    assert "parity of sex: rate of good, differ by at most 0.05" in export_text(tree)
    X = rows.drop(columns="credit")
    said = tree.predict_proba(X)[:, 1]
    assert (said == tree.predict_proba(X.assign(sex="F"))[:, 1]).all()
    assert abs(said[rows.sex == "F"].mean() - said[rows.sex == "M"].mean()) <= 0.05 + 1e-6
    text = page.read_text(encoding="utf-8")
    assert "What must hold" in text and "decided, held out" in text
    assert "--parity sex=0.05" in text


@pytest.mark.slow
def test_effects_costs_and_parity_together(tmp_path):
    rng = np.random.default_rng(1)
    sex = rng.choice(["F", "M"], 160)
    loans = pd.DataFrame({"arrears": rng.poisson(1.0 + (sex == "F"), 160), "sex": sex})
    loans["mri"], loans["age"] = rng.normal(size=160), rng.integers(18, 70, 160)
    risk = loans.arrears + 0.3 * loans.mri + rng.logistic(size=160)
    loans["result"] = np.where(risk > 1.5, "unpaid", "paid")
    loans.to_csv(tmp_path / "data.csv", index=False)
    wished = ["--monotone", "arrears=+", "--feature-cost", "mri=30", "--parity", "sex=0.05"]
    given = ["--target", "result", "--depth", "1", "--strength", "1", "--quiet"]
    model = tmp_path / "m.json"
    done = CliRunner().invoke(
        app, ["fit", str(tmp_path / "data.csv"), *wished, *given, "--model", str(model)]
    )
    assert done.exit_code == 0, done.output
    tree, X = load_model(model), loans.drop(columns="result")
    assert tree.check_monotone("arrears").proved
    said = tree.predict_proba(X)[:, 1]
    assert abs(said[sex == "F"].mean() - said[sex == "M"].mean()) <= 0.05 + 1e-6
    assert "mri" not in X.columns[tree.selected_features_]
    assert tree.get_params()["feature_costs"] == {"mri": 30.0}


@pytest.mark.parametrize("apart", [["--sensitive-only", "age"], *slow([])])
def test_a_column_of_numbers_is_cut_and_named_by_value(table, tmp_path, apart):
    rows = pd.read_csv(table)
    rows["grade"] = np.where(rows.a > 0, 2.0, 1.0)
    rows.to_csv(table, index=False)
    model = tmp_path / "m.json"
    options = ["--parity", "age>40=0.1", "--rate", "good on grade=2 <= 0.5", "--min-rate", "0.2"]
    others = ["good on b > -1.5 >= 0.2", "good on b <= 0.5 given bad <= 0.4"]
    options += [word for one in others for word in ("--rate", one)]
    done = invoke(table, *options, *apart, "--effort", "fast", "--model", str(model))
    assert done.exit_code == 0, done.output
    tree = load_model(model)
    said = tree.predict_proba(rows.drop(columns="credit"))[:, 1]
    assert abs(said[rows.age > 40].mean() - said[rows.age <= 40].mean()) <= 0.1 + 1e-6
    assert said[rows.grade == 2].mean() <= 0.5 + 1e-6
    assert said[(rows.b <= 0.5) & (rows.credit == "bad")].mean() <= 0.4 + 1e-6
    (line,) = [one for one in done.output.splitlines() if one.startswith("the same tree")]
    assert all(f"--rate '{one}'" in line for one in others)
    assert "--min-rate 0.2" in line and ("--sensitive-only age" in line) == bool(apart)
