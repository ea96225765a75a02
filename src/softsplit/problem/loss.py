"""Losses: a table of group and leaf, and an outer function of the mixed value of a row.

    expected cost  E = sum_i weight_i sum_l P_il sum_k cost[y_i, k] c_kl
    log-loss       E = - sum_i weight_i log( sum_l P_il c_{y_i l} )

A loss gives an engine a table ``W[group, leaf]`` and the number of an outer function f
(engines/outer.py); the engine sums weight_i f(V_i) with V_i = sum_l P_il W[y_i, l]:

    expected cost  W = cost @ c,   f = identity
    log-loss       W = c,          f = -log

With T = dE / dW, shape (n_groups, n_leaves), which the engine returns,

    dE / dc        = cost' @ T   (expected cost),   T   (log-loss)

A loss also has a leaf rule (leaves.py), the unit of tolerances, and the loss of a tree without
features, which is the unit of strengths.
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
"""Required members of a leaf rule."""


@dataclass(frozen=True)
class Evaluation:
    """A value and its gradient; ``mass[k, l]`` is the weight of group k that reaches leaf l."""

    value: float
    weights: FloatArray
    thresholds: FloatArray
    leaf_values: FloatArray
    mass: FloatArray


class Loss(Protocol):
    """The interface of losses."""

    @property
    def outer(self) -> int:
        """Number of the outer function."""

    @property
    def leaf_rule(self) -> LeafRule:
        """The feasible leaves and the optimal ones for a routing."""

    @property
    def unit(self) -> float:
        """The loss of a typical error, relative to 0.5: the unit of tolerances."""

    def table(self, leaf_values: FloatArray) -> FloatArray:
        """Return W[group, leaf] for the given leaves."""

    def leaf_gradient(self, by_table: FloatArray) -> FloatArray:
        """Return dE / d leaf_values from dE / d table."""

    def featureless(self, group_totals: FloatArray) -> float:
        """Return the loss of the best tree that uses no feature."""

    def prediction_costs(self, n_groups: int) -> FloatArray:
        """Return the approximate cost of predicting k for class y, shape (n_groups, n_groups)."""


def check_loss(loss: Loss, n_groups: int, n_leaves: int) -> None:
    """Check the members of a loss and their shapes, on which compiled code relies.

    Raises
    ------
    ValueError
        If a member is absent or has a wrong shape; the message names it.
    """
    leaves = np.full((n_groups, n_leaves), 1.0 / n_groups)
    square, wide = (n_groups, n_groups), (n_groups, n_leaves)
    if loss.outer not in OUTERS:
        _refuse(loss, "outer", f"one of the numbers {OUTERS} of softsplit.engines.outer")
    lacking = [name for name in RULE_PARTS if not hasattr(loss.leaf_rule, name)]
    if lacking:
        _refuse(loss, "leaf_rule", f"an object with {', '.join(lacking)}")
    parts = {
        "table": (lambda: loss.table(leaves), wide),
        "leaf_gradient": (lambda: loss.leaf_gradient(np.ones(wide)), wide),
        "prediction_costs": (lambda: loss.prediction_costs(n_groups), square),
        "featureless": (lambda: loss.featureless(np.ones(n_groups)), ()),
        "unit": (lambda: loss.unit, ()),
    }
    for name, (ask, shape) in parts.items():
        try:
            value = np.asarray(ask(), dtype=float)
        except (TypeError, ValueError, AttributeError, IndexError):
            value = np.zeros((0, 0, 0))
        if value.shape != shape or not np.all(np.isfinite(value)):
            kind = f"finite numbers of shape {shape}" if shape else "a finite number"
            _refuse(loss, name, kind)
    if not float(loss.unit) > 0:
        _refuse(loss, "unit", "a positive number")


def _refuse(loss: Loss, part: str, wanted: str) -> None:
    raise ValueError(f"the {part} of the loss {type(loss).__name__} must be {wanted}.")


@dataclass(frozen=True)
class ExpectedCost:
    """Expected misclassification cost; ``costs[y, k]`` is the cost of predicting k for class y."""

    costs: FloatArray
    outer: int = IDENTITY
    leaf_rule: LeafRule = ASSIGNMENT

    @classmethod
    def uniform(cls, n_groups: int, cost: float = 0.5) -> ExpectedCost:
        """Return the costs of the paper: the same for every error, 0 on the diagonal."""
        return cls(cost * (1.0 - np.eye(n_groups)))

    def weighted(self, factors: FloatArray) -> ExpectedCost:
        """Return the loss with the costs of each true class multiplied by its factor."""
        return ExpectedCost(self.costs * factors[:, None])

    @property
    def unit(self) -> float:
        return float(np.max(self.costs)) / 0.5

    def table(self, leaf_values: FloatArray) -> FloatArray:
        return self.costs @ leaf_values

    def leaf_gradient(self, by_table: FloatArray) -> FloatArray:
        return self.costs.T @ by_table

    def prediction_costs(self, n_groups: int) -> FloatArray:
        return self.costs

    def featureless(self, group_totals: FloatArray) -> float:
        """Return the cost of predicting the cheapest class for all rows.

        If it is zero, that of the most expensive class: strengths need a positive unit.
        """
        costs = group_totals @ self.costs
        return float(np.min(costs)) or float(np.max(costs)) or 1.0


@dataclass(frozen=True)
class LogLoss:
    """Negative log-likelihood of the true classes, with a class distribution in every leaf."""

    outer: int = LOGARITHM
    leaf_rule: ClassDistributions | CountedDistributions = DISTRIBUTIONS
    unit: float = 1.0

    @classmethod
    def counted(cls, group_totals: FloatArray, count: float = 1.0) -> LogLoss:
        """Return the loss with ``count`` pseudo-rows in every leaf, in the class proportions."""
        return cls(leaf_rule=CountedDistributions(count * group_totals / group_totals.sum()))

    def table(self, leaf_values: FloatArray) -> FloatArray:
        return np.array(leaf_values)

    def leaf_gradient(self, by_table: FloatArray) -> FloatArray:
        return by_table

    def prediction_costs(self, n_groups: int) -> FloatArray:
        return 1.0 - np.eye(n_groups)

    def featureless(self, group_totals: FloatArray) -> float:
        """Return the entropy of the class shares times the total weight."""
        return float(-np.sum(group_totals * np.log(group_totals / group_totals.sum())))
