"""L-BFGS directions on a face: the two-loop recursion, preconditioned, and the pairs it keeps."""

from __future__ import annotations

import numpy as np

from softsplit.solvers.active_set.faces import project
from softsplit.solvers.active_set.state import MEMORY, PAIRS
from softsplit.support.compiling import compiled_uncounted
from softsplit.support.linear_algebra import add_line


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
    return _recursion(
        theta, sparse, state.counters[PAIRS], state.slope, state.vector, state.direction,
        state.faces, state.steps, state.changes, state.products, state.shares, state.inverse,
        state.diagonal,
    )  # fmt: skip


@compiled_uncounted
def _recursion(  # type: ignore[no-untyped-def]
    theta, sparse, stored, slope, vector, result, faces, steps, changes, products, shares, inverse,
    diagonal,
):  # fmt: skip
    n_branches, width = theta.shape
    # Two-loop recursion (Nocedal and Wright, Algorithm 7.4), q = P slope to begin with.
    copy(slope, vector)
    project(vector, theta, slope, faces, sparse)
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
        _precondition(changes[last], inverse, diagonal, result)
        scale = products[last] / max(dot(changes[last], result), 1e-300)
    _precondition(vector, inverse, diagonal, result)
    for t in range(n_branches):
        for j in range(width):
            result[t, j] *= -scale
    # From the oldest pair to the newest, of -r: r += (share - y . r / (s . y)) s.
    for back in range(used):
        k = (stored - used + back) % MEMORY
        add_multiple(-shares[k] - dot(changes[k], result) / products[k], steps[k], result)
    project(result, theta, slope, faces, sparse)
    for t in range(n_branches):
        for j in range(width - 1):
            # A coefficient leaves zero only the way that lowers F.
            if theta[t, j] == 0.0 and slope[t, j] * result[t, j] > 0.0:
                result[t, j] = 0.0
    return dot(slope, result)


@compiled_uncounted
def keep_pair(state, theta):  # type: ignore[no-untyped-def]
    """Keep the pair (step, change of the smooth gradient) if it shows positive curvature."""
    _keep(
        state.counters, state.moved, state.gradient, state.fresh, theta, state.steps,
        state.changes, state.products,
    )  # fmt: skip


@compiled_uncounted
def _keep(counters, moved, old, new, theta, steps, changes, products):  # type: ignore[no-untyped-def]
    k = counters[PAIRS] % MEMORY
    step, change = steps[k], changes[k]
    for t in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            step[t, j] = moved[t, j] - theta[t, j]
            change[t, j] = new[t, j] - old[t, j]
    # A pair counts only if s . y > 1e-10 |s| |y|: the estimate stays positive definite.
    curvature = dot(step, change)
    sizes = np.sqrt(dot(step, step) * dot(change, change))
    if curvature > max(1e-10 * sizes, 1e-200):
        products[k] = curvature
        counters[PAIRS] += 1
