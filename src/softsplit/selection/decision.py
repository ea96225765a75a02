"""Decision rule for rare classes: predict one before it is the most probable, if that costs little.

The most probable class is hardly ever a class of few rows, and those are the rows that people look
for. With class probabilities p of held-out rows, the predicted class is the one with the largest
f_k p_k, where f_k = 1 but for *rare* classes. Their common factor is the one of a small grid with
the highest balanced accuracy, among those that lose no more accuracy than ``slack`` standard errors
of the loss itself. As a cost matrix that decides at prediction this is

    cost[y, k] = f_y for k != y, 0 for k = y

since sum_y p_y cost[y, k] is least where f_k p_k is largest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray, mean_and_error


@dataclass(frozen=True)
class RareClassOptions:
    """When a rare class is predicted before it is the most probable one."""

    rare: float = 0.5
    """A class is rare below this part of an even share."""

    factors: tuple[float, ...] = (
        1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.5, 8.0, 10.0, 13.0, 16.0, 20.0,
    )  # fmt: skip
    """Grid of factors on the probability of rare classes."""

    slack: float = 0.5
    """Standard errors of accuracy that a factor may cost."""

    fewest: int = 5
    """Held-out rows that a class must have for a decision about it."""


OPTIONS = RareClassOptions()


def call_factors(
    shares: FloatArray, labels: NDArray[np.int64], weights: FloatArray
) -> FloatArray | None:
    """Return the factor of each class from probabilities (n_classes, n_rows); None if all are 1."""
    n_classes = len(shares)
    totals = np.bincount(labels, weights, n_classes).astype(float)
    counts = np.bincount(labels, minlength=n_classes)
    rare = (totals < OPTIONS.rare * totals.sum() / n_classes) & (counts >= OPTIONS.fewest)
    if not np.any(rare):
        return None
    plain = _right(shares, labels, np.ones(n_classes))
    best, chosen = _balanced(plain, labels, weights, totals), 1.0
    for factor in OPTIONS.factors[1:]:
        right = _right(shares, labels, np.where(rare, factor, 1.0))
        found = _balanced(right, labels, weights, totals)
        if found > best + 1e-12 and _affordable(plain - right, weights):
            best, chosen = found, factor
    return np.where(rare, chosen, 1.0) if chosen > 1 else None


def call_costs(factors: FloatArray) -> FloatArray:
    """Return the cost matrix that predicts the class with the largest factor times probability."""
    return factors[:, None] * (1.0 - np.eye(len(factors)))


def _right(shares: FloatArray, labels: NDArray[np.int64], factors: FloatArray) -> FloatArray:
    called = np.argmax(factors[:, None] * shares, axis=0)
    return np.where(called == labels, 1.0, 0.0)


def _balanced(
    right: FloatArray, labels: NDArray[np.int64], weights: FloatArray, totals: FloatArray
) -> float:
    known = totals > 0
    rates = np.bincount(labels, weights * right, len(totals))[known] / totals[known]
    return float(np.mean(rates))


def _affordable(lost: FloatArray, weights: FloatArray) -> bool:
    """Whether the mean accuracy lost is within ``slack`` standard errors."""
    mean, error = mean_and_error(lost, weights)
    return mean <= OPTIONS.slack * error + 1e-12
