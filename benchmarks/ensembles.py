"""Accuracy and features of bagged trees against their number.

    python benchmarks/ensembles.py                  six data sets, about five minutes
    python benchmarks/ensembles.py --data wine --trees 4 --folds 2

Stratified folds; in each one tree is trained on all training rows with ten starts, and two
``BaggingClassifier`` with one start per tree: on bootstrap samples of the rows ("bagging"), and on
bootstrap samples of rows with half of the features drawn for each tree ("subspaces"). The first m
trees of an ensemble are an ensemble of m trees, so that one training serves every number. The
price of a feature is the same part of the training rows everywhere. Rows go to --out as
ensembles.csv, and the tables of docs/results/ensembles.md are printed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import StratifiedKFold

from softsplit import SoftTreeClassifier, load_dataset

DATA = ["diabetes", "german-credit", "ionosphere", "segment", "sonar", "vehicle"]
PRICE = 0.002
"""Global strength per training row: a feature must save four errors in a thousand rows."""

SINGLE = "one tree"
VARIANTS = {"bagging": 1.0, "subspaces": 0.5}
SIZES = (1, 2, 5, 10, 20, 30, 50, 100)


def tree(n_rows: int, n_starts: int, seed: int) -> SoftTreeClassifier:
    settings = {"loss": "cost", "n_starts": n_starts, "random_state": seed}
    return SoftTreeClassifier(global_strength=PRICE * n_rows, **settings)


def used_features(ensemble: Any) -> list[set[int]]:
    """Features of each tree, as columns of X."""
    pairs = zip(ensemble.estimators_, ensemble.estimators_features_, strict=True)
    return [set(columns[fitted.selected_features_].tolist()) for fitted, columns in pairs]


def ensemble_rows(
    variant: str, X: Any, y: Any, train: Any, test: Any, n_trees: int, seed: int
) -> Iterator[dict[str, Any]]:
    began = time.process_time()
    ensemble = BaggingClassifier(
        tree(len(train), 1, seed),
        n_estimators=n_trees,
        max_features=VARIANTS[variant],
        random_state=seed,
    ).fit(X[train], y[train])
    seconds = time.process_time() - began
    votes = np.array(
        [
            fitted.predict_proba(X[test][:, columns])
            for fitted, columns in zip(
                ensemble.estimators_, ensemble.estimators_features_, strict=True
            )
        ]
    )
    features = used_features(ensemble)
    for m in [size for size in SIZES if size <= n_trees]:
        called = ensemble.classes_[votes[:m].mean(axis=0).argmax(axis=1)]
        yield {
            "model": variant,
            "trees": m,
            "accuracy": float(np.mean(called == y[test])),
            "features": len(set().union(*features[:m])),
            "features_per_tree": float(np.mean([len(part) for part in features[:m]])),
            "seconds": seconds * m / n_trees,
        }


def single_row(X: Any, y: Any, train: Any, test: Any, seed: int) -> dict[str, Any]:
    began = time.process_time()
    fitted = tree(len(train), 10, seed).fit(X[train], y[train])
    n_features = len(fitted.selected_features_)
    return {
        "model": SINGLE,
        "trees": 1,
        "accuracy": fitted.score(X[test], y[test]),
        "features": n_features,
        "features_per_tree": float(n_features),
        "seconds": time.process_time() - began,
    }


def measure(name: str, n_trees: int, n_folds: int, seed: int) -> pd.DataFrame:
    """One row per fold, model and number of trees."""
    data = load_dataset(name)
    X, y = np.asarray(data.X), np.asarray(data.y)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    rows = []
    for fold, (train, test) in enumerate(folds.split(X, y)):
        found = [single_row(X, y, train, test, seed)]
        for variant in VARIANTS:
            found += ensemble_rows(variant, X, y, train, test, n_trees, seed)
        rows += [{"data": name, "n_features": X.shape[1], "fold": fold, **row} for row in found]
    return pd.DataFrame(rows)


def table(results: pd.DataFrame, value: str, form: str) -> str:
    """Markdown: a row per data set, a column per model and number of trees."""
    means = results.groupby(["data", "model", "trees"], sort=True)[value].mean()
    columns = [(SINGLE, 1)]
    columns += [(v, m) for v in VARIANTS for m in sorted(set(results.trees))]
    head = ["data"] + [SINGLE if v == SINGLE else f"{v} {m}" for v, m in columns]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * len(columns)]
    names = sorted(set(results.data))
    for name in names:
        cells = [format(means[(name, *column)], form) for column in columns]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    average = [format(np.mean([means[(n, *c)] for n in names]), form) for c in columns]
    lines.append("| **mean** | " + " | ".join(average) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=DATA, help="names of data sets")
    parser.add_argument("--trees", type=int, default=30)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None, help="folder for ensembles.csv")
    given = parser.parse_args()
    parts = []
    for name in given.data:
        began = time.process_time()
        parts.append(measure(name, given.trees, given.folds, given.seed))
        print(f"{name}: {time.process_time() - began:.0f} s of processor time", flush=True)
        results = pd.concat(parts)
        if given.out is not None:  # after each data set, so that an interruption loses one
            given.out.mkdir(parents=True, exist_ok=True)
            results.to_csv(given.out / "ensembles.csv", index=False)
    results = results.assign(accuracy=100 * results.accuracy)
    for value, form in (("accuracy", ".1f"), ("features", ".1f"), ("features_per_tree", ".1f")):
        print(f"\n{value}\n\n{table(results, value, form)}")
    print(f"\nseconds of training per fold\n\n{table(results, 'seconds', '.1f')}")


if __name__ == "__main__":
    main()
