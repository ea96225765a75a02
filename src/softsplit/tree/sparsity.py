"""How sparse a tree is: the paper's indices delta_L and delta_G, and the features in use.

    delta_L = 100 / (p |tau_B|) * #{(j, t): a_jt = 0}
    delta_G = 100 / p           * #{j: a_jt = 0 for every branch t}

An interior-point solver never returns exact zeros, so every count takes a threshold below
which a coefficient is zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray


def local_sparsity(weights: FloatArray, threshold: float = 0.0) -> float:
    """Percentage of coefficients that are zero, over all branches (delta_L)."""
    return float(100.0 * np.mean(np.abs(weights) <= threshold))


def global_sparsity(weights: FloatArray, threshold: float = 0.0) -> float:
    """Percentage of features that no branch uses (delta_G)."""
    return float(100.0 * np.mean(np.max(np.abs(weights), axis=1) <= threshold))


def selected_features(weights: FloatArray, threshold: float = 0.0) -> NDArray[np.intp]:
    """Indices of the features that at least one branch uses."""
    return np.flatnonzero(np.max(np.abs(weights), axis=1) > threshold)


def needed_in_leaves(
    homes: NDArray[np.integer], n_variables: int, kept: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which variables the way to each leaf asks for, (n_variables, n_leaves).

    ``homes`` (n_features,) is the variable of each feature, ``kept`` (n_features, n_branches) where
    weights are not zero.
    """
    n_branches = kept.shape[1]
    found = np.zeros((n_variables, 2 * n_branches + 1), dtype=bool)
    for t in range(n_branches):
        here = found[:, t].copy()
        here[homes[kept[:, t]]] = True
        found[:, 2 * t + 1] = found[:, 2 * t + 2] = here
    return found[:, n_branches:]


def hard_leaves(scores: FloatArray) -> NDArray[np.intp]:
    """Return the leaf of each row that goes left where its score, (n_branches, n_rows), is above
    zero."""
    n_branches, n_rows = scores.shape
    node, rows = np.zeros(n_rows, dtype=np.intp), np.arange(n_rows)
    top = 0
    while top < n_branches:  # all rows are on one level
        node = 2 * node + 2 - (scores[node, rows] > 0)
        top = 2 * top + 1
    return node - n_branches
