"""What is printed is what is predicted: how readable trees are, and what that costs.

    python benchmarks/reading.py sizes run       fits of given sizes, rows appended to --out
    python benchmarks/reading.py sizes table     the rows as tables, also into --document

``sizes``: the 24 data sets of the paper, outer folds as in selection.py, and with --tables FOLDER
the made tables there (make_tables.py of the shared files). Methods: ``free`` is
``SoftTreeClassifierCV()``, ``tree-k`` the same with ``max_features=k``, ``abess-k`` best-subset
logistic regression with k features; ``terms-k`` and ``questions-k`` may be asked for too. A row
holds accuracy and log-loss on rows kept aside, features,
questions, terms of a question (columns of the table; mean and most), and seconds of the processor.
A run may be stopped and resumed. Settings were tuned on folds of other seeds than the default.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import add_options, put_into, resumed
from methods import FOLDS, Fit, installed, measure, measured, warm_up
from sklearn.feature_selection import VarianceThreshold
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from selection import nested, paper_datasets
from softsplit import SoftTreeClassifierCV
from softsplit.data import read_table
from softsplit.experiments.tables import markdown
from softsplit.reading.outline import outline

SIZES = (2, 3, 5, 8)
MADE = {"churn": 20_000, "clinic": None, "fraud": 20_000, "species": None, "wide": None}
"""Made tables, and the most rows of each that are used here."""


# --- sizes: fits ----------------------------------------------------------------------------------


LIMITS = {"tree": "max_features", "terms": "max_terms", "questions": "max_questions"}


def limited(method: str) -> dict[str, Any]:
    """Parameters that the name of a method stands for."""
    name, _, number = method.partition("-")
    return {LIMITS[name]: int(number)} if number else {}


def readable(model: Any) -> dict[str, Any]:
    """Questions of a tree, and the columns of the table in each."""
    tree = model.tree_
    homes = np.arange(len(tree.feature_names))
    if tree.coding is not None:
        homes = np.array(tree.coding.places)[tree.coding.homes]
    asked = [one.split for one in outline(tree).questions()]
    terms = [len(set(homes[list(split.features)])) for split in asked if split is not None]
    return {
        "questions": len(terms),
        "terms": float(np.mean(terms)) if terms else 0.0,
        "most_terms": max(terms, default=0),
    }


def fit_size(X: Any, y: np.ndarray, _: int = 0, *, method: str) -> Fit:
    """Fit the tree, or abess, that ``method`` names."""
    if method.startswith("abess"):
        abess = import_module("abess")
        binary = len(np.unique(y)) == 2
        make = abess.LogisticRegression if binary else abess.MultinomialRegression
        size = min(int(method.rpartition("-")[2]), int(np.sum(np.ptp(X, axis=0) > 0)))
        # abess refuses constant columns
        model = make_pipeline(VarianceThreshold(), make(support_size=size)).fit(X, y)
        nonzero = (model[-1].coef_ != 0).reshape(model[-1].n_features_in_, -1)
        return Fit(model, np.flatnonzero(nonzero.any(axis=1)), int(nonzero.sum()))
    model = SoftTreeClassifierCV(random_state=0, **limited(method)).fit(X, y)
    chosen = {name: model.best_params_[name] for name in ("scale", "depth")}
    used = np.asarray(model.selected_features_)
    return Fit(model, used, int(np.sum(model.weights_ != 0)), readable(model) | chosen)


def run_sizes(args: argparse.Namespace) -> None:
    """Fit what is not in the file yet; a line is added after each fit."""
    methods = [m for m in args.methods if installed(m.partition("-")[0])]
    warm_up()

    def tasks() -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
        for task in nested(args):
            for method in methods:
                fit = partial(fit_size, method=method)
                yield task.key | {"method": method}, partial(measure, fit, task, 0)
        for key, X, y, held_out in made_tables(args):
            for method in (m for m in methods if not m.startswith("abess")):
                yield key | {"method": method}, partial(on_table, X, y, *held_out, method)

    for row in resumed(args.out, tasks(), measured(args.out)):
        said = row.get("error") or f"{row['accuracy']:.4f}, {row['features']} features"
        print(row["dataset"], row["fold"], row["method"], said, f"{row.get('seconds', 0):.1f} s")


def made_tables(args: argparse.Namespace) -> Iterator[tuple[dict[str, Any], Any, Any, Any]]:
    """The made tables, each divided 70 to 30 by the seed."""
    for name, limit in MADE.items() if args.tables is not None else ():
        table = read_table(str(args.tables / f"{name}.csv")).frame
        if limit is not None and len(table) > limit:
            table = table.iloc[:limit]
        X, y = table.iloc[:, :-1], table.iloc[:, -1]
        for fold in args.folds:
            seed = args.fold_seed + fold
            parts = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
            key = {"dataset": name, "fold_seed": args.fold_seed, "fold": fold}
            yield key, parts[0], parts[2], (parts[1], parts[3])


def on_table(X: Any, y: Any, X_test: Any, y_test: Any, method: str) -> dict[str, Any]:
    """As ``measure``, for a table with names and text."""
    facts = {"rows": len(y), "test_rows": len(y_test), "columns": X.shape[1]}
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SoftTreeClassifierCV(random_state=0, **limited(method)).fit(X, y)
        seconds, proba = time.process_time() - began, model.predict_proba(X_test)
        right = np.mean(model.predict(X_test) == y_test.to_numpy())
    loss = log_loss(y_test, np.clip(proba, 1e-15, 1.0), labels=model.classes_)
    facts |= {"classes": len(model.classes_), "accuracy": float(right), "log_loss": float(loss)}
    facts |= {"features": len(model.selected_features_), "seconds": seconds}
    return facts | {"coefficients": int(np.sum(model.weights_ != 0))} | readable(model)


# --- sizes: tables --------------------------------------------------------------------------------


def sizes_table(args: argparse.Namespace) -> str:
    """Accuracy beside abess at each size, seconds beside a fit without limits, and readability."""
    found = pd.DataFrame(r for r in measured(args.out) if r.get("fold_seed") == args.fold_seed)
    found = found[found["fold"].isin(args.folds)]
    if args.datasets:
        found = found[found["dataset"].isin(args.datasets)]
    if found.empty:
        raise SystemExit(f"{args.out} holds no such rows; make them with 'sizes run' first.")
    paper = found[found["dataset"].isin(paper_datasets())]
    accuracy, seconds = (means(paper, name) for name in ("accuracy", "seconds"))
    gaps, lines = [], []
    for k in SIZES:
        if {f"tree-{k}", f"abess-{k}"} <= set(accuracy):
            both = accuracy[[f"tree-{k}", f"abess-{k}"]].dropna()
            gap = both[f"tree-{k}"] - both[f"abess-{k}"]
            gaps.append(gap.mean())
            behind = [f"{n} ({100 * g:+.1f})" for n, g in gap[gap < -0.015].items()]
            lines.append(
                f"- {k} features, {len(both)} data sets: {100 * both[f'tree-{k}'].mean():.2f} "
                f"against {100 * both[f'abess-{k}'].mean():.2f}, {100 * gap.mean():+.2f} points; "
                f"behind by more than 1.5 on {len(behind)}: {', '.join(behind) or 'none'}."
            )
        if {f"tree-{k}", "free"} <= set(seconds):
            times = seconds[[f"tree-{k}", "free"]].dropna()
            ratio = times[f"tree-{k}"] / times["free"]
            lines.append(
                f"- {k} features, seconds of a fit without a limit: {ratio.median():.2f} of them "
                f"(median), {ratio.max():.2f} at most, {times.sum().iloc[0]:.1f} against "
                f"{times.sum().iloc[1]:.1f} in all."
            )
    if gaps:
        lines.append(f"- Mean over the sizes: {100 * np.mean(gaps):+.2f} points.")
    free = found[(found["method"] == "free") & found["questions"].notna()]
    if len(free):
        each = free.groupby("dataset")[["features", "questions", "terms", "most_terms"]].mean()
        middle = each.median()
        lines.append(
            f"- Without limits, {len(each)} data sets: median of {middle['terms']:.2f} terms per "
            f"question ({middle['most_terms']:.2f} in the longest), of {middle['questions']:.2f} "
            f"questions, of {middle['features']:.2f} features; accuracy of the "
            f"{len(accuracy)} sets of the paper {100 * accuracy['free'].mean():.2f}."
        )
    shown = (100 * accuracy).round(1).reset_index()
    return "\n".join([*lines, "", "Accuracy, percent:", "", markdown(shown), ""])


def means(rows: pd.DataFrame, figure: str) -> pd.DataFrame:
    """Means over folds: a line for each data set, a column for each method."""
    return rows.groupby(["dataset", "method"], sort=False)[figure].mean().unstack("method")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    topics = parser.add_subparsers(dest="topic", required=True)
    usual = ["free", *(f"{name}-{k}" for k in SIZES for name in ("tree", "abess"))]
    for name, text in [("sizes", "trees within limits of their size")]:
        topic = topics.add_parser(name, help=text)
        topic.add_argument("part", choices=["run", "table"])
        add_options(
            topic,
            out=Path(f"results/reading-{name}.jsonl"),
            datasets=([], "only these"),
            methods=(usual, "of the topic sizes"),
            fold_seed=2026,
            folds=list(range(FOLDS)),
            tables=(Path, "folder of the made tables"),
            document=(Path, "file to put the tables into"),
        )
    args = parser.parse_args()
    if args.part == "run":
        run_sizes(args)
    else:
        put_into(args.document, sizes_table(args))


if __name__ == "__main__":
    main()
