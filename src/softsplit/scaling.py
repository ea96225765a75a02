"""Min-max scaling, and splits carried back to original units.

    scaled_j = (x_j - low_j) / span_j          constant columns become 0

A split a . scaled / p - mu in scaled units is x . coef + intercept in original units with

    coef_j = a_j / (p span_j)        intercept = - mu - sum_j a_j low_j / (p span_j)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softsplit.tree import FloatArray, TreeParameters

SMALLEST_SPAN = 1e-250
"""Columns that vary by less are constant: their coefficients would overflow in original units."""

LARGEST_VALUE = 1e150
"""Unscaled values beyond this overflow when they are multiplied with one another."""


@dataclass(frozen=True)
class Scaling:
    """Shift and span of every column; a constant column has span infinity."""

    low: FloatArray
    span: FloatArray

    @classmethod
    def fit(cls, X: FloatArray) -> Scaling:
        """Minimum and range of the columns of ``X``."""
        low, high = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
        with np.errstate(over="ignore"):
            span = high - low
        if not np.all(np.isfinite(span)):
            column = int(np.flatnonzero(~np.isfinite(span))[0])
            raise ValueError(
                f"column {column} of X ranges from {low[column]:.3g} to {high[column]:.3g}, more "
                "than a float can hold; divide it by a constant first."
            )
        return cls(low, np.where(span > SMALLEST_SPAN, span, np.inf))

    @classmethod
    def identity(cls, X: FloatArray) -> Scaling:
        """Columns as they are."""
        largest = float(np.max(np.abs(X)))
        if largest > LARGEST_VALUE:
            raise ValueError(
                f"X holds values up to {largest:.3g}, too large to train on with scale=False; "
                "use scale=True or rescale X."
            )
        return cls(np.zeros(X.shape[1]), np.ones(X.shape[1]))

    def transform(self, X: FloatArray) -> FloatArray:
        return (X - self.low) / self.span

    def splits(self, parameters: TreeParameters) -> tuple[FloatArray, FloatArray]:
        """coef (n_branches, n_features) and intercept (n_branches,) in original units."""
        coef = (parameters.weights / self.span[:, None]).T / parameters.n_features
        return coef, -parameters.thresholds - coef @ self.low
