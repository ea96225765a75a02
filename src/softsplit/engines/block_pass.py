"""The compiled pass over the free branches of a restricted problem; fixed branches cost nothing.

If only some branches are free, the value of a row is an affine function of the gates there. The
gates of fixed branches between two free branches on one path, and above the topmost free one,
multiply to one number per row; the leaves below a free branch that no further free branch leads to
sum to one number per row and side. What is left is a forest of the free branches. With ``factor``
the product of the fixed gates above a branch (from the next free branch above it, or from the root
and then times the weight of the row), and ``base`` the value of the fixed part of a side,

    V[side of t]  = base[side of t] + sum of factor[u] V[u] over the free branches u next below
    V[t]          = p V[left] + (1 - p) V[right]
    total         = sum over rows and topmost branches of factor[t] V[t]
    reach[t]      = factor[t], times reach and gate of the next free branch above
    d total / dz  = reach[t] steepness p (1 - p) (V[left] - V[right])

There are two bases, for the expected cost and for the rates; a pass uses
``cost_share * cost - price[group] * rate``. Arrays per branch have shape (n_free, n_rows).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.tree.routing import TILE, open_gates


class BlockRows(NamedTuple):
    """The free branches, in heap order (a parent before its children), and the fixed part."""

    features: FloatArray  # (n_features, n_rows) of the rows that reach a free branch
    starts: NDArray[np.int64]  # (n_groups + 1,)
    group_totals: FloatArray  # (n_groups,) of all rows
    parents: NDArray[np.int64]  # (n_free,): position of the next free branch above, or -1
    on_left: NDArray[np.bool_]  # (n_free,): on which side of it
    factors: FloatArray
    cost_left: FloatArray
    cost_right: FloatArray
    rate_left: FloatArray
    rate_right: FloatArray
    cost_constant: float  # of the leaves that no free branch leads to
    rate_constants: FloatArray  # (n_groups,): the correct mass of those leaves


@compiled
def block_pass(scores, slopes, block, steepness, cost_share, price, correct_mass):  # type: ignore[no-untyped-def]
    """Return the total over all rows; write d total / d score to ``slopes``.

    Parameters
    ----------
    scores, slopes : arrays (n_free, n_rows)
        ``slopes`` is overwritten; may be ``scores`` itself.
    block : BlockRows
    steepness, cost_share : float
    price : array (n_groups,)
    correct_mass : array (n_groups,)
        Overwritten with the total of the rate bases: the correctly classified mass.
    """
    n_free = scores.shape[0]
    left, right = np.empty((n_free, TILE)), np.empty((n_free, TILE))
    on_left, on_right = np.empty((n_free, TILE)), np.empty((n_free, TILE))
    reach = np.empty((n_free, TILE))
    powers = np.empty(TILE)
    bits = powers.view(np.int64)
    starts = block.starts
    total = block.cost_constant
    for group in range(len(starts) - 1):
        correct_mass[group] = block.rate_constants[group]
        for begin in range(starts[group], starts[group + 1], TILE):
            size = min(TILE, starts[group + 1] - begin)
            for t in range(n_free):
                open_gates(scores[t], begin, size, steepness, left[t], right[t], powers, bits)
            # The correct mass first: the second pass upwards leaves the V that the slopes need.
            correct_mass[group] += _lift(
                block, left, right, begin, size, 0.0, -1.0, on_left, on_right, reach
            )
            total += _lift(
                block, left, right, begin, size, cost_share, price[group], on_left, on_right, reach
            )
            _spread(block, left, right, begin, size, on_left, on_right, reach, steepness, slopes)
    return total


@compiled
def _lift(block, left, right, begin, size, cost_share, price, on_left, on_right, values):  # type: ignore[no-untyped-def]
    """Write V of both sides of every branch, from the lowest up; return the total of the tile."""
    n_free = left.shape[0]
    total = 0.0
    # Base of each side.
    for t in range(n_free):
        for i in range(size):
            row = begin + i
            on_left[t, i] = cost_share * block.cost_left[t, row] - price * block.rate_left[t, row]
            on_right[t, i] = (
                cost_share * block.cost_right[t, row] - price * block.rate_right[t, row]
            )
    # factor[t] V[t] is added to the side of the next free branch above, or to the total.
    for t in range(n_free - 1, -1, -1):
        factor = block.factors[t]
        for i in range(size):
            value = left[t, i] * on_left[t, i] + right[t, i] * on_right[t, i]
            values[t, i] = factor[begin + i] * value
        above = block.parents[t]
        if above < 0:
            for i in range(size):
                total += values[t, i]
        else:
            side = on_left[above] if block.on_left[t] else on_right[above]
            for i in range(size):
                side[i] += values[t, i]
    return total


@compiled
def _spread(block, left, right, begin, size, on_left, on_right, reach, steepness, slopes):  # type: ignore[no-untyped-def]
    """Write reach and slopes from the topmost branches down."""
    for t in range(left.shape[0]):
        factor, here, slope = block.factors[t], reach[t], slopes[t]
        above = block.parents[t]
        # reach[t] = factor[t], times reach and gate of the next free branch above.
        if above < 0:
            for i in range(size):
                here[i] = factor[begin + i]
        else:
            gate = left[above] if block.on_left[t] else right[above]
            for i in range(size):
                here[i] = factor[begin + i] * reach[above, i] * gate[i]
        # d total / dz = gamma reach p (1 - p) (V[left] - V[right]).
        for i in range(size):
            gates = left[t, i] * right[t, i]
            slope[begin + i] = steepness * here[i] * gates * (on_left[t, i] - on_right[t, i])
