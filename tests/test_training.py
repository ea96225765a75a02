"""Starts and multistart: reproducible, and independent of how the work is spread."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from softsplit.loss import ExpectedCost
from softsplit.penalties import PenaltyPair, exponential
from softsplit.problem import TrainingProblem
from softsplit.samples import Samples
from softsplit.solvers import Budget, NativeSolver, Solution, Status, make_solver
from softsplit.starts import RULES, draw_start
from softsplit.training import NoFeasibleTreeError, best_solution, multistart
from softsplit.tree import Block, Topology, TreeParameters


@pytest.fixture(scope="module")
def problem():
    X, y = load_iris(return_X_y=True)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return TrainingProblem(
        Samples.from_arrays(X, y, 3),
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
    np.testing.assert_allclose(tree.leaf_classes.sum(axis=0), 1)


def test_points_start_cuts_through_the_data(problem):
    """Unlike uniform starts, every root split has rows on both sides."""
    sides = []
    for seed in range(20):
        tree = draw_start("points", problem, np.random.default_rng(seed)).parameters
        score = tree.weights[:, 0] @ problem.samples.features / 4 - tree.thresholds[0]
        sides.append(np.mean(score > 0))
    assert np.mean([(0 < side < 1) for side in sides]) > 0.8


def test_groups_start_separates_iris_at_once(problem):
    costs = [
        problem.cost(draw_start("groups", problem, np.random.default_rng(seed)).parameters)
        for seed in range(10)
    ]
    assert min(costs) < 15


def test_starts_keep_the_anchor_outside_the_block(problem):
    anchor = TreeParameters.neutral(4, 3, Topology(2))
    part = problem.restrict(Block((1,), (0, 1)), anchor)
    tree = draw_start("uniform", part, np.random.default_rng(0)).parameters
    assert not np.any(tree.weights[:, [0, 2]])
    assert np.any(tree.weights[:, 1])
    np.testing.assert_array_equal(tree.leaf_classes[:, 2:], anchor.leaf_classes[:, 2:])


def test_unknown_rule_lists_the_known_ones(problem):
    with pytest.raises(ValueError, match="unknown start rule 'x'; choose one of"):
        draw_start("x", problem, np.random.default_rng(0))


@pytest.mark.parametrize("name", ["native", "ipopt"])
def test_results_do_not_depend_on_the_number_of_jobs(problem, name):
    if name == "ipopt":
        pytest.importorskip("casadi", reason="needs softsplit[ipopt]")
    settings = {"n_starts": 4, "seed": 3, "budget": Budget(max_iter=60)}
    runs = [
        multistart(problem, make_solver(name), n_jobs=n_jobs, **settings) for n_jobs in (1, 2, 4)
    ]
    for other in runs[1:]:
        for one, two in zip(runs[0], other, strict=True):
            np.testing.assert_array_equal(one.parameters.weights, two.parameters.weights)
            assert one.objective == two.objective
            assert one.n_iter == two.n_iter


def test_a_start_does_not_depend_on_how_many_follow(problem):
    few = multistart(problem, NativeSolver(), n_starts=2, seed=1)
    many = multistart(problem, NativeSolver(), n_starts=4, seed=1)
    for one, two in zip(few, many, strict=False):
        np.testing.assert_array_equal(one.parameters.weights, two.parameters.weights)


class Scripted:
    """A solver that ends as told, to test what multistart makes of it."""

    name = "scripted"
    start_rules = ("uniform",)
    rivals = 0
    releases_gil = True
    zero_threshold = 0.0

    def __init__(self, ends, interrupt_at=None):
        self.ends, self.interrupt_at, self.count = list(ends), interrupt_at, 0

    def solve(self, problem, start, budget):
        if self.count == self.interrupt_at:
            raise KeyboardInterrupt
        self.count += 1
        return Solution.measure(
            problem, start.parameters, self.ends[self.count - 1], n_iter=1, seconds=0.0, solver="x"
        )


def test_failed_starts_never_win(problem):
    found = multistart(problem, Scripted([Status.FAILED, Status.OPTIMAL]), n_starts=2)
    failed, good = found
    assert not failed.status.usable
    if good.status.usable:
        assert best_solution(found) is good


def test_no_usable_start_is_an_error(problem):
    found = multistart(problem, Scripted([Status.FAILED] * 2), n_starts=2)
    with pytest.raises(NoFeasibleTreeError, match=r"none of 2 starts .* FAILED"):
        best_solution(found)


def test_infeasible_point_cannot_pose_as_solved(problem):
    outside = TreeParameters.neutral(4, 3, Topology(2))
    outside.weights[0, 0] = 2.0
    found = Solution.measure(problem, outside, Status.OPTIMAL, n_iter=1, seconds=0.0, solver="x")
    assert found.status is Status.INFEASIBLE
    assert found.violation == pytest.approx(1.0)


def test_interruption_keeps_finished_starts(problem, caplog):
    found = multistart(problem, Scripted([Status.OPTIMAL] * 5, interrupt_at=2), n_starts=5)
    assert len(found) == 2
    assert "interrupted after 2 of 5 starts" in caplog.text


def test_interruption_before_the_first_result_is_passed_on(problem):
    with pytest.raises(KeyboardInterrupt):
        multistart(problem, Scripted([], interrupt_at=0), n_starts=5)
