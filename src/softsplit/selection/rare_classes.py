"""The decision for rare classes.

A rare class is predicted before it is the most probable, if that costs little. The most probable
class is hardly ever one of few rows, and those are the rows that people look for. With factors
f_k = 1 but for *rare* classes, errors cost

    cost[y, k] = f_y for k != y, 0 for k = y

and with class probabilities p the class of least expected cost sum_y p_y cost[y, k] is the one with
the largest f_k p_k. The common factor of rare classes is the one of a small grid with the highest
balanced accuracy on held-out rows, among those that lose no more accuracy than ``SLACK`` standard
errors of the loss itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray, mean_and_error

RARE = 0.5
"""A class is rare below this part of an even share."""

FACTORS = (
    1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.5, 8.0, 10.0, 13.0, 16.0, 20.0,
)  # fmt: skip
"""Grid of factors on the probability of rare classes."""

SLACK = 0.5
"""Standard errors of accuracy that a factor may cost."""

FEWEST = 5
"""Held-out rows that a class must have for a decision about it."""

UNAFFORDABLE = 2
"""Factors in a row that cost too much accuracy after which no larger one is tried."""


def decision_factors(
    predicted: Callable[[FloatArray], NDArray[np.intp]],
    n_classes: int,
    labels: NDArray[np.int64],
    weights: FloatArray,
    over: Callable[[], bool] = lambda: False,
) -> FloatArray | None:
    """Return the factor of each class; None if all are 1.

    Parameters
    ----------
    predicted : callable
        Returns the predicted classes of the held-out rows under a cost matrix.
    labels, weights : arrays of shape (n_rows,)
        True classes and weights of the held-out rows.
    over : callable
        Whether the time is over: factors that were not tried by then are not looked at.
    """
    totals = np.bincount(labels, weights, n_classes).astype(float)
    counts = np.bincount(labels, minlength=n_classes)
    rare = (totals < RARE * totals.sum() / n_classes) & (counts >= FEWEST)
    if not np.any(rare):
        return None

    def hits(factors: FloatArray) -> FloatArray:
        return np.where(predicted(prediction_costs(factors)) == labels, 1.0, 0.0)

    if over():
        return None
    plain = hits(np.ones(n_classes))
    best, chosen, too_much = _balanced(plain, labels, weights, totals), 1.0, 0
    for factor in FACTORS[1:]:
        if over() or too_much == UNAFFORDABLE:
            break
        right = hits(np.where(rare, factor, 1.0))
        if not _affordable(plain - right, weights):
            too_much += 1
            continue
        balance, too_much = _balanced(right, labels, weights, totals), 0
        if balance > best + 1e-12:
            best, chosen = balance, factor
    return np.where(rare, chosen, 1.0) if chosen > 1 else None


def prediction_costs(factors: FloatArray) -> FloatArray:
    """Return the cost matrix that predicts the class with the largest factor times probability."""
    return factors[:, None] * (1.0 - np.eye(len(factors)))


def _balanced(
    right: FloatArray, labels: NDArray[np.int64], weights: FloatArray, totals: FloatArray
) -> float:
    known = totals > 0
    rates = np.bincount(labels, weights * right, len(totals))[known] / totals[known]
    return float(np.mean(rates))


def _affordable(lost: FloatArray, weights: FloatArray) -> bool:
    """Whether the mean accuracy lost is within ``SLACK`` standard errors."""
    mean, error = mean_and_error(lost, weights)
    return mean <= SLACK * error + 1e-12
