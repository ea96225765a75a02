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
from common import RESULTS, add_row, arguments, busy, markdown, rows_of
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

MEDIAN, WORST, COPIES = 5.0, 15.0, 5.0
"""What is aimed at: times of boosting in the median and at worst, copies of the input."""


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
        PAGE.write_text(page(rows_of(LINES)), encoding="utf-8")
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
    few, labels = make_classification(300, 20, random_state=0)
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


def page(lines: Sequence[dict[str, Any]]) -> str:
    """The page of results: what was measured, and what is missed."""
    last = {
        (one["part"], one.get("label", "now"), one.get("dataset"), one.get("method"),
         one.get("asked", one.get("rows")), one.get("columns") if one["part"] == "memory" else 0,
         one.get("busy", 0)): one
        for one in lines
    }  # fmt: skip
    found = pd.DataFrame(last.values())
    texts = [
        "# Waiting: a default choice on thousands of rows",
        "Made by `make bench NAME=middle` (`benchmarks/waiting_middle.py`) from the lines of "
        "[waiting.jsonl](waiting.jsonl). `SoftTreeClassifierCV()`, histogram boosting of "
        "scikit-learn and EBM (`interpret`), all at their defaults, on the same rows; other rows "
        "of the data set test them.",
        "Seconds are those of the clock for one fit after all code was compiled, on a machine of "
        "two x86 cores (2.1 GHz) that did nothing else; boosting and trees of more than 4,000 rows "
        "take both. Single fits, so that differences of accuracy below a point on one table say "
        'little. The accuracy "before" is that of the version before work on waiting began, on '
        "the same rows. What has no figure was not measured.",
        *times(found[found["part"] == "middle"]),
        *copies(found[found["part"] == "memory"]),
    ]
    return "\n\n".join(texts) + "\n"


def times(found: pd.DataFrame) -> list[str]:
    if found.empty:
        return []
    found = found[found["busy"] == 0].copy()
    found["over"] = found.get("over", np.nan)
    wide = found.pivot_table(
        index=["asked", "dataset"], columns=["label", "method"],
        values=["cpu", "accuracy", "wall", "over"], sort=False,
    ).sort_index(level=0, sort_remaining=False)  # fmt: skip
    facts = found.groupby(["asked", "dataset"])[["rows", "classes"]].max()

    def of(figure: str, label: str, method: str) -> pd.Series:
        key = (figure, label, method)
        return wide[key] if key in wide else pd.Series(np.nan, index=wide.index)

    seconds, clock = ({m: of(one, "now", m) for m in METHODS} for one in ("cpu", "wall"))
    over = of("over", "now", "ebm").where(clock["ebm"].isna())
    ratio, by_processor = (one["tree"] / one["boosting"] for one in (clock, seconds))
    right = {m: 100 * of("accuracy", "now", m) for m in METHODS}
    right_before = 100 * of("accuracy", "before", "tree")
    head = [
        "data set", "rows", "classes", "tree, s", "boosting, s", "EBM, s", "times boosting",
        "in processor time", "accuracy before", "accuracy", "boosting", "EBM",
    ]  # fmt: skip
    table = [
        [
            key[1], int(facts.loc[key, "rows"]), int(facts.loc[key, "classes"]),
            shown(clock["tree"][key]), shown(clock["boosting"][key]),
            shown(clock["ebm"][key]) if np.isnan(over[key]) else f"over {over[key]:.0f}",
            shown(ratio[key], 1), shown(by_processor[key], 1),
            *(shown(s[key], 1) for s in (right_before, *right.values())),
        ]
        for key in wide.index
    ]  # fmt: skip
    known, both = ratio.dropna(), (right["tree"] - right_before).dropna()
    if known.empty:
        return ["## Time", "No table has times of both the tree and boosting."]
    ended, faster = clock["ebm"].notna(), clock["tree"] < clock["ebm"]
    outlasted = clock["tree"] < over  # EBM was stopped after the tree had ended
    worst = known.idxmax()
    beyond = [f"{k[1]} with {facts.loc[k, 'rows']:,.0f}" for k in known.index[known > WORST]]
    said = [
        f"Against boosting on {len(known)} tables: {known.median():.1f} times its time in the "
        f"median (aim {MEDIAN:g}), {known.max():.1f} at worst ({worst[1]} with "
        f"{int(facts.loc[worst, 'rows']):,} rows; aim {WORST:g}"
        f"{': missed there' if len(beyond) == 1 else ''}); in processor time "
        f"{by_processor.median():.1f} and {by_processor.max():.1f}. Faster than EBM on "
        f"{int(faster.sum() + outlasted.sum())} of {int(ended.sum() + over.notna().sum())} tables; "
        f'on {int(outlasted.sum())} EBM was stopped because it took longer than the tree ("over", '
        "measured on cores of 2.5 GHz)."
    ]
    if len(beyond) > 1:
        said.append(f"More than {WORST:g} times: {', '.join(beyond)} rows.")
    if len(both):
        said.append(
            f"Against the version before, on the {len(both)} tables where both were measured: "
            f"accuracy {both.mean():+.2f} points in the mean ({both.min():+.1f} to "
            f"{both.max():+.1f})."
        )
    texts = ["## Time", *said, markdown(head, table)]
    wrong = found.loc[found["over"].isna(), "error"].dropna() if "error" in found else []
    texts += [
        f"{found.loc[i, 'method']} on {found.loc[i, 'dataset']}, {int(found.loc[i, 'asked']):,} "
        f"rows: {error}."
        for i, error in getattr(wrong, "items", lambda: ())()
    ]
    return texts


def copies(found: pd.DataFrame) -> list[str]:
    if found.empty:
        return []
    wide = found.pivot_table(
        index=["rows", "columns"], columns="label", values="copies", sort=False
    )
    now = found[found["label"] == "now"].set_index(["rows", "columns"])
    head = ["rows", "columns", "input, MB", "peak before", "peak", "seconds"]
    table = [
        [
            *map(int, key), f"{now['input'][key] / 1e6:.0f}",
            shown(wide["before"][key]) if "before" in wide else "-",
            *(shown(now[name][key]) for name in ("copies", "cpu")),
        ]
        for key in now.index
    ]  # fmt: skip
    missed = [f"{r:,.0f} x {c:,.0f}" for r, c in now.index[now["copies"] > COPIES]]
    said = f"missed on {', '.join(missed)}" if missed else "kept on all"
    return [
        "## Memory",
        f"Peak of a default choice beyond its input, in copies of the input (aim {COPIES:g}: "
        f"{said}). On narrow tables numbers bend, and each is four columns; of more than 20,000 "
        "rows the bent ones are computed where they are read.",
        markdown(head, table),
    ]


def shown(value: float, digits: int = 2) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


if __name__ == "__main__":
    main()
