"""The array type that the library computes with, and weighted means of arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

LARGEST_WHOLE = 2.0**53
"""Up to here, double precision holds every whole number."""


def mean_and_error(values: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return the weighted mean of ``values`` and its standard error."""
    total = float(weights.sum())
    mean = float(weights @ values) / total
    return mean, float(np.sqrt(weights**2 @ (values - mean) ** 2)) / total
