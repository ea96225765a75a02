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
