"""The parts of the solver by likelihood, each against its formula."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from likelihood_cases import random_problem, standardised, truths, value
from slow_cases import examples
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.problem.rates import RateGroup, RateLimits, RateRequirement
from softsplit.solvers.base import Budget
from softsplit.solvers.elimination.bounded import coordinates
from softsplit.solvers.elimination.deletion_costs import FEATURE, deletion_costs, saturation_costs
from softsplit.solvers.elimination.descents import RowDescents, group_shares
from softsplit.solvers.elimination.objective import PHI, Shrinkage, value_and_gradient
from softsplit.solvers.elimination.path import RIDGE, EliminationPath, saturate_idle
from softsplit.solvers.elimination.rated_descents import RateTerms, TreeRates
from softsplit.solvers.elimination.second_order import DAMPING, inverse_fisher
from softsplit.solvers.elimination.support_tree import SupportTree


def descents_of(problem):
    return RowDescents(problem, Budget(), problem.samples)


def evaluated(x, support, rows, shrinkage, free=None):
    gradient = np.empty_like(x)
    n_branches, n_classes = support.shape
    free = np.ones(len(x), dtype=bool) if free is None else free
    scores = np.empty((n_branches, rows.features.shape[1]))
    mass = np.empty((n_classes, n_branches + 1))
    found = value_and_gradient(x, rows, shrinkage, free, gradient, scores, mass)
    return float(found), gradient


def differences(function, x, step=1e-4):
    """Derivative by differences of the fourth order."""
    made = np.empty_like(x)
    for i, unit in enumerate(step * np.eye(len(x))):
        near, far = function(x + unit) - function(x - unit), function(x + 2 * unit)
        made[i] = (8 * near - far + function(x - 2 * unit)) / (12 * step)
    return made


shapes = st.tuples(
    st.integers(0, 10**6), st.integers(1, 3), st.integers(2, 4), st.integers(1, 4)
).map(lambda s: random_problem(s[0], depth=s[1], n_classes=s[2], n_features=s[3]))
factors = st.sampled_from([0.0, 0.3, 2.0])


@examples(40)
@given(shapes, factors, factors, factors, st.integers(0, 2**16))
def test_value_and_derivative(case, ridge, entry, group, seed):
    """Against the formula and its differences; what is not free has no derivative."""
    problem, tree = case
    support, rows = SupportTree.of(tree, problem), descents_of(problem).rows
    shrinkage = Shrinkage(ridge, entry, group)
    x = support.vector
    free = np.random.default_rng(seed).uniform(size=len(x)) < 0.8
    found, gradient = evaluated(x, support, rows, shrinkage, free)

    def phi(square):
        size = np.sqrt(square + PHI.rounding**2) - PHI.rounding
        return PHI.delta * np.log1p(size / PHI.delta)

    def formula(x):
        moved = support.moved_to(x)
        squares = moved.splits[:, :-1] ** 2
        sparse = entry * phi(squares).sum() + group * phi(squares.sum(axis=0)).sum()
        return value(replace(problem, ridge=ridge), moved.splits, moved.log_odds) + sparse

    assert found == pytest.approx(formula(x), rel=1e-12)
    expected = np.where(free, differences(formula, x), 0.0)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@examples(25)
@given(shapes, factors)
def test_the_function_is_the_cost_of_the_problem(case, ridge):
    """Value, and all derivatives by the chain rule."""
    problem, tree = replace(case[0], ridge=ridge), case[1]
    support = SupportTree.of(tree, problem)
    found, gradient = evaluated(
        support.vector, support, descents_of(problem).rows, Shrinkage(problem.ridge)
    )
    expected, unit = problem.evaluate_cost(tree), problem.steepness / problem.n_features
    assert found == pytest.approx(expected.value, rel=1e-12)
    splits, log_odds = np.split(gradient, [support.splits.size])
    splits = splits.reshape(support.splits.shape)
    close = {"rtol": 1e-9, "atol": 1e-9 * np.abs(gradient).max()}
    np.testing.assert_allclose(
        splits[:, :-1].T, expected.weights + 0.5 * unit * expected.thresholds / problem.steepness,
        **close,
    )  # fmt: skip
    np.testing.assert_allclose(splits[:, -1], -expected.thresholds / problem.steepness, **close)
    c, slope = tree.leaf_values, expected.leaf_values
    by_log_odds = c * (slope - np.sum(c * slope, axis=0))
    np.testing.assert_allclose(log_odds, by_log_odds.ravel(), **close)


@examples(25)
@given(shapes, st.integers(0, 2**16))
def test_a_support_tree_is_the_tree(case, seed):
    problem, tree = case
    weights = np.where(
        np.random.default_rng(seed).uniform(size=tree.weights.shape) < 0.4, 0.0, tree.weights
    )
    tree = replace(tree, weights=weights)
    support = SupportTree.of(tree, problem)
    for one in (support, support.compact(), support.moved_to(support.vector)):
        again = one.parameters(problem)
        np.testing.assert_array_equal(again.weights, weights)
        np.testing.assert_allclose(again.thresholds, tree.thresholds, atol=1e-13)
        np.testing.assert_allclose(again.leaf_values, tree.leaf_values, rtol=1e-12)
    assert support.n_coefficients == np.sum(weights != 0)
    assert support.n_features == np.sum(np.any(weights != 0, axis=1))
    assert len(support.compact().columns) == support.n_features


@examples(25)
@given(shapes, factors)
def test_deletion_costs_are_differences_of_two_values(case, ridge):
    problem, tree = case
    support, rows = SupportTree.of(tree, problem), descents_of(problem).rows
    x = support.vector
    before, _ = evaluated(x, support, rows, Shrinkage(ridge))
    everything = 10**6
    branches, columns, costs, saved = deletion_costs(
        x, rows, support.shape, support.support, ridge, everything
    )
    n_branches, n_columns = support.support.shape
    features = n_columns if n_branches > 1 else 0  # a feature of one coefficient goes with it
    assert len(costs) == n_branches * n_columns + features
    for t, j, cost, size in zip(branches, columns, costs, saved, strict=True):
        mask = support.support.copy()
        mask[slice(None) if t == FEATURE else t, j] = False
        lighter = support.with_support(mask)
        after, _ = evaluated(lighter.vector, support, rows, Shrinkage(ridge))
        assert cost == pytest.approx(after - before, rel=1e-9, abs=1e-9)
        assert size == support.size - lighter.size
    plain, _ = evaluated(x, support, rows, Shrinkage(0.0))
    found = saturation_costs(x, rows, support.shape)
    for t in range(n_branches):
        for goes_left in (True, False):
            after, _ = evaluated(
                support.saturate(t, goes_left).vector, support, rows, Shrinkage(0.0)
            )
            assert found[t, 0 if goes_left else 1] == pytest.approx(after - plain, abs=1e-9)


def test_the_cheapest_deletion_costs_are_exact_and_the_others_infinite():
    problem, tree = random_problem(3, depth=3, n_features=5)
    support, rows = SupportTree.of(tree, problem), descents_of(problem).rows
    given = support.vector, rows, support.shape, support.support, 0.3
    _, _, few, _ = deletion_costs(*given, 7)
    _, _, every, _ = deletion_costs(*given, 10**6)
    known = np.isfinite(few)
    assert known.sum() == 7
    np.testing.assert_array_equal(few[known], every[known])


@pytest.mark.parametrize("depth", [1, 2])
def test_the_fisher_matrix_is_its_formula(depth):
    """sum of products of derivatives of -log V_i, taken by differences, with ridge and prior."""
    problem, tree = random_problem(5, depth=depth, n_features=2)
    support, rows, ridge = SupportTree.of(tree, problem), descents_of(problem).rows, 0.7
    X, y, weight = standardised(problem)
    x = support.vector
    free = np.random.default_rng(0).uniform(size=len(x)) < 0.8

    def losses(x):
        moved = support.moved_to(x)
        return -np.log(truths(X, y, moved.splits, moved.log_odds))

    units = 1e-5 * np.eye(len(x))[free]
    slopes = np.array([(losses(x + unit) - losses(x - unit)) / 2e-5 for unit in units])
    matrix = (slopes * weight) @ slopes.T
    counts = problem.loss.leaf_rule.pseudo_counts.sum()
    is_weight = np.ones(support.splits.shape)
    is_weight[:, -1] = 0.0
    added = np.append(ridge * is_weight.ravel(), counts * softmax(support.log_odds, axis=0).ravel())
    matrix += np.diag(added[free])
    matrix += np.eye(len(matrix)) * DAMPING * np.trace(matrix) / len(matrix)
    found = inverse_fisher(x, rows, ridge, free, support.shape)
    np.testing.assert_allclose(np.linalg.inv(found), matrix, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cells", [False, True])
@examples(20)
@given(shapes, st.integers(0, 2**16))
def test_terms_of_rates(cells, case, seed):
    """Shortfalls are those of the problem; derivatives of all lines and of the terms agree."""
    problem, tree = case
    rng = np.random.default_rng(seed)
    minimum = rng.uniform(0.2, 0.9, problem.n_groups)
    problem = replace(problem, minimum_rates=minimum, rate_limits=parity(problem, rng, cells))
    support = SupportTree.of(tree, problem)
    space = coordinates(support, None, support.free, problem.bounds, None)
    rates, x = TreeRates(problem, support, space), support.vector
    of_classes, lines = np.split(problem.shortfalls(tree), [problem.n_groups])
    wanted = np.concatenate([lines, of_classes])
    np.testing.assert_allclose(rates.shortfalls(x), wanted, atol=1e-9)
    slopes = rates.slopes(x)
    for q, line in enumerate(slopes):
        expected = -differences(lambda x, q=q: rates.shortfalls(x)[q], x)
        np.testing.assert_allclose(line, expected, rtol=1e-5, atol=1e-7)
    multipliers = rng.uniform(0.0, 30.0, len(slopes))
    terms = RateTerms(rates, multipliers, float(problem.samples.weights.sum()))
    gradient = np.zeros_like(x)
    terms(x, gradient)
    expected = differences(lambda x: terms(x, np.zeros_like(x)), x)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def parity(problem, rng, cells):
    """Parity of two random groups of rows, or None."""
    if not cells:
        return None
    samples = problem.samples
    cells = np.unique(2 * samples.labels + rng.integers(0, 2, samples.n_rows), return_inverse=True)
    groups = [RateGroup(str(g), tuple(np.flatnonzero(cells[0] % 2 == g).tolist())) for g in (0, 1)]
    held = tuple(group for group in groups if group.cells)
    required = (RateRequirement("parity", 0, held, high=0.05),)
    X = np.ascontiguousarray(samples.features.T)
    engine = CompiledRows(Samples.from_arrays(X, cells[1], len(cells[0]), samples.weights))
    return RateLimits(engine, cells[0] // 2, required, problem.n_groups)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_elimination_is_a_path_of_exact_trees(depth, n_classes):
    problem, tree = random_problem(11, depth=depth, n_classes=n_classes, n_features=6, n_rows=80)
    descents = descents_of(problem)
    points = EliminationPath(descents, SupportTree.of(tree, problem), group_shares(problem)).all()
    sizes = [point.tree.size for point in points]
    assert len(points) > 3
    assert np.all(np.diff(sizes) < 0)
    assert sizes[-1] == 0
    weighed = replace(problem, ridge=RIDGE * descents.unit)
    for point in points:
        made = point.tree.parameters(problem)
        assert np.count_nonzero(made.weights) == point.tree.n_coefficients
        assert np.sum(np.any(made.weights != 0, axis=1)) == point.tree.n_features
        assert point.value == pytest.approx(weighed.cost(made), rel=1e-10)
    last = points[-1].tree.parameters(problem)
    assert np.all(last.weights == 0)
    shares = group_shares(problem)
    np.testing.assert_allclose(last.leaf_values, np.tile(shares[:, None], len(last.thresholds) + 1))


def weightless(seed, branch, intercept):
    """A problem, and a tree with a branch that has lost its coefficients."""
    problem, tree = random_problem(seed, depth=3, n_features=4)
    support = SupportTree.of(tree, problem)
    support.splits[branch] = 0.0
    support.splits[branch, -1] = intercept
    support.support[branch] = False
    return problem, support


@pytest.mark.parametrize("seed", range(4))
def test_a_branch_without_coefficients_gives_way_to_its_better_child(seed):
    problem, support = weightless(seed, 1, 0.3)
    saturated = saturate_idle(descents_of(problem), support)
    plain = replace(problem, ridge=0.0)
    sides = [support.saturate(1, goes_left) for goes_left in (True, False)]
    values = [plain.cost(side.parameters(problem)) for side in sides]
    better = sides[int(np.argmin(values))]
    np.testing.assert_array_equal(saturated.splits, better.splits)
    np.testing.assert_array_equal(saturated.saturated, better.saturated)
