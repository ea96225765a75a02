"""The pass of a tree over its rows, in plain tensor code: any device, any precision.

With the splits, leaves and rows of pieces.py, for the rows of one group at a time,

    V[leaf] = W[group, leaf],   V[node] = p V[left] + (1 - p) V[right]             upwards
    reach                                                                          downwards
    d f(V) / d s[node] = f'(V) reach[node] p (1 - p) (V[left] - V[right])

as in engines/tree_pass.py.
"""

from __future__ import annotations

from typing import Any

import torch

from softsplit.engines.outer import IDENTITY, LOGARITHM, SQUARE, TINY_PROBABILITY, outer_values
from softsplit.on_torch.pieces import DeviceSums, DeviceTree, Pieces

CELLS = 2**24
"""Rows x nodes that are held at once."""


OUTERS_ON_DEVICE = (IDENTITY, LOGARITHM, SQUARE)
"""Outer functions with formulas of their own here and in fused_pass.py."""


def tensor_sums(pieces: Pieces, tree: DeviceTree, outer: int) -> DeviceSums:
    """The sums of a tree over its rows."""
    n_branches = len(tree.splits)
    splits = tree.splits.to(pieces.features.dtype)
    double: dict[str, Any] = {"dtype": torch.float64, "device": pieces.features.device}
    value = torch.zeros((), **double)
    by_split = torch.zeros((pieces.n_groups, *splits.shape), **double)
    mass, table = torch.zeros((2, *tree.leaves.shape), **double)
    at_once = max(1024, CELLS // (2 * n_branches + 1))
    for group, low, high in pieces.runs:
        leaves = tree.leaves[group].to(splits.dtype)  # (n_leaves,)
        for begin in range(low, high, at_once):
            rows = slice(begin, min(begin + at_once, high))
            x = pieces.lines(rows.start, rows.stop)
            scores = torch.addmm(splits[:, -1:], splits[:, :-1], x)
            total, slopes, leaf_mass, leaf_table = _nodes(
                scores, leaves, pieces.weights[rows], outer
            )
            value += total
            by_split[group, :, :-1] += slopes @ x.T
            by_split[group, :, -1] += slopes.sum(dim=1, dtype=torch.float64)
            mass[group] += leaf_mass
            table[group] += leaf_table
    return DeviceSums(value, by_split.sum(dim=0), mass, table)


def _nodes(
    scores: torch.Tensor, leaves: torch.Tensor, weights: torch.Tensor, outer: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Value, slopes by score, mass and table from scores (n_branches, n_rows)."""
    n_branches = len(scores)
    left, right = torch.sigmoid(scores), torch.sigmoid(-scores)
    # 1. Upwards: V of every node.
    values: dict[int, torch.Tensor] = {
        n_branches + leaf: leaves[leaf] for leaf in range(n_branches + 1)
    }
    for t in range(n_branches - 1, -1, -1):
        values[t] = left[t] * values[2 * t + 1] + right[t] * values[2 * t + 2]
    # 2. At the root: f and f'.
    terms, slope = _outer(outer, values[0])
    # 3. Downwards: reach and slopes.
    reach, slopes = {0: weights}, torch.empty_like(scores)
    for t in range(n_branches):
        reach[2 * t + 1], reach[2 * t + 2] = reach[t] * left[t], reach[t] * right[t]
        gain = values[2 * t + 1] - values[2 * t + 2]
        slopes[t] = reach[2 * t + 1] * right[t] * gain * slope
    arriving = torch.stack([reach[n_branches + leaf] for leaf in range(n_branches + 1)])
    return (
        (terms * weights).sum(dtype=torch.float64),
        slopes,
        arriving.sum(dim=1, dtype=torch.float64),
        (arriving * slope).sum(dim=1, dtype=torch.float64),
    )


def _outer(outer: int, mixed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """f(V) and f'(V) of engines/outer.py, of a function without formulas here by the host."""
    if outer == LOGARITHM:
        tiny = TINY_PROBABILITY if mixed.dtype == torch.float64 else 1e-37
        held = mixed.clamp(min=tiny)
        return -held.log(), -1.0 / held
    if outer == SQUARE:
        return mixed * mixed, 2.0 * mixed
    if outer == IDENTITY:
        return mixed, torch.ones_like(mixed)
    values, slopes = outer_values(outer, mixed.double().cpu().numpy())
    return torch.from_numpy(values).to(mixed), torch.from_numpy(slopes).to(mixed)
