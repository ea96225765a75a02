"""Sums over rows for many trees: by the fused kernel where it fits, else in tensor code."""

from __future__ import annotations

from functools import cache
from types import ModuleType

import torch

from softsplit.engines.outer import IDENTITY
from softsplit.on_torch.pieces import BatchSums, Parts, Pieces, Trees
from softsplit.on_torch.tensor_pass import class_sums, tensor_sums


@cache
def _kernel() -> ModuleType | None:
    """The module of the fused kernel; None where there is no Triton."""
    try:
        from softsplit.on_torch import fused_pass
    except ImportError:
        return None
    return fused_pass


def _kernel_for(pieces: Pieces, n_branches: int) -> ModuleType | None:
    kernel = _kernel() if pieces.features.is_cuda else None
    return kernel if kernel is not None and kernel.fits(pieces, n_branches) else None


def recordable(pieces: Pieces, n_branches: int) -> bool:
    """Whether passes of many trees can be recorded: tensor code must look which trees there are."""
    return _kernel_for(pieces, n_branches) is not None


def batch_sums(pieces: Pieces, trees: Trees, outer: int, *, mass: bool = True) -> BatchSums:
    """The sums of every tree over its rows; without ``mass`` that part is of no meaning."""
    kernel = _kernel_for(pieces, trees.n_branches)
    if kernel is not None:
        found: BatchSums = kernel.fused_sums(pieces, trees, outer, mass=mass)
        return found
    return tensor_sums(pieces, trees, outer)


def part_sums(pieces: Pieces, trees: Trees) -> Parts:
    """The sums of every tree over parts of its rows: pieces, or whole classes."""
    kernel = _kernel_for(pieces, trees.n_branches)
    if kernel is not None:
        parts: Parts = kernel.fused_parts(pieces, trees)
        return parts
    found = class_sums(pieces, trees, IDENTITY)
    classes = torch.arange(pieces.n_groups, device=pieces.features.device)
    return Parts(found.splits.to(trees.splits.dtype), classes, found.table)
