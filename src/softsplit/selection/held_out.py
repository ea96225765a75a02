"""Held-out rows of a fold, and the value of a tree on each of them.

    value_i = [the most probable class is right] - loss_weight x min(-log p_i, largest_loss)

with p_i the probability of the true class. Accuracy is what most users look at; the log-loss is a
proper score, which tells trees apart that are right equally often, and it sees a tree that is sure
and wrong. ``largest_loss`` keeps one such sample from deciding alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.selection.scoreboard import Valued
from softsplit.solvers import Solution
from softsplit.support.arrays import FloatArray
from softsplit.training.preparation import Prepared, Rows
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import class_probabilities
from softsplit.tree.scaling import scaled_rows


@dataclass(frozen=True)
class RowValueOptions:
    """How accuracy and log-loss make up the value of a held-out row."""

    loss_weight: float = 0.3
    """Weight of the log-loss beside accuracy."""

    largest_loss: float = 10.0
    """No single row counts with a larger log-loss."""

    least_probability: float = 1e-15
    """Smaller probabilities count as this one."""


OPTIONS = RowValueOptions()


def valued_samples(shares: FloatArray, labels: NDArray[np.int64], weights: FloatArray) -> Valued:
    """Return the values of rows with class probabilities ``shares``, (n_classes, n_rows)."""
    probable = np.clip(shares[labels, np.arange(len(labels))], OPTIONS.least_probability, 1.0)
    losses = -np.log(probable)
    right = np.argmax(shares, axis=0) == labels
    mean = float(np.average(losses, weights=weights)) if np.any(weights) else float("nan")
    return Valued(
        right - OPTIONS.loss_weight * np.minimum(losses, OPTIONS.largest_loss), weights, mean
    )


Scorer = Callable[..., float]
MakeEstimator = Callable[[Prepared, Solution], Any]
"""A fitted estimator with a tree, for scorers, which know nothing else."""


@dataclass(frozen=True)
class Scoring:
    """How trees are scored: by accuracy, or by a scorer of scikit-learn's kind.

    With ``samplewise``, trees are compared by their values on single held-out rows.
    """

    scorer: Scorer | None = None
    estimator: MakeEstimator | None = None
    samplewise: bool = False


@dataclass(frozen=True)
class TestRows:
    """Held-out rows, scaled once: all trees of a path share one scaling."""

    prepared: Prepared
    rows: Rows
    scoring: Scoring
    scaled: FloatArray

    @classmethod
    def of(cls, prepared: Prepared, rows: Rows, scoring: Scoring) -> TestRows:
        return cls(prepared, rows, scoring, scaled_rows(prepared.scaling, rows.X).T)

    def judged(self, solution: Solution) -> tuple[float, Valued | None]:
        """Return the score of a tree and, if ``samplewise``, its value on each row."""
        scorer, estimator = self.scoring.scorer, self.scoring.estimator
        shares, score = self.shares(solution.parameters), 0.0
        if scorer is not None and estimator is not None:
            known = self.rows.weighted and takes_weights(scorer)
            weight = {"sample_weight": self.rows.weight} if known else {}
            fitted = estimator(self.prepared, solution)
            score = float(scorer(fitted, self.rows.X, self.rows.y, **weight))
        elif not np.any(self.rows.weight):
            raise ValueError("a test fold holds no sample of positive weight; use other folds.")
        else:
            right = np.argmax(shares, axis=0) == self.rows.labels
            score = float(right @ self.rows.weight / self.rows.weight.sum())
        if not self.scoring.samplewise:
            return score, None
        return score, valued_samples(shares, self.rows.labels, self.rows.weight)

    def shares(self, tree: TreeParameters) -> FloatArray:
        """Class probabilities of the rows, (n_classes, n_rows); 0 for classes not trained on."""
        steepness = self.prepared.problem.steepness
        found = class_probabilities(tree, self.scaled, steepness)
        if len(self.rows.classes) == len(self.prepared.classes):
            return found
        shares = np.zeros((len(self.rows.classes), found.shape[1]))
        shares[np.isin(self.rows.classes, self.prepared.classes)] = found
        return shares


def takes_weights(scorer: Scorer) -> bool:
    """Whether a scorer takes sample weights."""
    asked = getattr(scorer, "_accept_sample_weight", None)
    if asked is not None:
        return bool(asked())
    return "sample_weight" in signature(scorer).parameters
