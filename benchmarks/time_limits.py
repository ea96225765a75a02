"""How far calls go beyond a limit of a tenth of a second, on tables for which that is too short.

    python benchmarks/time_limits.py [--write]

A call must end with a feasible tree, so that the first step of a start, the exact step of its
leaves, and what is told of the tree are made whatever they take. Figures are of the processor.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from pages import keep, markdown
from sklearn.exceptions import ConvergenceWarning

from softsplit import SoftTreeClassifier, SoftTreeClassifierCV, strength_path

LIMIT = 0.1
SIZES = (
    (2_000, 20, 50, 8),
    (20_000, 50, 5, 6),
    (3_000, 100, 10, 8),
    (300, 2_000, 2, 6),
    (300, 20, 200, 8),
    (200, 5_000, 2, 8),
)
"""Rows, features, classes, depth."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="figures to docs/results/reliability")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="so many of them")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
    first = table((60, 3, 2, 2))
    for call in CALLS.values():  # all code is loaded
        call(*first, 2)
    rows = []
    for size in SIZES[: args.sizes]:
        X, y = table(size)
        beyond = {name: overrun(call, X, y, size[3]) for name, call in CALLS.items()}
        names = ("rows", "features", "classes", "depth")
        rows.append(dict(zip(names, size, strict=True)) | beyond)
    text = markdown(list(rows[0]), [list(row.values()) for row in rows])
    keep("time limits", {"limit": LIMIT, "seconds_beyond": rows}, text, write=args.write)


def table(size: tuple[int, int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    n_rows, n_features, n_classes, _ = size
    return np.random.default_rng(0).normal(size=(n_rows, n_features)), np.arange(n_rows) % n_classes


def overrun(call: Any, X: np.ndarray, y: np.ndarray, depth: int) -> float:
    began = time.process_time()
    call(X, y, depth)
    return round(time.process_time() - began - LIMIT, 2)


def _tree(depth: int, solver: str = "native") -> SoftTreeClassifier:
    loss, rate = ("log", 0.0) if solver == "native" else ("cost", 0.001)
    return SoftTreeClassifier(
        depth=depth, global_strength=0.1, min_class_rate=rate, solver=solver, time_limit=LIMIT,
        random_state=0, loss=loss,
    )  # fmt: skip


def _choose(X: np.ndarray, y: np.ndarray, depth: int) -> None:
    SoftTreeClassifierCV(
        depths=[depth], min_class_rate=0.001, time_limit=LIMIT, random_state=0
    ).fit(X, y)


CALLS = {
    "fit": lambda X, y, depth: _tree(depth).fit(X, y),
    "fit by decomposition": lambda X, y, depth: _tree(depth, "decomposition").fit(X, y),
    "strength_path": lambda X, y, depth: strength_path(X, y, estimator=_tree(depth)),
    "SoftTreeClassifierCV": _choose,
}

if __name__ == "__main__":
    main()
