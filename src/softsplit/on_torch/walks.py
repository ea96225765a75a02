"""The walk of all rows on a device: the weight of each group that arrives in each leaf.

Sums are made as in fitted/walk.py, term by term in double precision. Columns that bend are read in
their own units, all others are restored from scaled lines.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from softsplit.fitted.walk import TIE, Walk
from softsplit.on_torch.pieces import Pieces
from softsplit.support.arrays import FloatArray
from softsplit.tree.scaling import LinearScaling

AT_ONCE = 2**22
"""Rows that walk together."""


def arriving(walk: Walk, scaling: LinearScaling, slabs: Iterable[Pieces]) -> FloatArray:
    """Return the counts of ``Walk.arriving``, (n_groups, n_leaves)."""
    counts: torch.Tensor | None = None
    for slab in slabs:
        if counts is None:
            shape = slab.n_groups, walk.counts.shape[1]
            counts = torch.zeros(shape, dtype=torch.float64, device=slab.features.device)
        for group, first, last in slab.runs:
            for low in range(first, last, AT_ONCE):
                high = min(low + AT_ONCE, last)
                leaves = _leaves(walk, scaling, slab, low, high)
                weights = slab.weights[low:high].to(torch.float64)
                counts[group] += torch.bincount(leaves, weights, counts.shape[1])
    assert counts is not None
    return np.asarray(counts.cpu().numpy())


def _leaves(walk: Walk, scaling: LinearScaling, slab: Pieces, low: int, high: int) -> torch.Tensor:
    """Return the leaf of each row of a run."""
    n_branches = len(walk.thresholds)
    nodes = torch.zeros(high - low, dtype=torch.int64, device=slab.features.device)
    for t in range(n_branches):
        total = torch.zeros(high - low, dtype=torch.float64, device=nodes.device)
        size = torch.full_like(total, abs(float(walk.thresholds[t])))
        for j in np.flatnonzero(walk.coefficients[t]).tolist():
            if slab.bent is None:
                span = float(scaling.span[j]) if np.isfinite(scaling.span[j]) else 0.0
                column = float(scaling.low[j]) + slab.features[j, low:high].double() * span
            else:
                column = slab.bent.column(slab.features, j, low, high).double()
            term = float(walk.coefficients[t, j]) * column
            total += term
            size += term.abs()
        above = total - float(walk.thresholds[t])
        holds = (above if walk.upwards[t] else -above) > TIE * size
        nodes = torch.where(nodes == t, 2 * t + 2 - holds.long(), nodes)
    return nodes - n_branches
