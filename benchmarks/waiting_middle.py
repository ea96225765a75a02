"""Time and memory of a default choice on tables of thousands of rows: ``make bench NAME=middle``.

    python benchmarks/waiting_middle.py middle [--rows 5000] [--datasets magic] [--busy 2]
    python benchmarks/waiting_middle.py memory [--shapes 3000x600]
    python benchmarks/waiting_middle.py table           the page docs/results/waiting.md

``middle`` fits ``SoftTreeClassifierCV()``, histogram boosting and EBM, all at their defaults, to
the same rows in one process, one after the other, each in a child that has compiled or imported all
code before. ``memory`` measures the peak of a choice beyond its input, a table of noise with a few
informative columns. Each fit adds a line of JSON to docs/results/waiting.jsonl; the page shows the
last line of each kind. ``--label before`` is for lines of another version (PYTHONPATH).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import RESULTS, add_row, arguments, busy, markdown, rows_of, write_page
from methods import table_of
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from softsplit import SoftTreeClassifierCV
from softsplit.support.parallel import n_threads

LINES, PAGE = RESULTS / "waiting.jsonl", RESULTS / "waiting.md"
DATASETS = ("satimage", "pendigits", "letter", "magic", "adult", "covertype", "shuttle")
ROWS = (5000, 20_000, 50_000)
METHODS = ("tree", "boosting", "ebm")
SHAPES = ("3000x600", "100000x100", "1000x5000", "20000x100x5", "8000x150")
FEWEST_TEST, MOST_TEST = 1000, 5000
"""Rows kept aside to test on."""

FEWEST_SECONDS = 30.0
"""Seconds that EBM gets at least."""

MEDIAN, WORST = 5.0, 15.0
"""What is aimed at: times of boosting in the median and at worst."""


def main() -> None:
    args = arguments(
        __doc__,
        ["middle", "memory", "table"],
        datasets=(list(DATASETS), ""),
        rows=(list(ROWS), ""),
        methods=(list(METHODS), ""),
        shapes=(list(SHAPES), ""),
        busy=(0, "busy processes beside it"),
        limit=(float(600), "seconds of a single fit"),
        patience=(float, "stop EBM after so many times the seconds of the tree"),
        label=("now", "version that is measured"),
    )
    if args.part == "table":
        write_page(PAGE, page(rows_of(LINES)))
        return
    with busy(args.busy):
        (middle if args.part == "middle" else memory)(args)


def add_line(**facts: Any) -> None:
    print(json.dumps(add_row(LINES, facts)), flush=True)


# --- time -----------------------------------------------------------------------------------------


def draw(name: str, n_rows: int) -> tuple[np.ndarray, ...] | None:
    """Training and test rows of a data set; None if it has clearly fewer rows."""
    X, y = table_of(name)
    count = min(n_rows, len(y) - FEWEST_TEST)
    if count < 0.45 * n_rows:
        return None
    train, test = train_test_split(
        np.arange(len(y)), train_size=count, stratify=y, random_state=np.random.RandomState([7, 0])
    )
    test = test[:MOST_TEST]
    return X[train], y[train], X[test], y[test]


def make_method(method: str) -> Any:
    if method == "tree":
        return SoftTreeClassifierCV(random_state=0)
    if method == "boosting":
        return HistGradientBoostingClassifier(random_state=0)
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(random_state=0)


def middle(args: argparse.Namespace) -> None:
    for n_rows in args.rows:
        for name in args.datasets:
            rows, limit = draw(name, n_rows), args.limit
            for method in args.methods if rows is not None else ():
                told = {"part": "middle", "label": args.label, "dataset": name, "asked": n_rows}
                told |= {"method": method, "busy": args.busy, "load": round(os.getloadavg()[0], 1)}
                found = in_child(
                    measured_fit, limit if method == "ebm" else args.limit, method, rows
                )
                if method == "tree" and args.patience and "wall" in found:
                    limit = min(args.limit, max(FEWEST_SECONDS, args.patience * found["wall"]))
                add_line(**told, **found)


def in_child(work: Any, limit: float, *given: Any) -> dict[str, Any]:
    """What ``work`` returns in a process of its own; an error after ``limit`` seconds."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        try:
            found: dict[str, Any] = pool.apply_async(work, given).get(limit)
            return found
        except multiprocessing.TimeoutError:
            pool.terminate()
            return {"error": f"more than {limit:.0f} seconds", "over": round(limit)}
        except ImportError as error:
            return {"error": str(error)}


def measured_fit(method: str, rows: tuple[np.ndarray, ...]) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    X, y, X_test, y_test = rows
    few = np.sort(np.unique(y, return_index=True)[1].tolist() + list(range(300)))
    if method != "ebm":  # which has no code to compile, and a limit
        make_method(method).fit(X[few], y[few])  # code is compiled, threads have started
    model, began, spent = make_method(method), time.perf_counter(), time.process_time()
    model.fit(X, y)
    wall, cpu = time.perf_counter() - began, time.process_time() - spent
    proba = model.predict_proba(X_test)
    facts = {"rows": len(y), "columns": X.shape[1], "classes": len(np.unique(y))}
    facts |= {"wall": round(wall, 3), "cpu": round(cpu, 3)}
    if method == "tree":
        facts["threads"] = n_threads(None, len(y))
    facts["accuracy"] = float(model.score(X_test, y_test))
    facts["log_loss"] = float(log_loss(y_test, proba, labels=model.classes_))
    return facts


# --- memory ---------------------------------------------------------------------------------------


def memory(args: argparse.Namespace) -> None:
    for shape in args.shapes:
        n_rows, n_columns, n_classes = map(int, f"{shape}x2".split("x")[:3])
        found = in_child(measured_peak, args.limit, n_rows, n_columns, n_classes)
        facts = {"rows": n_rows, "columns": n_columns, "classes": n_classes}
        add_line(part="memory", label=args.label, **facts, **found)


def measured_peak(n_rows: int, n_columns: int, n_classes: int) -> dict[str, Any]:
    """Peak of the resident memory during a choice, less that before it, in copies of the input."""
    warnings.simplefilter("ignore")
    few, labels = make_classification(5000, 20, random_state=0)  # code is loaded
    SoftTreeClassifierCV(random_state=0).fit(few, labels)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    scores = X[:, :n_classes] - X[:, n_classes : 2 * n_classes]
    y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, began = resident("VmRSS"), time.process_time()
    SoftTreeClassifierCV(random_state=0).fit(X, y)
    facts = {"cpu": round(time.process_time() - began, 2), "input": X.nbytes}
    peak = resident("VmHWM") - before
    return facts | {"peak": peak, "copies": round(peak / X.nbytes, 2)}


def resident(name: str) -> int:
    """Bytes of a line of /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


# --- page -----------------------------------------------------------------------------------------


def page(lines: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The parts of the page, of the last line of each kind."""
    table = pd.DataFrame(line for line in lines if line.get("label", "now") == "now")
    table = table[table["busy"].fillna(0) == 0] if "busy" in table else table
    fits, peaks = (table[table["part"] == part] for part in ("middle", "memory"))
    return {"time": times(fits), "memory": copies(peaks)}


def times(fits: pd.DataFrame) -> str:
    """Seconds and accuracy of each method; how often the tree takes longer than boosting."""
    last = fits.drop_duplicates(["asked", "dataset", "method"], keep="last")
    last = last.astype({"asked": int}).set_index(["asked", "dataset", "method"])
    wide = last[["wall", "cpu", "accuracy", "over", "rows", "classes"]].unstack(
        "method", sort=False
    )

    def of(figure: str, method: str) -> pd.Series:
        missing = pd.Series(np.nan, index=wide.index)
        return wide.get((figure, method), missing)

    head = ["data set", "rows", "classes", "tree, s", "boosting, s", "EBM, s", "times boosting",
            "in processor time", "accuracy, %", "boosting", "EBM"]  # fmt: skip
    ratio, by_processor = (of(clock, "tree") / of(clock, "boosting") for clock in ("wall", "cpu"))
    ebm = [
        shown(wall) if np.isnan(over) else f"over {over:.0f}"
        for wall, over in zip(of("wall", "ebm"), of("over", "ebm"), strict=True)
    ]
    rows = zip(
        wide.index.get_level_values("dataset"),
        *(of(fact, "tree").astype(int) for fact in ("rows", "classes")),
        map(shown, of("wall", "tree")), map(shown, of("wall", "boosting")), ebm,
        *([shown(value, 1) for value in values] for values in (ratio, by_processor)),
        *([shown(100 * value, 1) for value in of("accuracy", method)] for method in METHODS),
        strict=True,
    )  # fmt: skip
    slow = [f"{name} with {asked:,}" for asked, name in ratio.index[ratio > WORST]]
    return (
        f"Against boosting on {len(ratio.dropna())} tables: {ratio.median():.1f} times its time in "
        f"the median (aim {MEDIAN:g}), {ratio.max():.1f} at worst (aim {WORST:g}, missed on "
        f"{', '.join(slow) or 'none'}); in processor time {by_processor.median():.1f} and "
        f"{by_processor.max():.1f}.\n\n{markdown(head, rows)}"
    )


def copies(peaks: pd.DataFrame) -> str:
    """Peak of the memory beyond the input, in copies of it."""
    last = peaks.drop_duplicates(["rows", "columns", "classes"], keep="last")
    rows = [
        [int(line.rows), int(line.columns), f"{line.input / 1e6:.0f}", shown(line.copies),
         shown(line.cpu)]
        for line in last.itertuples()
    ]  # fmt: skip
    return markdown(["rows", "columns", "input, MB", "peak in copies", "seconds"], rows)


def shown(value: float, digits: int = 2) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


if __name__ == "__main__":
    main()
