"""Minimum class rates for training by likelihood: terms that multipliers make exact.

The expected rate of class k is the mean of V_i, the probability that the tree gives to the class of
row i, over its rows. A descent lowers, beside all else,

    sum_k (max(0, m_k + weight (rho_k - rate_k))^2 - m_k^2) / (2 weight)

and between descents m_k becomes max(0, m_k + weight (rho_k - rate_k)): an augmented Lagrangian. Its
multipliers are those of the certificate (problem/optimality.py).
"""

from __future__ import annotations

import numpy as np

from softsplit.engines.outer import IDENTITY
from softsplit.engines.tree_pass import tree_pass
from softsplit.solvers.likelihood.objective import Field, score_columns, softmax
from softsplit.support.arrays import FloatArray

FIRST_WEIGHT = 10.0
"""Weight of the terms, in total row weights, at the beginning."""

HEAVIER, MOST = 4.0, 1e6
"""Where the rates come nearer by less than this factor in a round, the weight grows by it."""


class RateTerms:
    """The terms of the rates at points of one shape.

    Attributes
    ----------
    multipliers : array (n_classes,)
    """

    def __init__(self, field: Field, shape: tuple[int, int], minimum: FloatArray) -> None:
        self.field, self.minimum = field, minimum
        self.totals = np.add.reduceat(field.weights, field.starts[:-1])
        self.multipliers = np.zeros(len(minimum))
        self._first = self._weight = FIRST_WEIGHT * float(self.totals.sum())
        self._last = np.inf
        n_branches, n_classes = shape
        self._scores = np.empty((n_branches, field.features.shape[1]))
        self._leaves = np.empty((n_classes, n_branches + 1))
        self._mass = np.empty_like(self._leaves)

    def shortfalls(self, x: FloatArray) -> FloatArray:
        """By how much each rate is below its minimum; negative where it is above."""
        n_branches, width = len(self._scores), len(self.field.features) + 1
        splits = x[: n_branches * width].reshape(n_branches, width)
        softmax(x[splits.size :].reshape(self._leaves.shape), self.field.pseudo, self._leaves)
        score_columns(splits, self.field.features, self._scores)
        tree_pass(
            self._scores, self._scores, self.field.starts, self.field.weights, self._leaves, 1.0,
            IDENTITY, self._mass, np.empty(0),
        )  # fmt: skip
        found: FloatArray = self.minimum - np.sum(self._mass * self._leaves, axis=1) / self.totals
        return found

    def add(self, x: FloatArray, gradient: FloatArray) -> float:
        """The terms at ``x``; their derivative is added to ``gradient``."""
        # Without a minimum there is no multiplier either: a rate is never below zero.
        prices = np.maximum(0.0, self.multipliers + self._weight * self.shortfalls(x))
        per_row = -prices / self.totals
        slopes = self._scores * np.repeat(per_row, np.diff(self.field.starts))
        n_branches, width = len(slopes), len(self.field.features) + 1
        by_split = gradient[: n_branches * width].reshape(n_branches, width)
        by_split[:, :-1] += slopes @ self.field.features.T
        by_split[:, -1] += slopes.sum(axis=1)
        by_share, leaves = per_row[:, None] * self._mass, self._leaves
        mean = np.sum(leaves * by_share, axis=0)
        gradient[by_split.size :] += (leaves * (by_share - mean)).ravel()
        return float(np.sum(prices**2 - self.multipliers**2)) / (2.0 * self._weight)

    def update(self, x: FloatArray) -> None:
        """New multipliers at the end of a descent."""
        short = self.shortfalls(x)
        self.multipliers = np.maximum(0.0, self.multipliers + self._weight * short)
        worst = float(np.max(short))
        if worst > self._last / HEAVIER:
            self._weight = min(HEAVIER * self._weight, MOST * self._first)
        self._last = worst
