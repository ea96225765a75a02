"""A choice on a large table: candidates see some of its rows, the tree sees them all."""

from __future__ import annotations

import signal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from softsplit import SoftTreeClassifierCV
from softsplit.engines.samples import first_rows
from softsplit.estimators import classifier_cv
from softsplit.estimators.base import CutShortWarning
from softsplit.selection import candidates, cross_validation, fold_paths, held_out, strengths
from softsplit.selection.candidates import CandidateSearch
from softsplit.selection.scoreboard import Candidate, FoldScore, Scoreboard, Valued
from softsplit.solvers import Status
from softsplit.solvers.base import Budget
from softsplit.support.row_budgets import RowBudgets
from softsplit.training.observer import Observer
from softsplit.tree.parameters import TreeParameters


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


def test_first_rows_do_not_depend_on_the_order():
    X, y = two_classes(500)
    weight = np.ones(500)
    order = np.random.default_rng(1).permutation(500)
    one, other = first_rows(X, y, weight, 300), first_rows(X[order], y[order], weight, 300)
    assert set(one.tolist()) == set(order[other].tolist())
    assert abs(len(one) - 300) <= 2
    share = np.mean(y)
    assert np.mean(y[one]) == pytest.approx(share, abs=0.01)


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


def board_of(worths):
    """One row for each depth, with the same log-loss on every held-out row of two folds."""
    board = Scoreboard(4)
    for depth, worth in worths.items():
        for fold in range(2):
            board.add(one_of_depth(depth), 0.01, fold, score_of(worth))
    return board


def score_of(worth):
    tree = TreeParameters(np.zeros((1, 1)), np.zeros(1), np.full((2, 2), 0.5))
    valued = Valued(np.full(50, worth) + 1e-4 * np.arange(50), np.ones(50))
    return FoldScore(tree, 0.9, 1, 1, 0.0, valued)


def one_of_depth(depth):
    return Candidate("standard", depth, "auto", "count", "size", "log", 1.0)


@pytest.mark.parametrize(
    ("worths", "pays"),
    [
        ({1: -0.40, 2: -0.38}, True),
        ({1: -0.40, 2: -0.395}, False),  # less than two per cent
        ({1: -0.020, 2: -0.0170}, False),  # fifteen per cent of hardly anything
        ({1: -0.020, 2: -0.0160}, True),
    ],
)
def test_of_many_rows_a_level_must_gain_a_part_of_the_log_loss(monkeypatch, worths, pays):
    search = CandidateSearch(None, board_of(worths), (0.01,), Observer(), 0)
    for many in (False, True):
        monkeypatch.setattr(CandidateSearch, "_halves", lambda self, choice, many=many: many)
        assert search._pays(one_of_depth(2)) == (pays or not many)


@pytest.mark.parametrize(
    ("worths", "depth", "seen"),
    [
        ((-0.04, -0.03, -0.028, -0.001), 2, [(1, 1), (1, 0.1), (2, 0.1), (3, 0.1)]),
        ((-0.40, -0.30, -0.298, -0.001), 3, [(1, 1), (2, 1), (3, 1)]),  # the best, if by little
        ((-0.04, -0.03, -0.020, -0.001), 4, [(1, 1), (1, 0.1), (2, 0.1), (3, 0.1), (4, 0.1)]),
    ],
)
def test_where_trees_of_many_rows_are_nearly_right_a_level_that_does_not_pay_is_dropped(
    monkeypatch, worths, depth, seen
):
    """Ridges are compared first there; the smaller one is the better one in this test."""
    board, kept = Scoreboard(4), []
    trainer = SimpleNamespace(memory=SimpleNamespace(keep_only=kept.append))
    search = CandidateSearch(trainer, board, (0.01,), Observer(), 0)

    def judge(self, some, fractions, keep=False):
        for one in some:
            self.seen.add(one)
            worth = worths[one.depth - 1] - 0.001 * (one.ridge == 1.0)
            for fold in range(2):
                board.add(one, 0.01, fold, score_of(worth))

    monkeypatch.setattr(CandidateSearch, "_halves", lambda self, choice: True)
    monkeypatch.setattr(CandidateSearch, "_evaluate", judge)
    first = one_of_depth(1)
    judge(search, [first], (0.01,))
    search._deepen(first, (1, 2, 3, 4), (1.0, 0.1))
    assert [(key[0].depth, key[0].ridge) for key in board.folds] == seen
    assert search._leader(first).depth == depth
    assert kept[-1].depth == depth  # its paths are there for further strengths
    assert board.chosen("best")[0].depth == depth


@pytest.mark.parametrize(
    ("best", "many", "ridges", "seen"),
    [
        (0.1, True, (1.0, 0.1, 5.0), [1.0, 0.1]),
        (5.0, True, (1.0, 0.1, 5.0), [1.0, 0.1, 5.0]),
        (0.1, False, (1.0, 0.1, 5.0), [1.0, 0.1, 5.0]),
        (0.1, True, (1.0, 0.1, 5.5), [1.0, 0.1, 5.5]),  # named by the user
    ],
)
def test_of_many_rows_no_default_ridge_beyond_a_worse_one_is_compared(
    monkeypatch, best, many, ridges, seen
):
    board, first = Scoreboard(4), one_of_depth(2)
    search = CandidateSearch(None, board, (0.01,), Observer(), 0)

    def judge(self, some, fractions, keep=False):
        for one in some:
            self.seen.add(one)
            for fold in range(2):
                board.add(one, 0.01, fold, score_of(-0.4 - abs(np.log(one.ridge / best)) / 100))

    monkeypatch.setattr(CandidateSearch, "_halves", lambda self, choice: many)
    monkeypatch.setattr(CandidateSearch, "_evaluate", judge)
    judge(search, [first], (0.01,))
    search._vary(first, "ridge", ridges)
    assert [key[0].ridge for key in board.folds] == seen
    assert search._leader(first).ridge == min(ridges, key=lambda one: abs(np.log(one / best)))


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


def test_of_many_rows_strengths_above_the_better_half_are_left_out(monkeypatch):
    strengths = tuple(np.geomspace(0.001, 0.5, 12).tolist())
    judged = strengths[::2]
    board, deeper = Scoreboard(4), [one_of_depth(2)]
    search = CandidateSearch(None, board, strengths, Observer(), 0)
    for many in (False, True):
        monkeypatch.setattr(CandidateSearch, "_halves", lambda self, choice, many=many: many)
        assert search._screen(deeper) == judged  # nothing is known yet
    for strength, worth in zip(judged, (-0.30, -0.32, -0.29, -0.28, -0.5, -0.7), strict=True):
        for fold in range(2):
            board.add(one_of_depth(1), strength, fold, score_of(worth))
    assert search._screen(deeper) == judged[:4]
    monkeypatch.setattr(CandidateSearch, "_halves", lambda self, choice: False)
    assert search._screen(deeper) == judged


@pytest.mark.parametrize("peak", range(12))
def test_of_many_rows_no_neighbour_of_the_best_strength_is_left_out(monkeypatch, peak):
    strengths = tuple(np.geomspace(0.001, 0.5, 12).tolist())
    deeper, board = one_of_depth(2), Scoreboard(4)
    search = CandidateSearch(None, board, strengths, Observer(), 0)

    def judge(self, some, fractions, keep=False):
        for fraction in fractions:
            worth = -0.3 - 0.01 * abs(strengths.index(fraction) - peak)
            for fold in range(2):
                board.add(some[0], fraction, fold, score_of(worth))

    monkeypatch.setattr(CandidateSearch, "_halves", lambda self, choice: True)
    monkeypatch.setattr(CandidateSearch, "_evaluate", judge)
    judge(search, [deeper], strengths[:7:2])  # stronger ones were left out
    search._complete(deeper)
    judged = {fraction for _, fraction in board.folds}
    assert judged >= set(strengths[max(peak - 1, 0) : peak + 2])
    assert board.best() == (deeper, strengths[peak])
    assert len(judged) < 12 or peak > 7  # the far end is left out
    search.given = True
    search._complete(deeper)
    assert {fraction for _, fraction in board.folds} == set(strengths)


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({"strengths": [1.0, 20.0]}, 2),
        ({"strengths": [0.5, 1.0, 20.0, 40.0]}, 4),
        ({"n_strengths": 2}, 2),
        ({"n_strengths": 5}, 5),
    ],
)
def test_of_many_rows_all_strengths_of_the_user_are_judged(monkeypatch, given, count):
    for module in (strengths, classifier_cv, cross_validation, fold_paths):
        monkeypatch.setattr(module, "ROWS", RowBudgets(halved=300))
    few = {"depths": [2], "ridges": [1.0], "random_state": 0}
    found = SoftTreeClassifierCV(**few, **given).fit(*two_classes(400)).cv_results_
    assert len(set(found["param_strength_fraction"])) == count


@pytest.mark.parametrize("halved", [300, 3000])
def test_settings_are_compared_at_each_of_few_strengths(monkeypatch, halved):
    for module in (strengths, classifier_cv, cross_validation, fold_paths):
        monkeypatch.setattr(module, "ROWS", RowBudgets(halved=halved))
    few = {"depths": [1, 2], "ridges": [1.0], "selection": "best", "random_state": 0}
    found = SoftTreeClassifierCV(strengths=[0, 8], **few).fit(*two_classes(400)).cv_results_
    compared = set(zip(found["param_depth"], found["param_strength_fraction"] > 0, strict=True))
    assert compared == {(1, False), (1, True), (2, False), (2, True)}


def test_copies_of_a_large_table_are_kept_for_the_first_folds_only(monkeypatch):
    kept = []
    for module in (strengths, classifier_cv, cross_validation, fold_paths):
        monkeypatch.setattr(module, "ROWS", RowBudgets(halved_cells=100))
    keep_only = cross_validation.FoldMemory.keep_only

    def watched(memory, candidate):
        kept.append({fold for _, fold in [*memory.prepared, *memory.paths]})
        keep_only(memory, candidate)

    monkeypatch.setattr(cross_validation.FoldMemory, "keep_only", watched)
    X, y = two_classes(200)
    chosen = SoftTreeClassifierCV(random_state=0).fit(X, y)
    assert set.union(*kept) == {0, 1}
    assert chosen.cv_results_["n_splits_done"].max() == chosen.n_splits_ == 5


def test_after_ctrl_c_the_tree_is_trained_on_the_compared_rows(monkeypatch):
    """Preparing all of many rows takes seconds, and the user waits."""
    monkeypatch.setattr(classifier_cv, "ROWS", RowBudgets(compared=220))
    real = candidates.CandidateSearch._evaluate

    def interrupted(self, candidates, fractions, keep=False):
        real(self, candidates, fractions, keep=keep)
        self.trainer.run.budget.stop()

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(500, 3)), columns=["a", "b", "c"])
    y = np.where(X["a"] + 0.3 * rng.normal(size=500) > 0, "yes", "no")
    whole = SoftTreeClassifierCV(random_state=0, depths=[1], cv=2).fit(X, y)
    assert whole.tree_.walk.counts.sum() == 500
    monkeypatch.setattr(candidates.CandidateSearch, "_evaluate", interrupted)
    tree = SoftTreeClassifierCV(random_state=0, depths=[1], cv=2)
    with pytest.warns(CutShortWarning, match=r"trained on the 2\d\d rows of its folds"):
        tree.fit(X, y)
    assert tree.end_ == "interrupted" and 200 <= tree.tree_.walk.counts.sum() <= 240
    assert list(tree.feature_names_in_) == ["a", "b", "c"]
    assert tree.predict_proba(X).shape == (500, 2) and tree.score(X, y) > 0.85


def test_after_ctrl_c_no_further_tree_is_judged(monkeypatch):
    X, y = two_classes(400)
    judged, known = held_out.TestRows.judged, []

    def interrupting(self, tree):
        known.append(self.prepared.settings.depth)
        if known[-1] == 2:
            signal.raise_signal(signal.SIGINT)
        return judged(self, tree)

    monkeypatch.setattr(held_out.TestRows, "judged", interrupting)
    with pytest.warns(CutShortWarning, match="interrupted"):
        found = SoftTreeClassifierCV(depths=[1, 2], cv=3, random_state=0, n_jobs=1).fit(X, y)
    assert known.count(1) > 3 and known.count(2) == 1
    assert found.best_params_["depth"] == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_while_paths_are_followed_keeps_what_was_found(workers):
    """Also where it comes in another thread, and so outside of the solver."""
    asked = []

    class Followed:
        def __init__(self, objective):
            self.objective = objective

        def trees(self, problems, *, tight):
            asked.append((self.objective, tight))
            if not tight and self.objective == 2.0:
                raise KeyboardInterrupt
            return [SimpleNamespace(objective=self.objective)]

    budget = Budget()
    found = fold_paths.best_path([Followed(1.0), Followed(2.0)], None, budget, workers)
    assert budget.stopped and found.objective == 1.0
    assert asked[-1] == (1.0, True)
