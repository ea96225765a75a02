"""From rows as they are given to scores and answers, tile by tile and without large arrays.

With f the features that the tree uses:

    x_f     = (raw_f - low_f) * inverse_f, cut at FAR           scaled units, a line per feature
    z_t     = sum_f weight_tf x_f - mu_t                        over the weights that are not zero
    p_t     = F(steepness z_t)
    reach   = product of the gates above                        leaves from left to right
    answer  = sum_l reach_l table_lk / sum_lk reach_l table_lk  a line per column k

The bits of an answer depend on nothing but its row. Each number is made by the same operations in
the same order wherever the row stands: a tile always has TILE rows, the last one being filled up,
so that no loop has a rest that is computed in another way; and every operation is rounded by
itself. ``pass_in_numpy`` therefore gives the same bits. It answers few rows, for a new process
spends a third of a second before its first compiled function runs, and seconds to compile it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled_plainly, in_python
from softsplit.tree.routing import (
    SATURATION,
    TILE,
    exponential_parts,
    node_reach,
    tile_gates,
)
from softsplit.tree.scaling import FAR

TOGETHER = 4
"""Features added to a score at a time, so that it is loaded and stored less often."""


@compiled_plainly
def row_pass(  # type: ignore[no-untyped-def]
    values, first, row_step, places, low, inverse, split_starts, split_lines, split_weights,
    steepness, leaf_starts, leaf_columns, leaf_shares, scores, answers, lines, routes, mixed, bits,
):  # fmt: skip
    """Overwrite ``answers``, and ``scores`` where somebody asks for them.

    Work arrays are handed in: to allocate them here would double the time of compiling.

    Parameters
    ----------
    values : array (n_numbers,)
        Feature f of row i is ``values[first + i * row_step + places[f]]``, for whole tiles.
    low, inverse : array (n_used,)
        Of the scaling.
    split_starts, split_lines, split_weights : arrays
        Terms of z_t: entries ``split_starts[t] .. split_starts[t + 1] - 1``, a multiple of
        TOGETHER. The threshold is the weight of line n_used, which is -1 throughout.
    steepness : float
    leaf_starts, leaf_columns, leaf_shares : arrays
        What a leaf adds to an answer; column n_columns is the sum of the others.
    scores : array (n_rows, n_branches) or (0, n_branches)
    answers : array (n_rows, n_columns)
    lines : array (n_used + 1, TILE)
    routes : array (3 depth + 3, TILE)
        Reach by level, score, powers, and the gates left and right by level.
    mixed : array (n_columns + 1, TILE)
    bits : integer array (TILE,)
        The powers, seen as integers.
    """
    n_leaves, depth = len(leaf_starts) - 1, len(routes) // 3 - 1
    reach, score, powers = routes[: depth + 1], routes[depth + 1], routes[depth + 2]
    left, right = routes[depth + 3 : 2 * depth + 3], routes[2 * depth + 3 :]
    n_columns = answers.shape[1]
    for i in range(TILE):
        reach[0, i] = 1.0
        lines[len(places), i] = -1.0
    for begin in range(0, len(answers), TILE):
        size = min(TILE, len(answers) - begin)
        _read(values, first + begin * row_step, row_step, places, low, inverse, lines)
        for k in range(n_columns + 1):
            for i in range(TILE):
                mixed[k, i] = 0.0
        for leaf in range(n_leaves):
            # The way to this leaf leaves that to the one before at level ``turn``, to the right.
            turn = 0
            if leaf > 0:
                turn = depth - 1
                while (leaf >> (depth - 1 - turn)) & 1 == 0:
                    turn -= 1
            for level in range(turn, depth):
                if level > turn or leaf == 0:
                    t = (1 << level) - 1 + (leaf >> (depth - level))
                    _split(
                        lines, split_lines, split_weights, split_starts[t], split_starts[t + 1],
                        score,
                    )  # fmt: skip
                    if len(scores) > 0:
                        for i in range(size):
                            scores[begin + i, t] = score[i]
                    _gates(score, steepness, left[level], right[level], powers, bits)
                side = right[level] if (leaf >> (depth - 1 - level)) & 1 else left[level]
                above, below = reach[level], reach[level + 1]
                for i in range(TILE):
                    below[i] = above[i] * side[i]
            arriving = reach[depth]
            for entry in range(leaf_starts[leaf], leaf_starts[leaf + 1]):
                line, share = mixed[leaf_columns[entry]], leaf_shares[entry]
                for i in range(TILE):
                    line[i] += share * arriving[i]
        total = mixed[n_columns]
        for k in range(n_columns):
            line = mixed[k]
            for i in range(size):
                answers[begin + i, k] = line[i] / total[i]


@compiled_plainly
def _read(values, first, row_step, places, low, inverse, lines):  # type: ignore[no-untyped-def]
    """A tile in scaled units, one line per feature; read in the order in which X lies in memory.

    Four rows at a time where rows lie together. There, values are looked at again, to be cut, only
    if their sizes add up to FAR: this can not change a value that is not cut.
    """
    sizes = FAR
    if row_step == 1:
        for f in range(len(places)):
            line, at, start, factor = lines[f], first + places[f], low[f], inverse[f]
            for i in range(TILE):
                line[i] = (values[at + i] - start) * factor
    else:
        sizes = 0.0
        for i in range(0, TILE, 4):
            row = first + i * row_step
            in_a = in_b = in_c = in_d = 0.0
            for f in range(len(places)):
                line, at, start, factor = lines[f], row + places[f], low[f], inverse[f]
                a = (values[at] - start) * factor
                b = (values[at + row_step] - start) * factor
                c = (values[at + 2 * row_step] - start) * factor
                d = (values[at + 3 * row_step] - start) * factor
                line[i], line[i + 1], line[i + 2], line[i + 3] = a, b, c, d
                in_a += abs(a)
                in_b += abs(b)
                in_c += abs(c)
                in_d += abs(d)
            sizes += (in_a + in_b) + (in_c + in_d)
    if not sizes < FAR:
        for f in range(len(places)):
            line = lines[f]
            for i in range(TILE):
                line[i] = min(max(line[i], -FAR), FAR)


@compiled_plainly
def _split(lines, entries, weights, begin, end, score):  # type: ignore[no-untyped-def]
    """Scores of one branch."""
    for i in range(TILE):
        score[i] = 0.0
    for e in range(begin, end, TOGETHER):
        a, b, c, d = (
            lines[entries[e]], lines[entries[e + 1]], lines[entries[e + 2]], lines[entries[e + 3]],
        )  # fmt: skip
        on_a, on_b, on_c, on_d = weights[e], weights[e + 1], weights[e + 2], weights[e + 3]
        for i in range(TILE):
            total = score[i] + on_a * a[i]
            total = total + on_b * b[i]
            total = total + on_c * c[i]
            score[i] = total + on_d * d[i]


@compiled_plainly
def _gates(score, steepness, left, right, powers, bits):  # type: ignore[no-untyped-def]
    tile_gates(score, 0, TILE, steepness, left, right, powers, bits)


def pass_in_numpy(
    rows: FloatArray,
    low: FloatArray,
    inverse: FloatArray,
    weights: FloatArray,
    thresholds: FloatArray,
    steepness: float,
    leaves: tuple[NDArray[np.int64], NDArray[np.int64], FloatArray],
    scores: FloatArray,
    answers: FloatArray,
) -> None:
    """The same for the used columns of ``rows``, (n_rows, n_used); weights (n_branches, n_used)."""
    with np.errstate(over="ignore"):
        lines = np.clip((rows - low) * inverse, -FAR, FAR).T
    z = np.zeros((len(thresholds), len(rows)))
    for f in range(len(lines)):
        z += weights[:, f, None] * lines[f]
    z -= thresholds[:, None]
    if len(scores):
        scores[:] = z.T
    reach = node_reach(*_gates_in_numpy(z, steepness))
    starts, columns, shares = leaves
    mixed = np.zeros((answers.shape[1] + 1, len(rows)))
    for leaf in range(len(z) + 1):
        for e in range(starts[leaf], starts[leaf + 1]):
            mixed[columns[e]] += shares[e] * reach[len(z) + leaf]
    answers[:] = (mixed[:-1] / mixed[-1]).T


def _gates_in_numpy(scores: FloatArray, steepness: float) -> tuple[FloatArray, FloatArray]:
    with np.errstate(over="ignore"):
        decay, powers = in_python(exponential_parts)(
            np.minimum(np.abs(steepness * scores), SATURATION)
        )
    decay *= ((1023 - (powers.view(np.int64) & 0xFFFF)) << 52).view(np.float64)
    large = 1.0 / (1.0 + decay)
    small = decay * large
    positive = scores >= 0.0
    return np.where(positive, large, small), np.where(positive, small, large)
