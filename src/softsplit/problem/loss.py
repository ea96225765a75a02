"""What a tree costs on the training rows: a table, and an outer function of a row's mixed value.

    expected cost  E = sum_i weight_i sum_l P_il sum_k cost[y_i, k] c_kl
    log-loss       E = - sum_i weight_i log( sum_l P_il c_{y_i l} )

Every loss hands an engine a table ``W[class, leaf]`` and the number of an outer function f
(engines/outer.py); the engine adds up weight_i f(V_i) with V_i = sum_l P_il W[y_i, l]:

    expected cost  W = cost @ c,   f = identity
    log-loss       W = c,          f = -log

With T the derivative of E by the table, which the engine returns (n_classes, n_leaves),

    dE / d c       = cost' @ T, or T

A loss also says which leaves suit it (leaves.py), in which unit residuals are measured, and what a
tree without features costs, which is the unit of strengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from softsplit.engines.outer import IDENTITY, LOGARITHM, OUTERS
from softsplit.problem.leaves import (
    ASSIGNMENT,
    DISTRIBUTIONS,
    ClassDistributions,
    CountedDistributions,
    LeafRule,
)
from softsplit.support.arrays import FloatArray

RULE_PARTS = ("exact", "check", "coverage", "without_features", "step", "gap")
"""What the leaf rule of a loss must have."""


@dataclass(frozen=True)
class Evaluation:
    """A value with its gradient; ``mass[k, l]`` is the weight of class k that reaches leaf l."""

    value: float
    weights: FloatArray
    thresholds: FloatArray
    leaf_classes: FloatArray
    mass: FloatArray


class Loss(Protocol):
    """What a problem needs to know of a loss."""

    @property
    def outer(self) -> int:
        """Number of the outer function."""

    @property
    def leaf_rule(self) -> LeafRule:
        """Which leaves are allowed, and the best ones for a routing."""

    @property
    def unit(self) -> float:
        """The loss of a typical bad answer, relative to 0.5: the unit of tolerances."""

    def table(self, leaf_classes: FloatArray) -> FloatArray:
        """W[class, leaf] for the given leaves."""

    def leaf_gradient(self, by_table: FloatArray) -> FloatArray:
        """dE / d leaf_classes from the derivative by the table."""

    def featureless(self, class_totals: FloatArray) -> float:
        """The loss of the best tree that uses no feature."""

    def call_costs(self, n_classes: int) -> FloatArray:
        """About what it costs to call class y k, (n_classes, n_classes)."""


def check_loss(loss: Loss, n_classes: int, n_leaves: int) -> None:
    """Refuse a loss whose parts do not fit together: compiled code trusts their shapes.

    Raises
    ------
    ValueError
        One sentence that names the part.
    """
    leaves = np.full((n_classes, n_leaves), 1.0 / n_classes)
    square, wide = (n_classes, n_classes), (n_classes, n_leaves)
    if loss.outer not in OUTERS:
        _refuse(loss, "outer", f"one of the numbers {OUTERS} of softsplit.engines.outer")
    lacking = [name for name in RULE_PARTS if not hasattr(loss.leaf_rule, name)]
    if lacking:
        _refuse(loss, "leaf_rule", f"an object with {', '.join(lacking)}")
    parts = {
        "table": (lambda: loss.table(leaves), wide),
        "leaf_gradient": (lambda: loss.leaf_gradient(np.ones(wide)), wide),
        "call_costs": (lambda: loss.call_costs(n_classes), square),
        "featureless": (lambda: loss.featureless(np.ones(n_classes)), ()),
        "unit": (lambda: loss.unit, ()),
    }
    for name, (ask, shape) in parts.items():
        try:
            found = np.asarray(ask(), dtype=float)
        except (TypeError, ValueError, AttributeError, IndexError):
            found = np.zeros((0, 0, 0))
        if found.shape != shape or not np.all(np.isfinite(found)):
            kind = f"finite numbers of shape {shape}" if shape else "a finite number"
            _refuse(loss, name, kind)
    if not float(loss.unit) > 0:
        _refuse(loss, "unit", "a positive number")


def _refuse(loss: Loss, part: str, wanted: str) -> None:
    raise ValueError(f"the {part} of the loss {type(loss).__name__} must be {wanted}.")


@dataclass(frozen=True)
class ExpectedCost:
    """Expected misclassification cost; ``costs[y, k]`` is the cost of calling class y k."""

    costs: FloatArray
    outer: int = IDENTITY
    leaf_rule: LeafRule = ASSIGNMENT

    @classmethod
    def uniform(cls, n_classes: int, cost: float = 0.5) -> ExpectedCost:
        """The paper's costs: the same for every error, nothing when right."""
        return cls(cost * (1.0 - np.eye(n_classes)))

    def weighted(self, class_weights: FloatArray) -> ExpectedCost:
        """Each class's costs multiplied by its weight."""
        return ExpectedCost(self.costs * class_weights[:, None])

    @property
    def unit(self) -> float:
        return float(np.max(self.costs)) / 0.5

    def table(self, leaf_classes: FloatArray) -> FloatArray:
        return self.costs @ leaf_classes

    def leaf_gradient(self, by_table: FloatArray) -> FloatArray:
        return self.costs.T @ by_table

    def call_costs(self, n_classes: int) -> FloatArray:
        return self.costs

    def featureless(self, class_totals: FloatArray) -> float:
        """Cost of calling all rows by the one class for which that is cheapest.

        Where that costs nothing, by the most expensive: strengths need a unit.
        """
        costs = class_totals @ self.costs
        return float(np.min(costs)) or float(np.max(costs)) or 1.0


@dataclass(frozen=True)
class LogLoss:
    """Negative log-likelihood of the true classes, with a class distribution in every leaf."""

    outer: int = LOGARITHM
    leaf_rule: ClassDistributions | CountedDistributions = DISTRIBUTIONS
    unit: float = 1.0

    @classmethod
    def counted(cls, class_totals: FloatArray, count: float = 1.0) -> LogLoss:
        """With ``count`` pseudo-rows in every leaf, by the shares of the classes."""
        return cls(leaf_rule=CountedDistributions(count * class_totals / class_totals.sum()))

    def table(self, leaf_classes: FloatArray) -> FloatArray:
        return np.array(leaf_classes)

    def leaf_gradient(self, by_table: FloatArray) -> FloatArray:
        return by_table

    def call_costs(self, n_classes: int) -> FloatArray:
        return 1.0 - np.eye(n_classes)

    def featureless(self, class_totals: FloatArray) -> float:
        """The entropy of the classes, times their total weight."""
        return float(-np.sum(class_totals * np.log(class_totals / class_totals.sum())))
