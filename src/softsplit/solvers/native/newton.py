"""Newton directions on the face of the penalties that the point lies on.

With g_ti = dF/dz_ti from the pass and gates p, q = 1 - p, the second derivatives of the smooth
part in the scores are

    d2 / dz_t dz_t = steepness (q_t - p_t) g_t
    d2 / dz_s dz_t = steepness q_s g_t      if t lies left of s,  - steepness p_s g_t  if right

and zero for branches that are not on one path. Rows whose gates are saturated have g = 0 and drop
out, as do coefficients that are fixed: what is left is small. Tied coefficients are one variable.
An active rate term adds weight * (gradient of the rate)(the same)'. A multiple of the squared size
of each variable's feature is added until the matrix is positive definite, and more of it after a
step that had to be shortened.
"""

from __future__ import annotations

import numpy as np

from softsplit.engines.block_pass import forest_pass, is_collapsed
from softsplit.engines.tree_pass import tree_pass
from softsplit.solvers.native.faces import FIXED, TIED, curvature, outward
from softsplit.support.compiling import compiled
from softsplit.support.linear_algebra import solve_damped
from softsplit.tree.routing import open_gates

MAX_VARIABLES = 300
NEGLIGIBLE = 1e-6
"""Rows whose slopes are smaller than this part of the largest one do not count."""

CHUNK = 1024
"""Rows whose part of the matrix is added up at a time."""


@compiled
def newton_direction(theta, slope, state, smooth, sparse, work, result):  # type: ignore[no-untyped-def]
    """Newton direction to ``result``; False if there are too many variables or no rows.

    ``work`` must hold the scores and slopes of ``theta``.
    """
    n_branches, width = theta.shape
    index = np.empty((n_branches, width), dtype=np.int64)
    n_variables = _number(state, index)
    least = NEGLIGIBLE * _largest(work.slopes, work.free)
    if n_variables == 0 or n_variables > MAX_VARIABLES or least == 0.0:
        return False
    matrix = np.zeros((n_variables, n_variables))
    right = np.zeros(n_variables)
    scale = np.zeros(n_variables)
    for t in range(n_branches):
        for j in range(width):
            v = index[t, j]
            if v >= 0:
                right[v] -= _sign(theta, slope, state, t, j) * slope[t, j]
                scale[v] += 1.0 / work.diagonal[j]
                matrix[v, v] += smooth.proximal
                if j < width - 1:
                    matrix[v, v] += curvature(theta, sparse, work.floor, state, t, j)
        _add_branch(theta, slope, state, index, smooth, work, least, t, matrix)
    if smooth.rate_weight > 0.0:
        _add_rates(theta, slope, state, index, smooth, work, matrix)
    if not solve_damped(matrix, right, scale, work.damping):
        return False
    for t in range(n_branches):
        for j in range(width):
            v = index[t, j]
            result[t, j] = 0.0
            if v >= 0:
                result[t, j] = _sign(theta, slope, state, t, j) * right[v]
            # A coefficient leaves zero only the way that lowers F.
            if j < width - 1 and theta[t, j] == 0.0 and slope[t, j] * result[t, j] > 0.0:
                result[t, j] = 0.0
    return True


@compiled
def _sign(theta, slope, state, t, j):  # type: ignore[no-untyped-def]
    """How an entry follows its variable: tied entries move outwards together."""
    return outward(theta[t, j], slope[t, j]) if state[t, j] == TIED else 1.0


@compiled
def _number(state, index):  # type: ignore[no-untyped-def]
    """Variable of every entry (-1: fixed); the tied entries of a row share one."""
    n_branches, width = state.shape
    count = 0
    for j in range(width):
        shared = -1
        for t in range(n_branches):
            index[t, j] = -1
            if state[t, j] == TIED:
                if shared < 0:
                    shared = count
                    count += 1
                index[t, j] = shared
            elif state[t, j] != FIXED:
                index[t, j] = count
                count += 1
    return count


@compiled
def _largest(slopes, free):  # type: ignore[no-untyped-def]
    """The largest slope at a branch that may move."""
    largest = 0.0
    for t in range(slopes.shape[0]):
        if not free[t]:
            continue
        for i in range(slopes.shape[1]):
            largest = max(largest, abs(slopes[t, i]))
    return largest


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
def _design(theta, slope, state, index, features, rows, t):  # type: ignore[no-untyped-def]
    """dz_ti over the entries of branch t that move (one line each), and their variables."""
    width = theta.shape[1]
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
        factor = _sign(theta, slope, state, t, j)
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
def _add_branch(theta, slope, state, index, smooth, work, least, t, matrix):  # type: ignore[no-untyped-def]
    """Second derivatives of branch t with itself and with the branches above it.

    Rows are taken in chunks, so that their lines stay in the cache and take little memory.
    """
    features, steepness, parents = smooth.features, smooth.steepness, smooth.forest.parents
    scores, slopes = work.scores, work.slopes[t]
    counting = _rows_that_count(slopes, least)
    left, right, powers = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK)
    for begin in range(0, counting.size, CHUNK):
        rows = counting[begin : begin + CHUNK]
        factor = np.empty(rows.size)
        lines, variables = _design(theta, slope, state, index, features, rows, t)
        _gates_of(scores[t], rows, steepness, left, right, powers)
        for r in range(rows.size):
            factor[r] = steepness * (right[r] - left[r]) * slopes[rows[r]]
        _add_block(lines, variables, factor, lines, variables, 0.0, matrix)
        node = t
        while parents[node] >= 0:
            other = parents[node]
            _gates_of(scores[other], rows, steepness, left, right, powers)
            went_left = smooth.forest.on_left[node]
            for r in range(rows.size):
                gate = right[r] if went_left else -left[r]
                factor[r] = steepness * gate * slopes[rows[r]]
            above, others = _design(theta, slope, state, index, features, rows, other)
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
def _add_rates(theta, slope, state, index, smooth, work, matrix):  # type: ignore[no-untyped-def]
    """Curvature of the active rate terms: weight * (gradient of rate_k) (the same)'."""
    n_branches, width = theta.shape
    gradient, products = np.empty(matrix.shape[0]), np.empty((n_branches, width))
    for k in range(smooth.table.shape[0]):
        if work.active[k] <= 0.0:
            continue
        _rate_gradient(smooth, work, k, products)
        gradient[:] = 0.0
        for t in range(n_branches):
            for j in range(width):
                if index[t, j] >= 0:
                    gradient[index[t, j]] += _sign(theta, slope, state, t, j) * products[t, j]
        weight = smooth.rate_weight
        for a in range(matrix.shape[0]):
            step = weight * gradient[a]
            for b in range(matrix.shape[0]):
                matrix[a, b] += step * gradient[b]


@compiled
def _rate_gradient(smooth, work, k, gradient):  # type: ignore[no-untyped-def]
    """Derivative of the rate of class k, by branch and coefficient, to ``gradient``.

    Rows are taken in chunks: no array of all rows and branches is needed besides the workspace.
    """
    every_feature, every_score = smooth.features, work.scores
    n_branches, n_features = every_score.shape[0], every_feature.shape[0]
    length = min(CHUNK, smooth.starts[k + 1] - smooth.starts[k])
    scores, slopes = np.empty((n_branches, length)), np.empty((n_branches, length))
    features, products = np.empty((n_features, length)), np.empty((n_branches, n_features))
    table, mass = np.empty((1, smooth.table.shape[1])), np.empty((1, smooth.table.shape[1]))
    for leaf in range(table.shape[1]):
        table[0, leaf] = smooth.leaf_classes[k, leaf] / smooth.class_totals[k]
    collapsed = is_collapsed(smooth.forest)
    every = _forest_rate_slopes(smooth, work, k) if collapsed else np.empty((0, 0))
    gradient[:, :] = 0.0
    for begin in range(smooth.starts[k], smooth.starts[k + 1], length):
        size = min(length, smooth.starts[k + 1] - begin)
        slopes[:, :] = 0.0  # the last chunk may be shorter
        for j in range(n_features):
            for i in range(size):
                features[j, i] = every_feature[j, begin + i]
            for i in range(size, length):
                features[j, i] = 0.0
        if collapsed:
            for t in range(n_branches):
                for i in range(size):
                    slopes[t, i] = every[t, begin + i]
        else:
            for t in range(n_branches):
                for i in range(size):
                    scores[t, i] = every_score[t, begin + i]
            tree_pass(
                scores, slopes, np.array([0, size]), smooth.row_weights[begin:], table,
                smooth.steepness, smooth.logarithmic, mass,
            )  # fmt: skip
        np.dot(slopes, features.T, products)
        for t in range(n_branches):
            for j in range(n_features):
                gradient[t, j] += products[t, j] / n_features
            for i in range(size):
                gradient[t, n_features] -= slopes[t, i]


@compiled
def _forest_rate_slopes(smooth, work, k):  # type: ignore[no-untyped-def]
    """d rate_k / dz for the free branches of a block."""
    n_classes = smooth.class_totals.size
    slopes, price = np.empty(work.scores.shape), np.zeros(n_classes)
    price[k] = -1.0 / smooth.class_totals[k]
    forest_pass(
        work.scores, slopes, smooth.starts, smooth.forest, smooth.steepness, 0.0, price,
        np.empty(n_classes),
    )  # fmt: skip
    return slopes
