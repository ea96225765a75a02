"""Second-order information of the smooth log-loss, and the Newton steps that use it.

**Hessian** (exact). With V the probability that a tree gives to the class y of a row, gates p_t,
D_t = reach_t (V_left - V_right) as in deletion_costs.py, q_t = D_t p_t (1 - p_t) and
r_l = P_l c_yl / V,

    d2 (-log V) = (dV dV') / V^2 - d2V / V
    dV / d s_t  = q_t          dV / d v_kl = V r_l e_kl,      e_kl = [y = k] - c_kl

    d2V / d s_t d s_t   = q_t (1 - 2 p_t)
    d2V / d s_t d s_u   = q_u side_tu                  u below t
    d2V / d s_t d v_kl  = V r_l e_kl side_tl           l below t
    d2V / d v_kl d v_ml = V r_l (e_kl e_ml - c_kl ([k = m] - c_ml))

where side is 1 - p_t for what lies on the left of t, and -p_t on its right. A parameter of a split
is s_t times a column of the row or 1. Since e_kl is the same for all rows of a class, leaves take
one line each while a class is summed, and are spread over its log-odds afterwards.

**Fisher information** (empirical): sum_i weight_i J_i J_i' with J_i the derivative of -log V_i,

    J_i by s_it   = - D_it p_it (1 - p_it) / V_i,    times z_ij or 1
    J_i by v_kl   = - r_il ([y_i = k] - c_kl)

It approximates the Hessian where the tree fits, and is positive semidefinite. Its inverse, with
ridge and prior, preconditions descents on a support (Fisher scoring): they need a third of the
steps.

**Newton steps** give the last digits. L-BFGS ends where the function falls by less than its
rounding, which leaves derivatives of about the square root of that. Directions of negative
curvature are taken by the size of their curvature; flat ones (all log-odds of a leaf may be
shifted) are left out. A step counts only if the derivatives get smaller and the function does not
rise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.outer import TINY_PROBABILITY
from softsplit.engines.products import upper_products
from softsplit.solvers.elimination.deletion_costs import routed
from softsplit.solvers.elimination.lbfgs import evaluation
from softsplit.solvers.elimination.objective import (
    Shrinkage,
    SmoothFunction,
    SoftTargetRows,
    StandardisedRows,
    softmax,
)
from softsplit.solvers.elimination.support_tree import SupportTree, subtree
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.support.linear_algebra import invert_positive
from softsplit.support.parallel import in_threads
from softsplit.tree.routing import gate_probabilities, node_reach

CHUNK = 4096
"""Rows handled at a time by ``hessian``: its temporary arrays stay in the cache."""

BLOCK = 32_768
"""Rows of one class that a thread takes; the bits of the sums depend on it."""

DAMPING = 1e-6
"""Added to the diagonal of the Fisher information, as a part of its mean."""


# --- Hessian --------------------------------------------------------------------------------------


def hessian(
    tree: SupportTree, rows: StandardisedRows, ridge: float, threads: int = 1
) -> FloatArray:
    """Return the Hessian of log-loss, prior and ridge by the free parameters of ``tree``.

    ``rows`` has the columns of the tree. The ``threads`` share blocks of rows of one class, whose
    sums are added in their order.
    """
    n_branches, n_groups = tree.shape
    leaves = np.empty(tree.log_odds.shape)
    softmax(np.ascontiguousarray(tree.log_odds), rows.pseudo, leaves)
    used = np.column_stack([tree.support, ~tree.saturated])
    ends = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    n_splits = int(ends[-1])
    size = n_splits + n_branches + 1
    total = np.zeros((n_splits + leaves.size, n_splits + leaves.size))
    blocks = [
        (k, low, min(low + BLOCK, int(rows.starts[k + 1])))
        for k in range(n_groups)
        for low in range(int(rows.starts[k]), int(rows.starts[k + 1]), BLOCK)
    ]
    found: dict[tuple[int, int, int], tuple[FloatArray, FloatArray]] = {}

    def add(block: tuple[int, int, int]) -> None:
        k, low, high = block
        part, mass = np.zeros((size, size)), np.zeros(n_branches + 1)
        for begin in range(low, high, CHUNK):
            some = slice(begin, min(begin + CHUNK, high))
            _add(
                tree.splits, rows.features[:, some], rows.weights[some], leaves[k], used, ends,
                part, mass,
            )  # fmt: skip
        found[block] = part, mass

    in_threads(add, blocks, min(threads, len(blocks)), lambda: None)
    for block in blocks:
        total += _spread(*found.pop(block), leaves, block[0], n_splits)
    curvature = leaves[:, None, :] * (np.eye(n_groups)[:, :, None] - leaves[None, :, :])
    _add_by_leaf(total, rows.pseudo.sum() * curvature, n_splits)
    weights = np.flatnonzero(np.column_stack([tree.support, np.zeros(n_branches, bool)])[used])
    total[weights, weights] += ridge
    return total


def _add(
    splits: FloatArray,
    features: FloatArray,
    weights: FloatArray,
    shares: FloatArray,
    used: NDArray[np.bool_],
    ends: NDArray[np.intp],
    part: FloatArray,
    mass: FloatArray,
) -> None:
    """Add rows of one class, with ``shares`` c_yl of the leaves, to ``part`` and ``mass``.

    ``part`` has a line for each used parameter of the splits and one for each leaf; only the
    blocks of branches t <= u are filled.
    """
    n_branches = len(splits)
    lines = np.vstack([features, np.ones((1, features.shape[1]))])
    left, right = gate_probabilities(splits @ lines, 1.0)
    reach = node_reach(left, right)
    values = np.empty_like(reach)
    values[n_branches:] = shares[:, None]
    for t in range(n_branches - 1, -1, -1):
        values[t] = left[t] * values[2 * t + 1] + right[t] * values[2 * t + 2]
    root = np.maximum(values[0], TINY_PROBABILITY)
    by_score = reach[:n_branches] * left * right * (values[1::2] - values[2::2]) / root
    held = reach[n_branches:] * shares[:, None] / root
    mass += held @ weights
    n_splits = int(ends[-1])
    part[n_splits:, n_splits:] += (held * weights) @ held.T
    moving = [lines[used[t]] for t in range(n_branches)]
    for t in range(n_branches):
        if not len(moving[t]):
            continue
        # dV dV' / V^2 - d2V / V = q_t q_u - q_u side_tu for the scores of t and u below it
        mine, q = slice(ends[t], ends[t + 1]), by_score[t]
        sides = _sides(t, n_branches, left[t], right[t])
        along = held * (q - sides[n_branches:])  # by leaf
        part[mine, n_splits:] += moving[t] @ (along * weights).T
        for u in range(t, n_branches):
            if not len(moving[u]):
                continue
            outer = right[t] - left[t] if u == t else sides[u]
            factor = weights * by_score[u] * (q - outer)
            part[mine, ends[u] : ends[u + 1]] += (moving[t] * factor) @ moving[u].T


def _sides(t: int, n_branches: int, left: FloatArray, right: FloatArray) -> FloatArray:
    """Return side_tu of every node u below branch t, zero for all others, (n_nodes, n_rows)."""
    n_nodes = 2 * n_branches + 1
    sides = np.zeros((n_nodes, len(left)))
    sides[subtree(2 * t + 1, n_nodes)] = right
    sides[subtree(2 * t + 2, n_nodes)] = -left
    return sides


def _spread(
    part: FloatArray, mass: FloatArray, leaves: FloatArray, k: int, n_splits: int
) -> FloatArray:
    """Return the second derivatives of the rows of class k by all parameters, from ``part``."""
    n_groups = len(leaves)
    e = -leaves
    e[k] += 1.0
    upper = np.triu(part[:n_splits, :n_splits])
    mixed = (part[:n_splits, None, n_splits:] * e).reshape(n_splits, leaves.size)
    by_leaf = (e[:, :, None, None] * part[n_splits:, n_splits:][None, :, None, :]) * e
    spread = np.block(
        [
            [upper + np.triu(upper, 1).T, mixed],
            [mixed.T, by_leaf.reshape(leaves.size, leaves.size)],
        ]
    )
    curved = e[:, None, :] * e - leaves[:, None, :] * (np.eye(n_groups)[:, :, None] - leaves)
    _add_by_leaf(spread, -mass * curved, n_splits)
    return spread


def _add_by_leaf(total: FloatArray, blocks: FloatArray, n_splits: int) -> None:
    """Add ``blocks`` (n_groups, n_groups, n_leaves), one for each leaf, to the log-odds part."""
    n_groups, _, n_leaves = blocks.shape
    for leaf in range(n_leaves):
        places = n_splits + leaf + n_leaves * np.arange(n_groups)
        total[np.ix_(places, places)] += blocks[:, :, leaf]


# --- Fisher information ---------------------------------------------------------------------------


def inverse_fisher(
    x: FloatArray,
    rows: StandardisedRows,
    ridge: float,
    free: NDArray[np.bool_],
    shape: tuple[int, int],
) -> FloatArray:
    """Return the inverse Fisher information of the free parameters, ridge and prior included.

    Its size is (0, 0) where rounding has made the matrix indefinite.
    """
    _, gates, gains, root, leaves, reach = routed(x, rows, shape)
    parameters = np.flatnonzero(free)
    matrix = np.empty((len(parameters), len(parameters)))
    positive = _invert(gates, gains, root, leaves, reach, rows, float(ridge), parameters, matrix)
    return matrix if positive else np.empty((0, 0))


@compiled
def _invert(gates, gains, root, leaves, reach, rows, ridge, parameters, matrix):  # type: ignore[no-untyped-def]
    """Write the inverse to ``matrix``, (n_free, n_free); return whether there is one."""
    slopes, added = _slopes(gates, gains, root, leaves, reach, rows, ridge, parameters)
    upper_products(slopes, slopes, matrix)
    trace, count = 0.0, parameters.size
    for line in range(count):
        matrix[line, line] += added[line]
        trace += matrix[line, line]
    for line in range(count):
        matrix[line, line] += DAMPING * trace / count + 1e-12
    return invert_positive(matrix, np.empty((count, count)))


@compiled
def _slopes(gates, gains, root, leaves, reach, rows, ridge, parameters):  # type: ignore[no-untyped-def]
    """Return sqrt(weight_i) J_i for each free parameter and row, and the diagonal of ridge and
    prior."""
    n_branches, n_groups = gates.shape[0], leaves.shape[0]
    n_columns, n_rows = rows.features.shape
    size, n_leaves = n_branches * (n_columns + 1), n_branches + 1
    slopes, added = np.empty((parameters.size, n_rows)), np.empty(parameters.size)
    factors = np.empty(n_rows)
    # sqrt(w) / V, by which every slope is multiplied.
    for i in range(n_rows):
        factors[i] = np.sqrt(rows.weights[i]) / root[i]
    total = 0.0
    for k in range(n_groups):
        total += rows.pseudo[k]
    for line in range(parameters.size):
        number = parameters[line]
        added[line] = 0.0
        if number < size:  # D p (1 - p) / V, times z_j for a weight
            t, j = number // (n_columns + 1), number % (n_columns + 1)
            for i in range(n_rows):
                p = gates[t, i]
                slopes[line, i] = factors[i] * gains[t, i] * p * (1.0 - p)
            if j < n_columns:
                added[line] = ridge
                for i in range(n_rows):
                    slopes[line, i] *= rows.features[j, i]
        else:  # r_l ([y = k] - c_kl), with r_l = P_l c_yl / V
            k, leaf = (number - size) // n_leaves, (number - size) % n_leaves
            added[line] = total * leaves[k, leaf]
            for c in range(n_groups):
                share = leaves[c, leaf] * ((1.0 if c == k else 0.0) - leaves[k, leaf])
                for i in range(rows.starts[c], rows.starts[c + 1]):
                    slopes[line, i] = factors[i] * reach[leaf, i] * share
    return slopes, added


# --- Newton steps ---------------------------------------------------------------------------------

NEWTON_STEPS = 8
"""Most Newton steps: they converge quadratically."""

DIFFERENCE = 1e-6
"""Relative step of central differences of gradients."""

FLAT = 1e-11
"""Curvature below this part of the largest counts as zero."""


def newton_affordable(n_parameters: int, n_rows: int, n_branches: int) -> bool:
    """Whether the Hessian of so many free parameters is cheap enough."""
    return n_parameters <= 300 and n_rows * n_branches * n_parameters <= 2e8


def row_function(
    tree: SupportTree,
    rows: StandardisedRows | SoftTargetRows,
    shrinkage: Shrinkage,
    free: NDArray[np.bool_],
) -> SmoothFunction:
    """The smooth log-loss over rows in memory, of all parameters of trees shaped like ``tree``."""
    return partial(evaluation, rows=rows, shrinkage=shrinkage, free=free, shape=tree.shape)


def of_parameters(
    begun: FloatArray, index: NDArray[np.intp], function: SmoothFunction
) -> SmoothFunction:
    """``function`` of the parameters ``index`` alone; the others keep their values in ``begun``."""

    def restricted(free: FloatArray) -> tuple[float, FloatArray]:
        x = begun.copy()
        x[index] = free
        value, gradient = function(x)
        return value, gradient[index]

    return restricted


def newton_descent(
    function: SmoothFunction,
    curvature: Callable[[FloatArray], FloatArray],
    x: FloatArray,
    tol: float,
) -> FloatArray:
    """Return ``x`` after Newton steps, taken until no derivative is larger than ``tol``.

    ``curvature`` returns the Hessian of ``function`` at a point.
    """
    value, gradient = function(x)
    for _ in range(NEWTON_STEPS):
        largest = float(np.max(np.abs(gradient), initial=0.0))
        if largest <= tol:
            break
        along, sizes = _curved(curvature(x))
        moved = x - along @ ((along.T @ gradient) / sizes)
        lower, fresh = function(moved)
        rises = lower > value + 1e-12 * abs(value)
        if rises or not float(np.max(np.abs(fresh))) < largest:
            break
        x, value, gradient = moved, lower, fresh
    return x


def differenced_hessian(function: SmoothFunction, x: FloatArray) -> FloatArray:
    """Return the Hessian by central differences of the gradient, with relative steps.

    For rows behind an engine, which gives no second derivatives of a support.
    """
    matrix = np.empty((len(x), len(x)))
    for number in range(len(x)):
        moved = x.copy()
        step = DIFFERENCE * max(1.0, abs(x[number]))
        moved[number] += step
        above = function(moved)[1]
        moved[number] = x[number] - step
        matrix[number] = (above - function(moved)[1]) / (2.0 * step)
    return 0.5 * (matrix + matrix.T)


def damped_inverse(matrix: FloatArray, damping: float) -> FloatArray:
    """Return (|matrix| + damping)^-1 in units in which the diagonal of ``matrix`` is one.

    The curvature of a leaf that few rows reach is small, and not flat: hence the units.
    """
    sizes = np.abs(np.diag(matrix))
    units = 1.0 / np.sqrt(np.maximum(sizes, 1e-14 * np.max(sizes, initial=1e-300)))
    along, sizes = _curved(matrix * np.outer(units, units))
    inverse = np.ascontiguousarray((along / (sizes + damping)) @ along.T)
    return np.outer(units, units) * inverse


def _curved(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvectors that are not flat, and the sizes of their eigenvalues."""
    sizes, directions = np.linalg.eigh(matrix)
    curved = np.abs(sizes) > FLAT * np.max(np.abs(sizes), initial=1e-300)
    return directions[:, curved], np.abs(sizes[curved])
