"""Many columns: the race sees those above the noise threshold, and elimination the rest of it."""

from __future__ import annotations

import tracemalloc
import warnings
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, softmax

from softsplit import SoftTreeClassifier, SoftTreeClassifierCV
from softsplit.solvers import EliminationSolver
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.options import EliminationOptions
from softsplit.solvers.elimination.screening import (
    branch_slopes,
    group_slopes,
    score_statistics,
)

QUICK = {"depth": 2, "n_starts": 2, "random_state": 0}


def screening(**options):
    """A solver with other options of its screening."""
    return EliminationSolver(options=EliminationOptions(**options))


def noisy(n_rows=150, n_noise=200, seed=0):
    """Three classes by two columns, of which one counts by its size alone; all others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 2 + n_noise))
    y = np.where(np.abs(X[:, 1]) > 1.2, 2, (X[:, 0] > 0).astype(int))
    return X, y


def test_slopes_and_curvatures_at_a_tree_are_derivatives_of_its_loss():
    rng = np.random.default_rng(3)
    scores, log_odds = rng.normal(0, 1.5, (3, 40)), rng.normal(0, 1, (3, 4))
    labels, weight, leaves = rng.integers(0, 3, 40), rng.random(40) + 0.5, softmax(log_odds, axis=0)

    def shares(u):
        p = expit(u)
        reach = [p[0] * p[1], p[0] * (1 - p[1]), (1 - p[0]) * p[2], (1 - p[0]) * (1 - p[2])]
        return leaves @ np.array(reach)

    def losses(u):
        return -weight * np.log(shares(u)[labels, np.arange(40)])

    slopes, curvatures = branch_slopes(expit(scores), expit(-scores), leaves, labels, weight)
    for t in range(3):
        moved = np.zeros_like(scores)
        moved[t] = 1e-6
        by_u = (losses(scores + moved) - losses(scores - moved)) / 2e-6
        assert_allclose(slopes[:, t], by_u, atol=1e-7)
        change = (shares(scores + moved) - shares(scores - moved)) / 2e-6
        fisher = weight * np.sum(change**2 / shares(scores), axis=0)
        assert_allclose(curvatures[:, t], fisher, atol=1e-7)


def test_scores_of_noise_are_chi_squared():
    rng = np.random.default_rng(0)
    y, columns = rng.integers(0, 2, 300), rng.standard_normal((4000, 300))
    gains = score_statistics(columns, columns**2, *group_slopes(y, np.ones(300))).gains[:, 0]
    assert 2 * gains.mean() == pytest.approx(1.0, abs=0.1)  # chi-squared, one degree of freedom
    assert gains.max() == pytest.approx(np.log(4000), abs=3.5)


def test_columns_of_noise_change_little_and_are_left_out():
    X, y = noisy()
    test_X, test_y = noisy(2000, seed=1)
    plain = SoftTreeClassifierCV(random_state=0).fit(X[:, :2], y)
    wide = SoftTreeClassifierCV(random_state=0).fit(X, y)
    assert np.sum(np.asarray(wide.selected_features_) >= 2) <= 2
    assert wide.score(test_X, test_y) > plain.score(test_X[:, :2], test_y) - 0.03


def test_the_race_sees_few_columns_and_those_that_a_tree_asks_for(monkeypatch):
    X, y = noisy(300, 100)
    seen = []
    restricted = RowDescents.restricted

    def watched(self, columns):
        seen.append(columns)
        return restricted(self, columns)

    monkeypatch.setattr(RowDescents, "restricted", watched)
    SoftTreeClassifier(**QUICK).fit(X, y)
    assert seen and all({0, 1} <= set(columns.tolist()) for columns in seen)
    assert max(map(len, seen)) < 25
    # What only shows below a split joins there: x1 says nothing alone, and much on either side.
    seen.clear()
    above, right = X[:, 0] > 0, X[:, 1] > 0
    chance = np.where(above, np.where(right, 0.95, 0.45), np.where(right, 0.05, 0.55))
    y = (np.random.default_rng(5).random(300) < chance).astype(int)
    tree = SoftTreeClassifier(solver=screening(fewest_screened=1), **QUICK).fit(X, y)
    assert any(len(b) > len(a) for a, b in pairwise(seen))
    assert {0, 1} <= set(np.asarray(tree.selected_features_).tolist())


def test_columns_informative_only_together_are_found_among_all_columns():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((2600, 100))
    y = rng.random(2600) < expit(4 * X[:, 0] * X[:, 1])
    tree = SoftTreeClassifier(random_state=0).fit(X[:600], y[:600])
    assert {0, 1} <= set(np.asarray(tree.selected_features_).tolist())
    assert tree.score(X[600:], y[600:]) > 0.7


def test_many_classes_and_leaves_take_little_memory():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2000, 90)), np.arange(2000) % 40
    X[:, 0] += y
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SoftTreeClassifier(n_starts=1, random_state=0, time_limit=5).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * X.nbytes  # gains in all leaves at once would take 200 times as much
