"""Thousands of fits in one process, and predictions for ten million rows.

    python benchmarks/load.py fits --times 2000
    python benchmarks/load.py predict --rows 10000000
    python benchmarks/load.py --write            both

Memory counts as flat if the process is within 5 % of what it was after the warm-up, taken as means
of the first and the last tenth of the fits behind it. Times of "predict" are of the processor, so
that other programs do not count, on one thread and in turns with the matrix product.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from pages import keep, markdown
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from softsplit import SoftTreeClassifier

WARM_UP = 0.15
"""Share of the fits that come before the first measurement: caches fill, memory pools grow."""

BAR = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=("fits", "predict"), help="one part only")
    parser.add_argument("--times", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--write", action="store_true", help="figures to docs/results/reliability")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if args.part in (None, "fits"):
        found = fits(args.times)
        table = markdown(["figure", "value"], [[k.replace("_", " "), v] for k, v in found.items()])
        keep("fits", found, table, write=args.write)
        if found["flat_within_5_%"] == "NO" or found["threads_left"] or found["files_left_open"]:
            raise SystemExit("something is left behind by each fit.")
    if args.part in (None, "predict"):
        cases = ((10, 2, 0.0), (50, 3, 0.0), (50, 3, 10.0))
        rows = [predictions(args.rows, *case) for case in cases]
        table = markdown(
            [name.replace("_", " ") for name in rows[0]], [list(row.values()) for row in rows]
        )
        keep("predict", {"cases": rows}, table, write=args.write)


# --- fits ---------------------------------------------------------------------------------------


def fits(times: int) -> dict[str, Any]:
    """Fits of mixed sizes and settings; memory, threads and open files after each."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        one_fit(rng)
    began, sizes = time.perf_counter(), []
    threads, files = running_threads(), open_files()
    for i in range(times):
        one_fit(rng)
        sizes.append(resident_mb())
        if i % 100 == 99:
            print(f"{i + 1} fits, {sizes[-1]:.0f} MB", file=sys.stderr)
    gc.collect()
    measured = sizes[int(WARM_UP * times) :]
    tenth = max(1, len(measured) // 10)
    first, last = float(np.mean(measured[:tenth])), float(np.mean(measured[-tenth:]))
    return {
        "fits": times,
        "seconds": round(time.perf_counter() - began),
        "MB_after_warm_up": round(first, 1),
        "MB_at_the_end": round(last, 1),
        "growth_%": round(100 * (last / first - 1), 2),
        "flat_within_5_%": "yes" if abs(last / first - 1) <= BAR else "NO",
        "threads_left": running_threads() - threads,
        "files_left_open": open_files() - files,
    }


def one_fit(rng: np.random.Generator) -> None:
    n_rows, n_features = int(20 * 150 ** rng.uniform()), int(rng.integers(1, 25))
    depth = int(rng.integers(1, 4))
    n_classes = int(rng.integers(2, 2**depth + 1))
    X = rng.normal(size=(n_rows, n_features))
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes)])
    solver = str(rng.choice(["native", "decomposition"], p=[0.9, 0.1]))
    loss = str(rng.choice(["log", "cost"])) if solver == "native" else "cost"
    tree = SoftTreeClassifier(
        loss=loss,
        depth=depth,
        penalty=str(rng.choice(["l1", "l0", "power", "log"])),
        local_strength=float(rng.choice([0.0, 0.5])),
        global_strength=float(rng.choice([0.0, 1.0])),
        scale=str(rng.choice(["minmax", "quantile", "standard"])),
        min_class_rate=0.0,
        n_starts=int(rng.integers(1, 3)),
        max_iter=rng.choice([30, None], p=[0.7, 0.3]),
        solver=solver,
        n_jobs=int(rng.choice([1, 2])),
        random_state=0,
    )
    tree.fit(X, y).predict_proba(X)


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def running_threads() -> int:
    """Those of compiled libraries too."""
    return len(list(Path("/proc/self/task").iterdir()))


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


# --- predict ------------------------------------------------------------------------------------


def predictions(
    n_rows: int, n_features: int, depth: int, strength: float, chunk: int = 1_000_000
) -> dict[str, Any]:
    """Class probabilities of a stream of chunks beside the bare product of the same chunks."""
    rng = np.random.default_rng(0)
    X = rng.random((300, n_features))
    y = (X[:, :depth] > 0.5) @ 2 ** np.arange(depth)
    tree = SoftTreeClassifier(
        depth=depth, global_strength=strength, n_starts=1, max_iter=20, random_state=0
    ).fit(X, y)
    rows = rng.random((min(chunk, n_rows), n_features))
    tree.predict_proba(rows[:100_000])  # machine code is there before the clock runs
    weights = np.ascontiguousarray(tree.weights_)
    spent = {"predict": 0.0, "model": 0.0, "product": 0.0, "read": 0.0}
    model, done = tree.tree_, 0
    actions = {
        "predict": lambda: tree.predict_proba(rows),
        "model": lambda: model.predict_proba(rows),
        "product": lambda: rows @ weights,
        "read": lambda: rows.sum(),
    }
    with threadpool_limits(limits=1):
        while done < n_rows:
            for name, action in actions.items():
                began = time.process_time()
                action()
                spent[name] += time.process_time() - began
            done += len(rows)
    tracemalloc.start()
    result = tree.predict_proba(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    megabytes = done * n_features * 8 / 1e6
    return {
        "rows": done,
        "features": n_features,
        "depth": depth,
        "features_used": int(np.any(weights, axis=1).sum()),
        "predict_proba,_s": round(spent["predict"], 2),
        "of_which_checks,_s": round(spent["predict"] - spent["model"], 2),
        "rows_per_s": f"{done / spent['predict']:.2g}",
        "MB_of_X_per_s": round(megabytes / spent["predict"]),
        "matrix_product,_s": round(spent["product"], 2),
        "ratio": round(spent["predict"] / spent["product"], 1),
        "reading_X_once,_s": round(spent["read"], 2),
        "memory_beyond_X_and_answer,_MB": round((peak - result.nbytes) / 1e6, 1),
    }


if __name__ == "__main__":
    main()
