"""The inverse of the Gram matrix of the training rows: the metric (preconditioner) of descents.

With v_i = (x_i / n_features, -1), the derivative of the score of row i by the weights and threshold
of a branch,

    G        = sum_i weight_i v_i v_i'                (n_features + 1, n_features + 1)
    inverse  = (G + ridge diag(G))^-1
    diagonal = 1 / diag(G)                            (n_features + 1,)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from softsplit.support.arrays import FloatArray

RIDGE = 0.3
"""Regularisation relative to the diagonal: columns may be collinear."""

MOST_FEATURES = 600
"""The matrix is inverted below this number of features; otherwise its diagonal is used."""

CHUNK_ROWS = 16_384
"""Rows summed at a time, to avoid a weighted copy of all rows."""


class Metric(NamedTuple):
    """The metric of descents; ``inverse`` has shape (0, 0) where only the diagonal is used."""

    inverse: FloatArray
    diagonal: FloatArray

    @classmethod
    def of(cls, gram: FloatArray) -> Metric:
        """Return the metric of the matrix G, for engines that sum it by pieces."""
        squares = np.diag(gram)
        squares = np.maximum(squares, 1e-8 * squares[-1] / max(len(gram) - 1, 1) ** 2)
        if len(gram) > MOST_FEATURES:
            return cls(np.zeros((0, 0)), 1.0 / squares)
        root = np.sqrt(squares)
        ridged = gram / np.outer(root, root) + RIDGE * np.eye(len(gram))
        return cls(np.linalg.inv(ridged) / np.outer(root, root), 1.0 / squares)


@dataclass(frozen=True)
class Gram:
    """The Gram matrix of ``features`` (n_features, n_rows) with ``weights`` (n_rows,)."""

    features: FloatArray
    weights: FloatArray

    @property
    def metric(self) -> Metric:
        return Metric(self.inverse, self.diagonal)

    @cached_property
    def diagonal(self) -> FloatArray:
        """1 / diag(G), shape (n_features + 1,); diag(G) is bounded below for zero columns."""
        return 1.0 / self._squares

    @cached_property
    def inverse(self) -> FloatArray:
        """(G + ridge diag(G))^-1, or an array of shape (0, 0) if there are too many features."""
        n_features = len(self.features)
        if n_features >= MOST_FEATURES:
            return np.zeros((0, 0))
        root = np.sqrt(self._squares)
        unit = np.append(np.full(n_features, 1.0 / n_features), -1.0) / root
        ridged = self._second_moments() * np.outer(unit, unit) + RIDGE * np.eye(n_features + 1)
        return np.linalg.inv(ridged) / np.outer(root, root)

    @cached_property
    def _squares(self) -> FloatArray:
        """diag(G), bounded below."""
        n_features = len(self.features)
        squares = np.einsum("ji,ji,i->j", self.features, self.features, self.weights)
        square = np.append(squares / n_features**2, self.weights.sum())
        return np.maximum(square, 1e-8 * square[-1] / n_features**2)

    def _second_moments(self) -> FloatArray:
        """Return the weighted sum of (x, 1)(x, 1)' over the rows."""
        n_features, n_rows = self.features.shape
        moments = np.zeros((n_features + 1, n_features + 1))
        for begin in range(0, n_rows, CHUNK_ROWS):
            part, weights = (
                self.features[:, begin : begin + CHUNK_ROWS],
                self.weights[begin:][:CHUNK_ROWS],
            )
            weighted = part * weights
            moments[:-1, :-1] += weighted @ part.T
            moments[-1, :-1] += weighted.sum(axis=1)
            moments[-1, -1] += weights.sum()
        moments[:-1, -1] = moments[-1, :-1]
        return moments
