"""The likelihood of one question, all others as they are.

A row of class shares tau_k (its class, or a mixture of it and of what a soft tree says) has

    P_k  = base_k + p gain_k,      p = 1 / (1 + exp(-(centre + slope s)))
    f    = - sum_rows w sum_k tau_k log P_k  +  ridge/2 slope^2 sum_terms var(points)

``s`` (n_rows,) are sums of points; ``base`` and ``gain`` (n_rows, n_classes) are what the rest of
the tree says where the question is answered no, and what yes adds to it. With q = p (1 - p) and
r_k = q gain_k / P_k, a row has the derivatives by z, times w,

    df/dz    = - sum_k tau_k r_k
    d2f/dz2  =   sum_k tau_k r_k^2  +  (1 - 2 p) df/dz
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softsplit.engines.outer import logarithms
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled_plainly, inlined
from softsplit.tree.routing import TILE, tile_gates

# Scores are cut here, and probabilities below: their logarithms stay finite.
FAR = 30.0
LEAST = 1e-12

# The second derivative of a row is at least this part of its Gauss-Newton form, sum tau_k r_k^2.
LEAST_CURVATURE = 0.1

# A Newton step that would gain less ends the descent; of more rows than these, by weight, more.
LEAST_GAIN, FEW = 1e-3, 1_000.0

# Points speak for yes: the slope of a gate is at least this.
LEAST_SLOPE = 1e-3


class GateRows(NamedTuple):
    """What the rows and the rest of the tree say about a question; shapes as in the module."""

    base: FloatArray
    gain: FloatArray
    shares: FloatArray
    weights: FloatArray


class Gate(NamedTuple):
    """The gate of a question on its points, and the value of f."""

    centre: float
    slope: float
    value: float


def fit_gate(
    rows: GateRows,
    sums: FloatArray,
    gate: Gate,
    ridge: float,
    steepest: float,
    steps: int,
    needed: float = np.inf,
) -> Gate:
    """Minimise f over centre and slope by at most ``steps`` Newton steps from ``gate``.

    ``ridge`` is that of the module times the variances; the slope is at most ``steepest``. Ends
    where f will hardly fall below ``needed``.
    """
    return Gate(
        *_newton(*_lines(rows), sums, gate.centre, gate.slope, ridge, steepest, steps, needed)
    )


def derivatives(rows: GateRows, sums: FloatArray, gate: Gate) -> tuple[FloatArray, FloatArray]:
    """Return df/dz and d2f/dz2 of every row, (n_rows,) each, at the scores of ``gate``."""
    first, second = np.empty(len(sums)), np.empty(len(sums))
    _derivatives(*_lines(rows), sums, gate.centre, gate.slope, first, second)
    return first, second


def _lines(rows: GateRows) -> tuple[FloatArray, ...]:
    """The arrays of some rows with a line for each class; no copies of those in Fortran order."""
    base, gain, shares = (np.ascontiguousarray(part.T) for part in rows[:3])
    return base, gain, shares, rows.weights


class Tile(NamedTuple):
    """f of the rows of a tile and its derivatives by z, without weights, and work arrays."""

    value: FloatArray
    first: FloatArray
    gauss: FloatArray  # sum tau_k r_k^2, then the second derivative
    work: FloatArray  # (6, TILE)


@inlined
def _new_tile():  # type: ignore[no-untyped-def]
    return Tile(np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty((6, TILE)))


@inlined
def _look(base, gain, shares, sums, begin, size, gate, tile):  # type: ignore[no-untyped-def]
    """Write f of rows ``begin`` .. ``begin + size - 1`` and its derivatives; see ``Tile``.

    ``base``, ``gain`` and ``shares`` are (n_classes, n_rows).
    """
    value, first, gauss, work = tile
    z, p, q, power, likely, scratch = work[0], work[1], work[2], work[3], work[4], work[5]
    bits = power.view(np.int64)
    for i in range(size):
        z[i] = min(FAR, max(-FAR, gate[0] + gate[1] * sums[begin + i]))
        value[i], first[i], gauss[i] = 0.0, 0.0, 0.0
    tile_gates(z, 0, size, 1.0, p, q, power, bits)
    for k in range(base.shape[0]):
        some, more, share = base[k], gain[k], shares[k]
        for i in range(size):
            likely[i] = max(LEAST, some[begin + i] + p[i] * more[begin + i])
            ratio = p[i] * q[i] * more[begin + i] / likely[i]
            first[i] -= share[begin + i] * ratio
            gauss[i] += share[begin + i] * ratio * ratio
        logarithms(likely, likely.view(np.int64), scratch, size)
        for i in range(size):
            value[i] -= share[begin + i] * likely[i]
    for i in range(size):
        second = gauss[i] + (1.0 - 2.0 * p[i]) * first[i]
        gauss[i] = max(second, LEAST_CURVATURE * gauss[i])


@compiled_plainly
def _newton(
    base: FloatArray,
    gain: FloatArray,
    shares: FloatArray,
    weights: FloatArray,
    sums: FloatArray,
    centre: float,
    slope: float,
    ridge: float,
    steepest: float,
    steps: int,
    needed: float,
) -> tuple[float, float, float]:
    """Minimise f over centre and slope; return both and the least f.

    1. The value, gradient and Hessian by one pass over the rows.
    2. From a better point the next Newton step; from a worse one half the step before.
    """
    best_centre, best_slope, least = centre, slope, np.inf
    step, d_centre, d_slope = 1.0, 0.0, 0.0
    tile, least_gain = _new_tile(), LEAST_GAIN * max(1.0, weights.sum() / FEW)
    for _ in range(steps):
        # 1. The derivatives are those with respect to centre and slope.
        value, g0, g1 = 0.0, 0.0, 0.0
        h00, h01, h11 = 1e-9, 0.0, 1e-9
        for begin in range(0, sums.size, TILE):
            size = min(TILE, sums.size - begin)
            _look(base, gain, shares, sums, begin, size, (centre, slope), tile)
            for i in range(size):
                weight, s = weights[begin + i], sums[begin + i]
                g, h = weight * tile.first[i], weight * tile.gauss[i]
                value += weight * tile.value[i]
                g0, g1 = g0 + g, g1 + g * s
                h00, h01, h11 = h00 + h, h01 + h * s, h11 + h * s * s
        value += 0.5 * ridge * slope * slope
        g1, h11 = g1 + ridge * slope, h11 + ridge
        # 2. A step changes the slope by half, and a little, at most.
        if value < least:
            gained = least - value
            best_centre, best_slope, least, step = centre, slope, value, 1.0
            determinant = max(h00 * h11 - h01 * h01, 1e-9 * h00 * h11 + 1e-12)
            d_centre = -(h11 * g0 - h01 * g1) / determinant
            d_slope = -(h00 * g1 - h01 * g0) / determinant
            longest = 0.5 * slope + 0.05
            if abs(d_slope) > longest:
                d_centre, d_slope = d_centre * longest / abs(d_slope), np.sign(d_slope) * longest
            promised = -(g0 * d_centre + g1 * d_slope)
            if promised < least_gain or gained < least_gain or value - promised > needed:
                break
        else:
            step *= 0.5
            if step < 0.1:
                break
        centre = best_centre + step * d_centre
        slope = min(steepest, max(LEAST_SLOPE, best_slope + step * d_slope))
    return best_centre, best_slope, least


@compiled_plainly
def _derivatives(
    base: FloatArray,
    gain: FloatArray,
    shares: FloatArray,
    weights: FloatArray,
    sums: FloatArray,
    centre: float,
    slope: float,
    first: FloatArray,
    second: FloatArray,
) -> None:
    tile = _new_tile()
    for begin in range(0, sums.size, TILE):
        size = min(TILE, sums.size - begin)
        _look(base, gain, shares, sums, begin, size, (centre, slope), tile)
        for i in range(size):
            first[begin + i] = weights[begin + i] * tile.first[i]
            second[begin + i] = weights[begin + i] * tile.gauss[i]
