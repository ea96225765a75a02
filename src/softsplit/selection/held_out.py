"""Held-out rows of a fold, and the value of a tree on each of them.

    value_i = -min(-log p_i, LARGEST_LOSS)

with p_i the probability of the true class: the log-loss, a proper score. It tells trees apart that
are right equally often, and sees a tree that is sure and wrong; ``LARGEST_LOSS`` keeps one such row
from deciding alone. Accuracy is reported with it. The predicted class is that of the walk
(fitted/walk_choice.py) chosen on the training rows of the fold, or the most probable one where the
mixture decides.

The last part is a rule for rare classes: predict one before it is the most probable, if that costs
little. The most probable class is hardly ever one of few rows, and those are the rows that people
look for. With factors f_k = 1 but for *rare* classes, errors cost

    cost[y, k] = f_y for k != y, 0 for k = y

and with class probabilities p the class of least expected cost sum_y p_y cost[y, k] is the one with
the largest f_k p_k. The common factor of rare classes is the one of a small grid with the highest
balanced accuracy on held-out rows, among those that lose no more accuracy than ``SLACK`` standard
errors of the loss itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.leaf_shares import consistent_with, cost_factors, decision_gains
from softsplit.fitted.ranges import FarOutsideWarning
from softsplit.fitted.walk import Arriving
from softsplit.fitted.walk_choice import chosen_walk
from softsplit.selection.scoreboard import Valued
from softsplit.solvers import Solution
from softsplit.support.arrays import FloatArray, mean_and_error
from softsplit.support.row_budgets import ROWS
from softsplit.training.fitted_tree import leaf_shares
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

    def judged(self, solution: Solution) -> tuple[float, Valued | None]:
        """Return the score of a tree and, if ``samplewise``, its value on each row."""
        scorer, estimator = self.scoring.scorer, self.scoring.estimator
        shares, score = self.shares(solution.parameters), 0.0
        right = self.predicted(solution.parameters) == self.rows.labels
        if scorer is not None and estimator is not None:
            known = self.rows.weighted and takes_weights(scorer)
            weight = {"sample_weight": self.rows.weight} if known else {}
            fitted = estimator(self.prepared, solution)
            with warnings.catch_warnings():  # about rows that were only held out here
                warnings.simplefilter("ignore", FarOutsideWarning)
                score = float(scorer(fitted, self.rows.X, self.rows.y, **weight))
        elif not np.any(self.rows.weight):
            raise ValueError("a test fold holds no sample of positive weight; use other folds.")
        else:
            score = float(right @ self.rows.weight / self.rows.weight.sum())
        if not self.scoring.samplewise:
            return score, None
        return score, valued_samples(shares, self.rows.labels, self.rows.weight)

    def predicted(self, tree: TreeParameters, costs: FloatArray | None = None) -> NDArray[np.intp]:
        """Position of the predicted class of each row, by the walk or by the mixture.

        ``costs`` of errors (n_classes, n_classes) are all equal if not given.
        """
        return self.routed(tree).predicted(costs)

    def routed(self, tree: TreeParameters) -> RoutedRows:
        """Return the scores of the rows at the branches of ``tree``."""
        training, arriving = self.training, None
        # A single question of two classes turns where the mixture does.
        if training is not None and (len(tree.thresholds) > 1 or tree.n_groups > 2):
            arriving = training._replace(features=split_scores(tree, training.features))
        steepness = self.prepared.problem.steepness
        return RoutedRows(tree, steepness, self._known, split_scores(tree, self.scaled), arriving)

    @property
    def _known(self) -> NDArray[np.bool_]:
        """Which classes of the rows were trained on."""
        return np.isin(self.rows.classes, self.prepared.classes)

    def shares(self, tree: TreeParameters) -> FloatArray:
        """Class probabilities of the rows, (n_classes, n_rows); 0 for classes not trained on."""
        steepness = self.prepared.problem.steepness
        return self._of_all_classes(mixed_values(tree, self.scaled, steepness))

    def probabilities(self, tree: TreeParameters, costs: FloatArray | None = None) -> FloatArray:
        """What ``predict_proba`` of the tree says of the rows, (n_rows, n_classes).

        These are the shares, of a tree for costs those of the training rows in its leaves, made
        consistent with the predicted class as ``TreeModel.predict_proba`` does.
        """
        prepared, n_leaves = self.prepared, tree.leaf_values.shape[1]
        factors: FloatArray | None = None
        mixed = tree
        if prepared.assigned:
            mixed = replace(tree, leaf_values=leaf_shares(prepared, tree))
            own = mixed.leaf_values[np.argmax(tree.leaf_values, axis=0), np.arange(n_leaves)]
            if np.all(own >= mixed.leaf_values.max(axis=0)):
                factors = np.ones(tree.n_groups)
        elif self.training is not None and costs is None:
            factors = np.ones(tree.n_groups)
        elif self.training is not None and costs is not None:
            factors = cost_factors(costs[np.ix_(self._known, self._known)])
        proba = mixed_values(mixed, self.scaled, prepared.problem.steepness).T.copy()
        if factors is not None:
            places = np.cumsum(self._known) - 1
            predicted = places[self.predicted(tree, costs)]
            apart = np.argmax(proba * factors, axis=1) != predicted
            proba[apart] = consistent_with(proba[apart], predicted[apart], factors)
        return self._of_all_classes(proba.T).T

    def _of_all_classes(self, present: FloatArray) -> FloatArray:
        """Probabilities (n_classes, n_rows) with zeros for classes not trained on."""
        if len(self.rows.classes) == len(self.prepared.classes):
            return present
        shares = np.zeros((len(self.rows.classes), present.shape[1]))
        shares[self._known] = present
        return shares


@dataclass(frozen=True)
class RoutedRows:
    """Held-out rows at the branches of one tree: all that its predictions need of them.

    Attributes
    ----------
    known : array of bool, shape (n_classes,)
        Which classes of the rows were trained on.
    scores : array of shape (n_branches, n_rows)
    arriving : Arriving, optional
        The training rows on which the walk is chosen, with scores as features; None: the mixture
        decides.
    """

    tree: TreeParameters
    steepness: float
    known: NDArray[np.bool_]
    scores: FloatArray
    arriving: Arriving | None

    def predicted(self, costs: FloatArray | None = None) -> NDArray[np.intp]:
        """Return the predicted class of each row, as ``TestRows.predicted`` does."""
        tree, rows = self.tree, self.arriving
        gains = np.eye(tree.n_groups)
        if costs is not None:
            gains = decision_gains(costs[np.ix_(self.known, self.known)])
        if rows is None:
            leaves = leaf_probabilities(self.scores, self.steepness)
            classes = np.argmax(gains.T @ tree.leaf_values @ leaves, axis=0)
        else:
            walk = chosen_walk(tree, self.steepness, rows, gains, scores=rows.features)
            classes = walk.predicted(self.scores)
        return np.flatnonzero(self.known)[classes]


def takes_weights(scorer: Scorer) -> bool:
    """Whether a scorer takes sample weights."""
    asked = getattr(scorer, "_accept_sample_weight", None)
    if asked is not None:
        return bool(asked())
    return "sample_weight" in signature(scorer).parameters


# --- the decision for rare classes ----------------------------------------------------------------

RARE = 0.5
"""A class is rare below this part of an even share."""

FACTORS = (
    1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.5, 8.0, 10.0, 13.0, 16.0, 20.0,
)  # fmt: skip
"""Grid of factors on the probability of rare classes."""

SLACK = 0.5
"""Standard errors of accuracy that a factor may cost."""

FEWEST = 5
"""Held-out rows that a class must have for a decision about it."""

UNAFFORDABLE = 2
"""Factors in a row that cost too much accuracy after which no larger one is tried."""


def decision_factors(
    predicted: Callable[[FloatArray], NDArray[np.intp]],
    n_classes: int,
    labels: NDArray[np.int64],
    weights: FloatArray,
    over: Callable[[], bool] = lambda: False,
) -> FloatArray | None:
    """Return the factor of each class; None if all are 1.

    Parameters
    ----------
    predicted : callable
        Returns the predicted classes of the held-out rows under a cost matrix.
    labels, weights : arrays of shape (n_rows,)
        True classes and weights of the held-out rows.
    over : callable
        Whether the time is over: factors that were not tried by then are not looked at.
    """
    totals = np.bincount(labels, weights, n_classes).astype(float)
    counts = np.bincount(labels, minlength=n_classes)
    rare = (totals < RARE * totals.sum() / n_classes) & (counts >= FEWEST)
    if not np.any(rare):
        return None

    def hits(factors: FloatArray) -> FloatArray:
        return np.where(predicted(prediction_costs(factors)) == labels, 1.0, 0.0)

    if over():
        return None
    plain = hits(np.ones(n_classes))
    best, chosen, too_much = _balanced(plain, labels, weights, totals), 1.0, 0
    for factor in FACTORS[1:]:
        if over() or too_much == UNAFFORDABLE:
            break
        right = hits(np.where(rare, factor, 1.0))
        if not _affordable(plain - right, weights):
            too_much += 1
            continue
        balance, too_much = _balanced(right, labels, weights, totals), 0
        if balance > best + 1e-12:
            best, chosen = balance, factor
    return np.where(rare, chosen, 1.0) if chosen > 1 else None


def prediction_costs(factors: FloatArray) -> FloatArray:
    """Return the cost matrix that predicts the class with the largest factor times probability."""
    return factors[:, None] * (1.0 - np.eye(len(factors)))


def _balanced(
    right: FloatArray, labels: NDArray[np.int64], weights: FloatArray, totals: FloatArray
) -> float:
    known = totals > 0
    rates = np.bincount(labels, weights * right, len(totals))[known] / totals[known]
    return float(np.mean(rates))


def _affordable(lost: FloatArray, weights: FloatArray) -> bool:
    """Whether the mean accuracy lost is within ``SLACK`` standard errors."""
    mean, error = mean_and_error(lost, weights)
    return mean <= SLACK * error + 1e-12
