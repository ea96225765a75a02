"""Other methods to compare a tree with.

majority    class shares of the training rows
logistic    L1 logistic regression, one class against the rest, its strength by inner folds
cart        scikit-learn's decision tree, its number of leaves by inner folds
boosting    histogram gradient boosting with its defaults, as an upper reference

Each is trained on the same rows as the trees and predicts probabilities of all classes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from softsplit.support.arrays import FloatArray
from softsplit.support.parallel import one_blas_thread

Codes = NDArray[np.int64]

TITLES = {
    "majority": "most frequent class",
    "logistic": "L1 logistic regression",
    "cart": "CART (plain decision tree)",
    "boosting": "gradient boosting",
}
BASELINES = tuple(TITLES)
LOGISTIC_GRID = tuple(10.0**e for e in range(-2, 3))


CART_LEAVES = (3, 6, 12, 25, 50, 100)
"""Numbers of leaves of CART to choose from, from simple to complex."""

CHOICE_ROWS = 2000
"""Rows on which a setting is chosen inside a fold."""

CELLS_PER_THREAD = 400_000
"""Cells for each thread of boosting. With fewer, threads wait for one another, and on cores
that others use they spin: 1,470 rows took 8.1 s with two threads and 0.96 with one."""

FAILED_SCORE = -1e9
"""Score of a model that cannot be trained on a fold."""

EXACT_ROWS = 5000
"""Rows up to which the last logistic regression ends at the tight tolerance: where a
hyperplane separates the classes, its last digits can take minutes."""

TIGHT_TOL = 1e-4
"""Tolerance of the last logistic regression."""

LOOSE_TOL = 1e-3
"""Tolerance while its strength is chosen, and beyond ``EXACT_ROWS``."""


@dataclass(frozen=True)
class Trained:
    """Probabilities of the test rows by a trained baseline, and the columns that it uses."""

    proba: FloatArray
    used: NDArray[np.intp]


def train_baseline(
    name: str,
    X: FloatArray,
    labels: Codes,
    test: FloatArray,
    weights: FloatArray,
    seed: int,
    threads: int = 1,
) -> Trained:
    """Train a baseline and return its class probabilities for the test rows.

    Parameters
    ----------
    name : one of BASELINES
    X, labels : training rows
    test : rows to predict
    weights : array of shape (n_classes,)
        Weight of a row of each class, as in the training of the tree.
    seed : int
    threads : int
        Most threads of boosting, which uses as many of them as pay.
    """
    n_classes = len(weights)
    seen = np.unique(labels)
    if name == "majority" or len(seen) < 2:
        shares = np.bincount(labels, minlength=n_classes) * weights
        return Trained(np.tile(shares / shares.sum(), (len(test), 1)), np.zeros(0, dtype=np.intp))
    # scikit-learn wants the codes 0, 1, ... of the classes that are present.
    codes = np.searchsorted(seen, labels)
    counted = None
    if np.any(weights != weights[0]):
        counted = {k: float(weights[label]) for k, label in enumerate(seen)}
    # Squares of very large numbers overflow, and CART computes in single precision.
    unit = MaxAbsScaler().fit(X)
    X, test = unit.transform(X), unit.transform(test)
    make = {"logistic": _logistic, "cart": _cart, "boosting": _boosting}[name]
    # The limit is that of the thread which sets it.
    with threadpool_limits(max(1, min(threads, X.size // CELLS_PER_THREAD)), "openmp"):
        model, used = make(X, codes, counted, seed)
        proba = np.zeros((len(test), n_classes))
        proba[:, seen] = model.predict_proba(test)
    return Trained(proba, used)


def be_worker() -> None:
    """Prepare a worker process: with one BLAS thread, as where trees are trained, and silently."""
    limit = one_blas_thread()
    limit.__enter__()
    _held.append(limit)
    warnings.simplefilter("ignore")


_held: list[Any] = []
"""In a worker process: what holds BLAS to one thread."""


def _logistic(X: FloatArray, codes: Codes, counted: Any, seed: int) -> tuple[Any, NDArray[np.intp]]:
    name = "onevsrestclassifier__estimator__"
    model = _sparse_logistic(counted, seed).set_params(**{f"{name}tol": LOOSE_TOL})
    strength = _chosen(model, f"{name}C", LOGISTIC_GRID, 1.0, X, codes, seed)
    tol = TIGHT_TOL if len(codes) <= EXACT_ROWS else LOOSE_TOL
    model.set_params(**{f"{name}C": strength, f"{name}tol": tol}).fit(X, codes)
    coefficients = [e.coef_ for e in model[-1].estimators_ if hasattr(e, "coef_")]
    used = [np.flatnonzero(np.any(one != 0, axis=0)) for one in coefficients]
    return model, np.unique(np.concatenate(used or [np.zeros(0, dtype=np.intp)]))


def l1_penalty() -> dict[str, Any]:
    """Return the parameters of ``LogisticRegression`` that ask for the l1 norm."""
    recent = tuple(int(n) for n in sklearn.__version__.split(".")[:2]) >= (1, 8)
    return {"l1_ratio": 1.0} if recent else {"penalty": "l1"}


def _sparse_logistic(counted: Any, seed: int) -> Any:
    sparse = l1_penalty()
    if counted is not None and len(counted) == 2:
        sparse["class_weight"] = counted
    elif counted is not None:  # one class against the rest: each of these has two classes
        sparse["class_weight"] = "balanced"
    model = LogisticRegression(solver="liblinear", max_iter=200, random_state=seed, **sparse)
    return make_pipeline(StandardScaler(), OneVsRestClassifier(model))


def _cart(X: FloatArray, codes: Codes, counted: Any, seed: int) -> tuple[Any, NDArray[np.intp]]:
    model = DecisionTreeClassifier(class_weight=counted, random_state=seed, min_samples_leaf=3)
    model.set_params(
        max_leaf_nodes=_chosen(model, "max_leaf_nodes", CART_LEAVES, 12, X, codes, seed)
    ).fit(X, codes)
    asked = model.tree_.feature[model.tree_.feature >= 0]
    return model, np.unique(asked)


def _boosting(X: FloatArray, codes: Codes, counted: Any, seed: int) -> tuple[Any, NDArray[np.intp]]:
    model = HistGradientBoostingClassifier(class_weight=counted, random_state=seed)
    return model.fit(X, codes), np.flatnonzero(np.ptp(X, axis=0) > 0)


def _chosen(
    model: Any, name: str, grid: Any, otherwise: Any, X: FloatArray, codes: Codes, seed: int
) -> Any:
    """Return the value of a setting with the best score on inner folds of some of the rows.

    Values are tried from the simplest model on until one is worse than the last: later ones fit
    more closely and take longer, regressions that separate all rows longest.
    """
    few = np.random.default_rng(seed).permutation(len(codes))[:CHOICE_ROWS]
    if np.bincount(codes).min() < 2 or len(np.unique(codes[few])) < 2:
        return otherwise
    scoring = "accuracy" if len(np.unique(codes[few])) < len(np.unique(codes)) else "neg_log_loss"
    best, highest = otherwise, -np.inf
    for value in grid:
        model.set_params(**{name: value})
        scores = cross_val_score(
            model, X[few], codes[few], cv=3, scoring=scoring, error_score=FAILED_SCORE
        )
        score = float(np.mean(scores))
        if score < highest:
            break
        if score > highest:  # the simplest of equals
            best, highest = value, score
    return best
