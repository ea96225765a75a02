"""The native solver: its compiled parts, known answers, and what it promises about every result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softsplit.grouping import draw_plan, ridge_logistic, structure
from softsplit.loss import ExpectedCost
from softsplit.penalties import (
    PenaltyPair,
    exponential,
    inverse_power,
    linear,
    logarithmic,
    power,
)
from softsplit.problem import TrainingProblem
from softsplit.samples import Samples
from softsplit.solvers import Budget, NativeSolver, Start, Status
from softsplit.solvers.descent import NEVER, Limits, smooth_value
from softsplit.solvers.engine import Engine, Meter, pack, preconditioner, stratified, unpack
from softsplit.solvers.faces import FIXED, FREE, TIED, curvature, project, subgradient
from softsplit.solvers.hops import regrow
from softsplit.solvers.newton import newton_direction
from softsplit.solvers.stages import LogWarmUp, Polish, Race, StrengthPath, pure_leaves
from softsplit.starts import draw_start
from softsplit.training import best_solution, hop, multistart
from softsplit.tree import Block, Topology, TreeParameters

SURROGATES = [linear(), exponential(), power(), inverse_power(1.0, 1e-2), logarithmic(1e-2)]


def make_problem(
    seed=0,
    rows=80,
    features=4,
    classes=3,
    depth=2,
    surrogate=None,
    local=0.0,
    overall=0.0,
    rate=0.1,
):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, rows - classes)])
    X = rng.uniform(size=(rows, features)) + 0.4 * rng.uniform(size=(classes, features))[y]
    return TrainingProblem(
        Samples.from_arrays(X / 1.4, y, classes),
        Topology(depth),
        ExpectedCost.uniform(classes),
        PenaltyPair.of(surrogate or exponential(), local, overall),
        np.full(classes, 0.1),
    )


def make_engine(problem):
    return Engine(problem, Meter(Budget(), 10_000))


def solve(problem, seed=0, rule="groups", **budget):
    start = draw_start(rule, problem, np.random.default_rng(seed))
    return NativeSolver().solve(problem, start, Budget(**budget))


# --- compiled parts -------------------------------------------------------------------------


@pytest.mark.parametrize("surrogate", SURROGATES, ids=lambda s: s.name)
@pytest.mark.parametrize("scope", ["local", "overall"])
def test_subgradient_is_the_steepest_descent_rate(surrogate, scope):
    """-|slope|^2 is the directional derivative of F along -slope, kinks and ties included."""
    problem = make_problem(surrogate=surrogate, **{scope: 0.3}).with_steepness(20.0)
    rng = np.random.default_rng(1)
    theta = rng.uniform(-0.8, 0.8, (3, 5))
    theta[1, 0], theta[:, 1] = 0.0, 0.0
    theta[:, 2] = [0.5, -0.5, 0.2]  # two tied at the maximum
    leaves = pure_leaves(problem, theta, np.full((3, 4), 1 / 3))
    tree = unpack(theta, leaves)
    found = problem.evaluate_cost(tree)
    gradient = np.ascontiguousarray(np.vstack([found.weights, found.thresholds]).T)
    engine = make_engine(problem)
    slope, state = np.empty_like(theta), np.empty(theta.shape, dtype=np.int8)
    sparse = engine._sparse(1.0)
    subgradient(theta, gradient, sparse, problem.free_branches, problem.global_floor, slope, state)
    length = 1e-7 / np.max(np.abs(slope))
    ahead = problem.objective(unpack(theta - length * slope, leaves))
    rate = (ahead - problem.objective(tree)) / length
    assert rate == pytest.approx(-np.sum(slope**2), rel=1e-3)


def test_zero_row_under_a_strong_global_penalty_is_fixed():
    problem = make_problem(overall=1e6)
    theta, slope = np.zeros((3, 5)), np.empty((3, 5))
    gradient, state = np.ones((3, 5)), np.empty((3, 5), dtype=np.int8)
    sparse = make_engine(problem)._sparse(1.0)
    subgradient(theta, gradient, sparse, problem.free_branches, problem.global_floor, slope, state)
    assert not np.any(slope[:, :4])
    assert np.all(state[:, :4] == FIXED)
    assert np.all(slope[:, 4] == 1)


def test_projection_is_idempotent_and_keeps_ties_tied():
    rng = np.random.default_rng(0)
    theta = np.array([[0.5, 0.1], [-0.5, 0.2], [0.0, 0.3]])
    slope = rng.normal(size=(3, 2))
    state = np.array([[TIED, 1], [TIED, 1], [FIXED, 1]], dtype=np.int8)
    once = rng.normal(size=(3, 2))
    project(once, theta, slope, state)
    twice = once.copy()
    project(twice, theta, slope, state)
    np.testing.assert_allclose(once, twice)
    assert once[0, 0] == pytest.approx(-once[1, 0])
    assert once[2, 0] == 0


@pytest.mark.parametrize("newton_from", [0, NEVER], ids=["newton", "first order"])
@pytest.mark.parametrize("surrogate", SURROGATES, ids=lambda s: s.name)
def test_descent_never_rises_and_zeros_are_exact(surrogate, newton_from):
    problem = make_problem(surrogate=surrogate, local=0.05, overall=0.05, features=8)
    start = draw_start("groups", problem, np.random.default_rng(0)).parameters
    theta, leaves = pack(start), start.leaf_classes
    engine = make_engine(problem)
    engine.forget(problem.steepness)
    values = [
        engine.descend(theta, leaves, Limits(5, 0.0, 0.0, 100, newton_from)) for _ in range(30)
    ]
    assert np.all(np.diff(values) <= 1e-9 * np.abs(values[0]))
    sizes = np.abs(theta[:, :-1])
    assert not np.any((sizes > 0) & (sizes < 1e-12))


@pytest.mark.parametrize("active_rate", [False, True])
@pytest.mark.parametrize("scope", ["local", "overall"])
def test_newton_direction_solves_the_newton_system(scope, active_rate):
    """Against a Hessian by finite differences of the smooth gradient, on the free variables."""
    problem = make_problem(features=3, **{scope: 0.05}).with_steepness(30.0)
    if active_rate:
        problem = replace(problem, minimum_rates=np.full(3, 0.95))
    start = draw_start("groups", problem, np.random.default_rng(1)).parameters
    theta, leaves, engine = pack(start), start.leaf_classes, make_engine(problem)
    engine.rate_weight = 10.0
    engine.forget(problem.steepness)
    engine.descend(theta, leaves, Limits(15, 0.0, 0.0, 100, NEVER))
    smooth = engine._smooth(problem.loss.table(leaves), leaves, None, None)
    sparse, work = engine._sparse(1.0), engine.work

    def gradient_at(point):
        found = np.empty_like(theta)
        smooth_value(point, smooth, work, found)
        return found

    slope, state = np.empty_like(theta), np.empty(theta.shape, dtype=np.int8)
    subgradient(theta, gradient_at(theta), sparse, work.free, work.floor, slope, state)
    free = np.argwhere((state != FIXED) & (theta != 0))
    hessian = np.empty((len(free), len(free)))
    for column, (t, j) in enumerate(free):
        step = np.zeros_like(theta)
        step[t, j] = 1e-6
        change = (gradient_at(theta + step) - gradient_at(theta - step)) / 2e-6
        hessian[:, column] = change[tuple(free.T)]
        if j < 3:
            hessian[column, column] += curvature(theta, sparse, work.floor, state, t, j)
    gradient_at(theta)  # leave the slopes of theta in the workspace
    direction = np.zeros_like(theta)
    assert newton_direction(theta, slope, state, smooth, sparse, work, direction)
    damping = work.damping[0] * np.max(np.abs(np.diag(hessian)))
    if np.all(state[tuple(free.T)] == FREE) and len(free) == np.sum(state != FIXED):
        moved = direction[tuple(free.T)]
        residual = (hessian + damping * np.eye(len(free))) @ moved + slope[tuple(free.T)]
        assert np.max(np.abs(residual)) <= 1e-3 * np.max(np.abs(slope))
    assert np.sum(slope * direction) < 0


def test_a_descent_cut_into_slices_takes_the_same_steps():
    problem = make_problem(overall=0.1)
    start = draw_start("groups", problem, np.random.default_rng(0)).parameters
    ends = []
    for slices in ([40], [1] * 40, [7, 13, 20]):
        theta, engine = pack(start), make_engine(problem)
        engine.forget(problem.steepness)
        for size in slices:
            engine.descend(theta, start.leaf_classes, Limits(size, 0.0, 0.0, 1000, NEVER))
        ends.append(theta)
    np.testing.assert_array_equal(ends[0], ends[1])
    np.testing.assert_array_equal(ends[0], ends[2])


def test_preconditioner_inverts_the_ridged_gram_matrix():
    samples = make_problem().samples
    design = np.vstack([samples.features / 4, -np.ones(samples.n_rows)])
    gram = (design * samples.weights) @ design.T
    root = np.sqrt(np.diag(gram))
    inverse, diagonal = preconditioner(samples)
    ridged = gram + 0.3 * np.diag(root**2)
    np.testing.assert_allclose(inverse @ ridged, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(diagonal * root**2, 1)


def test_stratified_subset_keeps_class_totals():
    samples = make_problem(rows=2000).samples
    few = stratified(samples, 300)
    assert few.n_rows <= 330
    sums = np.add.reduceat(few.weights, few.starts[:-1])
    np.testing.assert_allclose(sums, samples.class_totals)
    assert stratified(samples, 5000) is samples


# --- stages ---------------------------------------------------------------------------------


def test_log_warm_up_improves_a_random_start():
    problem = make_problem(rows=300)
    before, after = [], []
    for seed in range(5):
        start = draw_start("points", problem, np.random.default_rng(seed)).parameters
        theta = pack(start)
        leaves = LogWarmUp().apply(make_engine(problem), theta, start.leaf_classes)
        before.append(problem.cost(start))
        after.append(problem.cost(unpack(theta, pure_leaves(problem, theta, leaves))))
    assert np.mean(after) < 0.95 * np.mean(before)


def test_strength_path_and_polish_lower_the_objective():
    problem = make_problem(overall=0.3)
    start = draw_start("groups", problem, np.random.default_rng(0)).parameters
    theta, engine = pack(start), make_engine(problem)
    leaves = StrengthPath().apply(engine, theta, start.leaf_classes)
    middle = problem.objective(unpack(theta, leaves))
    leaves = Polish().apply(engine, theta, leaves)
    end = problem.objective(unpack(theta, leaves))
    assert end <= middle + 1e-9 < problem.objective(start)


# --- known answers --------------------------------------------------------------------------


def one_informative_feature():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 6))
    y = (X[:, 2] > 0.5).astype(int)
    X[:, 2] = np.where(y == 1, 0.8, 0.2) + 0.1 * (X[:, 2] - 0.5)
    return X, y


def test_one_informative_feature_is_the_only_one_selected():
    X, y = one_informative_feature()
    problem = TrainingProblem(
        Samples.from_arrays(X, y, 2),
        Topology(1),
        ExpectedCost.uniform(2),
        PenaltyPair.of(exponential(), global_strength=1.0),
        np.full(2, 0.1),
    )
    best = best_solution(multistart(problem, NativeSolver(), n_starts=4))
    assert np.flatnonzero(best.parameters.weights[:, 0]).tolist() == [2]
    assert best.cost < 1.0


def test_separable_classes_cost_nothing():
    corners = np.array([[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]])
    X = np.repeat(corners, 10, axis=0) + 0.01 * np.random.default_rng(0).normal(size=(40, 2))
    y = np.repeat(np.arange(4), 10)
    problem = TrainingProblem(
        Samples.from_arrays(X, y, 4),
        Topology(2),
        ExpectedCost.uniform(4),
        PenaltyPair.of(linear()),
        np.full(4, 0.1),
    )
    best = best_solution(multistart(problem, NativeSolver(), n_starts=6))
    assert best.objective < 1e-6


def test_a_planted_tree_is_found_again():
    """Data labelled by a tree: the solver's objective is no worse than the planted tree's."""
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(400, 5))
    planted = TreeParameters(
        np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, -1.0], [0, 0, 0], [0, 0, 0]]),
        np.array([0.1, 0.1, -0.1]),
        np.eye(4)[:, [0, 1, 2, 3]],
    )
    score = X @ planted.weights / 5 - planted.thresholds
    y = np.where(score[:, 0] > 0, np.where(score[:, 1] > 0, 0, 1), np.where(score[:, 2] > 0, 2, 3))
    problem = TrainingProblem(
        Samples.from_arrays(X, y, 4),
        Topology(2),
        ExpectedCost.uniform(4),
        PenaltyPair.of(exponential(), local_strength=0.5),
        np.full(4, 0.1),
    )
    best = best_solution(multistart(problem, NativeSolver(), n_starts=10))
    assert best.objective <= problem.objective(planted) + 1e-6


def test_a_strength_beyond_any_gain_gives_the_all_zero_tree():
    problem = make_problem(overall=1e5)
    best = best_solution(multistart(problem, NativeSolver(), n_starts=2))
    assert not np.any(best.parameters.weights)
    assert best.violation <= 1e-9


# --- promises -------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(6, 60),
    features=st.integers(1, 6),
    classes=st.integers(2, 4),
    extra_depth=st.integers(0, 1),
    surrogate=st.sampled_from(SURROGATES),
    local=st.sampled_from([0.0, 0.01, 1.0]),
    overall=st.sampled_from([0.0, 0.01, 1.0]),
    copies=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_every_result_is_feasible_and_no_worse_than_the_start(
    seed, rows, features, classes, extra_depth, surrogate, local, overall, copies
):
    depth = Topology.for_classes(classes).depth + extra_depth
    problem = make_problem(seed, rows, features, classes, depth, surrogate, local, overall)
    if copies:
        weights = np.random.default_rng(seed).integers(1, 4, problem.samples.n_rows).astype(float)
        totals = np.add.reduceat(weights, problem.samples.starts[:-1])
        problem = replace(
            problem, samples=replace(problem.samples, weights=weights, class_totals=totals)
        )
    found = solve(problem, seed, rule=("groups", "points")[seed % 2])
    assert found.violation <= 1e-6
    assert np.isfinite(found.objective)
    sizes = np.abs(found.parameters.weights)
    if local + overall > 0:
        assert not np.any((sizes > 0) & (sizes < 1e-12))


def test_result_is_nearly_stationary():
    problem = make_problem(overall=0.3)
    found = solve(problem)
    assert found.kkt.residual < 1e-2


def test_limits_are_respected_and_said():
    problem = make_problem(rows=400, features=10, overall=0.1)
    found = solve(problem, max_iter=3)
    assert found.status is Status.MAX_ITER
    assert found.n_iter == 3
    assert found.violation <= 1e-6
    late = solve(problem, time_limit=1e-9)
    assert late.status is Status.TIME_LIMIT


def test_a_given_tree_is_improved_and_never_worsened():
    problem = make_problem(overall=0.3)
    first = solve(problem)
    again = NativeSolver().solve(problem, Start(first.parameters), Budget())
    assert again.objective <= first.objective + 1e-9


def test_a_restricted_problem_moves_only_its_block():
    problem = make_problem(overall=0.3)
    whole = solve(problem)
    part = problem.restrict(Block((1,), (0, 1, 2, 3)), whole.parameters)
    moved = whole.parameters.weights.copy()
    moved[:, 1] = 0.0
    start = Start(part.pin(replace(whole.parameters, weights=moved)))
    found = NativeSolver().solve(part, start, Budget())
    np.testing.assert_array_equal(
        found.parameters.weights[:, [0, 2]], whole.parameters.weights[:, [0, 2]]
    )
    assert found.violation <= 1e-6


# --- portfolio ------------------------------------------------------------------------------


def test_mirrored_labellings_are_one_structure():
    assert structure((0, 1, 0, 2)) == structure((2, 0, 1, 0)) == structure((0, 2, 0, 1))
    assert structure((0, 1, 0, 2)) != structure((0, 0, 1, 2))


@pytest.mark.parametrize(("classes", "depth"), [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (2, 3)])
def test_plans_give_every_class_a_leaf(classes, depth):
    rng = np.random.default_rng(0)
    centres = rng.uniform(size=(classes, 3))
    for _ in range(50):
        plan = draw_plan(Topology(depth), centres, rng)
        assert set(plan.leaf_labels) == set(range(classes))
        assert len(plan.leaf_labels) == 2**depth


def test_rival_starts_have_different_structures():
    problem = make_problem(classes=3, depth=2)
    start = draw_start("groups", problem, np.random.default_rng(0), rivals=5)
    keys = {
        structure(tuple(tree.leaf_classes.argmax(axis=0).tolist()))
        for tree in (start.parameters, *start.rivals)
    }
    assert len(keys) == 6  # all there are for three classes on four leaves


def test_ridge_logistic_solves_the_regression():
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(3, 200)), (rng.uniform(size=200) < 0.5).astype(float)
    weight = rng.uniform(0.5, 1.5, 200) / 200
    found = ridge_logistic(X, target, weight, 1e-2, 20)
    probability = 1 / (1 + np.exp(-(found[:3] @ X - found[3])))
    slope = X @ (weight * (probability - target)) + 1e-2 * found[:3]
    assert np.max(np.abs(slope)) < 1e-8
    assert abs(np.sum(weight * (probability - target))) < 1e-6


def test_a_race_is_won_by_the_lowest_objective():
    problem = make_problem(overall=0.3)
    start = draw_start("groups", problem, np.random.default_rng(0), rivals=4)
    trees = (start.parameters, *start.rivals)
    theta, leaves = Race().winner(make_engine(problem), trees)
    alone = [
        problem.objective(unpack(*Race().winner(make_engine(problem), (tree,)))) for tree in trees
    ]
    assert problem.objective(unpack(theta, leaves)) == pytest.approx(min(alone))


def test_regrow_replaces_exactly_one_subtree():
    theta, other = np.zeros((7, 3)), np.ones((7, 3))
    regrow(theta, other, 1)
    assert theta.sum(axis=1).tolist() == [0, 3, 0, 3, 3, 0, 0]


def test_hops_never_worsen_and_sometimes_improve():
    gains = []
    for seed in range(6):
        problem = make_problem(seed=seed, rows=120, features=6, overall=0.2)
        best = solve(problem, seed, rule="points")
        after = hop(problem, NativeSolver(), best, seed=seed)
        assert after.objective <= best.objective
        assert after.violation <= 1e-6
        gains.append(best.objective - after.objective)
    assert max(gains) > 1e-3


def test_hops_are_reproducible():
    problem = make_problem(overall=0.2)
    best = solve(problem)
    ends = [hop(problem, NativeSolver(), best, seed=5) for _ in range(2)]
    np.testing.assert_array_equal(ends[0].parameters.weights, ends[1].parameters.weights)
