"""The native solver: its compiled parts, known answers, and what it promises about every result."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from brute_force import class_rates, expected_cost, penalty
from helpers import SURROGATES, random_costs, surrogate_id
from likelihood_cases import random_problem
from native_cases import make_engine, make_problem, solve
from slow_cases import examples
from softsplit.engines.compiled import CompiledRows
from softsplit.problem.leaves import SMOOTHING
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.penalties import PenaltyPair, exponential
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.strength_bound import all_zero_tree
from softsplit.solvers import BasinHoppingSolver, Budget, Status
from softsplit.solvers.active_set.soft_leaves import expect, soften
from softsplit.solvers.active_set.state import (
    NEVER,
    DescentLimits,
)
from softsplit.solvers.basin_hopping import run as engine_module
from softsplit.solvers.basin_hopping.budget import ClockOptions
from softsplit.solvers.basin_hopping.stages import restore_rates
from softsplit.solvers.starts.rules import draw_start
from softsplit.training.multistart import best_solution, multistart, search_around
from softsplit.tree.parameters import Topology

# --- compiled parts -------------------------------------------------------------------------


@pytest.mark.parametrize("newton_from", [0, NEVER], ids=["newton", "first order"])
@pytest.mark.parametrize("surrogate", SURROGATES, ids=surrogate_id)
def test_descent_never_rises_and_zeros_are_exact(surrogate, newton_from):
    problem = make_problem(surrogate=surrogate, local=0.05, global_=0.05, features=8)
    start = draw_start("groups", problem, np.random.default_rng(0)).parameters
    theta, leaves = start.splits, start.leaf_values
    engine = make_engine(problem)
    engine.forget(problem.steepness)
    values = [
        engine.descend(theta, leaves, DescentLimits(5, 0.0, 0.0, 100, newton_from))
        for _ in range(30)
    ]
    assert np.all(np.diff(values) <= 1e-9 * np.abs(values[0]))
    sizes = np.abs(theta[:, :-1])
    assert not np.any((sizes > 0) & (sizes < 1e-12))


# --- promises -------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [1e9, 1e-3, 1e-5])
def test_the_clock_never_changes_a_bit(seconds):
    """However long the slices are in which a run looks at its budget."""
    problem = make_problem(global_=0.1, rows=150)
    whole = solve(problem)
    solver = BasinHoppingSolver(clock=ClockOptions(slice_seconds=seconds))
    start = draw_start("groups", problem, np.random.default_rng(0))
    sliced = solver.solve(problem, start, Budget())
    np.testing.assert_array_equal(sliced.parameters.weights, whole.parameters.weights)
    assert sliced.n_iter == whole.n_iter


@pytest.mark.parametrize(("few", "many", "rate"), [(1, 800, 0.9), (5, 400, 0.8), (5, 100, 0.8)])
def test_a_binding_rate_under_imbalance_does_not_mix_the_leaves(few, many, rate):
    """Mixed leaves meet any rate at a high price; branches that find the rare rows do better."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(few + many, 5)), np.repeat([1, 0], [few, many])
    problem = TrainingProblem(
        CompiledRows.from_arrays(X, y, 2),
        Topology(1),
        ExpectedCost.uniform(2),
        PenaltyPair.of(exponential()),
        np.array([0.0, rate]),
    )
    best = best_solution(multistart(problem, BasinHoppingSolver(), n_starts=4))
    assert best.violation <= 1e-6
    assert best.objective < 0.6 * 0.5 * rate * many


def test_restoring_rates_mends_a_hair_and_leaves_what_is_far_off():
    problem = replace(make_problem(global_=0.1), minimum_rates=np.zeros(3))
    tree = solve(problem).parameters
    rates = problem.rates(tree)
    asked = replace(problem, minimum_rates=rates + np.array([1e-5, -0.05, -0.05]))
    moved = restore_rates(asked, tree)
    assert np.max(asked.minimum_rates - asked.rates(tree)) > 5e-6
    assert np.all(asked.rates(moved) >= asked.minimum_rates - 1e-8)
    assert 0 < np.max(np.abs(moved.weights - tree.weights)) < 1e-3
    far = replace(problem, minimum_rates=np.full(3, 1.0))
    assert restore_rates(far, tree) is tree


@pytest.mark.parametrize(("limit", "first_order"), [(0.05, True), (1000.0, False), (None, False)])
def test_a_newton_step_that_would_end_late_is_not_begun(limit, first_order, clock, monkeypatch):
    problem = make_problem(features=60, depth=5)  # one step takes about a second
    engine = engine_module.DescentRun(
        problem, engine_module.IterationBudget(Budget(time_limit=limit), 1)
    )
    asked, plain = [], engine_module.descend_in_memory

    def watched(*arguments):
        asked.append(arguments[6].newton_from)
        plain(*arguments[:6], arguments[6]._replace(newton_from=NEVER), *arguments[7:])

    monkeypatch.setattr(engine_module, "descend_in_memory", watched)
    shape = (problem.topology.n_branches, problem.n_features + 1)
    leaves = np.eye(problem.n_groups)[:, np.arange(problem.topology.n_leaves) % problem.n_groups]
    engine.descend(np.zeros(shape), leaves, DescentLimits(1, 1e-6, 1e-11, 8, 0))
    assert asked == [NEVER if first_order else 0]


# What the native solver promises about every result, over random problems of every kind.


STRENGTHS = [0.0, 0.01, 0.1, 1.0]


@dataclass(frozen=True)
class Rows:
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray


@st.composite
def rows(draw):
    """Classes that overlap, with duplicated rows (in one class or two) and constant columns."""
    rng = np.random.default_rng(draw(st.integers(0, 100_000)))
    n_classes, n_features = draw(st.integers(2, 4)), draw(st.integers(1, 5))
    size = draw(st.integers(n_classes, 40))
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, size - n_classes)])
    X = (rng.uniform(size=(size, n_features)) + rng.uniform(size=(n_classes, n_features))[y]) / 2
    if draw(st.booleans()):  # few distinct values: ties, and equal rows
        X = np.round(2 * X) / 2
    if draw(st.booleans()):
        again = rng.integers(0, size, size // 2)
        other = np.where(rng.random(len(again)) < 0.5, y[again], rng.integers(n_classes))
        X, y = np.vstack([X, X[again]]), np.append(y, other)
    if draw(st.booleans()):
        X[:, rng.integers(n_features)] = draw(st.sampled_from([0.0, 0.5, 1.0]))
    weight = np.ones(len(y))
    if draw(st.booleans()):
        weight = rng.choice([0.25, 1.0, 3.5], len(y))
    return Rows(X, y, weight)


@st.composite
def problems(draw):
    data = draw(rows())
    n_classes = int(data.y.max()) + 1
    loss = ExpectedCost.uniform(n_classes)
    if draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 1000)))
        loss = ExpectedCost(random_costs(rng, n_classes))
    return TrainingProblem(
        CompiledRows.from_arrays(data.X, data.y, n_classes, data.weight),
        Topology(Topology.with_leaves(n_classes).depth + draw(st.integers(0, 1))),
        loss,
        PenaltyPair.of(
            draw(st.sampled_from(SURROGATES)),
            draw(st.sampled_from(STRENGTHS)),
            draw(st.sampled_from(STRENGTHS)),
        ),
        np.full(n_classes, draw(st.sampled_from([0.0, 0.1, 0.9 / n_classes]))),
        draw(st.sampled_from([32.0, 512.0])),
    )


def train(problem, n_jobs=1, n_starts=3):
    solver = BasinHoppingSolver()
    starts = multistart(problem, solver, n_starts=n_starts, seed=0, n_jobs=n_jobs)
    return starts, search_around(problem, solver, starts, seed=0)


def assert_feasible_and_true(problem, solution):
    """Feasible in plain loops, and what the solution says of itself is so."""
    samples, tree = problem.samples, solution.parameters
    lists = samples.features.T.tolist(), samples.labels.tolist(), samples.weights.tolist()
    a, mu, c = tree.weights.tolist(), tree.thresholds.tolist(), tree.leaf_values.tolist()
    depth, steepness = problem.topology.depth, problem.steepness
    rates = class_rates(*lists, a, mu, c, depth, steepness)
    assert np.all(np.array(rates) >= problem.minimum_rates - 1e-6)
    assert np.max(np.abs(tree.weights)) <= 1
    assert np.max(np.abs(tree.thresholds)) <= 1
    np.testing.assert_allclose(tree.leaf_values.sum(axis=0), 1, atol=1e-9)
    assert np.min(tree.leaf_values) >= 0
    assert np.all(tree.leaf_values.sum(axis=1) >= 1 - 1e-6)
    assert solution.violation <= 1e-6
    local, global_ = problem.penalties.local, problem.penalties.global_
    cost = expected_cost(*lists, a, mu, c, problem.loss.costs.tolist(), depth, steepness)
    sparse = penalty(a, local.surrogate, local.strength, global_.strength)
    np.testing.assert_allclose(solution.cost, cost, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(solution.objective, cost + sparse, rtol=1e-8, atol=1e-9)


@pytest.mark.slow
@given(problem=problems())
@examples(30)
def test_results_are_feasible_honest_sparse_and_no_worse_than_no_tree(problem):
    starts, best = train(problem)
    for solution in starts:
        usable = solution.status.usable
        assert usable == (solution.violation <= 1e-5)
        close = solution.kkt.residual <= 1e-6 * problem.cost_unit
        assert solution.status in (
            (Status.OPTIMAL,) if close else (Status.ACCEPTABLE, Status.INFEASIBLE)
        )
    assert_feasible_and_true(problem, best)
    sizes = np.abs(best.parameters.weights)
    assert not np.any((sizes > 0) & (sizes < 1e-12))
    zero = problem.objective(all_zero_tree(problem))
    assert best.objective <= zero + 1e-5 * problem.cost_unit * (1 + abs(zero))
    tie = 1e-6 * problem.cost_unit
    assert all(best.objective <= s.objective + tie for s in starts if s.status.usable)


def scaled(problem, factor):
    """The problem with all weights and strengths multiplied."""
    local, global_ = problem.penalties.local, problem.penalties.global_
    samples = problem.samples
    return replace(
        problem,
        rows=CompiledRows(
            replace(
                samples,
                weights=factor * samples.weights,
                group_totals=factor * samples.group_totals,
            )
        ),
        penalties=PenaltyPair(
            replace(local, strength=factor * local.strength),
            replace(global_, strength=factor * global_.strength),
        ),
    )


@given(problem=problems())
@examples(10)
def test_scaled_weights_and_strengths_give_the_same_tree(problem):
    """A factor of four is exact in floating point, roots included: not a bit may change.

    So it shows that no tolerance is absolute. (A factor of two changes roots by rounding, and a
    search makes another tree of that.)
    """
    one, four = (train(scaled(problem, factor), n_starts=2)[1] for factor in (1, 4))
    assert four.objective == 4 * one.objective
    np.testing.assert_array_equal(four.parameters.weights, one.parameters.weights)
    np.testing.assert_array_equal(four.parameters.leaf_values, one.parameters.leaf_values)


# The expectation step of leaves that hold distributions: it never raises the log-loss.


def test_softening_mixes_a_share_of_every_class():
    leaves = np.eye(3)
    soften(leaves)
    expected = (1 - SMOOTHING) * np.eye(3) + SMOOTHING / 3
    assert_allclose(leaves, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_step_lowers_the_loss_and_keeps_distributions(seed):
    problem, tree = random_problem(seed, ridge=0.0)
    leaves = np.array(tree.leaf_values)
    before = problem.rows.evaluate(tree.splits, leaves, problem.loss.outer, problem.steepness)
    for _ in range(3):
        expect(before.table, leaves)
        assert_allclose(leaves.sum(axis=0), 1.0, rtol=1e-12)
        after = problem.rows.evaluate(tree.splits, leaves, problem.loss.outer, problem.steepness)
        # Softening by a share s may take back at most -log(1 - s) for each row.
        assert after.value <= before.value + 2 * SMOOTHING * problem.samples.weights.sum()
        before = after
