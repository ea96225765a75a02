"""Thousands of fits in one process.

    python benchmarks/load.py [--times 2000] [--write]

Memory counts as flat if the process is within 5 % of what it was after the warm-up, taken as means
of the first and the last tenth of the fits behind it.
"""

from __future__ import annotations

import gc
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import WRITE, arguments, keep, markdown
from sklearn.exceptions import ConvergenceWarning

from softsplit import SoftTreeClassifier

WARM_UP = 0.15
"""Share of the fits that come before the first measurement: caches fill, memory pools grow."""

BAR = 0.05
FEWEST = 200
"""Fewer fits say nothing of memory."""


def main() -> None:
    args = arguments(__doc__, times=2000, **WRITE)
    warnings.simplefilter("ignore", ConvergenceWarning)
    figures = fits(args.times)
    table = markdown(["figure", "value"], [[k.replace("_", " "), v] for k, v in figures.items()])
    keep("fits", figures, table, write=args.write)
    if args.times < FEWEST:
        print(f"{args.times} fits are too few to say whether memory is flat.")
    if figures["flat_within_5_%"] == "NO" or figures["threads_left"] or figures["files_left_open"]:
        raise SystemExit("something is left behind by each fit.")


def fits(times: int) -> dict[str, Any]:
    """Fits of mixed sizes and settings; memory, threads and open files after each."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        one_fit(rng)
    began, sizes = time.perf_counter(), []
    threads, files = entries("task"), entries("fd")
    for i in range(times):
        one_fit(rng)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        sizes.append(pages * os.sysconf("SC_PAGESIZE") / 2**20)
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
        "threads_left": entries("task") - threads,
        "files_left_open": entries("fd") - files,
    }


def entries(folder: str) -> int:
    """Threads, also of compiled libraries, or open files of this process."""
    return len(list(Path(f"/proc/self/{folder}").iterdir()))


def one_fit(rng: np.random.Generator) -> None:
    n_rows, n_features = int(20 * 150 ** rng.uniform()), int(rng.integers(1, 25))
    depth = int(rng.integers(1, 4))
    n_classes = int(rng.integers(2, 2**depth + 1))
    X = rng.normal(size=(n_rows, n_features))
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes)])
    solver = str(rng.choice(["native", "decomposition"], p=[0.9, 0.1]))
    loss = str(rng.choice(["log", "cost"])) if solver == "native" else "cost"
    tree = SoftTreeClassifier(
        loss=loss, depth=depth, solver=solver, min_class_rate=0.0, random_state=0,
        penalty=str(rng.choice(["l1", "l0", "power", "log"])),
        local_strength=float(rng.choice([0.0, 0.5])), global_strength=float(rng.choice([0.0, 1.0])),
        scale=str(rng.choice(["minmax", "quantile", "standard"])),
        n_starts=int(rng.integers(1, 3)), n_jobs=int(rng.choice([1, 2])),
        max_iter=rng.choice([30, None], p=[0.7, 0.3]),
    )  # fmt: skip
    tree.fit(X, y).predict_proba(X)


if __name__ == "__main__":
    main()
