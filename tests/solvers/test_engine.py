"""The engine around the compiled descent: what it leaves behind describes the point it ended at."""

from __future__ import annotations

import numpy as np
import pytest

from brute_force import cheapest_assignment
from helpers import SURROGATES, random_case, surrogate_id
from native_cases import make_engine, make_problem
from softsplit.problem.penalties import inverse_power
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
from softsplit.solvers.starts.rules import draw_start
from softsplit.tree.parameters import TreeParameters
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
