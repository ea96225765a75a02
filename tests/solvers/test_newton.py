"""The matrix behind the native solver's Newton directions, against finite differences.

``newton_direction`` is linear in the slopes it is given, so that one call per variable shows the
whole matrix. Ties are one variable, fixed coefficients none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers import SCOPES, SURROGATES, classes_for, sensitive_case, surrogate_id
from instances import LOSSES
from softsplit.engines.curvature import NEGLIGIBLE
from softsplit.problem.penalties import PenaltyPair, Surrogate, exponential, linear
from softsplit.solvers.active_set.directions import newton_direction
from softsplit.solvers.active_set.faces import FIXED, TIED, subgradient
from softsplit.solvers.active_set.objective import smooth_derivative, smooth_value
from softsplit.solvers.active_set.state import EVALUATE_ONLY
from softsplit.solvers.base import Budget
from softsplit.solvers.basin_hopping.budget import IterationBudget
from softsplit.solvers.basin_hopping.run import DescentRun

TOLERANCE = 1e-6
DEPTHS = [1, 2, 3, 4]
STEEPNESSES = [2.0, 32.0, 512.0]

every_depth = pytest.mark.parametrize("depth", DEPTHS)
every_rate = pytest.mark.parametrize("active", [False, True], ids=["no rate", "active rate"])
every_scope = pytest.mark.parametrize("scope", SCOPES)
# What a penalty adds does not depend on the routing: each is compared on one tree, and each tree
# with one penalty.
ROUTINGS = [
    (exponential(), "both", depth, steepness) for depth in DEPTHS for steepness in STEEPNESSES
]
PENALISED = [(surrogate, scope, 2, 32.0) for surrogate in SURROGATES for scope in SCOPES]


class Point:
    """A point on a face of the penalties, with all that the compiled functions need.

    Under a global penalty two coefficients of opposite signs share the maximum of feature 0;
    under a local one a coefficient of feature 2 is fixed at zero. No gate is saturated.
    """

    def __init__(self, depth, steepness, active, surrogate, scope, loss=None):
        case = sensitive_case(3, depth, steepness)
        if loss is not None:
            case = replace(case, problem=replace(case.problem, loss=loss))
        problem, leaves = case.problem, case.tree.leaf_values
        rates, multipliers = np.zeros(problem.n_groups), np.zeros(problem.n_groups)
        if active:  # the first rate is out of reach, the second has a multiplier, others rest
            rates[0], multipliers[1] = 0.95, 20.0
        self.theta = self._on_the_face(case, scope)
        # Penalties that keep the tie tied and the zero at zero, whatever the slopes are.
        sizes = np.array([[0.0, 0.96]])
        slopes = np.max(np.abs(problem.evaluate_cost(case.tree, 40.0 * rates).weights))
        at_zero, at_the_tie = surrogate.slope(sizes)[0]
        self.local = 8 * slopes / at_zero if SCOPES[scope][0] else 0.0
        self.global_ = 8 * slopes / at_the_tie if SCOPES[scope][1] else 0.0
        problem = replace(
            problem,
            minimum_rates=rates,
            penalties=PenaltyPair.of(surrogate, self.local, self.global_),
        )
        engine = DescentRun(problem, IterationBudget(Budget(), 100))
        engine.descend(self.theta, leaves, EVALUATE_ONLY._replace(newton_from=0))
        terms, self.sparse = engine.added()[0]
        self.passes, self.work, self.surrogate = engine.passes, engine.state, surrogate
        self.terms = terms._replace(multipliers=multipliers, rate_weight=10.0 if active else 0.0)
        self.arrays = engine.passes
        self.slope, self.state = np.empty_like(self.theta), self.work.faces
        gradient, free, floor = self.gradient(self.theta), self.work.free, self.work.floor
        scratch = np.empty(self.theta.size)
        subgradient(self.theta, gradient, self.sparse, free, floor, self.slope, self.state, scratch)
        self.basis = self._basis()
        assert np.max(np.abs(steepness * self.arrays.scores)) < 4
        assert np.min(np.max(np.abs(self.arrays.slopes), axis=0)) > NEGLIGIBLE * np.max(
            np.abs(self.arrays.slopes)
        )

    @staticmethod
    def _on_the_face(case, scope):
        theta = case.tree.splits
        weights = theta[:, :-1].copy()
        if SCOPES[scope][1]:
            weights[:2, 0] = [0.96, -0.96][: len(theta)]
        if SCOPES[scope][0]:
            weights[-1, 2] = 0.0
        # The thresholds follow: the splits stay between the rows.
        centre = case.problem.samples.features.mean(axis=1)
        theta[:, -1] += (weights - theta[:, :-1]) @ centre / len(centre)
        theta[:, :-1] = weights
        return theta

    def value(self, theta):
        return self._smooth(theta, np.empty_like(theta))

    def gradient(self, theta):
        found = np.empty_like(theta)
        self._smooth(theta, found)
        return found

    def _smooth(self, theta, gradient):
        own = self.work
        given = theta, self.passes, self.terms, own.free, own.active, gradient
        value = smooth_value(*given)
        smooth_derivative(*given)
        return value

    def _basis(self):
        """One column per variable: how the entries of theta follow it."""
        columns = []
        for j in range(self.theta.shape[1]):
            tied = self.state[:, j] == TIED
            singles = np.flatnonzero((self.state[:, j] != FIXED) & ~tied)
            if tied.any():
                columns.append((tied * np.sign(self.theta[:, j]), j))
            columns.extend((np.eye(len(self.theta))[t], j) for t in singles)
        basis = np.zeros((*self.theta.shape, len(columns)))
        for v, (entries, j) in enumerate(columns):
            basis[:, j, v] = entries
        return basis.reshape(self.theta.size, -1)

    def differences(self, function, step):
        """Five-point central differences along every variable, one column each."""
        columns = []
        for v in range(self.basis.shape[1]):
            move = step * self.basis[:, v].reshape(self.theta.shape)
            near = function(self.theta + move) - function(self.theta - move)
            far = function(self.theta + 2 * move) - function(self.theta - 2 * move)
            columns.append(np.ravel((8 * near - far) / (12 * step)))
        return np.array(columns).T

    def penalty_curvature(self):
        """Per variable: local terms of each of its entries, the global one of a tie once.

        That ``Surrogate.curvature`` is the curvature is checked in test_penalties.py.
        """
        sizes, tied = np.abs(self.theta), self.state == TIED
        sizes[:, -1], tied[:, -1] = 0.0, False
        curvature = np.where(sizes > 0, self.surrogate.curvature(sizes), 0.0)
        share = self.local + self.global_ * tied / np.maximum(tied.sum(axis=0), 1)
        return np.abs(self.basis).T @ (share * curvature).ravel()

    def expected_matrix(self):
        smooth = self.basis.T @ self.differences(self.gradient, 2e-3 / self.arrays.steepness)
        return smooth, np.diag(self.penalty_curvature())

    def metric(self, matrix):
        """What damping is a multiple of: the preconditioner's metric, in units of the matrix."""
        squares = np.abs(self.basis).T @ np.tile(1.0 / self.work.diagonal, len(self.theta))
        return np.diag(squares) * np.max(np.abs(np.diag(matrix)) / squares)

    def direction(self, slope, damping):
        """Newton direction for the given slopes; ``damping`` is tried first."""
        self.gradient(self.theta)  # the slopes of theta into the workspace
        self.work.damping[0] = 10.0 * damping
        self.work.slope[...] = slope
        arguments = (self.passes, self.terms, self.sparse, self.work)
        assert newton_direction(self.theta, *arguments)
        return self.work.direction.copy()

    def found_matrix(self, expected):
        """The matrix from its inverse, which strong damping keeps harmless."""
        damping = 100.0
        per_variable = self.basis / np.sum(self.basis**2, axis=0)
        columns = [
            -per_variable.T @ self.direction(unit.reshape(self.theta.shape), damping).ravel()
            for unit in per_variable.T
        ]
        assert self.work.damping[0] == pytest.approx(damping), "not damped as asked for"
        return np.linalg.inv(np.array(columns).T) - damping * self.metric(expected)


@pytest.mark.parametrize(
    ("surrogate", "scope", "depth", "steepness"),
    ROUTINGS + PENALISED,
    ids=lambda part: surrogate_id(part) if isinstance(part, Surrogate) else str(part),
)
@every_rate
def test_newton_matrix_is_the_hessian_on_the_face(surrogate, active, scope, depth, steepness):
    point = Point(depth, steepness, active, surrogate, scope)
    smooth, penalties = point.expected_matrix()
    expected = smooth + penalties
    scale = np.max(np.abs(np.diag(expected)))
    found = point.found_matrix(expected)
    assert np.max(np.abs(smooth)) > 1e-2
    # The curvature of the penalties must not be large enough to hide the rest.
    allowed = TOLERANCE * max(np.max(np.abs(smooth)), 1e-2 * scale)
    assert np.max(np.abs(found - expected)) <= allowed


@every_depth
@every_rate
@pytest.mark.parametrize("loss", LOSSES)
def test_newton_matrix_of_every_loss(loss, active, depth):
    point = Point(depth, 8.0, active, linear(), "both", LOSSES[loss](classes_for(depth)))
    smooth, penalties = point.expected_matrix()
    expected = smooth + penalties
    found = point.found_matrix(expected)
    assert np.max(np.abs(smooth)) > 1e-2
    allowed = 10 * TOLERANCE * max(np.max(np.abs(smooth)), 1e-2 * np.max(np.abs(expected)))
    assert np.max(np.abs(found - expected)) <= allowed


@every_depth
@pytest.mark.parametrize("scope", ["global", "both"])
def test_the_points_have_a_tie_and_a_zero(scope, depth):
    point = Point(depth, 32.0, False, linear(), scope)
    if depth > 1:
        assert np.all(point.state[:2, 0] == TIED)
        assert np.prod(np.sign(point.theta[:2, 0])) == -1
    assert (point.state[-1, 2] == FIXED) == (scope == "both")
    assert np.all(point.theta[point.state != FIXED] != 0)


@every_depth
def test_active_rates_matter_at_the_points(depth):
    still, active = (Point(depth, 32.0, on, linear(), "local") for on in (False, True))
    assert np.count_nonzero(active.work.active) == 2
    change = active.expected_matrix()[0] - still.expected_matrix()[0]
    assert np.max(np.abs(change)) > 0.02 * np.max(np.abs(still.expected_matrix()[0]))


@every_depth
@every_scope
@every_rate
def test_newton_direction_solves_the_damped_system(active, scope, depth):
    point = Point(depth, 32.0, active, SURROGATES[1], scope)
    expected = sum(point.expected_matrix())
    direction = point.direction(point.slope, 0.0)
    damped = expected + point.work.damping[0] * point.metric(expected)
    assert np.min(np.linalg.eigvalsh(damped)) > 0
    per_variable = point.basis / np.sum(point.basis**2, axis=0)
    step = per_variable.T @ direction.ravel()
    np.testing.assert_allclose(point.basis @ step, direction.ravel(), atol=1e-14)
    right = -point.basis.T @ point.slope.ravel()
    residual = damped @ step - right
    size = np.max(np.abs(expected)) * np.max(np.abs(step))
    assert np.max(np.abs(residual)) <= TOLERANCE * size
    assert np.sum(point.slope * direction) < 0
