"""Rows on a GPU and trees in lockstep, measured: ARGS=evaluate, stream, fit or grid.

    evaluate   one evaluation of a tree of depth 3 over rows x 30 in single precision
    stream     the same where only a part of the rows may be on the device
    fit        SoftTreeClassifier with its defaults over the same rows: twice, the second time with
               kernels made, and from a tensor on the device; beside device=None
    grid       14 x 14 strengths x 5 folds x 10 starts, by likelihood or --loss cost, all trees at
               once, and how their objectives compare with those of the compiled solver from the
               same starts

Times of evaluations are medians of 20 by the events of the device; others are seconds of the wall,
after a first run that compiles what there is to compile.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from softsplit import SoftTreeClassifier, load_dataset
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.outer import LOGARITHM
from softsplit.engines.samples import Samples
from softsplit.formulations.likelihood import UNITS
from softsplit.on_torch.backend import find_device
from softsplit.on_torch.lockstep.solver import solve_together
from softsplit.on_torch.lockstep.tasks import Task
from softsplit.on_torch.rows import DeviceRows
from softsplit.problem.bounds import Bounds
from softsplit.problem.loss import ExpectedCost, LogLoss
from softsplit.problem.penalties import PenaltyPair, linear
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Start
from softsplit.solvers.basin_hopping import BasinHoppingSolver
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.penalised import Penalised
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.solvers.starts.rules import draw_start
from softsplit.tree.parameters import Topology

N_FEATURES, N_CLASSES = 30, 4


def overlapping(n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The largest of four linear scores with Gumbel noise, and a tenth of the labels anew."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    scores = X @ rng.standard_normal((N_FEATURES, N_CLASSES), dtype=np.float32)
    scores += 0.3 * rng.gumbel(size=scores.shape)
    y = np.argmax(scores, axis=1)
    anew = rng.random(n_rows) < 0.1
    y[anew] = rng.integers(0, N_CLASSES, int(anew.sum()))
    return X, y


def grouped(n_rows: int) -> Samples:
    """Rows that are grouped by class already, in single precision."""
    rng = np.random.default_rng(0)
    features = rng.random((N_FEATURES, n_rows), dtype=np.float32)
    starts = np.linspace(0, n_rows, N_CLASSES + 1).astype(np.int64)
    return Samples(features, starts, np.ones(n_rows), np.diff(starts).astype(float))


def question(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(N_CLASSES), 8).T.copy()
    return rng.normal(size=(7, N_FEATURES + 1)), table


def evaluate(args: argparse.Namespace) -> dict[str, object]:
    """Milliseconds of an evaluation by the device's clock and by that of the caller."""
    device, samples = find_device(args.device), grouped(args.rows)
    splits, table = question()
    found: dict[str, object] = {"rows": args.rows}
    for name, single in (("single", True), ("double", False)):
        rows = DeviceRows.of(samples, device, single=single)
        answer = rows.evaluate(splits, table, LOGARITHM, 90.0)
        expected = CompiledRows(samples).evaluate(splits, table, LOGARITHM, 90.0)
        times, began = [], time.perf_counter()
        for _ in range(20):
            if device.type == "cuda":
                first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                first.record()
                rows.evaluate(splits, table, LOGARITHM, 90.0)
                last.record()
                last.synchronize()
                times.append(first.elapsed_time(last))
            else:
                rows.evaluate(splits, table, LOGARITHM, 90.0)
        found[name] = {
            "device_ms": float(np.median(times)) if times else None,
            "caller_ms": (time.perf_counter() - began) / 20 * 1e3,
            "value_off": abs(answer.value / expected.value - 1),
            "gradient_off": float(
                np.abs(answer.splits - expected.splits).max() / np.abs(expected.splits).max()
            ),
        }
    return found


def stream(args: argparse.Namespace) -> dict[str, object]:
    """The same rows, of which a tenth may be on the device."""
    device, samples = find_device(args.device), grouped(args.rows)
    splits, table = question()
    rows = DeviceRows.of(samples, device, single=True, room=samples.features.nbytes // 10)
    whole = DeviceRows.of(samples, device, single=True)
    answer = rows.evaluate(splits, table, LOGARITHM, 90.0)
    expected = whole.evaluate(splits, table, LOGARITHM, 90.0)
    began = time.perf_counter()
    for _ in range(5):
        rows.evaluate(splits, table, LOGARITHM, 90.0)
    seconds = (time.perf_counter() - began) / 5
    return {
        "slabs": len(rows.slabs),
        "evaluation_ms": seconds * 1e3,
        "GB_per_s": samples.features.nbytes / seconds / 1e9,
        "value_off": abs(answer.value / expected.value - 1),
    }


def fit(args: argparse.Namespace) -> dict[str, object]:
    """Seconds of a fit with the defaults, on the device and without it."""
    found: dict[str, object] = {}
    small = overlapping(30_000, seed=1)
    for device in (args.device, None) if args.beside else (args.device,):
        SoftTreeClassifier(n_starts=1, random_state=0, device=device).fit(*small)
        X, y = overlapping(args.rows)
        tables = [X] if device is None else [X, X, torch.from_numpy(X).to(device)]
        seconds = []
        for table in tables:
            began = time.perf_counter()
            tree = SoftTreeClassifier(random_state=0, device=device, n_jobs=args.jobs).fit(table, y)
            seconds.append(time.perf_counter() - began)
        found[str(device)] = {
            "seconds": seconds,
            "objective": tree.objective_,
            "features": len(tree.selected_features_),
            "status": tree.solution_.status.name,
        }
    return found


def by_likelihood(rows: CompiledRows, depth: int) -> TrainingProblem:
    """The problem of loss="log" without penalties."""
    return TrainingProblem(
        rows=rows,
        topology=Topology(depth),
        loss=LogLoss.counted(rows.class_totals),
        penalties=PenaltyPair.of(linear()),
        minimum_rates=np.zeros(rows.n_classes),
        steepness=UNITS["minmax"] * rows.n_features,
        bounds=Bounds.free(rows.n_features, Topology(depth).n_branches),
        ridge=1.0,
    )


def by_cost(rows: CompiledRows, depth: int) -> TrainingProblem:
    """The paper's problem without penalties."""
    return TrainingProblem(
        rows=rows,
        topology=Topology(depth),
        loss=ExpectedCost.uniform(rows.n_classes),
        penalties=PenaltyPair.of(linear()),
        minimum_rates=np.full(rows.n_classes, 0.1),
    )


LOSSES = {"log": (by_likelihood, "mixtures", 0), "cost": (by_cost, "groups", 1)}
"""The problem, the rule of its starts, and candidates of each."""


def grid_tasks(name: str, loss: str = "log", depth: int = 2) -> list[Task]:
    """All trainings of the grid; the folds are those of the experiments."""
    make, rule, candidates = LOSSES[loss]
    data = load_dataset(name)
    y = np.searchsorted(data.class_names, data.y)
    tasks = []
    for test in np.array_split(np.random.RandomState(23).permutation(len(y)), 5):
        train = np.setdiff1d(np.arange(len(y)), test)
        low, high = data.X[train].min(axis=0), data.X[train].max(axis=0)
        X = (data.X[train] - low) / np.where(high > low, high - low, 1.0)
        rows = CompiledRows.from_arrays(X, y[train], len(data.class_names))
        whole = make(rows, depth)
        strengths = [2.0**r for r in range(-8, 6)]
        problems = [
            whole.with_penalties(PenaltyPair.of(linear(), a, b))
            for a in strengths
            for b in strengths
        ]
        for number in range(10):
            start = draw_start(rule, whole, np.random.default_rng(number), candidates)
            tasks += [Task(problem, start.parameters, start.candidates) for problem in problems]
    return tasks


def compiled_objective(task: Task) -> float:
    """Where the compiled solver ends from the start of a task."""
    problem = task.problem
    if not problem.by_likelihood:
        start = Start(task.start, "groups", task.candidates)
        return BasinHoppingSolver().solve(problem, start, Budget()).objective
    steps = Penalised(
        RowDescents(problem, Budget(), problem.samples),
        SupportTree.of(task.start, problem),
        problem.penalties,
        problem.ridge,
    )
    fitted, _ = steps.descend(None, Budget().tol * problem.cost_unit)
    return problem.objective(fitted.parameters(problem))


def grid(args: argparse.Namespace) -> dict[str, object]:
    """Seconds of 9,800 trainings, and their objectives beside the compiled solver's."""
    found: dict[str, object] = {}
    for name in args.datasets:
        tasks = grid_tasks(name, args.loss)
        solve_together(tasks[:50], args.device, Budget(max_iter=50))
        times = []
        for _ in range(3):
            began = time.perf_counter()
            ends = solve_together(tasks, args.device, Budget())
            times.append(time.perf_counter() - began)
        chosen = np.random.RandomState(0).choice(len(tasks), args.check, replace=False)
        with ThreadPoolExecutor(8) as pool:
            others = list(pool.map(compiled_objective, [tasks[i] for i in chosen]))
        ratios = ends.objectives[chosen] / np.array(others)
        found[name] = {
            "trees": len(tasks),
            "without their class rates": int(np.sum(np.isinf(ends.comparable))),
            "seconds": times,
            "ratios (5, 25, 50, 75, 95 %)": np.percentile(ratios, [5, 25, 50, 75, 95]).tolist(),
        }
    return found


PARTS = {"evaluate": evaluate, "stream": stream, "fit": fit, "grid": grid}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("--beside", action="store_true", help="fit without the device too")
    parser.add_argument("--datasets", nargs="+", default=["vehicle", "thyroid"])
    parser.add_argument("--loss", choices=LOSSES, default="log")
    parser.add_argument("--check", type=int, default=60)
    args = parser.parse_args()
    print(json.dumps(PARTS[args.part](args), indent=1))


if __name__ == "__main__":
    main()
