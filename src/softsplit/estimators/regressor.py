"""The estimators that predict numbers: one tree with given settings, and the choice of one."""

from __future__ import annotations

import copy
import warnings
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, Self, overload

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from softsplit.estimators.base import CutShortWarning, all_or_nothing
from softsplit.estimators.fitted import warn_far
from softsplit.estimators.number_model import TargetRows, fitted_numbers
from softsplit.estimators.readings import ReadableTree
from softsplit.estimators.row_reading import checked_rows, know_table
from softsplit.estimators.training_rows import target_rows
from softsplit.fitted.conformal import checked_confidence
from softsplit.problem.targets import Numbers
from softsplit.selection.folds import make_groups, number_splits
from softsplit.selection.number_trees import (
    NumberPoint,
    NumberRows,
    NumberSettings,
    NumberTree,
    fit_numbers,
)
from softsplit.settings.checks import is_auto
from softsplit.settings.parameter import checked, documented
from softsplit.settings.regression import (
    NUMBER_SEARCH,
    REGRESSOR,
    TAKEN,
    NumberChoiceParameters,
    NumberParameters,
)
from softsplit.solvers import Budget
from softsplit.solvers.base import OutOfBudget
from softsplit.support.arguments import drawn_seed
from softsplit.support.arrays import FloatArray
from softsplit.support.inputs import number_targets, refuse_lengths
from softsplit.support.interruption import never_lost
from softsplit.support.parallel import n_threads, one_blas_thread
from softsplit.training.run import End, watched
from softsplit.tree.leaf_families import FAMILIES, LeafFamily

# What a choice pays for columns and coefficients, by the words of the estimator.
PRICES = {"default": "balanced", "auto": "balanced", "sparse": "sparse", "best": "best"}


@dataclass(kw_only=True, eq=False, repr=False)
class NumberBase(NumberParameters, ReadableTree, RegressorMixin, BaseEstimator):
    """What both estimators of numbers have in common."""

    @overload
    def predict(self, X: Any, interval: None = None) -> FloatArray: ...

    @overload
    def predict(self, X: Any, interval: float) -> tuple[FloatArray, FloatArray]: ...

    def predict(
        self, X: Any, interval: float | None = None
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """The number that the tree predicts for each sample, as the printed tree does.

        With ``interval=0.9`` also bounds (n_samples, 2) between which the target lies in 90 % of
        cases: the prediction minus and plus the half-width of the leaf. The tree compares with
        held-out samples: those of the folds of ``SoftTreeRegressorCV``, or those of ``calibrate``.
        """
        rows, tree = checked_rows(self, X), self.tree_
        warn_far(tree, rows)
        predicted: FloatArray = tree.calls(rows)
        if interval is None:
            return predicted
        assert tree.numbers is not None
        half = tree.numbers.half_widths(checked_confidence(interval, "interval"))
        half = half[tree.arrive(rows)]
        return predicted, np.column_stack([predicted - half, predicted + half])

    def calibrate(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """A copy whose intervals compare with rows that the tree was not trained on.

        The share of new rows inside is then at least the asked one, if they are exchangeable with
        these rows (split conformal prediction): give some hundred.
        """
        rows, twin = checked_rows(self, X), copy.copy(self)
        weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, float)
        refuse_lengths(rows, y)
        tree, numbers = self.tree_, self.tree_.numbers
        residuals = number_targets(np.asarray(y), weight) - tree.calls(rows)
        assert numbers is not None
        sizes = np.abs(residuals) / numbers.errors[tree.arrive(rows)]
        known = numbers.with_held_out(sizes, weight)
        twin.tree_ = replace(tree, numbers=known)
        return twin

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R2, the share of the variance of y that is predicted."""
        refuse_lengths(X, y)
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags

    def _train(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Self:
        """Validate, solve, and set the fitted attributes.

        1. Parameters and rows.
        2. The tree of the solver; Ctrl-C and the time limit keep the best so far.
        3. The printed tree.
        """
        with (
            never_lost(),
            all_or_nothing(self),
            one_blas_thread(),
            watched(self.verbose, Budget()) as around,
        ):
            # 1. Parameters and rows.
            around.working("preparing the rows")
            given = checked(type(self), vars(self))
            budget = Budget(time_limit=given["time_limit"])
            seed = drawn_seed("random_state", self.random_state)
            rows = target_rows(self, X, y, sample_weight)
            settings = self._settings(given, rows, groups)
            # 2. The tree.
            around.working("training")
            family = FAMILIES[given["loss"]]()
            if given["loss"] == "quantile":
                family = FAMILIES["quantile"](level=given["quantile"])  # type: ignore[call-arg]
            solved = _solved(rows, family, settings, seed, budget)
            # 3. The printed tree.
            around.working("finishing the tree")
            stopped = budget.stopped
            with budget.interruptible():
                self._keep(rows, solved)
            if budget.stopped and not stopped:  # the tree is there: keeping it takes a moment
                self._keep(rows, solved)
            if budget.exhausted:
                self._warn_cut_short(budget)
        return self

    def _settings(self, given: dict[str, Any], rows: TargetRows, groups: Any) -> NumberSettings:
        """What the solver is asked for, from checked parameters."""
        free: dict[str, Any] = {
            n: None if is_auto(given[n]) else given[n] for n in ("depth", "strength")
        }
        names = ("max_features", "max_leaves", "max_terms", "leaf_terms", "min_leaf_rows")
        threads = n_threads(self.n_jobs, len(rows.y))
        return NumberSettings(**free, **{n: given[n] for n in names}, threads=threads)

    def _keep(self, rows: TargetRows, solved: NumberTree) -> None:
        tree = fitted_numbers(solved, rows, self.decision)
        know_table(self, tree, named=rows.named)
        self.tree_, self.end_ = tree, End.COMPLETE.value

    def _warn_cut_short(self, budget: Budget) -> None:
        """Say what ended the training; the best tree so far is kept."""
        self.end_ = (End.INTERRUPTED if budget.stopped else End.TIME_LIMIT).value
        reason = "interrupted" if budget.stopped else "the time limit was reached"
        reason += "; the best tree so far is kept."
        warning = CutShortWarning(type(self).__name__, reason, budget.stopped)
        warnings.warn(warning, stacklevel=4)


@documented(*REGRESSOR, also=TAKEN)
@dataclass(kw_only=True, eq=False, repr=False)
class SoftTreeRegressor(NumberBase):
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on X (n_samples, n_features) and numbers y (n_samples,).

        X is a matrix of numbers, or a table with text, categories, truth values, dates and missing
        values. Samples of weight zero are the same as absent ones.
        """
        return self._train(X, y, sample_weight)

    def _settings(self, given: dict[str, Any], rows: TargetRows, groups: Any) -> NumberSettings:
        settings = super()._settings(given, rows, groups)
        return replace(
            settings,
            depth=USUAL_DEPTH if settings.depth is None else settings.depth,
            strength=usual_price(rows) if settings.strength is None else settings.strength,
            assess=False,
        )


# Levels of questions of a tree that is not chosen.
USUAL_DEPTH = 2


@documented(*NUMBER_SEARCH, also=TAKEN)
@dataclass(kw_only=True, eq=False, repr=False)
class SoftTreeRegressorCV(NumberChoiceParameters, NumberBase):
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Compare settings on the folds of X and y, and train the chosen one on all rows.

        ``groups`` (n_samples,) names what samples belong to: no group is both trained and tested
        on.
        """
        return self._train(X, y, sample_weight, groups)

    def _settings(self, given: dict[str, Any], rows: TargetRows, groups: Any) -> NumberSettings:
        settings = super()._settings(given, rows, groups)
        folds = number_splits(self.cv, rows.y, make_groups(groups, len(rows.y)))
        return replace(settings, folds=folds, selection=PRICES[given["selection"]])

    def _keep(self, rows: TargetRows, solved: NumberTree) -> None:
        super()._keep(rows, solved)
        points = solved.points
        names = [field.name for field in fields(NumberPoint)]
        self.cv_results_ = {name: np.array([getattr(p, name) for p in points]) for name in names}
        self.best_params_ = {"depth": solved.depth, "strength": solved.strength}
        self.held_out_predictions_ = solved.held_out
        self.best_score_ = 1.0 - points[solved.chosen].error if points else float("nan")
        given = {field.name: getattr(self, field.name) for field in fields(NumberParameters)}
        chosen = SoftTreeRegressor(**given | self.best_params_)
        chosen.tree_, chosen.end_ = self.tree_, self.end_
        know_table(chosen, self.tree_, named=rows.named)
        self.best_estimator_ = chosen


def usual_price(rows: TargetRows) -> float:
    """Half the logarithm of the number of rows: the Bayesian information criterion."""
    return 0.5 * float(np.log(max(rows.n_rows, 2.0)))


def _solved(
    rows: TargetRows, family: LeafFamily, settings: NumberSettings, seed: int, budget: Budget
) -> NumberTree:
    """Return the tree of the solver.

    Where Ctrl-C or the time limit ends it before it has one, it is a tree of one question at most
    with the price of ``SoftTreeRegressor``, which takes a moment.
    """
    effects = () if rows.monotone is None else rows.monotone.features
    asked = NumberRows(
        X=rows.X,
        targets=Numbers.of(rows.y, rows.weight),
        groups=rows.groups,
        prices=rows.prices,
        monotone=tuple((columns, sign) for sign, columns, _ in effects),
    )
    with budget.interruptible(), suppress(OutOfBudget):
        return fit_numbers(asked, family, settings, seed, budget.check)
    depth = 1 if settings.depth is None else min(settings.depth, 1)
    quick = replace(settings, depth=depth, strength=usual_price(rows), assess=False)
    return fit_numbers(asked, family, quick, seed)
