"""Starts and multistart: reproducible, and independent of how the work is spread."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from joblib import cpu_count
from sklearn.datasets import load_iris

from softsplit import SoftTreeClassifier
from softsplit.engines.compiled import CompiledRows
from softsplit.problem.loss import ExpectedCost
from softsplit.problem.penalties import PenaltyPair, exponential
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers import BasinHoppingSolver, Budget, Solution, Solver, Status
from softsplit.solvers.starts.rules import RULES, draw_start
from softsplit.support.parallel import n_workers
from softsplit.training.best import best_solution
from softsplit.training.multistart import multistart
from softsplit.tree.parameters import Topology, TreeParameters


@pytest.fixture(scope="module")
def problem():
    X, y = load_iris(return_X_y=True)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return TrainingProblem(
        CompiledRows.from_arrays(X, y, 3),
        Topology(2),
        ExpectedCost.uniform(3),
        PenaltyPair.of(exponential(), global_strength=0.5),
        np.full(3, 0.1),
    )


@pytest.mark.parametrize("rule", RULES)
def test_starts_lie_in_the_box_with_leaf_distributions(problem, rule):
    tree = draw_start(rule, problem, np.random.default_rng(0)).parameters
    assert np.max(np.abs(tree.weights)) <= 1
    assert np.max(np.abs(tree.thresholds)) <= 1
    np.testing.assert_allclose(tree.leaf_values.sum(axis=0), 1)


def test_unknown_rule_lists_the_known_ones(problem):
    with pytest.raises(ValueError, match="unknown start rule 'x'; choose one of"):
        draw_start("x", problem, np.random.default_rng(0))


class Scripted(Solver):
    """A solver that ends as told, to test what multistart makes of it."""

    name = "scripted"
    start_rules = ("uniform",)
    candidates = 0
    releases_gil = True
    zero_threshold = 0.0

    def __init__(self, ends, interrupt_at=None):
        self.ends, self.interrupt_at, self.count = list(ends), interrupt_at, 0

    def solve(self, problem, start, budget):
        if self.count == self.interrupt_at:
            raise KeyboardInterrupt
        self.count += 1
        return Solution.measure(
            problem,
            start.parameters,
            self.ends[self.count - 1],
            tol=np.inf,
            n_iter=1,
            seconds=0.0,
            solver="x",
        )


def test_of_trees_that_cost_the_same_the_gentler_one_is_kept(problem):
    lowest, other = multistart(problem, BasinHoppingSolver(), n_starts=2, seed=0)
    steep = replace(lowest, objective=5.0)
    halved = replace(other.parameters, weights=0.5 * lowest.parameters.weights)
    gentle = replace(other, objective=5.0 + 1e-7, parameters=halved)
    assert best_solution([steep, gentle]) is steep
    assert best_solution([steep, gentle], tie=1e-6) is gentle
    assert best_solution([steep, gentle], tie=1e-8) is steep


def test_infeasible_point_cannot_pose_as_solved(problem):
    outside = TreeParameters.neutral(4, 3, Topology(2))
    outside.weights[0, 0] = 2.0
    found = Solution.measure(
        problem, outside, Status.OPTIMAL, tol=1e-6, n_iter=1, seconds=0.0, solver="x"
    )
    assert found.status is Status.INFEASIBLE
    assert found.violation == pytest.approx(1.0)


def test_interruption_keeps_finished_starts(problem):
    budget = Budget()
    solver = Scripted([Status.OPTIMAL] * 5, interrupt_at=2)
    found = multistart(problem, solver, n_starts=5, budget=budget)
    assert len(found) == 2
    assert budget.stopped


def test_interruption_before_the_first_result_is_passed_on(problem):
    with pytest.raises(KeyboardInterrupt):
        multistart(problem, Scripted([], interrupt_at=0), n_starts=5)


def test_there_are_no_more_workers_than_work():
    assert n_workers(20_000, 3) == 3
    assert n_workers(None, 3) == n_workers(1, 3) == 1
    assert n_workers(100_000, 10**6) <= 8 * cpu_count()
    before = threading.active_count()
    X, y = load_iris(return_X_y=True)
    SoftTreeClassifier(n_starts=3, n_jobs=20_000, random_state=0).fit(X, y)
    assert threading.active_count() <= before + 3
