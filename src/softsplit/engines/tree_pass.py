"""The compiled forward-backward pass of all rows through the whole tree.

A loss that is a function f (outer.py) of a linear function of the leaf probabilities P_il is given
by a table ``W[group, leaf]`` for the target groups of rows (leaf_tables.py). The pass computes,
without any array of rows x leaves,

    V[leaf]  = W[group(i), leaf]
    V[node]  = p V[left] + (1 - p) V[right]                     upwards; V[root] = sum_l P_il W_l
    value    = sum_i weight_i f(V_i[root])
    reach    = weight_i f'(V_i[root]) times the gates above a node                      downwards
    d value / d z[node] = reach[node] gamma p (1 - p) (V[left] - V[right])
    mass[group, leaf]   = sum of reach[leaf] over the rows of a group = d value / d W[group, leaf]

which is reverse-mode differentiation by hand. Shapes: scores (n_branches, n_rows), table and mass
(n_groups, n_leaves). Rows are ordered by group and processed in tiles that stay in the first-level
cache; a tile may hold rows of several groups, which matters at the branches above leaves alone.
"""

from __future__ import annotations

import numpy as np

from softsplit.engines.leaf_tables import GroupTable, RowTable, end_in_leaves, lift_leaves
from softsplit.engines.outer import IDENTITY, LOGARITHM, TINY_PROBABILITY, logarithms, outer_terms
from softsplit.support.compiling import compiled, compiled_sums, compiled_uncounted
from softsplit.tree.routing import TILE, open_gates


@compiled
def tree_pass(scores, slopes, starts, weights, table, steepness, outer, mass, outer_curvature):  # type: ignore[no-untyped-def]
    """Return the value of all rows; write slopes d value / d score and the leaf masses.

    Parameters
    ----------
    scores : array (n_branches, n_rows)
    slopes : array (n_branches, n_rows)
        Overwritten with the derivative of the returned value; may be ``scores`` itself.
    starts : int array (n_groups + 1,)
        Rows ``starts[k] .. starts[k + 1] - 1`` are of group k.
    weights : array (n_rows,)
    table : array (n_groups, n_leaves)
    steepness : float
    outer : int
        Number of the outer function f.
    mass : array (n_groups, n_leaves)
        Overwritten with sum_i weight_i f'(V_i) P_il = d value / d table.
    outer_curvature : array (n_rows,), or of length 0 if it is not needed
        Overwritten with f'' / (weight f'^2): times a product of two slopes it is the second
        derivative due to f. Not written under the identity, where it is zero.
    """
    n_branches = scores.shape[0]
    gates, room = np.empty((2, n_branches, TILE)), np.empty((2 * n_branches + 1, TILE))
    return pass_tiles(
        scores, slopes, weights, GroupTable(table, starts), steepness, outer, mass,
        outer_curvature, gates, room, False,
    )  # fmt: skip


@compiled
def expected_pass(scores, slopes, weights, costs, reach):  # type: ignore[no-untyped-def]
    """Return sum_i weight_i sum_l P_il costs[l, i], for leaves that cost every row something else.

    Parameters
    ----------
    scores, slopes : arrays (n_branches, n_rows)
        As of ``tree_pass``, at steepness 1.
    weights : array (n_rows,)
    costs : array (n_leaves, n_rows)
    reach : array (n_leaves, n_rows)
        Overwritten with weight_i P_il = d value / d costs.
    """
    n_branches = scores.shape[0]
    gates, room = np.empty((2, n_branches, TILE)), np.empty((2 * n_branches + 1, TILE))
    return pass_tiles(
        scores, slopes, weights, RowTable(costs), 1.0, IDENTITY, reach, np.empty(0), gates, room,
        False,
    )  # fmt: skip


@compiled_uncounted
def pass_tiles(  # type: ignore[no-untyped-def]
    scores, slopes, weights, leaves, steepness, outer, sums, outer_curvature, gates, room, opened
):
    """``tree_pass`` for any kind of ``leaves`` (leaf_tables.py) and their ``sums``.

    Work arrays are given: ``room`` has shape (2 n_branches + 1, TILE).

    ``gates`` of shape (2, n_branches, n_rows) is overwritten with the gates of all rows, left and
    right, unless ``opened`` says that it holds them already; of shape (2, n_branches, TILE) it
    holds one tile at a time.
    """
    n_branches, n_rows = scores.shape
    left, right = gates[0], gates[1]
    values, reach, powers = room[:n_branches], room[n_branches:], room[2 * n_branches]
    bits = powers.view(np.int64)
    kept = gates.shape[2] >= n_rows
    for line in range(sums.shape[0]):
        for i in range(sums.shape[1]):
            sums[line, i] = 0.0
    total = 0.0
    for begin in range(0, n_rows, TILE):
        size = min(TILE, n_rows - begin)
        # First column of the tile in ``gates``; begin - begin is a zero of the same integer type.
        at = begin if kept else begin - begin
        if not (kept and opened):
            for t in range(n_branches):
                open_gates(
                    scores[t], begin, size, steepness, left[t, at:], right[t, at:], powers, bits
                )
        # 1. Upwards: V of every branch.
        lift_values(leaves, left, right, at, begin, size, values)
        # 2. At the root: f and its derivatives.
        total += chain(
            values[0], weights, begin, size, outer, reach[0], outer_curvature, powers, bits
        )
        # 3. Downwards: reach and slopes, and at the bottom the sums of the leaves.
        _spread(left, right, at, begin, size, values, reach, steepness, slopes)
        end_in_leaves(leaves, left, right, at, begin, size, reach, steepness, slopes, sums)
    return total


@compiled_uncounted
def lift_values(leaves, left, right, at, begin, size, values):  # type: ignore[no-untyped-def]
    """Write V[t] = p V[left] + (1 - p) V[right] to ``values``, from the lowest branches up.

    The gates of the tile are the columns of ``left`` and ``right`` from ``at`` on.
    """
    lift_leaves(leaves, left, right, at, begin, size, values)
    for t in range(left.shape[0] // 2 - 1, -1, -1):
        p, q, here = left[t, at : at + size], right[t, at : at + size], values[t]
        below_left, below_right = values[2 * t + 1], values[2 * t + 2]
        for i in range(size):
            here[i] = p[i] * below_left[i] + q[i] * below_right[i]


@compiled_sums
def chain(root_values, weights, begin, size, outer, factors, outer_curvature, logs, bits):  # type: ignore[no-untyped-def]
    """Return sum_i weight_i f(V_i) over the tile; write weight_i f'(V_i) to ``factors``.

    ``logs`` is scratch and ``bits`` its view as integers.
    """
    total = 0.0
    weight = weights[begin : begin + size]
    if outer == IDENTITY:  # f = V, f' = 1
        for i in range(size):
            total += weight[i] * root_values[i]
            factors[i] = weight[i]
        return total
    if outer == LOGARITHM:  # f = -log V, f' = -1 / V, with vectorised logarithms
        for i in range(size):
            logs[i] = max(root_values[i], TINY_PROBABILITY)
        logarithms(logs, bits, factors, size)
        for i in range(size):
            total -= weight[i] * logs[i]
        for i in range(size):
            factors[i] = -weight[i] / max(root_values[i], TINY_PROBABILITY)
    else:
        for i in range(size):
            value, slope, _ = outer_terms(outer, root_values[i])
            total += weight[i] * value
            factors[i] = weight[i] * slope
    if outer_curvature.size > 0:
        # f'' / (weight f'^2): see ``tree_pass``.
        for i in range(size):
            _, slope, curvature = outer_terms(outer, root_values[i])
            squared = weight[i] * slope * slope
            outer_curvature[begin + i] = curvature / squared if squared > 0.0 else 0.0
    return total


@compiled_uncounted
def _spread(left, right, at, begin, size, values, reach, steepness, slopes):  # type: ignore[no-untyped-def]
    """Write reach and slopes from the root down to the branches above leaves."""
    for t in range(left.shape[0] // 2):
        p, q, here = left[t, at : at + size], right[t, at : at + size], reach[t]
        slope = slopes[t, begin : begin + size]
        below_left, below_right = values[2 * t + 1], values[2 * t + 2]
        reach_left, reach_right = reach[2 * t + 1], reach[2 * t + 2]
        # reach of the children, and d value / dz = gamma reach p (1 - p) (V[left] - V[right]).
        for i in range(size):
            going_left = here[i] * p[i]
            reach_left[i] = going_left
            reach_right[i] = here[i] * q[i]
            slope[i] = steepness * going_left * q[i] * (below_left[i] - below_right[i])
