"""What a tree costs on the training rows, with its gradient.

    expected cost  E = sum_i weight_i sum_l P_il sum_k cost[y_i, k] c_kl
    log-loss       E = - sum_i weight_i log( sum_l P_il c_{y_i l} )
    class rates    E = sum_i weight_i / total_{y_i} sum_l P_il c_{y_i l}

All hand the compiled pass a table ``W[class, leaf]``: ``cost @ c``, ``c`` or ``c / total``. With
D[t, i] = dE / dz_ti from the pass, and M its leaf masses,

    dE / d weights    = features @ D' / n_features        (n_features, n_branches)
    dE / d thresholds = - sum_i D[:, i]                   (n_branches,)
    dE / d c          = cost' @ M, M or M / total         (n_classes, n_leaves)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from softsplit.support.arrays import FloatArray


class Loss(Protocol):
    """What the pass needs to know of a loss."""

    @property
    def logarithmic(self) -> bool:
        """Whether a sample counts -log of its table value instead of the value."""

    def table(self, leaf_classes: FloatArray) -> FloatArray:
        """W[class, leaf] for the given leaf assignment."""

    def leaf_gradient(self, mass: FloatArray) -> FloatArray:
        """dE / d leaf_classes from the leaf masses."""


@dataclass(frozen=True)
class ExpectedCost:
    """Expected misclassification cost; ``costs[y, k]`` is the cost of calling class y k."""

    costs: FloatArray
    logarithmic: bool = False

    @classmethod
    def uniform(cls, n_classes: int, cost: float = 0.5) -> ExpectedCost:
        """The paper's costs: the same for every error, nothing when right."""
        return cls(cost * (1.0 - np.eye(n_classes)))

    def weighted(self, class_weights: FloatArray) -> ExpectedCost:
        """Each class's costs multiplied by its weight."""
        return ExpectedCost(self.costs * class_weights[:, None])

    def table(self, leaf_classes: FloatArray) -> FloatArray:
        return self.costs @ leaf_classes

    def leaf_gradient(self, mass: FloatArray) -> FloatArray:
        return self.costs.T @ mass


@dataclass(frozen=True)
class LogLoss:
    """Negative log-likelihood of the true classes: smooth far from the solution."""

    logarithmic: bool = True

    def table(self, leaf_classes: FloatArray) -> FloatArray:
        return np.array(leaf_classes)

    def leaf_gradient(self, mass: FloatArray) -> FloatArray:
        return mass


@dataclass(frozen=True)
class ClassRates:
    """Sum of the expected shares that are classified correctly; of one class, if only its rows
    are evaluated."""

    class_totals: FloatArray
    logarithmic: bool = False

    def table(self, leaf_classes: FloatArray) -> FloatArray:
        return leaf_classes / self.class_totals[:, None]

    def leaf_gradient(self, mass: FloatArray) -> FloatArray:
        return mass / self.class_totals[:, None]
