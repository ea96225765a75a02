"""How long a user waits, and what the library says meanwhile: ``make bench NAME=console``.

    python benchmarks/waiting.py report [--busy 2]      softsplit fit --report, a table with text
    python benchmarks/waiting.py interrupt [--times 6]  Ctrl-C at random moments, ten kinds of work
    python benchmarks/waiting.py limits                 time_limit of the same kinds of work
    python benchmarks/waiting.py calls                  predict_proba of few rows, import, a plot
    python benchmarks/waiting.py table                  the page docs/results/waiting-console.md

Each part adds a line of JSON to docs/results/waiting-console.jsonl; the page shows the last line of
each kind. Tables are made from seeds: no file is needed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import RESULTS, WRITE, add_row, arguments, busy, markdown, rows_of, times_of, write_page

LINES = RESULTS / "waiting-console.jsonl"
PAGE = RESULTS / "waiting-console.md"
BACK = 1.0
"""Seconds within which Ctrl-C has to come back."""


def main() -> None:
    args = arguments(
        __doc__,
        [*PARTS, "table", "child"],
        busy=(0, "busy processes beside it"),
        times=(6, "interruptions of each kind of work"),
        kinds=(list(WORK), "kinds of work to interrupt"),
        together=(1, "kinds interrupted side by side"),
        seed=(0, ""),
        **WRITE,
    )
    if args.part == "child":
        serve()
    elif args.part == "table":
        make_page()
    else:
        with busy(args.busy):
            figures = PARTS[args.part](args)
        line = {"part": args.part, "busy": args.busy, **figures}
        print(json.dumps(line, indent=1))
        if args.write:
            add_row(LINES, line)
            make_page()


# --- tables --------------------------------------------------------------------------------------


def staff(n_rows: int = 1500, seed: int = 0) -> pd.DataFrame:
    """A table like that of a staff department: 31 columns, nine of them text, a rare class."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({f"number_{j}": rng.normal(size=n_rows).round(3) for j in range(14)})
    for j in range(8):
        table[f"grade_{j}"] = rng.integers(1, 6, n_rows)
    words = {
        "travel": ["rarely", "often", "never"],
        "department": ["sales", "research", "personnel"],
        "field": ["medicine", "life", "marketing", "technical", "other", "people"],
        "role": [f"role {k}" for k in range(9)],
        "status": ["single", "married", "divorced"],
        "gender": ["f", "m"],
        "overtime": ["yes", "no"],
        "site": ["north", "south", "east", "west"],
    }
    for name, levels in words.items():
        table[name] = rng.choice(levels, n_rows)
    pull = (
        1.2 * (table["overtime"] == "yes")
        + 0.8 * (table["travel"] == "often")
        - 0.7 * table["number_0"]
        + 0.6 * table["number_1"]
        - 0.3 * table["grade_0"]
        + 0.9 * (table["role"] == "role 3")
    )
    leaves = rng.random(n_rows) < 1 / (1 + np.exp(-(2 * pull - 3.0)))
    table["left"] = np.where(leaves, "Yes", "No")
    return table


def numbers(n_rows: int, n_columns: int, n_classes: int, seed: int = 0) -> tuple[Any, Any]:
    """Numbers with a class that depends on a few of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    scores = X[:, :4] @ rng.normal(size=(4, n_classes)) + rng.normal(size=(n_rows, n_classes))
    scores += 1.5 * np.abs(X[:, [0]]) * rng.normal(size=n_classes)
    return X, np.argmax(scores, axis=1)


# --- report --------------------------------------------------------------------------------------


def report(args: argparse.Namespace) -> dict[str, Any]:
    """Seconds of ``softsplit fit --report``, and what the page holds."""
    with tempfile.TemporaryDirectory() as place:
        data, page = Path(place) / "staff.csv", Path(place) / "staff.html"
        staff().to_csv(data, index=False)
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "softsplit", "fit", str(data), "--target", "left",
             "--report", str(page), "--json"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        seconds = time.perf_counter() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = page.read_text(encoding="utf-8") if page.exists() else ""
    trees = re.search(r"Tree \d+ of (\d+)", text)
    return {
        "seconds": round(seconds, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "load": round(os.getloadavg()[0], 1),
        "exit": done.returncode,
        "lines": len(done.stderr.splitlines()),
        "trees": int(trees[1]) if trees else 0,
        "methods_missing": text.count("not judged"),
        "left_out": re.findall(r"[^.>]*time (?:limit|ran out)[^.<]*", text)[:3],
    }


# --- Ctrl-C --------------------------------------------------------------------------------------


def _choice(**parameters: Any) -> Any:
    from softsplit import SoftTreeClassifierCV

    return SoftTreeClassifierCV(random_state=0, **parameters).fit


def _tree(**parameters: Any) -> Any:
    from softsplit import SoftTreeClassifier

    return SoftTreeClassifier(random_state=0, **parameters).fit


def _path() -> Any:
    from softsplit import SoftTreeClassifier, strength_path

    base = SoftTreeClassifier(depth=3, n_starts=3, random_state=0)
    return lambda X, y: strength_path(X, y, estimator=base, n_points=9)


def _report() -> Any:
    tree = _tree()(*staff_rows(1500))
    return tree.report


def staff_rows(n_rows: int) -> tuple[Any, Any]:
    table = staff(n_rows)
    return table.drop(columns="left"), table["left"]


WORK: dict[str, tuple[Callable[[], tuple[Any, Any]], Callable[[], Any]]] = {
    "fit, 13,000 x 20, 9 classes": (lambda: numbers(13_000, 20, 9), lambda: _tree(n_starts=3)),
    "choice, 13,000 x 20, 9 classes": (lambda: numbers(13_000, 20, 9), _choice),
    "choice, table 4,000 x 30": (lambda: staff_rows(4000), _choice),
    "fit by cost, 3,000 x 20": (
        lambda: numbers(3_000, 20, 3),
        lambda: _tree(loss="cost", depth=3, n_starts=50),
    ),
    "choice by cost, 1,000 x 10": (lambda: numbers(1_000, 10, 3), lambda: _choice(loss="cost")),
    "fit, 200,000 x 20": (lambda: numbers(200_000, 20, 4), lambda: _tree(n_starts=3)),
    "choice, 100,000 x 20": (lambda: numbers(100_000, 20, 4), _choice),
    "choice, 2,000 x 600": (lambda: numbers(2_000, 600, 3), _choice),
    "path, 8,000 x 20": (lambda: numbers(8_000, 20, 5), _path),
    "report, table 1,500 x 30": (lambda: staff_rows(1500), _report),
}
"""Kinds of work that are interrupted: the rows, and the call that takes them."""

LONGEST = 12.0
"""An interruption comes within the first so many seconds."""


def serve() -> None:
    """Do a kind of work again and again; tell when it begins and how it came back."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # except during the work
    warnings.simplefilter("ignore")
    for loss in ("log", "cost"):  # all code is compiled and loaded
        _choice(loss=loss, time_limit=5.0)(*numbers(150, 4, 3))
    make_rows, make_call = WORK[sys.stdin.readline().strip()]
    rows, call = make_rows(), make_call()
    print("ready", flush=True)
    while sys.stdin.readline().strip() == "go":
        print("begun", flush=True)
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            result = call(*rows)
            ended = time.monotonic()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            end = "complete" if str(getattr(result, "end_", "")) == "complete" else "kept"
            if hasattr(result, "tree_"):
                tree = result.tree_
                proba = tree.predict_proba(np.zeros((1, len(tree.feature_names))))
                end = end if np.all(np.isfinite(proba)) else "broken"
        except KeyboardInterrupt:
            ended, end = time.monotonic(), "nothing to keep"
        except BaseException as error:
            ended, end = time.monotonic(), f"broken: {type(error).__name__}: {error}"
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print(json.dumps({"ended": ended, "spent": time.process_time(), "end": end}), flush=True)


def processor_seconds(pid: int) -> float:
    """Processor time that a process has used so far."""
    facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")


def interrupt(args: argparse.Namespace) -> dict[str, Any]:
    """Ctrl-C at random moments; seconds until the call is back, and what it came back with."""
    with ThreadPoolExecutor(args.together) as pool:
        figures = pool.map(lambda kind: interrupted(kind, args.times, args.seed), args.kinds)
        kinds = dict(zip(args.kinds, figures, strict=True))
    waits = [wait for kind in kinds.values() for wait in kind["waits"]]
    return {
        "times": len(waits),
        "in_time": sum(wait <= BACK for wait in waits),
        "median": statistics.median(waits) if waits else None,
        "slowest": max(waits, default=None),
        "together": args.together,
        "kinds": kinds,
    }


def interrupted(kind: str, times: int, seed: int) -> dict[str, Any]:
    """The same for one kind of work, in a process of its own."""
    rng = random.Random(f"{seed} {kind}")
    child = subprocess.Popen(
        [sys.executable, __file__, "child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert child.stdin is not None and child.stdout is not None

    def ask(text: str, child: Any = child) -> str:
        child.stdin.write(f"{text}\n")
        child.stdin.flush()
        return str(child.stdout.readline())

    ask(kind)
    ask("go")
    began = time.monotonic()  # once to the end or to its limit: the length of the work
    if not select.select([child.stdout], [], [], LONGEST)[0]:
        child.send_signal(signal.SIGINT)
    length = min(json.loads(child.stdout.readline())["ended"] - began, LONGEST)
    waits: list[float] = []
    spent: list[float] = []
    ends: list[str] = []
    while len(waits) < times and len(ends) < 2 * times:
        ask("go")
        time.sleep(rng.uniform(0.0, length))
        sent, used = time.monotonic(), processor_seconds(child.pid)
        child.send_signal(signal.SIGINT)
        answer = json.loads(child.stdout.readline())
        if answer["ended"] < sent:
            ends.append("done before")
            continue
        waits.append(round(answer["ended"] - sent, 2))
        spent.append(round(answer["spent"] - used, 2))
        ends.append(answer["end"])
    child.stdin.close()
    child.wait()
    return {
        "length": round(length, 1),
        "waits": waits,
        "spent": spent,
        "load": round(os.getloadavg()[0], 1),
        "in_time": sum(wait <= BACK for wait in waits),
        "ends": {end: ends.count(end) for end in sorted(set(ends))},
    }


# --- single calls --------------------------------------------------------------------------------


def calls(args: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of single calls, the median of many; seconds of an import in a new process."""
    from softsplit import SoftTreeClassifier

    table = staff()
    X, y = table.drop(columns="left"), table["left"]
    tree = SoftTreeClassifier(random_state=0).fit(X, y)

    def milliseconds(call: Callable[[], Any]) -> float:
        call()
        return round(1e3 * statistics.median(times_of(call, 300)), 2)

    one, thousand = X[:1], X[:1000]
    command = [sys.executable, "-c", "import softsplit"]
    loading = times_of(lambda: subprocess.run(command, check=True), 5)
    (pair,) = times_of(lambda: tree.partial_dependence(X, ["number_0", "number_1"]), 1)
    return {
        "columns_used": len(tree.selected_features_),
        "partial_dependence_10000_points_s": round(pair, 2),
        "one_row_ms": milliseconds(lambda: tree.predict_proba(one)),
        "thousand_rows_ms": milliseconds(lambda: tree.predict_proba(thousand)),
        "import_s": round(statistics.median(loading), 2),
    }


# --- limits --------------------------------------------------------------------------------------


def limits(args: argparse.Namespace) -> dict[str, Any]:
    """Seconds that calls take under limits of 1, 3 and 10 seconds; a choice and a fit."""
    from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, strength_path

    X, y = numbers(13_000, 20, 9)
    few = numbers(150, 4, 3)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for limit in (1.0, 3.0, 10.0):
            tree = SoftTreeClassifier(random_state=0, time_limit=limit)
            works: dict[str, Callable[[Any, Any], Any]] = {
                "fit": tree.fit,
                "choice": SoftTreeClassifierCV(random_state=0, time_limit=limit).fit,
                "path": lambda X, y, tree=tree: strength_path(X, y, estimator=tree),
            }
            for name, work in works.items():
                work(*few)  # all code is loaded
                (taken,) = times_of(partial(work, X, y), 1)
                kept = taken <= limit + max(0.5, 0.1 * limit)
                rows.append(
                    {"work": name, "limit": limit, "seconds": round(taken, 2), "kept": kept}
                )
                print(rows[-1], file=sys.stderr, flush=True)
    return {"rows": rows}


PARTS = {
    "report": report, "interrupt": interrupt, "limits": limits, "calls": calls,
}  # fmt: skip


# --- page ----------------------------------------------------------------------------------------


def make_page() -> None:
    """Put the last figures of each kind on the page."""
    last: dict[tuple[str, int], dict[str, Any]] = {}
    for line in rows_of(LINES):
        last[line["part"], line["busy"]] = line
    lines: dict[str, list[dict[str, Any]]] = {part: [] for part in PARTS}
    for (part, _), line in sorted(last.items()):
        if part in PARTS:
            lines[part].append(line)
    write_page(
        PAGE,
        {
            "report": markdown(
                ["busy processes", "seconds", "processor seconds", "load of the machine",
                 "trees on the slider", "methods not judged"],
                [
                    [line["busy"], line["seconds"], line["processor_seconds"], line["load"],
                     line["trees"], line["methods_missing"] or "none"]
                    for line in lines["report"]
                ],
            ),
            "interrupt": markdown(
                ["work", "busy processes", "load of the machine", "times",
                 "back within a second", "slowest", "within a processor second",
                 "most processor seconds", "came back with"],
                [row for line in lines["interrupt"] for row in interrupt_rows(line)],
            ),
            "limits": markdown(
                ["work", "busy processes", "limit", "seconds", "kept"],
                [
                    [row["work"], line["busy"], row["limit"], row["seconds"],
                     "yes" if row["kept"] else "no"]
                    for line in lines["limits"]
                    for row in line["rows"]
                ],
            ),
            "calls": markdown(
                ["call", "busy processes", "taken"],
                [
                    [name, line["busy"], value]
                    for line in lines["calls"]
                    for name, value in line.items()
                    if name not in ("part", "busy")
                ],
            ),
        },
    )  # fmt: skip


def interrupt_rows(line: dict[str, Any]) -> list[list[Any]]:
    """A row of the table for each kind of work, and one for all."""
    rows: list[list[Any]] = []
    spent: list[float] = []
    for kind, work in line["kinds"].items():
        seconds = work.get("spent", [])
        spent += seconds
        rows.append([
            kind, line["busy"], work.get("load", "-"), len(work["waits"]), work["in_time"],
            max(work["waits"], default="-"), sum(s <= BACK for s in seconds),
            max(seconds, default="-"),
            ", ".join(f"{end} {count}" for end, count in work["ends"].items()),
        ])  # fmt: skip
    return [
        *rows,
        ["all", line["busy"], "", line["times"], line["in_time"], line["slowest"],
         sum(s <= BACK for s in spent), max(spent, default="-"), ""],
    ]  # fmt: skip


if __name__ == "__main__":
    main()
