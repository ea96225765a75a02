"""Held-out rows of a fold, and the value of a tree on each of them.

    value_i = -min(-log p_i, LARGEST_LOSS)

with p_i the probability of the true class: the log-loss, a proper score. It tells trees apart that
are right equally often, and sees a tree that is sure and wrong; ``LARGEST_LOSS`` keeps one such row
from deciding alone. Accuracy is reported with it. The predicted class is that of the walk
(fitted/walk_choice.py) chosen on the training rows of the fold, or the most probable one where the
mixture decides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from softsplit.fitted.leaf_shares import consistent_with, cost_factors, decision_gains
from softsplit.fitted.walk import Arriving, Walk
from softsplit.fitted.walk_choice import chosen_walk
from softsplit.selection.scoreboard import Valued
from softsplit.support.arrays import FloatArray
from softsplit.support.row_budgets import ROWS
from softsplit.training.fitted_tree import leaf_shares
from softsplit.training.pointed_parts import PointedParts
from softsplit.training.pointed_walk import decisive_walk
from softsplit.training.preparation import Prepared
from softsplit.training.rows import Rows
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import leaf_probabilities, mixed_values, split_scores
from softsplit.tree.scaling import scaled_rows

LARGEST_LOSS = 10.0
"""No single row counts with a larger log-loss."""

PRICED_ROWS = 1000
"""With more rows, which tell smaller gains from noise, a feature costs what it does with these
in the sum over rows: a fixed amount of log-likelihood."""

LEAST_PROBABILITY = 1e-15
"""Smaller probabilities count as this one."""


def valued_samples(shares: FloatArray, labels: NDArray[np.int64], weights: FloatArray) -> Valued:
    """Return the values of rows with class probabilities ``shares``, (n_classes, n_rows)."""
    probable = np.clip(shares[labels, np.arange(len(labels))], LEAST_PROBABILITY, 1.0)
    return Valued(np.maximum(np.log(probable), -LARGEST_LOSS), weights)


def featureless_loss(rows: Rows) -> float:
    """Return the log-loss per row without features, that of the class shares."""
    totals = np.bincount(rows.labels, rows.weight, len(rows.classes))
    shares = totals[totals > 0] / totals.sum()
    return float(-shares @ np.log(shares))


def price_unit(rows: Rows) -> float:
    """Return the log-loss per row without features, or of two even classes if less.

    With more than ``PRICED_ROWS`` it falls as 1 / n.
    """
    loss = min(featureless_loss(rows), float(np.log(2)))
    return loss * min(1.0, PRICED_ROWS / len(rows.labels))


def price_share(rows: Rows) -> float:
    """Return the unit of prices as a part of the log-loss without features."""
    loss = featureless_loss(rows)
    return price_unit(rows) / loss if loss > 0 else 0.0


Scorer = Callable[..., float]


class Answers(ClassifierMixin, BaseEstimator):
    """What a tree says about held-out rows, as a fitted classifier that scorers ask."""

    def __init__(
        self, classes: NDArray[Any], predicted: NDArray[np.intp], proba: FloatArray
    ) -> None:
        self.classes, self.predicted, self.proba = classes, predicted, proba
        self.classes_ = classes

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted classes of the held-out rows."""
        return self.classes[self.predicted]

    def predict_proba(self, X: Any) -> FloatArray:
        """Return their class probabilities, (n_rows, n_classes)."""
        return self.proba


@dataclass(frozen=True)
class Scoring:
    """How trees are scored: by accuracy, or by a scorer of scikit-learn's kind.

    With ``samplewise``, trees are compared by their values on single held-out rows.
    """

    scorer: Scorer | None = None
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
        scaled = scaled_rows(prepared.scaling, rows.X).T
        if scoring.scorer is None:  # which alone looks at rows as they were given
            rows = replace(rows, X=np.empty((len(rows.labels), 0)))
        return cls(prepared, rows, scoring, scaled)

    def without_walk_rows(self) -> TestRows:
        """Return a copy whose ``training`` is computed again when it is used: it takes memory."""
        return replace(self)

    @cached_property
    def training(self) -> Arriving | None:
        """Rows of the training part on which walks are chosen; None: mixtures decide."""
        if self.prepared.settings.decision != "walk":
            return None
        return self.prepared.arriving(ROWS.compared_walk)

    def judged(self, tree: TestedTree) -> tuple[float, Valued | None]:
        """Return the score of a tree and, if ``samplewise``, its value on each row."""
        scorer, labels, weight = self.scoring.scorer, self.rows.labels, self.rows.weight
        if scorer is not None:
            weighed = self.rows.weighted and takes_weights(scorer)
            known = {"sample_weight": weight} if weighed else {}
            costs = None if self.prepared.assigned else self.prepared.settings.cost_matrix
            costs = None if costs is None else np.asarray(costs, dtype=float)
            answers = Answers(self.rows.classes, tree.predicted(costs), tree.probabilities(costs))
            score = float(scorer(answers, self.rows.X, self.rows.y, **known))
        elif not np.any(weight):
            raise ValueError("a test fold holds no sample of positive weight; use other folds.")
        else:
            score = float((tree.predicted() == labels) @ weight / weight.sum())
        if not self.scoring.samplewise:
            return score, None
        return score, valued_samples(tree.shares, labels, weight)

    def routed(self, tree: TreeParameters) -> RoutedTree:
        """Return a tree of free weights at these rows."""
        training, arriving = self.training, None
        # A single question of two classes turns where the mixture does.
        if training is not None and (len(tree.thresholds) > 1 or tree.n_groups > 2):
            arriving = training._replace(features=split_scores(tree, training.features))
        scores = split_scores(tree, self.scaled)
        return RoutedTree(self.prepared, self.known, tree, scores, arriving)

    def pointed(self, parts: PointedParts) -> PointedRows:
        """Return a tree in points at these rows."""
        rows = Arriving(self.scaled, self.rows.labels, self.rows.weight)
        training = self.prepared.arriving(ROWS.compared_walk)
        training, rows = (parts.values(self.prepared.scaling, some) for some in (training, rows))
        return PointedRows(self.prepared, self.known, parts, rows.features, training)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which classes of the rows were trained on."""
        return np.isin(self.rows.classes, self.prepared.classes)


@dataclass(frozen=True)
class TestedTree(ABC):
    """A tree at held-out rows: all that its predictions need of them.

    Attributes
    ----------
    prepared : Prepared
        The training rows of the fold.
    known : array of bool, shape (n_classes,)
        Which classes of the held-out rows were trained on.
    """

    prepared: Prepared
    known: NDArray[np.bool_]

    def predicted(self, costs: FloatArray | None = None) -> NDArray[np.intp]:
        """Position of the predicted class of each row, by the walk or by the mixture.

        ``costs`` of errors (n_classes, n_classes) are all equal if not given.
        """
        return np.flatnonzero(self.known)[self.decided(self._of_known(costs))]

    @property
    def shares(self) -> FloatArray:
        """Class probabilities of the rows, (n_classes, n_rows); 0 for classes not trained on."""
        return self._of_all_classes(self.mixed(None))

    def probabilities(self, costs: FloatArray | None = None) -> FloatArray:
        """What ``predict_proba`` of the tree says of the rows, (n_rows, n_classes).

        These are the shares, of a tree for costs those of the training rows in its leaves, made
        consistent with the predicted class as ``TreeModel.predict_proba`` does.
        """
        own = self._of_known(costs)
        proba, factors = self.leaf_mixture(own).T.copy(), self.factors(own)
        if factors is not None:
            predicted = self.decided(own)
            apart = np.argmax(proba * factors, axis=1) != predicted
            proba[apart] = consistent_with(proba[apart], predicted[apart], factors)
        return self._of_all_classes(proba.T).T

    @abstractmethod
    def decided(self, costs: FloatArray | None) -> NDArray[np.intp]:
        """Return predicted classes, as positions among those trained on."""

    @abstractmethod
    def mixed(self, costs: FloatArray | None) -> FloatArray:
        """Return the mixture over all leaves, (n_trained_classes, n_rows)."""

    def leaf_mixture(self, costs: FloatArray | None) -> FloatArray:
        """Return the same with class shares in the leaves."""
        return self.mixed(costs)

    def factors(self, costs: FloatArray | None) -> FloatArray | None:
        """Return factors f with which the predicted class has the largest f_k p_k, if there are."""
        return np.ones(len(self.prepared.classes)) if costs is None else cost_factors(costs)

    def _of_known(self, costs: FloatArray | None) -> FloatArray | None:
        return None if costs is None else costs[np.ix_(self.known, self.known)]

    def _of_all_classes(self, present: FloatArray) -> FloatArray:
        """Probabilities (n_classes, n_rows) with zeros for classes not trained on."""
        if np.all(self.known):
            return present
        shares = np.zeros((len(self.known), present.shape[1]))
        shares[self.known] = present
        return shares


@dataclass(frozen=True)
class RoutedTree(TestedTree):
    """A tree of free weights.

    Attributes
    ----------
    tree : TreeParameters
    scores : array of shape (n_branches, n_rows)
    arriving : Arriving, optional
        The training rows on which the walk is chosen, with scores as features; None: the mixture
        decides.
    """

    tree: TreeParameters
    scores: FloatArray
    arriving: Arriving | None

    def decided(self, costs: FloatArray | None) -> NDArray[np.intp]:
        tree, rows, steepness = self.tree, self.arriving, self.prepared.problem.steepness
        gains = np.eye(tree.n_groups) if costs is None else decision_gains(costs)
        if rows is None:
            leaves = leaf_probabilities(self.scores, steepness)
            return np.argmax(gains.T @ tree.leaf_values @ leaves, axis=0)
        walk = chosen_walk(tree, steepness, rows, gains, scores=rows.features)
        return walk.predicted(self.scores)

    def mixed(self, costs: FloatArray | None) -> FloatArray:
        return self._over_leaves(self.tree.leaf_values)

    def leaf_mixture(self, costs: FloatArray | None) -> FloatArray:
        return self._over_leaves(self._class_shares)

    def factors(self, costs: FloatArray | None) -> FloatArray | None:
        if self.prepared.settings.decision == "walk" and not self.prepared.assigned:
            return super().factors(costs)
        if not self.prepared.assigned:
            return None
        tree, shares = self.tree, self._class_shares
        own = shares[np.argmax(tree.leaf_values, axis=0), np.arange(shares.shape[1])]
        return np.ones(tree.n_groups) if np.all(own >= shares.max(axis=0)) else None

    @cached_property
    def _class_shares(self) -> FloatArray:
        """Class shares of the leaves, (n_classes, n_leaves)."""
        assigned = self.prepared.assigned
        return leaf_shares(self.prepared, self.tree) if assigned else self.tree.leaf_values

    def _over_leaves(self, values: FloatArray) -> FloatArray:
        return values @ leaf_probabilities(self.scores, self.prepared.problem.steepness)


@dataclass(frozen=True)
class PointedRows(TestedTree):
    """A tree in whole points.

    Attributes
    ----------
    parts : PointedParts
    points : array of shape (n_lookups, n_rows)
    training : Arriving
        Training rows with points as features, on which the walk is chosen.
    """

    parts: PointedParts
    points: FloatArray
    training: Arriving

    def decided(self, costs: FloatArray | None) -> NDArray[np.intp]:
        walk = self.walked(costs)[1]
        return walk.classes[walk.leaves(self.points.T, self.parts.scaling)]

    def mixed(self, costs: FloatArray | None) -> FloatArray:
        steepness = self.prepared.problem.steepness
        return mixed_values(self.walked(costs)[0], self.points, steepness)

    @cached_property
    def plain(self) -> tuple[TreeParameters, Walk]:
        """The tree and its walk where all errors cost the same."""
        return self._fitted(np.eye(len(self.prepared.classes)))

    def walked(self, costs: FloatArray | None) -> tuple[TreeParameters, Walk]:
        """Return the tree and its walk, as they are fitted."""
        return self.plain if costs is None else self._fitted(decision_gains(costs))

    def _fitted(self, gains: FloatArray) -> tuple[TreeParameters, Walk]:
        steepness = self.prepared.problem.steepness
        tree, walk = decisive_walk(self.parts, self.training, steepness, gains)
        return tree, walk.counted(self.training, self.parts.scaling, gains)


def takes_weights(scorer: Scorer) -> bool:
    """Whether a scorer takes sample weights."""
    asked = getattr(scorer, "_accept_sample_weight", None)
    if asked is not None:
        return bool(asked())
    return "sample_weight" in signature(scorer).parameters
