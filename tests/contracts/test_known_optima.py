"""Problems whose global optimum is known: every solver must reach it.

Lower bounds are proved in the docstrings; upper bounds are trees written down by hand.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from brute_force import class_rates, expected_cost, penalty
from instances import WHOLE_TREE_SOLVERS
from slow_cases import slow
from softsplit.engines.compiled import CompiledRows
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.penalties import PenaltyPair, exponential, linear
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers import BasinHoppingSolver
from softsplit.training.multistart import multistart, search_around
from softsplit.tree.parameters import Topology, TreeParameters


def make_problem(X, y, penalties, depth=1, rate=0.1, steepness=512.0, weight=None, costs=None):
    n_classes = int(np.max(y)) + 1
    return TrainingProblem(
        CompiledRows.from_arrays(np.asarray(X, float), np.asarray(y), n_classes, weight),
        Topology(depth),
        ExpectedCost.uniform(n_classes) if costs is None else ExpectedCost(np.asarray(costs)),
        penalties,
        np.full(n_classes, rate),
        steepness,
    )


def best_of(problem, solver, n_starts=6):
    return search_around(
        problem, solver, multistart(problem, solver, n_starts=n_starts, seed=0), seed=0
    )


def by_hand(problem, tree):
    """Objective and class rates in plain loops."""
    samples, a = problem.samples, tree.weights.tolist()
    rows = samples.features.T.tolist(), samples.labels.tolist(), samples.weights.tolist()
    leaves, depth = tree.leaf_values.tolist(), problem.topology.depth
    thresholds = tree.thresholds.tolist()
    cost = expected_cost(
        *rows, a, thresholds, leaves, problem.loss.costs.tolist(), depth, problem.steepness
    )
    local, global_ = problem.penalties.local, problem.penalties.global_
    sparse = penalty(a, local.surrogate, local.strength, global_.strength)
    return cost + sparse, class_rates(*rows, a, thresholds, leaves, depth, problem.steepness)


def assert_checked(problem, solution):
    """What the solution says of itself is true, and the tree is feasible."""
    objective, rates = by_hand(problem, solution.parameters)
    assert solution.objective == pytest.approx(objective, rel=1e-9, abs=1e-9)
    assert np.all(np.array(rates) >= problem.minimum_rates - 1e-6)
    assert solution.violation <= 1e-6


@pytest.mark.parametrize("solver", WHOLE_TREE_SOLVERS)
@pytest.mark.parametrize("n_classes", [2, *slow(3)])
def test_separable_classes_at_tiny_strength(solver, n_classes):
    """Clusters around corners of a square: cost near 0, and the penalty is at most its bound.

    The objective is never below 0; axis-parallel splits half-way give a certified upper bound.
    """
    corners = np.array([[0.1, 0.1], [0.9, 0.9], [0.9, 0.1]])[:n_classes]
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), 5)
    X = corners[y] + rng.uniform(-0.05, 0.05, (len(y), 2))
    depth = Topology.with_leaves(n_classes).depth
    problem = make_problem(X, y, PenaltyPair.of(linear(), 1e-3), depth)
    best = best_of(problem, solver, 4)
    assert_checked(problem, best)
    # At most two weights at each branch, of size one.
    assert 0 <= best.objective <= 1e-3 * 2 * problem.topology.n_branches + 1e-3
    assert best.cost < 1e-3
    assert np.all(problem.rates(best.parameters) > 0.999)


@pytest.mark.parametrize("solver", WHOLE_TREE_SOLVERS)
@pytest.mark.parametrize("depth", [1, *slow(2)])
def test_one_informative_feature_under_a_strong_global_penalty(solver, depth):
    """Using no feature costs 0.5 x 0.9 x 10; using one costs less than the strength of 2.

    Each further feature costs 2 (1 - exp(-5 u)) and can gain at most what the first leaves,
    which is next to nothing: only the informative feature is used.
    """
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 10)
    X = rng.uniform(size=(20, 3))
    X[:, 2] = np.where(y == 1, 0.75, 0.05) + 0.2 * rng.uniform(size=20)
    problem = make_problem(X, y, PenaltyPair.of(exponential(), global_strength=2.0), depth)
    best = best_of(problem, solver, 3)
    assert_checked(problem, best)
    assert best.objective < 2.0
    used = np.max(np.abs(best.parameters.weights), axis=1)
    assert np.flatnonzero(used > solver.zero_threshold).tolist() == [2]
    if solver.zero_threshold == 0.0:
        assert np.all(best.parameters.weights[[0, 1]] == 0.0)
    assert best.cost < 0.5


def line_optimum(problem, step=0.004):
    """Lowest objective of a tree of one branch on a line, over a grid of the box.

    Leaves are tried in both orders; the weight's sign makes one of them superfluous.
    """
    grid = np.arange(-1, 1 + step / 2, step)
    samples = problem.samples
    scores = grid[:, None, None] * samples.features[0] - grid[None, :, None]
    left = 1 / (1 + np.exp(-np.clip(problem.steepness * scores, -500, 500)))
    dearest = problem.loss.costs[samples.labels]  # (n, 2): cost of calling a row 0 or 1
    best = np.inf
    sparse = problem.penalties
    phi = sparse.local.strength * sparse.local.surrogate.value(np.abs(grid))
    phi = phi + sparse.global_.strength * sparse.global_.surrogate.value(np.abs(grid))
    for first, second in itertools.permutations((0, 1)):
        cost = left * dearest[:, first] + (1 - left) * dearest[:, second]
        total = cost @ samples.weights + phi[:, None]
        right = np.where(samples.labels == first, left, 1 - left) * samples.weights
        feasible = np.ones(total.shape, dtype=bool)
        for k in (0, 1):
            rate = right[..., samples.labels == k].sum(axis=-1) / samples.group_totals[k]
            feasible &= rate >= problem.minimum_rates[k]
        best = min(best, np.min(total[feasible]))
    return best


LINES = {
    "separable": ([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 0, 0, 1, 1, 1], {}),
    "one wrong": ([0.1, 0.2, 0.6, 0.5, 0.8, 0.9], [0, 0, 0, 1, 1, 1], {}),
    "weights": ([0.1, 0.3, 0.7, 0.2, 0.8, 0.9], [0, 0, 0, 1, 1, 1], {"weight": [1, 1, 5, 4, 1, 1]}),
    "costs": ([0.1, 0.4, 0.6, 0.3, 0.5, 0.9], [0, 0, 0, 1, 1, 1], {"costs": [[0, 3], [0.2, 0]]}),
    "rate binds": ([0.1, 0.4, 0.6, 0.2, 0.9, 0.5], [0, 0, 0, 0, 0, 1], {"rate": 0.5}),
    "soft gates": ([0.1, 0.2, 0.6, 0.5, 0.8, 0.9], [0, 0, 0, 1, 1, 1], {"steepness": 16.0}),
    "equal rows": ([0.3, 0.3, 0.3, 0.3, 0.7, 0.7], [0, 0, 0, 1, 1, 1], {}),
}


def check_line(line, scope, solver):
    x, y, options = LINES[line]
    penalties = PenaltyPair.of(exponential(), *scope)
    problem = make_problem(np.array(x)[:, None], y, penalties, **options)
    best = best_of(problem, solver)
    assert_checked(problem, best)
    lowest = line_optimum(problem)
    assert best.objective <= lowest + 1e-6
    # A grid this fine misses the optimum by little: nobody may claim to be far below it.
    assert best.objective >= lowest - 1e-3


@pytest.mark.parametrize("scope", [(0.05, 0.0), (0.0, 0.05), (0.02, 0.03)], ids=str)
@pytest.mark.parametrize("line", LINES)
def test_tiny_problems_on_a_line_against_a_grid_over_the_box(line, scope):
    check_line(line, scope, BasinHoppingSolver())


@pytest.mark.parametrize("solver", [p for p in WHOLE_TREE_SOLVERS if p.id != "native"])
@pytest.mark.parametrize("line", ["costs", *slow("separable", "soft gates")])
def test_other_solvers_reach_the_optimum_on_a_line_from_one_of_their_starts(line, solver):
    check_line(line, (0.02, 0.03), solver)


def planted(seed):
    """Rows labelled by a tree of depth 2 that uses one feature a branch, with a margin."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(240, 5))
    used = rng.permutation(5)[:3]
    signs = rng.choice([-1.0, 1.0], 3)
    weights = np.zeros((5, 3))
    weights[used, np.arange(3)] = signs
    tree = TreeParameters(weights, signs * 0.5 / 5, np.eye(4))
    score = X @ weights / 5 - tree.thresholds
    X = X[np.min(np.abs(score), axis=1) > 0.01]
    score = X @ weights / 5 - tree.thresholds
    y = np.where(score[:, 0] > 0, np.where(score[:, 1] > 0, 0, 1), np.where(score[:, 2] > 0, 2, 3))
    return X, y, tree


@pytest.mark.parametrize("scope", [(0.5, 0.0), (0.0, 0.5), (0.2, 0.3)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_a_planted_tree_is_reached_or_beaten(seed, scope):
    X, y, tree = planted(seed)
    problem = make_problem(X, y, PenaltyPair.of(exponential(), *scope), 2)
    bound, rates = by_hand(problem, tree)
    assert min(rates) > 0.95  # the planted tree is feasible
    assert bound < 3
    best = best_of(problem, BasinHoppingSolver(), 10)
    assert_checked(problem, best)
    assert best.objective <= bound + 1e-6
    if scope[0] == 0.5:  # no cheaper way than one feature a branch
        assert np.sum(best.parameters.weights != 0) <= 3
