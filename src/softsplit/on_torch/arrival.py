"""Many rows that go to a device once: they are measured, scaled and put in order there.

The samples are those of ``Samples.from_arrays`` and the scaling is that of ``fit_scaling``, to the
bit: what is added up for means and deviations is rounded to multiples of a power of two, so that
sums are exact in any order. The rows do not come back: of the host's samples only those features
are fetched that are asked for.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from softsplit.engines.hinged import HingedLines
from softsplit.engines.samples import Samples
from softsplit.on_torch.backend import enough_memory
from softsplit.on_torch.bent import BentLines, BentTable
from softsplit.on_torch.grouping import grouped
from softsplit.on_torch.pieces import LARGEST, Pieces
from softsplit.on_torch.rows import DeviceRows
from softsplit.support.arrays import FloatArray
from softsplit.support.hinged_table import HingedTable
from softsplit.tree.scaling import LinearScaling, exact_unit

KINDS = ("minmax", "standard")
"""Scalings that are measured on a device."""


class Arrived(NamedTuple):
    """Rows behind their engine, and what was measured of them; arrays are (n_features,)."""

    rows: DeviceRows
    scaling: LinearScaling
    low: FloatArray
    high: FloatArray
    scaled_mean: FloatArray
    whole: NDArray[np.bool_]  # columns that hold integers alone


class SamplesThere(Samples):
    """Samples whose features lie on a device, and come from there when they are asked for."""

    pieces: Pieces
    bent: tuple[NDArray[np.intp], FloatArray, LinearScaling] | None
    """Homes and knots of the columns, and their scaling, where they bend."""

    @classmethod
    def of(
        cls,
        pieces: Pieces,
        starts: NDArray[np.int64],
        weights: FloatArray,
        totals: FloatArray,
        bent: tuple[NDArray[np.intp], FloatArray, LinearScaling] | None = None,
    ) -> SamplesThere:
        samples = cls.__new__(cls)
        vars(samples).update(
            pieces=pieces, starts=starts, weights=weights, group_totals=totals, bent=bent
        )
        return samples

    @cached_property
    def features(self) -> Any:
        """All of them; of rows that bend the values alone are fetched."""
        return self._lines(np.arange(self.n_rows))

    @property
    def n_features(self) -> int:
        return self.pieces.n_features if "pieces" in vars(self) else super().n_features

    @property
    def n_rows(self) -> int:
        return len(self.weights)

    def part(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None = None) -> Samples:
        """As of ``Samples``; no other features are fetched."""
        if "features" in vars(self):
            return super().part(rows, columns)
        starts = np.searchsorted(rows, self.starts).astype(np.int64)
        features = self._lines(rows)[slice(None) if columns is None else columns]
        features = np.ascontiguousarray(features, dtype=float)
        return Samples(features, starts, self.weights[rows], self.group_totals)

    def _lines(self, rows: NDArray[np.intp]) -> Any:
        """Lines of chosen rows, in this process."""
        values = self._fetched(rows).cpu().numpy()
        if self.bent is None:
            return values
        homes, knots, scaling = self.bent
        return HingedLines.scaled(values, homes, knots, scaling)

    def _fetched(self, rows: NDArray[np.intp]) -> torch.Tensor:
        """Chosen rows, as they are in the pieces, on the device."""
        firsts = np.array([low for _, low, _ in self.pieces.runs])
        groups = np.searchsorted(self.starts, rows, side="right") - 1
        places = torch.from_numpy(rows - self.starts[groups] + firsts[groups])
        return self.pieces.features.index_select(1, places.to(self.pieces.features.device))


def arrive(
    X: Any,
    y: NDArray[np.int64],
    n_groups: int,
    weight: FloatArray,
    kind: str,
    device: Any,
    *,
    counts: FloatArray,
) -> Arrived | None:
    """Rows of positive weight on a device; None where rows and pieces do not fit there together.

    ``X`` is an array, a tensor, or a table that bends, of which the values travel. ``counts`` are
    the weights with which the scaling counts rows.
    """
    values = X.values if isinstance(X, HingedTable) else X
    bytes_of_value = 4 if str(values.dtype).endswith("float32") else 8
    size = values.shape[0] * values.shape[1]
    if 3 * size * bytes_of_value > DeviceRows.free(device) or size > LARGEST:
        return None
    with enough_memory(f"{len(X)} rows"):
        # 1. Ends and scaling.
        table = BentTable.of(X, device)
        low, high, whole = _ends(table)
        scaling = LinearScaling.between(low, high)
        if kind == "standard":
            scaling = _standard(scaling, table, torch.from_numpy(counts).to(device))
        # 2. Canonical order; rows in their pieces, scaled if they do not bend.
        rows, starts, weights, totals = grouped(table, y, n_groups, weight)
        pieces = Pieces.empty(np.diff(starts), values.shape[1], device, table.values.dtype)
        if table.knots is not None:
            pieces = replace(pieces, bent=BentLines.of(table, scaling))
        means = _fill(pieces, table, rows, starts, scaling, weights)
    kept = None if table.knots is None else (table.homes, table.knots, scaling)
    samples = SamplesThere.of(pieces, starts, weights, totals, kept)
    there = DeviceRows(samples, (pieces.with_weights(samples),), device)
    return Arrived(there, scaling, low, high, means, whole)


def _ends(table: BentTable) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Smallest and largest value of every column, and whether it holds integers alone."""
    ends = table.columns(torch.stack(torch.aminmax(table.values, dim=0)))  # hinges rise
    low, high = ends.to(torch.float64).cpu().numpy()
    whole = torch.ones(table.n_columns, dtype=torch.bool, device=table.values.device)
    for _, part in table.parts():
        whole &= (part == part.round()).all(dim=0)
    return low + 0.0, high + 0.0, whole.cpu().numpy()  # -0.0 becomes 0.0


def _standard(frame: LinearScaling, table: BentTable, counts: torch.Tensor) -> LinearScaling:
    """Mean and deviation as in tree/scaling.py, whose sums these are."""
    whole = bool((counts == counts.round()).all())
    # Sums of integers are exact in any order.
    total = float(counts.sum()) if whole else math.fsum(counts.cpu().numpy())
    unit = exact_unit(total)
    low, span = (torch.from_numpy(one).to(counts.device) for one in (frame.low, frame.span))

    def mean(centre: torch.Tensor | float, power: int) -> torch.Tensor:
        sums = torch.zeros(table.n_columns, dtype=torch.float64, device=counts.device)
        for some, part in table.parts():
            terms = (part.to(torch.float64) - low) / span - centre
            terms = unit * (terms * terms if power == 2 else terms)
            shares = counts[some, None]
            sums += (shares * terms.round() if whole else (shares * terms).round()).sum(dim=0)
        return sums / (unit * total)

    means = mean(0.0, 1)
    deviations = mean(means, 2).sqrt()
    return frame.standardised(means.cpu().numpy(), deviations.cpu().numpy())


def _fill(
    pieces: Pieces,
    table: BentTable,
    rows: torch.Tensor,
    starts: NDArray[np.int64],
    scaling: LinearScaling,
    weights: FloatArray,
) -> FloatArray:
    """Put chosen rows into their pieces, scaled if they do not bend; the weighted mean of every
    scaled column."""
    device, at_once = rows.device, table.at_once
    low, span = (torch.from_numpy(one).to(device) for one in (scaling.low, scaling.span))
    shares = torch.from_numpy(weights / weights.sum()).to(device)
    means = torch.zeros(table.n_columns, dtype=torch.float64, device=device)
    for k, begin, _ in pieces.runs:
        for first in range(int(starts[k]), int(starts[k + 1]), at_once):
            last = min(first + at_once, int(starts[k + 1]))
            values = table.values[rows[first:last]]
            scaled = (table.columns(values).to(torch.float64) - low) / span
            at = begin + first - int(starts[k])
            room = pieces.features[:, at : at + last - first]
            room.copy_((scaled if table.knots is None else values).T).add_(0.0)  # no -0.0
            means += shares[first:last] @ scaled
    return means.cpu().numpy()
