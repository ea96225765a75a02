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

from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled_plainly, inlined

# Scores are cut here, and probabilities below: their logarithms stay finite.
FAR = 30.0
LEAST = 1e-12

# The second derivative of a row is at least this part of its Gauss-Newton form, sum tau_k r_k^2.
LEAST_CURVATURE = 0.1

# A Newton step that would gain less ends the descent.
LEAST_GAIN = 1e-3

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
    return Gate(*_newton(*rows, sums, gate.centre, gate.slope, ridge, steepest, steps, needed))


def derivatives(rows: GateRows, sums: FloatArray, gate: Gate) -> tuple[FloatArray, FloatArray]:
    """Return df/dz and d2f/dz2 of every row, (n_rows,) each, at the scores of ``gate``."""
    first, second = np.empty(len(sums)), np.empty(len(sums))
    _derivatives(*rows, sums, gate.centre, gate.slope, first, second)
    return first, second


@inlined
def _row(base, gain, shares, i, z):  # type: ignore[no-untyped-def]
    """Return f of row i and both derivatives by z, without its weight."""
    p = 1.0 / (1.0 + np.exp(-min(FAR, max(-FAR, z))))
    value, first, gauss = 0.0, 0.0, 0.0
    for k in range(shares.shape[1]):
        if shares[i, k] > 0.0:
            likely = max(LEAST, base[i, k] + p * gain[i, k])
            ratio = p * (1.0 - p) * gain[i, k] / likely
            value -= shares[i, k] * np.log(likely)
            first -= shares[i, k] * ratio
            gauss += shares[i, k] * ratio * ratio
    return value, first, max(gauss + (1.0 - 2.0 * p) * first, LEAST_CURVATURE * gauss)


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
    for _ in range(steps):
        # 1. The derivatives are those with respect to centre and slope.
        value, g0, g1 = 0.0, 0.0, 0.0
        h00, h01, h11 = 1e-9, 0.0, 1e-9
        for i in range(sums.size):
            f, g, h = _row(base, gain, shares, i, centre + slope * sums[i])
            value, g, h = value + weights[i] * f, weights[i] * g, weights[i] * h
            g0, g1 = g0 + g, g1 + g * sums[i]
            h00, h01, h11 = h00 + h, h01 + h * sums[i], h11 + h * sums[i] * sums[i]
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
            if promised < LEAST_GAIN or gained < LEAST_GAIN or value - promised > needed:
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
    for i in range(sums.size):
        _, g, h = _row(base, gain, shares, i, centre + slope * sums[i])
        first[i], second[i] = weights[i] * g, weights[i] * h
