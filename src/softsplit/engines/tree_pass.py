"""TODO."""

from __future__ import annotations

import numpy as np

from softsplit.support.compiling import compiled
from softsplit.tree.routing import TILE, open_gates

TINY_PROBABILITY = 1e-300
"""Floor under the logarithm: the value stays finite where a gate has underflowed."""


@compiled
def tree_pass(scores, slopes, starts, weights, table, steepness, logarithmic, mass):  # type: ignore[no-untyped-def]
    """Value of all samples; ``slopes`` becomes d value / d score, ``mass`` the leaf masses.

    Parameters
    ----------
    scores : array (n_branches, n_rows)
    slopes : array (n_branches, n_rows)
        Overwritten with the derivative of the returned value; may be ``scores`` itself.
    starts : int array (n_classes + 1,)
    weights : array (n_rows,)
    table : array (n_classes, n_leaves)
    steepness : float
    logarithmic : bool
        Add -log of each sample's table value rather than the value itself.
    mass : array (n_classes, n_leaves)
        Overwritten with sum_i f_i P_il, where f_i is the weight of the sample times its
        chain factor: 1, or -1 / V[root] in logarithmic mode.
    """
    n_branches = scores.shape[0]
    left = np.empty((n_branches, TILE))
    right = np.empty((n_branches, TILE))
    values = np.empty((n_branches, TILE))
    reach = np.empty((n_branches, TILE))
    powers = np.empty(TILE)
    bits = powers.view(np.int64)
    total = 0.0
    mass[:, :] = 0.0
    for group in range(len(starts) - 1):
        for begin in range(starts[group], starts[group + 1], TILE):
            size = min(TILE, starts[group + 1] - begin)
            for t in range(n_branches):
                open_gates(scores[t], begin, size, steepness, left[t], right[t], powers, bits)
            _lift_values(left, right, table[group], size, values)
            total += _chain(values[0], weights, begin, size, logarithmic, reach[0])
            _spread(
                left, right, table[group], size, values, reach, steepness, begin, slopes,
                mass[group],
            )  # fmt: skip
    return total


@compiled
def _lift_values(left, right, leaf_values, size, values):  # type: ignore[no-untyped-def]
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


@compiled
def _chain(root_values, weights, begin, size, logarithmic, factors):  # type: ignore[no-untyped-def]
    """Add up the tile; ``factors`` becomes d total / d root value."""
    total = 0.0
    if logarithmic:
        for i in range(size):
            probability = max(root_values[i], TINY_PROBABILITY)
            total -= weights[begin + i] * np.log(probability)
            factors[i] = -weights[begin + i] / probability
    else:
        for i in range(size):
            total += weights[begin + i] * root_values[i]
            factors[i] = weights[begin + i]
    return total


@compiled
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
