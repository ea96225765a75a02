"""How far a share that was counted may be from the true one.

Wilson's interval for a share s of n rows, z = 1.96:

    centre = (s + z^2 / 2n) / (1 + z^2 / n)
    half   = z / (1 + z^2 / n) * sqrt(s (1 - s) / n + z^2 / 4n^2)

For two methods judged on the same rows the difference d_i in {-1, 0, 1} of their hits is taken row
by row: mean(d) -+ z sqrt(var(d) / n). Rows are predicted by trees that share training rows, which
both forms leave out of account: the intervals are a little too narrow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Z = 1.959963984540054


class Interval(NamedTuple):
    """An estimate and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def share(hits: NDArray[np.bool_]) -> Interval:
    """Wilson's interval of a share of hits."""
    n, s = len(hits), float(np.mean(hits))
    stretch = 1 + Z**2 / n
    centre = (s + Z**2 / (2 * n)) / stretch
    half = Z / stretch * np.sqrt(s * (1 - s) / n + Z**2 / (4 * n**2))
    return Interval(s, float(max(centre - half, 0.0)), float(min(centre + half, 1.0)))


def difference(hits: NDArray[np.bool_], others: NDArray[np.bool_]) -> Interval:
    """By how much one method hits more often than another on the same rows."""
    gaps: NDArray[Any] = hits.astype(float) - others.astype(float)
    mean, half = float(np.mean(gaps)), float(Z * np.std(gaps) / np.sqrt(len(gaps)))
    return Interval(mean, mean - half, mean + half)
