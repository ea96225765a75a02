"""Starts by likelihood: trees that part classes by a plan, and trees grown from shallower ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, softmax

from likelihood_cases import problem_of
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV
from softsplit.solvers import Budget, EliminationSolver
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.options import EliminationOptions
from softsplit.solvers.elimination.race import grown, grown_to, single_leaf
from softsplit.solvers.elimination.screening import branch_slopes, group_slopes, score_statistics
from softsplit.solvers.starts.mixtures import MixtureOptions, mixture_trees
from softsplit.tree.routing import mixed_values


def corners(n_features=2, n_rows=120):
    """Four classes, parted off the middle by two columns; the others say nothing."""
    rng = np.random.default_rng(4)
    y = np.arange(n_rows) % 4
    X = rng.normal(size=(n_rows, n_features))
    X[:, 0] = np.where(y % 2 == 0, -3.0, 3.0) + 0.3 * rng.normal(size=n_rows)
    X[:, 1] = np.choose(y, [-3.0, -3.0, 3.0, 9.0]) + 0.3 * rng.normal(size=n_rows)
    return X, y


def descents_of(problem):
    return RowDescents(problem, Budget(), problem.rows.sample())


def right(problem, tree):
    samples = problem.rows.sample()
    calls = mixed_values(tree, samples.features, problem.steepness).argmax(axis=0)
    return float(np.mean(calls == samples.labels))


@pytest.mark.parametrize("n_features", [2, MixtureOptions().most_columns + 30])
def test_a_tree_by_a_plan_parts_the_classes(n_features):
    problem = problem_of(*corners(n_features, n_rows=400), depth=2)
    trees = mixture_trees(problem, np.random.default_rng(0), 4)
    best = max(right(problem, tree) for tree in trees)
    assert len(trees) == 8 and all(np.isfinite(tree.weights).all() for tree in trees)
    # With many columns a branch looks at some of them: not every tree sees both that matter.
    assert best > (0.95 if n_features == 2 else 0.6)


def test_a_tree_grows_from_the_one_that_is_there():
    problem = problem_of(*corners(), depth=2)
    descents = descents_of(problem)
    shallower = grown(single_leaf(descents.rows), descents.rows)
    deeper = grown_to(descents, shallower, 3)
    assert deeper.shape == (3, 4)
    np.testing.assert_array_equal(deeper.splits[0], shallower.splits[0])
    # The last class is the one furthest from the others, and the threshold lies between.
    scores = shallower.splits[0, :-1] @ descents.rows.features + shallower.splits[0, -1]
    left = np.array([np.mean(scores[a:b] > 0) for a, b in pairwise(descents.rows.starts)])
    away = left if left[3] < 0.5 else 1.0 - left
    assert np.all(away[:3] > 0.95) and away[3] < 0.05
    assert right(problem, deeper.parameters(problem)) > 0.7


def test_in_a_choice_a_depth_grows_from_the_one_before(monkeypatch):
    seen, follow = [], EliminationSolver.path

    def watched(self, problem, start, budget, **others):
        seen.append((problem.topology.depth, start.shallower))
        return follow(self, problem, start, budget, **others)

    monkeypatch.setattr(EliminationSolver, "path", watched)
    X, y = corners(n_features=3)
    settings = {"depths": (1, 2), "scales": ("standard",), "ridges": (1.0,), "n_strengths": 2}
    SoftTreeClassifierCV(cv=3, random_state=0, n_jobs=1, curves=False, **settings).fit(X, y)
    compared = seen[:6]  # two depths on three folds each
    assert [depth for depth, _ in compared] == [1, 1, 1, 2, 2, 2]
    assert all(shallower is None for _, shallower in compared[:3])
    assert all(shallower.weights.shape == (3, 1) for _, shallower in compared[3:])


# Many columns: the race sees those above the noise threshold, and elimination the rest of it.


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
