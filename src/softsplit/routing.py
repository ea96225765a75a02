"""Routing samples through the tree: the one compiled forward-backward pass.

Gates, with score z_it = (x_i . a_t) / p - mu_t and steepness gamma:

    p_it = F(gamma z_it) = 1 / (1 + exp(-gamma z_it))           left with p, right with 1 - p

Everything linear in the leaf probabilities P_il is a table ``W[class, leaf]``. The pass
computes, without any array of samples x leaves,

    V[leaf]  = W[class(i), leaf]
    V[node]  = p V[left] + (1 - p) V[right]                     upwards; V[root] = sum_l P_il W_l
    reach    = product of the gates above a node                downwards
    d V[root] / d z[node] = reach[node] gamma p (1 - p) (V[left] - V[right])

and, for the leaf step, the mass ``M[class, leaf] = sum_i weight_i P_il``. In logarithmic mode
the value of a sample is -log V[root] instead of V[root]; its chain factor -1 / V[root]
multiplies the reach. Shapes: scores (n_branches, n_rows), table (n_classes, n_leaves).
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from softsplit.tree import FloatArray, TreeParameters

TILE = 256
"""Rows handled together: the working arrays of a tile stay in the first-level cache."""

TINY_PROBABILITY = 1e-300
"""Floor under the logarithm: the value stays finite where a gate has underflowed."""


@nb.njit(cache=True, nogil=True, inline="always")
def _gate_pair(scaled):  # type: ignore[no-untyped-def]
    """Both gate probabilities, each accurate to the last digit however small it is."""
    decay = np.exp(-min(abs(scaled), 700.0))
    large = 1.0 / (1.0 + decay)
    small = decay * large
    return (large, small) if scaled >= 0.0 else (small, large)


@nb.njit(cache=True, nogil=True)
def tree_pass(scores, slopes, starts, weights, table, steepness, logarithmic, mass):  # type: ignore[no-untyped-def]
    """Value of all samples; ``slopes`` becomes d value / d score, ``mass`` the leaf masses.

    Parameters
    ----------
    scores : array (n_branches, n_rows)
    slopes : array (n_branches, n_rows)
        Overwritten with the derivative of the returned value; may be ``scores`` itself.
    starts : int array (n_classes + 1,)
    weights : array (n_rows,)
    table : array (n_classes, n_leaves)
    steepness : float
    logarithmic : bool
        Add -log of each sample's table value rather than the value itself.
    mass : array (n_classes, n_leaves)
        Overwritten with sum_i f_i P_il, where f_i is the weight of the sample times its
        chain factor: 1, or -1 / V[root] in logarithmic mode.
    """
    n_branches = scores.shape[0]
    left = np.empty((n_branches, TILE))
    right = np.empty((n_branches, TILE))
    values = np.empty((2 * n_branches + 1, TILE))
    reach = np.empty((2 * n_branches + 1, TILE))
    total = 0.0
    mass[:, :] = 0.0
    for group in range(len(starts) - 1):
        for begin in range(starts[group], starts[group + 1], TILE):
            size = min(TILE, starts[group + 1] - begin)
            _open_gates(scores, begin, size, steepness, left, right)
            _lift_values(left, right, table[group], size, values)
            total += _chain(values[0], weights, begin, size, logarithmic, reach[0])
            _spread_reach(left, right, size, reach)
            _write_slopes(slopes, begin, size, steepness, left, right, values, reach)
            for leaf in range(n_branches + 1):
                subtotal = 0.0
                for i in range(size):
                    subtotal += reach[n_branches + leaf, i]
                mass[group, leaf] += subtotal
    return total


@nb.njit(cache=True, nogil=True)
def _open_gates(scores, begin, size, steepness, left, right):  # type: ignore[no-untyped-def]
    for t in range(scores.shape[0]):
        for i in range(size):
            left[t, i], right[t, i] = _gate_pair(steepness * scores[t, begin + i])


@nb.njit(cache=True, nogil=True)
def _lift_values(left, right, leaf_values, size, values):  # type: ignore[no-untyped-def]
    n_branches = left.shape[0]
    for leaf in range(n_branches + 1):
        values[n_branches + leaf, :size] = leaf_values[leaf]
    for t in range(n_branches - 1, -1, -1):
        for i in range(size):
            values[t, i] = left[t, i] * values[2 * t + 1, i] + right[t, i] * values[2 * t + 2, i]


@nb.njit(cache=True, nogil=True)
def _chain(root_values, weights, begin, size, logarithmic, factors):  # type: ignore[no-untyped-def]
    """Add up the tile; ``factors`` becomes d total / d root value."""
    total = 0.0
    for i in range(size):
        if logarithmic:
            probability = max(root_values[i], TINY_PROBABILITY)
            total -= weights[begin + i] * np.log(probability)
            factors[i] = -weights[begin + i] / probability
        else:
            total += weights[begin + i] * root_values[i]
            factors[i] = weights[begin + i]
    return total


@nb.njit(cache=True, nogil=True)
def _spread_reach(left, right, size, reach):  # type: ignore[no-untyped-def]
    for t in range(left.shape[0]):
        for i in range(size):
            reach[2 * t + 1, i] = reach[t, i] * left[t, i]
            reach[2 * t + 2, i] = reach[t, i] * right[t, i]


@nb.njit(cache=True, nogil=True)
def _write_slopes(slopes, begin, size, steepness, left, right, values, reach):  # type: ignore[no-untyped-def]
    for t in range(slopes.shape[0]):
        for i in range(size):
            slopes[t, begin + i] = (
                steepness
                * reach[t, i]
                * (left[t, i] * right[t, i])
                * (values[2 * t + 1, i] - values[2 * t + 2, i])
            )


def split_scores(parameters: TreeParameters, features: FloatArray) -> FloatArray:
    """Scores z_ti = (x_i . a_t) / p - mu_t, shape (n_branches, n_rows)."""
    scores = np.dot(parameters.weights.T / parameters.n_features, features)
    scores -= parameters.thresholds[:, None]
    return scores


def gate_probabilities(scores: FloatArray, steepness: float) -> tuple[FloatArray, FloatArray]:
    """Probabilities of going left and right at every branch, each (n_branches, n_rows)."""
    decay = np.exp(-np.minimum(np.abs(steepness * scores), 700.0))
    large = 1.0 / (1.0 + decay)
    small = decay * large
    return np.where(scores >= 0, large, small), np.where(scores >= 0, small, large)


def leaf_probabilities(scores: FloatArray, steepness: float) -> FloatArray:
    """P_il for prediction and for solvers that keep them as variables, (n_leaves, n_rows)."""
    left, right = gate_probabilities(scores, steepness)
    n_branches, n_rows = scores.shape
    reach: NDArray[np.float64] = np.empty((2 * n_branches + 1, n_rows))
    reach[0] = 1.0
    for t in range(n_branches):
        reach[2 * t + 1] = reach[t] * left[t]
        reach[2 * t + 2] = reach[t] * right[t]
    return reach[n_branches:]
