"""Rows on a device, in pieces of one target group each, and a tree that passes over them.

    log-odds of going left  s_t = splits_t[:-1] . x + splits_t[-1]
    sums                    those of engines/base.py, with these splits

Pieces are filled up with rows of weight zero; whole tiles of these are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from softsplit.engines.samples import Samples
from softsplit.on_torch.bent import BentLines

TILE = 128
"""Rows that go through a tree together."""

PIECE = 1024
"""Most rows of a piece: their sums are added up in the precision of the rows."""

LARGEST = 2**31 - 1
"""Most numbers of a table: kernels count them in 32 bits."""


class DeviceTree(NamedTuple):
    """A tree as it goes to a device."""

    splits: torch.Tensor  # (n_branches, n_features + 1), intercept last
    leaves: torch.Tensor  # (n_groups, n_leaves): W of engines/base.py

    @property
    def depth(self) -> int:
        return len(self.splits).bit_length()


class DeviceSums(NamedTuple):
    """Sums over rows, in double precision."""

    value: torch.Tensor  # ()
    splits: torch.Tensor  # (n_branches, n_features + 1)
    mass: torch.Tensor  # (n_groups, n_leaves)
    table: torch.Tensor  # (n_groups, n_leaves): see engines/base.py


@dataclass(frozen=True)
class Pieces:
    """Rows cut into pieces.

    Attributes
    ----------
    features : tensor (n_features, width)
        ``width`` is n_pieces * piece_rows.
    weights : tensor (width,)
    groups : int32 tensor (n_pieces,)
    filled : int32 tensor (n_pieces,)
        Rows of a piece up to the last one, in whole tiles.
    n_groups : int
    n_rows : int
    bent : BentLines, optional
        How columns are made of ``features``, which are then the values of rows that bend.
    """

    features: torch.Tensor
    weights: torch.Tensor
    groups: torch.Tensor
    filled: torch.Tensor
    n_groups: int
    n_rows: int
    bent: BentLines | None = None

    @property
    def n_features(self) -> int:
        return int(self.features.shape[0]) if self.bent is None else len(self.bent)

    def lines(self, low: int, high: int) -> torch.Tensor:
        """All columns of some rows, (n_features, high - low)."""
        values = self.features[:, low:high]
        return values if self.bent is None else self.bent.made(values)

    def of_columns(self, columns: torch.Tensor) -> Pieces:
        """The same rows with some of their columns; of rows that bend nothing is copied."""
        if self.bent is not None:
            return replace(self, bent=self.bent.chosen(columns))
        return replace(
            self, features=self.features.index_select(0, columns.to(self.features.device))
        )

    @property
    def width(self) -> int:
        return int(self.features.shape[1])

    @property
    def n_pieces(self) -> int:
        return len(self.groups)

    @property
    def piece_rows(self) -> int:
        return self.width // self.n_pieces

    @cached_property
    def runs(self) -> list[tuple[int, int, int]]:
        """Group, first and last column of every run of pieces of one group."""
        groups = self.groups.tolist()
        edges = [0, *(i for i in range(1, len(groups)) if groups[i] != groups[i - 1])]
        ends = [*edges[1:], len(groups)]
        size = self.piece_rows
        return [(groups[a], a * size, b * size) for a, b in zip(edges, ends, strict=True)]

    @cached_property
    def _membership(self) -> torch.Tensor:
        """1 where a piece is of a group, (n_groups, n_pieces)."""
        numbers = torch.arange(self.n_groups, device=self.groups.device)
        return (numbers[:, None] == self.groups[None, :]).to(torch.float64)

    def by_group(self, sums: torch.Tensor) -> torch.Tensor:
        """Sums of pieces (n_pieces, m) added up by group, (n_groups, m)."""
        return torch.matmul(self._membership, sums.to(torch.float64))

    @classmethod
    def of(cls, samples: Samples, device: Any, dtype: torch.dtype) -> Pieces:
        """The rows of some samples."""
        pieces = cls.empty(np.diff(samples.starts), samples.n_features, device, dtype)
        for k, at, _ in pieces.runs:
            low, high = int(samples.starts[k]), int(samples.starts[k + 1])
            block = torch.from_numpy(samples.features[:, low:high])
            pieces.features[:, at : at + high - low] = block.to(device=device)
        return pieces.with_weights(samples)

    @classmethod
    def empty(
        cls, counts: NDArray[np.int64], n_features: int, device: Any, dtype: torch.dtype
    ) -> Pieces:
        """Room for ``counts`` rows of every group, (n_groups,); all zeros."""
        size = int(min(PIECE, -(-counts.max() // TILE) * TILE))
        per_group = -(-counts // size)
        groups = np.repeat(np.arange(len(counts)), per_group)
        before = np.arange(len(groups)) - np.repeat(np.cumsum(per_group) - per_group, per_group)
        filled = np.clip(counts[groups] - size * before, 0, size)
        width = len(groups) * size
        return cls(
            torch.zeros((n_features, width), dtype=dtype, device=device),
            torch.zeros(width, dtype=dtype, device=device),
            torch.from_numpy(groups.astype(np.int32)).to(device),
            torch.from_numpy((-(-filled // TILE) * TILE).astype(np.int32)).to(device),
            len(counts),
            int(counts.sum()),
        )

    def with_weights(self, samples: Samples) -> Pieces:
        """The same rows with the weights of ``samples``, each at the column of its row."""
        weights = torch.zeros_like(self.weights)
        for k, low, _ in self.runs:
            mine = torch.from_numpy(samples.weights[samples.starts[k] : samples.starts[k + 1]])
            weights[low : low + len(mine)] = mine.to(weights)
        return replace(self, weights=weights)

    def of_group(self, k: int) -> Pieces:
        """The same rows, those of other groups with weight zero."""
        weights = torch.zeros_like(self.weights)
        for group, low, high in self.runs:
            if group == k:
                weights[low:high] = self.weights[low:high]
        return replace(self, weights=weights)
