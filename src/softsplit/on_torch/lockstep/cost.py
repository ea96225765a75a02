"""The expected cost of many trees at once, each over its own rows, with its rate terms.

Splits theta (n_trees, n_branches, n_features + 1) are those of the problem, threshold last; leaves
c (n_trees, n_classes, n_leaves) have one class each. With M_kl the mass of class k in leaf l, which
a pass returns, everything but the derivative by the splits follows from M:

    E        = sum_kl (cost c)_kl M_kl
    right_k  = sum_l c_kl M_kl,    rate_k = right_k / n_k
    price_k  = max(0, m_k + weight (rho_k - rate_k)),    term_k = (price_k^2 - m_k^2) / (2 weight)

as in solvers/active_set/objective.py. Where every error of class k costs e_k, a unit less of
right_k is e_k more of E; so the rows of a class have the derivative of their cost times
1 + price_k / (n_k e_k), and one pass will do.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import torch

from softsplit.on_torch.pieces import Parts, Pieces, Trees
from softsplit.on_torch.sums import part_sums


class Rates(NamedTuple):
    """What the rate terms are made of, and the leaves; all for every tree."""

    leaves: torch.Tensor  # (n_trees, n_classes, n_leaves)
    multipliers: torch.Tensor  # (n_trees, n_classes), double
    weight: torch.Tensor  # (n_trees,), double

    def of(self, trees: torch.Tensor) -> Rates:
        """Those of some trees, by their numbers."""
        return Rates(*(part[trees] for part in self))


@dataclass(frozen=True)
class CostBatch:
    """What the functions of some trees are made of.

    Attributes
    ----------
    pieces : Pieces
        The rows of all folds.
    steepness : float
    tables : int32 tensor (n_trees,)
        The fold of each tree.
    costs : tensor (n_trees, n_classes, n_classes)
    minimum, totals : tensor (n_trees, n_classes)
        rho and n of every class, in double precision.
    """

    pieces: Pieces
    steepness: float
    tables: torch.Tensor
    costs: torch.Tensor
    minimum: torch.Tensor
    totals: torch.Tensor

    def of(self, trees: torch.Tensor) -> CostBatch:
        """Some of the trees, by their numbers."""
        names = [field.name for field in fields(self)][2:]
        return replace(self, **{name: getattr(self, name)[trees] for name in names})

    def table(self, leaves: torch.Tensor) -> torch.Tensor:
        """W, (n_trees, n_classes, n_leaves)."""
        return torch.matmul(self.costs, leaves)

    def passed(self, theta: torch.Tensor, leaves: torch.Tensor) -> Parts:
        """Sums over parts of the rows."""
        unit = self.steepness / self.pieces.n_features
        lines = torch.cat([unit * theta[..., :-1], -self.steepness * theta[..., -1:]], dim=-1)
        trees = Trees(lines, self.table(leaves), self.tables, self.tables)
        return part_sums(self.pieces, trees)

    def value_at(self, mass: torch.Tensor, rates: Rates) -> tuple[torch.Tensor, torch.Tensor]:
        """E with rate terms from the mass, (n_trees,), and prices (n_trees, n_classes)."""
        missing = self.minimum - self.rates(mass, rates.leaves)
        weight = rates.weight[:, None]
        prices = (rates.multipliers + weight * missing).clamp(min=0.0)
        terms = (prices**2 - rates.multipliers**2) / (2.0 * weight.clamp(min=1e-300))
        cost = (self.table(rates.leaves) * mass).sum(dim=(1, 2))
        return cost + terms.sum(dim=1), prices

    def value_and_gradient(
        self, theta: torch.Tensor, rates: Rates
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The smooth part in double precision, its derivative in that of theta, and the mass."""
        parts = self.passed(theta, rates.leaves)
        value, prices = self.value_at(parts.mass, rates)
        dear = self.costs.amax(dim=2).to(torch.float64).clamp(min=1e-300)
        factors = (1.0 + prices / (self.totals * dear)).to(theta.dtype)
        by_line = (parts.splits * factors[:, parts.classes, None, None]).sum(dim=1)
        unit = self.steepness / self.pieces.n_features
        gradient = torch.cat([unit * by_line[..., :-1], -self.steepness * by_line[..., -1:]], -1)
        return value, gradient, parts.mass

    def rates(self, mass: torch.Tensor, leaves: torch.Tensor) -> torch.Tensor:
        """The share of each class that is right, (n_trees, n_classes)."""
        return (leaves * mass).sum(dim=2) / self.totals
