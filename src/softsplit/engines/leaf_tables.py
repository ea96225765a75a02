"""The leaves' side of a pass: what a row costs in a leaf, and what is summed into the leaves.

A pass (tree_pass.py) routes rows through gates. The cost W_il of row i in leaf l depends on the
kind of target, and lies behind two functions that are chosen by the type of ``leaves``:

    lift_leaves      V[t] = p W[i, left leaf] + (1 - p) W[i, right leaf]
    end_in_leaves    d value / dz[t] = reach[t] gamma p (1 - p) (W[i, left leaf] - W[i, right leaf])
                     sums: what the derivative by the leaves needs of reach[leaf]

of the lowest branches t. There are two kinds of leaves:

    GroupTable       W_il = table[group(i), l]      sums[group, leaf] = sum of reach[leaf] over the
                     rows of a group. They are ordered by group: no row looks anything up.
    RowTable         W_il = costs[l, i]             sums[leaf, i] = reach[leaf] of every row

A ``RowTable`` serves leaves that hold functions: the costs are deviances d(y_i, eta_il) of scores
eta_il = a_l + u_l . x_i (tree/leaf_families.py), and reach times d' gives, by products with
(x_i, 1), the derivative by the functions. Another kind is a named tuple with two functions of its
own. Everything else in a pass stays. Shapes: as in tree_pass.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled_by_type, compiled_sums, compiled_uncounted


class GroupTable(NamedTuple):
    """Leaves that have a value for every target group of rows."""

    table: FloatArray  # (n_groups, n_leaves)
    starts: NDArray[np.int64]  # (n_groups + 1,): rows starts[k] .. starts[k + 1] - 1 are of group k


@compiled_uncounted
def part_of_group(starts, group, begin, size):  # type: ignore[no-untyped-def]
    """Return first and last + 1 of the rows of a group in a tile; low >= high if it has none."""
    return max(starts[group] - begin, 0), min(starts[group + 1] - begin, size)


@compiled_uncounted
def _lift_groups(leaves, left, right, at, begin, size, values):  # type: ignore[no-untyped-def]
    table, starts, n_branches = leaves.table, leaves.starts, left.shape[0]
    for t in range(n_branches // 2, n_branches):
        p, q, here = left[t, at : at + size], right[t, at : at + size], values[t]
        leaf = 2 * t + 1 - n_branches
        for group in range(len(starts) - 1):
            low, high = part_of_group(starts, group, begin, size)
            if low < high:
                _lift(
                    p[low:high], q[low:high], table[group, leaf], table[group, leaf + 1],
                    here[low:high],
                )  # fmt: skip


@compiled_uncounted
def _lift(p, q, on_left, on_right, here):  # type: ignore[no-untyped-def]
    for i in range(here.size):
        here[i] = p[i] * on_left + q[i] * on_right


@compiled_uncounted
def _end_in_groups(  # type: ignore[no-untyped-def]
    leaves, left, right, at, begin, size, reach, steepness, slopes, sums
):
    table, starts, n_branches = leaves.table, leaves.starts, left.shape[0]
    for t in range(n_branches // 2, n_branches):
        p, q, here = left[t, at : at + size], right[t, at : at + size], reach[t]
        slope = slopes[t, begin : begin + size]
        leaf = 2 * t + 1 - n_branches
        for group in range(len(starts) - 1):
            low, high = part_of_group(starts, group, begin, size)
            if low < high:
                gain = steepness * (table[group, leaf] - table[group, leaf + 1])
                mass_left, mass_right = _end(
                    p[low:high], q[low:high], here[low:high], gain, slope[low:high]
                )
                sums[group, leaf] += mass_left
                sums[group, leaf + 1] += mass_right


@compiled_sums
def _end(p, q, here, gain, slope):  # type: ignore[no-untyped-def]
    """Return the mass of both leaves below a branch for rows of one group; write their slopes."""
    mass_left, mass_right = 0.0, 0.0
    for i in range(slope.size):
        going_left = here[i] * p[i]
        mass_left += going_left
        mass_right += here[i] * q[i]
        slope[i] = gain * going_left * q[i]
    return mass_left, mass_right


class RowTable(NamedTuple):
    """Leaves that cost every row something else."""

    costs: FloatArray  # (n_leaves, n_rows)


@compiled_uncounted
def _lift_rows(leaves, left, right, at, begin, size, values):  # type: ignore[no-untyped-def]
    costs, n_branches = leaves.costs, left.shape[0]
    for t in range(n_branches // 2, n_branches):
        p, q, here = left[t, at : at + size], right[t, at : at + size], values[t]
        leaf = 2 * t + 1 - n_branches
        on_left, on_right = costs[leaf, begin : begin + size], costs[leaf + 1, begin : begin + size]
        for i in range(size):
            here[i] = p[i] * on_left[i] + q[i] * on_right[i]


@compiled_uncounted
def _end_in_rows(  # type: ignore[no-untyped-def]
    leaves, left, right, at, begin, size, reach, steepness, slopes, sums
):
    costs, n_branches, end = leaves.costs, left.shape[0], begin + size
    for t in range(n_branches // 2, n_branches):
        p, q, here = left[t, at : at + size], right[t, at : at + size], reach[t]
        slope, leaf = slopes[t, begin:end], 2 * t + 1 - n_branches
        on_left, on_right = costs[leaf, begin:end], costs[leaf + 1, begin:end]
        to_left, to_right = sums[leaf, begin:end], sums[leaf + 1, begin:end]
        for i in range(size):
            going_left = here[i] * p[i]
            to_left[i] = going_left
            to_right[i] = here[i] * q[i]
            slope[i] = steepness * going_left * q[i] * (on_left[i] - on_right[i])


@compiled_by_type({GroupTable: _lift_groups, RowTable: _lift_rows})
def lift_leaves(leaves, left, right, at, begin, size, values):  # type: ignore[no-untyped-def]
    """Write V of the branches above leaves to ``values``; gates of the tile begin at ``at``."""


@compiled_by_type({GroupTable: _end_in_groups, RowTable: _end_in_rows})
def end_in_leaves(leaves, left, right, at, begin, size, reach, steepness, slopes, sums):  # type: ignore[no-untyped-def]
    """Write the slopes of the branches above leaves; add what reaches leaves to ``sums``."""
