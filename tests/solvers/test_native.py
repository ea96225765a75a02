"""The native solver: its compiled parts, known answers, and what it promises about every result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from brute_force import cheapest_assignment
from helpers import SURROGATES, random_case, surrogate_id
from likelihood_cases import random_problem
from native_cases import make_engine, make_problem, solve
from softsplit.engines.compiled import CompiledRows
from softsplit.problem.leaves import SMOOTHING
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.penalties import PenaltyPair, exponential
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers import BasinHoppingSolver, Budget
from softsplit.solvers.active_set.objective import expect, soften
from softsplit.solvers.active_set.state import EVALUATE_ONLY, NEVER, DescentLimits
from softsplit.solvers.basin_hopping import run as engine_module
from softsplit.solvers.basin_hopping.budget import ClockOptions
from softsplit.solvers.basin_hopping.stages import restore_rates
from softsplit.solvers.starts.rules import draw_start
from softsplit.training.best import best_solution
from softsplit.training.multistart import multistart
from softsplit.tree.parameters import Topology, TreeParameters
from softsplit.tree.routing import split_scores


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


# The engine around the compiled descent: what it leaves behind describes the point it ended at.


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
