"""What the command line does with a table, done from Python."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import softsplit.report
from softsplit import (
    SoftTreeClassifier,
    SoftTreeClassifierCV,
    dumps_model,
    export_text,
    loads_model,
)
from softsplit.data import Table, learn
from softsplit.report import FitOptions, comparison, fit_tree, rows_of, walk_path
from softsplit.report.comparison import ComparisonOptions
from softsplit.variables import IdentifierUsed
from tables import people

GIVEN = FitOptions(depth=1, strength=0.05)


@pytest.fixture
def light(monkeypatch):
    """Few trees and folds."""
    options = ComparisonOptions(points=2, folds=2)
    monkeypatch.setattr(comparison, "OPTIONS", options)


def rows_of_people():
    return learn(Table("people", people().astype(str)), "risk")


def test_the_example_of_the_package_makes_a_report(tmp_path, monkeypatch, light):
    people().rename(columns={"risk": "outcome"}).to_csv(tmp_path / "patients.csv", index=False)
    monkeypatch.chdir(tmp_path)
    example = softsplit.report.__doc__.split("::\n")[1].split("``fitted.tree``")[0]
    names = {}
    exec(textwrap.dedent(example), names)
    assert (tmp_path / "tree.html").read_text().startswith("<!doctype html>")
    assert isinstance(names["fitted"].tree, SoftTreeClassifier)
    data = names["data"]
    accuracy = data.accuracy(data.chosen)
    assert accuracy.low <= accuracy.value <= accuracy.high
    assert names["fitted"].score > 0.5 and not names["fitted"].interrupted


def test_a_tree_that_was_read_gets_the_report_of_its_table(light):
    rows = rows_of_people()
    tree = loads_model(dumps_model(fit_tree(rows, GIVEN).tree))
    again = rows_of(tree, Table("people", people().astype(str)))
    assert again.matrix.shape == (len(rows.matrix), len(tree.tree_.feature_names))
    np.testing.assert_array_equal(again.y, rows.y)
    said = []
    data = walk_path(tree, again, "people", say=said.append)
    assert data.trees[data.chosen] is data.tree is tree
    assert said[0].startswith("training 3 trees") and said[1].startswith("judging 3 trees")
    assert not data.interrupted


def test_the_command_line_has_the_tree_of_python_and_says_that_rows_are_numbered():
    table = people().assign(serial=np.arange(len(people())))
    table["risk"] = np.where(table["serial"] < 30, "low", "high")
    rows = learn(Table("people", table.astype(str)), "risk", {"serial": "number"})
    fitted = fit_tree(rows)
    with pytest.warns(IdentifierUsed, match="column 'serial' seems to number the rows"):
        search = SoftTreeClassifierCV(random_state=0).fit(*rows.part())
    assert export_text(fitted.tree) == export_text(search)
    assert any("column 'serial'" in note for note in fitted.notes)
