"""The engine around the compiled descent: what it leaves behind describes the point it ended at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute_force import cheapest_assignment
from helpers import SURROGATES, random_case, surrogate_id
from native_cases import make_engine, make_problem
from slow_cases import examples
from softsplit.engines.compiled import CompiledRows
from softsplit.problem.penalties import inverse_power, linear
from softsplit.solvers import Budget, Status
from softsplit.solvers.active_set.state import (
    EVALUATE_ONLY,
    NEVER,
    POLISH,
    DescentLimits,
)
from softsplit.solvers.base import Cancel, OutOfBudget
from softsplit.solvers.basin_hopping.budget import (
    ClockOptions,
    IterationBudget,
    StepTimes,
)
from softsplit.solvers.basin_hopping.run import DescentRun
from softsplit.solvers.starts.rules import draw_start
from softsplit.tree.parameters import Block, TreeParameters
from softsplit.tree.routing import split_scores


def assert_describes(engine, theta, leaves, **where):
    """Scores, masses and rates in the workspace are those of the problem at ``theta``."""
    problem, tree = engine.problem, TreeParameters.from_splits(theta, leaves)
    found = problem.evaluate_cost(tree)
    scores = split_scores(tree, problem.samples.features)
    np.testing.assert_allclose(engine.passes.scores, scores, atol=1e-12, **where)
    np.testing.assert_allclose(engine.by_table, found.mass, atol=1e-9, **where)
    np.testing.assert_allclose(engine.rates(leaves), problem.rates(tree), atol=1e-11, **where)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_look_evaluates_objective_rates_and_leaves_of_the_problem(depth):
    case = random_case(3, depth)
    problem, tree = case.problem, case.tree
    engine = make_engine(problem)
    value = engine.descend(tree.splits, tree.leaf_values, EVALUATE_ONLY)
    assert value == pytest.approx(problem.objective(tree), rel=1e-12)
    assert_describes(engine, tree.splits, tree.leaf_values)
    leaves = engine.cheapest_leaves(tree.leaf_values)
    costs = problem.loss.leaf_gradient(problem.evaluate_cost(tree).mass)
    assert np.sum(costs * leaves) == pytest.approx(cheapest_assignment(costs.tolist()))
    assert np.all(leaves.sum(axis=1) >= 1)
    best = problem.best_leaves(tree).leaf_values  # rates of zero: the same step
    np.testing.assert_array_equal(leaves, best)


def test_cheapest_leaves_leave_the_rates_out_and_fixed_leaves_alone():
    problem = make_problem(rate=0.3)
    tree = draw_start("points", problem, np.random.default_rng(0)).parameters
    engine = make_engine(problem)
    engine.descend(tree.splits, tree.leaf_values, EVALUATE_ONLY)
    leaves = engine.cheapest_leaves(tree.leaf_values)
    free = problem.cost(TreeParameters.from_splits(tree.splits, leaves))
    assert free <= problem.cost(problem.best_leaves(tree)) + 1e-12
    part = problem.restrict(Block((0, 1, 2), (1, 2)), tree)
    engine = make_engine(part)
    engine.descend(tree.splits, tree.leaf_values, EVALUATE_ONLY)
    some = engine.cheapest_leaves(tree.leaf_values)
    np.testing.assert_array_equal(some[:, [0, 3]], tree.leaf_values[:, [0, 3]])


@pytest.mark.parametrize("newton_from", [0, 5, NEVER])
@pytest.mark.parametrize("surrogate", SURROGATES, ids=surrogate_id)
def test_masses_describe_theta_after_every_iteration(surrogate, newton_from):
    """Also after a search that failed and after entries were put on a kink."""
    problem = make_problem(surrogate=surrogate, local=0.05, global_=0.05, rate=0.3)
    start = draw_start("groups", problem, np.random.default_rng(1)).parameters
    theta, leaves = start.splits, start.leaf_values
    engine = make_engine(problem)
    engine.forget(problem.steepness)
    for step in range(60):
        # Nothing is ever small enough: the descent goes on until searches fail.
        engine.descend(theta, leaves, DescentLimits(1, 0.0, 0.0, 1000, newton_from, 0.0))
        assert_describes(engine, theta, leaves, err_msg=f"step {step}")
    engine.descend(theta, leaves, DescentLimits(5000, 0.0, 0.0, 1000, newton_from, 0.0))
    assert_describes(engine, theta, leaves)
    assert engine.ended


def test_masses_describe_theta_when_a_stuck_point_is_put_on_a_kink():
    """Weights a hair from zero and from a tie, where every line search fails."""
    tried = 0
    for seed in range(6):
        problem = make_problem(seed, surrogate=inverse_power(), local=0.5, global_=0.5)
        start = draw_start("groups", problem, np.random.default_rng(seed)).parameters
        theta, leaves = start.splits, start.leaf_values
        engine = make_engine(problem)
        engine.forget(problem.steepness)
        engine.descend(theta, leaves, DescentLimits(300, 0.0, 0.0, 1000, 0, 0.0))
        nonzero = np.abs(theta[:, :-1]) > 0
        theta[:, :-1] += np.where(nonzero, 0.0, 3e-7)  # off the kink at zero
        before = theta.copy()
        engine.descend(theta, leaves, DescentLimits(300, 0.0, 0.0, 1000, 0, 0.0))
        tried += not np.array_equal(before, theta)
        assert_describes(engine, theta, leaves)
        sizes = np.abs(theta[:, :-1])
        assert not np.any((sizes > 0) & (sizes < 1e-12))
    assert tried > 0


@given(seed=st.integers(0, 1000), iterations=st.integers(0, 25))
@examples(25)
def test_masses_describe_theta_wherever_a_descent_is_cut(seed, iterations):
    problem = make_problem(seed % 7, global_=0.1, rate=0.25)
    start = draw_start("points", problem, np.random.default_rng(seed)).parameters
    theta, engine = start.splits, make_engine(problem)
    engine.forget(problem.steepness)
    engine.descend(theta, start.leaf_values, DescentLimits(iterations, 1e-6, 1e-9, 5, seed % 9))
    assert_describes(engine, theta, start.leaf_values)


def test_row_weights_of_one_descent_do_not_stay():
    problem = make_problem(global_=0.1)
    start = draw_start("groups", problem, np.random.default_rng(0)).parameters
    theta, leaves = start.splits, start.leaf_values
    engine = make_engine(problem)
    before = engine.descend(theta, leaves, EVALUATE_ONLY)
    samples = problem.samples
    doubled = CompiledRows(samples.with_weights(2.0 * samples.weights))
    with_doubled = engine.descend(theta, leaves, EVALUATE_ONLY, rows=doubled)
    sparse = problem.penalties.value(start.weights)
    assert with_doubled - sparse == pytest.approx(2 * (before - sparse))
    assert engine.descend(theta, leaves, EVALUATE_ONLY) == before


def test_strength_multiplies_the_penalties_alone():
    problem = make_problem(surrogate=linear(), local=0.2, global_=0.3)
    start = draw_start("groups", problem, np.random.default_rng(0)).parameters
    engine = make_engine(problem)
    values = [
        engine.descend(start.splits, start.leaf_values, EVALUATE_ONLY, strength=s)
        for s in (0.0, 1.0, 3.0)
    ]
    assert values[1] - values[0] == pytest.approx(problem.penalties.value(start.weights))
    assert values[2] - values[0] == pytest.approx(3 * (values[1] - values[0]))


def test_a_meter_stops_at_its_iterations_its_time_and_on_request(clock):
    long, times = POLISH._replace(newton_from=NEVER), StepTimes.of(1, 1, ClockOptions())
    assert IterationBudget(Budget(), 10).allowed(long, times, 0).max_iter == 10
    spent = IterationBudget(Budget(), 10, iterations=10)
    late = IterationBudget(Budget(time_limit=0.0), 10)
    cancelled = IterationBudget(Budget(cancel=Cancel(True)), 10)
    for work in (spent, late, cancelled):
        with pytest.raises(OutOfBudget):
            work.allowed(long, times, 0)
    assert late.budget.verdict is Status.TIME_LIMIT
    assert cancelled.budget.verdict is Status.INTERRUPTED
    assert spent.budget.verdict is Status.MAX_ITER
    slow = IterationBudget(Budget(), 1000)
    slow.record(10, 12, clock() - 5.0)  # half a second an iteration: look at the clock after each
    assert slow.allowed(long, times, 0).max_iter == 1
    assert (slow.iterations, slow.calls) == (10, 12)


def test_a_look_costs_no_budget():
    problem = make_problem()
    start = draw_start("groups", problem, np.random.default_rng(0)).parameters
    engine = DescentRun(problem, IterationBudget(Budget(time_limit=0.0), 0))
    assert np.isfinite(engine.descend(start.splits, start.leaf_values, EVALUATE_ONLY))
    with pytest.raises(OutOfBudget):
        engine.descend(start.splits, start.leaf_values, EVALUATE_ONLY._replace(max_iter=1))
