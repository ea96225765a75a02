"""The array type that the library computes with, and weighted means of arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Up to here, double precision holds every whole number.
LARGEST_WHOLE = 2.0**53


def mean_and_error(values: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return the weighted mean of ``values`` and its standard error."""
    total = float(weights.sum())
    mean = float(weights @ values) / total
    return mean, float(np.sqrt(weights**2 @ (values - mean) ** 2)) / total


def wilson(hits: float, rows: float, z: float = 1.959963984540054) -> tuple[float, float, float]:
    """A share and its 95 % interval."""
    if rows <= 0:
        return float("nan"), 0.0, 1.0
    share, stretch = hits / rows, 1 + z**2 / rows
    centre = (share + z**2 / (2 * rows)) / stretch
    half = z / stretch * np.sqrt(share * (1 - share) / rows + z**2 / (4 * rows**2))
    return share, float(max(centre - half, 0.0)), float(min(centre + half, 1.0))
