"""The walk through the printed tree beside the mixture of all leaves, on rows kept aside.

    python benchmarks/walks.py [--folds 0 1 ...] [--datasets ...] [--document FILE]

``SoftTreeClassifierCV()`` with ``decision="walk"``, its default, and with ``decision="mixture"`` on
the 24 data sets of the paper, outer folds as in selection.py. A program that has nothing but the
printed text (tests/printed_tree.py) walks every row kept aside and computes its probabilities.
Figures: accuracy, balanced accuracy, log-loss, share of rows for which the reader of the text
arrives at ``predict``, largest difference of his probabilities from ``predict_proba``, features,
questions, seconds of the processor.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from methods import FOLDS, outer_folds, put_into, table_of, warm_up
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss

from selection import paper_datasets
from softsplit import SoftTreeClassifierCV, export_text
from softsplit.experiments.tables import markdown
from softsplit.reading.leaf_shares import consistent_with
from softsplit.reading.outline import outline

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from printed_tree import PrintedTree


def by_hand(model: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Classes and probabilities that a reader of the printed text finds for rows of numbers."""
    text = export_text(model)
    printed, labels = PrintedTree(text), [str(label) for label in model.classes_]
    names = model.tree_.column_names
    rows = [dict(zip(names, row, strict=True)) for row in X]
    said = np.array([labels.index(printed.class_of(row)) for row in rows])
    if not printed.gates:
        return said, model.predict_proba(X)
    found = [printed.probabilities(row) for row in rows]
    proba = np.array([[one.get(label, 0.0) for label in labels] for one in found])
    proba /= proba.sum(axis=1, keepdims=True)
    factors = model.tree_.class_factors
    if factors is not None:
        apart = np.argmax(proba * factors, axis=1) != said
        proba[apart] = consistent_with(proba[apart], said[apart], factors)
    return said, proba


def measured(decision: str, X: Any, y: Any, X_test: Any, y_test: Any, k: int) -> dict[str, Any]:
    """Fit and judge one tree."""
    began = time.process_time()
    model = SoftTreeClassifierCV(decision=decision, random_state=0).fit(X, y)
    seconds = time.process_time() - began
    predicted, proba = model.predict(X_test), model.predict_proba(X_test)
    whole = np.zeros((len(proba), k))
    whole[:, model.classes_] = proba
    row = {
        "decision": decision,
        "accuracy": 100 * accuracy_score(y_test, predicted),
        "balanced": 100 * balanced_accuracy_score(y_test, predicted),
        "log-loss": log_loss(y_test, whole, labels=range(k)),
        "features": len(model.selected_features_),
        "questions": len(outline(model.tree_).questions()),
        "seconds": seconds,
    }
    if decision == "walk":
        said, found = by_hand(model, X_test)
        row["by hand"] = 100 * np.mean(model.classes_[said] == predicted)
        row["proba by hand"] = float(np.abs(found - proba).max())
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folds", type=int, nargs="*", default=list(range(FOLDS)))
    parser.add_argument("--fold-seed", type=int, default=2026)
    parser.add_argument("--datasets", nargs="*")
    parser.add_argument("--document", type=Path, help="file to put the table into")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    warm_up()
    rows = []
    for name in args.datasets or paper_datasets():
        X, y = table_of(name)
        for fold, (train, test) in enumerate(outer_folds(y, args.fold_seed)):
            if fold not in args.folds:
                continue
            for decision in ("walk", "mixture"):
                parts = X[train], y[train], X[test], y[test]
                rows.append({"dataset": name} | measured(decision, *parts, int(y.max()) + 1))
        print(pd.DataFrame(rows[-2:]).round(3).to_string(index=False), flush=True)
    table = pd.DataFrame(rows)
    each = table.groupby(["dataset", "decision"])["accuracy"].mean().unstack().reset_index()
    summary = table.groupby("decision").mean(numeric_only=True).reset_index()
    put_into(args.document, f"{markdown(summary.round(4))}\n{markdown(each.round(2))}")


if __name__ == "__main__":
    main()
