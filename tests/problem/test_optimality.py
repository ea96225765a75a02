"""Residuals of the first-order conditions at points that are stationary by construction."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from helpers import SURROGATES, surrogate_id
from softsplit.engines.compiled import CompiledRows
from softsplit.problem.loss import Evaluation, ExpectedCost
from softsplit.problem.optimality import kkt, rate_multipliers, stationarity
from softsplit.problem.penalties import PenaltyPair, linear
from softsplit.problem.problem import TrainingProblem
from softsplit.tree.parameters import Block, Topology, TreeParameters

every_penalty = pytest.mark.parametrize("surrogate", SURROGATES, ids=surrogate_id)
every_scope = pytest.mark.parametrize("scope", ["local_strength", "global_strength"])


def two_class_problem(minimum_rates=(0.0, 0.0)):
    """Two overlapping classes in one feature; class 0 is larger in it, so that it goes left."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.uniform(0.35, 1.0, 30), rng.uniform(0.0, 0.65, 20)])[:, None]
    return TrainingProblem(
        rows=CompiledRows.from_arrays(X, np.repeat([0, 1], [30, 20]), 2),
        topology=Topology(1),
        loss=ExpectedCost.uniform(2),
        penalties=PenaltyPair.of(linear()),
        minimum_rates=np.array(minimum_rates),
        steepness=8.0,
    )


def one_split(weight, threshold):
    return TreeParameters(np.array([[weight]]), np.array([threshold]), np.eye(2))


def with_best_threshold(problem, weight):
    """The split with this weight and the threshold at which the cost is flat."""

    def slope(threshold):
        return problem.evaluate_cost(one_split(weight, threshold)).thresholds[0]

    return one_split(weight, brentq(slope, 0.1, 0.9, xtol=1e-15))


def penalise(problem, tree, surrogate, scope, multipliers=None):
    """The problem whose penalty exactly balances the slope of the cost in the weight."""
    slope = problem.evaluate_cost(tree, multipliers).weights[0, 0]
    assert slope < -0.05, "the cost must pull the weight away from zero"
    unit = surrogate.slope(np.abs(tree.weights).ravel())[0]
    return problem.with_penalties(PenaltyPair.of(surrogate, **{scope: -slope / unit}))


@every_scope
@every_penalty
def test_a_balanced_weight_is_stationary(surrogate, scope):
    bare = two_class_problem()
    tree = with_best_threshold(bare, 0.6)
    problem = penalise(bare, tree, surrogate, scope)
    found = kkt(problem, tree)
    assert found.residual < 1e-12
    assert found.multipliers.tolist() == [0, 0]


@every_scope
@every_penalty
def test_next_to_it_is_not_stationary(surrogate, scope):
    bare = two_class_problem()
    tree = with_best_threshold(bare, 0.6)
    problem = penalise(bare, tree, surrogate, scope)
    assert kkt(problem, with_best_threshold(bare, 0.62)).stationarity > 1e-3
    shifted = replace(tree, thresholds=tree.thresholds + 0.02)
    assert kkt(problem, shifted).stationarity > 1e-3
    assert kkt(bare, tree).stationarity > 1e-2


def test_a_weight_that_is_pressed_against_the_box_is_stationary():
    problem = two_class_problem()
    tree = with_best_threshold(problem, 1.0)
    assert problem.evaluate_cost(tree).weights[0, 0] < -0.05
    assert kkt(problem, tree).residual < 1e-12
    inside = with_best_threshold(problem, 0.9)
    assert kkt(problem, inside).stationarity > 0.05


def test_leaves_the_wrong_way_round_leave_a_gap():
    problem = two_class_problem()
    tree = with_best_threshold(problem, 1.0)
    wrong = replace(tree, leaf_values=np.eye(2)[::-1])
    found = kkt(problem, wrong)
    assert found.leaf_gap == pytest.approx(problem.cost(wrong) - problem.cost(tree))
    assert found.leaf_gap > 1


@every_scope
@every_penalty
def test_an_active_rate_gets_its_multiplier(surrogate, scope):
    """Far off the best threshold, only the minimum rate of class 1 holds the split in place."""
    free = two_class_problem()
    tree = one_split(0.6, with_best_threshold(free, 0.6).thresholds[0] + 0.06)
    bare = two_class_problem((0.0, free.rates(tree)[1]))
    slope = free.evaluate_cost(tree).thresholds[0]
    priced = free.evaluate_cost(tree, np.array([0.0, 1.0])).thresholds[0]
    multipliers = np.array([0.0, slope / (slope - priced)])
    assert multipliers[1] > 0.5
    problem = penalise(bare, tree, surrogate, scope, multipliers)
    found = kkt(problem, tree)
    np.testing.assert_allclose(found.multipliers, multipliers, rtol=1e-9)
    assert found.residual < 1e-11
    assert kkt(problem, tree, np.zeros(2)).stationarity > 1e-2


def test_multipliers_are_never_negative():
    """On the other side the rate would have to pull: that is no stationary point."""
    free = two_class_problem()
    tree = one_split(0.6, with_best_threshold(free, 0.6).thresholds[0] - 0.06)
    problem = two_class_problem((0.0, free.rates(tree)[1]))
    assert rate_multipliers(problem, tree, problem.shortfalls(tree)).tolist() == [0, 0]
    assert kkt(problem, tree).stationarity > 1e-2


def test_a_multiplier_of_a_slack_rate_breaks_complementarity():
    problem = two_class_problem((0.0, 0.1))
    tree = with_best_threshold(problem, 1.0)
    slack = problem.rates(tree)[1] - 0.1
    assert slack > 0.1
    found = kkt(problem, tree, np.array([0.0, 2.0]))
    assert found.complementarity == pytest.approx(2.0 * slack)


def test_a_missed_rate_is_a_violation():
    problem = two_class_problem((0.0, 1.0))
    tree = with_best_threshold(problem, 1.0)
    found = kkt(problem, tree)
    assert found.violation == pytest.approx(1 - problem.rates(tree)[1])
    assert found.residual >= found.violation > 0.05


def test_a_zero_weight_stays_under_a_strong_penalty_and_leaves_under_a_weak_one():
    bare = two_class_problem()
    tree = TreeParameters(np.zeros((1, 1)), np.ones(1), np.eye(2)[::-1])
    slope = abs(bare.evaluate_cost(tree).weights[0, 0])
    assert slope > 1e-4
    for scope in ("local_strength", "global_strength"):
        strong = bare.with_penalties(PenaltyPair.of(linear(), **{scope: 1.01 * slope}))
        weak = bare.with_penalties(PenaltyPair.of(linear(), **{scope: 0.9 * slope}))
        assert kkt(strong, tree).stationarity < 1e-12
        assert kkt(weak, tree).stationarity == pytest.approx(0.1 * slope)


def test_a_fixed_branch_pays_the_global_penalty_of_the_others():
    """Up to the coefficient of the fixed root, the weights below it are free of charge."""
    leaves = np.eye(2)[:, [0, 1, 0, 1]]
    problem = replace(
        two_class_problem(),
        topology=Topology(2),
        penalties=PenaltyPair.of(linear(), global_strength=50.0),
    )
    flat = Evaluation(0.0, np.zeros((1, 3)), np.zeros(3), np.zeros((2, 4)), np.zeros((2, 4)))
    for root, expected in [(0.9, 0.0), (0.5, 0.0), (0.1, 0.4), (0.0, 0.5)]:
        tree = TreeParameters(np.array([[root, 0.5, 0.5]]), np.zeros(3), leaves)
        block = problem.restrict(Block((1, 2), (0, 1, 2, 3)), tree)
        assert stationarity(block, tree, flat) == pytest.approx(expected)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_gradient_of_a_rate_is_that_of_finite_differences(depth):
    rng = np.random.default_rng(depth)
    X, y = rng.uniform(size=(40, 3)), np.arange(40) % 2
    problem = TrainingProblem(
        rows=CompiledRows.from_arrays(X, y, 2, rng.uniform(0.5, 2, 40)),
        topology=Topology(depth),
        loss=ExpectedCost(rng.uniform(size=(2, 2))),
        penalties=PenaltyPair.of(linear()),
        minimum_rates=np.zeros(2),
        steepness=8.0,
    )
    shape = (3, problem.topology.n_branches)
    leaves = rng.dirichlet([1, 1], problem.topology.n_leaves).T
    tree = TreeParameters(rng.uniform(-1, 1, shape), rng.uniform(-0.3, 0.3, shape[1]), leaves)
    for k in (0, 1):
        found = problem.rate_gradient(tree, k)
        assert found.value == pytest.approx(problem.rates(tree)[k], rel=1e-13)
        for part in ("weights", "thresholds", "leaf_values"):
            values = getattr(tree, part)
            for place in np.ndindex(values.shape):
                step = np.zeros(values.shape)
                step[place] = 1e-6
                ends = [
                    problem.rates(replace(tree, **{part: values + sign * step}))[k]
                    for sign in (1, -1)
                ]
                slope = (ends[0] - ends[1]) / 2e-6
                assert getattr(found, part)[place] == pytest.approx(slope, abs=1e-8)
