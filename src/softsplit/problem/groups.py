"""Features that a global penalty counts together: the columns of one variable, or a user's own.

A global penalty looks at u_g = max over the features j of group g and the branches t of |a_jt|;
where every feature is a group of its own that is the paper's max_t |a_jt|. Whatever is written for
rows of weights, one per feature, works for groups if a row holds all weights of a group: ``rows``
puts them there, filled up with zeros, which change neither a maximum nor a prox.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray

IntArray = NDArray[np.int64]


class Groups:
    """The group of each feature, 0, 1, ..., (n_features,)."""

    def __init__(self, of: NDArray[np.integer]) -> None:
        self.of = np.asarray(of, dtype=np.int64)

    @cached_property
    def order(self) -> IntArray:
        """The features, group by group."""
        return np.argsort(self.of, kind="stable").astype(np.int64)

    @cached_property
    def sizes(self) -> IntArray:
        """Features of each group."""
        return np.bincount(self.of).astype(np.int64)

    @cached_property
    def _slots(self) -> IntArray:
        """Place of each feature in the lines of ``rows``, of which each holds one group."""
        widest = int(self.sizes.max())
        first = np.cumsum(self.sizes) - self.sizes
        slots = np.empty(len(self.of), dtype=np.int64)
        within = np.arange(len(self.of)) - first[self.of[self.order]]
        slots[self.order] = self.of[self.order] * widest + within
        return slots

    def rows(self, weights: FloatArray) -> FloatArray:
        """(n_features, n_branches) as (n_groups, all weights of a group), zeros behind."""
        n_groups, widest, n_branches = len(self.sizes), int(self.sizes.max()), weights.shape[1]
        lines = np.zeros((n_groups * widest, n_branches))
        lines[self._slots] = weights
        return lines.reshape(n_groups, widest * n_branches)

    def weights(self, rows: FloatArray) -> FloatArray:
        """What ``rows`` was made of."""
        widest = int(self.sizes.max())
        taken: FloatArray = rows.reshape(len(self.sizes) * widest, -1)[self._slots]
        return taken

    def places(self, n_branches: int) -> tuple[IntArray, IntArray]:
        """Where the weights of each group begin in a list of all, and the list: places in a flat
        array of splits (n_branches, n_features + 1)."""
        n_features = len(self.of)
        branches = np.arange(n_branches, dtype=np.int64) * (n_features + 1)
        places = (self.order[:, None] + branches).ravel()
        begins = np.concatenate([[0], np.cumsum(self.sizes)]) * n_branches
        return begins.astype(np.int64), places


def of_single_features(n_features: int) -> Groups:
    """Every feature a group of its own."""
    return Groups(np.arange(n_features))
