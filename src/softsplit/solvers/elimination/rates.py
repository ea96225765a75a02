"""Minimum class rates for training by likelihood: terms that multipliers make exact.

The expected rate of class k is the mean of V_i, the probability that the tree gives to the class of
row i, over its rows. A descent lowers, beside all else,

    sum_k (max(0, m_k + weight (rho_k - rate_k))^2 - m_k^2) / (2 weight)

and between descents m_k becomes max(0, m_k + weight (rho_k - rate_k)): an augmented Lagrangian. Its
multipliers are those of the certificate (problem/optimality.py).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from softsplit.engines.outer import IDENTITY
from softsplit.engines.tree_pass import tree_pass
from softsplit.solvers.elimination.objective import Field, score_columns, softmax
from softsplit.support.arrays import FloatArray

FIRST_WEIGHT = 10.0
"""Weight of the terms, in total row weights, at the beginning."""

HEAVIER, MOST = 4.0, 1e6
"""Where the rates come nearer by less than this factor in a round, the weight grows by it."""


class Masses(Protocol):
    """How much of each class reaches each leaf, wherever the rows are."""

    totals: FloatArray
    """Weight of each class, (n_classes,)."""

    def at(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The leaves' distributions at ``x``, and the masses, (n_classes, n_leaves) each."""

    def add(self, x: FloatArray, prices: FloatArray, by_split: FloatArray) -> None:
        """Add the derivative of sum_k prices_k sum_l c_kl M_kl by the splits at the last ``x``."""


class FieldMasses:
    """``Masses`` of rows in memory."""

    def __init__(self, field: Field, shape: tuple[int, int]) -> None:
        self.field = field
        self.totals = np.add.reduceat(field.weights, field.starts[:-1])
        n_branches, n_classes = shape
        self._scores = np.empty((n_branches, field.features.shape[1]))
        self._leaves = np.empty((n_classes, n_branches + 1))
        self._mass = np.empty_like(self._leaves)

    def at(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        n_branches, width = len(self._scores), len(self.field.features) + 1
        splits = x[: n_branches * width].reshape(n_branches, width)
        softmax(x[splits.size :].reshape(self._leaves.shape), self.field.pseudo, self._leaves)
        score_columns(splits, self.field.features, self._scores)
        tree_pass(
            self._scores, self._scores, self.field.starts, self.field.weights, self._leaves, 1.0,
            IDENTITY, self._mass, np.empty(0),
        )  # fmt: skip
        return self._leaves, self._mass

    def add(self, x: FloatArray, prices: FloatArray, by_split: FloatArray) -> None:
        slopes = self._scores * np.repeat(prices, np.diff(self.field.starts))
        by_split[:, :-1] += slopes @ self.field.features.T
        by_split[:, -1] += slopes.sum(axis=1)


class RateTerms:
    """The terms of the rates at points of one shape.

    Attributes
    ----------
    multipliers : array (n_classes,)
    """

    def __init__(self, masses: Masses, minimum: FloatArray) -> None:
        self.masses, self.minimum = masses, minimum
        self.multipliers = np.zeros(len(minimum))
        self._first = self._weight = FIRST_WEIGHT * float(masses.totals.sum())
        self._last = np.inf

    def shortfalls(self, x: FloatArray) -> FloatArray:
        """By how much each rate is below its minimum; negative where it is above."""
        leaves, mass = self.masses.at(x)
        found: FloatArray = self.minimum - np.sum(mass * leaves, axis=1) / self.masses.totals
        return found

    def add(self, x: FloatArray, gradient: FloatArray) -> float:
        """The terms at ``x``; their derivative is added to ``gradient``."""
        leaves, mass = self.masses.at(x)
        short = self.minimum - np.sum(mass * leaves, axis=1) / self.masses.totals
        # Without a minimum there is no multiplier either: a rate is never below zero.
        prices = np.maximum(0.0, self.multipliers + self._weight * short)
        per_row = -prices / self.masses.totals
        n_leaves = leaves.shape[1]
        by_split = gradient[: -leaves.size].reshape(n_leaves - 1, -1)
        self.masses.add(x, per_row, by_split)
        by_share = per_row[:, None] * mass
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
