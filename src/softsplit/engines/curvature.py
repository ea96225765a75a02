"""The Hessian of the sums over rows in memory, for Newton steps.

With g_ti = dF/dz_ti from the pass and gates p, q = 1 - p, the second derivatives of the loss in the
scores of one row are, where the outer function f is the identity,

    d2 / dz_t dz_t = steepness (q_t - p_t) g_t
    d2 / dz_s dz_t = steepness q_s g_t      if t lies left of s,  - steepness p_s g_t  if right

and zero for branches that are not on one path. Another f adds the outer curvature
g_s g_t f'' / (weight f'^2) for every pair of branches, with g of the loss alone. By the chain rule
an entry of the Hessian in theta is sum_i (d2 / dz_s dz_t) (dz_s / d theta_sj) (dz_t / d theta_tk)
with dz / d theta = (x / n_features, -1). Rows whose gates are saturated have g = 0 and drop out, as
do fixed coefficients: what is left is small.

A *variable* is a free coefficient, or several tied ones that move as one: ``index`` (n_branches,
n_features + 1) gives the variable of every entry of theta (-1: fixed) and ``signs`` its sign.
Shape of the Hessian: (n_variables, n_variables).
"""

from __future__ import annotations

import numpy as np

from softsplit.engines.compiled import CHUNK
from softsplit.engines.passes import all_rate_slopes, rate_slopes
from softsplit.engines.products import eight_sums
from softsplit.support.compiling import compiled, compiled_uncounted
from softsplit.tree.routing import open_gates

NEGLIGIBLE = 1e-6
"""Rows with smaller slopes, relative to the largest one, are skipped; a compile-time constant."""


@compiled_uncounted
def least_slope(passes, free):  # type: ignore[no-untyped-def]
    """Return the threshold below which the slope of a row is negligible."""
    slopes = passes.slopes
    largest = 0.0
    for t in range(slopes.shape[0]):
        if not free[t]:
            continue
        for i in range(slopes.shape[1]):
            largest = max(largest, abs(slopes[t, i]))
    return NEGLIGIBLE * largest


@compiled_uncounted
def _next_rows(slopes, least, begin, rows):  # type: ignore[no-untyped-def]
    """Write the next rows from ``begin`` on with a slope above ``least`` to ``rows``.

    Return their number, at most ``rows.size``, and the row at which to continue.
    """
    count, rest = 0, slopes[begin:]
    for i in range(rest.size):
        if abs(rest[i]) > least:
            rows[count] = begin + i
            count += 1
            if count == rows.size:
                return count, begin + i + 1
    return count, slopes.size


@compiled_uncounted
def _entries(index, members):  # type: ignore[no-untyped-def]
    """Write the free coefficients of one branch to ``members``; return their number."""
    count = 0
    for j in range(index.size):
        if index[j] >= 0:
            members[count] = j
            count += 1
    return count


@compiled_uncounted
def add_branch(index, signs, passes, least, t, members, matrix):  # type: ignore[no-untyped-def]
    """Add the second derivatives of branch t with itself and with the branches above it.

    Entries on and above the diagonal of ``matrix`` are added. Rows are processed in chunks that
    stay in the cache. ``members`` (2, n_features + 1) is scratch.
    """
    slope, kept, scores, steepness = passes.slopes[t], passes.gates, passes.scores, passes.steepness
    features, parents, on_left = passes.rows.features, passes.rows.parents, passes.rows.on_left
    lines, weighted, chunk = passes.lines[0], passes.lines[1], passes.chunk
    gates, powers, factor = chunk[:2], chunk[2], chunk[3]
    mine, theirs = members[0], members[1]
    n_mine, begin = _entries(index[t], mine), 0
    while begin < slope.size:
        count, begin = _next_rows(slope, least, begin, passes.chosen)
        rows = passes.chosen[:count]
        # Branch t with itself: factor steepness (q_t - p_t) g_t.
        _gather_lines(index, parents, t, features, rows, lines)
        _gates_of(scores[t], kept, t, rows, steepness, gates, powers, factor)
        _own_factors(gates, slope, rows, steepness, factor)
        _weigh(lines, mine, n_mine, factor, count, weighted)
        _add_block(weighted, mine, n_mine, lines, mine, n_mine, count, t, t, index, signs, matrix)
        # Branch t with each ancestor s: factor steepness q_s g_t, or -steepness p_s g_t.
        node, other = t, parents[t]
        while other >= 0:
            _gates_of(scores[other], kept, other, rows, steepness, gates, powers, factor)
            _factors_above(gates, slope, rows, steepness, on_left[node], factor)
            _weigh(lines, mine, n_mine, factor, count, weighted)
            n_theirs = _entries(index[other], theirs)
            _add_block(
                weighted, mine, n_mine, lines, theirs, n_theirs, count, t, other, index, signs,
                matrix,
            )  # fmt: skip
            node, other = other, parents[other]


@compiled_uncounted
def _gather_lines(index, parents, t, features, rows, lines):  # type: ignore[no-untyped-def]
    """Write dz / d theta_j at ``rows`` for all coefficients j free at branch t or above it."""
    n_features = features.shape[0]
    share = 1.0 / n_features
    for j in range(n_features):
        node = t
        while node >= 0 and index[node, j] < 0:
            node = parents[node]
        if node >= 0:
            line, feature = lines[j], features[j]
            for r in range(rows.size):
                line[r] = share * feature[rows[r]]
    line = lines[n_features]
    for r in range(rows.size):
        line[r] = -1.0


@compiled_uncounted
def _gates_of(scores, kept, t, rows, steepness, gates, powers, chosen):  # type: ignore[no-untyped-def]
    """Write the gates of branch t at ``rows``, copied from ``kept`` if it holds those of all rows.

    ``powers`` and ``chosen`` are scratch.
    """
    left, right = gates[0], gates[1]
    if kept.shape[2] >= scores.size:
        on_left, on_right = kept[0, t], kept[1, t]
        for r in range(rows.size):
            left[r] = on_left[rows[r]]
            right[r] = on_right[rows[r]]
    else:
        for r in range(rows.size):
            chosen[r] = scores[rows[r]]
        bits = powers.view(np.int64)
        open_gates(chosen, 0, rows.size, steepness, left, right, powers, bits)


@compiled_uncounted
def _own_factors(gates, slopes, rows, steepness, factor):  # type: ignore[no-untyped-def]
    """factor = steepness (q_t - p_t) g_t."""
    left, right = gates[0], gates[1]
    for r in range(rows.size):
        factor[r] = steepness * (right[r] - left[r]) * slopes[rows[r]]


@compiled_uncounted
def _factors_above(gates, slopes, rows, steepness, on_left, factor):  # type: ignore[no-untyped-def]
    """factor = steepness q_s g_t where t lies left of s, else -steepness p_s g_t."""
    left, right = gates[0], gates[1]
    for r in range(rows.size):
        gate = right[r] if on_left else -left[r]
        factor[r] = steepness * gate * slopes[rows[r]]


@compiled_uncounted
def _weigh(lines, members, count, factor, size, weighted):  # type: ignore[no-untyped-def]
    """weighted_j = factor * dz / d theta_j for the free coefficients of a branch."""
    for k in range(count):
        line, result = lines[members[k]], weighted[members[k]]
        for r in range(size):
            result[r] = line[r] * factor[r]


@compiled_uncounted
def _add_block(  # type: ignore[no-untyped-def]
    weighted, mine, n_mine, lines, theirs, n_theirs, size, t, other, index, signs, matrix
):
    """Add sum_r weighted_i lines_j for coefficients i of branch t and j of branch ``other``.

    For ``other`` = t the entries below the diagonal are skipped.
    """
    for a in range(0, n_mine, 2):
        two = min(a + 1, n_mine - 1)
        first, second = weighted[mine[a], :size], weighted[mine[two], :size]
        for b in range(a if t == other else 0, n_theirs, 4):
            last = n_theirs - 1
            sums = eight_sums(
                first, second, lines[theirs[b], :size], lines[theirs[min(b + 1, last)], :size],
                lines[theirs[min(b + 2, last)], :size], lines[theirs[min(b + 3, last)], :size],
            )  # fmt: skip
            for k in range(min(4, n_theirs - b)):
                j = theirs[b + k]
                _add_entry(index, signs, t, mine[a], other, j, sums[k], matrix)
                if two > a and not (t == other and b + k < two):
                    _add_entry(index, signs, t, mine[two], other, j, sums[4 + k], matrix)


@compiled_uncounted
def _add_entry(index, signs, t, i, other, j, value, matrix):  # type: ignore[no-untyped-def]
    """Add one product to the Hessian entry of its two variables.

    Two different coefficients tied to one variable contribute twice, as (i, j) and as (j, i).
    """
    v, w = index[t, i], index[other, j]
    value *= signs[t, i] * signs[other, j]
    if v == w and not (t == other and i == j):
        value += value
    matrix[min(v, w), max(v, w)] += value


@compiled
def _design(index, signs, features, rows, t):  # type: ignore[no-untyped-def]
    """Return signed dz_t / d theta_tj of the free coefficients j of a branch, and their variables.

    Shapes (n_free, n_rows) and (n_free,).
    """
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
def add_outer_curvature(index, signs, passes, matrix):  # type: ignore[no-untyped-def]
    """Add sum_i k_i u_i u_i' with k = f'' / (weight f'^2) and u_i = sum_t g_ti dz_ti / d theta."""
    rows_of, outer_curvature = passes.rows, passes.outer_curvature
    n_branches, n_rows = passes.slopes.shape
    n_variables = matrix.shape[0]
    for begin in range(0, n_rows, CHUNK):
        rows = np.arange(begin, min(begin + CHUNK, n_rows))
        # u_i of every row, (n_variables, n_rows of the chunk).
        moved = np.zeros((n_variables, rows.size))
        for t in range(n_branches):
            lines, variables = _design(index, signs, rows_of.features, rows, t)
            for r in range(rows.size):
                slope = _slope_of_loss(passes, t, rows[r])
                for a in range(variables.size):
                    moved[variables[a], r] += slope * lines[a, r]
        # sum_i k_i u_i u_i' as a product of matrices.
        weighted = np.empty((n_variables, rows.size))
        for a in range(n_variables):
            for r in range(rows.size):
                weighted[a, r] = moved[a, r] * outer_curvature[rows[r]]
        block = np.empty((n_variables, n_variables))
        np.dot(weighted, moved.T, block)
        for a in range(n_variables):
            for b in range(n_variables):
                matrix[a, b] += block[a, b]


@compiled
def _slope_of_loss(passes, t, row):  # type: ignore[no-untyped-def]
    """Return the slope without the priced rates, which are linear in V: f'' belongs to the loss."""
    slope = passes.slopes[t, row]
    if passes.rate_slopes.shape[1] > 0:
        for k in range(passes.price.size):
            if row < passes.rows.starts[k + 1]:
                return slope + passes.price[k] * passes.rate_slopes[t, row]
    return slope


@compiled
def rate_gradient(passes, k, gradient):  # type: ignore[no-untyped-def]
    """Write the gradient of the rate of group k in theta to ``gradient``.

    Rows are processed in chunks, so that no further array of branches x rows is needed.
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
        slopes[:, :] = 0.0  # the last chunk may be shorter: its rest adds zeros
        for j in range(n_features):
            for i in range(size):
                features[j, i] = rows.features[j, begin + i]
            for i in range(size, length):
                features[j, i] = 0.0
        # sum_i (d rate / dz_ti) (x_i / n_features, -1).
        rate_slopes(rows, passes, k, begin, size, every, slopes)
        np.dot(slopes, features.T, products)
        for t in range(n_branches):
            for j in range(n_features):
                gradient[t, j] += products[t, j] / n_features
            for i in range(size):
                gradient[t, n_features] -= slopes[t, i]
