"""The native solver: its compiled parts, known answers, and what it promises about every result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers import SURROGATES, surrogate_id
from native_cases import make_engine, make_problem, solve
from softsplit.engines.compiled import CompiledRows
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.penalties import PenaltyPair, exponential
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers import BasinHoppingSolver, Budget
from softsplit.solvers.active_set.state import (
    NEVER,
    DescentLimits,
)
from softsplit.solvers.basin_hopping import run as engine_module
from softsplit.solvers.basin_hopping.budget import ClockOptions
from softsplit.solvers.basin_hopping.stages import restore_rates
from softsplit.solvers.starts.rules import draw_start
from softsplit.training.multistart import best_solution, multistart
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
