"""The non-smooth part of the objective: subgradients, faces (active sets), trial points.

theta has one row per branch: n_features weights, then the threshold. For row j of the weights
matrix (one coefficient per branch) with smooth slopes g_t, local slopes s_t = strength
phi'(|a_t|) and global slope S = strength phi'(max_t |a_t|), the minimum-norm subgradient is

    a_t != 0, below the maximum   g_t + s_t sign(a_t)
    a_t == 0                      g_t shrunk towards zero by s_t
    at the maximum                S is shared so that the norm is least (water filling): entries
                                  below the water level all move with it and stay tied
    row all zero                  zero if sum_t |shrunk g_t| <= S, else shared likewise

Fixed, free and tied entries make a face of the penalty; ``project`` is the orthogonal projector
on it. A coefficient at a bound is fixed where its slope leads outwards. Tied entries move no
further than the nearest of their bounds; where some are at theirs, the slope of the maximum is
shared by those that are not. Where features are grouped a "row" holds the weights of all features
of a group: entries are found by ``Sparse.places``, which lists them row by row, as places in theta
laid out flat.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.penalties import surrogate_terms
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled_uncounted

FIXED, FREE, TIED = 0, 1, 2

NEAR_TIE = 1e-7
"""Entries this close to the maximum of their row, relative to it, move as if they attained it:
otherwise a descent creeps along the kink between them."""

ON_KINK, NEAR_KINK = 1e-9, 1e-6
"""Closer than the first is on a kink; a descent that is stuck tries the second."""


class Sparse(NamedTuple):
    """Both penalties, kind and two numbers of each surrogate and the strengths; and the bounds."""

    local_kind: int
    local_first: float
    local_second: float
    local_strength: float
    global_kind: int
    global_first: float
    global_second: float
    global_strength: float
    low: FloatArray  # (n_branches * (n_features + 1),): bounds of theta, laid out flat
    high: FloatArray  # the same
    begins: NDArray[np.int64]  # (n_rows + 1,): where each row begins in places
    places: NDArray[np.int64]  # (n_features * n_branches,)
    prices: FloatArray  # (n_features,): factors in the global penalty, the same in a row


@compiled_uncounted
def _local_terms(sparse, u):  # type: ignore[no-untyped-def]
    return surrogate_terms(sparse.local_kind, sparse.local_first, sparse.local_second, u)


@compiled_uncounted
def _global_terms(sparse, u):  # type: ignore[no-untyped-def]
    return surrogate_terms(sparse.global_kind, sparse.global_first, sparse.global_second, u)


@compiled_uncounted
def _global_price(sparse, row, width):  # type: ignore[no-untyped-def]
    """Global strength of a row, with its price; ``width`` is that of theta."""
    return sparse.global_strength * sparse.prices[sparse.places[sparse.begins[row]] % width]


@compiled_uncounted
def penalty_value(theta, sparse, floor):  # type: ignore[no-untyped-def]
    """Both penalties at ``theta``; a row's maximum counts from ``floor`` up."""
    weights, total = theta.reshape(-1), 0.0
    for row in range(sparse.begins.size - 1):
        top = floor[row]
        for e in range(sparse.begins[row], sparse.begins[row + 1]):
            u = abs(weights[sparse.places[e]])
            top = max(top, u)
            if sparse.local_strength > 0.0:
                total += sparse.local_strength * _local_terms(sparse, u)[0]
        if sparse.global_strength > 0.0:
            total += _global_price(sparse, row, theta.shape[1]) * _global_terms(sparse, top)[0]
    return total


@compiled_uncounted
def _water_level(values, count, total):  # type: ignore[no-untyped-def]
    """The level x with sum_t max(x - values_t, 0) = total; sorts the first ``count`` values."""
    for i in range(1, count):
        value, k = values[i], i
        while k > 0 and values[k - 1] > value:
            values[k] = values[k - 1]
            k -= 1
        values[k] = value
    # With the k + 1 lowest values under water, level = (total + their sum) / (k + 1).
    running, level = 0.0, 0.0
    for k in range(count):
        running += values[k]
        level = (total + running) / (k + 1)
        if k + 1 == count or level <= values[k + 1]:
            break
    return level


@compiled_uncounted
def subgradient(theta, gradient, sparse, free, floor, slope, state, scratch):  # type: ignore[no-untyped-def]
    """Minimum-norm subgradient of F to ``slope``, states to ``state``; its largest entry.

    ``scratch`` is room for as many numbers as there are weights.
    """
    n_branches, width = theta.shape
    weights, slopes, states = theta.reshape(-1), slope.reshape(-1), state.reshape(-1)
    for j in range(width - 1):
        _local_row(theta, gradient, sparse, j, slope, state)
    if sparse.global_strength > 0.0:
        for row in range(sparse.begins.size - 1):
            _global_row(weights, sparse, free, floor[row], row, width, slopes, states, scratch)
    largest = 0.0
    for t in range(n_branches):
        slope[t, width - 1] = gradient[t, width - 1]
        state[t, width - 1] = FREE
        for j in range(width):
            place = t * width + j
            outward = (theta[t, j] >= sparse.high[place] and slope[t, j] < 0.0) or (
                theta[t, j] <= sparse.low[place] and slope[t, j] > 0.0
            )
            if outward or not free[t]:
                slope[t, j] = 0.0
                state[t, j] = FIXED
            largest = max(largest, abs(slope[t, j]))
    return largest


@compiled_uncounted
def _local_row(theta, gradient, sparse, j, slope, state):  # type: ignore[no-untyped-def]
    for t in range(theta.shape[0]):
        # 1. The slope of the penalty at this size.
        value, g = theta[t, j], gradient[t, j]
        steep = 0.0
        if sparse.local_strength > 0.0:
            steep = sparse.local_strength * _local_terms(sparse, abs(value))[1]
        # 2. The subgradient nearest to zero: at zero the penalty takes off up to ``steep``.
        state[t, j] = FREE
        if value > 0.0:
            slope[t, j] = g + steep
        elif value < 0.0:
            slope[t, j] = g - steep
        elif abs(g) > steep:
            slope[t, j] = g - np.copysign(steep, g)
        else:
            slope[t, j] = 0.0
            # Under a local penalty a zero that may stay does; without one it may pass freely.
            if steep > 0.0:
                state[t, j] = FIXED


@compiled_uncounted
def _global_row(weights, sparse, free, floor, row, width, slopes, states, scratch):  # type: ignore[no-untyped-def]
    """Share the slope of the row's maximum among the entries that attain it."""
    begin, end = sparse.begins[row], sparse.begins[row + 1]
    top = floor
    for e in range(begin, end):
        top = max(top, abs(weights[sparse.places[e]]))
    if top > 0.0 and top <= floor:
        return  # the maximum is paid for by fixed branches
    steep = _global_price(sparse, row, width) * _global_terms(sparse, top)[1]
    if top == 0.0:
        _zero_row(free, sparse, row, steep, width, slopes, states, scratch)
        return
    count = end - end  # of the type of a length: a literal 0 is compiled apart
    for e in range(begin, end):
        place = sparse.places[e]
        if abs(weights[place]) >= top * (1.0 - NEAR_TIE):
            scratch[count] = np.copysign(1.0, weights[place]) * slopes[place]
            count += 1
    level = _water_level(scratch, count, steep)
    if level < 0.0 and _bound_ties(weights, sparse, row, top, steep, slopes, states, scratch):
        return
    for e in range(begin, end):
        place = sparse.places[e]
        sign = np.copysign(1.0, weights[place])
        if abs(weights[place]) >= top * (1.0 - NEAR_TIE) and sign * slopes[place] < level:
            slopes[place] = sign * level
            states[place] = TIED


@compiled_uncounted
def _bound_ties(weights, sparse, row, top, steep, slopes, states, scratch):  # type: ignore[no-untyped-def]
    """Let a row's maximum grow without the entries that are at their bounds; whether some are.

    Not so if all that attain it are: the box of the paper then holds them together.
    """
    begin, end = sparse.begins[row], sparse.begins[row + 1]
    count, bound = end - end, end - end
    for e in range(begin, end):
        place = sparse.places[e]
        if abs(weights[place]) >= top * (1.0 - NEAR_TIE):
            if _largest_size(sparse, place, weights[place]) <= top:
                bound += 1
            else:
                scratch[count] = np.copysign(1.0, weights[place]) * slopes[place]
                count += 1
    if bound == 0 or count == 0:
        return False
    level = min(_water_level(scratch, count, steep), 0.0)
    for e in range(begin, end):
        place = sparse.places[e]
        sign = np.copysign(1.0, weights[place])
        if abs(weights[place]) >= top * (1.0 - NEAR_TIE):
            held = level == 0.0 or _largest_size(sparse, place, weights[place]) <= top
            if held and sign * slopes[place] < 0.0:
                slopes[place] = 0.0
                states[place] = FIXED
            elif sign * slopes[place] < level:
                slopes[place] = sign * level
                states[place] = TIED
    return True


@compiled_uncounted
def _largest_size(sparse, place, sign):  # type: ignore[no-untyped-def]
    """Largest |theta| of this sign within the bounds of a place."""
    return sparse.high[place] if sign > 0.0 else -sparse.low[place]


@compiled_uncounted
def _zero_row(free, sparse, row, steep, width, slopes, states, scratch):  # type: ignore[no-untyped-def]
    """A zero row stays zero unless its slopes together exceed the slope of the penalty."""
    begin, end = sparse.begins[row], sparse.begins[row + 1]
    total = 0.0
    for e in range(begin, end):
        place = sparse.places[e]
        # Where the bounds let no coefficient of the sign of -slope leave zero, the slope is none.
        if slopes[place] != 0.0 and _largest_size(sparse, place, -slopes[place]) <= 0.0:
            slopes[place] = 0.0
            states[place] = FIXED
        scratch[e - begin] = -abs(slopes[place]) if free[place // width] else 0.0
        total -= scratch[e - begin]
    level = 0.0
    if total > steep:
        level = -_water_level(scratch, end - begin, steep)
    for e in range(begin, end):
        place = sparse.places[e]
        if level == 0.0:
            slopes[place] = 0.0
            states[place] = FIXED
        elif abs(slopes[place]) > level:
            slopes[place] = np.copysign(level, slopes[place])
            states[place] = TIED


@compiled_uncounted
def outward(value, slope):  # type: ignore[no-untyped-def]
    """The sign of the orthant: that of the coefficient, or where descent leads from zero."""
    return np.copysign(1.0, value) if value != 0.0 else -np.copysign(1.0, slope)


@compiled_uncounted
def curvature(theta, sparse, state, t, j, tied):  # type: ignore[no-untyped-def]
    """Second derivative of the penalties along a free or tied weight that is not zero.

    ``tied`` (n_branches, n_features + 1) is the number of entries that it is tied with.
    """
    u = abs(theta[t, j])
    total = 0.0
    if sparse.local_strength > 0.0 and u > 0.0:
        total += sparse.local_strength * _local_terms(sparse, u)[2]
    if state[t, j] == TIED and u > 0.0:
        strength = sparse.global_strength * sparse.prices[j]
        total += strength * _global_terms(sparse, u)[2] / tied[t, j]
    return total


@compiled_uncounted
def count_tied(sparse, state, tied):  # type: ignore[no-untyped-def]
    """For each tied entry how many of its row are tied, to ``tied``."""
    states, counts = state.reshape(-1), tied.reshape(-1)
    for row in range(sparse.begins.size - 1):
        count = 0
        for e in range(sparse.begins[row], sparse.begins[row + 1]):
            if states[sparse.places[e]] == TIED:
                count += 1
        for e in range(sparse.begins[row], sparse.begins[row + 1]):
            counts[sparse.places[e]] = count


@compiled_uncounted
def project(vector, theta, slope, state, sparse):  # type: ignore[no-untyped-def]
    """Orthogonal projection on the face: fixed entries to zero, tied ones to their mean."""
    values, weights = vector.reshape(-1), theta.reshape(-1)
    slopes, states = slope.reshape(-1), state.reshape(-1)
    for place in range(values.size):
        if states[place] == FIXED:
            values[place] = 0.0
    for row in range(sparse.begins.size - 1):
        count, mean = 0, 0.0
        for e in range(sparse.begins[row], sparse.begins[row + 1]):
            place = sparse.places[e]
            if states[place] == TIED:
                count += 1
                mean += outward(weights[place], slopes[place]) * values[place]
        if count > 1:
            mean /= count
            for e in range(sparse.begins[row], sparse.begins[row + 1]):
                place = sparse.places[e]
                if states[place] == TIED:
                    values[place] = outward(weights[place], slopes[place]) * mean


@compiled_uncounted
def keep_descending(theta, slope, direction):  # type: ignore[no-untyped-def]
    """A coefficient leaves zero only the way that lowers F: other moves are put to zero."""
    for t in range(theta.shape[0]):
        for j in range(theta.shape[1] - 1):
            if theta[t, j] == 0.0 and slope[t, j] * direction[t, j] > 0.0:
                direction[t, j] = 0.0


@compiled_uncounted
def clip_trial(theta, direction, slope, state, sparse, free, floor, length, moved):  # type: ignore[no-untyped-def]
    """moved = theta + length * direction, clipped to orthant, new row maximum and bounds."""
    n_branches, width = theta.shape
    for t in range(n_branches):
        for j in range(width):
            new = theta[t, j] + length * direction[t, j]
            # Local penalties have a kink at zero; a global one only for the row's maximum.
            kinked = j < width - 1 and (sparse.local_strength > 0.0 or state[t, j] == TIED)
            if kinked and new * outward(theta[t, j], slope[t, j]) < 0.0:
                new = 0.0
            place = t * width + j
            moved[t, j] = min(sparse.high[place], max(sparse.low[place], new))
    places, states = moved.reshape(-1), state.reshape(-1)
    for row in range(sparse.begins.size - 1):
        # 1. The new maximum: that of the tied entries, as far as the bounds of all of them allow.
        tied, most = -1.0, np.inf
        for e in range(sparse.begins[row], sparse.begins[row + 1]):
            place = sparse.places[e]
            if states[place] == TIED:
                tied = max(tied, abs(places[place]))
                most = min(most, _largest_size(sparse, place, places[place]))
        tied = min(tied, most)
        cap = np.inf if tied < 0.0 else max(tied, floor[row])
        # 2. Tied entries take it, free ones stay below it.
        for e in range(sparse.begins[row], sparse.begins[row + 1]):
            place = sparse.places[e]
            if states[place] == TIED and tied > floor[row]:
                places[place] = np.copysign(tied, places[place])  # nearly tied becomes tied
            elif states[place] != FIXED and abs(places[place]) > cap:
                places[place] = np.copysign(cap, places[place])
        # 3. What is next to a kink is put on it.
        _snap_row(sparse, free, floor[row], row, ON_KINK, width, places)


@compiled_uncounted
def snap_near_kinks(theta, sparse, free, floor, moved):  # type: ignore[no-untyped-def]
    """moved = theta with entries near a kink put on it; whether any was.

    From a point just beside a kink every step fails on the other side of it, and a descent would
    end there although F falls along the kink.
    """
    n_branches, width = theta.shape
    changed = False
    for t in range(n_branches):
        for j in range(width):
            moved[t, j] = theta[t, j]
    weights = moved.reshape(-1)
    for row in range(sparse.begins.size - 1):
        _snap_row(sparse, free, floor[row], row, NEAR_KINK, width, weights)
    for t in range(n_branches):
        for j in range(width):
            changed = changed or moved[t, j] != theta[t, j]
    return changed


@compiled_uncounted
def _snap_row(sparse, free, floor, row, close, width, weights):  # type: ignore[no-untyped-def]
    """Put entries closer than ``close`` to zero or to the row's maximum on it."""
    top = floor
    for e in range(sparse.begins[row], sparse.begins[row + 1]):
        top = max(top, abs(weights[sparse.places[e]]))
    for e in range(sparse.begins[row], sparse.begins[row + 1]):
        place = sparse.places[e]
        size = abs(weights[place])
        if not free[place // width] or size == 0.0:
            continue
        near_zero = size < close and (sparse.local_strength > 0.0 or top < close)
        near_top = sparse.global_strength > 0.0 and size > top * (1.0 - close)
        if near_zero and (sparse.local_strength > 0.0 or sparse.global_strength > 0.0):
            weights[place] = 0.0
        elif near_top:
            size = min(top, _largest_size(sparse, place, weights[place]))
            weights[place] = np.copysign(size, weights[place])
