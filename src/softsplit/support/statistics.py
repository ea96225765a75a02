"""Small statistics of weighted samples."""

from __future__ import annotations

import numpy as np

from softsplit.support.arrays import FloatArray


def mean_and_error(values: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Weighted mean of some samples, and its standard error."""
    total = float(weights.sum())
    mean = float(weights @ values) / total
    return mean, float(np.sqrt(weights**2 @ (values - mean) ** 2)) / total
