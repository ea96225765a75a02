"""Two versions of the library side by side: is the newer one slower?

    python benchmarks/versions.py path/to/before/src path/to/after/src

For each of the 16 problems of the speed table: one start without a search, ten starts with it, and
a fit that chooses by cross-validation (the last on the sets of up to 2,000 rows). Both versions run
in processes of their own, in turn, and are asked for processor time, so that other work on the
machine bears on both alike. Each figure is the ratio of the best of ``--repeats`` times; the table
ends with the medians. Tables of reference figures: --reference or SOFTSPLIT_REFERENCE; with
``--bundled`` the problems are three data sets of scikit-learn, and no other file is needed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import add_options
from reference import load_fold, read_rows, reference_folder, row_label, row_strength

FORMS = {
    "L1": ("l1", "local_strength"),
    "Linf": ("l1", "global_strength"),
    "L0loc": ("l0", "local_strength"),
    "L0glob": ("l0", "global_strength"),
}
KINDS = ("one start", "ten starts and search", "cross-validation")
MOST_CHOSEN = 2000
"""Rows up to which a fit by cross-validation is asked for."""

# Only names that both versions have.
WORKER = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
from softsplit import SoftTreeClassifier, SoftTreeClassifierCV
from softsplit.solvers import BasinHoppingSolver

def model(asked):
    if asked["kind"] == "cross-validation":
        return SoftTreeClassifierCV(random_state=0)
    one = asked["kind"] == "one start"
    solver, starts = (BasinHoppingSolver(effort=0.0), 1) if one else ("native", 10)
    return SoftTreeClassifier(
        loss="cost", penalty=asked["penalty"], scale="none", n_starts=starts, solver=solver,
        random_state=0, min_class_rate=asked["rate"], **{asked["scope"]: asked["strength"]},
    )

for line in sys.stdin:
    asked = json.loads(line)
    with np.load(asked["rows"]) as rows:
        X, y = rows["X"], rows["y"]
    tree = model(asked)
    began = time.process_time()
    tree.fit(X, y)
    print(json.dumps(time.process_time() - began), flush=True)
"""


class Version:
    """One version in a process of its own."""

    def __init__(self, source: str) -> None:
        environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def seconds(self, asked: dict[str, object]) -> float:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return float(json.loads(self.process.stdout.readline()))


def reference_problems(folder: str | None, wanted: str) -> Iterator[tuple[str, Any, Any, Any]]:
    """Label, rows, classes and settings of the problems of the speed table."""
    for row in read_rows(reference_folder(folder) / "ipopt.csv"):
        if wanted not in row_label(row):
            continue
        fold = load_fold(row["dataset"], row["coding"], int(row["fold"]))
        penalty, scope = FORMS[row["form"]]
        settings = {"strength": row_strength(row), "rate": float(row["min_class_rate"])}
        yield row_label(row), fold.X, fold.y, {"penalty": penalty, "scope": scope, **settings}


def bundled_problems(wanted: str) -> Iterator[tuple[str, Any, Any, Any]]:
    """The same for data sets of scikit-learn, at a strength that leaves some features."""
    from sklearn import datasets
    from sklearn.preprocessing import minmax_scale

    settings = {"penalty": "l0", "scope": "global_strength", "strength": 0.1, "rate": 0.1}
    for name in ("iris", "wine", "breast_cancer"):
        if wanted in name:
            X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
            yield name, minmax_scale(X), y, settings


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before")
    parser.add_argument("after")
    add_options(
        parser,
        reference=(str, "folder of the reference tables"),
        bundled=(False, "data sets of scikit-learn"),
        rows=("", "only rows whose label contains this"),
        repeats=3,
        folder=("build", "where rows are handed over"),
    )
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    versions = [Version(args.before), Version(args.after)]
    ratios: dict[str, list[float]] = {kind: [] for kind in KINDS}
    print(f"{'row':34}" + "".join(f"{kind:>24}" for kind in KINDS))
    problems = (
        bundled_problems(args.rows)
        if args.bundled
        else reference_problems(args.reference, args.rows)
    )
    for label, X, y, settings in problems:
        place = os.path.join(args.folder, "rows.npz")
        np.savez(place, X=X, y=y)
        asked = {"rows": os.path.abspath(place), **settings}
        line = f"{label:34}"
        for kind in KINDS:
            if kind == "cross-validation" and len(y) > MOST_CHOSEN:
                continue
            repeats = 5 * args.repeats if kind == "one start" else args.repeats
            times = [[v.seconds({**asked, "kind": kind}) for v in versions] for _ in range(repeats)]
            before, after = np.min(times[1:] or times, axis=0)  # the first of each may compile
            ratios[kind].append(after / before)
            line += f"{before:10.4f}{after:8.4f}{after / before:6.2f}"
        print(line, flush=True)
    for kind, found in ratios.items():
        if found:
            print(f"{kind}: median {np.median(found):.3f} ({min(found):.2f} to {max(found):.2f})")


if __name__ == "__main__":
    main()
