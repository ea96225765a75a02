"""The estimators that predict numbers: one tree with given settings, and the choice of one."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, Self, overload

import numpy as np
from sklearn.base import RegressorMixin

from softsplit.estimators.exposures import Exposures
from softsplit.estimators.leaf_tree import ChosenTree, LeafTree, SingleTree
from softsplit.estimators.number_model import TargetTable
from softsplit.estimators.row_reading import checked_rows
from softsplit.estimators.training_rows import checked_weights
from softsplit.fitted.conformal import checked_confidence
from softsplit.selection.number_choice import NumberSettings
from softsplit.settings.parameter import documented
from softsplit.settings.regression import (
    NUMBER_SEARCH,
    REGRESSOR,
    TAKEN,
    NumberChoiceParameters,
    NumberParameters,
)
from softsplit.support.arrays import FloatArray
from softsplit.support.inputs import number_targets, refuse_lengths
from softsplit.tree.leaf_families import FAMILIES, LeafFamily, Quantile, Tweedie


@dataclass(kw_only=True, eq=False, repr=False)
class RegressorBase(NumberParameters, RegressorMixin, LeafTree):
    """What both estimators of numbers have in common."""

    def _settings(self, given: dict[str, Any], rows: TargetTable, groups: Any) -> NumberSettings:
        mixture = given["objective"] == "mixture"
        if mixture and (given["loss"], given["decision"]) != ("squared", "mixture"):
            raise ValueError(
                'objective="mixture" trains the mean over the leaves: it needs loss="squared" and '
                'decision="mixture".'
            )
        return replace(super()._settings(given, rows, groups), mixture=mixture)

    def _family(self, given: dict[str, Any]) -> LeafFamily:
        if given["loss"] == "quantile":
            return Quantile(level=given["quantile"])
        if given["loss"] == "tweedie":
            return Tweedie(exponent=given["power"])
        return FAMILIES[given["loss"]]()

    @overload
    def predict(self, X: Any, interval: None = None, exposure: Any = None) -> FloatArray: ...

    @overload
    def predict(
        self, X: Any, interval: float, exposure: Any = None
    ) -> tuple[FloatArray, FloatArray]: ...

    def predict(
        self, X: Any, interval: float | None = None, exposure: Any = None
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """The number that the tree predicts for each sample, as the printed tree does.

        With ``interval=0.9`` also bounds (n_samples, 2) between which the target lies in 90 % of
        cases: the prediction minus and plus the half-width of the leaf. The tree compares with
        held-out samples: those of the folds of ``SoftTreeRegressorCV``, or those of ``calibrate``.

        A tree that was trained with exposure predicts the rate per unit of it, and with
        ``exposure``, (n_samples,) or the name of a column of X, the rate times the exposure.
        """
        X, exposure = Exposures.apart(X, exposure)
        rows, predicted = self._said(X)
        if exposure is not None:
            predicted = predicted * Exposures.of(exposure, len(rows)).known_to(self._numbers)
        if interval is None:
            return predicted
        level = checked_confidence(interval, "interval")
        bounds = self._numbers.bounds(predicted, self.tree_.arrive(rows), level)
        return predicted, np.column_stack(bounds)

    def calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """A copy whose intervals compare with rows that the tree was not trained on.

        The share of new rows inside is then at least the asked one, if they are exchangeable with
        these rows (split conformal prediction): give some hundred.
        """
        rows, twin = checked_rows(self, X), copy.copy(self)
        weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, float)
        refuse_lengths(rows, y)
        tree, numbers = self.tree_, self._numbers
        residuals = number_targets(np.asarray(y), weight) - tree.calls(rows)
        sizes = np.abs(residuals) / numbers.errors[tree.arrive(rows)]
        twin.tree_ = replace(tree, numbers=numbers.with_held_out(sizes, weight))
        return twin

    def score(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> float:
        """Return R2, the share of the variance of y that is predicted.

        Of the losses "poisson", "gamma" and "tweedie" it is the share of the deviance that is
        explained, of the best constant or, with ``exposure``, the best constant rate.
        """
        refuse_lengths(X, y)
        X, exposure = Exposures.apart(X, exposure)
        predicted, numbers = self.predict(X, exposure=exposure), self._numbers
        if not numbers.family.log_link:
            return float(super().score(X, y, sample_weight))
        weight = checked_weights(sample_weight, predicted)
        offset = Exposures.of(exposure, len(predicted)).offset_for(numbers)
        y = np.asarray(y, dtype=float)
        numbers.family.check(y)
        constant = offset + numbers.family.start(y, weight, offset)
        scores = numbers.family.score(predicted)
        left, whole = (weight @ numbers.family.deviance(y, eta) for eta in (scores, constant))
        return float(1.0 - left / whole) if whole > 0 else float("nan")


@documented(*REGRESSOR, also=TAKEN)
@dataclass(kw_only=True, eq=False, repr=False)
class SoftTreeRegressor(RegressorBase, SingleTree):
    """Sparse soft tree that predicts a number by a short formula in each leaf.

    At branch t a sample goes left with probability p_t(x), the logistic function of a sparse sum,
    and leaf l says a_l + u_l . x, within the range that it has seen. Training lowers the loss
    expected over the leaves plus a price for each coefficient and column; ``predict`` follows the
    printed questions to one leaf and computes its printed formula.

    Parameters
    ----------
    **parameters
        Those of ``softsplit.settings.table``.

    Attributes
    ----------
    tree_ : TreeModel
        The tree with its coding and names; ``tree_.numbers`` are its leaves.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only if X had column names that are all strings.
    coding_ : Coding
        Only if X was more than plain numbers, or numbers bend.
    selected_features_ : array of int
        Indices of the columns of X in use.
    feature_importances_ : array of shape (n_features_in_,)
        How much each column moves the predictions on the training rows, as shares of one.
    end_ : str
        Why training ended: "complete", "interrupted" or "time_limit".

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from softsplit import SoftTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = SoftTreeRegressor(random_state=0).fit(X, y)
    >>> bool(tree.score(X, y) > 0.4)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> Self:
        """Train on X (n_samples, n_features) and numbers y (n_samples,).

        X is a matrix of numbers, or a table with text, categories, truth values, dates and missing
        values. Samples of weight zero are the same as absent ones. ``exposure``, (n_samples,) or
        the name of a column of X that is no feature then, is what y is proportional to, such as the
        years of a policy whose claims are counted, with the losses "poisson", "gamma" and
        "tweedie"; the tree then predicts a rate per unit of it.
        """
        return self._train(X, y, sample_weight, exposure=exposure)


@documented(*NUMBER_SEARCH, also=TAKEN)
@dataclass(kw_only=True, eq=False, repr=False)
class SoftTreeRegressorCV(NumberChoiceParameters, RegressorBase, ChosenTree):
    """Soft tree for a number, whose depth and strength are chosen by cross-validation.

    Of all settings that are compared the one is kept with the lowest cross-validated error plus a
    price for columns and coefficients (``selection``), and trained on all rows.

    Parameters
    ----------
    **parameters
        Those of ``softsplit.settings.table``.

    Attributes
    ----------
    tree_ : TreeModel
        And all other attributes of a fitted ``SoftTreeRegressor``.
    best_params_ : dict
        Depth and strength that were chosen.
    best_estimator_ : SoftTreeRegressor
        The same tree.
    best_score_ : float
        Cross-validated R2, of loss "squared"; in general the part of the deviance of a constant
        that is explained.
    held_out_predictions_ : array of shape (n_samples,), or None
        What the tree of the fold without it predicts of each sample; None if nothing was compared.
    cv_results_ : dict of arrays
        A line for each setting that was compared; give it to ``pandas.DataFrame``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from softsplit import SoftTreeRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> chosen = SoftTreeRegressorCV(random_state=0).fit(X, y)
    >>> predicted, bounds = chosen.predict(X, interval=0.9)
    >>> bool(((bounds[:, 0] <= y) & (y <= bounds[:, 1])).mean() > 0.85)
    True
    """

    _single = SoftTreeRegressor

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, exposure: Any = None
    ) -> Self:
        """Compare settings on the folds of X and y, and train the chosen one on all rows.

        ``groups`` (n_samples,) names what samples belong to: no group is both trained and tested
        on. ``exposure`` is that of ``SoftTreeRegressor.fit``.
        """
        return self._train(X, y, sample_weight, groups, exposure)
