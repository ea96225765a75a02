"""Trees for numbers: fitted, and chosen by cross-validation, as functions of arrays.

    fit_numbers(rows, family, settings, seed) -> NumberTree

Rows are coded and imputed, with hinges as columns, in the units of the table (``Rows.X`` of an
estimator); the tree comes back in these units. It is the tree of a *walk*: a row goes left at
branch t where

    weights[:, t] . x - thresholds[t] > 0

and its leaf predicts ``family.prediction(score + offset)`` with the score of ``tree.leaves``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.targets import Numbers
from softsplit.support.arrays import FloatArray
from softsplit.tree.leaf_families import LeafFamily
from softsplit.tree.leaf_functions import LeafFunctions
from softsplit.tree.parameters import Topology
from softsplit.tree.routing import node_reach
from softsplit.tree.ways import hard_leaves


@dataclass(frozen=True, eq=False)
class NumberRows:
    """Training rows.

    Attributes
    ----------
    X : array (n_rows, n_features), or HingedTable
        Coded and imputed: numbers, indicators, hinges. No missing values.
    targets : Numbers
        ``Numbers.of(y, weight, offset)``; rows of weight zero are allowed.
    groups : int array (n_features,), optional
        Variable of each feature; each is its own if it is left out. A variable counts once.
    prices : array (n_variables,), optional
        Price of each variable; 1 is the usual one.
    monotone : tuple of (int array, sign)
        Features of a monotone variable, its value and then its hinges by ascending knots, with 1 or
        -1: predictions never fall, or never rise, with it.
    """

    X: Any
    targets: Numbers
    groups: NDArray[np.intp] | None = None
    prices: FloatArray | None = None
    monotone: tuple[tuple[NDArray[np.intp], int], ...] = ()


@dataclass(frozen=True)
class NumberSettings:
    """What is fitted, and how the tree is chosen; None is no limit, or chosen by cross-validation.

    Attributes
    ----------
    depth : int, optional
        Levels of questions at most; None is up to 3, as cross-validation says.
    strength : float, optional
        Price of a coefficient in units of log-likelihood; None is chosen by cross-validation. With
        depth and strength nothing is cross-validated, unless ``assess``.
    selection : {"sparse", "balanced", "best"}
        Price of columns and coefficients in the choice: triple, usual, none.
    folds : int, or list of (train, test) positions
    max_features, max_leaves : int, optional
        Variables and leaves of the tree at most.
    max_terms, leaf_terms : int, optional
        Variables of a question, and of a leaf, at most; 0 leaf terms are constant leaves.
    min_leaf_rows : int
        Fewest rows of a leaf of the walk.
    assess : bool
        Whether residuals of the cross-validation are wanted even if there is nothing to choose.
    threads : int
        Threads of passes over many rows and of folds; results do not depend on it.
    """

    depth: int | None = None
    strength: float | None = None
    selection: str = "balanced"
    folds: int | list[tuple[NDArray[np.intp], NDArray[np.intp]]] = 5
    max_features: int | None = None
    max_leaves: int | None = None
    max_terms: int | None = None
    leaf_terms: int | None = None
    min_leaf_rows: int = 10
    assess: bool = True
    threads: int = 1


@dataclass(frozen=True)
class NumberPoint:
    """A setting that was compared: cross-validated error of its walks and their mean sizes.

    ``error`` is the mean deviance in units of the deviance of a tree without features,
    ``criterion`` the error with the prices of columns and coefficients.
    """

    depth: int
    strength: float
    error: float
    error_se: float
    columns: float
    coefficients: float
    leaves: float
    criterion: float


@dataclass(frozen=True, eq=False)
class NumberTree:
    """A fitted tree in the units of the table.

    Attributes
    ----------
    family : LeafFamily
    weights : array (n_features, n_branches)
    thresholds : array (n_branches,)
        A branch without weights sends all rows left (threshold below 0) or right. A tree without
        questions has one branch of this kind.
    leaves : LeafFunctions
        Of the walk, refitted on its rows.
    mixed_leaves : LeafFunctions
        Of the mixture, in which gates are the logistic function of weights . x - threshold.
    leaf_rows, leaf_deviance : arrays (n_leaves,)
        Weight of the training rows of each leaf of the walk, and their mean deviance.
    depth, strength : int, float
        As chosen, or as given.
    points : tuple of NumberPoint
        The settings that were compared; empty without a cross-validation.
    chosen : int
        Place of the chosen one among them; -1 without.
    held_out : array (n_rows,)
        Prediction of each row by the walk of the fold that held it out; NaN for rows that none did.
    held_out_scale : array (n_rows,)
        Typical error of the leaf that made it: |y - held_out| / held_out_scale has quantiles that
        give half-widths of intervals, times ``leaf_scale``.
    leaf_scale : array (n_leaves,)
        Root mean squared residual of the training rows of each leaf.
    """

    family: LeafFamily
    weights: FloatArray
    thresholds: FloatArray
    leaves: LeafFunctions
    mixed_leaves: LeafFunctions
    leaf_rows: FloatArray
    leaf_deviance: FloatArray
    leaf_scale: FloatArray
    depth: int
    strength: float
    points: tuple[NumberPoint, ...] = ()
    chosen: int = -1
    held_out: FloatArray | None = None
    held_out_scale: FloatArray | None = None

    @property
    def topology(self) -> Topology:
        return Topology.with_branches(len(self.thresholds))

    def split_scores(self, X: FloatArray) -> FloatArray:
        """Return weights . x - threshold, (n_branches, n_rows); bits do not depend on the rows."""
        scores = np.repeat(-self.thresholds[:, None], len(X), axis=1)
        for j in np.flatnonzero(self.weights.any(axis=1)):
            column = np.asarray(X[:, j], dtype=float)
            for t in np.flatnonzero(self.weights[j]):
                scores[t] += self.weights[j, t] * column
        return scores

    def apply(self, X: FloatArray) -> NDArray[np.intp]:
        """Return the leaf of each row."""
        return hard_leaves(self.split_scores(X))

    def predict(self, X: FloatArray, offset: FloatArray | float = 0.0) -> FloatArray:
        """Return the prediction of the walk for each row."""
        scores = self.leaves.scores(X)[self.apply(X), np.arange(len(X))]
        return self.family.prediction(scores + offset)

    def predict_mixture(self, X: FloatArray, offset: FloatArray | float = 0.0) -> FloatArray:
        """Return the mean prediction of the leaves by the soft gates."""
        with np.errstate(over="ignore"):
            left = 1.0 / (1.0 + np.exp(-self.split_scores(X)))
        shares = node_reach(left, 1.0 - left)[len(self.thresholds) :]
        predicted = self.family.prediction(self.mixed_leaves.scores(X) + offset)
        return np.asarray(np.sum(shares * predicted, axis=0))

    def half_widths(self, level: float) -> FloatArray | None:
        """Return the half-width of the interval of each leaf, by residuals of the folds."""
        raise NotImplementedError


def fit_numbers(
    rows: NumberRows,
    family: LeafFamily,
    settings: NumberSettings | None = None,
    seed: int = 0,
    check: Callable[[], None] = lambda: None,
) -> NumberTree:
    """Return the tree; ``check`` is called now and then, and may raise."""
    raise NotImplementedError
