"""Trees by likelihood: certificates, known optima, IPOPT, and what an estimator promises."""

from __future__ import annotations

import importlib.util
import itertools

import numpy as np
import pytest
from sklearn.datasets import load_iris

from likelihood_cases import (
    NO_PENALTY,
    learnable_rows,
    lowest_of_one_split,
    problem_of,
    random_problem,
    value,
)
from softsplit import SoftTreeClassifier
from softsplit.ipopt.solver import IpoptSolver
from softsplit.problem.optimality import kkt
from softsplit.problem.penalties import (
    PenaltyPair,
    counting,
    exponential,
    inverse_power,
    linear,
    logarithmic,
    power,
)
from softsplit.solvers import EliminationSolver
from softsplit.solvers.base import Budget, Start, Status
from softsplit.solvers.elimination.descents import RowDescents, group_shares
from softsplit.solvers.elimination.path import EliminationPath
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.training.best import best_solution
from softsplit.training.multistart import multistart

needs_casadi = pytest.mark.skipif(
    importlib.util.find_spec("casadi") is None, reason="needs softsplit[ipopt]"
)
SCOPES = {"local": (1.0, 0.0), "global": (0.0, 1.0), "both": (0.5, 0.5)}
SURROGATES = {
    "count": counting(),
    "l1": linear(),
    "l0": exponential(),
    "power": power(),
    "inverse_power": inverse_power(0.5, 1e-2),
    "log": logarithmic(1e-2),
}


def best_of(problem, solver=None, n_starts=4, seed=0):
    return best_solution(
        multistart(problem, solver or EliminationSolver(), n_starts=n_starts, seed=seed)
    )


def assert_optimal(problem, solution, tol=1e-6):
    """OPTIMAL, by residuals that are worked out anew, and the objective is that of the formula."""
    assert solution.status is Status.OPTIMAL, solution.kkt
    assert kkt(problem, solution.parameters).residual <= tol * problem.cost_unit
    support = SupportTree.of(solution.parameters, problem)
    expected = value(problem, support.splits, support.log_odds)
    expected += problem.penalties.value(solution.parameters.weights)
    assert solution.objective == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize(
    ("depth", "n_classes"), [(2, 3), pytest.param(1, 2, marks=pytest.mark.slow)]
)
def test_every_penalty_ends_at_a_point_of_the_first_order(surrogate, scope, depth, n_classes):
    X, y = learnable_rows(depth, n_rows=80, n_classes=n_classes)
    penalties = PenaltyPair.of(SURROGATES[surrogate], *SCOPES[scope])
    problem = problem_of(X, y, depth=depth, penalties=penalties)
    (solution,) = multistart(problem, EliminationSolver(), n_starts=1, seed=1)
    assert_optimal(problem, solution)


def test_no_tree_of_the_path_is_cheaper_than_the_one_taken():
    """At any strength; and a greater strength takes no larger tree."""
    problem, tree = random_problem(2, depth=2, n_features=6, n_rows=80)
    descents = RowDescents(problem, Budget(), problem.samples)
    points = EliminationPath(descents, SupportTree.of(tree, problem), group_shares(problem)).all()
    path = [point.tree.parameters(problem) for point in points]
    sizes = []
    for strength in (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 50.0):
        counted = problem.with_penalties(PenaltyPair.of(counting(), strength, 2 * strength))
        found = EliminationSolver().solve(counted, Start(tree), Budget())
        assert found.objective <= min(map(counted.objective, path)) + 1e-9
        used = found.parameters.weights != 0
        assert any(np.array_equal(used, one.weights != 0) for one in path)
        sizes.append(np.count_nonzero(used))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] >= 5
    assert sizes[-1] == 0


def best_subset(problem, strength):
    """Least objective over all sets of features, each fitted from several starts."""
    sets = itertools.product((False, True), repeat=problem.n_features)
    return min(lowest_of_one_split(problem, used, starts=5) + strength * sum(used) for used in sets)


@pytest.mark.parametrize(
    ("strength", "ridge", "seed"),
    [
        (2.0, 1.0, 0),
        *(
            pytest.param(*given, seed, marks=pytest.mark.slow)
            for given in [(0.7, 0.3), (2.0, 1.0), (4.5, 0.3)]
            for seed in range(3)
            if (*given, seed) != (2.0, 1.0, 0)
        ),
    ],
)
def test_elimination_finds_the_best_subset(strength, ridge, seed):
    """One split, four features: each of the sixteen supports is fitted by the formula alone."""
    X, y = learnable_rows(seed, n_rows=40)
    pair = PenaltyPair.of(counting(), 0.4 * strength, 0.6 * strength)
    problem = problem_of(X, y, penalties=pair, ridge=ridge)
    found = best_of(problem, n_starts=10)
    assert found.objective == pytest.approx(best_subset(problem, strength), abs=1e-6)


@needs_casadi
@pytest.mark.parametrize(
    ("surrogate", "scope"),
    [("l1", "both"), ("l0", "local"), pytest.param("l0", "global", marks=pytest.mark.slow)],
)
def test_no_worse_than_ipopt(surrogate, scope):
    for seed, (depth, n_classes) in enumerate([(1, 2), (2, 3)]):
        X, y = learnable_rows(seed, n_rows=40, n_features=3, n_classes=n_classes)
        penalties = PenaltyPair.of(SURROGATES[surrogate], *SCOPES[scope])
        problem = problem_of(X, y, depth=depth, penalties=penalties)
        reference = best_of(problem, IpoptSolver(), n_starts=3)
        found = best_of(problem, n_starts=5)
        assert found.objective <= 1.001 * reference.objective


@pytest.mark.parametrize(
    ("rate", "penalty"),
    [(0.5, "count"), (0.9, "count"), (0.9, "l1"), pytest.param(0.9, "l0", marks=pytest.mark.slow)],
)
def test_class_rates_hold_if_asked_for(penalty, rate):
    """At 0.9 they bind: the tree without them has 0.86 for one class."""
    X, y = load_iris(return_X_y=True)
    settings = {"loss": "log", "depth": 2, "penalty": penalty, "n_starts": 2, "random_state": 0}
    settings |= {"decision": "mixture", "curves": False}
    free = SoftTreeClassifier(**settings).fit(X, y)
    tree = SoftTreeClassifier(**settings, min_class_rate=rate).fit(X, y)
    proba = tree.predict_proba(X)
    rates = np.array([proba[y == k, k].mean() for k in range(3)])
    assert np.all(rates >= rate - 1e-6)
    assert tree.solution_.status is Status.OPTIMAL
    if rate == 0.5:
        np.testing.assert_array_equal(tree.coef_, free.coef_)
    else:
        assert np.min(rates) == pytest.approx(rate, abs=1e-6)
        assert tree.solution_.objective > free.solution_.objective
        if penalty == "count":
            assert np.count_nonzero(tree.coef_) <= np.count_nonzero(free.coef_)


@pytest.mark.parametrize(
    ("settings", "n_classes"), [({"depth": 1}, 2), ({"depth": 1}, 100), ({}, 3), ({}, 12), ({}, 40)]
)
def test_any_number_of_classes(n_classes, settings):
    rng = np.random.default_rng(n_classes)
    y = np.repeat(np.arange(n_classes), 5)
    X = rng.normal(size=(n_classes, 4))[y] + 0.3 * rng.normal(size=(len(y), 4))
    tree = SoftTreeClassifier(**settings, n_starts=2, random_state=0).fit(X, y)
    proba = tree.predict_proba(X)
    assert proba.shape == (len(y), n_classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert -np.mean(np.log(proba[np.arange(len(y)), y])) < np.log(n_classes) - 0.3
    assert tree.solution_.stationarity <= 0.05
    if tree.solution_.parameters.leaf_values.size <= 200:  # all numbers fit into Newton steps
        assert tree.solution_.status is Status.OPTIMAL


def test_neither_strength_nor_features():
    """Strength without end: the tree of the class shares, whatever the penalty."""
    X, y = learnable_rows(1, n_classes=3)
    for surrogate in (counting(), linear(), exponential()):
        problem = problem_of(X, y, depth=2, penalties=PenaltyPair.of(surrogate, 1e3, 1e3))
        found = best_of(problem, n_starts=2)
        assert_optimal(problem, found)
        assert np.all(found.parameters.weights == 0)
        free = problem.with_penalties(NO_PENALTY)
        assert found.objective == pytest.approx(free.cost(found.parameters), rel=1e-12)


def test_a_coefficient_that_does_nothing_is_zero() -> None:
    """A ridge leaves 1e-12 of it, and a text would speak of a threshold of 1e13."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 5)), rng.integers(0, 2, 60)
    tree = SoftTreeClassifier(global_strength=0.4, random_state=0).fit(X, y)
    assert np.abs(tree.weights_[tree.weights_ != 0]).min() > 1e-6


def test_class_rates_without_any_time_give_one_sentence():
    """The time may end before the first tree of a path is there."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    tree = SoftTreeClassifier(min_class_rate=0.9, time_limit=1e-9, random_state=0)
    with pytest.raises(ValueError, match="none of 1 starts ended in a tree that meets"):
        tree.fit(X, (X[:, 0] > 0).astype(int))
