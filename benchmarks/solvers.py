"""The native solver against the best known objectives, and against IPOPT in the same run.

    python benchmarks/solvers.py objective   best of ten starts, then hops, against best_known.csv
    python benchmarks/solvers.py known       a table of the lowest objectives of another fold
    python benchmarks/solvers.py ablation    the same with one ingredient at a time left out
    python benchmarks/solvers.py speed       seconds per start beside IPOPT in both forms
    python benchmarks/solvers.py path        a warm-started strength path against separate fits
    python benchmarks/solvers.py growth      seconds per start and memory for 1e4 to 1e6 rows
    python benchmarks/solvers.py first-use   first fits with a cold and a warm cache, and commands

Everything runs on one thread. Times are those of whole starts: drawing the start, solving, and
measuring the result. Those of the speed table are processor time, that of IPOPT's own process
included, so that other work on the machine bears on both sides alike. Tables of reference figures:
--reference or SOFTSPLIT_REFERENCE.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from reference import read_rows, reference_folder, row_label, row_problem
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from softsplit import SoftTreeClassifier, load_dataset, strength_path
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers import BasinHoppingSolver, Budget, Solution, Solver, make_solver
from softsplit.solvers.active_set.descent import NEVER, POLISH, ROUGH
from softsplit.solvers.basin_hopping.perturbations import (
    Fresh,
    OtherStrength,
    Redraw,
    Regrow,
    Relabel,
    Reweigh,
    Warmed,
)
from softsplit.solvers.basin_hopping.stages import Approach, Polish, Race
from softsplit.solvers.starts.rules import draw_start
from softsplit.training.multistart import best_solution, multistart, search_around

OWN_TABLES = Path(__file__).parent
"""Where tables of other folds are kept."""

FEASIBLE = 1e-6
RECORD = 0.9999


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=sorted(PARTS))
    parser.add_argument("--reference", help="folder of the reference tables")
    parser.add_argument("--rows", default="", help="only rows whose label contains this")
    parser.add_argument("--variant", default="", help="only variants whose name contains this")
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--ipopt-starts", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=120.0, help="of one IPOPT start")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fold", type=int, default=0, help="of the objectives: 0 or 3")
    sizes = [10_000, 100_000, 1_000_000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes, help="rows, for growth")
    args = parser.parse_args()
    PARTS[args.part](args)


def objective(args: argparse.Namespace) -> None:
    """Bars: at most 1.001 on 28 of 32 rows, 1.03 on all; median start within 1.05 on 80 %."""
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
    count = len(table)
    print(
        f"\nafter hops: {np.sum(table[:, 1] <= 1.001)} of {count} rows within 1.001 (bar 28 of 32)"
    )
    print(f"            {np.sum(table[:, 1] <= 1.03)} of {count} rows within 1.03 (bar: all)")
    print(f"            records beaten: {', '.join(records) or 'none'}")
    print(f"median start: {np.sum(table[:, 2] <= 1.05)} of {count} rows within 1.05 (bar 80 %)")


def known(args: argparse.Namespace) -> None:
    """Write down the lowest objectives that thorough searches with several seeds have found.

    A table that is there is only improved.
    """
    path = OWN_TABLES / f"best_known_fold{args.fold}.csv"
    before = {row_label(row): row for row in read_rows(path)} if path.exists() else {}
    rows = read_rows(reference_folder(args.reference) / "best_known.csv")
    solver = BasinHoppingSolver().with_effort(5.0)
    for row in rows:
        row |= {"fold": str(args.fold), "found_by": f"search, effort 5, seed {args.seed}"}
        problem, there = row_problem(row), before.get(row_label(row))
        if there is None or args.rows in row_label(row):
            starts = multistart(problem, solver, n_starts=args.starts, seed=args.seed)
            row["objective"] = (
                f"{search_around(problem, solver, starts, seed=args.seed).objective:.6f}"
            )
            if there and float(there["objective"]) <= float(row["objective"]):
                row |= there
        else:
            row |= there
        row["n_train"] = str(int(problem.rows.class_totals.sum()))
        print(f"{row_label(row):34}{row['objective']:>12}  {row['found_by']}", flush=True)
    with path.open("w", newline="") as stream:
        table = csv.DictWriter(stream, rows[0])
        table.writeheader()
        table.writerows(rows)


def ablation(args: argparse.Namespace) -> None:
    """Geometric means over the rows of best_known.csv, ratios to the best known objective."""
    full = BasinHoppingSolver()
    first_order = POLISH._replace(newton_from=NEVER, max_iter=300)
    moves = full.search.perturbations
    variants = {
        "everything": full,
        "no candidates": replace(full, candidates=0),
        "two candidates": replace(full, candidates=2),
        "two candidates, longer race": replace(full, candidates=2, race=Race(ROUGH)),
        "race also led in": replace(full, race=Race(steepness=(128.0, 256.0))),
        "fast": full.with_effort(0.2),
        "thorough": full.with_effort(5.0),
        "no second look": replace(full, look_again=None),
        "no Newton steps in starts": replace(
            full,
            recipes={**full.recipes, "groups": (Approach(first_order),)},
            finish=Polish(newton_from=NEVER),
        ),
        "starts through points": replace(full, start_rules=("points",), candidates=0),
        "uniform starts": replace(full, start_rules=("uniform",), candidates=0),
    }
    for kind in (Reweigh, Redraw, Relabel, Regrow, OtherStrength, Warmed, Fresh):
        rest = tuple(move for move in moves if not isinstance(move, kind))
        without = replace(full, search=replace(full.search, perturbations=rest))
        variants[f"search without {kind.__name__}"] = without
    heads = ("best", "with hops", "median", "ms/start", "within 1.001")
    print(f"{'variant':26}" + "".join(f"{head:>13}" for head in heads))
    problems = [
        (row_problem(row), float(row["objective"])) for row in selected(args, "best_known.csv")
    ]
    for name, solver in variants.items():
        if args.variant not in name:
            continue
        found = np.array([summary(problem, solver, known, args)[1:] for problem, known in problems])
        means = np.exp(np.mean(np.log(found), axis=0))
        print(
            f"{name:26}{means[0]:13.4f}{means[1]:13.4f}{means[2]:13.4f}{1e3 * means[3]:13.1f}"
            f"{np.sum(found[:, 1] <= 1.001):13d}",
            flush=True,
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
    """Bars: explicit IPOPT takes 1,000 times as long in the median (300 a miss), the other 100."""
    names = ("ipopt-explicit", "ipopt")
    print(
        f"{'row':34}{'native ms':>10}{'explicit s':>11}{'ratio':>8}{'substit. s':>11}{'ratio':>8}"
        f"{'portfolio s':>13}{'ratios':>12}"
    )
    native = make_solver("native")
    ratios: dict[str, list[float]] = {name: [] for name in names}
    wholes: dict[str, list[float]] = {name: [] for name in names}
    for row in selected(args, "ipopt.csv"):
        problem = row_problem(row)
        one_start(problem, native, 0, None)  # compile
        one = np.median([one_start(problem, native, i, None) for i in range(args.starts)])
        whole = portfolio(problem, native, args)
        line = f"{row_label(row):34}{1e3 * one:10.2f}"
        for name in names:
            times = [
                one_start(problem, make_solver(name), i, args.time_limit)
                for i in range(args.ipopt_starts)
            ]
            ratios[name].append(float(np.median(times) / one))
            wholes[name].append(float(args.starts * np.mean(times) / whole))
            line += f"{np.median(times):11.2f}{ratios[name][-1]:8.0f}"
        print(
            line + f"{whole:13.2f}{wholes[names[0]][-1]:6.0f}{wholes[names[1]][-1]:6.0f}",
            flush=True,
        )
    for name in names:
        print(f"{name}: one start against one start, ratio {spread(ratios[name])}")
        print(
            f"{name}: {args.starts} starts and the search after them against {args.starts} starts "
            f"(the mean of {args.ipopt_starts}, times {args.starts}), ratio {spread(wholes[name])}"
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


def growth(args: argparse.Namespace) -> None:
    """Bars: time grows no faster than N^1.1; peak memory at most 2.5 times the input.

    The mean of three starts: how many iterations one takes is a matter of luck.
    """
    sizes = args.sizes
    times = []
    for size in sizes:
        out = run_python(GROWTH, str(size))
        seconds, iterations, megabytes, input_size = (float(word) for word in out.split())
        times.append(seconds)
        print(
            f"N = {size:8d}: {seconds:8.2f} s per start, {iterations:.0f} iterations; peak "
            f"{megabytes:6.0f} MB above the idle process, {megabytes / input_size:.2f} x (X and y)",
            flush=True,
        )
    for (small, short), (large, long) in pairwise(zip(sizes, times, strict=True)):
        exponent = np.log(long / short) / np.log(large / small)
        print(f"exponent from {small} to {large}: {exponent:.2f} (bar 1.1)")


GROWTH = """
import resource, sys, time
import numpy as np
from softsplit import SoftTreeClassifier
size = int(sys.argv[1])
tree = SoftTreeClassifier(depth=3, n_starts=3, random_state=0, global_strength=1.0)
def make(n):
    rng = np.random.default_rng(0)
    X = rng.random((n, 30))
    y = np.zeros(n, dtype=int)
    for bit in range(3):
        w = rng.normal(size=30)
        y += (X @ w > w.sum() / 2) * 2**bit
    noise = rng.random(n) < 0.1
    y[noise] = rng.integers(0, 8, noise.sum())
    return X, y
tree.fit(*make(min(size, 2000)))
idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
X, y = make(size)
tree.fit(X, y)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
seconds = np.mean([start.seconds for start in tree.starts_])
iterations = np.mean([start.n_iter for start in tree.starts_])
print(seconds, iterations, (peak - idle) / 1024, (X.nbytes + y.nbytes) / 2**20)
"""


def path(args: argparse.Namespace) -> None:
    """A warm-started path against separate fits at the same strengths, objectives and seconds."""
    heads = f"{'data set':14}{'points':>7}{'path s':>8}{'fits s':>8}{'ratio':>7}"
    print(heads + f"{'path / fits objective':>23}")
    for name in ("iris", "wine", "seeds", "ionosphere", "vehicle"):
        if args.rows not in name:
            continue
        data = load_dataset(name)
        tree = SoftTreeClassifier(random_state=args.seed, n_starts=args.starts)
        tree.fit(data.X, data.y)  # compile
        began = time.perf_counter()
        points = strength_path(data.X, data.y, estimator=tree).points
        middle = time.perf_counter()
        fits = [clone(point.classifier).fit(data.X, data.y) for point in points]
        end = time.perf_counter()
        ratios = [p.solution.objective / f.objective_ for p, f in zip(points, fits, strict=True)]
        print(
            f"{name:14}{len(points):7d}{middle - began:8.2f}{end - middle:8.2f}"
            f"{(end - middle) / (middle - began):7.1f}{np.exp(np.mean(np.log(ratios))):23.4f}",
            flush=True,
        )


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
    if table == "best_known.csv" and args.fold:
        folder, table = OWN_TABLES, f"best_known_fold{args.fold}.csv"
    return [row for row in read_rows(folder / table) if args.rows in row_label(row)]


PARTS = {
    "objective": objective,
    "known": known,
    "ablation": ablation,
    "speed": speed,
    "path": path,
    "growth": growth,
    "first-use": first_use,
}

if __name__ == "__main__":
    main()
