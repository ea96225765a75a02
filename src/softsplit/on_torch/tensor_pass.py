"""The pass of many trees over their rows, in plain tensor code: any device, any precision.

With the splits, leaves and rows of pieces.py, for all trees of a table at once and the rows of one
class at a time,

    V[leaf] = W[class, leaf],   V[node] = p V[left] + (1 - p) V[right]             upwards
    reach                                                                          downwards
    d f(V) / d s[node] = f'(V) reach[node] p (1 - p) (V[left] - V[right])

as in engines/tree_pass.py.
"""

from __future__ import annotations

import torch

from softsplit.engines.outer import LOGARITHM, SQUARE, TINY_PROBABILITY
from softsplit.on_torch.pieces import BatchSums, Pieces, Trees

CELLS = 2**24
"""Rows x trees x nodes that are held at once."""


def tensor_sums(pieces: Pieces, trees: Trees, outer: int) -> BatchSums:
    """The sums of every tree over its rows."""
    found = class_sums(pieces, trees, outer)
    return found._replace(splits=found.splits.sum(dim=1))


def class_sums(pieces: Pieces, trees: Trees, outer: int) -> BatchSums:
    """The same with splits by classes, (n_trees, n_groups, n_branches, n_features + 1)."""
    n_trees, n_branches, wide = trees.splits.shape
    shape = (n_trees, pieces.n_groups, n_branches + 1)
    device = pieces.features.device
    made = BatchSums(
        torch.zeros(n_trees, dtype=torch.float64, device=device),
        torch.zeros((*shape[:2], n_branches, wide), dtype=torch.float64, device=device),
        torch.zeros(shape, dtype=torch.float64, device=device),
        torch.zeros(shape, dtype=torch.float64, device=device),
    )
    for number in range(pieces.features.shape[0]):
        members = torch.nonzero(trees.tables == number).flatten() if n_trees > 1 else None
        if members is not None and not len(members):
            continue
        chosen = trees if members is None else Trees(*(part[members] for part in trees))
        sums = _over_table(pieces, number, chosen, outer)
        for whole, part in zip(made, sums, strict=True):
            if members is None:
                whole += part
            else:
                whole.index_copy_(0, members, part)
    return made


def _over_table(pieces: Pieces, number: int, trees: Trees, outer: int) -> BatchSums:
    features = pieces.features[number]
    n_trees, n_branches, wide = trees.splits.shape
    dtype = features.dtype
    value = torch.zeros(n_trees, dtype=torch.float64, device=features.device)
    shape = (n_trees, pieces.n_groups, n_branches, wide)
    by_split = torch.zeros(shape, dtype=torch.float64, device=features.device)
    mass = torch.zeros_like(trees.leaves, dtype=torch.float64)
    table = torch.zeros_like(mass)
    flat = trees.splits.to(dtype).reshape(-1, wide)
    at_once = max(1024, CELLS // (n_trees * (2 * n_branches + 1)))
    for group, low, high in pieces.runs:
        leaves = trees.leaves[:, group].to(dtype)  # (n_trees, n_leaves)
        for begin in range(low, high, at_once):
            rows = slice(begin, min(begin + at_once, high))
            x = features[:, rows]
            weights = pieces.weights[:, rows][trees.weightings.long()]
            scores = torch.addmm(flat[:, -1:], flat[:, :-1], x).view(n_trees, n_branches, -1)
            total, slopes, leaf_mass, leaf_table = _nodes(scores, leaves, weights, outer)
            value += total
            flat_slopes = slopes.reshape(n_trees * n_branches, -1)
            products = (flat_slopes @ x.T).view(n_trees, n_branches, -1)
            by_split[:, group, :, :-1] += products
            by_split[:, group, :, -1] += slopes.sum(dim=2, dtype=torch.float64)
            mass[:, group] += leaf_mass
            table[:, group] += leaf_table
    return BatchSums(value, by_split, mass, table)


def _nodes(
    scores: torch.Tensor, leaves: torch.Tensor, weights: torch.Tensor, outer: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Value, slopes by score, mass and table from scores (n_trees, n_branches, n_rows)."""
    n_branches = scores.shape[1]
    left, right = torch.sigmoid(scores), torch.sigmoid(-scores)
    values: dict[int, torch.Tensor] = {
        n_branches + leaf: leaves[:, leaf, None] for leaf in range(n_branches + 1)
    }
    for t in range(n_branches - 1, -1, -1):
        values[t] = left[:, t] * values[2 * t + 1] + right[:, t] * values[2 * t + 2]
    terms, slope = _outer(outer, values[0])
    reach = {0: weights.expand(values[0].shape)}
    slopes = torch.empty_like(scores)
    for t in range(n_branches):
        reach[2 * t + 1], reach[2 * t + 2] = reach[t] * left[:, t], reach[t] * right[:, t]
        gain = values[2 * t + 1] - values[2 * t + 2]
        slopes[:, t] = reach[2 * t + 1] * right[:, t] * gain * slope
    arriving = torch.stack([reach[n_branches + leaf] for leaf in range(n_branches + 1)], dim=1)
    return (
        (terms * weights).sum(dim=1, dtype=torch.float64),
        slopes,
        arriving.sum(dim=2, dtype=torch.float64),
        (arriving * slope[:, None]).sum(dim=2, dtype=torch.float64),
    )


def _outer(outer: int, mixed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """f(V) and f'(V) of engines/outer.py."""
    if outer == LOGARITHM:
        tiny = TINY_PROBABILITY if mixed.dtype == torch.float64 else 1e-37
        held = mixed.clamp(min=tiny)
        return -held.log(), -1.0 / held
    if outer == SQUARE:
        return mixed * mixed, 2.0 * mixed
    return mixed, torch.ones_like(mixed)
