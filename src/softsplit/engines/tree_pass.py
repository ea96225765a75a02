"""The compiled forward-backward pass of all rows through the whole tree.

Everything linear in the leaf probabilities P_il is a table ``W[class, leaf]``. The pass
computes, without any array of rows x leaves,

    V[leaf]  = W[class(i), leaf]
    V[node]  = p V[left] + (1 - p) V[right]                     upwards; V[root] = sum_l P_il W_l
    reach    = product of the gates above a node                downwards
    d V[root] / d z[node] = reach[node] gamma p (1 - p) (V[left] - V[right])

and the mass ``M[class, leaf] = sum_i weight_i P_il``. The value of a row is f(V[root]) with the
outer function f of the loss (outer.py); its slope f' multiplies the reach, and so the derivative
and the mass. Shapes: scores (n_branches, n_rows), table (n_classes, n_leaves).
"""

from __future__ import annotations

import numpy as np

from softsplit.engines.outer import IDENTITY, LOGARITHM, TINY_PROBABILITY, logarithms, outer_terms
from softsplit.support.compiling import compiled_uncounted, shared
from softsplit.tree.routing import TILE, open_gates


@shared
def tree_pass(scores, slopes, starts, weights, table, steepness, outer, mass, bends):  # type: ignore[no-untyped-def]
    """Value of all rows; ``slopes`` becomes d value / d score, ``mass`` the leaf masses.

    Parameters
    ----------
    scores : array (n_branches, n_rows)
    slopes : array (n_branches, n_rows)
        Overwritten with the derivative of the returned value; may be ``scores`` itself.
    starts : int array (n_classes + 1,)
    weights : array (n_rows,)
    table : array (n_classes, n_leaves)
    steepness : float
    outer : int
        The outer function.
    mass : array (n_classes, n_leaves)
        Overwritten with sum_i weight_i f'(V_i) P_il: the derivative of the value by the table.
    bends : array (n_rows,), or of length 0 where it is not asked for
        Overwritten with f'' / (weight f'^2), which turns products of slopes into the curvature
        that f adds; zero for the identity.
    """
    n_branches = scores.shape[0]
    left = np.empty((n_branches, TILE))
    right = np.empty((n_branches, TILE))
    values = np.empty((n_branches, TILE))
    reach = np.empty((n_branches, TILE))
    powers = np.empty(TILE)
    return _pass_tiles(
        scores, slopes, starts, weights, table, steepness, outer, mass, bends, left, right, values,
        reach, powers, powers.view(np.int64),
    )  # fmt: skip


@compiled_uncounted
def _pass_tiles(  # type: ignore[no-untyped-def]
    scores, slopes, starts, weights, table, steepness, outer, mass, bends, left, right, values,
    reach, powers, bits,
):  # fmt: skip
    """The pass, a tile of rows of one class at a time."""
    total = 0.0
    for group in range(mass.shape[0]):
        for leaf in range(mass.shape[1]):
            mass[group, leaf] = 0.0
    for group in range(len(starts) - 1):
        for begin in range(starts[group], starts[group + 1], TILE):
            size = min(TILE, starts[group + 1] - begin)
            for t in range(scores.shape[0]):
                open_gates(scores[t], begin, size, steepness, left[t], right[t], powers, bits)
            lift_values(left, right, table[group], size, values)
            total += chain(values[0], weights, begin, size, outer, reach[0], bends, powers, bits)
            _spread(
                left, right, table[group], size, values, reach, steepness, begin, slopes,
                mass[group],
            )  # fmt: skip
    return total


@compiled_uncounted
def lift_values(left, right, leaf_values, size, values):  # type: ignore[no-untyped-def]
    """V[branch] from the leaves up."""
    n_branches = left.shape[0]
    for t in range(n_branches - 1, -1, -1):
        p, q, here = left[t], right[t], values[t]
        if 2 * t + 1 >= n_branches:
            on_left, on_right = (
                leaf_values[2 * t + 1 - n_branches],
                leaf_values[2 * t + 2 - n_branches],
            )
            for i in range(size):
                here[i] = p[i] * on_left + q[i] * on_right
        else:
            below_left, below_right = values[2 * t + 1], values[2 * t + 2]
            for i in range(size):
                here[i] = p[i] * below_left[i] + q[i] * below_right[i]


@compiled_uncounted
def chain(root_values, weights, begin, size, outer, factors, bends, logs, bits):  # type: ignore[no-untyped-def]
    """Add up the tile; ``factors`` becomes d total / d root value; ``logs`` is overwritten."""
    total = 0.0
    if outer == IDENTITY:  # most passes: no more than a product
        for i in range(size):
            total += weights[begin + i] * root_values[i]
            factors[i] = weights[begin + i]
        return total
    if outer == LOGARITHM:
        for i in range(size):
            logs[i] = max(root_values[i], TINY_PROBABILITY)
        logarithms(logs, bits, factors, size)
        for i in range(size):
            total -= weights[begin + i] * logs[i]
        for i in range(size):
            factors[i] = -weights[begin + i] / max(root_values[i], TINY_PROBABILITY)
    else:
        for i in range(size):
            value, slope, _ = outer_terms(outer, root_values[i])
            total += weights[begin + i] * value
            factors[i] = weights[begin + i] * slope
    if bends.size > 0:
        for i in range(size):
            _, slope, curvature = outer_terms(outer, root_values[i])
            squared = weights[begin + i] * slope * slope
            bends[begin + i] = curvature / squared if squared > 0.0 else 0.0
    return total


@compiled_uncounted
def _spread(  # type: ignore[no-untyped-def]
    left, right, leaf_values, size, values, reach, steepness, begin, slopes, mass
):
    """Reach and slopes from the root down; leaf masses are added to ``mass``."""
    n_branches = left.shape[0]
    for t in range(n_branches):
        p, q, here, slope = left[t], right[t], reach[t], slopes[t]
        if 2 * t + 1 >= n_branches:
            leaf = 2 * t + 1 - n_branches
            gain = steepness * (leaf_values[leaf] - leaf_values[leaf + 1])
            mass_left, mass_right = 0.0, 0.0
            for i in range(size):
                going_left = here[i] * p[i]
                mass_left += going_left
                mass_right += here[i] * q[i]
                slope[begin + i] = gain * going_left * q[i]
            mass[leaf] += mass_left
            mass[leaf + 1] += mass_right
        else:
            below_left, below_right = values[2 * t + 1], values[2 * t + 2]
            reach_left, reach_right = reach[2 * t + 1], reach[2 * t + 2]
            for i in range(size):
                going_left = here[i] * p[i]
                reach_left[i] = going_left
                reach_right[i] = here[i] * q[i]
                slope[begin + i] = steepness * going_left * q[i] * (below_left[i] - below_right[i])
