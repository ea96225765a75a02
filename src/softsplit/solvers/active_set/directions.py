"""Directions on the face of the penalties that the point lies on: L-BFGS and Newton.

L-BFGS: the two-loop recursion, preconditioned, and the pairs it keeps.

Newton: the matrix is that of engines/curvature.py for the coefficients that move, tied ones as one
variable, plus the curvature of the penalties and psi of a proximal term. An active rate term adds
weight * (gradient of the rate)(the same)'. A multiple of the squared size of each variable's
feature is added until the matrix is positive definite, and more of it after a step that had to be
shortened.
"""

from __future__ import annotations

import numpy as np

from softsplit.engines.curvature import add_branch, add_outer_curvature, least_slope, rate_gradient
from softsplit.solvers.active_set.faces import (
    FIXED,
    TIED,
    count_tied,
    curvature,
    keep_descending,
    outward,
    project,
)
from softsplit.solvers.active_set.objective import largest
from softsplit.solvers.active_set.state import MAX_VARIABLES, MEMORY, PAIRS
from softsplit.support.compiling import compiled, compiled_uncounted
from softsplit.support.linear_algebra import add_line, solve_damped, solve_damped_in


@compiled_uncounted
def dot(first, second):  # type: ignore[no-untyped-def]
    total = 0.0
    for t in range(first.shape[0]):
        for j in range(first.shape[1]):
            total += first[t, j] * second[t, j]
    return total


@compiled_uncounted
def add_multiple(factor, other, result):  # type: ignore[no-untyped-def]
    """result += factor * other."""
    for t in range(result.shape[0]):
        for j in range(result.shape[1]):
            result[t, j] += factor * other[t, j]


@compiled_uncounted
def copy(other, result):  # type: ignore[no-untyped-def]
    for t in range(result.shape[0]):
        for j in range(result.shape[1]):
            result[t, j] = other[t, j]


@compiled_uncounted
def _precondition(vector, inverse, diagonal, result):  # type: ignore[no-untyped-def]
    """result = H0 vector, branch by branch."""
    for t in range(vector.shape[0]):
        line = result[t]
        if inverse.shape[0] == 0:
            for j in range(line.size):
                line[j] = vector[t, j] * diagonal[j]
            continue
        for j in range(line.size):
            line[j] = 0.0
        for i in range(inverse.shape[0]):
            add_line(vector[t, i], inverse[i], line)


@compiled_uncounted
def direction_of(theta, sparse, state):  # type: ignore[no-untyped-def]
    """state.direction = - P H P slope by the two-loop recursion; returns slope . direction."""
    slope, vector, result, products = state.slope, state.vector, state.direction, state.products
    steps, changes, shares, stored = state.steps, state.changes, state.shares, state.counters[PAIRS]
    n_branches, width = theta.shape
    # Two-loop recursion (Nocedal and Wright, Algorithm 7.4), q = P slope to begin with.
    copy(slope, vector)
    project(vector, theta, slope, state.faces, sparse)
    used = min(stored, MEMORY)
    # From the newest pair (s, y) to the oldest: share = s . q / (s . y), q -= share y.
    for back in range(used):
        k = (stored - 1 - back) % MEMORY
        shares[k] = dot(steps[k], vector) / products[k]
        add_multiple(-shares[k], changes[k], vector)
    # H0 = scale x preconditioner, with scale = (s . y) / (y . H y) of the newest pair.
    scale = 1.0
    if used > 0:
        last = (stored - 1) % MEMORY
        _precondition(changes[last], state.inverse, state.diagonal, result)
        scale = products[last] / max(dot(changes[last], result), 1e-300)
    _precondition(vector, state.inverse, state.diagonal, result)
    for t in range(n_branches):
        for j in range(width):
            result[t, j] *= -scale
    # From the oldest pair to the newest, of -r: r += (share - y . r / (s . y)) s.
    for back in range(used):
        k = (stored - used + back) % MEMORY
        add_multiple(-shares[k] - dot(changes[k], result) / products[k], steps[k], result)
    project(result, theta, slope, state.faces, sparse)
    keep_descending(theta, slope, result)
    return dot(slope, result)


@compiled_uncounted
def keep_pair(state, theta):  # type: ignore[no-untyped-def]
    """Keep the pair (step, change of the smooth gradient) if it shows positive curvature."""
    k = state.counters[PAIRS] % MEMORY
    step, change = state.steps[k], state.changes[k]
    for t in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            step[t, j] = state.moved[t, j] - theta[t, j]
            change[t, j] = state.fresh[t, j] - state.gradient[t, j]
    # A pair counts only if s . y > 1e-10 |s| |y|: the estimate stays positive definite.
    curvature = dot(step, change)
    sizes = np.sqrt(dot(step, step) * dot(change, change))
    if curvature > max(1e-10 * sizes, 1e-200):
        state.products[k] = curvature
        state.counters[PAIRS] += 1


@compiled_uncounted
def newton_direction(theta, passes, terms, sparse, state):  # type: ignore[no-untyped-def]
    """Newton direction to ``state.direction``; False if there are too many variables or no rows.

    ``passes`` must hold the scores and slopes of ``theta``.
    """
    n_branches, width = theta.shape
    slope, index, signs = state.slope, state.variables, state.signs
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
    _set_direction(theta, state, right)
    return True


@compiled
def direction_from(theta, hessian, sparse, state):  # type: ignore[no-untyped-def]
    """The same from all second derivatives of the smooth part, for rows that live elsewhere.

    ``hessian`` is square, of the size of theta, entries in the order of its rows.
    """
    n_branches, width = theta.shape
    slope, index, signs, tied = state.slope, state.variables, state.signs, state.tied
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
    _set_direction(theta, state, right)
    return True


@compiled_uncounted
def _set_direction(theta, state, step):  # type: ignore[no-untyped-def]
    """Write the step of the variables of the face to ``state.direction``."""
    index, signs, direction = state.variables, state.signs, state.direction
    for t in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            v = index[t, j]
            direction[t, j] = signs[t, j] * step[v] if v >= 0 else 0.0
    keep_descending(theta, state.slope, direction)


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
