"""What the command line does with a table, done from Python."""

from __future__ import annotations

import pickle
import textwrap
import warnings

import numpy as np
import pandas as pd
import pytest

import softsplit.report
from softsplit import SoftTreeClassifier, dumps_model, loads_model
from softsplit.data import Table, learn
from softsplit.data.errors import MissingClasses, MissingValues, TooFewToChoose, UselessColumn
from softsplit.report import FitOptions, fit_tree, make_subject, rivals, rows_of, walk_path
from softsplit.support.convergence import CutShortWarning
from tables import people

GIVEN = FitOptions(depth=1, strength=0.05)


@pytest.fixture
def light(monkeypatch):
    """Few trees and folds."""
    monkeypatch.setattr(rivals, "POINTS", 2)
    monkeypatch.setattr(rivals, "FOLDS", 2)


def rows_of_people():
    return learn(Table("people", people().astype(str)), "risk")


def test_the_example_of_the_package_makes_a_report(tmp_path, monkeypatch, light):
    people().rename(columns={"risk": "outcome"}).to_csv(tmp_path / "patients.csv", index=False)
    monkeypatch.chdir(tmp_path)
    example = softsplit.report.__doc__.split("::\n")[1].split("``found.tree``")[0]
    found = {}
    exec(textwrap.dedent(example), found)
    assert (tmp_path / "tree.html").read_text().startswith("<!doctype html>")
    assert isinstance(found["found"].tree, SoftTreeClassifier)
    subject = found["subject"]
    accuracy = subject.accuracy(subject.chosen)
    assert accuracy.low <= accuracy.value <= accuracy.high
    assert found["found"].score > 0.5 and not found["found"].interrupted


def test_a_tree_that_was_read_gets_the_report_of_its_table(light):
    rows = rows_of_people()
    tree = loads_model(dumps_model(fit_tree(rows, GIVEN).tree))
    again = rows_of(tree, Table("people", people().astype(str)))
    np.testing.assert_array_equal(again.X, rows.X)
    np.testing.assert_array_equal(again.y, rows.y)
    said = []
    path = walk_path(tree, again, say=said.append)
    subject = make_subject("people", again, path)
    assert path.trees[path.chosen] is subject.tree is tree
    assert said[0].startswith("judging 3 trees") and not path.interrupted


def test_rows_without_a_class_and_lost_classes_are_refused():
    tree = fit_tree(rows_of_people(), GIVEN).tree
    frame = people().astype(str)
    frame.loc[3, "risk"] = None
    with pytest.raises(MissingClasses, match="in 1 rows; go on without them by missing='drop'"):
        rows_of(tree, Table("people", frame))
    assert len(rows_of(tree, Table("people", frame), "drop").y) == 59
    with pytest.raises(ValueError, match="no row is of class 'high'; the report needs"):
        rows_of(tree, Table("people", people().astype(str).query("risk == 'low'")))


def test_errors_keep_problem_and_advice_apart():
    few = pd.DataFrame({"a": range(4), "y": ["n", "n", "o", "p"]})
    with pytest.raises(TooFewToChoose) as error:
        fit_tree(learn(Table("few", few), "y"))
    assert str(error.value).endswith("by cross-validation; give depth and strength, or more rows.")
    assert error.value.advising("ask a friend").endswith("; ask a friend.")
    empty = pd.DataFrame({"a b": [None] * 3, "y": list("nyn")})
    with pytest.raises(UselessColumn, match="column 'a b' holds no values; leave it out") as error:
        learn(Table("empty", empty), "y")
    assert error.value.column == "a b"
    copied = pickle.loads(pickle.dumps(error.value))
    assert (copied.column, str(copied)) == ("a b", str(error.value))
    holes = pd.DataFrame({"a": [1.0, None, 3.0], "y": list("nyn")})
    with pytest.raises(MissingValues, match=r"in column 'a' \(1\); fill them in, or say with"):
        learn(Table("holes", holes), "y")


def test_an_interruption_is_a_field_and_not_a_word(monkeypatch):
    def cut(self, X, y):
        fitted = fit(self, X, y)
        warnings.warn(CutShortWarning("Anything", "stopped by hand.", True), stacklevel=2)
        return fitted

    fit = SoftTreeClassifier.fit
    monkeypatch.setattr(SoftTreeClassifier, "fit", cut)
    found = fit_tree(rows_of_people(), GIVEN)
    assert found.interrupted and found.notes == ("stopped by hand.",)
    said = pickle.loads(pickle.dumps(CutShortWarning("Anything", "stopped by hand.", True)))
    assert (str(said), said.interrupted) == ("Anything: stopped by hand.", True)
