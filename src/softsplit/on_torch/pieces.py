"""Rows on a device, in pieces of one class each, and trees that pass over them.

There may be several *tables*: the same problem with other rows or in other units, such as the
folds of a cross-validation. All have the same pieces, class by class; what a table lacks is filled
with rows of weight zero, whole tiles of which are left out. Several *weightings* of the same rows
are likewise possible. A tree passes over one table with one weighting:

    log-odds of going left  s_t = splits_t[:-1] . x + splits_t[-1]
    sums                    those of engines/base.py, with these splits
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from softsplit.engines.samples import Samples
from softsplit.support.arrays import FloatArray

TILE = 128
"""Rows that go through a tree together."""

PIECE = 1024
"""Most rows of a piece: their sums are added up in the precision of the rows."""

LARGEST = 2**31 - 1
"""Most numbers of a table: kernels count them in 32 bits."""


class Units(NamedTuple):
    """Features of a table as (x - middle) / scale, each (n_features,)."""

    middle: FloatArray
    scale: FloatArray

    def of(self, features: torch.Tensor) -> torch.Tensor:
        middle, scale = (torch.from_numpy(one)[:, None].to(features.device) for one in self)
        return (features - middle) / scale


class Trees(NamedTuple):
    """Trees of one shape."""

    splits: torch.Tensor  # (n_trees, n_branches, n_features + 1), intercept last
    leaves: torch.Tensor  # (n_trees, n_groups, n_leaves): W of engines/base.py
    tables: torch.Tensor  # (n_trees,), int32: the table of each
    weightings: torch.Tensor  # (n_trees,), int32: its weighting

    @property
    def n_trees(self) -> int:
        return int(self.splits.shape[0])

    @property
    def n_branches(self) -> int:
        return int(self.splits.shape[1])

    @property
    def depth(self) -> int:
        return (self.n_branches + 1).bit_length() - 1


class BatchSums(NamedTuple):
    """Sums over rows for every tree, in double precision."""

    value: torch.Tensor  # (n_trees,)
    splits: torch.Tensor  # (n_trees, n_branches, n_features + 1)
    mass: torch.Tensor  # (n_trees, n_groups, n_leaves)
    table: torch.Tensor  # (n_trees, n_groups, n_leaves): see engines/base.py


class Parts(NamedTuple):
    """Sums over parts of the rows, each of one class, with the identity as outer function."""

    splits: torch.Tensor  # (n_trees, n_parts, n_branches, n_features + 1)
    classes: torch.Tensor  # (n_parts,), int64
    mass: torch.Tensor  # (n_trees, n_groups, n_leaves): of whole classes, in double precision


@dataclass(frozen=True)
class Pieces:
    """Rows of some tables, cut into pieces.

    Attributes
    ----------
    features : tensor (n_tables, n_features, width)
        ``width`` is n_pieces * piece_rows.
    weights : tensor (n_weightings, width)
    classes : int32 tensor (n_pieces,)
    filled : int32 tensor (n_tables, n_pieces)
        Rows of a piece up to the last one, in whole tiles.
    n_groups : int
    n_rows : int
        Rows of all tables together.
    """

    features: torch.Tensor
    weights: torch.Tensor
    classes: torch.Tensor
    filled: torch.Tensor
    n_groups: int
    n_rows: int

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def width(self) -> int:
        return int(self.features.shape[2])

    @property
    def n_pieces(self) -> int:
        return len(self.classes)

    @property
    def piece_rows(self) -> int:
        return self.width // self.n_pieces

    @cached_property
    def runs(self) -> list[tuple[int, int, int]]:
        """Class, first and last column of every run of pieces of one class."""
        classes = self.classes.tolist()
        edges = [0, *(i for i in range(1, len(classes)) if classes[i] != classes[i - 1])]
        ends = [*edges[1:], len(classes)]
        size = self.piece_rows
        return [(classes[a], a * size, b * size) for a, b in zip(edges, ends, strict=True)]

    @cached_property
    def _membership(self) -> torch.Tensor:
        """1 where a piece is of a class, (n_groups, n_pieces)."""
        numbers = torch.arange(self.n_groups, device=self.classes.device)
        return (numbers[:, None] == self.classes[None, :]).to(torch.float64)

    def by_class(self, sums: torch.Tensor) -> torch.Tensor:
        """Sums of pieces (n_trees, n_pieces, m) added up by class, (n_trees, n_groups, m)."""
        return torch.matmul(self._membership, sums.to(torch.float64))

    @classmethod
    def of(
        cls,
        tables: Sequence[Samples],
        device: Any,
        dtype: torch.dtype,
        units: Sequence[Units] | None = None,
    ) -> Pieces:
        """The rows of some samples, in their own or in other units; each has its own weighting."""
        counts = np.array([np.diff(one.starts) for one in tables])  # (n_tables, n_groups)
        made = cls.empty(counts, tables[0].n_features, device, dtype)
        for number, one in enumerate(tables):
            for k, at, _ in made.runs:
                low, high = int(one.starts[k]), int(one.starts[k + 1])
                block = torch.from_numpy(one.features[:, low:high]).to(device=device)
                if units is not None:
                    block = units[number].of(block)
                made.features[number, :, at : at + high - low] = block
        return replace(made, weights=torch.stack([made.weights_of(one) for one in tables]))

    @classmethod
    def empty(
        cls, counts: NDArray[np.int64], n_features: int, device: Any, dtype: torch.dtype
    ) -> Pieces:
        """Room for ``counts`` rows of every table and class, (n_tables, n_groups); all zeros."""
        most = counts.max(axis=0)
        size = int(min(PIECE, -(-most.max() // TILE) * TILE))
        per_class = -(-most // size)
        classes = np.repeat(np.arange(len(most)), per_class)
        before = np.arange(len(classes)) - np.repeat(np.cumsum(per_class) - per_class, per_class)
        # Kernels read lines of a table, and numpy may have laid it out by columns.
        filled = np.ascontiguousarray(np.clip(counts[:, classes] - size * before, 0, size))
        shape = (len(counts), n_features, len(classes) * size)
        return cls(
            torch.zeros(shape, dtype=dtype, device=device),
            torch.zeros((0, shape[2]), dtype=dtype, device=device),
            torch.from_numpy(classes.astype(np.int32)).to(device),
            torch.from_numpy((-(-filled // TILE) * TILE).astype(np.int32)).to(device),
            len(most),
            int(counts.sum()),
        )

    def weights_of(self, samples: Samples) -> torch.Tensor:
        """The weights of samples, each at the column of its row, (width,)."""
        weights = torch.zeros(self.width, dtype=self.features.dtype, device=self.features.device)
        for k, low, _ in self.runs:
            mine = torch.from_numpy(samples.weights[samples.starts[k] : samples.starts[k + 1]])
            weights[low : low + len(mine)] = mine.to(weights)
        return weights

    def with_weights(self, samples: Samples) -> Pieces:
        """The same rows with the weights of ``samples``."""
        return replace(self, weights=self.weights_of(samples)[None])

    def of_group(self, k: int) -> Pieces:
        """The same rows, those of other classes with weight zero."""
        weights = torch.zeros_like(self.weights)
        for group, low, high in self.runs:
            if group == k:
                weights[:, low:high] = self.weights[:, low:high]
        return replace(self, weights=weights)
