"""Trees along a path of strengths: on all rows to look at, and on folds to say how good they are.

A strength is given as a fraction of the cost of the cheapest tree that uses no feature, as in
``selection.strengths``. Every row is predicted once, by a tree that was trained without it;
majority class and L1 logistic regression are judged on the same folds.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sklearn
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from softsplit.estimators.classifier import RunSettings, SoftTreeClassifier
from softsplit.problem.problem import TrainingProblem
from softsplit.selection.cross_validation import PATH_ITERATIONS, whole_trees
from softsplit.selection.strengths import featureless_cost, with_strengths
from softsplit.solvers import Budget, Solution
from softsplit.support.arrays import FloatArray
from softsplit.support.parallel import n_workers, one_blas_thread
from softsplit.training.walk import walk

NOT_JUDGED = -1
LOGISTIC_GRID = tuple(10.0**e for e in range(-2, 3))
CHOICE_ROWS = 2000
"""Rows on which the strength of the logistic regression is chosen inside a fold."""
EXACT_ROWS, EXACT, LOOSE = 5000, 1e-4, 1e-3
"""Beyond this many rows the logistic regression ends at a looser tolerance: where a hyperplane
parts the classes the last digits of its coefficients can take minutes."""

Codes = NDArray[np.int64]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Assessment:
    """Predictions of rows by models that were trained without them.

    Attributes
    ----------
    labels : array of int, shape (n_rows,)
        The right classes.
    trees : array of int, shape (n_points, n_rows)
        Of the trees along the path; -1 where the work was cut short.
    majority, logistic : array of int, shape (n_rows,)
    logistic_features : float
        Features that the logistic regression uses, on average over the folds.
    n_folds : int
    """

    labels: Codes
    trees: Codes
    majority: Codes
    logistic: Codes
    logistic_features: float
    n_folds: int

    def judged(self, point: int) -> bool:
        """Whether every row was predicted at this point."""
        return bool(np.all(self.trees[point] != NOT_JUDGED))


def path_trees(
    base: SoftTreeClassifier, X: Any, y: Any, fractions: Sequence[float], budget: Budget
) -> list[SoftTreeClassifier]:
    """Fitted trees at each strength, from weak to strong; fewer if the budget ran out."""
    model = clone(base)
    run = model._run_settings()._replace(budget=budget)
    with one_blas_thread():
        problem = model._prepare(X, y, None)
        found = _walked(model, problem, fractions, run)
    pairs = [_strengths(base, f, problem) for f in fractions]
    return [
        model._fitted_with(*pair, solution, problem.samples)
        for pair, solution in zip(pairs, found, strict=False)
    ]


def assess(
    base: SoftTreeClassifier,
    X: FloatArray,
    y: NDArray[Any],
    fractions: Sequence[float],
    *,
    n_folds: int = 5,
    seed: int = 0,
    n_jobs: int | None = None,
    budget: Budget | None = None,
    say: Say = lambda _: None,
) -> Assessment:
    """Judge the trees of a path, and the two plain methods, on folds.

    An interruption ends the work: what was judged by then is told.
    """
    classes, labels = np.unique(y, return_inverse=True)
    splits = _splits(labels, n_folds, seed)
    budget = budget or Budget()
    trees = np.full((len(fractions), len(y)), NOT_JUDGED, dtype=np.int64)
    majority, logistic = np.full((2, len(y)), NOT_JUDGED, dtype=np.int64)
    used = np.zeros(len(splits))
    running: set[int] = set()

    def run(fold: int) -> None:
        running.add(fold)
        try:
            train, test = splits[fold]
            path = _fold_path(base, X, y, train, test, fractions, budget)
            for point, called in enumerate(path):
                trees[point, test] = np.searchsorted(classes, called)
            say(f"trees: fold {fold + 1} of {len(splits)} is judged")
        finally:
            running.discard(fold)

    try:
        for fold, (train, test) in enumerate(splits):
            majority[test] = np.bincount(labels[train]).argmax()
            logistic[test], used[fold] = _logistic(X, labels, train, test, seed)
            say(f"logistic regression: fold {fold + 1} of {len(splits)} is judged")
        with one_blas_thread():
            parallel = Parallel(n_jobs=n_workers(n_jobs, len(splits)), require="sharedmem")
            parallel(delayed(run)(fold) for fold in range(len(splits)))
    except KeyboardInterrupt:
        budget.cancel.requested = True  # threads stop at their next look at it
        while running:
            time.sleep(0.01)
    return Assessment(labels, trees, majority, logistic, float(np.mean(used)), len(splits))


def _splits(labels: Codes, n_folds: int, seed: int) -> list[tuple[Codes, Codes]]:
    largest = int(np.max(np.bincount(labels)))
    folds = StratifiedKFold(max(2, min(n_folds, largest)), shuffle=True, random_state=seed)
    with warnings.catch_warnings():  # a class too rare for some folds counts as wrong there
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(folds.split(labels, labels))


def _fold_path(
    base: SoftTreeClassifier,
    X: FloatArray,
    y: NDArray[Any],
    train: Codes,
    test: Codes,
    fractions: Sequence[float],
    budget: Budget,
) -> list[NDArray[Any]]:
    """What the trees of one fold say about its test rows."""
    seen = np.unique(y[train])
    if len(seen) < 2:  # nothing to learn: all rows are of one class
        return [np.full(len(test), seen[0])] * len(fractions)
    if budget.exhausted:
        return []
    model = clone(base)
    run = model._run_settings()._replace(budget=budget)
    problem = model._prepare(X[train], y[train], None)
    found = whole_trees(_walked(model, problem, fractions, run))
    return [model._fitted_with(0.0, 0.0, s).predict(X[test]) for s in found]


def _walked(
    model: SoftTreeClassifier,
    problem: TrainingProblem,
    fractions: Sequence[float],
    run: RunSettings,
) -> list[Solution]:
    return walk(
        [with_strengths(problem, *_strengths(model, f, problem)) for f in fractions],
        model._adapted(run.solver),
        keep=1,
        n_starts=run.n_starts,
        seed=run.seed,
        budget=replace(run.budget, max_iter=run.budget.max_iter or PATH_ITERATIONS),
        thorough=False,
    )


def _strengths(
    base: SoftTreeClassifier, fraction: float, problem: TrainingProblem
) -> tuple[float, float]:
    """Local and global strength, in the proportion in which the base has them."""
    local, overall = float(base.local_strength), float(base.global_strength)
    total = local + overall
    part = local / total if total > 0 else 0.0
    strength = fraction * featureless_cost(problem)
    return part * strength, (1 - part) * strength


def _logistic(
    X: FloatArray, labels: Codes, train: Codes, test: Codes, seed: int
) -> tuple[Codes, float]:
    """L1 logistic regression, one class against the rest, its strength by inner folds."""
    seen, counts = np.unique(labels[train], return_counts=True)
    if len(seen) < 2:
        return np.full(len(test), seen[0]), 0.0
    model = _sparse_logistic(seed)
    with warnings.catch_warnings():  # slow convergence at the weakest strength, rare classes
        warnings.simplefilter("ignore")
        strength = 1.0
        if counts.min() >= 2:
            few = np.random.default_rng(seed).permutation(train)[:CHOICE_ROWS]
            search = GridSearchCV(
                model, {"onevsrestclassifier__estimator__C": LOGISTIC_GRID}, cv=3, error_score=0.0
            )
            if len(np.unique(labels[few])) > 1:
                search.fit(X[few], labels[few])
                strength = search.best_params_["onevsrestclassifier__estimator__C"]
        tol = EXACT if len(train) <= EXACT_ROWS else LOOSE
        model.set_params(
            onevsrestclassifier__estimator__C=strength, onevsrestclassifier__estimator__tol=tol
        ).fit(X[train], labels[train])
    coefficients = [e.coef_ for e in model[-1].estimators_ if hasattr(e, "coef_")]
    used = np.any(np.vstack(coefficients) != 0, axis=0).sum() if coefficients else 0
    return model.predict(X[test]), float(used)


def _sparse_logistic(seed: int) -> Any:
    recent = tuple(int(n) for n in sklearn.__version__.split(".")[:2]) >= (1, 8)
    sparse: dict[str, Any] = {"l1_ratio": 1.0} if recent else {"penalty": "l1"}
    model = LogisticRegression(solver="liblinear", max_iter=200, random_state=seed, **sparse)
    # Squares of very large numbers are no numbers: they are made smaller first.
    return make_pipeline(MaxAbsScaler(), StandardScaler(), OneVsRestClassifier(model))
