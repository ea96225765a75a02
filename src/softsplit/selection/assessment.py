"""How good the trees along a path of strengths are, on rows that they were not trained on.

Strengths are given as fractions of a unit (strengths.py). Every row is predicted once, by a tree
that was trained without it; majority class and L1 logistic regression are judged on the same folds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from softsplit.selection.cross_validation import prepare_fold, walk_fold, whole_trees
from softsplit.selection.strengths import Pair
from softsplit.support.arrays import FloatArray
from softsplit.support.parallel import in_threads, n_workers, one_blas_thread
from softsplit.training.preparation import ModelSettings, Rows
from softsplit.training.run import CheckRows, Run

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


@dataclass(frozen=True)
class PathTrainer:
    """Trains the trees of a path on some of the rows.

    Parameters
    ----------
    settings : ModelSettings
    rows : Rows
    shares : pair of float
        Parts of a strength that are local and global.
    fractions : sequence of float
        Strengths from weak to strong.
    run : Run
    check : callable
        Validates rows that the solver looks at.
    """

    settings: ModelSettings
    rows: Rows
    shares: Pair
    fractions: Sequence[float]
    run: Run
    check: CheckRows

    def predict(self, train: Codes, test: Codes) -> list[Codes]:
        """Classes of the test rows by the trees of the training rows; fewer if time ran out."""
        rows = self.rows.part(train)
        present = np.flatnonzero(rows.present())
        if len(present) < 2:  # nothing to learn: all rows are of one class
            return [np.full(len(test), present[0])] * len(self.fractions)
        if self.run.budget.exhausted:
            return []
        prepared = prepare_fold(self.settings, rows)
        run = self.run.adapted(prepared, self.check)
        found = whole_trees(walk_fold(prepared, self.shares, self.fractions, run))
        trees = [prepared.tree(s, run.solver.zero_threshold, importances=False) for s in found]
        return [present[tree.predict_index(self.rows.X[test])] for tree in trees]


def assess(
    trainer: PathTrainer, *, n_folds: int = 5, seed: int = 0, say: Say = lambda _: None
) -> Assessment:
    """Judge the trees of a path, and the two plain methods, on folds.

    An interruption ends the work: what was judged by then is told.
    """
    rows, budget = trainer.rows, trainer.run.budget
    labels = rows.labels
    splits = _splits(labels, n_folds, seed)
    trees = np.full((len(trainer.fractions), len(labels)), NOT_JUDGED, dtype=np.int64)
    majority, logistic = np.full((2, len(labels)), NOT_JUDGED, dtype=np.int64)
    used = np.zeros(len(splits))

    def run(fold: int) -> None:
        train, test = splits[fold]
        for point, called in enumerate(trainer.predict(train, test)):
            trees[point, test] = called
        say(f"trees: fold {fold + 1} of {len(splits)} is judged")

    try:
        for fold, (train, test) in enumerate(splits):
            majority[test] = np.bincount(labels[train]).argmax()
            logistic[test], used[fold] = _logistic(rows.X, labels, train, test, seed)
            say(f"logistic regression: fold {fold + 1} of {len(splits)} is judged")
        with one_blas_thread():
            workers = n_workers(trainer.run.n_jobs, len(splits))
            in_threads(run, range(len(splits)), workers, budget.stop)
    except KeyboardInterrupt:
        budget.stop()
    return Assessment(labels, trees, majority, logistic, float(np.mean(used)), len(splits))


def _splits(labels: Codes, n_folds: int, seed: int) -> list[tuple[Codes, Codes]]:
    largest = int(np.max(np.bincount(labels)))
    folds = StratifiedKFold(max(2, min(n_folds, largest)), shuffle=True, random_state=seed)
    with warnings.catch_warnings():  # a class too rare for some folds counts as wrong there
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(folds.split(labels, labels))


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
