"""Compiled descent on the branches of a tree, leaf classes held fixed.

Minimises over theta = (weights, thresholds), one row of n_features + 1 numbers per branch,

    F(theta) = loss(theta) + rate terms + local penalty + global penalty,   -1 <= theta <= 1

with L-BFGS steps on the face of the non-smooth part that the point lies on:

- the minimum-norm subgradient decides which coefficients are fixed (zeros that stay zero, bounds),
  free, or tied (entries at the maximum of a row move as one under a global penalty);
- the direction is P H P subgradient, where P keeps fixed entries fixed and ties tied and H is the
  inverse Hessian estimate, preconditioned with the Gram matrix of the features;
- a trial point is clipped to the orthant, to the row's new maximum and to the box: zeros are exact.

Curvature pairs come from the smooth part alone, so that they survive a change of the strengths.

The minimum class rates enter as an augmented Lagrangian: with the class rates r_k of the pass,

    multiplier_k = max(0, m_k + weight (rho_k - r_k))       term_k = (multiplier_k^2 - m_k^2) / (2 weight)

whose gradient is the same pass with - multiplier_k / n_k c_kl added to the table.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from softsplit.penalties import surrogate_terms
from softsplit.routing import tree_pass
from softsplit.tree import FloatArray

MEMORY = 10
"""Curvature pairs kept."""

FIXED, FREE, TIED = 0, 1, 2

SUFFICIENT = 1e-4
MAX_HALVINGS = 25


class Smooth(NamedTuple):
    """The smooth part: data, table and rate terms. All arrays C-contiguous float64."""

    features: FloatArray  # (n_features, n_rows)
    starts: FloatArray  # int64 (n_classes + 1,)
    row_weights: FloatArray  # (n_rows,)
    class_totals: FloatArray  # (n_classes,)
    table: FloatArray  # (n_classes, n_leaves)
    leaf_classes: FloatArray  # (n_classes, n_leaves)
    minimum_rates: FloatArray  # (n_classes,)
    multipliers: FloatArray  # (n_classes,)
    rate_weight: float
    steepness: float
    logarithmic: bool


class Sparse(NamedTuple):
    """Both penalties: kind and two numbers of each surrogate, and the strengths."""

    local_kind: int
    local_first: float
    local_second: float
    local_strength: float
    global_kind: int
    global_first: float
    global_second: float
    global_strength: float


class Limits(NamedTuple):
    """When a descent ends."""

    max_iter: int
    tol: float  # largest entry of the subgradient
    decrease: float  # relative decrease of F below which an iteration counts as stalled
    patience: int  # stalled iterations in a row before giving up


class Workspace(NamedTuple):
    """Arrays reused from call to call; the curvature pairs survive in them."""

    scores: FloatArray  # (n_branches, n_rows)
    slopes: FloatArray  # (n_branches, n_rows)
    mass: FloatArray  # (n_classes, n_leaves)
    steps: FloatArray  # (MEMORY, n)
    changes: FloatArray  # (MEMORY, n)
    count: FloatArray  # int64 (1,): pairs stored so far
    inverse: FloatArray  # (n_features + 1, n_features + 1), or (0, 0): diagonal only
    diagonal: FloatArray  # (n_features + 1,)
    free: FloatArray  # bool (n_branches,)
    floor: FloatArray  # (n_features,)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def smooth_value(theta, smooth, work, gradient):  # type: ignore[no-untyped-def]
    """Smooth part of F at ``theta``; its derivative goes to ``gradient``."""
    n_branches, width = theta.shape
    n_features = width - 1
    scaled = theta[:, :n_features] / n_features
    np.dot(scaled, smooth.features, work.scores)
    for t in range(n_branches):
        work.scores[t] -= theta[t, n_features]
    value = tree_pass(
        work.scores,
        work.slopes,
        smooth.starts,
        smooth.row_weights,
        smooth.table,
        smooth.steepness,
        smooth.logarithmic,
        work.mass,
    )
    value += _rate_terms(smooth, work)
    gradient[:, :n_features] = np.dot(work.slopes, smooth.features.T) / n_features
    for t in range(n_branches):
        gradient[t, n_features] = -np.sum(work.slopes[t])
        if not work.free[t]:
            gradient[t] = 0.0
    return value


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _rate_terms(smooth, work):  # type: ignore[no-untyped-def]
    """Rate terms; where one is active the slopes are recomputed with its multiplier."""
    n_classes, n_leaves = smooth.table.shape
    if smooth.logarithmic or smooth.rate_weight <= 0.0:
        return 0.0
    total, active = 0.0, False
    table = smooth.table.copy()
    for k in range(n_classes):
        rate = 0.0
        for leaf in range(n_leaves):
            rate += work.mass[k, leaf] * smooth.leaf_classes[k, leaf]
        rate /= smooth.class_totals[k]
        m = smooth.multipliers[k]
        multiplier = max(0.0, m + smooth.rate_weight * (smooth.minimum_rates[k] - rate))
        total += (multiplier * multiplier - m * m) / (2.0 * smooth.rate_weight)
        if multiplier > 0.0:
            active = True
            for leaf in range(n_leaves):
                table[k, leaf] -= (
                    multiplier / smooth.class_totals[k] * smooth.leaf_classes[k, leaf]
                )
    if active:
        tree_pass(
            work.scores,
            work.slopes,
            smooth.starts,
            smooth.row_weights,
            table,
            smooth.steepness,
            False,
            work.mass,
        )
    return total


@nb.njit(cache=True, nogil=True, error_model="numpy")
def penalty_value(theta, sparse, floor):  # type: ignore[no-untyped-def]
    """Both penalties at ``theta``; a row's maximum counts from ``floor`` up."""
    n_branches, width = theta.shape
    total = 0.0
    for j in range(width - 1):
        top = floor[j]
        for t in range(n_branches):
            u = abs(theta[t, j])
            top = max(top, u)
            if sparse.local_strength > 0.0:
                total += (
                    sparse.local_strength
                    * surrogate_terms(
                        sparse.local_kind, sparse.local_first, sparse.local_second, u
                    )[0]
                )
        if sparse.global_strength > 0.0:
            total += (
                sparse.global_strength
                * surrogate_terms(
                    sparse.global_kind, sparse.global_first, sparse.global_second, top
                )[0]
            )
    return total


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _water_level(values, total):  # type: ignore[no-untyped-def]
    """The level x with sum_t max(x - values_t, 0) = total."""
    ordered = np.sort(values)
    running = 0.0
    level = 0.0
    for k in range(ordered.size):
        running += ordered[k]
        level = (total + running) / (k + 1)
        if k + 1 == ordered.size or level <= ordered[k + 1]:
            break
    return level


@nb.njit(cache=True, nogil=True, error_model="numpy")
def subgradient(theta, gradient, sparse, work, slope, state):  # type: ignore[no-untyped-def]
    """Minimum-norm subgradient of F to ``slope`` and the state of every variable.

    A descent direction is minus ``slope``; it is zero exactly at a stationary point.
    """
    n_branches, width = theta.shape
    for j in range(width - 1):
        _local_row(theta, gradient, sparse, j, slope, state)
        if sparse.global_strength > 0.0:
            _global_row(theta, sparse, work, j, slope, state)
    for t in range(n_branches):
        slope[t, width - 1] = gradient[t, width - 1]
        state[t, width - 1] = FREE
        for j in range(width):
            outward = (theta[t, j] >= 1.0 and slope[t, j] < 0.0) or (
                theta[t, j] <= -1.0 and slope[t, j] > 0.0
            )
            if outward or not work.free[t]:
                slope[t, j] = 0.0
                state[t, j] = FIXED


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _local_row(theta, gradient, sparse, j, slope, state):  # type: ignore[no-untyped-def]
    for t in range(theta.shape[0]):
        value, g = theta[t, j], gradient[t, j]
        steep = 0.0
        if sparse.local_strength > 0.0:
            steep = (
                sparse.local_strength
                * surrogate_terms(
                    sparse.local_kind, sparse.local_first, sparse.local_second, abs(value)
                )[1]
            )
        state[t, j] = FREE
        if value > 0.0:
            slope[t, j] = g + steep
        elif value < 0.0:
            slope[t, j] = g - steep
        elif abs(g) <= steep:
            slope[t, j] = 0.0
            # Under a local penalty a zero that may stay does; without one it may pass freely.
            if steep > 0.0:
                state[t, j] = FIXED
        else:
            slope[t, j] = g - np.copysign(steep, g)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _global_row(theta, sparse, work, j, slope, state):  # type: ignore[no-untyped-def]
    """Share the slope of the row's maximum among the entries that attain it."""
    n_branches = theta.shape[0]
    top = work.floor[j]
    for t in range(n_branches):
        top = max(top, abs(theta[t, j]))
    steep = (
        sparse.global_strength
        * surrogate_terms(sparse.global_kind, sparse.global_first, sparse.global_second, top)[1]
    )
    if top == 0.0:
        _zero_row(slope, state, work, j, steep)
        return
    if top <= work.floor[j]:
        return
    # Outward rates of the entries at the top; min-norm shares are a water filling.
    tied = np.empty(n_branches)
    count = 0
    for t in range(n_branches):
        if abs(theta[t, j]) >= top:
            tied[count] = np.copysign(1.0, theta[t, j]) * slope[t, j]
            count += 1
    level = _water_level(tied[:count], steep)
    for t in range(n_branches):
        if abs(theta[t, j]) >= top:
            sign = np.copysign(1.0, theta[t, j])
            if sign * slope[t, j] < level:
                slope[t, j] = sign * level
                state[t, j] = TIED


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _zero_row(slope, state, work, j, steep):  # type: ignore[no-untyped-def]
    """A zero row stays zero unless its slopes together exceed the slope of the penalty."""
    n_branches = slope.shape[0]
    total = 0.0
    for t in range(n_branches):
        if work.free[t]:
            total += abs(slope[t, j])
    if total <= steep:
        for t in range(n_branches):
            slope[t, j] = 0.0
            state[t, j] = FIXED
        return
    sizes = np.empty(n_branches)
    for t in range(n_branches):
        sizes[t] = -abs(slope[t, j])
    level = -_water_level(sizes, steep)
    for t in range(n_branches):
        if abs(slope[t, j]) > level:
            slope[t, j] = np.copysign(level, slope[t, j])
            state[t, j] = TIED


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _project(vector, theta, slope, state):  # type: ignore[no-untyped-def]
    """Orthogonal projection on the face: fixed entries to zero, tied ones to their mean."""
    n_branches, width = theta.shape
    for j in range(width):
        count, mean = 0, 0.0
        for t in range(n_branches):
            if state[t, j] == FIXED:
                vector[t, j] = 0.0
            elif state[t, j] == TIED:
                count += 1
                mean += _outward(theta[t, j], slope[t, j]) * vector[t, j]
        if count > 0:
            mean /= count
            for t in range(n_branches):
                if state[t, j] == TIED:
                    vector[t, j] = _outward(theta[t, j], slope[t, j]) * mean


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _outward(value, slope):  # type: ignore[no-untyped-def]
    """The sign of the orthant: that of the coefficient, or where descent leads from zero."""
    if value != 0.0:
        return np.copysign(1.0, value)
    return -np.copysign(1.0, slope)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _precondition(vector, work, result):  # type: ignore[no-untyped-def]
    if work.inverse.shape[0] > 0:
        np.dot(vector, work.inverse, result)
    else:
        for t in range(vector.shape[0]):
            for j in range(vector.shape[1]):
                result[t, j] = vector[t, j] * work.diagonal[j]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _direction(theta, slope, state, work, vector, result):  # type: ignore[no-untyped-def]
    """result = - P H P slope by the two-loop recursion; falls back to - P H0 P slope."""
    vector[:, :] = slope
    _project(vector, theta, slope, state)
    flat = vector.ravel()
    stored = work.count[0]
    used = min(stored, MEMORY)
    shares = np.empty(MEMORY)
    for back in range(used):
        k = (stored - 1 - back) % MEMORY
        rho = np.dot(work.steps[k], work.changes[k])
        shares[k] = np.dot(work.steps[k], flat) / rho
        flat -= shares[k] * work.changes[k]
    scale = 1.0
    _precondition(vector, work, result)
    if used > 0:
        last = (stored - 1) % MEMORY
        change = work.changes[last].copy().reshape(theta.shape)
        conditioned = np.empty_like(theta)
        _precondition(change, work, conditioned)
        scale = np.dot(work.steps[last], work.changes[last]) / np.dot(
            work.changes[last], conditioned.ravel()
        )
    result *= -scale
    down = result.ravel()
    for back in range(used):
        k = (stored - used + back) % MEMORY
        rho = np.dot(work.steps[k], work.changes[k])
        b = np.dot(work.changes[k], down) / rho
        down += (-shares[k] - b) * work.steps[k]
    _project(result, theta, slope, state)
    _align(result, theta, slope)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _align(direction, theta, slope):  # type: ignore[no-untyped-def]
    """A coefficient leaves zero only the way that lowers F."""
    n_branches, width = theta.shape
    for t in range(n_branches):
        for j in range(width - 1):
            if theta[t, j] == 0.0 and slope[t, j] * direction[t, j] > 0.0:
                direction[t, j] = 0.0


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _trial(theta, direction, slope, state, sparse, work, length, moved):  # type: ignore[no-untyped-def]
    """moved = theta + length * direction, clipped to orthant, new row maximum and box."""
    n_branches, width = theta.shape
    penalised = sparse.local_strength > 0.0 or sparse.global_strength > 0.0
    for j in range(width):
        cap = 1.0
        for t in range(n_branches):
            new = theta[t, j] + length * direction[t, j]
            kinked = j < width - 1 and (sparse.local_strength > 0.0 or state[t, j] == TIED)
            if penalised and kinked and new * _outward(theta[t, j], slope[t, j]) < 0.0:
                new = 0.0
            moved[t, j] = min(1.0, max(-1.0, new))
            if state[t, j] == TIED:
                cap = max(abs(moved[t, j]), work.floor[j])
        for t in range(n_branches):
            if cap < 1.0 and state[t, j] != FIXED and abs(moved[t, j]) > cap:
                moved[t, j] = np.copysign(cap, moved[t, j])


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _store(work, theta, moved, old, new):  # type: ignore[no-untyped-def]
    """Keep the pair (step, change of the smooth gradient) if it shows positive curvature."""
    k = work.count[0] % MEMORY
    step, change = work.steps[k], work.changes[k]
    step[:] = moved.ravel() - theta.ravel()
    change[:] = new.ravel() - old.ravel()
    curvature = np.dot(step, change)
    sizes = np.sqrt(np.dot(step, step) * np.dot(change, change))
    if curvature > max(1e-10 * sizes, 1e-200):
        work.count[0] += 1


@nb.njit(cache=True, nogil=True, error_model="numpy")
def descend(theta, smooth, sparse, limits, work):  # type: ignore[no-untyped-def]
    """Descend from ``theta``, in place. Returns F, iterations, calls and the last residual."""
    gradient, fresh = np.empty_like(theta), np.empty_like(theta)
    slope, direction = np.empty_like(theta), np.empty_like(theta)
    moved, vector = np.empty_like(theta), np.empty_like(theta)
    state = np.empty(theta.shape, dtype=np.int8)
    value = smooth_value(theta, smooth, work, gradient) + penalty_value(theta, sparse, work.floor)
    calls, stalled, residual, iteration = 1, 0, np.inf, 0
    while iteration < limits.max_iter:
        subgradient(theta, gradient, sparse, work, slope, state)
        residual = np.max(np.abs(slope))
        if residual <= limits.tol:
            break
        _direction(theta, slope, state, work, vector, direction)
        expected = np.sum(slope * direction)
        if not expected < 0.0:
            work.count[0] = 0
            _direction(theta, slope, state, work, vector, direction)
        length = 1.0
        if work.count[0] == 0:
            # No curvature known yet: do not cross the data in one step.
            length = min(1.0, 0.1 / max(np.max(np.abs(direction)), 1e-300))
        accepted = False
        new_value = value
        for _ in range(MAX_HALVINGS):
            _trial(theta, direction, slope, state, sparse, work, length, moved)
            gain = np.sum(slope * (moved - theta))
            new_value = smooth_value(moved, smooth, work, fresh) + penalty_value(
                moved, sparse, work.floor
            )
            calls += 1
            if new_value <= value + SUFFICIENT * min(gain, 0.0) and new_value < value:
                accepted = True
                break
            length *= 0.5 if new_value < np.inf else 0.1
        iteration += 1
        if not accepted:
            if work.count[0] == 0:
                break
            work.count[0] = 0
            continue
        _store(work, theta, moved, gradient, fresh)
        stalled = stalled + 1 if value - new_value <= limits.decrease * abs(new_value) else 0
        theta[:, :] = moved
        gradient[:, :] = fresh
        value = new_value
        if stalled >= limits.patience:
            break
    return value, iteration, calls, residual
