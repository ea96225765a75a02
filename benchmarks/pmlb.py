"""Everybody on one set of tables: how good, and how much there is to read.

    python benchmarks/pmlb.py            fits, one row each, appended to --out; may be resumed
    python benchmarks/pmlb_table.py      their means into documents, README and a picture

Tables and folds are those of reading_tables.py: pmlb, the paper's sets, packages that ship data; at
most 1,500 rows each, three stratified folds. ``default`` and ``best`` are ``SoftTreeClassifierCV``
with that selection. Peers come at their defaults, or choose by themselves on five inner folds:
``cart`` (pruned), ``logistic`` (L1, by log-loss), ``boosting`` (histograms of scikit-learn),
``forest``, ``ebm`` and ``ebm-pairs`` (without interactions, and with those of its default),
``figs`` and ``hstree`` (imodels). Peers but EBM see levels as columns of 0 and 1; gaps are medians
for those that refuse gaps. A method whose package is not installed is left out with a sentence; one
that raises, or is not ready after --limit seconds, leaves a row with its sentence in "error".

Columns are columns of the table that the model reads. Look-ups are the values that a row needs,
mean over held-out rows: terms of the questions on its way in a soft tree, questions on its way in
trees (summed over those of a forest), columns with a coefficient or curves, times the classes where
each has its own equation.
"""

from __future__ import annotations

import argparse
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import Row, arguments, resumed
from methods import fit_cart, fit_peer, warm_up
from reading_tables import FOLDS, Table, coded, folds_of, tables
from reading_trees import measured as measured_tree
from reading_trees import quality
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from threadpoolctl import threadpool_limits

SHOWN = {
    "default": "**softsplit** (default)",
    "best": '**softsplit**, `selection="best"`',
    "cart": "CART, pruned",
    "logistic": "L1 logistic regression",
    "figs": "FIGS",
    "hstree": "tree with hierarchical shrinkage",
    "ebm": "explainable boosting (EBM), no interactions",
    "ebm-pairs": "explainable boosting (EBM)",
    "boosting": "histogram boosting",
    "forest": "random forest",
}
PACKAGES = {"ebm": "interpret", "ebm-pairs": "interpret", "figs": "imodels", "hstree": "imodels"}

Used = tuple[Any, np.ndarray, float]
"""A fitted model, the coded columns it reads, and its look-ups."""


# --- methods --------------------------------------------------------------------------------------


def path_lengths(trees: Any, X: np.ndarray) -> float:
    """Questions on the way of a row, summed over trees of scikit-learn."""
    return float(sum(tree.decision_path(X).sum() / len(X) - 1 for tree in trees))


def fit_pruned(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> Used:
    fit = fit_cart(X, y, 0)
    return fit.model, fit.used, path_lengths([fit.model.best_estimator_], X_test)


def fit_logistic(X: np.ndarray, y: np.ndarray, _: np.ndarray) -> Used:
    fit = fit_peer(X, y, 2000, "neg_log_loss")
    return fit.model, np.atleast_2d(fit.model[-1].coef_) != 0, 0.0


def fit_boosting(X: np.ndarray, y: np.ndarray, _: np.ndarray) -> Used:
    model = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    nodes = [one.nodes for stage in model._predictors for one in stage]
    asked = [own["feature_idx"][~own["is_leaf"].astype(bool)] for own in nodes]
    leaves = [own[own["is_leaf"].astype(bool)] for own in nodes]
    lengths = [np.average(own["depth"], weights=own["count"]) for own in leaves]
    return model, np.unique(np.concatenate(asked)), float(np.sum(lengths))


def fit_forest(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> Used:
    model = RandomForestClassifier(random_state=0).fit(X, y)
    used = np.flatnonzero(model.feature_importances_)
    return model, used, path_lengths(model.estimators_, X_test.astype(np.float32))


def fit_figs(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> Used:
    if len(np.unique(y)) > 2:
        raise ValueError("FIGS of imodels is for two classes.")
    model = import_module("imodels").FIGSClassifier(random_state=0).fit(X, y)
    asked: list[int] = []

    def length(node: Any, rows: np.ndarray) -> float:
        if node.left is None or not len(rows):
            return 0.0
        left = rows[:, node.feature] <= node.threshold
        asked.append(node.feature)
        return len(rows) + length(node.left, rows[left]) + length(node.right, rows[~left])

    lookups = sum(length(root, X_test) for root in model.trees_) / len(X_test)
    return model, np.unique(asked), lookups


def fit_shrunken(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> Used:
    order = np.random.default_rng(0).permutation(len(y))  # its inner folds take rows as they lie
    model = import_module("imodels").HSTreeClassifierCV(random_state=0).fit(X[order], y[order])
    nodes = model.estimator_.tree_.feature
    lookups = path_lengths([model.estimator_], X_test.astype(np.float32))
    return model, np.unique(nodes[nodes >= 0]), lookups


PEERS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Used]] = {
    "cart": fit_pruned,
    "logistic": fit_logistic,
    "boosting": fit_boosting,
    "forest": fit_forest,
    "figs": fit_figs,
    "hstree": fit_shrunken,
}
NO_GAPS = ("logistic", "figs", "hstree")


def measured_ebm(X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame, **given: Any) -> Any:
    """Explainable boosting on the table as it is; its columns and its curves, of every class."""
    frames = []
    for frame in (X, X_test):  # days as numbers, levels as text
        days = frame.select_dtypes("datetime").apply(lambda c: c.astype("int64").astype(float))
        words = frame.select_dtypes(exclude=["datetime", "number"]).astype(str)
        frames.append(frame.assign(**days, **words))
    boosting = import_module("interpret.glassbox").ExplainableBoostingClassifier
    model = boosting(random_state=0, n_jobs=1, **given).fit(frames[0], y)
    curves = [np.any(scores != 0) for scores in model.term_scores_]
    terms = [names for names, own in zip(model.term_features_, curves, strict=True) if own]
    n_equations = 1 if len(model.classes_) == 2 else len(model.classes_)
    facts = {"columns": len({c for term in terms for c in term})}
    return model, frames[1], facts | {"lookups": float(len(terms) * n_equations)}


def measured_peer(X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame, method: str) -> Any:
    """A peer on coded columns; which columns of the table these come from is known by name."""
    own, names = coded(X)
    new = coded(X_test, names)[0]
    if method in NO_GAPS:
        middle = np.nan_to_num(np.nanmedian(own, axis=0))
        own, new = (np.where(np.isnan(rows), middle, rows) for rows in (own, new))
    model, used, lookups = PEERS[method](own, y, new)
    known = sorted(map(str, X.columns), key=len)
    homes = [[c for c in known if f"{name} ".startswith(f"{c} ")][-1] for name in names]
    if used.ndim == 2:  # a level is one of its column: a look-up in an equation is a column
        lookups = float(sum(len({homes[j] for j in np.flatnonzero(line)}) for line in used))
        used = np.flatnonzero(used.any(axis=0))
    return model, new, {"columns": len({homes[j] for j in used}), "lookups": lookups}


def measured(table: Table, fold: int, method: str) -> Row:
    """Fit and judge one model on one thread."""
    if method in ("default", "best"):
        return measured_tree(table, fold, method)
    train, test = folds_of(table)[fold]
    X, X_test = table.X.iloc[train], table.X.iloc[test]
    classes, y = np.unique(table.y[train], return_inverse=True)
    began = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        if method.startswith("ebm"):
            given = {"interactions": 0} if method == "ebm" else {}
            model, new, facts = measured_ebm(X, y, X_test, **given)
        else:
            model, new, facts = measured_peer(X, y, X_test, method)
        seconds = time.process_time() - began
        predicted, proba = (
            classes[np.asarray(model.predict(new)).astype(int)],
            model.predict_proba(new),
        )
    facts |= quality(classes, predicted, proba / proba.sum(axis=1, keepdims=True), table.y[test])
    return facts | {"rows": len(y), "seconds": seconds, "settled": table.settled}


def ending(limit: int, table: Table, fold: int, method: str) -> Row:
    """As ``measured``; the sentence of an error, or of the end of its time, in place of figures."""

    def ring(*_: Any) -> None:
        raise TimeoutError(f"not ready after {limit} s.")

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(limit)
    try:
        return measured(table, fold, method)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        signal.alarm(0)


def run(args: argparse.Namespace) -> None:
    """Fit what is not in the file yet; a line is added after each fit."""
    missing = [m for m in args.methods if m in PACKAGES and not find_spec(PACKAGES[m])]
    for method in missing:
        print(f"{method} is left out: the package {PACKAGES[method]} is not installed.", flush=True)
    if {"default", "best"} & set(args.methods):
        warm_up()

    def tasks() -> Iterator[Any]:
        for table in tables(args.groups, None, args.datasets):
            for fold in args.folds:
                for method in (m for m in args.methods if m not in missing):
                    key = {"group": table.group, "dataset": table.name, "fold": fold}
                    yield key | {"method": method}, partial(ending, args.limit, table, fold, method)

    for row in resumed(args.out, tasks()):
        said = (
            row.get("error") or f"{row['accuracy']:.3f} {row['log_loss']:.3f} {row['lookups']:.1f}"
        )
        print(row["dataset"], row["fold"], row["method"], said, flush=True)


def main() -> None:
    args = arguments(
        __doc__,
        out=Path("results/pmlb.jsonl"),
        groups=(["pmlb", "paper", "packages"], "of tables"),
        datasets=([], "only these"),
        methods=(list(SHOWN), "of the fits"),
        folds=list(range(FOLDS)),
        limit=(900, "seconds of a fit"),
    )
    run(args)


if __name__ == "__main__":
    main()
