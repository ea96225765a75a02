"""Exported code beside the tree it was made of: agreement, and the time of a million rows.

    python benchmarks/exports.py agree [NAME ...] [--runners sqlite,c]    data sets, both losses
    python benchmarks/exports.py million [--rows 1000000]                 DuckDB and SQLite

agree: a tree on at most 400 rows of each data set as it is published (texts and missing values
included), asked about at most 100 others, by every program that this machine has
(tests/export_runs.py). A line gives the largest difference from ``predict_proba`` and the rows
with another class.

million: a tree on numbers alone, and one on numbers, categories and missing values, each with its
rows in a table of the database. Times are of the processor, on one thread, the best of
three; of SQLite, one.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from common import times_of

from softsplit import SoftTreeClassifier, export_sql
from softsplit.data.named import catalogue, file_of
from softsplit.experiments.tables import markdown

TRAINING_ROWS, NEW_ROWS = 400, 100
TIMES = 3
SAME = 1e-9
"""Largest difference of a probability."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("agree", "million"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runners", default="")
    parser.add_argument("--rows", type=int, default=1_000_000)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.part == "agree":
        agree(args.names, args.runners.split(",") if args.runners else None)
    else:
        million(args.rows)


# --- agreement ------------------------------------------------------------------------------------


def agree(names: list[str], wanted: list[str] | None) -> None:
    runs: Any = import_module("export_runs")
    chosen = [name for name in wanted or runs.RUNNERS if not runs.absent(name)]
    files = {name: file_of(name) for name in names or catalogue()}
    worst: dict[str, float] = dict.fromkeys(chosen, 0.0)
    other_class = asked = trees = 0
    for name, file in files.items():
        if file is None:
            continue
        frame = pd.read_csv(file).sample(frac=1.0, random_state=0)
        X, y = frame.iloc[:, :-1], frame.iloc[:, -1].astype(str)
        some = min(TRAINING_ROWS, 2 * len(X) // 3)
        new = X[some : some + NEW_ROWS].reset_index(drop=True)
        for loss in ("log", "cost"):
            tree = SoftTreeClassifier(loss=loss, n_starts=1, max_iter=30, random_state=0)
            tree.fit(X[:some], y[:some])
            proba, right = tree.predict_proba(new), list(map(str, tree.predict(new)))
            trees, asked = trees + 1, asked + len(new) * len(chosen)
            for runner in chosen:
                told, found = runs.RUNNERS[runner](tree, new)
                worst[runner] = max(worst[runner], float(np.abs(found - proba).max()))
                wrong = sum(a != b for a, b in zip(told, right, strict=True))
                other_class += wrong
                if wrong or np.abs(found - proba).max() > SAME:
                    print(f"{name}, {loss}, {runner}: {np.abs(found - proba).max():.1e}, {wrong}")
            print(f"{name}, {loss}: {len(new)} rows", file=sys.stderr, flush=True)
    print(f"{trees} trees, {asked:,} answers, {other_class} with another class\n")
    lines = [[runner, f"{difference:.1e}"] for runner, difference in worst.items()]
    print(markdown(pd.DataFrame(lines, columns=["program", "largest difference"])))
    if not asked or other_class or max(worst.values()) > SAME:
        raise SystemExit("programs and trees disagree, or nothing was asked.")


# --- a million rows -------------------------------------------------------------------------------


def numbers(n_rows: int, seed: int) -> pd.DataFrame:
    """Eight columns of numbers."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(n_rows, 8)), columns=[f"n{j}" for j in range(8)])


def mixed(n_rows: int, seed: int) -> pd.DataFrame:
    """Four columns of numbers with missing values, and three of categories."""
    rng = np.random.default_rng(seed)
    frame = numbers(n_rows, seed).iloc[:, :4]
    frame = frame.mask(rng.random(frame.shape) < 0.05)
    levels = np.array([f"level {i}" for i in range(9)], dtype=object)
    for j in range(3):
        frame[f"c{j}"] = levels[rng.integers(0, 5 + 2 * j, n_rows)]
    return frame


def classes(frame: pd.DataFrame) -> np.ndarray:
    """Three classes that depend on all columns."""
    total = frame.select_dtypes("number").fillna(0.5).sum(axis=1)
    for name in frame.columns.difference(frame.select_dtypes("number").columns):
        total = total + frame[name].str[-1].astype(int) % 3
    return np.digitize(total, np.quantile(total, [1 / 3, 2 / 3]))


def best(action: Callable[[], object], times: int = TIMES) -> float:
    """Seconds of the processor, the best of ``times``."""
    return min(times_of(action, times, "cpu"))


def million(n_rows: int) -> None:
    lines = []
    for title, make in (("8 numbers", numbers), ("4 numbers, 3 categories, missing values", mixed)):
        X = make(2_000, 0)
        tree = SoftTreeClassifier(n_starts=1, random_state=0).fit(X, classes(X))
        rows = make(n_rows, 1)
        own = best(lambda tree=tree, rows=rows: tree.predict_proba(rows))
        line = [title, len(tree.selected_features_), f"{own:.2f}"]
        for database in (in_duckdb, in_sqlite):
            seconds = database(tree, rows)
            line += ["-", "-"] if seconds is None else [f"{seconds:.2f}", f"{seconds / own:.1f}"]
        lines.append(line)
    heads = ["table", "columns in use", "`predict_proba`, s"]
    heads += ["DuckDB, s", "DuckDB, times as long", "SQLite, s", "SQLite, times as long"]
    print(
        f"{n_rows:,} rows, 3 classes, one thread\n\n{markdown(pd.DataFrame(lines, columns=heads))}"
    )


def in_duckdb(tree: SoftTreeClassifier, rows: pd.DataFrame) -> float | None:
    try:
        import duckdb
    except ImportError:
        return None
    connection = duckdb.connect(config={"threads": 1})
    connection.register("frame", rows.reset_index(names="id").astype({"id": "int64"}))
    connection.execute("CREATE TABLE rows AS SELECT * FROM frame")
    statement = export_sql(tree, "rows", dialect="duckdb", keep="id")
    return best(lambda: connection.execute(f"CREATE OR REPLACE TABLE answers AS {statement}"))


def in_sqlite(tree: SoftTreeClassifier, rows: pd.DataFrame) -> float:
    connection = sqlite3.connect(":memory:")
    rows.to_sql("rows", connection, index_label="id")
    statement = export_sql(tree, "rows", dialect="sqlite", keep="id")

    return best(lambda: connection.execute(f"CREATE TABLE answers AS {statement}"), 1)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    main()
