"""The smooth log-loss of many trees at once, each over its own rows.

All parameters of a tree lie in one line, in the order of solvers/elimination/objective.py: splits
(n_branches, n_features + 1), intercept last, then the log-odds of the leaves (n_classes, n_leaves).
Features have mean 0 and deviation 1 in each table, without which plain steps are short: a weight of
a tree is w_jt = r_j u_jt. With c the distributions of the leaves and T the derivative of the
log-loss by them,

    f = - sum_i weight_i log sum_l P_il c_{y_i l} - sum_kl pseudo_k log c_kl + ridge / 2 sum w_jt^2
    d f / d v_kl = c_kl (T_kl - sum_k' c_k'l T_k'l + sum pseudo) - pseudo_k
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from softsplit.engines.outer import LOGARITHM
from softsplit.on_torch.pieces import Pieces, Trees
from softsplit.on_torch.sums import batch_sums
from softsplit.on_torch.tensor_pass import tensor_sums


@dataclass(frozen=True)
class Batch:
    """What the functions of some trees are made of.

    Attributes
    ----------
    pieces : Pieces
        The rows of all folds.
    tables : int32 tensor (n_trees,)
        The fold of each tree.
    n_branches : int
    pseudo : tensor (n_trees, n_classes)
        Pseudo-rows of every leaf.
    ridge : tensor (n_trees, n_features)
        In the units of the features: that of the problem times r_j^2.
    """

    pieces: Pieces
    tables: torch.Tensor
    n_branches: int
    pseudo: torch.Tensor
    ridge: torch.Tensor

    def of(self, trees: torch.Tensor) -> Batch:
        """Some of the trees, by their numbers."""
        return replace(
            self, tables=self.tables[trees], pseudo=self.pseudo[trees], ridge=self.ridge[trees]
        )

    def splits(self, x: torch.Tensor) -> torch.Tensor:
        """Their splits, (n_trees, n_branches, n_features + 1); a view."""
        wide = self.pieces.n_features + 1
        return x[:, : self.n_branches * wide].view(-1, self.n_branches, wide)

    def weights(self, x: torch.Tensor) -> torch.Tensor:
        """Their weights, (n_trees, n_branches, n_features); a view."""
        return self.splits(x)[:, :, :-1]

    def log_odds(self, x: torch.Tensor) -> torch.Tensor:
        """Those of their leaves, (n_trees, n_classes, n_leaves); a view."""
        end = self.n_branches * (self.pieces.n_features + 1)
        return x[:, end:].view(-1, self.pieces.n_classes, self.n_branches + 1)

    def value_and_gradient(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """f in double precision, (n_trees,), and its derivative in that of ``x``."""
        splits, odds = self.splits(x), self.log_odds(x)
        logs = torch.log_softmax(odds, dim=1)
        leaves, pseudo = logs.exp(), self.pseudo[:, :, None]
        found = batch_sums(
            self.pieces, Trees(splits, leaves, self.tables, self.tables), LOGARITHM, mass=False
        )
        ridge = self.ridge.to(x.dtype)[:, None]
        by_leaves = found.table.to(x.dtype)
        mean = (leaves * by_leaves).sum(dim=1, keepdim=True)
        count = pseudo.sum(dim=1, keepdim=True)
        gradient = torch.empty_like(x)
        by_split = self.splits(gradient)
        by_split.copy_(found.splits)
        by_split[:, :, :-1] += ridge * splits[:, :, :-1]
        self.log_odds(gradient).copy_(leaves * (by_leaves - mean + count) - pseudo)
        return found.value + self._terms(x, logs), gradient

    def _terms(self, x: torch.Tensor, logs: torch.Tensor) -> torch.Tensor:
        """Prior and ridge."""
        prior = -(self.pseudo[:, :, None] * logs).sum(dim=(1, 2), dtype=torch.float64)
        squares = (self.weights(x) ** 2).sum(dim=1, dtype=torch.float64)
        return prior + 0.5 * (self.ridge * squares).sum(dim=1)

    def exact_value(self, x: torch.Tensor, pieces: Pieces) -> torch.Tensor:
        """f with rows in double precision, ``pieces``."""
        x = x.to(torch.float64)
        logs = torch.log_softmax(self.log_odds(x), dim=1)
        trees = Trees(self.splits(x), logs.exp(), self.tables, self.tables)
        return tensor_sums(pieces, trees, LOGARITHM).value + self._terms(x, logs)
