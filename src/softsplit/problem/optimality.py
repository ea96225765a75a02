"""Residuals of the Karush-Kuhn-Tucker conditions of the training problem.

With multipliers m >= 0 of the minimum class rates and of all other requirements on rates
(rates.py), the Lagrangian is L = E - m . (rates - rho).
A tree is a KKT point exactly if all of these are zero:

    stationarity     |(a, mu) - prox(( a, mu) - dL)|, prox of the penalties linearised at a,
                     within the bounds; largest entry
    leaf gap         sum (dL/dc) c - min over feasible leaves of the same: the gain of a leaf step
    complementarity  largest m_k (rate_k - rho_k)
    violation        largest violation of a constraint

The prox form does not need to know which coefficients are zero, so that it is as meaningful for an
interior-point solution as for one with exact zeros (Parikh and Boyd 2014, proximal algorithms).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from softsplit.problem.loss import Evaluation
from softsplit.problem.problem import TrainingProblem
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters

ACTIVE_RATE = 1e-5
"""A rate within this of its minimum may carry a multiplier."""

RIDGE = 1e-7
"""Weight of the multipliers' own size: dependent rates share a multiplier."""

NO_SLOPE = 1e-150
"""A rate whose slope is below this part of the objective's is moved by no variable."""

SMALL_WEIGHT = 1e-4
"""Weights below this do not help to determine the multipliers: they may be zeros."""


@dataclass(frozen=True)
class KKT:
    """Residuals of the first-order conditions.

    ``multipliers`` belong to the class rates, then to the lines of ``rate_limits``.
    """

    stationarity: float
    leaf_gap: float
    complementarity: float
    violation: float
    multipliers: FloatArray

    @property
    def residual(self) -> float:
        """The largest of the four."""
        return max(self.stationarity, self.leaf_gap, self.complementarity, self.violation)


def kkt(
    problem: TrainingProblem,
    parameters: TreeParameters,
    multipliers: FloatArray | None = None,
    evaluation: Evaluation | None = None,
) -> KKT:
    """Return the residuals at ``parameters``, by default with the best multipliers found.

    ``evaluation`` is the cost with its gradient there, if it is known already.
    """
    slope = evaluation or problem.evaluate_cost(parameters)
    short = problem.shortfalls(parameters, slope.mass)
    if multipliers is None:
        multipliers = rate_multipliers(problem, parameters, short)
    if np.any(multipliers):
        slope = problem.evaluate_cost(parameters, multipliers)
    moves, gap = stationarity(problem, parameters, slope), _leaf_gap(problem, parameters, slope)
    if problem.has_order_chart:  # counts or no penalty at all
        moves, gap = _in_order(problem, parameters, slope)
    return KKT(
        stationarity=moves,
        leaf_gap=gap,
        complementarity=float(np.max(multipliers * np.abs(short))),
        violation=problem.violation(parameters, slope.mass).largest,
        multipliers=multipliers,
    )


def stationarity(problem: TrainingProblem, parameters: TreeParameters, slope: Evaluation) -> float:
    """Return the largest change of a proximal gradient step of length one over free branches."""
    return float(np.max(_moves(problem, parameters, slope)[problem.free_branches], initial=0.0))


def branch_stationarity(problem: TrainingProblem, parameters: TreeParameters) -> FloatArray:
    """Return the same for each branch, with the best multipliers found, shape (n_branches,)."""
    multipliers = rate_multipliers(problem, parameters, problem.shortfalls(parameters))
    return _moves(problem, parameters, problem.evaluate_cost(parameters, multipliers))


def _moves(problem: TrainingProblem, parameters: TreeParameters, slope: Evaluation) -> FloatArray:
    """Return the largest change of each branch in that step, shape (n_branches,)."""
    bounds, weights = problem.bounds, parameters.weights
    wanted = weights - slope.weights
    sizes = bounds.largest_sizes(wanted)
    stepped = problem.penalties.linearised_prox(wanted, weights, problem.global_floor, sizes)
    moved = np.max(np.abs(weights - bounds.project(stepped)), axis=0)
    thresholds = bounds.project_thresholds(parameters.thresholds - slope.thresholds)
    return np.maximum(moved, np.abs(parameters.thresholds - thresholds))


def rate_multipliers(
    problem: TrainingProblem, parameters: TreeParameters, shortfalls: FloatArray
) -> FloatArray:
    """Return nonnegative multipliers of the active rates that best meet stationarity.

    ``shortfalls`` are those of ``TrainingProblem.shortfalls``.

    Nonnegative least squares (Lawson and Hanson, by scipy) over thresholds inside their bounds, and
    over weights that are neither at a bound nor at a kink of a penalty: there the stationarity
    condition is an equation. Within a monotone order slopes take the place of weights.
    """
    multipliers = np.zeros(len(shortfalls))
    active = np.flatnonzero(shortfalls >= -ACTIVE_RATE)
    if len(active) == 0:
        return multipliers
    # 1. Where stationarity is an equation: weights off the kinks, thresholds inside their bounds.
    base = problem.evaluate_cost(parameters)
    weights_free, thresholds_free = _equations(problem, parameters)
    sparse = problem.penalties.gradient(parameters.weights)
    chart = None
    if problem.order is not None and problem.has_order_chart:
        chart = problem.order.chart_of(parameters, problem.steepness)
        slopes_there = chart.slopes_of(parameters.weights.T)
        weights_free = (parameters.weights != 0) & (np.abs(slopes_there.T) > SMALL_WEIGHT)

    def stack(weights: FloatArray, thresholds: FloatArray) -> FloatArray:
        by_slopes = weights if chart is None else chart.by_slopes(weights.T).T
        return np.concatenate([by_slopes[weights_free], thresholds[thresholds_free]])

    # 2. gradient of the objective = sum of multipliers times gradients of the rates, least squares.
    target = stack(base.weights + sparse, base.thresholds)
    slopes = [problem.rate_gradient(parameters, k) for k in active.tolist()]
    matrix = np.column_stack([stack(slope.weights, slope.thresholds) for slope in slopes])
    scale = np.max(np.abs(matrix), initial=0.0)
    if scale > NO_SLOPE * np.max(np.abs(target), initial=0.0):
        # A little ridge: a rate that no variable moves must not get a huge multiplier.
        ridged = np.vstack([matrix / scale, RIDGE * np.eye(len(active))])
        padded = np.concatenate([target / scale, np.zeros(len(active))])
        multipliers[active] = nnls(ridged, padded)[0]
    return multipliers


def _equations(
    problem: TrainingProblem, parameters: TreeParameters
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the weights and thresholds whose stationarity condition is an equation."""
    sizes = np.abs(parameters.weights)
    smooth = (sizes > SMALL_WEIGHT) & problem.bounds.inside(parameters.weights)
    smooth &= problem.free_branches
    if problem.penalties.global_.strength > 0:
        paid = problem.penalties.global_
        rows = paid.rows(sizes)
        top = np.maximum(np.max(rows, axis=1), problem.global_floor)[:, None]
        near_top = rows > top - SMALL_WEIGHT
        # A unique maximum is smooth; two or more share the slope in an unknown proportion.
        shared = near_top & (np.sum(near_top, axis=1, keepdims=True) > 1)
        smooth &= paid.from_rows(shared.astype(float)) == 0
    thresholds, bounds = parameters.thresholds, problem.bounds
    inside = (thresholds > bounds.threshold_low) & (thresholds < bounds.threshold_high)
    return smooth, inside & problem.free_branches


def _in_order(
    problem: TrainingProblem, parameters: TreeParameters, slope: Evaluation
) -> tuple[float, float]:
    """Return stationarity and leaf gap within a monotone order, on the support of the tree."""
    assert problem.order is not None
    chart = problem.order.chart_of(parameters, problem.steepness)
    moves, gap = chart.residual(
        parameters.weights.T, slope.weights.T, parameters.leaf_values, slope.leaf_values
    )
    return max(moves, float(np.max(np.abs(slope.thresholds), initial=0.0))), gap


def _leaf_gap(problem: TrainingProblem, parameters: TreeParameters, slope: Evaluation) -> float:
    """Return the first-order gain of the best leaf classes, with rates priced by multipliers."""
    free = None if problem.block is None else problem.free_leaves
    return problem.loss.leaf_rule.gap(
        slope.leaf_values, problem.shares(slope.mass), free, parameters.leaf_values
    )
