"""Faces of the penalties for many trees at once: solvers/active_set/faces.py in tensors.

For the weights a_t of one feature with slopes g_t of the smooth part, local slopes s_t and the
slope S of the global penalty, the minimum-norm subgradient is

    a_t != 0, below the maximum   g_t + s_t sign(a_t)
    a_t == 0                      g_t shrunk towards zero by s_t
    at the maximum                S is shared so that the norm is least: entries below the water
                                  level move with it and stay tied
    all of them zero              zero if sum_t |shrunk g_t| <= S, else shared likewise

Shapes are (n_trees, n_branches, n_features + 1), threshold last; a feature is a line along dim 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from softsplit.on_torch.lockstep.penalty import BatchPenalty


@dataclass(frozen=True)
class FaceOptions:
    """Tolerances of faces in lockstep."""

    near: float = 1e-6
    """Weights this close to zero, or to the maximum of their feature relative to it, are on it."""

    bound: float = 1.0
    """Half the width of the box."""


OPTIONS = FaceOptions()


@dataclass(frozen=True)
class Faces:
    """Where the trees lie on their penalties.

    Attributes
    ----------
    slope : tensor
        Minimum-norm subgradient.
    fixed, tied : bool tensor
        Entries that stay, and those that move together with others of their feature.
    outward : tensor
        Sign of the side of zero on which an entry lies, or to which descent leads from zero.
    """

    slope: torch.Tensor
    fixed: torch.Tensor
    tied: torch.Tensor
    outward: torch.Tensor

    @classmethod
    def at(cls, theta: torch.Tensor, gradient: torch.Tensor, penalty: BatchPenalty) -> Faces:
        """The faces of some points, with the derivative of the smooth part there."""
        weights, slopes = theta[..., :-1], gradient[..., :-1]
        each, whole = penalty.slopes(weights)
        there = weights != 0
        shrunk = torch.copysign((slopes.abs() - each).clamp(min=0.0), slopes)
        slopes = torch.where(there, slopes + torch.copysign(each, weights), shrunk)
        fixed = ~there & (shrunk == 0) & (each > 0)
        slopes, tied, stays = _shared(weights, slopes, whole)
        fixed = (fixed & ~tied) | stays
        slope = torch.cat([slopes, gradient[..., -1:]], dim=-1)
        no = torch.zeros_like(tied[..., :1])
        leaving = ((theta >= OPTIONS.bound) & (slope < 0)) | (
            (theta <= -OPTIONS.bound) & (slope > 0)
        )
        fixed = torch.cat([fixed, no], dim=-1) | leaving
        tied = torch.cat([tied, no], dim=-1) & ~leaving
        outward = torch.where(theta != 0, theta.sign(), -torch.copysign(_one(slope), slope))
        return cls(slope.masked_fill(leaving, 0.0), fixed, tied, outward)

    def project(self, vector: torch.Tensor) -> torch.Tensor:
        """On the faces: fixed entries become zero, tied ones their mean."""
        kept = vector.masked_fill(self.fixed, 0.0)
        count = self.tied.sum(dim=1, keepdim=True).clamp(min=1)
        mean = (kept * self.outward * self.tied).sum(dim=1, keepdim=True) / count
        return torch.where(self.tied, self.outward * mean, kept)

    def trial(self, theta: torch.Tensor, move: torch.Tensor, penalty: BatchPenalty) -> torch.Tensor:
        """theta + move, clipped to the side of zero, to the new maximum of its feature, and to the
        box, so that zeros and ties are exact."""
        moved = theta + move
        kinked = self.tied | (penalty.local > 0)[:, None, None]
        kinked[..., -1] = False
        moved = moved.masked_fill(kinked & (moved * self.outward < 0), 0.0).clamp(
            -OPTIONS.bound, OPTIONS.bound
        )
        sizes, tied = moved.abs(), self.tied
        top = sizes.masked_fill(~tied, -1.0).amax(dim=1, keepdim=True)
        cap = torch.where(top < 0, torch.full_like(top, OPTIONS.bound), top)
        sizes = torch.where(tied, cap, torch.where(self.fixed, sizes, torch.minimum(sizes, cap)))
        weights = _snapped(sizes[..., :-1], penalty)
        return torch.copysign(torch.cat([weights, sizes[..., -1:]], dim=-1), moved)


def _one(like: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(like)


def _shared(
    weights: torch.Tensor, slopes: torch.Tensor, whole: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Slopes with that of the maxima shared out, which entries are tied, and which stay at zero."""
    sizes, total = weights.abs(), whole[:, None]
    top = sizes.amax(dim=1, keepdim=True)
    used, paid = top > 0, total > 0
    at_top = sizes >= top * (1.0 - OPTIONS.near)
    sign = torch.where(used, weights.sign(), -torch.copysign(_one(slopes), slopes))
    values = torch.where(at_top, sign * slopes, torch.full_like(slopes, torch.inf))
    level = _water_level(values, total)
    tied = paid & at_top & (values < level) & (used | (level < 0))
    stays = (paid & ~used & (level >= 0)).expand_as(sizes)
    slopes = torch.where(tied, sign * level, slopes).masked_fill(stays, 0.0)
    return slopes, tied, stays


def _water_level(values: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    """The level x with sum_t max(x - values_t, 0) = total, (n_trees, 1, n_features)."""
    ordered = values.sort(dim=1).values
    counts = torch.arange(1, values.shape[1] + 1, device=values.device, dtype=values.dtype)
    levels = (ordered.cumsum(dim=1) + total) / counts[None, :, None]
    return levels.amin(dim=1, keepdim=True)


def _snapped(sizes: torch.Tensor, penalty: BatchPenalty) -> torch.Tensor:
    """Sizes of weights with those near zero, or near the largest of their feature, put there."""
    local, global_ = ((one > 0)[:, None, None] for one in (penalty.local, penalty.global_))
    top = sizes.amax(dim=1, keepdim=True)
    nothing = (sizes < OPTIONS.near) & (local | (global_ & (top < OPTIONS.near)))
    largest = global_ & (sizes > top * (1.0 - OPTIONS.near))
    return torch.where(largest, top, sizes).masked_fill(nothing, 0.0)
