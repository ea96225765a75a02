"""The walk of many rows in compiled code, tile by tile, with the bits of ``Walk.holds``.

    above_t = sum_j c_tj x_j - b_t,      size_t = |b_t| + sum_j |c_tj x_j|

term by term in the order of the columns, every operation rounded by itself; question t holds where
above_t > TIE size_t, and where - above_t > TIE size_t if it reads "<".
"""

from __future__ import annotations

import numpy as np

from softsplit.support.compiling import compiled_plainly

TILE = 256
"""Rows that are asked together; a constant of the compiled code."""


@compiled_plainly
def walk_lines(  # type: ignore[no-untyped-def]
    lines, starts, columns, coefficients, thresholds, upwards, tie, leaves
):
    """Write the leaf of each row.

    Parameters
    ----------
    lines : array (n_used, n_rows)
        In original units.
    starts, columns, coefficients : arrays
        The terms of question t are the entries ``starts[t] .. starts[t + 1] - 1``.
    thresholds, upwards : arrays (n_branches,)
    leaves : int array (n_rows,)
    """
    n_branches, n_rows = len(thresholds), lines.shape[1]
    total, size = np.empty(TILE), np.empty(TILE)
    for begin in range(0, n_rows, TILE):
        count = min(TILE, n_rows - begin)
        # 1. All rows of the tile at the root.
        nodes = leaves[begin : begin + count]
        nodes[:] = 0
        for t in range(n_branches):
            # 2. For each question that rows have reached: the sum, and the size of its terms.
            asked = 0
            for i in range(count):
                asked += nodes[i] == t
            if asked == 0:
                continue
            threshold = thresholds[t]
            for i in range(count):
                total[i], size[i] = 0.0, abs(threshold)
            for e in range(starts[t], starts[t + 1]):
                line, coefficient = lines[columns[e]], coefficients[e]
                for i in range(count):
                    term = coefficient * line[begin + i]
                    total[i] += term
                    size[i] += abs(term)
            # 3. The side; a sum that misses the threshold by rounding counts as equal to it.
            sign = 1.0 if upwards[t] else -1.0
            for i in range(count):
                if nodes[i] == t:
                    holds = sign * (total[i] - threshold) > tie * size[i]
                    nodes[i] = 2 * t + 1 if holds else 2 * t + 2
        # 4. Nodes as leaves.
        for i in range(count):
            nodes[i] -= n_branches
