"""Many rows that go to a device once: they are measured, scaled and put in order there.

The samples are those of ``Samples.from_arrays`` and the scaling is that of ``fit_scaling``, to the
bit: what is added up for means and deviations is rounded to multiples of a power of two, so that
sums are exact in any order. The rows do not come back: of the host's samples only those features
are fetched that are asked for.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from softsplit.engines.samples import Samples
from softsplit.on_torch.backend import enough_memory
from softsplit.on_torch.grouping import grouped
from softsplit.on_torch.pieces import LARGEST, Pieces
from softsplit.on_torch.rows import DeviceRows
from softsplit.support.arrays import FloatArray
from softsplit.tree.scaling import LinearScaling, exact_unit

AT_ONCE = 2**20
"""Rows that are worked on at a time, in double precision."""

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

    @classmethod
    def of(
        cls, pieces: Pieces, starts: NDArray[np.int64], weights: FloatArray, totals: FloatArray
    ) -> SamplesThere:
        samples = cls.__new__(cls)
        vars(samples).update(pieces=pieces, starts=starts, weights=weights, group_totals=totals)
        return samples

    @cached_property
    def features(self) -> Any:
        """All of them."""
        return self._fetched(np.arange(self.n_rows)).cpu().numpy()

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
        features = self._fetched(rows).to(torch.float64).cpu().numpy()
        chosen = features if columns is None else np.ascontiguousarray(features[columns])
        return Samples(chosen, starts, self.weights[rows], self.group_totals)

    def _fetched(self, rows: NDArray[np.intp]) -> torch.Tensor:
        """Chosen rows, on the device, (n_features, n)."""
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

    ``X`` is an array, or a tensor. ``counts`` are the weights with which the scaling counts rows.
    """
    if not isinstance(X, torch.Tensor):
        X = torch.from_numpy(np.require(X, requirements=["C", "W"]))
    if 3 * X.numel() * X.element_size() > DeviceRows.free(device) or X.numel() > LARGEST:
        return None
    with enough_memory(f"{len(X)} rows"):
        # 1. Ends and scaling.
        values = X.detach().to(device)
        low, high, whole = _ends(values)
        scaling = LinearScaling.between(low, high)
        if kind == "standard":
            scaling = _standard(scaling, values, torch.from_numpy(counts).to(device))
        # 2. Canonical order; scaled rows in their pieces.
        rows, starts, weights, totals = grouped(values, y, n_groups, weight)
        pieces = Pieces.empty(np.diff(starts), X.shape[1], device, values.dtype)
        means = _fill(pieces, values, rows, starts, scaling, weights)
    samples = SamplesThere.of(pieces, starts, weights, totals)
    there = DeviceRows(samples, (pieces.with_weights(samples),), device)
    return Arrived(there, scaling, low, high, means, whole)


def _ends(values: torch.Tensor) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Smallest and largest value of every column, and whether it holds integers alone."""
    low, high = (one.to(torch.float64).cpu().numpy() for one in torch.aminmax(values, dim=0))
    whole = torch.ones(values.shape[1], dtype=torch.bool, device=values.device)
    for part in values.split(AT_ONCE):
        whole &= (part == part.round()).all(dim=0)
    return low + 0.0, high + 0.0, whole.cpu().numpy()  # -0.0 becomes 0.0


def _standard(frame: LinearScaling, values: torch.Tensor, counts: torch.Tensor) -> LinearScaling:
    """Mean and deviation as in tree/scaling.py, whose sums these are."""
    whole = bool((counts == counts.round()).all())
    # Sums of integers are exact in any order.
    total = float(counts.sum()) if whole else math.fsum(counts.cpu().numpy())
    unit = exact_unit(total)
    low, span = (torch.from_numpy(one).to(values.device) for one in (frame.low, frame.span))

    def mean(centre: torch.Tensor | float, power: int) -> torch.Tensor:
        sums = torch.zeros(values.shape[1], dtype=torch.float64, device=values.device)
        pairs = zip(values.split(AT_ONCE), counts.split(AT_ONCE), strict=True)
        for part, shares in pairs:
            terms = (part.to(torch.float64) - low) / span - centre
            terms = unit * (terms * terms if power == 2 else terms)
            if whole:
                sums += (shares[:, None] * terms.round()).sum(dim=0)
            else:
                sums += (shares[:, None] * terms).round().sum(dim=0)
        return sums / (unit * total)

    means = mean(0.0, 1)
    deviations = mean(means, 2).sqrt()
    return frame.standardised(means.cpu().numpy(), deviations.cpu().numpy())


def _fill(
    pieces: Pieces,
    values: torch.Tensor,
    rows: torch.Tensor,
    starts: NDArray[np.int64],
    scaling: LinearScaling,
    weights: FloatArray,
) -> FloatArray:
    """Put chosen rows, scaled, into their pieces; the weighted mean of every feature."""
    low, span = (torch.from_numpy(one).to(values.device) for one in (scaling.low, scaling.span))
    shares = torch.from_numpy(weights / weights.sum()).to(values.device)
    means = torch.zeros(values.shape[1], dtype=torch.float64, device=values.device)
    for k, begin, _ in pieces.runs:
        for first in range(int(starts[k]), int(starts[k + 1]), AT_ONCE):
            last = min(first + AT_ONCE, int(starts[k + 1]))
            scaled = (values[rows[first:last]].to(torch.float64) - low) / span
            at = begin + first - int(starts[k])
            room = pieces.features[:, at : at + last - first]
            room.copy_(scaled.T).add_(0.0)  # -0.0 becomes 0.0
            means += shares[first:last] @ scaled
    return means.cpu().numpy()
