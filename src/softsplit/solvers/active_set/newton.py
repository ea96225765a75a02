"""Newton directions on the face of the penalties that the point lies on: the active set is kept.

The matrix is that of engines/curvature.py for the coefficients that move, tied ones as one
variable, plus the curvature of the penalties and psi of a proximal term. An active rate term adds
weight * (gradient of the rate)(the same)'. A multiple of the squared size of each variable's
feature is added until the matrix is positive definite, and more of it after a step that had to be
shortened.
"""

from __future__ import annotations

import numpy as np

from softsplit.engines.curvature import add_branch, add_outer_curvature, least_slope, rate_gradient
from softsplit.solvers.active_set.faces import FIXED, TIED, count_tied, curvature, outward
from softsplit.solvers.active_set.objective import largest
from softsplit.support.compiling import compiled, compiled_uncounted
from softsplit.support.linear_algebra import solve_damped, solve_damped_in

MAX_VARIABLES = 300
"""Coefficients that may move in a Newton step."""


@compiled_uncounted
def newton_direction(theta, passes, terms, sparse, state):  # type: ignore[no-untyped-def]
    """Newton direction to ``state.direction``; False if there are too many variables or no rows.

    ``passes`` must hold the scores and slopes of ``theta``.
    """
    n_branches, width = theta.shape
    slope, result, index, signs = state.slope, state.direction, state.variables, state.signs
    count_tied(sparse, state.faces, state.tied)
    n = _number(theta, slope, state.faces, sparse, index, signs)
    least = least_slope(passes, state.free)
    if n == 0 or n > MAX_VARIABLES or least == 0.0:
        return False
    room, squares = state.system, n * n
    matrix, upper = room[:squares].reshape(n, n), room[squares : 2 * squares].reshape(n, n)
    right, scale = room[2 * squares : 2 * squares + n], room[2 * squares + n :]
    # (Hessian + damping scale) step = -slope over the variables of the face.
    for v in range(n):
        right[v] = scale[v] = 0.0
        for w in range(n):
            matrix[v, w] = 0.0
    for t in range(n_branches):
        for j in range(width):
            v = index[t, j]
            if v >= 0:
                right[v] -= signs[t, j] * slope[t, j]
                scale[v] += 1.0 / state.diagonal[j]
                matrix[v, v] += terms.proximal
                if j < width - 1:
                    matrix[v, v] += terms.ridge
                    matrix[v, v] += curvature(theta, sparse, state.faces, t, j, state.tied)
        add_branch(index, signs, passes, least, t, state.members, matrix)
    if passes.outer_curvature.size > 0:
        add_outer_curvature(index, signs, passes, matrix)
    if terms.rate_weight > 0.0 and largest(state.active) > 0.0:
        _add_rates(index, signs, passes, terms, state.active, matrix)
    if not solve_damped_in(matrix, right, scale, state.damping, upper):
        return False
    for t in range(n_branches):
        for j in range(width):
            v = index[t, j]
            result[t, j] = 0.0
            if v >= 0:
                result[t, j] = signs[t, j] * right[v]
            # A coefficient leaves zero only the way that lowers F.
            if j < width - 1 and theta[t, j] == 0.0 and slope[t, j] * result[t, j] > 0.0:
                result[t, j] = 0.0
    return True


@compiled
def direction_from(theta, hessian, sparse, state):  # type: ignore[no-untyped-def]
    """The same from all second derivatives of the smooth part, for rows that live elsewhere.

    ``hessian`` is square, of the size of theta, entries in the order of its rows.
    """
    n_branches, width = theta.shape
    slope, result = state.slope, state.direction
    index = np.empty((n_branches, width), dtype=np.int64)
    signs = np.ones((n_branches, width))
    tied = np.zeros((n_branches, width), dtype=np.int64)
    count_tied(sparse, state.faces, tied)
    n_variables = _number(theta, slope, state.faces, sparse, index, signs)
    if n_variables == 0 or n_variables > MAX_VARIABLES:
        return False
    matrix = np.zeros((n_variables, n_variables))
    right, scale = np.zeros(n_variables), np.zeros(n_variables)
    for t in range(n_branches):
        for j in range(width):
            v = index[t, j]
            if v < 0:
                continue
            right[v] -= signs[t, j] * slope[t, j]
            scale[v] += 1.0 / state.diagonal[j]
            if j < width - 1:
                matrix[v, v] += curvature(theta, sparse, state.faces, t, j, tied)
            for s in range(n_branches):
                for k in range(width):
                    if index[s, k] >= 0:
                        entry = hessian[t * width + j, s * width + k]
                        matrix[v, index[s, k]] += signs[t, j] * signs[s, k] * entry
    if not solve_damped(matrix, right, scale, state.damping):
        return False
    for t in range(n_branches):
        for j in range(width):
            v = index[t, j]
            result[t, j] = signs[t, j] * right[v] if v >= 0 else 0.0
            # A coefficient leaves zero only the way that lowers F.
            if j < width - 1 and theta[t, j] == 0.0 and slope[t, j] * result[t, j] > 0.0:
                result[t, j] = 0.0
    return True


@compiled_uncounted
def _number(theta, slope, faces, sparse, index, signs):  # type: ignore[no-untyped-def]
    """Variable of every entry (-1: fixed), and how the entry follows it; their number.

    The tied entries of a row share one and move outwards together.
    """
    n_branches, width = faces.shape
    numbers, states, ways = index.reshape(-1), faces.reshape(-1), signs.reshape(-1)
    weights, slopes = theta.reshape(-1), slope.reshape(-1)
    count = 0
    for row in range(sparse.begins.size - 1):
        shared = -1
        for e in range(sparse.begins[row], sparse.begins[row + 1]):
            place = sparse.places[e]
            numbers[place], ways[place] = -1, 1.0
            if states[place] == TIED:
                if shared < 0:
                    shared = count
                    count += 1
                numbers[place] = shared
                ways[place] = outward(weights[place], slopes[place])
            elif states[place] != FIXED:
                numbers[place] = count
                count += 1
    for t in range(n_branches):  # thresholds
        index[t, width - 1], signs[t, width - 1] = -1, 1.0
        if faces[t, width - 1] != FIXED:
            index[t, width - 1] = count
            count += 1
    return count


@compiled
def _add_rates(index, signs, passes, terms, active, matrix):  # type: ignore[no-untyped-def]
    """Curvature of the active rate terms: weight * (gradient of rate_k) (the same)'."""
    gradient, products = np.empty(matrix.shape[0]), np.empty(index.shape)
    for k in range(active.size):
        if active[k] <= 0.0:
            continue
        rate_gradient(passes, k, products)
        gradient[:] = 0.0
        for t in range(index.shape[0]):
            for j in range(index.shape[1]):
                if index[t, j] >= 0:
                    gradient[index[t, j]] += signs[t, j] * products[t, j]
        for a in range(matrix.shape[0]):
            step = terms.rate_weight * gradient[a]  # weight (grad rate_k)(grad rate_k)'
            for b in range(matrix.shape[0]):
                matrix[a, b] += step * gradient[b]
