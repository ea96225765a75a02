"""Penalties of many trees at once, and the step towards them.

For weights (n_trees, n_branches, n_features) in units r_j of the features, a_jt = r_j u_jt, and one
pair of strengths a tree,

    g(u) = local sum_jt phi(|a_jt|) + global sum_j phi(max_t |a_jt|)

A concave phi lies below its tangents: at a point b

    g(a) <= g(b) + sum_jt local phi'(|b_jt|) (|a_jt| - |b_jt|) + the same of the maxima

and the prox of the right side, weighted l1 plus weighted l-infinity, is a soft threshold and then a
cap on every feature (problem/penalties.py). For the linear phi it is that of g itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from softsplit.problem.penalties import (
    EXPONENTIAL,
    INVERSE_POWER,
    LINEAR,
    LOG,
    POWER,
    Surrogate,
)
from softsplit.problem.problem import TrainingProblem

KNOWN_KINDS = frozenset((LINEAR, EXPONENTIAL, POWER, INVERSE_POWER, LOG))
"""Surrogates whose formulas are repeated here for tensors; ``supports`` refuses others."""


@dataclass(frozen=True)
class BatchPenalty:
    """One surrogate with the strengths of every tree.

    Attributes
    ----------
    surrogate : Surrogate
    local, global_ : tensor (n_trees,)
    units : tensor (n_trees, n_features)
        r of the rows of each tree.
    """

    surrogate: Surrogate
    local: torch.Tensor
    global_: torch.Tensor
    units: torch.Tensor

    def of(self, trees: torch.Tensor) -> BatchPenalty:
        """The strengths of some trees, by their numbers."""
        return BatchPenalty(
            self.surrogate, self.local[trees], self.global_[trees], self.units[trees]
        )

    def exact(self) -> BatchPenalty:
        """The same in double precision."""
        return replace(self, units=self.units.to(torch.float64))

    def value(self, weights: torch.Tensor) -> torch.Tensor:
        """g, (n_trees,), in double precision."""
        sizes = weights.abs() * self.units[:, None]
        each = self._phi(sizes).sum(dim=(1, 2), dtype=torch.float64)
        tops = self._phi(sizes.amax(dim=1)).sum(dim=1, dtype=torch.float64)
        return self.local * each + self.global_ * tops

    def slopes(self, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """local phi'(|u_jt|), of the shape of the weights, and global phi'(max_t |u_jt|).

        For weights in units of 1.
        """
        sizes, dtype = weights.abs(), weights.dtype
        each = self.local.to(dtype)[:, None, None] * self._slope(sizes)
        return each, self.global_.to(dtype)[:, None] * self._slope(sizes.amax(dim=1))

    def prox(self, moved: torch.Tensor, at: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """Prox at ``moved`` of ``step`` (n_trees,) times the penalty that touches g at ``at``."""
        sizes = at.abs() * self.units[:, None]
        local = (step * self.local).to(moved.dtype)[:, None, None] * self.units[:, None]
        global_ = (step * self.global_).to(moved.dtype)[:, None] * self.units
        soft = (moved.abs() - local * self._slope(sizes)).clamp(min=0.0)
        total = global_ * self._slope(sizes.amax(dim=1))
        cap = _cap(soft, total)
        return torch.copysign(torch.minimum(soft, cap[:, None]), moved)

    def _phi(self, u: torch.Tensor) -> torch.Tensor:
        kind, first, second = self.surrogate.kind, self.surrogate.first, self.surrogate.second
        if kind == EXPONENTIAL:
            return -torch.expm1(-first * u)
        if kind == POWER:
            return (u + second) ** first
        if kind == INVERSE_POWER:
            return -((u + second) ** -first)
        return torch.log(u + second) if kind == LOG else u

    def _slope(self, u: torch.Tensor) -> torch.Tensor:
        kind, first, second = self.surrogate.kind, self.surrogate.first, self.surrogate.second
        if kind == EXPONENTIAL:
            return first * torch.exp(-first * u)
        if kind == POWER:
            return first * (u + second) ** (first - 1.0)
        if kind == INVERSE_POWER:
            return first * (u + second) ** (-first - 1.0)
        return 1.0 / (u + second) if kind == LOG else torch.ones_like(u)


def common_surrogate(problem: TrainingProblem) -> Surrogate:
    """That of both penalties of a problem, where one has no strength that of the other."""
    pair = problem.penalties
    return pair.local.surrogate if pair.local.strength > 0 else pair.global_.surrogate


def _cap(sizes: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    """Per feature the b >= 0 with sum_t (size_t - b)_+ = total, or 0 where they add up to less.

    The largest of the candidates is the one: those whose k largest entries are cut.
    """
    ordered = sizes.sort(dim=1, descending=True).values
    counts = torch.arange(1, sizes.shape[1] + 1, device=sizes.device, dtype=sizes.dtype)
    candidates = (ordered.cumsum(dim=1) - total[:, None]) / counts[None, :, None]
    return candidates.amax(dim=1).clamp(min=0.0)
