"""A choice on a large table: candidates see some of its rows, the tree sees them all."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from softsplit import SoftTreeClassifierCV
from softsplit.estimators import classifier_cv
from softsplit.estimators.base import CutShortWarning
from softsplit.selection import cross_validation, fold_paths, held_out, strengths
from softsplit.selection.scoreboard import Candidate
from softsplit.solvers import Status
from softsplit.support.row_budgets import RowBudgets


def two_classes(n_rows):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 4))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(n_rows) > 0).astype(int)


def test_candidates_are_compared_on_some_rows(monkeypatch):
    monkeypatch.setattr(classifier_cv, "ROWS", RowBudgets(compared=1500))
    X, y = two_classes(22_000)
    few = {"depths": (2,), "scales": ("standard",), "n_strengths": 4, "cv": 3, "random_state": 0}
    chosen = SoftTreeClassifierCV(**few).fit(X, y)
    solution = chosen.best_estimator_.solution_
    assert solution.status is Status.OPTIMAL
    found = chosen.predict_proba(X)[np.arange(len(y)), y]
    assert solution.cost == pytest.approx(-np.sum(np.log(found)), rel=0.01)  # of all rows
    assert chosen.score(X, y) > chosen.best_score_ - 0.03


def test_a_strength_that_was_named_stays(monkeypatch):
    monkeypatch.setattr(classifier_cv, "ROWS", RowBudgets(compared=400))
    X, y = two_classes(1600)
    few = {"depths": (1,), "scales": ("standard",), "ridges": (1.0,), "cv": 2, "random_state": 0}
    named = SoftTreeClassifierCV(strengths=np.array([20.0]), **few).fit(X, y).best_params_
    assert named["global_strength"] == pytest.approx(20.0)
    free = SoftTreeClassifierCV(n_strengths=1, **few).fit(X, y)
    known = free.cv_results_["param_strength_fraction"][free.best_index_]
    found = free.best_params_["local_strength"] + free.best_params_["global_strength"]
    loss = -np.sum(np.log(np.bincount(y) / len(y))[y])
    assert found == pytest.approx(0.5 * known * loss, rel=0.01)  # the root of 400 / 1600


def test_settings_compete_on_the_first_folds(monkeypatch):
    for module in (strengths, classifier_cv, cross_validation, fold_paths):
        monkeypatch.setattr(module, "ROWS", RowBudgets(halved=300))
    X, y = two_classes(400)
    found = [SoftTreeClassifierCV(random_state=0, n_jobs=n).fit(X, y) for n in (1, 2)]
    board = found[0].cv_results_
    assert found[0].n_splits_ == 4
    assert board["n_splits_done"][found[0].best_index_] == 4
    assert set(board["n_splits_done"]) == {2, 4}
    finished = {
        tuple((name, value) for name, value in settings.items() if name != "strength_fraction")
        for settings, n in zip(board["params"], board["n_splits_done"], strict=True)
        if n == 4 and not settings["points"]
    }
    assert len(finished) <= 2  # the best two by the first folds, at the better half of strengths
    assert np.array_equal(found[0].predict_proba(X), found[1].predict_proba(X))


def one_of_depth(depth):
    return Candidate("standard", depth, "auto", "count", "size", "log", 1.0)


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "n_classes", "deepest"),
    [
        (5000, 64, 26, 7),  # 330 coefficients for each class
        (3100, 64, 26, 6),  # 25 rows for each leaf
        (5000, 64, 10, 6),  # 4,200 coefficients
        (5000, 10, 2, 7),  # rows
        (5000, 2000, 2, 2),  # one level more than classes need
    ],
)
def test_how_deep_trees_of_many_rows_may_be(n_rows, n_columns, n_classes, deepest):
    choice = one_of_depth(1).formulation.choice
    found = strengths.make_depths("auto", n_classes, n_rows, choice, n_columns=n_columns)
    assert found[-1] == deepest


@pytest.fixture
def heard():
    """Ctrl-C is heard in processes of the background too, where shells have it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_after_ctrl_c_no_further_tree_is_judged(monkeypatch, heard):
    X, y = two_classes(400)
    judged, known = held_out.TestRows.judged, []

    def interrupting(self, tree):
        known.append(self.prepared.settings.depth)
        if known[-1] == 2:
            signal.raise_signal(signal.SIGINT)
        return judged(self, tree)

    monkeypatch.setattr(held_out.TestRows, "judged", interrupting)
    with pytest.warns(CutShortWarning, match="interrupted"):
        tuned = SoftTreeClassifierCV(depths=[1, 2], cv=3, points=False, random_state=0, n_jobs=1)
        found = tuned.fit(X, y)
    assert known.count(1) > 3 and known.count(2) == 1
    assert found.best_params_["depth"] == 1
