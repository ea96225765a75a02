"""What both estimators do: check their rows and parameters, and keep the tree that was trained."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from softsplit.engines.registry import EngineMaker
from softsplit.estimators.fitted import FittedTree
from softsplit.problem.loss import Loss
from softsplit.solvers import Solver
from softsplit.support.inputs import (
    made_floats,
    refuse_infinite,
    refuse_masked,
    refuse_mixed_labels,
    refuse_text,
)
from softsplit.training import settings
from softsplit.training.preparation import ModelSettings, Prepared, Rows
from softsplit.training.run import Outcome, Run

Described = TypeVar("Described", bound=type)


class SoftTreeBase(FittedTree, ClassifierMixin, BaseEstimator):
    """Parameters that both estimators have; ``SoftTreeClassifier`` describes them."""

    def __init__(
        self,
        *,
        sharpness: float,
        exponent: float,
        offset: float,
        loss: str | Loss,
        cost_matrix: Any,
        class_weight: Any,
        min_class_rate: Any,
        solver: str | Solver,
        engine: str | EngineMaker,
        n_starts: int,
        max_iter: int | None,
        tol: float,
        time_limit: float | None,
        n_jobs: int | None,
        random_state: Any,
        verbose: int,
    ) -> None:
        self.sharpness = sharpness
        self.exponent = exponent
        self.offset = offset
        self.loss = loss
        self.cost_matrix = cost_matrix
        self.class_weight = class_weight
        self.min_class_rate = min_class_rate
        self.solver = solver
        self.engine = engine
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


def model_settings(estimator: SoftTreeBase, **chosen: Any) -> ModelSettings:
    """What an estimator is to train, from its parameters and what has been chosen for it."""
    return ModelSettings.of({**estimator.get_params(deep=False), **chosen})


def training_run(estimator: SoftTreeBase) -> Run:
    """How an estimator trains, from its parameters; the clock runs from now on."""
    settings.make_verbose(estimator.verbose)
    return Run.of(
        solver=estimator.solver,
        n_starts=estimator.n_starts,
        max_iter=estimator.max_iter,
        tol=estimator.tol,
        time_limit=estimator.time_limit,
        n_jobs=estimator.n_jobs,
        random_state=estimator.random_state,
    )


def training_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Validated rows; the estimator knows from now on how many features it has, and their names."""
    refuse_text(X)
    refuse_masked("y", y)
    with made_floats():
        # Single precision stays as it is: training makes the only copy in double precision,
        # of the scaled rows.
        X, y = validate_data(
            estimator, X, y, dtype=[np.float64, np.float32], order="C", ensure_all_finite=False
        )
    names = getattr(estimator, "feature_names_in_", None)
    refuse_infinite(X, names)
    refuse_mixed_labels(y)
    check_classification_targets(y)
    weight = settings.make_weights(
        _check_sample_weight(
            settings.make_numbers("sample_weight", sample_weight),
            X,
            dtype=np.float64,
            ensure_non_negative=True,
        )
    )
    classes = np.unique(y[weight > 0])
    if len(classes) < 2:
        raise ValueError(
            f"y holds {'one class' if len(classes) else 'no class'} of positive weight; "
            "a classifier needs samples of at least two classes."
        )
    # Rows of zero weight may carry labels that are no class; their index is never used.
    labels = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    return Rows(X, labels, weight, classes, names, sample_weight is not None)


def keep(
    estimator: Any,
    prepared: Prepared,
    outcome: Outcome,
    zero_threshold: float,
    *,
    importances: bool = True,
) -> None:
    """Make an estimator a fitted one."""
    estimator.n_features_in_ = prepared.problem.n_features
    if prepared.names is not None:
        estimator.feature_names_in_ = prepared.names
    estimator.solution_ = outcome.best
    estimator.starts_ = list(outcome.starts)
    estimator.end_ = outcome.end.value
    estimator.tree_ = prepared.tree(outcome.best, zero_threshold, importances=importances)


def described_as_in(other: type) -> Callable[[Described], Described]:
    """Decorator: parameters that a class describes "as in" another get the description there.

    It stands once in the source; ``help`` and notebooks show it in both places.
    """

    def describe(cls: Described) -> Described:
        text = inspect.cleandoc(cls.__doc__ or "")
        known = _described_parameters(inspect.cleandoc(other.__doc__ or ""))

        def described(found: re.Match[str]) -> str:
            return "".join(dict.fromkeys(known[name] for name in found[1].split(", ")))

        if known:  # not so under python -OO
            asked = rf"^(\S.*)\n    As in ``{other.__name__}``\.\n"
            cls.__doc__ = re.sub(asked, described, text, flags=re.MULTILINE)
        return cls

    return describe


def _described_parameters(text: str) -> dict[str, str]:
    """The lines of a docstring about each parameter, by its name."""
    section = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0] + "\n"
    entries = re.findall(r"^\S.*\n(?:    .*\n)*", section, re.MULTILINE)
    return {name: entry for entry in entries for name in entry.partition(" : ")[0].split(", ")}
