"""Fairness and bounds of rates on the command line and in the report."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--parity", "sax=0.05"], "names no column"),
        (["--parity", "sex"], "names no column"),
        (["--parity", "age>x=0.05"], "--parity"),
        (["--favourable", "good"], "give one of them"),
        (["--parity", "sex=0.1", "--favourable", "fine"], "'fine'"),
        (["--rate", "good"], "not understood"),
        (["--rate", "good on sex=Q <= 0.4"], "no value 'Q'"),
    ],
)
def test_wrong_options_are_told_in_one_sentence(table, options, said):
    done = invoke(table, *options)
    assert done.exit_code != 0
    assert said in " ".join(done.output.split())
