"""Ways to the leaves: which variables they ask for, and which one a row takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray


def needed_in_leaves(
    homes: NDArray[np.integer], n_variables: int, kept: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which variables the way to each leaf asks for, (n_variables, n_leaves).

    ``homes`` (n_features,) is the variable of each feature, ``kept`` (n_features, n_branches) where
    weights are not zero.
    """
    n_branches = kept.shape[1]
    needed = np.zeros((n_variables, 2 * n_branches + 1), dtype=bool)
    for t in range(n_branches):
        here = needed[:, t].copy()
        here[homes[kept[:, t]]] = True
        needed[:, 2 * t + 1] = needed[:, 2 * t + 2] = here
    return needed[:, n_branches:]


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
