"""The leaves' side of a pass where targets come in groups: a table of every group in every leaf.

A pass (tree_pass.py) routes rows through gates. What a row costs in a leaf, W_il, and what is
summed into the leaves, is the part of it that depends on the kind of target, and lies here:

    lift_leaves      V[t] = p W[i, left leaf] + (1 - p) W[i, right leaf]
    end_in_leaves    d value / dz[t] = reach[t] gamma p (1 - p) (W[i, left leaf] - W[i, right leaf])
                     mass[group, leaf] = sum of reach[leaf] over the rows of a group

of the lowest branches t, with W_il = table[group(i), l]: rows are ordered by group, so that no row
looks anything up. Another kind of leaf, whose cost depends on the row, W_il = d(y_i, eta_il) with a
score eta_il = a_l + u_l . x_i, is a module with the same two functions: of W (n_leaves, n_rows)
instead of ``table`` and ``starts``, and with reach[leaf] d'(y_i, eta_il) of every row instead of
``mass``, for its sums with (x_i, 1). Everything else in a pass stays. Shapes: as in tree_pass.py.
"""

from __future__ import annotations

from softsplit.support.compiling import compiled_sums, compiled_uncounted


@compiled_uncounted
def part_of_group(starts, group, begin, size):  # type: ignore[no-untyped-def]
    """Return first and last + 1 of the rows of a group in a tile; low >= high if it has none."""
    return max(starts[group] - begin, 0), min(starts[group + 1] - begin, size)


@compiled_uncounted
def lift_leaves(left, right, at, table, starts, begin, size, values):  # type: ignore[no-untyped-def]
    """Write V of the branches above leaves to ``values``; gates of the tile begin at ``at``."""
    n_branches = left.shape[0]
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
def end_in_leaves(  # type: ignore[no-untyped-def]
    left, right, at, table, starts, begin, size, reach, steepness, slopes, mass
):
    """Write the slopes of the branches above leaves; add the reach of leaves to ``mass``."""
    n_branches = left.shape[0]
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
                mass[group, leaf] += mass_left
                mass[group, leaf + 1] += mass_right


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
