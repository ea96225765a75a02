"""The compiled pass of rows whose targets are probabilities of groups.

With the weight w_ik = weight_i target_ik of row i in group k, the pass computes

    V_ik    = sum_l P_il W[k, l]
    value   = sum_i sum_k w_ik f(V_ik)
    g_ik    = w_ik f'(V_ik)
    mass[k, l] = sum_i g_ik P_il = d value / d W[k, l]
    U_i[leaf]  = sum_k g_ik W[k, leaf],    U[node] = p U[left] + (1 - p) U[right]
    d value / d z[node] = reach[node] gamma p (1 - p) (U[left] - U[right])

so that gates, reach and slopes are computed once for all groups of a row; what is left for a group
are sums over the leaves. Rows are processed in tiles, and a group only from the first to the last
row of a tile in which it has weight. Shapes: scores (n_branches, n_rows), targets (n_groups,
n_rows), table and mass (n_groups, n_leaves).
"""

from __future__ import annotations

import numpy as np

from softsplit.engines.tree_pass import chain
from softsplit.support.compiling import compiled, compiled_sums, compiled_uncounted
from softsplit.tree.routing import TILE, open_gates


@compiled
def target_pass(scores, slopes, targets, table, steepness, outer, mass):  # type: ignore[no-untyped-def]
    """Return the value of all rows; write slopes d value / d score and the leaf masses.

    Arguments are those of ``tree_pass``, with ``targets`` in the place of groups and weights.
    """
    n_branches = scores.shape[0]
    n_nodes = 2 * n_branches + 1
    gates, room = np.empty((2, n_branches, TILE)), np.empty((2 * n_nodes + 3, TILE))
    return _pass_tiles(
        scores, slopes, targets, table, steepness, outer, mass, gates, room, np.empty(0)
    )


@compiled_uncounted
def _pass_tiles(  # type: ignore[no-untyped-def]
    scores, slopes, targets, table, steepness, outer, mass, gates, room, none
):
    """``target_pass`` with work arrays; ``none`` is empty."""
    n_branches, n_rows = scores.shape
    n_groups, n_leaves = mass.shape
    n_nodes = n_branches + n_leaves
    left, right = gates[0], gates[1]
    reach, pulls = room[:n_nodes], room[n_nodes : 2 * n_nodes]
    mixed, factors, powers = room[2 * n_nodes], room[2 * n_nodes + 1], room[2 * n_nodes + 2]
    bits = powers.view(np.int64)
    for k in range(n_groups):
        for leaf in range(n_leaves):
            mass[k, leaf] = 0.0
    total = 0.0
    for begin in range(0, n_rows, TILE):
        size = min(TILE, n_rows - begin)
        # 1. Downwards: gates and reach of all nodes.
        for i in range(size):
            reach[0, i] = 1.0
        for t in range(n_branches):
            p, q = left[t], right[t]
            open_gates(scores[t], begin, size, steepness, p, q, powers, bits)
            _part(reach[t], p, q, size, reach[2 * t + 1], reach[2 * t + 2])
        # 2. Groups: V, f and g, the mass and U of the leaves.
        for node in range(n_branches, n_nodes):
            for i in range(size):
                pulls[node, i] = 0.0
        for k in range(n_groups):
            weights, low, high = targets[k], 0, size
            while low < high and weights[begin + low] == 0.0:
                low += 1
            while low < high and weights[begin + high - 1] == 0.0:
                high -= 1
            if low == high:
                continue
            count = high - low
            _mix(reach, n_branches, table[k], low, count, mixed)
            total += chain(mixed, weights, begin + low, count, outer, factors, none, powers, bits)
            for leaf in range(n_leaves):
                node = n_branches + leaf
                mass[k, leaf] += _deliver(
                    reach[node, low:high], factors, table[k, leaf], pulls[node, low:high]
                )
        # 3. Upwards: U of all nodes, and the slopes.
        for t in range(n_branches - 1, -1, -1):
            _lift(
                left[t], right[t], reach[t], pulls[2 * t + 1], pulls[2 * t + 2], steepness,
                pulls[t], slopes[t, begin : begin + size],
            )  # fmt: skip
    return total


@compiled_uncounted
def _part(here, p, q, size, to_left, to_right):  # type: ignore[no-untyped-def]
    for i in range(size):
        to_left[i] = here[i] * p[i]
        to_right[i] = here[i] * q[i]


@compiled_uncounted
def _mix(reach, first, shares, low, count, mixed):  # type: ignore[no-untyped-def]
    """Write V = sum_l P_l W_l of ``count`` rows of a tile from ``low`` on; leaves come in pairs."""
    for leaf in range(0, shares.size, 2):
        one, other = reach[first + leaf, low:], reach[first + leaf + 1, low:]
        a, b = shares[leaf], shares[leaf + 1]
        if leaf == 0:
            for i in range(count):
                mixed[i] = a * one[i] + b * other[i]
        else:
            for i in range(count):
                mixed[i] += a * one[i] + b * other[i]


@compiled_sums
def _deliver(arriving, factors, share, pull):  # type: ignore[no-untyped-def]
    """Return sum_i g_i P_i; add share g_i to ``pull``."""
    total = 0.0
    for i in range(pull.size):
        total += factors[i] * arriving[i]
        pull[i] += share * factors[i]
    return total


@compiled_uncounted
def _lift(p, q, reach, on_left, on_right, steepness, pull, slope):  # type: ignore[no-untyped-def]
    for i in range(slope.size):
        pull[i] = p[i] * on_left[i] + q[i] * on_right[i]
        slope[i] = steepness * reach[i] * p[i] * q[i] * (on_left[i] - on_right[i])
