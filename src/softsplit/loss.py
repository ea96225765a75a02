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

from softsplit.routing import split_scores, tree_pass
from softsplit.samples import Samples
from softsplit.tree import FloatArray, TreeParameters

ROWS = 16_384
"""Rows evaluated at a time, so that a million of them need no array of scores."""


@dataclass(frozen=True)
class Evaluation:
    """A value with its gradient; ``mass[k, l]`` is the weight of class k that reaches leaf l."""

    value: float
    weights: FloatArray
    thresholds: FloatArray
    leaf_classes: FloatArray
    mass: FloatArray


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


def evaluate(
    loss: Loss,
    samples: Samples,
    parameters: TreeParameters,
    steepness: float,
    extra_table: FloatArray | None = None,
) -> Evaluation:
    """Loss and gradient in two matrix products with the features and one pass, ROWS at a time.

    ``extra_table`` (n_classes, n_leaves) is added to the loss's table; its own dependence on
    the leaf classes is not part of the leaf gradient returned here.
    """
    table = loss.table(parameters.leaf_classes)
    if extra_table is not None:
        table = table + extra_table
    table = np.ascontiguousarray(table)
    value, mass = 0.0, np.zeros_like(table)
    weights, thresholds = np.zeros_like(parameters.weights), np.zeros(len(parameters.thresholds))
    for begin in range(0, samples.n_rows, ROWS):
        rows = slice(begin, begin + ROWS)
        features = samples.features[:, rows]
        scores, part = split_scores(parameters, features), np.empty_like(table)
        value += tree_pass(
            scores,
            scores,
            np.clip(samples.starts - begin, 0, features.shape[1]),
            samples.weights[rows],
            table,
            float(steepness),
            loss.logarithmic,
            part,
        )
        mass += part
        weights += np.dot(features, scores.T) / samples.n_features
        thresholds -= np.sum(scores, axis=1)
    return Evaluation(float(value), weights, thresholds, loss.leaf_gradient(mass), mass)
