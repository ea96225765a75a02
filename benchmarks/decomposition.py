"""Decomposition against the same solver without it: section 6.4 of the paper, and deeper trees.

    python benchmarks/decomposition.py ipopt     IPOPT inside against IPOPT alone, as in the paper
    python benchmarks/decomposition.py explicit  the same in the explicit form, on Car
    python benchmarks/decomposition.py native    native inside against native alone, same trees
    python benchmarks/decomposition.py deep      the same at depth 4 to 6
    python benchmarks/decomposition.py rules     working-set rules against each other
    python benchmarks/decomposition.py step      cost of a step against the number of fixed branches
    python benchmarks/decomposition.py report    tables and figures of what has been run

Every run is a line of <out>/runs.jsonl, written as soon as it has ended; a run that is there is not
done again. Both sides start from the same tree on the same fold. Times are CPU seconds of the
solving thread; looking at accuracies is not counted. The data sets come from SOFTSPLIT_DATA.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from reference import Fold, make_problem
from threadpoolctl import threadpool_limits

from softsplit.data import load_dataset
from softsplit.decomposition import (
    Alternating,
    DecompositionTrace,
    EvaluationSet,
    LargestViolation,
    NodeDecomposition,
    SingleBranches,
    Subtrees,
    TraceRow,
)
from softsplit.problem import TrainingProblem
from softsplit.solvers import Budget, IpoptSolver, NativeSolver, Solver, Start
from softsplit.starts import draw_start
from softsplit.tree import Block

OUT = Path(__file__).parent.parent / "docs" / "results" / "decomposition"


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
    parser.add_argument("--out", type=Path, default=OUT, help="folder of runs and figures")
    parser.add_argument("--datasets", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--starts", type=int, default=1, help="starts on each fold")
    parser.add_argument("--depths", type=int, nargs="*", default=[4, 5, 6])
    parser.add_argument("--macro-iterations", type=int, default=8)
    parser.add_argument("--time-limit", type=float, default=40.0, help="of a native run, seconds")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(limits=1):
        PARTS[args.part](args)


# Runs.


@dataclass(frozen=True)
class Job:
    """One run: a solver by the name of its variant, on one fold from one start."""

    part: str
    dataset: str
    depth: int | None
    variant: str
    fold: int
    start: int

    @property
    def key(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def load(name: str, coding: str, fold: int) -> Fold:
    """Folds as in reference.py; "codes" is one integer per categorical column, as for p = 60."""
    data = load_dataset(name, "drop-first" if coding == "drop-first" else "onehot")
    X = data.X
    if coding == "codes":
        columns = [feature.rpartition("=")[0] for feature in data.feature_names]
        names = list(dict.fromkeys(columns))
        X = np.column_stack([np.argmax(X[:, np.array(columns) == c], axis=1) for c in names])
    X = X.astype(float)
    low, high = X.min(axis=0), X.max(axis=0)
    X = (X - low) / np.where(high > low, high - low, 1.0)
    y = np.searchsorted(data.class_names, data.y)
    parts = np.array_split(np.random.RandomState(23).permutation(len(y)), 5)
    test = np.sort(parts[fold])
    train = np.sort(np.concatenate([part for k, part in enumerate(parts) if k != fold]))
    return Fold(X[train], y[train], X[test], y[test], len(data.class_names))


class Book:
    """The runs that have been done, on file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "runs.jsonl"
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.runs: dict[str, dict] = {}
        for line in lines:
            record = json.loads(line)
            self.runs[json.dumps(record["job"], sort_keys=True)] = record

    def add(self, job: Job, trace: DecompositionTrace, message: str) -> None:
        record = {
            "job": asdict(job),
            "initialised": trace.initialised,
            "message": message,
            "rows": [_rounded(asdict(row)) for row in trace.rows],
        }
        self.runs[job.key] = record
        with self.path.open("a") as stream:
            stream.write(json.dumps(record) + "\n")

    def traces(
        self, part: str, dataset: str, variant: str, depth: int | None = None
    ) -> list[DecompositionTrace]:
        wanted = {"part": part, "dataset": dataset, "variant": variant, "depth": depth}
        return [
            DecompositionTrace(tuple(TraceRow(**row) for row in r["rows"]), r["initialised"])
            for r in self.runs.values()
            if all(r["job"][name] == value for name, value in wanted.items())
        ]


def _rounded(row: dict) -> dict:
    return {k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()}


def run_all(
    args: argparse.Namespace,
    part: str,
    start_rule: str,
    variants: Callable[[Setting], dict[str, Solver]],
    depths: list[int | None],
    budget: Callable[[], Budget],
) -> None:
    book = Book(args.out)
    for name in args.datasets:
        setting = SETTINGS[name]
        for depth, fold_number, start_number in _grid(depths, args):
            jobs = {
                variant: Job(part, name, depth, variant, fold_number, start_number)
                for variant in variants(setting)
            }
            if all(job.key in book.runs for job in jobs.values()):
                continue
            fold = load(name, setting.coding, fold_number)
            problem = make_problem(fold, "L0glob", setting.strength, depth=depth)
            watch = EvaluationSet(fold.X_test, fold.y_test)
            rng = np.random.default_rng([fold_number, start_number])
            rivals = 2 if start_rule == "groups" else 0
            start = draw_start(start_rule, problem, rng, rivals)
            start = replace(start, seed=100 * fold_number + start_number)
            for variant, solver in variants(setting).items():
                job = jobs[variant]
                if job.key not in book.runs:
                    trace, message = measured(solver, problem, start, watch, budget())
                    book.add(job, trace, message)
                    last = trace[len(trace) - 1]
                    print(
                        f"{part:8}{name:9}{depth or '-':>3} {variant:26} fold {fold_number} "
                        f"start {start_number}: objective {last.objective:9.3f}, test "
                        f"{last.test_accuracy:.4f}, {last.cpu_seconds:7.2f} s",
                        flush=True,
                    )


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
    cpu = time.thread_time() - began
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


ALONE = "no decomposition"


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


def explicit(args: argparse.Namespace) -> None:
    """Strategy (i) of the paper's section 4, inside and alone; blocks need more iterations then."""

    def variants(setting: Setting) -> dict[str, Solver]:
        return {
            "S-NB-DEC, 150": NodeDecomposition(
                inner="ipopt-explicit", inner_iter=150, macro_iterations=args.macro_iterations
            ),
            ALONE: IpoptSolver("explicit", max_iter=3000),
        }

    run_all(args, "explicit", "points", variants, [None], lambda: Budget(tol=1e-8))


def native_variants(args: argparse.Namespace) -> Callable[[Setting], dict[str, Solver]]:
    def variants(setting: Setting) -> dict[str, Solver]:
        def decomposition(**more: object) -> NodeDecomposition:
            return NodeDecomposition(**{"macro_iterations": args.macro_iterations, **more})

        return {
            ALONE: NativeSolver(),
            "S-NB-DEC, init 20": decomposition(initialisation=20),
            "S-NB-DEC, neutral": decomposition(initialisation="neutral"),
            "S-NB-DEC, neutral, proximal": decomposition(
                initialisation="neutral", proximal=setting.proximal
            ),
            "subtrees, neutral": decomposition(initialisation="neutral", working_sets=Subtrees(2)),
        }

    return variants


def native(args: argparse.Namespace) -> None:
    """The native solver from its own starts (three rivals each), without hops on either side."""
    more = native_variants(args)

    def variants(setting: Setting) -> dict[str, Solver]:
        plain = NodeDecomposition(macro_iterations=args.macro_iterations, initialisation=0)
        return {**more(setting), "S-NB-DEC": plain}

    budget = lambda: Budget(time_limit=args.time_limit)  # noqa: E731
    run_all(args, "native", "groups", variants, [None], budget)


def deep(args: argparse.Namespace) -> None:
    """As ``native``, on deeper trees than the classes need."""
    budget = lambda: Budget(time_limit=args.time_limit)  # noqa: E731
    run_all(args, "deep", "groups", native_variants(args), list(args.depths), budget)


def rules(args: argparse.Namespace) -> None:
    """All rules with the native solver inside and the same number of macro-iterations."""

    def variants(setting: Setting) -> dict[str, Solver]:
        chosen = {
            "S-NB-DEC": SingleBranches(),
            "C-NB-DEC": Alternating(),
            "largest violation": LargestViolation(),
            "subtrees of height 2": Subtrees(2),
            "subtrees of height 3": Subtrees(3),
        }
        return {
            name: NodeDecomposition(
                working_sets=rule,
                macro_iterations=args.macro_iterations,
                initialisation="neutral",
            )
            for name, rule in chosen.items()
        }

    budget = lambda: Budget(time_limit=args.time_limit)  # noqa: E731
    run_all(args, "rules", "groups", variants, list(args.depths), budget)


# The cost of one step.


def step(args: argparse.Namespace) -> None:
    """One evaluation, and one whole step, of a single branch while the tree around it grows."""
    from softsplit.collapse import GateCache
    from softsplit.decomposition.nodes import BLOCK_SOLVER

    fold = load("dna", "onehot", 0)
    print(
        f"{'depth':>6}{'fixed':>7}{'whole tree':>12}{'root':>10}{'lowest':>10}   "
        f"{'root step':>10}{'lowest step':>12}   (ms; medians)"
    )
    for depth in range(2, 9):
        problem = make_problem(fold, "L0glob", 0.5, depth=depth)
        start = draw_start("groups", problem, np.random.default_rng(0))
        once = NodeDecomposition(initialisation="neutral", macro_iterations=1)
        tree = once.solve(problem, start, Budget()).parameters
        cache = GateCache.of(tree, problem.samples, problem.steepness)
        leaves = tuple(range(problem.topology.n_leaves))
        n_branches = problem.topology.n_branches
        times = [_milliseconds(lambda p=problem, t=tree: p.evaluate_cost(t))]
        for branch in (0, n_branches // 2):
            part = problem.restrict(Block((branch,), leaves), tree, cache=cache)

            def evaluate(part=part, tree=tree):
                part.collapsed._recent.clear()
                part.evaluate_cost(tree)

            times.append(_milliseconds(evaluate))
        for branch in (0, n_branches // 2):

            def whole_step(branch=branch, problem=problem, tree=tree, cache=cache, leaves=leaves):
                part = problem.restrict(Block((branch,), leaves), tree, cache=cache)
                BLOCK_SOLVER.solve(part, Start(tree), Budget(max_iter=5))

            times.append(_milliseconds(whole_step, repeats=15))
        print(
            f"{depth:6d}{n_branches - 1:7d}{times[0]:12.3f}{times[1]:10.3f}{times[2]:10.3f}   "
            f"{times[3]:10.3f}{times[4]:12.3f}",
            flush=True,
        )


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
    """Tables to the console, figures to the folder of the runs."""
    book = Book(args.out)
    for part in ("ipopt", "explicit", "native"):
        for name in args.datasets:
            report_table(book, part, name, None)
            draw(book, part, name, None, args.out)
    for name in args.datasets:
        for depth in args.depths:
            report_table(book, "deep", name, depth)
            draw(book, "deep", name, depth, args.out)
            report_table(book, "rules", name, depth)


def variants_in(book: Book, part: str, name: str, depth: int | None) -> list[str]:
    jobs = [run["job"] for run in book.runs.values()]
    here = [j for j in jobs if (j["part"], j["dataset"], j["depth"]) == (part, name, depth)]
    return list(dict.fromkeys(job["variant"] for job in here))


def mean_of(traces: list[DecompositionTrace], field: str, m: int) -> float:
    return float(np.mean([getattr(t[min(m, len(t) - 1)], field) for t in traces]))


def report_table(book: Book, part: str, name: str, depth: int | None) -> None:
    found = variants_in(book, part, name, depth)
    if not found:
        return
    base = book.traces(part, name, ALONE, depth)
    level = mean_of(base, "test_accuracy", 0) if base else float("nan")
    cpu = mean_of(base, "cpu_seconds", 0) if base else float("nan")
    print(f"\n### {part}, {name}" + (f", depth {depth}" if depth else ""))
    if base:
        print(
            f"no decomposition: {100 * level:.1f} % at {cpu:.2f} s, objective "
            f"{mean_of(base, 'objective', 0):.2f} ({len(base)} runs)"
        )
    print("\n| variant | m | accuracy | saved | objective | first m at equal accuracy | saved |")
    print("|---|---|---|---|---|---|---|")
    for variant in found:
        if variant == ALONE:
            continue
        traces = book.traces(part, name, variant, depth)
        longest = max(len(t) for t in traces)
        equal = [m for m in range(longest) if mean_of(traces, "test_accuracy", m) >= level - 0.002]
        last = longest - 1
        saved = 100 * (1 - mean_of(traces, "cpu_seconds", last) / cpu)
        early = "-" if not equal else str(equal[0])
        early_saved = (
            "-"
            if not equal
            else f"{100 * (1 - mean_of(traces, 'cpu_seconds', equal[0]) / cpu):.0f} %"
        )
        print(
            f"| {variant} | {last} | {100 * mean_of(traces, 'test_accuracy', last):.1f} % | "
            f"{saved:.0f} % | {mean_of(traces, 'objective', last):.2f} | {early} | {early_saved} |"
        )


def draw(book: Book, part: str, name: str, depth: int | None, folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from softsplit.plots import decomposition_trace

    shown = [v for v in variants_in(book, part, name, depth) if "no decomposition" not in v]
    base = book.traces(part, name, ALONE, depth)
    if not shown or not base:
        return
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    figure, grid = plt.subplots(
        lines, columns, figsize=(4.6 * columns, 3.0 * lines), squeeze=False, layout="constrained"
    )
    for ax in grid.flat[len(shown) :]:
        ax.set_visible(False)
    for ax, variant in zip(grid.flat, shown, strict=False):
        decomposition_trace(
            book.traces(part, name, variant, depth),
            baseline_accuracy=mean_of(base, "test_accuracy", 0),
            baseline_seconds=mean_of(base, "cpu_seconds", 0),
            title=f"{name}{f', depth {depth}' if depth else ''}: {variant}",
            ax=ax,
        )
    figure.savefig(folder / f"{part}-{name}{f'-{depth}' if depth else ''}.png", dpi=90)
    plt.close(figure)


PARTS = {
    "ipopt": ipopt,
    "explicit": explicit,
    "native": native,
    "deep": deep,
    "rules": rules,
    "step": step,
    "report": report,
}

if __name__ == "__main__":
    main()
