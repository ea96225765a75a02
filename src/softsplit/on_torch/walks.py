"""The walk of all rows on a device: the weight of each group that arrives in each leaf.

Sums are made as in fitted/walk.py, term by term in double precision. Columns that bend are read in
their own units, all others are restored from scaled lines. Of a tree in points the terms are the
points of look-ups (variables/lookup.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, log10
from typing import NamedTuple

import numpy as np
import torch

from softsplit.fitted.walk import TIE, Walk
from softsplit.on_torch.pieces import Pieces
from softsplit.support.arrays import FloatArray
from softsplit.tree.scaling import LinearScaling
from softsplit.variables.lookup import DIGITS, Lookup, LookupColumn

AT_ONCE = 2**22
"""Rows that walk together."""


def arriving(
    walk: Walk,
    scaling: LinearScaling,
    slabs: Iterable[Pieces],
    lookups: Sequence[LookupColumn] | None = None,
) -> FloatArray:
    """Return the counts of ``Walk.arriving``, (n_groups, n_leaves).

    With ``lookups`` these are the features of the walk, else the columns of the rows.
    """
    counts: torch.Tensor | None = None
    for slab in slabs:
        if counts is None:
            shape = slab.n_groups, walk.counts.shape[1]
            counts = torch.zeros(shape, dtype=torch.float64, device=slab.features.device)
        for group, first, last in slab.runs:
            for low in range(first, last, AT_ONCE):
                high = min(low + AT_ONCE, last)
                columns = _Columns(scaling, slab, low, high, lookups)
                leaves = _leaves(walk, columns)
                weights = slab.weights[low:high].to(torch.float64)
                counts[group] += torch.bincount(leaves, weights, counts.shape[1])
    assert counts is not None
    return np.asarray(counts.cpu().numpy())


class _Columns(NamedTuple):
    """The features of a walk for rows ``low`` .. ``high`` - 1 of a slab, in double precision."""

    scaling: LinearScaling
    slab: Pieces
    low: int
    high: int
    lookups: Sequence[LookupColumn] | None

    def feature(self, j: int) -> torch.Tensor:
        """Return a column in its own units, or the points of a look-up."""
        if self.lookups is None:
            return self._column(j)
        own = self.lookups[j]
        points = _points(own.lookup, self._number(own.value))
        if own.unknown is None or own.lookup.unknown is None:
            return points
        return torch.where(self._column(own.unknown) > 0.5, float(own.lookup.unknown), points)

    def _column(self, j: int) -> torch.Tensor:
        scaling, slab = self.scaling, self.slab
        if slab.bent is not None:
            return slab.bent.column(slab.features, j, self.low, self.high).double()
        span = float(scaling.span[j]) if np.isfinite(scaling.span[j]) else 0.0
        return float(scaling.low[j]) + slab.features[j, self.low : self.high].double() * span

    def _number(self, j: int) -> torch.Tensor:
        """Return a column without the errors of a scaling that was undone."""
        column = self._column(j)
        largest = float(column.abs().max()) if self.slab.bent is None else 0.0
        if not 1e-99 < largest < 1e99:
            return column
        return column.round(decimals=DIGITS - 1 - floor(log10(largest)))


def _points(lookup: Lookup, numbers: torch.Tensor) -> torch.Tensor:
    """Return the points of numbers, as ``Lookup.values`` does."""
    if not lookup.slopes:
        points = torch.full_like(numbers, float(lookup.points[0]))
        for edge, rise in zip(lookup.edges, np.diff(lookup.points).tolist(), strict=True):
            points += (numbers >= edge) * float(rise)
        return points
    points = float(lookup.slopes[0]) * numbers
    for change, knot in zip(np.diff(lookup.slopes).tolist(), lookup.knots, strict=True):
        if change:
            points += change * torch.clamp(numbers - knot, min=0.0)
    return points / lookup.unit


def _leaves(walk: Walk, columns: _Columns) -> torch.Tensor:
    """Return the leaf of each row of a run."""
    n_branches, n_rows = len(walk.thresholds), columns.high - columns.low
    nodes = torch.zeros(n_rows, dtype=torch.int64, device=columns.slab.features.device)
    for t in range(n_branches):
        total = torch.zeros(n_rows, dtype=torch.float64, device=nodes.device)
        size = torch.full_like(total, abs(float(walk.thresholds[t])))
        for j in np.flatnonzero(walk.coefficients[t]).tolist():
            term = float(walk.coefficients[t, j]) * columns.feature(j)
            total += term
            size += term.abs()
        above = total - float(walk.thresholds[t])
        holds = (above if walk.upwards[t] else -above) > TIE * size
        nodes = torch.where(nodes == t, 2 * t + 2 - holds.long(), nodes)
    return nodes - n_branches
