"""The non-smooth part of the native solver: subgradients, faces, trial points, fixed branches."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import SCOPES, SURROGATES, random_tree, surrogate_id
from native_cases import cheapest_leaves, make_engine, make_problem, sparse_of
from softsplit.problem.penalties import PenaltyPair, of_single_features
from softsplit.solvers.active_set.faces import (
    FIXED,
    FREE,
    TIED,
    clip_trial,
    penalty_value,
    subgradient,
)
from softsplit.tree.parameters import Block, TreeParameters

every_surrogate = pytest.mark.parametrize("surrogate", SURROGATES, ids=surrogate_id)


@every_surrogate
@pytest.mark.parametrize("scope", ["local", "global_"])
def test_subgradient_is_the_steepest_descent_rate(surrogate, scope):
    """-|slope|^2 is the directional derivative of F along -slope, kinks and ties included."""
    problem = make_problem(surrogate=surrogate, **{scope: 0.3}).with_steepness(20.0)
    rng = np.random.default_rng(1)
    theta = rng.uniform(-0.8, 0.8, (3, 5))
    theta[1, 0], theta[:, 1] = 0.0, 0.0
    theta[:, 2] = [0.5, -0.5, 0.2]  # two tied at the maximum
    leaves = cheapest_leaves(problem, theta, np.full((3, 4), 1 / 3))
    tree = TreeParameters.from_splits(theta, leaves)
    found = problem.evaluate_cost(tree)
    gradient = np.ascontiguousarray(np.vstack([found.weights, found.thresholds]).T)
    engine = make_engine(problem)
    slope, state = np.empty_like(theta), np.empty(theta.shape, dtype=np.int8)
    sparse = sparse_of(engine)
    scratch = np.empty(theta.size)
    subgradient(
        theta, gradient, sparse, problem.free_branches, problem.global_floor, slope, state, scratch
    )
    length = 1e-7 / np.max(np.abs(slope))
    ahead = problem.objective(TreeParameters.from_splits(theta - length * slope, leaves))
    rate = (ahead - problem.objective(tree)) / length
    assert rate == pytest.approx(-np.sum(slope**2), rel=1e-3)


@every_surrogate
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("branches", [(0,), (1, 2), (0, 1, 2)])
def test_penalty_value_is_that_of_the_problem(branches, scope, surrogate):
    problem = make_problem().with_penalties(PenaltyPair.of(surrogate, *SCOPES[scope]))
    anchor = random_tree(np.random.default_rng(3), 4, 3, 2)
    part = problem.restrict(Block(branches, ()), anchor)
    sparse = sparse_of(make_engine(part))
    value = penalty_value(anchor.splits, sparse, part.global_floor)
    assert value == pytest.approx(part.penalties.value(anchor.weights), rel=1e-12)


@every_surrogate
def test_a_row_below_the_floor_costs_what_the_floor_costs(surrogate):
    """Seen from the free branches alone: the maximum is paid for by fixed ones."""
    problem = make_problem(surrogate=surrogate, global_=0.7)
    begins, places = of_single_features(4).places(1)
    sparse = sparse_of(make_engine(problem))._replace(begins=begins, places=places)
    theta = np.array([[0.1, -0.9, 0.0, 0.2, 0.3]])
    floor = np.array([0.5, 0.5, 0.0, 0.2])
    expected = 0.7 * np.sum(surrogate.value(np.array([0.5, 0.9, 0.0, 0.2])))
    assert penalty_value(theta, sparse, floor) == pytest.approx(expected, rel=1e-12)


def trial(theta, direction, state, floor, free=None, **strengths):
    """The trial point a full step in ``direction`` leads to."""
    sparse = sparse_of(make_engine(make_problem(features=len(floor), **strengths)))
    ones = np.ones(theta.size)
    sparse = sparse._replace(low=-ones, high=ones)
    slope, moved = -direction, np.empty_like(theta)
    free = np.ones(len(theta), dtype=bool) if free is None else free
    clip_trial(theta, direction, slope, state, sparse, free, floor, 1.0, moved)
    return moved


def test_a_falling_maximum_takes_the_rest_of_its_row_down_with_it():
    theta = np.array([[0.8, 0.0], [0.5, 0.0], [-0.1, 0.0]])
    direction = np.array([[-0.5, 0.0], [0.0, 0.0], [0.0, 0.0]])
    state = np.array([[TIED, FREE], [FREE, FREE], [FREE, FREE]], dtype=np.int8)
    moved = trial(theta, direction, state, np.zeros(1), global_=0.3)
    np.testing.assert_allclose(moved[:, 0], [0.3, 0.3, -0.1])


def test_below_the_floor_a_falling_maximum_takes_nothing_down():
    """Between 0 and the floor coefficients are free of charge: only what is above is cut."""
    theta = np.array([[0.8, 0.0], [0.5, 0.0], [-0.35, 0.0], [0.4, 0.0]])
    direction = np.zeros_like(theta)
    direction[0, 0] = -0.5
    state = np.full(theta.shape, FREE, dtype=np.int8)
    state[0, 0], state[3] = TIED, FIXED
    free = np.array([True, True, True, False])
    moved = trial(theta, direction, state, np.array([0.4]), free, global_=0.3)
    np.testing.assert_allclose(moved[:, 0], [0.3, 0.4, -0.35, 0.4])


@every_surrogate
def test_no_global_slope_below_the_floor(surrogate):
    problem = make_problem(surrogate=surrogate, global_=0.7)
    anchor = random_tree(np.random.default_rng(3), 4, 3, 2)
    anchor.weights[:] = [[0.8, 0.3, -0.2], [0.1, 0.6, 0.2], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    part = problem.restrict(Block((1, 2), ()), anchor)
    theta, gradient = anchor.splits, np.full((3, 5), 0.01)
    slope, state = np.empty_like(theta), np.empty(theta.shape, dtype=np.int8)
    sparse = sparse_of(make_engine(part))
    scratch = np.empty(theta.size)
    subgradient(
        theta, gradient, sparse, part.free_branches, part.global_floor, slope, state, scratch
    )
    assert np.all(state[0] == FIXED) and not slope[0].any()
    np.testing.assert_array_equal(slope[1:, [0, 2]], 0.01)  # at or below the fixed branch
    steep = 0.7 * surrogate.slope(np.array([0.6]))[0]
    assert slope[1, 1] == pytest.approx(0.01 + steep)
    assert state[1, 1] == TIED and state[2, 1] == FREE
