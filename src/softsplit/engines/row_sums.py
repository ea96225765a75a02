"""All sums of base.py over many rows in one pass, in pieces that threads share.

A piece is a fixed number of rows with sums of its own, which are added in the order of the pieces,
so that the bits do not depend on the number of threads. Within a piece, scores, gates, values and
slopes (formulas in tree_pass.py) are computed for a tile of rows and summed while the tile is in
the first-level cache: there is no array of branches x rows. Features may be in single precision;
all arithmetic is in double precision. ``HingedLines`` are computed tile by tile too.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import Sums
from softsplit.engines.hinged import HingedLines
from softsplit.engines.leaf_tables import GroupTable
from softsplit.engines.samples import Samples
from softsplit.engines.tree_pass import chain, lift_values
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.tree.routing import TILE, open_gates

PIECE = 32_768
"""Rows of a piece, the unit of work of a thread; the bits of the sums depend on it."""

NO_RECIPE = np.zeros((0, 3))
"""Of features that are stored as they are."""


def row_sums(
    samples: Samples,
    columns: NDArray[np.intp],
    splits: FloatArray,
    table: FloatArray,
    outer: int,
    steepness: float,
    threads: int,
) -> Sums:
    """Return the sums at the tree with ``splits``, whose weights belong to ``columns``."""
    n_columns, n_rows = len(columns), samples.n_rows
    begins = range(0, n_rows, PIECE)
    weights = np.ascontiguousarray(splits[:, :-1]) / n_columns
    thresholds = np.ascontiguousarray(splits[:, -1])
    table = np.ascontiguousarray(table, dtype=float)
    values = np.zeros(len(begins))
    slopes = np.zeros((len(begins), len(splits), n_columns + 1))
    masses = np.zeros((2, len(begins), *table.shape))
    features, recipe = samples.features, NO_RECIPE
    if isinstance(features, HingedLines):
        recipe = np.column_stack([features.knots, features.low, features.span])[columns]
        features, columns = features.values, features.homes[columns]

    def add(piece: int) -> None:
        begin = piece * PIECE
        values[piece] = add_piece(
            features, columns, recipe, begin, min(begin + PIECE, n_rows), samples.starts,
            samples.weights, weights, thresholds, table, float(steepness), outer, slopes[piece],
            masses[0, piece], masses[1, piece],
        )  # fmt: skip

    if threads > 1 and len(begins) > 1:
        with ThreadPoolExecutor(min(threads, len(begins))) as pool:
            list(pool.map(add, range(len(begins))))
    else:
        for piece in range(len(begins)):
            add(piece)
    by_split = np.sum(slopes, axis=0)
    by_split[:, :-1] /= n_columns
    mass, by_table = np.sum(masses, axis=1)
    return Sums(float(np.sum(values)), by_split, mass, by_table)


@compiled
def add_piece(  # type: ignore[no-untyped-def]
    features, columns, recipe, first, last, starts, weights, splits, thresholds, table, steepness,
    outer, by_split, mass, by_table,
):  # fmt: skip
    """Return the value of rows first .. last - 1; add d value / d theta, mass, d value / d table.

    ``by_split`` (n_branches, n_columns + 1) gets sum_i slope_i (x_i, -1): the caller divides by
    n_columns. ``splits`` are already divided. Column j is ``features[columns[j]]`` as it is or,
    with a ``recipe`` (n_columns, 3) of knots, lows and spans, what hinged.py makes of it.
    """
    n_branches, n_columns = splits.shape
    left, right = np.empty((n_branches, TILE)), np.empty((n_branches, TILE))
    values, reach = np.empty((n_branches, TILE)), np.empty((n_branches, TILE))
    plain = np.empty((n_branches, TILE))
    scores, lines = np.empty((n_branches, TILE)), np.zeros((n_columns, TILE))
    product = np.empty((n_branches, n_columns))
    powers, none = np.empty(TILE), np.empty(0)
    bits = powers.view(np.int64)
    leaves = GroupTable(table, starts)
    total = 0.0
    for group in range(len(starts) - 1):
        low, high = max(starts[group], first), min(starts[group + 1], last)
        for begin in range(low, high, TILE):
            size = min(TILE, high - begin)
            # 1. The columns of the tile in double precision.
            for j in range(n_columns):
                line, column = lines[j], features[columns[j]]
                if len(recipe) == 0:
                    for i in range(size):
                        line[i] = column[begin + i]
                else:
                    _scale(column[begin : begin + size], size, recipe[j], line)
            # 2. z, gates, V upwards, and f with weight f' at the root.
            _score(splits, thresholds, lines, size, scores)
            for t in range(n_branches):
                open_gates(scores[t], 0, size, steepness, left[t], right[t], powers, bits)
            lift_values(leaves, left, right, 0, begin, size, values)
            total += chain(values[0], weights, begin, size, outer, reach[0], none, powers, bits)
            # 3. Downwards with weight f' (``reach``) and with the weight alone (``plain``); slopes
            # replace the scores, and their products with the columns are added.
            for i in range(size):
                plain[0, i] = weights[begin + i]
            _spread(left, right, table[group], size, values, reach, plain, steepness, scores,
                    mass[group], by_table[group])  # fmt: skip
            _gather(scores, lines, size, product, by_split)
    return total


@compiled
def _scale(column, size, recipe, line):  # type: ignore[no-untyped-def]
    """Write a scaled value or hinge of a tile, rounded as an array of its type would be."""
    knot, low, span = recipe[0], recipe[1], recipe[2]
    bent, single = knot > -np.inf, column.itemsize == 4
    if single and bent:
        for i in range(size):
            line[i] = np.float32((np.float32(max(column[i] - knot, 0.0)) - low) / span)
    elif single:
        for i in range(size):
            line[i] = np.float32((column[i] - low) / span)
    elif bent:
        for i in range(size):
            line[i] = (max(column[i] - knot, 0.0) - low) / span
    else:
        for i in range(size):
            line[i] = (column[i] - low) / span


@compiled
def _score(splits, thresholds, lines, size, scores):  # type: ignore[no-untyped-def]
    """Write the scores of a tile; zero weights of a sparse tree are skipped."""
    n_branches, n_columns = splits.shape
    for t in range(n_branches):
        score = scores[t]
        for i in range(size):
            score[i] = -thresholds[t]
        for j in range(n_columns):
            weight, line = splits[t, j], lines[j]
            if weight != 0.0:
                for i in range(size):
                    score[i] += weight * line[i]


@compiled
def _spread(  # type: ignore[no-untyped-def]
    left, right, leaf_values, size, values, reach, plain, steepness, slopes, mass, by_table
):
    """Write the slopes of a tile from the root down; add the masses with f' and without it."""
    n_branches = left.shape[0]
    for t in range(n_branches):
        p, q, here, bare, slope = left[t], right[t], reach[t], plain[t], slopes[t]
        if 2 * t + 1 >= n_branches:
            # Both children are leaves: slopes, d value / d table and mass of both.
            leaf = 2 * t + 1 - n_branches
            gain = steepness * (leaf_values[leaf] - leaf_values[leaf + 1])
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for i in range(size):
                slope[i] = gain * here[i] * p[i] * q[i]
            for i in range(size):
                a += here[i] * p[i]
                b += here[i] * q[i]
                c += bare[i] * p[i]
                d += bare[i] * q[i]
            by_table[leaf] += a
            by_table[leaf + 1] += b
            mass[leaf] += c
            mass[leaf + 1] += d
        else:
            below_left, below_right = values[2 * t + 1], values[2 * t + 2]
            reach_left, reach_right = reach[2 * t + 1], reach[2 * t + 2]
            bare_left, bare_right = plain[2 * t + 1], plain[2 * t + 2]
            # reach of the children, and d value / dz = gamma reach p (1 - p) (V[left] - V[right]).
            for i in range(size):
                going_left = here[i] * p[i]
                reach_left[i] = going_left
                reach_right[i] = here[i] * q[i]
                bare_left[i] = bare[i] * p[i]
                bare_right[i] = bare[i] * q[i]
                slope[i] = steepness * going_left * q[i] * (below_left[i] - below_right[i])


@compiled
def _gather(slopes, lines, size, product, by_split):  # type: ignore[no-untyped-def]
    """Add sum_i slope_i (x_i, -1) of a tile to ``by_split``."""
    n_branches, n_columns = slopes.shape[0], lines.shape[0]
    # Derivative by the thresholds; slopes behind the last row become zero for the matrix product.
    for t in range(n_branches):
        slope = slopes[t]
        for i in range(size, TILE):
            slope[i] = 0.0
        a, b, c, d = 0.0, 0.0, 0.0, 0.0  # four partial sums, which vectorise
        for i in range(0, TILE, 4):
            a += slope[i]
            b += slope[i + 1]
            c += slope[i + 2]
            d += slope[i + 3]
        by_split[t, n_columns] -= (a + b) + (c + d)
    # Derivative by the weights.
    np.dot(slopes, lines.T, product)
    for t in range(n_branches):
        for j in range(n_columns):
            by_split[t, j] += product[t, j]
