"""Decomposition against the same solver without it: section 6.4 of the paper, and deeper trees.

    python benchmarks/decomposition.py ipopt     IPOPT inside against IPOPT alone, as in the paper
    python benchmarks/decomposition.py native    native inside against native alone, same trees
    python benchmarks/decomposition.py deep      the same at depth 4 to 6
    python benchmarks/decomposition.py step      cost of a step against the number of fixed branches
    python benchmarks/decomposition.py report    tables and figures of what has been run, to --page

Every run is a line of <out>/runs.jsonl, written as soon as it has ended; a run that is there is not
done again, unless --fresh drops the part's runs first. The file also has runs of IPOPT in the
explicit form and of other working-set rules, which the page shows. Both sides start from the same
tree on the same fold. Times are CPU seconds of the solving thread and of the processes that work
for it; looking at accuracies is not counted. The data sets come from SOFTSPLIT_DATA.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from decomposition_report import ALONE, draw, report_parts
from decomposition_runs import Book, Job
from pages import write_page
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
from softsplit.ipopt.solver import IpoptSolver
from softsplit.ipopt.substituted import SubstitutedProgram
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers import BasinHoppingSolver, Budget, Solver, Start
from softsplit.solvers.starts.rules import draw_start
from softsplit.tree.parameters import TreeParameters

RESULTS = Path(__file__).parent.parent / "docs" / "results"

STARTS = {"ipopt": 3, "native": 5, "deep": 5}
"""Starts on each fold. Single runs of the native solver differ a lot: take several."""


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=sorted(PARTS))
    parser.add_argument(
        "--out", type=Path, default=RESULTS / "decomposition", help="folder of runs and figures"
    )
    parser.add_argument(
        "--page", type=Path, default=RESULTS / "decomposition.md", help="where 'report' puts tables"
    )
    parser.add_argument("--datasets", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--starts", type=int, help=f"starts on each fold; by default {STARTS}")
    parser.add_argument("--depths", type=int, nargs="*", default=[4, 5, 6])
    parser.add_argument("--deepest", type=int, default=8, help="tree of the part 'step'")
    parser.add_argument("--macro-iterations", type=int, default=8)
    parser.add_argument("--time-limit", type=float, default=40.0, help="of a native run, seconds")
    parser.add_argument("--fresh", action="store_true", help="drop earlier runs of this part first")
    args = parser.parse_args()
    if args.starts is None:
        args.starts = STARTS.get(args.part, 1)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.fresh:
        Book(args.out).forget(args.part, args.datasets)
    with threadpool_limits(limits=1):
        PARTS[args.part](args)


# Runs.


def run_all(
    args: argparse.Namespace,
    part: str,
    start_rule: str,
    variants: Callable[[Setting], dict[str, Solver]],
    depths: list[int | None],
    budget: Callable[[], Budget],
) -> None:
    book, warm = Book(args.out), False
    for name in args.datasets:
        setting = SETTINGS[name]
        for depth, fold_number, start_number in _grid(depths, args):
            jobs = {
                variant: Job(part, name, depth, variant, fold_number, start_number)
                for variant in variants(setting)
            }
            if all(job in book.runs for job in jobs.values()):
                continue
            if not warm:
                warm_up(start_rule, variants(SETTINGS["car"]))
                warm = True
            fold = load_fold(name, setting.coding, fold_number)
            problem = make_problem(fold, "L0glob", setting.strength, depth=depth)
            watch = EvaluationSet(fold.X_test, fold.y_test)
            rng = np.random.default_rng([fold_number, start_number])
            candidates = 2 if start_rule == "groups" else 0
            start = draw_start(start_rule, problem, rng, candidates)
            start = replace(start, seed=100 * fold_number + start_number)
            for variant, solver in variants(setting).items():
                job = jobs[variant]
                if job not in book.runs:
                    trace, message = measured(solver, problem, start, watch, budget())
                    book.add(job, trace, message)
                    last = trace[len(trace) - 1]
                    print(
                        f"{part:8}{name:9}{depth or '-':>3} {variant:26} fold {fold_number} "
                        f"start {start_number}: objective {last.objective:9.3f}, test "
                        f"{last.test_accuracy:.4f}, {last.cpu_seconds:7.2f} s",
                        flush=True,
                    )


def warm_up(start_rule: str, variants: dict[str, Solver]) -> None:
    """Compile and load whatever the variants need, off the clock."""
    problem = make_problem(load_fold("car", SETTINGS["car"].coding), "L0glob", 0.25)
    start = draw_start(start_rule, problem, np.random.default_rng(0))
    for solver in variants.values():
        if isinstance(solver, NodeDecomposition):
            solver.set_params(macro_iterations=1)
        solver.solve(problem, start, Budget(max_iter=100))


def _grid(
    depths: list[int | None], args: argparse.Namespace
) -> Iterator[tuple[int | None, int, int]]:
    for depth in depths:
        for fold in range(args.folds):
            for start in range(args.starts):
                yield depth, fold, start


def measured(
    solver: Solver, problem: TrainingProblem, start: Start, watch: EvaluationSet, budget: Budget
) -> tuple[DecompositionTrace, str]:
    """The trace of a run; a solver without one gets a single row."""
    if isinstance(solver, NodeDecomposition):
        found = solver.set_params(watch=watch).solve(problem, start, budget)
        return found.trace, found.message
    began = time.thread_time()
    found = solver.solve(problem, start, budget)
    cpu = time.thread_time() - began + found.child_cpu_seconds
    row = TraceRow(
        macro_iteration=0,
        objective=found.objective,
        violation=found.violation,
        train_accuracy=float("nan"),
        test_accuracy=watch.accuracy(found.parameters, problem.steepness),
        cpu_seconds=cpu,
        seconds=found.seconds,
        n_iter=found.n_iter,
        steps=0,
        accepted=0,
    )
    return DecompositionTrace((row,)), f"{found.status.name} {found.message}"


def ipopt(args: argparse.Namespace) -> None:
    """IPOPT as in the paper: tolerance 1e-8; 3000 iterations alone, 40 in a step."""

    def variants(setting: Setting) -> dict[str, Solver]:
        def decomposition(**more: object) -> NodeDecomposition:
            return NodeDecomposition(
                **{"inner": "ipopt", "macro_iterations": args.macro_iterations, **more}
            )

        init, psi = setting.init_iter, setting.proximal
        chosen: dict[str, Solver] = {
            ALONE: IpoptSolver(max_iter=3000),
            "S-NB-DEC": decomposition(initialisation=init),
            "S-NB-DEC, proximal": decomposition(initialisation=init, proximal=psi),
            # The paper's rule and ours with the same 20 iterations a step.
            "S-NB-DEC, 20": decomposition(initialisation=init, inner_iter=20),
            "largest violation, 20": decomposition(
                initialisation=init, working_sets=LargestViolation(), inner_iter=20
            ),
        }
        chosen["S-NB-DEC, neutral, 20"] = decomposition(initialisation="neutral", inner_iter=20)
        chosen["subtrees, neutral"] = decomposition(
            initialisation="neutral", working_sets=Subtrees(2)
        )
        if init:
            chosen["S-NB-DEC, no init"] = decomposition()
            chosen["S-NB-DEC, proximal, no init"] = decomposition(proximal=psi)
        return chosen

    run_all(args, "ipopt", "points", variants, [None], lambda: Budget(tol=1e-8))


def native_variants(args: argparse.Namespace) -> Callable[[Setting], dict[str, Solver]]:
    def variants(setting: Setting) -> dict[str, Solver]:
        def decomposition(**more: object) -> NodeDecomposition:
            return NodeDecomposition(**{"macro_iterations": args.macro_iterations, **more})

        starts = {"": 0, ", init 20": 20, ", neutral": "neutral"}
        chosen: dict[str, Solver] = {ALONE: BasinHoppingSolver()}
        for name, first in starts.items():
            chosen[f"S-NB-DEC{name}"] = decomposition(initialisation=first)
            chosen[f"S-NB-DEC{name}, proximal"] = decomposition(
                initialisation=first, proximal=setting.proximal
            )
        chosen["subtrees, neutral"] = decomposition(
            initialisation="neutral", working_sets=Subtrees(2)
        )
        return chosen

    return variants


def native(args: argparse.Namespace) -> None:
    """The native solver from its own starts (three candidates each); no hops on either side."""
    budget = lambda: Budget(time_limit=args.time_limit)  # noqa: E731
    run_all(args, "native", "groups", native_variants(args), [None], budget)


def deep(args: argparse.Namespace) -> None:
    """As ``native``, on deeper trees than the classes need."""
    budget = lambda: Budget(time_limit=args.time_limit)  # noqa: E731
    run_all(args, "deep", "groups", native_variants(args), list(args.depths), budget)


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
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return 1e3 * float(np.median(times))


# Tables and figures.


def report(args: argparse.Namespace) -> None:
    """Tables to the console and the page, figures to the folder of the runs."""
    book = Book(args.out)
    texts = report_parts(book, args.out / STEPS)
    for part, text in texts.items():
        print(f"## {part}\n\n{text}\n")
        for name, depth in book.tables(part):
            draw(book, part, name, depth, args.out)
    write_page(args.page, texts)


PARTS = {
    "ipopt": ipopt,
    "native": native,
    "deep": deep,
    "step": step,
    "report": report,
}

if __name__ == "__main__":
    main()
