"""Shared parts of the estimators: parameters, validated rows, and the fitted attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from softsplit.estimators.fitted import ClassTree
from softsplit.estimators.readings import ReadableTree
from softsplit.estimators.row_reading import know_table
from softsplit.estimators.training_rows import training_rows
from softsplit.fitted.model import TreeModel
from softsplit.fitted.profile import TableProfile
from softsplit.formulations import formulation_of
from softsplit.formulations.model_settings import ModelSettings
from softsplit.settings.parameter import checked
from softsplit.settings.table import ColumnParameters, ProblemParameters, RunParameters
from softsplit.support.hinged_table import HingedTable
from softsplit.support.inputs import device_of, refuse_lengths
from softsplit.support.messages import warn_user
from softsplit.support.row_budgets import ROWS
from softsplit.training.fitted_tree import fitted_tree
from softsplit.training.preparation import Prepared
from softsplit.training.rows import Rows, TrainingRows
from softsplit.training.run import Outcome, Run
from softsplit.variables import Coding, IdentifierUsed, looks_like_identifier
from softsplit.variables.variable import NUMBER


class CutShortWarning(ConvergenceWarning):
    """The user or a limit ended the training, and the best result so far is kept.

    Attributes
    ----------
    source : str
        The estimator or function that was at work.
    reason : str
        What ended it and what is kept, as a sentence.
    interrupted : bool
        Whether the user ended it by Ctrl-C.
    """

    def __init__(self, source: str, reason: str, interrupted: bool) -> None:
        super().__init__(source, reason, interrupted)
        self.source, self.reason, self.interrupted = source, reason, interrupted

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


@contextmanager
def all_or_nothing(estimator: object) -> Iterator[None]:
    """Restore all attributes of ``estimator`` if the block ends in an error or an interruption.

    A fit that fails leaves the former tree, or none, and no mixture.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@dataclass(kw_only=True, eq=False, repr=False)
class SoftTreeBase(
    RunParameters, ColumnParameters, ProblemParameters, ReadableTree, ClassTree, ClassifierMixin,
    BaseEstimator,
):  # fmt: skip
    """What both classifiers have in common; their parameters are those of the table."""

    def _rows(
        self, X: Any, y: Any, sample_weight: Any, sensitive: Any = None
    ) -> tuple[Rows, TrainingRows]:
        """Validated rows to compare settings on, and those to train on, here the same."""
        rows = training_rows(self, X, y, sample_weight, sensitive)
        return rows, rows

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted correctly, by weight."""
        refuse_lengths(X, y)
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags


def model_settings(estimator: SoftTreeBase, X: Any = None, **chosen: Any) -> ModelSettings:
    """Return the model settings of an estimator, with ``chosen`` ones in place of its parameters.

    Where X lies on an accelerator and no device is named, rows are kept there.
    """
    given = estimator.get_params(deep=False)
    if given.get("device") is None and given.get("engine") == "memory":
        given["device"] = device_of(X)
    settings = ModelSettings.of({**given, **chosen})
    penalty = formulation_of(settings.loss).default_penalty(settings.penalty, estimator.solver)
    return replace(settings, penalty=penalty)


def training_run(estimator: SoftTreeBase) -> Run:
    """Check the parameters of an estimator and return its run; the clock starts now."""
    checked(type(estimator), vars(estimator))  # on Dask some are no parameters of the user's
    return Run.of(estimator.get_params(deep=False))


def keep(
    estimator: Any,
    prepared: Prepared,
    outcome: Outcome,
    zero_threshold: float,
    *,
    rows: TrainingRows | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Set the fitted attributes of an estimator; ``rows`` are those to keep a summary of.

    Points are searched until ``stop`` says so.
    """
    tree = fitted_tree(prepared, outcome.best, zero_threshold, stop)
    tree = tree if rows is None else profiled(tree, rows)
    know_table(estimator, tree, named=prepared.named)
    estimator.solution_ = outcome.best
    estimator.starts_ = list(outcome.starts)
    estimator.end_ = outcome.end.value
    estimator.tree_ = tree
    if outcome.best.screening is not None:
        estimator.screening_ = outcome.best.screening


def profiled(tree: TreeModel, rows: TrainingRows) -> TreeModel:
    """Return the tree with a summary of its training table, if that is dense and in memory."""
    if type(rows) is not Rows:
        return tree
    whole, most = rows.counted(), ROWS.profile
    few = whole
    if len(few.labels) > most:
        few = few.many(np.arange(0, len(few.labels), -(-len(few.labels) // most)))
    count = few.weight / min(1.0, float(few.weight.mean()))
    classes = np.bincount(few.labels, count, len(tree.classes)).astype(float)
    trained = few.coding or tree.table_coding.with_lookups({})
    if tree.walk is None or few is whole:
        arrived = _arrived(tree, tree.recoded(few.X, trained))
        leaves = np.bincount(arrived, count, tree.topology.n_leaves).astype(float)
    else:  # all rows are counted
        leaves = count.sum() * tree.walk.counts.sum(axis=0) / tree.walk.counts.sum()
    if few.names is not None and trained.named:
        _warn_of_identifiers(tree, trained, few.X)
    profile = TableProfile.of(
        trained, tree.selected_variables, few.X, few.shared, count, classes, leaves
    )
    return replace(tree, profile=profile)


def _warn_of_identifiers(tree: TreeModel, coding: Coding, X: Any) -> None:
    """Warn where a tree asks for a number with a name that seems to number the rows."""
    for i in tree.variables_in_use:
        variable = coding.variables[i]
        whole = variable.kind == NUMBER and not (variable.has_missing or variable.part)
        if whole and looks_like_identifier(variable.name, np.asarray(X[:, coding.firsts[i]])):
            warn_user(IdentifierUsed(variable.name))


def _arrived(tree: TreeModel, X: Any) -> NDArray[np.intp]:
    """Return the leaf of each row; of a ``HingedTable`` some rows are looked at at a time."""
    if not isinstance(X, HingedTable):
        return tree.arrive(X)
    pieces, used = X.pieces(), tree.columns_in_use
    return np.concatenate([tree.arrive(X.in_use(piece, used)) for piece in pieces])
