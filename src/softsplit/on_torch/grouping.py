"""``Samples.from_arrays`` on a device: the same samples, to the bit, of many rows in a moment.

Hashing, sorting, comparing and scaling of ten million rows take a core half a minute. Here the rows
go to the device and come back in their groups, ordered by their hashes and scaled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from softsplit.engines.samples import Samples
from softsplit.on_torch.backend import enough_memory
from softsplit.on_torch.bent import BentTable
from softsplit.support.arrays import FloatArray
from softsplit.support.row_budgets import ROWS
from softsplit.tree.scaling import LinearScaling

AT_ONCE = 2**20
"""Rows that are scaled at a time."""

SEED, FACTOR, SHIFT = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 29
"""Those of the hash in support/bent_rows.py."""

SIGN = -(2**63)
"""The bits of -0.0; as integers with this one turned over, unsigned numbers have their order."""


def grouped_samples(
    X: NDArray[np.floating],
    y: NDArray[np.int64],
    n_groups: int,
    weight: FloatArray,
    scaling: LinearScaling,
    device: Any,
    *,
    stay_single: bool,
) -> Samples:
    """Scaled rows in canonical form; see ``Samples.from_arrays``."""
    with enough_memory(f"the ordering of {len(X)} rows"):
        table = BentTable.of(np.ascontiguousarray(X), device)
        rows, starts, weights, totals = grouped(table, y, n_groups, weight)
        single = stay_single and X.dtype == np.float32 and len(X) > ROWS.double_precision
        features = _scaled(table.values, rows, scaling, torch.float32 if single else torch.float64)
    return Samples(features, starts, weights, totals)


class GroupedPairs(NamedTuple):
    """Distinct rows in canonical order; arrays as of ``Samples``."""

    rows: torch.Tensor
    starts: NDArray[np.int64]
    weights: FloatArray
    group_totals: FloatArray


def grouped(
    table: BentTable, y: NDArray[np.int64], n_groups: int, weight: FloatArray
) -> GroupedPairs:
    """Rows of positive weight by group, hash and weight; equal ones are merged."""
    values = table.values
    groups = torch.from_numpy(y).to(values.device)
    weights = torch.from_numpy(weight).to(values.device)
    # 1. By weight, then by hash, then by group: sorting is stable.
    order = torch.nonzero(weights > 0).flatten()
    if bool((weights[order] != weights[order[0]]).any()):
        order = order[torch.sort(weights[order], stable=True).indices]
    order = order[torch.sort(_hashes(table)[order] ^ SIGN, stable=True).indices]
    order = order[torch.sort(groups[order], stable=True).indices]
    # 2. A row equal to the one before it adds its weight to that one.
    same = groups[order[1:]] == groups[order[:-1]]
    for j in range(values.shape[1]):
        column = values[:, j][order]
        same &= column[1:] == column[:-1]
    first = torch.cat([same.new_ones(1), ~same])
    rows, merged = order[first], weights[order].cpu().numpy()
    if len(rows) < len(order):
        merged = np.add.reduceat(merged, torch.nonzero(first).flatten().cpu().numpy())
    # 3. Where each group begins.
    counts = torch.bincount(groups[rows], minlength=n_groups).cpu().numpy()
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return GroupedPairs(rows, starts, merged, np.add.reduceat(merged, starts[:-1]))


def _hashes(table: BentTable) -> torch.Tensor:
    """64-bit hash of every row; products of integers wrap around."""
    device = table.values.device
    state = torch.full((len(table),), _signed(SEED), dtype=torch.int64, device=device)
    for j in range(table.n_columns):
        bits = table.column(j).to(torch.float64).contiguous().view(torch.int64)
        bits = torch.where(bits == SIGN, torch.zeros_like(bits), bits)
        state = (state ^ bits) * _signed(FACTOR)
        state ^= (state >> SHIFT) & ((1 << (64 - SHIFT)) - 1)
    return state


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _scaled(
    values: torch.Tensor, rows: torch.Tensor, scaling: LinearScaling, dtype: torch.dtype
) -> Any:
    """Chosen rows, scaled, one line per feature, in the memory of this process."""
    low, span = (torch.from_numpy(one).to(values.device) for one in (scaling.low, scaling.span))
    features = torch.empty((values.shape[1], len(rows)), dtype=dtype)
    for begin in range(0, len(rows), AT_ONCE):
        part = values[rows[begin : begin + AT_ONCE]].to(torch.float64)
        scaled = ((part - low) / span).to(dtype) + 0.0  # -0.0 becomes 0.0
        features[:, begin : begin + len(part)] = scaled.T.cpu()
    return features.numpy()
