"""Curvature from the rows: the empirical Fisher information of a tree by likelihood.

With J_i the derivative of -log V_i by the numbers that are free, the Hessian of the log-loss is
near sum_i weight_i J_i J_i' where the tree fits. Of the splits and of the log-odds of the leaves,

    J_i by s_it   = - D_it p_it (1 - p_it) / V_i              (prices.py), times z_ij or 1
    J_i by v_kl   = - r_il ([y_i = k] - c_kl)                 r_il = P_il c_{y_i l} / V_i

Its inverse, with ridge and prior, is what a descent on a support begins from: it ends in a third of
the steps, and further down.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.products import upper_products
from softsplit.solvers.elimination.deletion_costs import routed
from softsplit.solvers.elimination.objective import Field
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.support.linear_algebra import invert_positive

MOST_NUMBERS = 160
WORTH = 50.0
"""Products of the matrix, for each row, that a step and branch less are worth."""

DAMPING = 1e-6
"""Added to the diagonal, as a part of its mean."""


def pays(n_numbers: int, n_branches: int, max_iter: int) -> bool:
    """Whether the matrix costs less than the steps that it saves."""
    return n_numbers <= MOST_NUMBERS and n_numbers**2 <= WORTH * n_branches * max_iter


def inverse_fisher(
    x: FloatArray, field: Field, ridge: float, free: NDArray[np.bool_], shape: tuple[int, int]
) -> FloatArray:
    """Inverse of the Fisher information of the free numbers, ridge and prior included.

    One of size (0, 0) where rounding has left none.
    """
    _, gates, gains, root, leaves, reach = routed(x, field, shape)
    numbers = np.flatnonzero(free)
    matrix = np.empty((len(numbers), len(numbers)))
    positive = _invert(gates, gains, root, leaves, reach, field, float(ridge), numbers, matrix)
    return matrix if positive else np.empty((0, 0))


@compiled
def _invert(gates, gains, root, leaves, reach, field, ridge, numbers, matrix):  # type: ignore[no-untyped-def]
    """The inverse to ``matrix``, (n_free, n_free); whether there is one."""
    slopes, added = _slopes(gates, gains, root, leaves, reach, field, ridge, numbers)
    upper_products(slopes, slopes, matrix)
    trace, count = 0.0, numbers.size
    for line in range(count):
        matrix[line, line] += added[line]
        trace += matrix[line, line]
    for line in range(count):
        matrix[line, line] += DAMPING * trace / count + 1e-12
    return invert_positive(matrix, np.empty((count, count)))


@compiled
def _slopes(gates, gains, root, leaves, reach, field, ridge, numbers):  # type: ignore[no-untyped-def]
    """Root of the weight times J for each free number and row, and what ridge and prior add."""
    n_branches, n_classes = gates.shape[0], leaves.shape[0]
    n_columns, n_rows = field.features.shape
    size, n_leaves = n_branches * (n_columns + 1), n_branches + 1
    slopes, added = np.empty((numbers.size, n_rows)), np.empty(numbers.size)
    factors = np.empty(n_rows)
    for i in range(n_rows):
        factors[i] = np.sqrt(field.weights[i]) / root[i]
    total = 0.0
    for k in range(n_classes):
        total += field.pseudo[k]
    for line in range(numbers.size):
        number = numbers[line]
        added[line] = 0.0
        if number < size:
            t, j = number // (n_columns + 1), number % (n_columns + 1)
            for i in range(n_rows):
                p = gates[t, i]
                slopes[line, i] = factors[i] * gains[t, i] * p * (1.0 - p)
            if j < n_columns:
                added[line] = ridge
                for i in range(n_rows):
                    slopes[line, i] *= field.features[j, i]
        else:
            k, leaf = (number - size) // n_leaves, (number - size) % n_leaves
            added[line] = total * leaves[k, leaf]
            for c in range(n_classes):
                share = leaves[c, leaf] * ((1.0 if c == k else 0.0) - leaves[k, leaf])
                for i in range(field.starts[c], field.starts[c + 1]):
                    slopes[line, i] = factors[i] * reach[leaf, i] * share
    return slopes, added
