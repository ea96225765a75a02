"""Starts by likelihood: trees that part classes by a plan, and trees grown from shallower ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from likelihood_cases import learnable_rows, problem_of
from softsplit import SoftTreeClassifierCV
from softsplit.problem.penalties import PenaltyPair, counting
from softsplit.solvers import Budget, EliminationSolver
from softsplit.solvers.base import Start
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.race import grown, grown_to, single_leaf
from softsplit.solvers.elimination.solver import EliminationRun
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.solvers.starts.mixtures import MixtureOptions, mixture_trees
from softsplit.tree.parameters import Topology
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


def test_a_path_begins_with_what_the_shallower_tree_has_found():
    X, y = learnable_rows(3, n_rows=150, n_features=5, n_classes=3)
    shallow = problem_of(X, y, depth=1, penalties=PenaltyPair.of(counting()))
    deep = replace(shallow, topology=Topology(2))
    path = EliminationRun(shallow, growth_start(shallow), Budget(), compared=True)
    assert path.winner is None  # nothing was asked for
    path.trees([shallow], tight=False)
    assert path.winner is not None and path.winner.weights.shape == (5, 1)
    start = replace(growth_start(deep), shallower=path.winner)
    above = EliminationRun(deep, start, Budget(), compared=True)
    found = above.trees([deep], tight=False)[0]
    descents = descents_of(deep)
    alone = grown_to(descents, SupportTree.of(path.winner, deep), 3).parameters(deep)
    assert deep.objective(found.parameters) <= deep.objective(alone)


def growth_start(problem):
    first, *others = mixture_trees(problem, np.random.default_rng(0), 1)
    return Start(first, "growth", tuple(others))


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
