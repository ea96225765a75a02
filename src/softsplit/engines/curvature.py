"""Second derivatives of the sums over rows in memory, for Newton steps.

With g_ti = dF/dz_ti from the pass and gates p, q = 1 - p, the second derivatives of the loss in the
scores are, where the outer function f is the identity,

    d2 / dz_t dz_t = steepness (q_t - p_t) g_t
    d2 / dz_s dz_t = steepness q_s g_t      if t lies left of s,  - steepness p_s g_t  if right

and zero for branches that are not on one path. Another f adds g_s g_t f'' / (weight f'^2) for every
pair of branches, with g of the loss alone. Rows whose gates are saturated have g = 0 and drop out,
as do coefficients that are fixed: what is left is small.

A *variable* is a coefficient that moves, or several that are tied and move as one: ``index`` gives
the variable of every entry of theta (-1: none) and ``signs`` how the entry follows it.
"""

from __future__ import annotations

import numpy as np

from softsplit.engines.passes import all_rate_slopes, rate_slopes
from softsplit.support.compiling import compiled
from softsplit.tree.routing import open_gates

NEGLIGIBLE = 1e-6
"""Rows whose slopes are smaller than this part of the largest one do not count."""

CHUNK = 1024
"""Rows whose part of the matrix is added up at a time."""


@compiled
def least_slope(passes, free):  # type: ignore[no-untyped-def]
    """What a slope must exceed for its row to count; zero if no row does."""
    slopes = passes.slopes
    largest = 0.0
    for t in range(slopes.shape[0]):
        if not free[t]:
            continue
        for i in range(slopes.shape[1]):
            largest = max(largest, abs(slopes[t, i]))
    return NEGLIGIBLE * largest


@compiled
def _rows_that_count(slopes, least):  # type: ignore[no-untyped-def]
    """Rows whose slope at one branch is larger than ``least``."""
    rows = np.empty(slopes.size, dtype=np.int64)
    count = 0
    for i in range(slopes.size):
        if abs(slopes[i]) > least:
            rows[count] = i
            count += 1
    return rows[:count]


@compiled
def _design(index, signs, features, rows, t):  # type: ignore[no-untyped-def]
    """dz_ti over the entries of branch t that move (one line each), and their variables."""
    width = index.shape[1]
    count = 0
    for j in range(width):
        if index[t, j] >= 0:
            count += 1
    lines = np.empty((count, rows.size))
    variables = np.empty(count, dtype=np.int64)
    k = 0
    for j in range(width):
        if index[t, j] < 0:
            continue
        variables[k] = index[t, j]
        factor = signs[t, j]
        if j < width - 1:
            factor /= width - 1
            for r in range(rows.size):
                lines[k, r] = factor * features[j, rows[r]]
        else:
            for r in range(rows.size):
                lines[k, r] = -factor
        k += 1
    return lines, variables


@compiled
def _gates_of(scores, rows, steepness, left, right, powers):  # type: ignore[no-untyped-def]
    """Gates of one branch at ``rows``."""
    chosen = np.empty(rows.size)
    for r in range(rows.size):
        chosen[r] = scores[rows[r]]
    bits = powers.view(np.int64)
    open_gates(chosen, np.int64(0), rows.size, steepness, left, right, powers, bits)


@compiled
def add_branch(index, signs, passes, least, t, matrix):  # type: ignore[no-untyped-def]
    """Second derivatives of branch t with itself and with the branches above it.

    Rows are taken in chunks, so that their lines stay in the cache and take little memory.
    """
    rows_of, steepness, parents = passes.rows, passes.steepness, passes.rows.parents
    features, scores, slopes = rows_of.features, passes.scores, passes.slopes[t]
    counting = _rows_that_count(slopes, least)
    left, right, powers = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK)
    for begin in range(0, counting.size, CHUNK):
        rows = counting[begin : begin + CHUNK]
        factor = np.empty(rows.size)
        lines, variables = _design(index, signs, features, rows, t)
        _gates_of(scores[t], rows, steepness, left, right, powers)
        for r in range(rows.size):
            factor[r] = steepness * (right[r] - left[r]) * slopes[rows[r]]
        _add_block(lines, variables, factor, lines, variables, 0.0, matrix)
        node = t
        while parents[node] >= 0:
            other = parents[node]
            _gates_of(scores[other], rows, steepness, left, right, powers)
            went_left = rows_of.on_left[node]
            for r in range(rows.size):
                gate = right[r] if went_left else -left[r]
                factor[r] = steepness * gate * slopes[rows[r]]
            above, others = _design(index, signs, features, rows, other)
            _add_block(lines, variables, factor, above, others, 1.0, matrix)
            node = other


@compiled
def _add_block(lines, variables, factor, others, columns, mirror, matrix):  # type: ignore[no-untyped-def]
    """matrix[variables, columns] += lines diag(factor) others', and ``mirror`` x its transpose."""
    weighted = np.empty(lines.shape)
    for k in range(lines.shape[0]):
        for r in range(factor.size):
            weighted[k, r] = lines[k, r] * factor[r]
    block = np.empty((variables.size, columns.size))
    np.dot(weighted, others.T, block)
    for a in range(variables.size):
        for b in range(columns.size):
            matrix[variables[a], columns[b]] += block[a, b]
            matrix[columns[b], variables[a]] += mirror * block[a, b]


@compiled
def add_bends(index, signs, passes, matrix):  # type: ignore[no-untyped-def]
    """What an outer function that is not the identity adds: sum_i bend_i (g dz)(g dz)'."""
    rows_of, bends = passes.rows, passes.bends
    n_branches, n_rows = passes.slopes.shape
    n_variables = matrix.shape[0]
    for begin in range(0, n_rows, CHUNK):
        rows = np.arange(begin, min(begin + CHUNK, n_rows))
        moved = np.zeros((n_variables, rows.size))
        for t in range(n_branches):
            lines, variables = _design(index, signs, rows_of.features, rows, t)
            for r in range(rows.size):
                slope = _slope_of_loss(passes, t, rows[r])
                for a in range(variables.size):
                    moved[variables[a], r] += slope * lines[a, r]
        weighted = np.empty((n_variables, rows.size))
        for a in range(n_variables):
            for r in range(rows.size):
                weighted[a, r] = moved[a, r] * bends[rows[r]]
        block = np.empty((n_variables, n_variables))
        np.dot(weighted, moved.T, block)
        for a in range(n_variables):
            for b in range(n_variables):
                matrix[a, b] += block[a, b]


@compiled
def _slope_of_loss(passes, t, row):  # type: ignore[no-untyped-def]
    """The slope without the priced rates, which are linear and bend nothing."""
    slope = passes.slopes[t, row]
    if passes.rate_slopes.shape[1] > 0:
        for k in range(passes.price.size):
            if row < passes.rows.starts[k + 1]:
                return slope + passes.price[k] * passes.rate_slopes[t, row]
    return slope


@compiled
def rate_gradient(passes, k, gradient):  # type: ignore[no-untyped-def]
    """Derivative of the rate of class k, by branch and coefficient, to ``gradient``.

    Rows are taken in chunks: no array of all rows and branches is needed besides ``passes``.
    """
    rows = passes.rows
    n_branches, n_features = passes.scores.shape[0], rows.features.shape[0]
    length = min(CHUNK, rows.starts[k + 1] - rows.starts[k])
    slopes = np.empty((n_branches, length))
    features, products = np.empty((n_features, length)), np.empty((n_branches, n_features))
    every = all_rate_slopes(rows, passes, k)
    gradient[:, :] = 0.0
    for begin in range(rows.starts[k], rows.starts[k + 1], length):
        size = min(length, rows.starts[k + 1] - begin)
        slopes[:, :] = 0.0  # the last chunk may be shorter
        for j in range(n_features):
            for i in range(size):
                features[j, i] = rows.features[j, begin + i]
            for i in range(size, length):
                features[j, i] = 0.0
        rate_slopes(rows, passes, k, begin, size, every, slopes)
        np.dot(slopes, features.T, products)
        for t in range(n_branches):
            for j in range(n_features):
                gradient[t, j] += products[t, j] / n_features
            for i in range(size):
                gradient[t, n_features] -= slopes[t, i]
