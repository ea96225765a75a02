"""What every solver promises: a feasible tree, honestly told, the same each time, within limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from instances import TRAINED
from softsplit.solvers import Budget, Status
from softsplit.solvers.starts.rules import draw_start
from softsplit.tree.parameters import Block

pytestmark = pytest.mark.parametrize(("solver", "make"), TRAINED)


def begin(solver, problem):
    rule = solver.start_rule(problem, 0)
    return draw_start(rule, problem, np.random.default_rng(0), solver.n_candidates(problem))


def run(solver, problem, budget=None, start=None):
    start = begin(solver, problem) if start is None else start
    return solver.solve(problem, start, budget or Budget())


def assert_honest(problem, found):
    """What a solution says of itself is what the problem says of its tree."""
    tree = found.parameters
    assert found.cost == pytest.approx(problem.cost(tree), rel=1e-9, abs=1e-9)
    assert found.objective == pytest.approx(problem.objective(tree), rel=1e-9, abs=1e-9)
    assert found.violation <= 1e-6 and problem.violation(tree).largest <= 1e-6
    assert np.all(np.isfinite(tree.weights)) and np.all(np.isfinite(tree.thresholds))


def test_the_tree_is_feasible_and_better_than_its_start(solver, make):
    problem = make()
    start = begin(solver, problem)
    found = run(solver, problem, start=start)
    assert_honest(problem, found)
    assert found.status in (Status.OPTIMAL, Status.ACCEPTABLE)
    assert found.solver == solver.name and found.n_iter > 0 and found.seconds >= 0
    begun = problem.objective(problem.best_leaves(start.parameters))
    assert found.objective <= begun + 1e-6 * problem.cost_unit


def test_the_same_question_has_the_same_answer(solver, make):
    one, two = (run(solver, make()) for _ in range(2))
    assert one.objective == two.objective and one.n_iter == two.n_iter
    assert_array_equal(one.parameters.weights, two.parameters.weights)
    assert_array_equal(one.parameters.leaf_values, two.parameters.leaf_values)


def test_few_iterations_are_kept_and_told(solver, make):
    problem = make()
    found = run(solver, problem, Budget(max_iter=2))
    assert_honest(problem, found)
    assert found.status is Status.MAX_ITER


@pytest.mark.parametrize("end", [Status.TIME_LIMIT, Status.INTERRUPTED])
def test_a_budget_that_is_spent_gives_a_tree_at_once(solver, make, end):
    problem = make()
    budget = Budget(time_limit=0.0 if end is Status.TIME_LIMIT else None)
    if end is Status.INTERRUPTED:
        budget.stop()
    found = run(solver, problem, budget)
    assert found.status is end
    assert_honest(problem, found)


def test_only_the_block_is_moved(solver, make):
    problem = make()
    anchor = run(solver, problem).parameters
    part = problem.restrict(Block((1,), (0, 1, 2, 3)), anchor)
    if solver.supports(part):
        pytest.skip("needs the whole tree")
    moved = anchor.weights.copy()
    moved[:, 1] = 0.0
    start = replace(begin(solver, problem), parameters=part.pin(replace(anchor, weights=moved)))
    found = run(solver, part, start=start).parameters
    assert_array_equal(found.weights[:, [0, 2]], anchor.weights[:, [0, 2]])
    assert_array_equal(found.thresholds[[0, 2]], anchor.thresholds[[0, 2]])
