"""An engine of the tests' own: rows in two halves, as if on two machines, in plain numpy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from softsplit.engines.base import Sums
from softsplit.engines.gram import Metric
from softsplit.engines.outer import outer_values
from softsplit.engines.samples import Samples
from softsplit.tree.routing import gate_probabilities, node_reach

SOME = 300
"""Rows that both halves send at most."""


@dataclass(frozen=True)
class Half:
    """Rows of one half: features (n_rows, n_features), labels and weights."""

    features: np.ndarray
    labels: np.ndarray
    weights: np.ndarray

    def sums(self, splits, table, outer, steepness):
        """Value, derivative by the splits, masses, and derivative by the table."""
        n_features = self.features.shape[1]
        scores = splits[:, :-1] @ self.features.T / n_features - splits[:, -1:]
        left, right = gate_probabilities(scores, steepness)
        reach = node_reach(left, right)
        values = np.empty_like(reach)
        values[len(splits) :] = table[self.labels].T
        for t in range(len(splits) - 1, -1, -1):
            values[t] = left[t] * values[2 * t + 1] + right[t] * values[2 * t + 2]
        value, slope = outer_values(outer, values[0])
        chain = self.weights * slope
        below = values[1:].reshape(-1, 2, len(self.labels))
        slopes = (
            chain * reach[: len(splits)] * steepness * left * right * (below[:, 0] - below[:, 1])
        )
        by_split = np.column_stack([slopes @ self.features / n_features, -slopes.sum(axis=1)])
        arriving = reach[len(splits) :]
        classes = np.eye(len(table))[self.labels]
        return (
            float(value @ self.weights),
            by_split,
            classes.T @ (self.weights * arriving).T,
            classes.T @ (chain * arriving).T,
        )

    def gram(self):
        """sum of weight v v' with v = (x / n_features, -1)."""
        moves = np.column_stack(
            [self.features / self.features.shape[1], -np.ones(len(self.labels))]
        )
        return moves.T @ (self.weights[:, None] * moves)


@dataclass(frozen=True)
class TwoHalves:
    """Every second row is in the other half; only sums leave a half, and a small sample."""

    halves: tuple[Half, Half]
    group_samples: Samples
    some: Samples

    @classmethod
    def of(cls, samples):
        rows = samples.features.T.copy()
        parts = [slice(0, None, 2), slice(1, None, 2)]
        halves = tuple(Half(rows[p], samples.labels[p], samples.weights[p]) for p in parts)
        return cls(halves, samples.group_samples, samples.stratified(SOME))

    @property
    def n_rows(self):
        return sum(len(half.labels) for half in self.halves)

    @property
    def n_features(self):
        return self.halves[0].features.shape[1]

    @property
    def n_groups(self):
        return self.group_samples.n_groups

    @cached_property
    def group_totals(self):
        counts = [np.bincount(h.labels, h.weights, self.n_groups) for h in self.halves]
        return counts[0] + counts[1]

    @property
    def mean_weight(self):
        return sum(half.weights.sum() for half in self.halves) / self.n_rows

    def evaluate(self, splits, table, outer, steepness):
        one, other = (half.sums(splits, table, outer, steepness) for half in self.halves)
        return Sums(*(a + b for a, b in zip(one, other, strict=True)))

    def curvature(self, splits, table, outer, steepness):
        """By central differences of the derivative, (n_branches (n_features + 1)) squared."""
        lines = []
        for index in np.ndindex(splits.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = splits.copy()
                moved[index] += step
                ends.append(self.evaluate(moved, table, outer, steepness).splits.ravel())
            lines.append((ends[0] - ends[1]) / 2e-6)
        return np.array(lines)

    def metric(self):
        return Metric.of(self.halves[0].gram() + self.halves[1].gram())

    def sample(self, limit=None):
        return self.some

    def reweighed(self, seed, power):
        shares = np.random.default_rng(seed).standard_exponential(self.n_rows) ** power
        changed = [
            replace(half, weights=half.weights * shares[first::2])
            for first, half in enumerate(self.halves)
        ]
        return replace(self, halves=tuple(changed))

    def of_group(self, k):
        changed = [replace(h, weights=np.where(h.labels == k, h.weights, 0.0)) for h in self.halves]
        return replace(self, halves=tuple(changed))
