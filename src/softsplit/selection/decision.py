"""When a rare class is called: before it is the most probable one, if that costs little.

A tree by likelihood calls the most probable class, and a class of few samples is then hardly ever
called. Its samples are the ones that people look for. With class probabilities p of left-out
samples, the class called is the one with the largest f_k p_k; f_k = 1 but for *rare* classes, those
with less than RARE of an even share. Their factor is the one of a small grid with the highest mean
rate of correct calls over the classes (balanced accuracy), among those that lose no more accuracy
than SLACK standard errors of the loss itself. As costs that decide at prediction this is

    cost[y, k] = f_y for k != y, 0 for k = y

since sum_y p_y cost[y, k] is least where f_k p_k is largest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.statistics import mean_and_error

RARE = 0.5
"""A class is rare below this part of an even share."""

FACTORS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.5, 8.0, 10.0, 13.0, 16.0, 20.0)
SLACK = 0.5
FEWEST = 5
"""Left-out samples that a class must have for a decision about it."""


def call_factors(
    shares: FloatArray, labels: NDArray[np.int64], weights: FloatArray
) -> FloatArray | None:
    """Factor of each class, from probabilities (n_classes, n_samples); None if all are one."""
    n_classes = len(shares)
    totals = np.bincount(labels, weights, n_classes).astype(float)
    counts = np.bincount(labels, minlength=n_classes)
    rare = (totals < RARE * totals.sum() / n_classes) & (counts >= FEWEST)
    if not np.any(rare):
        return None
    plain = _right(shares, labels, np.ones(n_classes))
    best, chosen = _balanced(plain, labels, weights, totals), 1.0
    for factor in FACTORS[1:]:
        right = _right(shares, labels, np.where(rare, factor, 1.0))
        found = _balanced(right, labels, weights, totals)
        if found > best + 1e-12 and _affordable(plain - right, weights):
            best, chosen = found, factor
    return np.where(rare, chosen, 1.0) if chosen > 1 else None


def call_costs(factors: FloatArray) -> FloatArray:
    """The costs by which the class with the largest factor times probability is called."""
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
    """Whether the accuracy lost is within SLACK of its standard error."""
    mean, error = mean_and_error(lost, weights)
    return mean <= SLACK * error + 1e-12
