"""The walk through the printed tree beside the mixture of all leaves, on rows kept aside.

    python benchmarks/walks.py [--folds 0 1 ...] [--tables FOLDER] [--document FILE]

``SoftTreeClassifierCV()`` with ``decision="walk"``, its default, and with ``decision="mixture"`` on
the 24 data sets of the paper, outer folds as in selection.py, on the larger data sets (draws of
``DRAWN`` training rows), and with --tables on the made tables there. A program that has nothing but
the printed text (tests/printed_tree.py) walks the rows kept aside, of larger tables ``WALKED``, and
computes their probabilities. Figures: accuracy, balanced accuracy, log-loss, share of rows for
which the reader of the text arrives at ``predict``, largest difference of his probabilities from
``predict_proba``, features, questions, seconds of the processor.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import arguments, put_into
from methods import FOLDS, outer_folds, table_of, warm_up
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss

from printed_tree import PrintedTree
from reading import made_tables
from selection import LARGER, paper_datasets
from softsplit import SoftTreeClassifierCV, export_text
from softsplit.experiments.tables import markdown
from softsplit.reading.outline import outline

DRAWN, WALKED = 3000, 2000
"""Training rows of larger data sets, and rows that are walked by hand, at most."""


class Parts(NamedTuple):
    """Rows of a data set to learn from, and rows kept aside."""

    kind: str
    name: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any


def by_hand(model: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Places of the classes, and probabilities, that a reader of the printed text finds."""
    printed = PrintedTree(export_text(model))
    labels = [str(label) for label in model.classes_]
    table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=model.tree_.column_names)
    rows = table.to_dict("records")
    said = np.array([labels.index(printed.class_of(row)) for row in rows])
    if not printed.gates:
        return said, model.predict_proba(X)
    found = [printed.probabilities(row) for row in rows]
    proba = np.array([[one.get(label, 0.0) for label in labels] for one in found])
    proba /= proba.sum(axis=1, keepdims=True)
    return said, proba


def measured(decision: str, parts: Parts) -> dict[str, Any]:
    """Fit and judge one tree."""
    began = time.process_time()
    model = SoftTreeClassifierCV(decision=decision, random_state=0).fit(parts.X, parts.y)
    seconds = time.process_time() - began
    predicted, proba = model.predict(parts.X_test), model.predict_proba(parts.X_test)
    row = {
        "tables": parts.kind,
        "dataset": parts.name,
        "decision": decision,
        "accuracy": 100 * accuracy_score(parts.y_test, predicted),
        "balanced": 100 * balanced_accuracy_score(parts.y_test, predicted),
        "log-loss": log_loss(parts.y_test, proba, labels=model.classes_),
        "features": len(model.selected_features_),
        "questions": len(outline(model.tree_).questions()),
        "seconds": seconds,
    }
    if decision == "walk":
        said, found = by_hand(model, parts.X_test[:WALKED])
        row["by hand"] = 100 * np.mean(model.classes_[said] == predicted[:WALKED])
        row["proba by hand"] = float(np.abs(found - proba[:WALKED]).max())
    return row


def every(args: argparse.Namespace) -> Iterator[Parts]:
    """The folds of all tables."""
    for name in args.datasets or [*paper_datasets(), *LARGER]:
        X, y = table_of(name)
        kind = "larger" if name in LARGER else "paper"
        for fold, (train, test) in enumerate(outer_folds(y, args.fold_seed)):
            if fold in args.folds:
                if kind == "larger":
                    train = np.random.default_rng(fold).permutation(train)[:DRAWN]
                yield Parts(kind, name, X[train], y[train], X[test], y[test])
    for key, X, y, held_out in made_tables(args):
        yield Parts("made", key["dataset"], X, y, *held_out)


def main() -> None:
    args = arguments(
        __doc__,
        folds=(list(range(FOLDS)), ""),
        fold_seed=2026,
        datasets=[],
        tables=(Path, "folder of the made tables"),
        document=(Path, "file to put the table into"),
    )
    warnings.simplefilter("ignore")
    warm_up()
    rows = []
    for parts in every(args):
        rows += [measured(decision, parts) for decision in ("walk", "mixture")]
        print(pd.DataFrame(rows[-2:]).round(3).to_string(index=False), flush=True)
    table = pd.DataFrame(rows)
    each = table.groupby(["tables", "dataset", "decision"])["accuracy"].mean().unstack()
    sets = table.groupby(["tables", "dataset", "decision"]).mean(numeric_only=True)
    summary = sets.groupby(["tables", "decision"]).mean().reset_index()
    summary = summary.rename(columns={"accuracy": "right, %", "balanced": "balanced, %"})
    put_into(
        args.document,
        f"{markdown(summary.round(4))}\n{markdown(each.reset_index().round(2))}",
    )


if __name__ == "__main__":
    main()
