"""Decomposition against the same solver without it: section 6.4 of the paper, and deeper trees.

    python benchmarks/decomposition.py ipopt     IPOPT inside against IPOPT alone, as in the paper
    python benchmarks/decomposition.py native    native inside against native alone, same trees
    python benchmarks/decomposition.py deep      the same at depth 4 to 6
    python benchmarks/decomposition.py step      cost of a step against the number of fixed branches
    python benchmarks/decomposition.py report    tables and figures of what has been run, to --page

Every run is a line of <out>/runs.jsonl, written as soon as it has ended; a run that is there is not
done again. The file also has runs of IPOPT in the
explicit form and of other working-set rules, which the page shows. Both sides start from the same
tree on the same fold. Times are CPU seconds of the solving thread and of the processes that work
for it; looking at accuracies is not counted. The data sets come from SOFTSPLIT_DATA.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import RESULTS, Row, add_row, arguments, markdown, rows_of, times_of, write_page
from reference import load_fold, make_problem
from threadpoolctl import threadpool_limits

from softsplit.decomposition import (
    Block,
    DecompositionTrace,
    EvaluationSet,
    LargestViolation,
    NodeDecomposition,
    Subtrees,
    TraceRow,
)
from softsplit.decomposition.nodes import BLOCK_SOLVER
from softsplit.engines.block import GateCache
from softsplit.ipopt.program import SubstitutedProgram
from softsplit.ipopt.solver import IpoptSolver
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers import BasinHoppingSolver, Budget, Solver, Start
from softsplit.solvers.starts.rules import draw_start
from softsplit.tree.parameters import TreeParameters


@dataclass(frozen=True)
class Setting:
    """A data set with the strength and psi of the paper's table, and its initialisation."""

    name: str
    coding: str
    strength: float
    proximal: float
    init_iter: int


SETTINGS = {
    s.name: s
    for s in (
        Setting("car", "drop-first", 0.25, 1.25e-4, 5),
        Setting("thyroid", "onehot", 0.5, 1.25e-6, 5),
        Setting("splice", "codes", 0.5, 2.5e-7, 0),
        Setting("dna", "onehot", 0.5, 1.25e-8, 0),
        Setting("segment", "onehot", 0.5, 2.5e-8, 0),
    )
}


ALONE = "no decomposition"
JOB = ("part", "dataset", "depth", "variant", "fold", "start")
FIGURES = ["test_accuracy", "objective", "cpu_seconds"]
HEADS = [
    "variant", "runs", "m", "accuracy", "objective", "CPU s", "saved",
    "first m at equal accuracy", "accuracy", "objective", "saved",
]  # fmt: skip

EQUAL = 0.002
"""Test accuracies that differ by no more than this are called equal."""

MEANS = ("ipopt", "explicit")
"""Parts whose runs are brought to one figure by their mean, all others by their median."""

# Runs.

# What NodeDecomposition is given, by the name of a variant.
Variants = dict[str, dict[str, Any]]
NEUTRAL = {"initialisation": "neutral"}
BY_SUBTREES = {"subtrees, neutral": NEUTRAL | {"working_sets": Subtrees(2)}}


def ipopt_variants(setting: Setting) -> Variants:
    """IPOPT as in the paper: tolerance 1e-8; 3000 iterations alone, 40 in a step.

    The paper's rule and ours are also compared with the same 20 iterations a step.
    """
    first, near = {"initialisation": setting.init_iter}, {"proximal": setting.proximal}
    few = {"inner_iter": 20}
    variants = {
        "S-NB-DEC": first,
        "S-NB-DEC, proximal": first | near,
        "S-NB-DEC, 20": first | few,
        "largest violation, 20": first | few | {"working_sets": LargestViolation()},
        "S-NB-DEC, neutral, 20": NEUTRAL | few,
        **BY_SUBTREES,
    }
    if setting.init_iter:
        variants |= {"S-NB-DEC, no init": {}, "S-NB-DEC, proximal, no init": near}
    return {name: {"inner": "ipopt"} | given for name, given in variants.items()}


def native_variants(setting: Setting) -> Variants:
    """The native solver from its own starts (three candidates each); no hops on either side."""
    firsts = {"": {"initialisation": 0}, ", init 20": {"initialisation": 20}, ", neutral": NEUTRAL}
    ends = {"": {}, ", proximal": {"proximal": setting.proximal}}
    variants = {
        f"S-NB-DEC{name}{end}": first | more
        for name, first in firsts.items()
        for end, more in ends.items()
    }
    return variants | BY_SUBTREES


@dataclass(frozen=True)
class Part:
    """What is compared, from how many starts on each fold and from which."""

    variants: Callable[[Setting], Variants]
    alone: Callable[[], Solver]
    start_rule: str
    starts: int
    deep: bool = False


RUNS = {
    "ipopt": Part(ipopt_variants, lambda: IpoptSolver(max_iter=3000), "points", 3),
    # Single runs of the native solver differ a lot: there are several.
    "native": Part(native_variants, BasinHoppingSolver, "groups", 5),
    "deep": Part(native_variants, BasinHoppingSolver, "groups", 5, deep=True),
}


def main() -> None:
    args = arguments(
        __doc__,
        [*RUNS, "step", "report"],
        out=(RESULTS / "decomposition", "folder of runs and figures"),
        page=(RESULTS / "decomposition.md", "where 'report' puts tables"),
        datasets=(list(SETTINGS), "only these"),
        folds=(5, "folds of each data set"),
        starts=(int, "starts on each fold, other than usual"),
        depths=([4, 5, 6], "of the part 'deep'"),
        deepest=(8, "tree of the part 'step'"),
        macro_iterations=(8, "of a run"),
        time_limit=(40.0, "of a native run, seconds"),
    )
    args.out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(limits=1):
        if args.part in RUNS:
            run_all(args, RUNS[args.part])
        else:
            {"step": step, "report": report}[args.part](args)


def solvers_of(setting: Setting, part: Part, macro_iterations: int) -> dict[str, Solver]:
    variants = part.variants(setting).items()
    return {ALONE: part.alone()} | {
        name: NodeDecomposition(**{"macro_iterations": macro_iterations, **given})
        for name, given in variants
    }


def run_all(args: argparse.Namespace, part: Part) -> None:
    """Every data set, depth, fold and start, by all solvers that have not done it yet."""
    budget = {"tol": 1e-8} if args.part == "ipopt" else {"time_limit": args.time_limit}
    known, warm = runs_of(args.out), False
    depths = args.depths if part.deep else [None]
    cases = itertools.product(
        args.datasets, depths, range(args.folds), range(args.starts or part.starts)
    )
    for name, depth, fold_number, start_number in cases:
        setting = SETTINGS[name]
        solvers = solvers_of(setting, part, args.macro_iterations)
        jobs = {v: (args.part, name, depth, v, fold_number, start_number) for v in solvers}
        if all(job in known for job in jobs.values()):
            continue
        if not warm:
            warm_up(part)
            warm = True
        # 1. The problem, and the start that all solvers have.
        fold = load_fold(name, setting.coding, fold_number)
        problem = make_problem(fold, "L0glob", setting.strength, depth=depth)
        watch = EvaluationSet(fold.X_test, fold.y_test)
        rng = np.random.default_rng([fold_number, start_number])
        start = draw_start(part.start_rule, problem, rng, 2 if part.start_rule == "groups" else 0)
        start = replace(start, seed=100 * fold_number + start_number)
        # 2. The runs that are not on file.
        for variant, solver in solvers.items():
            if jobs[variant] not in known:
                trace, message = measured(solver, problem, start, watch, Budget(**budget))
                rows = [
                    {k: round(v, 6) if isinstance(v, float) else v for k, v in asdict(row).items()}
                    for row in trace.rows
                ]
                job = dict(zip(JOB, jobs[variant], strict=True))
                facts = {"job": job, "initialised": trace.initialised, "message": message}
                add_row(args.out / "runs.jsonl", facts | {"rows": rows})
                last = trace[len(trace) - 1]
                print(
                    f"{args.part:8}{name:9}{depth or '-':>3} {variant:26} fold {fold_number} "
                    f"start {start_number}: objective {last.objective:9.3f}, test "
                    f"{last.test_accuracy:.4f}, {last.cpu_seconds:7.2f} s",
                    flush=True,
                )


def warm_up(part: Part) -> None:
    """Compile and load whatever the variants need, off the clock."""
    setting = SETTINGS["car"]
    problem = make_problem(load_fold("car", setting.coding), "L0glob", setting.strength)
    start = draw_start(part.start_rule, problem, np.random.default_rng(0))
    for solver in solvers_of(setting, part, 1).values():
        solver.solve(problem, start, Budget(max_iter=100))


def measured(
    solver: Solver, problem: TrainingProblem, start: Start, watch: EvaluationSet, budget: Budget
) -> tuple[DecompositionTrace, str]:
    """The trace of a run; a solver without one gets a single row."""
    if isinstance(solver, NodeDecomposition):
        solution = solver.set_params(watch=watch).solve(problem, start, budget)
        return solution.trace, solution.message
    began = time.thread_time()
    solution = solver.solve(problem, start, budget)
    row = TraceRow(
        macro_iteration=0,
        objective=solution.objective,
        violation=solution.violation,
        train_accuracy=float("nan"),
        test_accuracy=watch.accuracy(solution.parameters, problem.steepness),
        cpu_seconds=time.thread_time() - began + solution.child_cpu_seconds,
        seconds=solution.seconds,
        n_iter=solution.n_iter,
        steps=0,
        accepted=0,
    )
    return DecompositionTrace((row,)), f"{solution.status.name} {solution.message}"


# The cost of one step.

STEPS = "steps.json"


def step(args: argparse.Namespace) -> None:
    """What a block of one branch and all leaves costs while the tree around it grows."""
    fold = load_fold("dna", "onehot", 0)
    rows: list[dict[str, float]] = []
    for depth in range(2, args.deepest + 1):
        problem = make_problem(fold, "L0glob", 0.5, depth=depth)
        start = draw_start("groups", problem, np.random.default_rng(0))
        once = NodeDecomposition(initialisation="neutral", macro_iterations=1)
        tree = once.solve(problem, start, Budget()).parameters
        n_branches = problem.topology.n_branches
        whole = _milliseconds(lambda p=problem, t=tree: p.evaluate_cost(t))
        row = {"depth": depth, "fixed": n_branches - 1, "whole tree": whole}
        for name, branch in (("root", 0), ("lowest", n_branches // 2)):
            times = block_times(problem, tree, branch)
            row |= {f"{name}: {what}": value for what, value in times.items()}
        rows.append(row)
        (args.out / STEPS).write_text(json.dumps(rows, indent=1) + "\n")
        print({name: round(value, 3) for name, value in row.items()}, flush=True)


def block_times(problem: TrainingProblem, tree: TreeParameters, branch: int) -> dict[str, float]:
    """Milliseconds of the parts of a step: what is done once, and what in every iteration."""
    cache = GateCache.of(tree, problem.rows, problem.steepness)
    block = Block((branch,), tuple(range(problem.topology.n_leaves)))
    part = problem.restrict(block, tree, cache=cache)
    program = SubstitutedProgram(part)
    x, multipliers = program.start(tree), np.ones(len(program.constraint_lower))
    calls = iter(range(10**9))

    def evaluate() -> None:
        part.rows.forget()
        part.evaluate_cost(tree)

    def derivatives() -> None:
        here = x + 1e-12 * next(calls)  # so that nothing is remembered
        program.jacobian(here)
        program.hessian(here, 1.0, multipliers)

    def native_step() -> None:
        fresh = problem.restrict(block, tree, cache=cache)
        BLOCK_SOLVER.solve(fresh, Start(tree), Budget(max_iter=5))

    return {
        "set-up": _milliseconds(lambda: problem.restrict(block, tree, cache=cache)),
        "evaluation": _milliseconds(evaluate),
        "IPOPT derivatives": _milliseconds(derivatives, repeats=10),
        "native step": _milliseconds(native_step, repeats=15),
    }


def _milliseconds(action: Callable[[], object], repeats: int = 40) -> float:
    action()
    return 1e3 * float(np.median(times_of(action, repeats)))


# Tables and figures.


def runs_of(folder: Path) -> dict[tuple[Any, ...], Row]:
    """The runs on file by part, data set, depth, variant, fold and start."""
    return {tuple(run["job"].values()): run for run in rows_of(folder / "runs.jsonl")}


def report(args: argparse.Namespace) -> None:
    """Tables to the console and the page, figures to the folder of the runs."""
    runs = runs_of(args.out)
    rows = [
        run["job"] | {"m": m} | row for run in runs.values() for m, row in enumerate(run["rows"])
    ]
    table = pd.DataFrame(rows)
    table["depth"] = table["depth"].fillna(0).astype(int)
    texts = {part: part_text(part, own) for part, own in table.groupby("part", sort=False)}
    steps = args.out / STEPS
    if steps.exists():
        texts["step"] = step_table(json.loads(steps.read_text()))
    print("\n\n".join(f"## {part}\n\n{text}" for part, text in texts.items()))
    write_page(args.page, texts)
    for (part, name, depth), own in table.groupby(["part", "dataset", "depth"], sort=False):
        draw([run for run in runs.values() if tuple(run["job"].values())[:3] ==
              (part, name, depth or None)], list(dict.fromkeys(own["variant"])),
             args.out / f"{part}-{name}{f'-{depth}' if depth else ''}.png")  # fmt: skip


def part_text(part: str, table: pd.DataFrame) -> str:
    middle = "mean" if part in MEANS else "median"
    texts = [
        f"{middle.capitalize()}s over the runs, which are folds x starts. Equal accuracy: within "
        f"{100 * EQUAL:g} points of the same runs without decomposition. Saved: CPU time against "
        "the same runs without decomposition. m: macro-iterations."
    ]
    for (name, depth), own in table.groupby(["dataset", "depth"], sort=False):
        runs = {
            variant: rows.pivot(index=["fold", "start"], columns="m", values=FIGURES)
            for variant, rows in own.groupby("variant", sort=False)
        }
        lines = [variant_row(variant, runs, middle) for variant in runs]
        title = f"{part}, {name}" + (f", depth {depth}" if depth else "")
        texts.append(f"**{title}**\n\n{markdown(HEADS, lines)}")
    return "\n\n".join(texts)


def variant_row(variant: str, runs: dict[str, pd.DataFrame], middle: str) -> list[str]:
    """A variant beside the runs without decomposition from the same starts."""
    alone, own = runs.get(ALONE), runs[variant]
    shared = own.index if alone is None else own.index.intersection(alone.index)
    own = own.loc[shared] if len(shared) else own
    last = int(own.columns.get_level_values("m").max())

    def at(table: pd.DataFrame, figure: str, m: int) -> float:
        """The middle of a figure after m macro-iterations; a run that has ended stays as it is."""
        return float(getattr(table[figure].ffill(axis=1)[m], middle)())

    def figures(m: int) -> list[str]:
        return [f"{100 * at(own, FIGURES[0], m):.1f} %", f"{at(own, FIGURES[1], m):.2f}"]

    cells = [variant, str(len(own)), str(last), *figures(last), f"{at(own, FIGURES[2], last):.2f}"]
    if variant == ALONE or alone is None or not len(shared):
        return [*cells, *["-"] * 5]
    alone = alone.loc[shared]
    saved = [
        f"{100 * (1 - at(own, FIGURES[2], m) / at(alone, FIGURES[2], 0)):.0f} %"
        for m in range(last + 1)
    ]
    level = at(alone, FIGURES[0], 0) - EQUAL
    equal = [m for m in range(last + 1) if at(own, FIGURES[0], m) >= level]
    first = [str(equal[0]), *figures(equal[0]), saved[equal[0]]] if equal else ["-"] * 4
    return [*cells, saved[last], *first]


def step_table(rows: list[dict[str, float]]) -> str:
    """Milliseconds of one evaluation and of one step, as measured by the part "step"."""
    cells = [[f"{v:.3g}" if isinstance(v, float) else v for v in row.values()] for row in rows]
    return markdown(list(rows[0]), cells)


def draw(runs: list[Row], variants: list[str], path: Path) -> None:
    """The paper's figure for each variant, as one picture; means over the runs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from softsplit.plots import decomposition_trace

    traces: dict[str, list[DecompositionTrace]] = {variant: [] for variant in variants}
    for run in runs:
        rows = tuple(TraceRow(**row) for row in run["rows"])
        traces[run["job"]["variant"]].append(DecompositionTrace(rows, run["initialised"]))
    base = [trace[0] for trace in traces.pop(ALONE, [])]
    if not traces or not base:
        return
    columns = min(3, len(traces))
    lines = -(-len(traces) // columns)
    figure, grid = plt.subplots(
        lines, columns, figsize=(4.6 * columns, 3.0 * lines), squeeze=False, layout="constrained"
    )
    for ax in grid.flat[len(traces) :]:
        ax.set_visible(False)
    for ax, (variant, own) in zip(grid.flat, traces.items(), strict=False):
        decomposition_trace(
            own,
            baseline_accuracy=float(np.mean([row.test_accuracy for row in base])),
            baseline_seconds=float(np.mean([row.cpu_seconds for row in base])),
            title=f"{path.stem}: {variant}",
            ax=ax,
        )
    figure.savefig(path, dpi=90)
    plt.close(figure)


if __name__ == "__main__":
    main()
