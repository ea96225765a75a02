"""``softsplit export``."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from export_cases import case, priced, table
from softsplit import save_model
from softsplit.cli import app


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def model(tmp_path):
    tree, _ = case("several classes, labels")
    save_model(tree, tmp_path / "tree.json")
    return tmp_path / "tree.json"


def test_a_statement_is_printed_or_written(model, tmp_path):
    asked = ("export", model, "--to", "sql", "--dialect", "sqlite", "--table", "my rows")
    printed = invoke(*asked, "--keep", "id", "--keep", "age")
    assert printed.exit_code == 0, printed.output
    written = invoke(*asked, "--keep", "id", "--keep", "age", "--out", tmp_path / "t.sql")
    assert written.exit_code == 0 and "the tree is in" in written.stderr
    assert (tmp_path / "t.sql").read_text() == printed.stdout
    tree, _ = case("several classes, labels")
    X = table(50, 7)
    database = sqlite3.connect(":memory:")
    rows = X.assign(id=range(50), joined=X["joined"].astype(str).replace("NaT", None))
    rows.astype(object).where(rows.notna(), None).to_sql("my rows", database, index=False)
    found = pd.read_sql(printed.stdout, database).sort_values("id")
    assert found.columns[:3].tolist() == ["id", "age", "predicted"]
    assert found["predicted"].tolist() == tree.predict(X).tolist()
    np.testing.assert_allclose(found.filter(like="p_"), tree.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize(
    ("language", "word"),
    [("python", "def predict(row)"), ("javascript", "predictProba"), ("c", "softsplit_row")],
)
def test_code_is_printed(model, language, word):
    assert word in invoke("export", model, "--to", language, "--reasons").stdout


def test_a_workbook_needs_a_file(model, tmp_path):
    refused = invoke("export", model, "--to", "excel")
    assert refused.exit_code == 2
    assert "name a file with --out, such as tree.xlsx" in refused.stderr
    assert invoke("export", model, "--to", "excel", "-o", tmp_path / "t.xlsx").exit_code == 0
    assert (tmp_path / "t.xlsx").read_bytes().startswith(b"PK")
    assert invoke("export", model, "--to", "c", "--out", model).exit_code == 2


def test_a_tree_for_a_number_is_printed(tmp_path):
    tree, X = priced("price")
    save_model(tree, tmp_path / "price.json")
    printed = invoke("export", tmp_path / "price.json", "--to", "python", "--reasons")
    assert printed.exit_code == 0, printed.output
    space = {}
    exec(printed.stdout, space)
    row = X.iloc[20].astype(object).where(X.iloc[20].notna(), None).to_dict()
    assert space["predict"](row) == pytest.approx(tree.predict(X.iloc[[20]])[0], rel=1e-9)
    assert {name for _, name, _ in space["reasons"](row)} <= set(X)
