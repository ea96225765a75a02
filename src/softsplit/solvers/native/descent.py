"""Compiled descent on the branches of a tree, leaf classes held fixed.

Minimises over theta = (weights, thresholds), one row of n_features + 1 numbers per branch,

    F(theta) = loss(theta) + rate terms + local penalty + global penalty,   -1 <= theta <= 1

with L-BFGS steps on the face of the non-smooth part that the point lies on:

- the minimum-norm subgradient (faces.py) decides which coefficients are fixed, free or tied;
- the direction is - P H P subgradient, where P keeps fixed entries fixed and ties tied and H is
  the inverse Hessian estimate, preconditioned with the Gram matrix of the features;
- a trial point is clipped to the orthant, to the row's new maximum and to the box, so that zeros
  are exact; a sufficient decrease accepts it.

Curvature pairs come from the smooth part alone, so that they survive a change of the strengths.

The minimum class rates enter as an augmented Lagrangian: with the class rates r_k of the pass,

    multiplier_k = max(0, m_k + weight (rho_k - r_k))
    term_k       = (multiplier_k^2 - m_k^2) / (2 weight)

whose gradient is the same pass with - multiplier_k / n_k c_kl added to the table.

The rows of theta may be the free branches of a restricted problem: forest.py then evaluates them. A
proximal term psi / 2 |theta - centre|^2 may be part of the smooth part.

Loops are written out where numpy expressions would do: they compile several times faster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softsplit.engines.block_pass import forest_pass, is_collapsed
from softsplit.engines.tree_pass import tree_pass
from softsplit.solvers.native.bundles import MEMORY
from softsplit.solvers.native.faces import (
    clip_trial,
    penalty_value,
    project,
    snap_near_kinks,
    subgradient,
)
from softsplit.solvers.native.newton import newton_direction
from softsplit.support.compiling import compiled

PAIRS, STALLED, DONE, NO_NEWTON = range(4)
"""Counters of a descent: pairs stored, stalled iterations in a row, iterations so far, and
whether the last Newton direction failed. They are in the workspace, and not local, so that a
descent cut into slices takes the same steps as a whole one."""

SUFFICIENT = 1e-4
MAX_CUTS = 20
INVISIBLE = 1e-15
"""A step that promises less than this part of F cannot be told from rounding: none is shorter."""

ROUNDING = 1e-9
"""F may rise by this part of itself when a stuck point is put on the kinks beside it."""

NEVER = 1_000_000_000
"""For ``Limits.newton_from``: first-order steps only."""
LEAST_RAISED, MOST_DAMPING = 1e-4, 1e3
"""Range of the damping of Newton steps after one had to be shortened."""

FIRST_MOVE = 0.1
"""Largest change of a coefficient while no curvature is known: do not cross the data at once."""


class Limits(NamedTuple):
    """When a descent ends."""

    max_iter: int
    tol: float  # largest entry of the subgradient, in cost units of the problem
    decrease: float  # relative decrease of F below which an iteration counts as stalled
    patience: int  # stalled iterations in a row before giving up
    newton_from: int  # first iteration that tries a Newton direction
    least: float = 1e-8  # absolute decrease, in cost units, below which it counts as stalled


@compiled
def smooth_value(theta, smooth, work, gradient):  # type: ignore[no-untyped-def]
    """Smooth part of F at ``theta``; its derivative goes to ``gradient``."""
    n_branches, width = theta.shape
    n_features = width - 1
    features, scores, slopes, free = smooth.features, work.scores, work.slopes, work.free
    scaled = np.empty((n_branches, n_features))
    for t in range(n_branches):
        for j in range(n_features):
            scaled[t, j] = theta[t, j] / n_features
    np.dot(scaled, features, scores)
    for t in range(n_branches):
        threshold = theta[t, n_features]
        for i in range(scores.shape[1]):
            scores[t, i] -= threshold
    if is_collapsed(smooth.forest):
        value = _forest_value(smooth, work)
    else:
        value = _pass(smooth, work, smooth.table, smooth.logarithmic)
        value += _rate_terms(smooth, work)
    np.dot(slopes, features.T, scaled)
    for t in range(n_branches):
        total = 0.0
        for i in range(slopes.shape[1]):
            total += slopes[t, i]
        gradient[t, n_features] = -total if free[t] else 0.0
        for j in range(n_features):
            gradient[t, j] = scaled[t, j] / n_features if free[t] else 0.0
    if smooth.proximal > 0.0:
        value += _proximal_term(theta, smooth.proximal, smooth.centre, free, gradient)
    return value


@compiled
def _proximal_term(theta, strength, centre, free, gradient):  # type: ignore[no-untyped-def]
    """psi / 2 |theta - centre|^2 over the free branches; its derivative is added."""
    total = 0.0
    for t in range(theta.shape[0]):
        if not free[t]:
            continue
        for j in range(theta.shape[1]):
            gap = theta[t, j] - centre[t, j]
            total += 0.5 * strength * gap * gap
            gradient[t, j] += strength * gap
    return total


@compiled
def _forest_value(smooth, work):  # type: ignore[no-untyped-def]
    """Cost and rate terms of the free branches of a block; slopes of both in the workspace."""
    n_classes = smooth.class_totals.size
    price, right_mass = np.zeros(n_classes), np.empty(n_classes)
    value = forest_pass(
        work.scores, work.slopes, smooth.starts, smooth.forest, smooth.steepness, 1.0, price,
        right_mass,
    )  # fmt: skip
    if smooth.rate_weight <= 0.0:
        return value
    active = False
    for k in range(n_classes):
        m = smooth.multipliers[k]
        rate = right_mass[k] / smooth.class_totals[k]
        multiplier = max(0.0, m + smooth.rate_weight * (smooth.minimum_rates[k] - rate))
        value += (multiplier * multiplier - m * m) / (2.0 * smooth.rate_weight)
        work.active[k] = multiplier
        price[k] = multiplier / smooth.class_totals[k]
        active = active or multiplier > 0.0
    if active:
        forest_pass(
            work.scores, work.slopes, smooth.starts, smooth.forest, smooth.steepness, 1.0, price,
            right_mass,
        )  # fmt: skip
    return value


@compiled
def _pass(smooth, work, table, logarithmic):  # type: ignore[no-untyped-def]
    return tree_pass(
        work.scores,
        work.slopes,
        smooth.starts,
        smooth.row_weights,
        table,
        smooth.steepness,
        logarithmic,
        work.mass,
    )


@compiled
def _rate_terms(smooth, work):  # type: ignore[no-untyped-def]
    """Rate terms; where one is active the slopes are recomputed with its multiplier."""
    if smooth.logarithmic or smooth.rate_weight <= 0.0:
        return 0.0
    mass, leaf_classes, weight = work.mass, smooth.leaf_classes, smooth.rate_weight
    n_classes, n_leaves = mass.shape
    total, active = 0.0, False
    table = np.empty((n_classes, n_leaves))
    for k in range(n_classes):
        count, rate = smooth.class_totals[k], 0.0
        for leaf in range(n_leaves):
            rate += mass[k, leaf] * leaf_classes[k, leaf]
        m = smooth.multipliers[k]
        multiplier = max(0.0, m + weight * (smooth.minimum_rates[k] - rate / count))
        total += (multiplier * multiplier - m * m) / (2.0 * weight)
        work.active[k] = multiplier
        active = active or multiplier > 0.0
        for leaf in range(n_leaves):
            price = multiplier / count * leaf_classes[k, leaf]
            table[k, leaf] = smooth.table[k, leaf] - price
    if active:
        _pass(smooth, work, table, smooth.logarithmic)
    return total


@compiled
def _dot(first, second):  # type: ignore[no-untyped-def]
    total = 0.0
    for t in range(first.shape[0]):
        for j in range(first.shape[1]):
            total += first[t, j] * second[t, j]
    return total


@compiled
def _add(factor, other, result):  # type: ignore[no-untyped-def]
    """result += factor * other."""
    for t in range(result.shape[0]):
        for j in range(result.shape[1]):
            result[t, j] += factor * other[t, j]


@compiled
def _copy(other, result):  # type: ignore[no-untyped-def]
    for t in range(result.shape[0]):
        for j in range(result.shape[1]):
            result[t, j] = other[t, j]


@compiled
def _precondition(vector, inverse, diagonal, result):  # type: ignore[no-untyped-def]
    """result = H0 vector, branch by branch."""
    if inverse.shape[0] > 0:
        np.dot(vector, inverse, result)
    else:
        for t in range(vector.shape[0]):
            for j in range(vector.shape[1]):
                result[t, j] = vector[t, j] * diagonal[j]


@compiled
def direction_of(theta, slope, state, work, vector, result):  # type: ignore[no-untyped-def]
    """result = - P H P slope by the two-loop recursion; returns slope . result."""
    n_branches, width = theta.shape
    _copy(slope, vector)
    project(vector, theta, slope, state)
    stored = work.counters[PAIRS]
    used = min(stored, MEMORY)
    shares = np.empty(MEMORY)
    steps, changes, products = work.steps, work.changes, work.products
    for back in range(used):
        k = (stored - 1 - back) % MEMORY
        shares[k] = _dot(steps[k], vector) / products[k]
        _add(-shares[k], changes[k], vector)
    scale = 1.0
    if used > 0:
        last = (stored - 1) % MEMORY
        _precondition(changes[last], work.inverse, work.diagonal, result)
        scale = products[last] / max(_dot(changes[last], result), 1e-300)
    _precondition(vector, work.inverse, work.diagonal, result)
    for t in range(n_branches):
        for j in range(width):
            result[t, j] *= -scale
    for back in range(used):
        k = (stored - used + back) % MEMORY
        _add(-shares[k] - _dot(changes[k], result) / products[k], steps[k], result)
    project(result, theta, slope, state)
    for t in range(n_branches):
        for j in range(width - 1):
            # A coefficient leaves zero only the way that lowers F.
            if theta[t, j] == 0.0 and slope[t, j] * result[t, j] > 0.0:
                result[t, j] = 0.0
    return _dot(slope, result)


@compiled
def keep_pair(work, theta, moved, old, new):  # type: ignore[no-untyped-def]
    """Keep the pair (step, change of the smooth gradient) if it shows positive curvature."""
    k = work.counters[PAIRS] % MEMORY
    step, change = work.steps[k], work.changes[k]
    for t in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            step[t, j] = moved[t, j] - theta[t, j]
            change[t, j] = new[t, j] - old[t, j]
    curvature = _dot(step, change)
    sizes = np.sqrt(_dot(step, step) * _dot(change, change))
    if curvature > max(1e-10 * sizes, 1e-200):
        work.products[k] = curvature
        work.counters[PAIRS] += 1


@compiled
def line_search(  # type: ignore[no-untyped-def]
    theta, direction, slope, state, value, smooth, sparse, work, trusted, moved, fresh
):
    """Shorten the step until F falls enough: new F (or the old one) and calls made."""
    length = 1.0
    if not trusted:
        largest = 0.0
        for t in range(theta.shape[0]):
            for j in range(theta.shape[1]):
                largest = max(largest, abs(direction[t, j]))
        length = min(1.0, FIRST_MOVE / max(largest, 1e-300))
    for cut in range(MAX_CUTS):
        clip_trial(theta, direction, slope, state, sparse, work.free, work.floor, length, moved)
        gain = 0.0
        for t in range(theta.shape[0]):
            for j in range(theta.shape[1]):
                gain += slope[t, j] * (moved[t, j] - theta[t, j])
        new = smooth_value(moved, smooth, work, fresh) + penalty_value(moved, sparse, work.floor)
        if new < value and new <= value + SUFFICIENT * min(gain, 0.0):
            return new, cut + 1
        if abs(gain) <= INVISIBLE * abs(value):
            return value, cut + 1
        # Minimum of the parabola through both values and the slope, kept within sight.
        fall = value - new
        shrink = 0.1
        if gain < 0.0 and fall <= 0.0 and new < np.inf:
            shrink = min(0.5, max(0.1, 0.5 * gain / (gain + fall)))
        length *= shrink
    return value, MAX_CUTS


@compiled
def descend(theta, smooth, sparse, limits, work):  # type: ignore[no-untyped-def]
    """Descend from ``theta``, in place.

    Returns F, iterations, calls of the smooth part, the last residual and whether the descent
    ended by itself. All state is in ``theta`` and ``work``: a descent cut into several calls
    takes the same steps.
    """
    gradient, fresh = np.empty(theta.shape), np.empty(theta.shape)
    slope, direction = np.empty(theta.shape), np.empty(theta.shape)
    moved, vector = np.empty(theta.shape), np.empty(theta.shape)
    state = np.empty(theta.shape, dtype=np.int8)
    value = smooth_value(theta, smooth, work, gradient) + penalty_value(theta, sparse, work.floor)
    calls, iteration, residual = 1, 0, np.inf
    while iteration < limits.max_iter:
        residual = subgradient(theta, gradient, sparse, work.free, work.floor, slope, state)
        if residual <= limits.tol:
            return value, iteration, calls, residual, True
        newton = work.counters[NO_NEWTON] == 0 and work.counters[DONE] >= limits.newton_from
        if newton:
            newton = newton_direction(theta, slope, state, smooth, sparse, work, direction)
            newton = newton and _dot(slope, direction) < 0.0
        if not newton and not direction_of(theta, slope, state, work, vector, direction) < 0.0:
            work.counters[PAIRS] = 0
            direction_of(theta, slope, state, work, vector, direction)
        trusted = newton or work.counters[PAIRS] > 0
        new, cost = line_search(
            theta, direction, slope, state, value, smooth, sparse, work, trusted, moved, fresh
        )
        calls += cost
        iteration += 1
        work.counters[DONE] += 1
        if newton and cost > 1:
            # A step that had to be shortened: the model holds less far than it was trusted.
            raised = max(work.damping[0], LEAST_RAISED) * 10.0 ** min(cost, 3)
            work.damping[0] = min(raised, MOST_DAMPING)
        if new < value:
            keep_pair(work, theta, moved, gradient, fresh)
            small = value - new <= max(limits.decrease * abs(new), limits.least)
            work.counters[STALLED] = work.counters[STALLED] + 1 if small else 0
            _copy(moved, theta)
            _copy(fresh, gradient)
            value = new
            if work.counters[STALLED] >= limits.patience:
                return value, iteration, calls, residual, True
            work.counters[NO_NEWTON] = 0
        else:
            # After a failed search ``work`` does not hold the slopes of theta.
            smooth_value(theta, smooth, work, gradient)
            calls += 1
            if newton:
                work.counters[NO_NEWTON] = 1
            elif work.counters[PAIRS] > 0:
                work.counters[PAIRS] = 0
            elif snap_near_kinks(theta, sparse, work.free, work.floor, moved):
                new = smooth_value(moved, smooth, work, fresh)
                new += penalty_value(moved, sparse, work.floor)
                calls += 1
                if not new <= value + ROUNDING * abs(value):
                    smooth_value(theta, smooth, work, gradient)  # ``work`` is to describe theta
                    return value, iteration, calls + 1, residual, True
                _copy(moved, theta)
                _copy(fresh, gradient)
                value = new
                work.counters[NO_NEWTON] = 0
            else:
                return value, iteration, calls, residual, True
    return value, iteration, calls, residual, False
