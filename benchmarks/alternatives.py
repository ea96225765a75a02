"""Alternatives to the chosen tree, on rows that none has seen.

    python benchmarks/alternatives.py [--folds 3] [--datasets iris wine]

The 24 data sets of the paper, some outer folds each (stratified, shuffled by --fold-seed). For each
fold: how many alternatives there are of five asked for, what they and the chosen tree score on the
rows of the fold, and the standard error of the difference of their log-losses there. A table of all
data sets and what it comes to are printed, and written to --document if one is given.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from methods import outer_folds, put_into, table_of

from selection import paper_datasets
from softsplit import SoftTreeClassifierCV
from softsplit.support.arrays import mean_and_error

ASKED = 5
NEEDED = 3
"""Alternatives that a data set should have."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folds", type=int, default=3, help="outer folds of five that are run")
    parser.add_argument("--fold-seed", type=int, default=7)
    parser.add_argument("--datasets", nargs="*")
    parser.add_argument("--document", type=Path, help="file to put the table into")
    args = parser.parse_args()
    rows = []
    for name in args.datasets or paper_datasets():
        X, y = table_of(name)
        folds = outer_folds(y, args.fold_seed)
        for fold, (train, test) in enumerate(folds):
            if fold < args.folds:
                rows.append({"dataset": name, **measured(X[train], y[train], X[test], y[test])})
        print(summary(pd.DataFrame(rows)).splitlines()[-1], name, flush=True)
    put_into(args.document, summary(pd.DataFrame(rows)))


def measured(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> dict:
    """One fold: the chosen tree and its alternatives."""
    began = time.perf_counter()
    tree = SoftTreeClassifierCV(random_state=0).fit(X, y)
    fitted = time.perf_counter()
    found = tree.alternatives(ASKED)
    ended = time.perf_counter()
    own = losses(tree, X_test, y_test)
    gaps, right, new = [], [], []
    for one in found:
        gaps.append(mean_and_error(losses(one.tree, X_test, y_test) - own, np.ones(len(own))))
        right.append(one.tree.score(X_test, y_test))
        new.append(len(one.new_features))
    mean = float(np.mean([gap for gap, _ in gaps])) if gaps else np.nan
    error = float(np.mean([error for _, error in gaps])) if gaps else np.nan
    return {
        "alternatives": len(found),
        "accuracy": tree.score(X_test, y_test),
        "their accuracy": float(np.mean(right)) if right else np.nan,
        "log-loss": float(own.mean()),
        "behind": mean,
        "error": error,
        "new features": float(np.mean(new)) if new else np.nan,
        "fit s": fitted - began,
        "alternatives s": ended - fitted,
    }


def losses(tree: object, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The log-loss of each row."""
    proba = tree.predict_proba(X)[np.arange(len(y)), np.searchsorted(tree.classes_, y)]
    return -np.log(np.maximum(proba, 1e-5))


def summary(rows: pd.DataFrame) -> str:
    """A line for each data set, and what they come to."""
    means = rows.groupby("dataset", sort=False).mean()
    enough = int((means["alternatives"] >= NEEDED).sum())
    behind = means["behind"].mean(), means["error"].mean()
    return "\n".join(
        [
            "| " + " | ".join(["data set", *means.columns]) + " |",
            "|---" + "|---:" * len(means.columns) + "|",
            *(
                "| " + " | ".join([str(name), *(f"{value:.3f}" for value in line)]) + " |"
                for name, line in zip(means.index, means.to_numpy(), strict=True)
            ),
            "",
            f"{enough} of {len(means)} data sets have {NEEDED} alternatives or more in the mean; "
            f"log-loss on held-out rows higher by {behind[0]:.4f} (mean standard error "
            f"{behind[1]:.4f}), accuracy by "
            f"{(means['their accuracy'] - means['accuracy']).mean():+.4f}; worse than one error on "
            f"{int((means['behind'] > means['error']).sum())}; "
            f"alternatives take {(means['alternatives s'] / means['fit s']).median():.2f} of a fit",
        ]
    )


if __name__ == "__main__":
    main()
