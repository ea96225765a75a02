"""Sums over rows for many trees: by the fused kernel where it fits, else in tensor code."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from softsplit.engines.device.pieces import BatchSums, Pieces, Trees
from softsplit.engines.device.tensor_pass import tensor_sums


@cache
def _kernel() -> ModuleType | None:
    """The module of the fused kernel; None where there is no Triton."""
    try:
        from softsplit.engines.device import fused_pass
    except ImportError:
        return None
    return fused_pass


def batch_sums(pieces: Pieces, trees: Trees, outer: int, *, mass: bool = True) -> BatchSums:
    """The sums of every tree over its rows; without ``mass`` that part is of no meaning."""
    kernel = _kernel() if pieces.features.is_cuda else None
    if kernel is not None and kernel.fits(pieces, trees):
        found: BatchSums = kernel.fused_sums(pieces, trees, outer, mass=mass)
        return found
    return tensor_sums(pieces, trees, outer)
