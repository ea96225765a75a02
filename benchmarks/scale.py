"""Many rows: time beside other methods, threads, growth with the rows, memory, choice.

    python benchmarks/scale.py rows        one million rows x 30 beside histogram boosting
    python benchmarks/scale.py threads     one evaluation of all rows on one and on two threads
    python benchmarks/scale.py exponent    seconds against rows, beside other methods
    python benchmarks/scale.py memory      peak memory of a fit, in units of its input
    python benchmarks/scale.py cv          the choice by cross-validation on large tables

Rows: standard normal features, depth 3, four classes: the largest of four random linear scores
with Gumbel noise of scale 0.3, and one label in ten drawn anew. Every method runs in a process of
its own, one after the other; seconds are those of the clock, and of all processors together, which
other work on the machine does not change. With --write figures are kept in docs/results/scale.json,
of which docs/images/make_scaling.py makes the picture.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from common import RESULTS, arguments, markdown, timed

N_FEATURES, N_CLASSES, DEPTH = 30, 4, 3
NOISE, REDRAWN = 0.3, 0.1
STORE = RESULTS / "scale.json"
METHODS = ("tree", "boosting", "logistic", "cart")
TABLES = ("covertype", "higgs-sample", "adult")
CV_METHODS = ("choice", "boosting", "l1")


def main() -> None:
    args = arguments(
        __doc__,
        [*sorted(PARTS), "one"],
        rows=(1000000.0, ""),
        sizes=([10000.0, 100000.0, 1000000.0, 10000000.0], ""),
        methods=([], "only these"),
        tables=(list(TABLES), ""),
        task=(str, argparse.SUPPRESS),
        write=(False, "figures to docs/results/scale.json"),
    )
    if args.part == "one":
        print(json.dumps(TASKS[(task := json.loads(args.task)).pop("task")](**task)))
        return
    found = list(PARTS[args.part](args))
    names = list(dict.fromkeys(name for row in found for name in row))
    cells = [[row.get(name, "") for name in names] for row in found]
    shown = [[f"{v:.4g}" if isinstance(v, float) else v for v in row] for row in cells]
    print(markdown(names, shown))
    if args.write:
        known = json.loads(STORE.read_text()) if STORE.exists() else {}
        STORE.write_text(json.dumps(known | {args.part: found}, indent=1) + "\n")


def alone(task: str, **settings: Any) -> dict[str, Any]:
    """A task in a process of its own."""
    asked = json.dumps({"task": task, **settings})
    line = [sys.executable, __file__, "one", "--task", asked]
    done = subprocess.run(line, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(settings, found, file=sys.stderr, flush=True)
    return found


def gumbel_rows(n_rows: int, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    """The rows of this benchmark, made in pieces."""
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((N_FEATURES, N_CLASSES)) / np.sqrt(N_FEATURES)
    X, y = np.empty((n_rows, N_FEATURES), dtype=dtype), np.empty(n_rows, dtype=np.int64)
    for begin in range(0, n_rows, 100_000):
        part = rng.standard_normal((min(100_000, n_rows - begin), N_FEATURES))
        scores = part @ directions + NOISE * rng.gumbel(size=(len(part), N_CLASSES))
        labels, anew = np.argmax(scores, axis=1), rng.random(len(part)) < REDRAWN
        labels[anew] = rng.integers(N_CLASSES, size=anew.sum())
        X[begin : begin + len(part)], y[begin : begin + len(part)] = part, labels
    return X, y


def model_of(method: str, n_jobs: int | None = None) -> Any:
    """A classifier with its defaults."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    from softsplit import SoftTreeClassifier, SoftTreeClassifierCV

    if method == "l1":
        lasso = LogisticRegression(l1_ratio=1.0, solver="saga", max_iter=60)
        return make_pipeline(StandardScaler(), lasso)
    return {
        "tree": SoftTreeClassifier(depth=DEPTH, random_state=0, n_jobs=n_jobs),
        "choice": SoftTreeClassifierCV(random_state=0, n_jobs=n_jobs),
        "boosting": HistGradientBoostingClassifier(random_state=0),
        "logistic": LogisticRegression(),
        "cart": DecisionTreeClassifier(random_state=0),
    }[method]


def fit_one(method: str, n_rows: int, dtype: str = "float64", n_jobs: int | None = None) -> Any:
    """A method on the rows of this benchmark; what compiles does so before."""
    X, y = gumbel_rows(n_rows, dtype)
    model = model_of(method, n_jobs)
    if method == "tree":
        model_of(method).fit(*gumbel_rows(22_000, dtype))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model, found = timed(lambda: model.fit(X, y))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found |= {"input_mb": X.nbytes / 2**20, "added_mb": (peak - before) / 1024}
    found["accuracy"] = float(model.score(X[:100_000], y[:100_000]))
    if method == "tree":
        found |= {
            "objective": float(model.objective_),
            "status": model.solution_.status.name,
            "features": len(model.selected_features_),
        }
    return found


def every_start(n_rows: int) -> dict[str, Any]:
    """Ten starts, each of which descends on all rows; the least objective."""
    from softsplit import SoftTreeClassifier
    from softsplit.formulations.model_settings import ModelSettings
    from softsplit.solvers import EliminationSolver
    from softsplit.training.multistart import multistart
    from softsplit.training.preparation import prepare
    from softsplit.training.rows import Rows

    X, y = gumbel_rows(n_rows)
    rows = Rows(X, y, np.ones(n_rows), np.arange(N_CLASSES))
    settings = ModelSettings.of(SoftTreeClassifier(depth=DEPTH).get_params(deep=False))
    problem = prepare(settings, rows).problem
    ends, found = timed(lambda: multistart(problem, EliminationSolver(), n_starts=10, seed=0))
    return found | {"objective": min(one.objective for one in ends)}


def evaluations(n_rows: int, threads: int) -> dict[str, Any]:
    """Seconds of an evaluation of all rows."""
    from softsplit.engines.compiled import CompiledRows
    from softsplit.engines.outer import LOGARITHM

    rows = CompiledRows.from_arrays(*gumbel_rows(n_rows), N_CLASSES).in_threads(threads)
    rng = np.random.default_rng(0)
    n_branches = 2**DEPTH - 1
    splits = 0.3 * rng.standard_normal((n_branches, N_FEATURES + 1))
    leaves = rng.dirichlet(np.ones(N_CLASSES), n_branches + 1).T
    asked = (splits, leaves, LOGARITHM, float(N_FEATURES))
    rows.evaluate(*asked)
    times = [timed(lambda: rows.evaluate(*asked))[1] for _ in range(9)]
    value = rows.evaluate(*asked).value
    return {name: min(one[name] for one in times) for name in ("seconds", "cpu")} | {"value": value}


def on_table(method: str, name: str) -> dict[str, Any]:
    """A method on four fifths of a table, and its accuracy on the rest."""
    from sklearn.model_selection import train_test_split

    from softsplit.data import load_dataset

    data = load_dataset(name)
    y = np.searchsorted(data.class_names, data.y)
    X, X_test, y, y_test = train_test_split(data.X, y, test_size=0.2, stratify=y, random_state=0)
    if method == "choice":
        model_of("tree").fit(X[:22_000], y[:22_000])
    model, found = timed(lambda: model_of(method).fit(X, y))
    found["accuracy"] = float(model.score(X_test, y_test))
    if method == "choice":
        found |= {"depth": model.best_params_["depth"], "features": len(model.selected_features_)}
    return found


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "fit": fit_one, "every": every_start, "evaluations": evaluations, "table": on_table,
}  # fmt: skip


def part_rows(args: argparse.Namespace) -> Iterable[dict[str, Any]]:
    for method in args.methods or METHODS[:2]:
        yield {"method": method} | alone("fit", method=method, n_rows=int(args.rows))
    yield {"method": "ten starts on all rows"} | alone("every", n_rows=int(args.rows))


def part_threads(args: argparse.Namespace) -> Iterable[dict[str, Any]]:
    for threads in (1, 2):
        found = alone("evaluations", n_rows=int(args.rows), threads=threads)
        yield {"threads": threads} | found


def part_exponent(args: argparse.Namespace) -> Iterable[dict[str, Any]]:
    for n_rows in map(int, args.sizes):
        for method in args.methods or METHODS:
            if method == "tree" or n_rows <= 1e6:
                dtype = "float32" if n_rows > 1e6 else "float64"
                found = alone("fit", method=method, n_rows=n_rows, dtype=dtype)
                yield {"rows": n_rows, "method": method} | found


def part_memory(args: argparse.Namespace) -> Iterable[dict[str, Any]]:
    for dtype in ("float64", "float32"):
        found = alone("fit", method="tree", n_rows=int(args.rows), dtype=dtype)
        yield {"input": dtype, "times the input": found["added_mb"] / found["input_mb"]} | found


def part_cv(args: argparse.Namespace) -> Iterable[dict[str, Any]]:
    for name in args.tables:
        for method in args.methods or CV_METHODS:
            yield {"table": name, "method": method} | alone("table", method=method, name=name)


PARTS: dict[str, Callable[[argparse.Namespace], Iterable[dict[str, Any]]]] = {
    "rows": part_rows, "threads": part_threads, "exponent": part_exponent, "memory": part_memory,
    "cv": part_cv,
}  # fmt: skip


if __name__ == "__main__":
    main()
