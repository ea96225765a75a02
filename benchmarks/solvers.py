"""The native solver against the best known objectives, and against IPOPT in the same run.

    python benchmarks/solvers.py objective   best of ten starts, then hops, against best_known.csv
    python benchmarks/solvers.py speed       seconds per start beside IPOPT
    python benchmarks/solvers.py first-use   first fits with a cold and a warm cache, and commands

Everything runs on one thread. Times are those of whole starts: drawing the start, solving, and
measuring the result. Those of the speed table are processor time, that of IPOPT's own process
included, so that other work on the machine bears on both sides alike. Tables of reference figures:
--reference or SOFTSPLIT_REFERENCE.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import arguments
from reference import read_rows, reference_folder, row_label, row_problem
from threadpoolctl import threadpool_limits

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers import Budget, Solution, Solver, make_solver
from softsplit.solvers.starts.rules import draw_start
from softsplit.training.best import best_solution
from softsplit.training.multistart import multistart, search_around

FEASIBLE = 1e-6
RECORD = 0.9999
BARS = (
    ("after hops", 1, 1.001, 28 / 32),
    ("after hops", 1, 1.03, 1.0),
    ("median start", 2, 1.05, 0.8),
)
"""What is judged, its column in the figures, the largest ratio, and the share of rows within it."""


def main() -> None:
    args = arguments(
        __doc__,
        sorted(PARTS),
        reference=(str, "folder of the reference tables"),
        rows=("", "only rows whose label contains this"),
        starts=(10, ""),
        ipopt_starts=(3, ""),
        time_limit=(120.0, "of one IPOPT start"),
        seed=(0, ""),
    )
    PARTS[args.part](args)


def objective(args: argparse.Namespace) -> None:
    """Ratios to the best known objectives, and whether the bars are met."""
    solver = make_solver("native")
    print(f"{'row':34}{'best known':>12}{'starts':>9}{'hops':>9}{'median':>9}{'ms/start':>10}  end")
    found, records = [], []
    for row in selected(args, "best_known.csv"):
        problem, known = row_problem(row), float(row["objective"])
        after, *ratios, seconds = summary(problem, solver, known, args)
        assert after.violation <= FEASIBLE, row_label(row)
        found.append(ratios)
        if ratios[1] < RECORD:
            records.append(f"{row_label(row)}: {after.objective:.6g} ({ratios[1]:.4f})")
        print(
            f"{row_label(row):34}{known:12.4f}{ratios[0]:9.4f}{ratios[1]:9.4f}{ratios[2]:9.4f}"
            f"{1e3 * seconds:10.1f}  {after.status.name.lower()}, "
            f"residual {after.kkt.residual:.0e}",
            flush=True,
        )
    table = np.array(found)
    print(f"\nrecords beaten: {', '.join(records) or 'none'}")
    for name, column, most, share in BARS:
        kept = table[:, column] <= most
        verdict = "met" if kept.mean() >= share else "missed"
        print(
            f"{name}: {kept.sum()} of {len(kept)} rows within {most} (bar {share:.1%}): {verdict}"
        )


def summary(
    problem: TrainingProblem, solver: Solver, known: float, args: argparse.Namespace
) -> tuple[Solution, float, float, float, float]:
    """The tree after the search; best start, that tree and the median start relative to ``known``;
    seconds per start. A start without a feasible tree counts as infinitely bad in the median."""
    began = time.perf_counter()
    starts = multistart(problem, solver, n_starts=args.starts, seed=args.seed)
    seconds = (time.perf_counter() - began) / args.starts
    best = best_solution(starts)
    after = search_around(problem, solver, starts, seed=args.seed)
    median = float(np.median([s.objective if s.status.usable else np.inf for s in starts]))
    return after, best.objective / known, after.objective / known, median / known, seconds


def speed(args: argparse.Namespace) -> None:
    """Bar: IPOPT takes 100 times as long in the median."""
    print(f"{'row':34}{'native ms':>10}{'IPOPT s':>11}{'ratio':>8}{'portfolio s':>13}{'ratio':>7}")
    native, ratios, wholes = make_solver("native"), [], []
    for row in selected(args, "ipopt.csv"):
        problem = row_problem(row)
        one_start(problem, native, 0, None)  # compile
        one = np.median([one_start(problem, native, i, None) for i in range(args.starts)])
        whole = portfolio(problem, native, args)
        times = [
            one_start(problem, make_solver("ipopt"), i, args.time_limit)
            for i in range(args.ipopt_starts)
        ]
        ratios.append(float(np.median(times) / one))
        wholes.append(float(args.starts * np.mean(times) / whole))
        line = f"{row_label(row):34}{1e3 * one:10.2f}{np.median(times):11.2f}{ratios[-1]:8.0f}"
        print(line + f"{whole:13.2f}{wholes[-1]:7.0f}", flush=True)
    print(f"one start against one start, ratio {spread(ratios)}")
    print(
        f"{args.starts} starts and the search after them against {args.starts} starts "
        f"(the mean of {args.ipopt_starts}, times {args.starts}), ratio {spread(wholes)}"
    )


def spread(ratios: list[float]) -> str:
    return f"{np.median(ratios):.0f} ({min(ratios):.0f} to {max(ratios):.0f})"


def portfolio(problem: TrainingProblem, solver: Solver, args: argparse.Namespace) -> float:
    """Processor seconds of all starts and the search after them."""
    began = time.process_time()
    starts = multistart(problem, solver, n_starts=args.starts, seed=args.seed)
    search_around(problem, solver, starts, seed=args.seed)
    return time.process_time() - began


def one_start(
    problem: TrainingProblem, solver: Solver, index: int, time_limit: float | None
) -> float:
    """Processor seconds of one start, from drawing it to its measured solution.

    A run that meets its time limit counts with what it had taken: the ratio is then a lower bound.
    """
    with threadpool_limits(limits=1):
        rng = np.random.default_rng(index)
        began = time.process_time()
        rule = solver.start_rules[index % len(solver.start_rules)]
        start = draw_start(rule, problem, rng, solver.candidates)
        solution: Solution = solver.solve(problem, start, Budget(time_limit=time_limit))
        assert np.isfinite(solution.seconds)
        return time.process_time() - began + solution.child_cpu_seconds


def first_use(args: argparse.Namespace) -> None:
    """Bars: first fit of iris 15 s cold and 2 s warm; ``softsplit predict`` of 100 rows 1.5 s.

    A process and all that it imports is part of every figure but the first.
    """
    print(f"import softsplit: {float(run_python(IMPORT)):.2f} s")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, rows = folder / "iris.json", folder / "rows.csv"
        for loss in ("log", "cost"):
            cache = str(folder / loss)
            for state, bar in (("cold", 15), ("warm", 2)):
                seconds = timed(FIRST_FIT, loss, str(model), str(rows), cache=cache)
                print(f"first fit of iris by {loss}, {state}: {seconds:.2f} s (bar {bar})")
                seconds = timed(COMMAND, "compile", "--quiet", cache=cache)
                print(f"    all the rest compiled: after {seconds:.1f} s more", flush=True)
        asked = ["predict", str(model), str(rows), "--quiet"]
        for command, bar in (["--help"], 0), (["info"], 0), (["info", str(model)], 0), (asked, 1.5):
            seconds = min(timed(COMMAND, *command, cache=cache) for _ in range(3))
            told = f" (bar {bar})" if bar else ""
            print(f"softsplit {command[0]}: {seconds:.2f} s{told}", flush=True)


def timed(script: str, *arguments: str, cache: str) -> float:
    """Seconds of a whole process."""
    began = time.perf_counter()
    run_python(script, *arguments, cache=cache)
    return time.perf_counter() - began


IMPORT = """
import time
began = time.perf_counter()
import softsplit
print(time.perf_counter() - began)
"""

FIRST_FIT = """
import sys
from sklearn.datasets import load_iris
from softsplit import SoftTreeClassifier, save_model
X, y = load_iris(return_X_y=True)
tree = SoftTreeClassifier(random_state=0, loss=sys.argv[1]).fit(X, y)
save_model(tree, sys.argv[2])
with open(sys.argv[3], "w") as file:
    file.write("\\n".join(",".join(map(str, row)) for row in [["x0", "x1", "x2", "x3"], *X[:100]]))
"""

COMMAND = """
from softsplit.__main__ import main
main()
"""


def run_python(script: str, *arguments: str, cache: str | None = None) -> str:
    """Output of a script in a process of its own."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def selected(args: argparse.Namespace, table: str) -> list[dict[str, str]]:
    folder: Path = reference_folder(args.reference)
    return [row for row in read_rows(folder / table) if args.rows in row_label(row)]


PARTS = {
    "objective": objective,
    "speed": speed,
    "first-use": first_use,
}

if __name__ == "__main__":
    main()
