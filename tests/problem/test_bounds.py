"""Bounds of coefficients: their methods, first-order conditions at active ones, and all solvers."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import likelihood_cases
import native_cases
from helpers import SURROGATES
from slow_cases import examples
from softsplit.problem.bounds import Bounds
from softsplit.problem.penalties import PenaltyPair, counting, exponential, linear
from softsplit.problem.strength_bound import all_zero_tree, max_strength, zero_slopes
from softsplit.solvers import BasinHoppingSolver, Budget
from softsplit.solvers.elimination.solver import EliminationSolver
from softsplit.solvers.starts.rules import draw_start
from softsplit.training.multistart import multistart, search_around
from softsplit.tree.parameters import TreeParameters

SIGNS = [(-1.0, 1.0), (0.0, 1.0), (-1.0, 0.0), (-0.3, 0.6), (0.0, 0.0)]


def random_bounds(problem, seed, size=1.0, thresholds=None):
    """Another pair of bounds for every coefficient: both signs, one, a narrow box, or none."""
    rng = np.random.default_rng(seed)
    shape = (problem.n_features, problem.topology.n_branches)
    pairs = np.array(SIGNS)[rng.integers(len(SIGNS), size=shape)]
    with np.errstate(invalid="ignore"):
        low, high = np.nan_to_num(size * pairs, nan=0.0, posinf=np.inf, neginf=-np.inf).T
    ends = np.full(shape[1], size if thresholds is None else thresholds)
    return Bounds(low.T, high.T, -ends, ends)


def sign_bounds(n_features, n_branches, seed):
    """Random signs for log-odds: positive, negative, or free."""
    signs = np.random.default_rng(seed).integers(-1, 2, (n_features, n_branches))
    ends = np.full(n_branches, np.inf)
    return Bounds(np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf), -ends, ends)


def assert_within(bounds, tree):
    assert bounds.violation(tree) == 0.0
    assert np.all(tree.weights >= bounds.low) and np.all(tree.weights <= bounds.high)


@pytest.mark.parametrize(
    "given",
    [
        (np.zeros((2, 3)), np.ones((3, 2)), np.zeros(3), np.ones(3)),
        (np.zeros((2, 3)), np.ones((2, 3)), np.zeros(2), np.ones(3)),
        (np.full((2, 3), 0.1), np.ones((2, 3)), np.zeros(3), np.ones(3)),
        (-np.ones((2, 3)), np.full((2, 3), -0.1), np.zeros(3), np.ones(3)),
        (np.zeros((2, 3)), np.ones((2, 3)), np.ones(3), np.zeros(3)),
    ],
)
def test_impossible_bounds_are_refused_in_one_sentence(given):
    with pytest.raises(ValueError, match=r"^[^\n]*\.$"):
        Bounds(*given)


def test_projection_and_sizes_and_signs():
    bounds = Bounds(np.array([[0.0, -1.0]]), np.array([[2.0, 0.0]]), -np.ones(2), np.ones(2))
    assert_array_equal(bounds.project(np.array([[-3.0, -3.0]])), [[0.0, -1.0]])
    assert_array_equal(bounds.project(np.array([[3.0, 3.0]])), [[2.0, 0.0]])
    assert_array_equal(bounds.allows(1), [[True, False]])
    assert_array_equal(bounds.allows(-1), [[False, True]])
    assert_array_equal(bounds.allows_step(np.array([[-1.0, -1.0]])), [[False, True]])
    assert_array_equal(bounds.largest_sizes(np.array([[1.0, -1.0]])), [[2.0, 1.0]])
    assert_array_equal(bounds.largest_sizes(np.array([[-1.0, 1.0]])), [[0.0, 0.0]])
    assert_array_equal(bounds.inside(np.array([[0.0, -0.5]])), [[False, True]])
    low, high = bounds.splits
    assert_array_equal(low, [[0.0, -1.0], [-1.0, -1.0]])
    assert_array_equal(high, [[2.0, 1.0], [0.0, 1.0]])


def test_the_violation_is_the_largest_excess():
    low, high = np.array([[0.0, -1.0]]), np.array([[2.0, 0.5]])
    inner = TreeParameters(np.array([[1.0, 0.0]]), np.array([0.5, -0.5]), np.full((2, 3), 0.5))
    for bounds in (Bounds(low, high, -np.ones(2), np.ones(2)), Bounds.box(1, 2)):
        assert bounds.violation(inner) == 0.0
        for part, place, value, end in (
            ("weights", (0, 0), bounds.high[0, 0] + 0.25, 0.25),
            ("weights", (0, 1), bounds.low[0, 1] - 0.25, 0.25),
            ("thresholds", 0, 1.25, 0.25),
            ("thresholds", 1, -1.5, 0.5),
            ("thresholds", 1, np.nan, np.nan),
        ):
            moved = getattr(inner, part).copy()
            moved[place] = value
            np.testing.assert_equal(bounds.violation(replace(inner, **{part: moved})), end)


@given(seed=st.integers(0, 1000))
@examples(50)
def test_the_residual_is_zero_exactly_where_no_feasible_change_leads_down(seed):
    rng = np.random.default_rng(seed)
    problem = native_cases.make_problem(features=3, depth=1, classes=2)
    bounds = random_bounds(problem, seed)
    weights = bounds.project(rng.uniform(-1.5, 1.5, bounds.shape))
    gradient = rng.choice([-1.0, 0.0, 1.0], bounds.shape)
    moved = bounds.project(weights - 1e-3 * gradient) - weights
    falls = gradient * moved < 0
    assert_array_equal(bounds.residual(weights, gradient) != 0, falls)


@pytest.mark.parametrize("surrogate", SURROGATES, ids=str)
def test_the_prox_within_limits_is_a_global_minimum(surrogate):
    steps = np.linspace(0, 1, 21)
    one, two = (part.ravel() for part in np.meshgrid(steps, steps))
    scale = 0.5 / float(surrogate.value(np.ones(1))[0] - surrogate.value(np.zeros(1))[0])
    pair = PenaltyPair.of(surrogate, 0.1 * scale, 0.2 * scale)
    for first, second in itertools.product([0.0, 0.25, 0.6, 1.0], [0.25, 0.6]):
        limits = np.array([[first, second]])
        allowed = (one <= first) & (two <= second)
        points = np.column_stack([one, two])[allowed]
        for wanted in itertools.product([0.1, 0.5, 1.3], [0.2, 0.7, 1.2]):
            row = np.array([wanted])
            found = pair.prox(row, 1.0, limits)
            assert np.all(found <= limits) and np.all(found >= 0)
            least = min(
                0.5 * np.sum((point - row) ** 2) + pair.value(point[None]) for point in points
            )
            value = 0.5 * np.sum((found - row) ** 2) + pair.value(found)
            assert value <= least + 1e-12


def test_slopes_that_the_bounds_close_do_not_count_for_the_largest_strength():
    problem = native_cases.make_problem(3, features=3, depth=1, classes=2, rate=0.0)
    slopes = problem.evaluate_cost(all_zero_tree(problem)).weights
    low, high = np.where(slopes > 0, 0.0, -1.0), np.where(slopes > 0, 1.0, 0.0)
    closed = replace(problem, bounds=Bounds(low, high, -np.ones(1), np.ones(1)))
    assert max_strength(problem) > 0
    assert_array_equal(zero_slopes(closed), 0.0)
    assert max_strength(closed) == 0


@given(
    seed=st.integers(0, 10_000),
    surrogate=st.sampled_from([linear(), exponential()]),
    local=st.sampled_from([0.0, 0.1]),
    global_=st.sampled_from([0.0, 0.2]),
    depth=st.integers(1, 2),
)
@examples(15)
def test_basin_hopping_stays_within_bounds(seed, surrogate, local, global_, depth):
    problem = native_cases.make_problem(
        seed % 7, rows=40, classes=depth + 1, depth=depth, surrogate=surrogate, local=local,
        global_=global_,
    )  # fmt: skip
    problem = replace(problem, bounds=random_bounds(problem, seed))
    solver = BasinHoppingSolver(effort=0.3)
    starts = multistart(problem, solver, n_starts=2, seed=seed)
    best = search_around(problem, solver, starts, seed=seed)
    for solution in (*starts, best):
        assert_within(problem.bounds, solution.parameters)
    assert best.status.usable
    assert best.objective <= problem.objective(all_zero_tree(problem)) * (1 + 1e-9) + 1e-9


@given(seed=st.integers(0, 10_000), penalty=st.sampled_from(["count", "l1", "group", "none"]))
@examples(10)
def test_elimination_stays_within_bounds(seed, penalty):
    X, y = likelihood_cases.learnable_rows(seed % 5, n_features=3)
    pairs = {
        "count": PenaltyPair.of(counting(), 0.3, 0.5),
        "l1": PenaltyPair.of(linear(), 0.5),
        "group": PenaltyPair.of(linear(), 0.1, 0.5),
        "none": likelihood_cases.NO_PENALTY,
    }
    problem = likelihood_cases.problem_of(X, y, depth=2, penalties=pairs[penalty])
    bounds = sign_bounds(3, 3, seed)
    problem = replace(problem, bounds=bounds)
    assert EliminationSolver().supports(problem) is None
    start = draw_start("growth", problem, np.random.default_rng(seed), 1)
    found = EliminationSolver().solve(problem, start, Budget())
    assert_within(bounds, found.parameters)
    assert found.objective <= problem.objective(all_zero_tree(problem)) + 1e-9
    if penalty != "count":
        assert found.kkt.stationarity <= 1e-5 * problem.cost_unit


def test_kinds_of_bounds_know_what_they_are():
    box, free = Bounds.box(3, 2, 0.5), Bounds.free(3, 2)
    assert box.shape == free.shape == (3, 2)
    assert (box.size, box.boxed, box.finite) == (0.5, True, True)
    assert (free.size, free.boxed, free.finite) == (np.inf, False, False)
    one_sign = sign_bounds(3, 2, 1)
    assert (one_sign.size, one_sign.boxed, one_sign.finite) == (None, False, True)
    assert free.free_thresholds and one_sign.free_thresholds and not box.free_thresholds


def test_bounds_of_another_shape_are_refused():
    problem = native_cases.make_problem(features=4, depth=2)
    with pytest.raises(ValueError, match=r"shape \(4, 1\)"):
        replace(problem, bounds=sign_bounds(4, 1, 0))
    assert replace(problem, bounds=Bounds.box(4, 1, 0.5)).bounds.high.shape == (4, 3)


def test_some_features_and_branches():
    bounds = random_bounds(native_cases.make_problem(features=5, depth=2), 0)
    part = bounds.restrict(np.array([3, 1]), np.array([2]))
    assert_array_equal(part.low, bounds.low[[3, 1]][:, [2]])
    assert_array_equal(part.high, bounds.high[[3, 1]][:, [2]])
    assert part.threshold_low.shape == (1,)
