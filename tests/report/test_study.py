"""What the command line does with a table, done from Python."""

from __future__ import annotations

import pickle
import re
import textwrap
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import softsplit.report
from clocks import Clock
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, dumps_model, loads_model
from softsplit.data import Table, learn
from softsplit.data.dataset import TooFewToChoose, UnknownTarget
from softsplit.estimators.alternatives import Alternative, Alternatives
from softsplit.estimators.base import CutShortWarning
from softsplit.report import (
    FitOptions,
    comparison,
    fit_tree,
    rows_of,
    study,
    walk_path,
)
from softsplit.report.comparison import ComparisonOptions
from softsplit.report.document import render_report
from softsplit.selection import assessment
from softsplit.solvers import Budget
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


def test_a_tree_that_the_limit_cut_is_compared_with_that_of_the_choice(monkeypatch):
    rng = np.random.default_rng(0)
    dose = rng.normal(5, 2, 120).round(2)
    table = pd.DataFrame({"dose": dose, "harm": np.where(np.abs(dose - 5) > 1.3, "yes", "no")})
    real = study._trained

    def cut(*arguments):
        tree = real(*arguments)
        tree.end_ = "time_limit"
        return tree

    monkeypatch.setattr(study, "_trained", cut)
    found = fit_tree(learn(Table("doses", table.astype(str)), "harm"), FitOptions())
    assert found.tree.coding_.bends
    assert np.mean(found.tree.predict(table[["dose"]]) == table["harm"]) > 0.9


def test_rows_without_a_class_are_left_out_and_lost_classes_refused():
    tree = fit_tree(rows_of_people(), GIVEN).tree
    frame = people().astype(str)
    frame.loc[3, "risk"] = None
    found = rows_of(tree, Table("people", frame))
    assert len(found.y) == 59 and found.dropped_rows == 1
    with pytest.raises(ValueError, match="no row is of class 'high'; the report needs"):
        rows_of(tree, Table("people", people().astype(str).query("risk == 'low'")))
    frame.loc[3, "risk"] = "some"
    with pytest.raises(
        ValueError, match="class 'some' in column 'risk' is not a class of the model"
    ):
        rows_of(tree, Table("people", frame))


def test_errors_keep_problem_and_advice_apart():
    few = pd.DataFrame({"a": range(4), "y": ["n", "n", "o", "p"]})
    with pytest.raises(TooFewToChoose) as error:
        fit_tree(learn(Table("few", few), "y"))
    assert str(error.value).endswith("by cross-validation; give depth and strength, or more rows.")
    assert error.value.advising("ask a friend").endswith("; ask a friend.")
    tree = SoftTreeClassifier(depth=1, n_starts=1).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(UnknownTarget, match="the column of its classes; name the target") as error:
        rows_of(tree, Table("few", few))
    copied = pickle.loads(pickle.dumps(error.value))
    assert str(copied) == str(error.value)


def test_ctrl_c_while_other_trees_are_looked_for_ends_the_work(light):
    rows = rows_of_people()
    tree = fit_tree(rows, GIVEN).tree

    class Stopped:
        def alternatives(self, n, *, time_limit):
            own = Alternative.of(tree, tree, 0.0, 0.0)
            return Alternatives((), own, n, interrupted=True)

    data = walk_path(tree, rows, "people", search=Stopped())
    assert data.interrupted and data.stability is None and data.alternatives is None
    page, remedy = render_report(data), "softsplit report MODEL DATA has"
    assert "Other trees as good are missing: Ctrl-C came before; fit again." in page
    assert f"Trees of resamples are missing: Ctrl-C came before; {remedy} them." in page
    assert "--time-limit 0" not in page


def test_a_page_says_only_what_is_missing(light, monkeypatch):
    rows = rows_of_people()
    tree = fit_tree(rows, GIVEN).tree
    own = Alternative.of(tree, tree, 0.0, 0.0)

    def page(found):
        def alternatives(n, *, time_limit):
            return Alternatives(found, own, n, interrupted=True)

        search = SimpleNamespace(alternatives=alternatives)
        return render_report(walk_path(tree, rows, search=search))

    with_one = page((own,))
    assert "Alternative 1" in with_one and "Other trees as good are missing" not in with_one
    assert "Trees of resamples are missing" in with_one
    monkeypatch.setattr(comparison, "OPTIONS", replace(comparison.OPTIONS, resampled_cells=0))
    assert "Trees of resamples" not in page((own,))  # so many rows have none anyway


def test_a_page_after_ctrl_c_shows_few_trees(monkeypatch):
    monkeypatch.setattr(comparison, "OPTIONS", ComparisonOptions(points=8, folds=2))
    rows = rows_of_people()
    tree = fit_tree(rows, GIVEN).tree
    real = comparison.assess

    def stopped(*given, budget, **asked):
        found = real(*given, budget=budget, **asked)
        budget.stop()
        return found

    monkeypatch.setattr(comparison, "assess", stopped)
    monkeypatch.setattr(comparison, "_undominated", lambda trees, *_: list(range(len(trees))))
    path = walk_path(tree, rows)
    assert len(path.trees) == len(path.assessment.trees) == comparison.OPTIONS.hurried_trees
    assert path.trees[path.chosen] is tree and path.missing == 9 - len(path.trees)


def test_a_page_shows_few_trees_if_ctrl_c_comes_while_others_are_looked_for(monkeypatch):
    monkeypatch.setattr(comparison, "OPTIONS", ComparisonOptions(points=3, folds=2))
    monkeypatch.setattr(comparison, "_undominated", lambda trees, *_: list(range(len(trees))))
    rows = rows_of_people()
    tree = fit_tree(rows, GIVEN).tree
    own = Alternative.of(tree, tree, 0.0, 0.0)
    search = SimpleNamespace(alternatives=lambda n, **_: Alternatives((), own, n, interrupted=True))
    path = walk_path(tree, rows, search=search)
    assert len(path.trees) == len(path.assessment.trees) == comparison.OPTIONS.hurried_trees
    assert path.trees[path.chosen] is tree and path.missing == 4 - len(path.trees)


@pytest.mark.parametrize(
    ("n_rows", "n_classes", "told"), [(400, 2, "0.25 %"), (2500, 2, "0.1 %"), (399, 3, "0.16 %")]
)
def test_the_price_of_a_feature_is_told_as_it_was(n_rows, n_classes, told):
    y = np.arange(n_rows) % n_classes  # even classes
    X = np.random.default_rng(0).normal(size=(n_rows, 3))
    X[:, 0] += y
    few = {"ridges": [1.0], "scales": ["standard"], "n_strengths": 1, "curves": False}
    search = SoftTreeClassifierCV(depths=[n_classes - 1], **few, random_state=0).fit(X, y)
    found = search.cv_results_
    paid = (found["priced_log_loss"] - found["mean_test_log_loss"]) / found["mean_n_features"]
    assert paid[0] / np.log(n_classes) == pytest.approx(search.feature_price_)
    assert (
        f"; a feature is kept if it lowers the log-loss by at least {told} of the log-loss of a "
        "tree without features"
    ) in study.describe_choice(search)
    assert "unit of its cost" not in study.describe_choice(search)
    search.set_params(feature_costs=[1.0, 2.0, 3.0])
    assert "without features for each unit of its cost" in study.describe_choice(search)


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


def test_trees_come_before_methods_and_what_is_missing_is_named(light, monkeypatch):
    rows, order = rows_of_people(), []
    tree = fit_tree(rows, GIVEN).tree
    clock = Clock()
    monkeypatch.setattr(Budget, "now", staticmethod(clock))
    walk, train = comparison.path_trees, assessment.train_baseline

    def walked(*arguments, **options):
        order.append("trees")
        return walk(*arguments, **options)

    def trained(name, *arguments):
        order.append(name)
        if name == "cart":  # the time ends while a method of another library works
            clock.advance(1e6)
        return train(name, *arguments)

    monkeypatch.setattr(comparison, "path_trees", walked)
    monkeypatch.setattr(assessment, "train_baseline", trained)
    for held_out_from in (5000, 1):
        order.clear()
        options = ComparisonOptions(points=2, folds=2, held_out_from=held_out_from)
        monkeypatch.setattr(comparison, "OPTIONS", options)
        path = walk_path(tree, rows, time_limit=60.0)
        assert order[0] == "trees" and order.count("trees") == 1 and path.missing == 0
        page = render_report(path)
        cut = r"Not judged: (CART \(plain decision tree\), )?gradient boosting. The time limit"
        assert re.search(cut, page)
        more = "a report with more time has them (--time-limit 0)"
        assert f"Trees of resamples are missing: the time limit ended before; {more}." in page
        assert "Other trees as good" not in page  # there was no choice
    page = render_report(replace(path, missing=3))
    assert "Missing here: 3 trees at other strengths. The time limit ended before" in page
