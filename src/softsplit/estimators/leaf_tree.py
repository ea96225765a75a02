"""Trees whose leaves have formulas: trained, and chosen by cross-validation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from softsplit.estimators.base import CutShortWarning, all_or_nothing, profiled
from softsplit.estimators.exposures import Exposures
from softsplit.estimators.fitted import warn_far
from softsplit.estimators.number_model import TargetTable, fitted_numbers
from softsplit.estimators.readings import ReadableTree
from softsplit.estimators.row_reading import checked_rows, know_table
from softsplit.estimators.training_rows import target_rows
from softsplit.fitted.leaf_numbers import LeafNumbers
from softsplit.problem.targets import Numbers
from softsplit.selection.folds import make_groups, number_splits
from softsplit.selection.number_choice import NumberPoint, NumberSettings, usual_price
from softsplit.selection.number_trees import NumberRows, NumberTree, fit_numbers
from softsplit.settings.checks import is_auto
from softsplit.settings.parameter import checked
from softsplit.settings.regression import LeafParameters
from softsplit.solvers import Budget
from softsplit.support.arguments import drawn_seed
from softsplit.support.arrays import FloatArray
from softsplit.support.interruption import never_lost
from softsplit.support.parallel import n_threads, one_blas_thread
from softsplit.training.precompile import compile_sets
from softsplit.training.run import End, watched
from softsplit.tree.leaf_families import LeafFamily

# What a choice pays for columns and coefficients, by the words of the estimator.
PRICES = {"default": "balanced", "auto": "balanced", "sparse": "sparse", "best": "best"}

# Levels of questions of a tree that is not chosen.
USUAL_DEPTH = 2


@dataclass(kw_only=True, eq=False, repr=False)
class LeafTree(LeafParameters, ReadableTree, BaseEstimator):
    """What trees of numbers and of times have in common: ``_train`` gives them their tree."""

    def _family(self, given: dict[str, Any]) -> LeafFamily:
        """The family of the leaves, from checked parameters."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags

    @property
    def _numbers(self) -> LeafNumbers:
        """The leaves of the fitted tree."""
        check_is_fitted(self, "tree_")
        numbers = self.tree_.numbers
        assert numbers is not None
        return numbers

    def _said(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Rows as the tree takes them, and what their leaves predict; far values are warned of."""
        rows = checked_rows(self, X)
        warn_far(self.tree_, rows)
        return rows, self.tree_.calls(rows)

    def _train(
        self, X: Any, y: Any, sample_weight: Any, groups: Any = None, exposure: Any = None
    ) -> Self:
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
            compile_sets("numbers")
            around.working("preparing the rows")
            X, exposure = Exposures.apart(X, exposure)
            given = checked(type(self), vars(self))
            budget = Budget(time_limit=given["time_limit"])
            seed = drawn_seed("random_state", self.random_state)
            family = self._family(given)
            rows = target_rows(self, X, y, sample_weight, exposure, family)
            settings = self._settings(given, rows, groups)
            # 2. The tree.
            around.working("training")
            solved = _solved(rows, family, settings, seed, budget)
            # 3. The printed tree.
            around.working("finishing the tree")
            budget.insist(lambda: self._keep(rows, solved))
            if budget.exhausted:
                self._warn_cut_short(budget)
        return self

    def _settings(self, given: dict[str, Any], rows: TargetTable, groups: Any) -> NumberSettings:
        """What the solver is asked for, from checked parameters."""
        free: dict[str, Any] = {
            n: None if is_auto(given[n]) else given[n] for n in ("depth", "strength")
        }
        names = ("max_features", "max_leaves", "max_terms", "leaf_terms", "min_leaf_rows")
        threads = n_threads(self.n_jobs, len(rows.y))
        return NumberSettings(**free, **{n: given[n] for n in names}, threads=threads)

    def _keep(self, rows: TargetTable, solved: NumberTree) -> None:
        tree = profiled(fitted_numbers(solved, rows, self.decision), rows.labelled)
        know_table(self, tree, named=rows.named)
        self.tree_, self.end_ = tree, End.COMPLETE.value

    def _warn_cut_short(self, budget: Budget) -> None:
        """Say what ended the training; the best tree so far is kept."""
        self.end_ = (End.INTERRUPTED if budget.stopped else End.TIME_LIMIT).value
        reason = "interrupted" if budget.stopped else "the time limit was reached"
        reason += "; the best tree so far is kept."
        warning = CutShortWarning(type(self).__name__, reason, budget.stopped)
        warnings.warn(warning, stacklevel=4)


class SingleTree(LeafTree):
    """One tree with given settings; what is not given is usual."""

    def _settings(self, given: dict[str, Any], rows: TargetTable, groups: Any) -> NumberSettings:
        settings = super()._settings(given, rows, groups)
        return replace(
            settings,
            depth=USUAL_DEPTH if settings.depth is None else settings.depth,
            strength=usual_price(rows.n_rows) if settings.strength is None else settings.strength,
            assess=False,
        )


class ChosenTree(LeafTree):
    """A tree whose depth and strength are chosen by cross-validation."""

    cv: Any
    _single: ClassVar[type[SingleTree]]

    def _settings(self, given: dict[str, Any], rows: TargetTable, groups: Any) -> NumberSettings:
        settings = super()._settings(given, rows, groups)
        folds = number_splits(self.cv, rows.y, make_groups(groups, len(rows.y)))
        return replace(settings, folds=folds, selection=PRICES[given["selection"]])

    def _keep(self, rows: TargetTable, solved: NumberTree) -> None:
        super()._keep(rows, solved)
        points = solved.points
        names = [field.name for field in fields(NumberPoint)]
        self.cv_results_ = {name: np.array([getattr(p, name) for p in points]) for name in names}
        self.best_params_ = {"depth": solved.depth, "strength": solved.strength}
        self.held_out_predictions_ = solved.held_out
        self.best_score_ = 1.0 - points[solved.chosen].error if points else float("nan")
        given = {name: getattr(self, name) for name in self._single().get_params()}
        chosen = self._single(**given | self.best_params_)
        chosen.tree_, chosen.end_ = self.tree_, self.end_
        know_table(chosen, self.tree_, named=rows.named)
        self.best_estimator_ = chosen


def _solved(
    rows: TargetTable, family: LeafFamily, settings: NumberSettings, seed: int, budget: Budget
) -> NumberTree:
    """Return the tree of the solver."""
    effects = () if rows.monotone is None else rows.monotone.features
    asked = NumberRows(
        X=rows.X,
        targets=Numbers.of(rows.y, rows.weight, rows.offset),
        groups=rows.groups,
        prices=rows.prices,
        monotone=tuple((columns, sign) for sign, columns, _ in effects),
    )
    return budget.insist(lambda: fit_numbers(asked, family, settings, seed, budget))
