"""What reading a tree needs to know of the training data: ranges, means and kinds of features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import LARGEST_WHOLE, FloatArray

NUMBER, INTEGER, BINARY = "number", "integer", "binary"

CELLS_AT_ONCE = 250_000
"""Cells that are looked at together: a few megabytes, small beside a table that is large."""


@dataclass(frozen=True)
class FeatureSummary:
    """Training range, scaled mean and kind of every feature.

    Attributes
    ----------
    low, high : arrays of shape (n_features,)
        Smallest and largest training value, in original units; of a look-up those of its variable.
    scaled_mean : array of shape (n_features,)
        Weighted mean of the scaled training values: contributions are counted from there.
    kinds : array of str, shape (n_features,)
        "binary" if all training values are 0 or 1, "integer" if all are integers, else "number".
    """

    low: FloatArray
    high: FloatArray
    scaled_mean: FloatArray
    kinds: NDArray[np.str_]

    @classmethod
    def of(cls, X: FloatArray, weight: FloatArray, scaled_mean: FloatArray) -> FeatureSummary:
        """The summary of the rows of positive weight, with the mean of the scaled ones."""
        counted = X if np.all(weight > 0) else X[weight > 0]
        low = counted.min(axis=0).astype(float) + 0.0  # -0.0 becomes 0.0
        high = counted.max(axis=0).astype(float) + 0.0
        return cls.known(low, high, scaled_mean, _whole(counted, _countable(low, high)))

    @classmethod
    def known(
        cls, low: FloatArray, high: FloatArray, scaled_mean: FloatArray, whole: NDArray[np.bool_]
    ) -> FeatureSummary:
        """From what is known of all rows: ends, means, and which features hold integers alone."""
        whole = whole & _countable(low, high)
        binary = whole & (low >= 0) & (high <= 1)
        kinds = np.where(binary, BINARY, np.where(whole, INTEGER, NUMBER))
        return cls(low + 0.0, high + 0.0, scaled_mean, kinds)


def _countable(low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(np.maximum(np.abs(low), np.abs(high)) <= LARGEST_WHOLE)


def _whole(X: FloatArray, whole: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of the features that are named ``whole`` hold integers alone."""
    step = CELLS_AT_ONCE // max(X.shape[1], 1) + 1
    for begin in range(0, len(X), step):
        rows = X[begin : begin + step, whole]
        whole[np.flatnonzero(whole)[np.any(rows != np.rint(rows), axis=0)]] = False
    return whole
