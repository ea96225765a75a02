"""IPOPT against the reference objectives: best of several starts on every row of ipopt.csv.

    SOFTSPLIT_DATA=<data> SOFTSPLIT_REFERENCE=<tables> python benchmarks/ipopt.py

For each row: the lowest objective over the starts that ended feasible, its ratio to the
reference, the median seconds a start, and how the starts ended. A row counts if it is at most
5 % above the reference. Only the solve is timed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from statistics import median

from reference import read_rows, reference_folder, row_label, row_problem

from softsplit.ipopt.solver import IpoptSolver
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Solution, Solver, Start
from softsplit.training.multistart import multistart

STRATEGIES = ("substituted", "explicit", "both")
TOLERANCE = 1.05
HEADER = (
    f"{'row':34s} {'strategy':12s} {'objective':>10s} {'reference':>10s} {'ratio':>7s} "
    f"{'within 5 %':>10s} {'s/start':>8s}  ends"
)


def main() -> None:
    arguments = parse()
    folder = reference_folder(arguments.reference)
    rows = [row for row in read_rows(folder / "ipopt.csv") if arguments.rows in row_label(row)]
    chosen = arguments.strategy
    strategies = ("substituted", "explicit") if chosen == "both" else (chosen,)
    ratios: dict[str, float] = {}
    print(HEADER)
    for row in rows:
        problem, reference = row_problem(row), float(row["best_objective"])
        for strategy in strategies:
            solutions = solve(problem, strategy, arguments)
            ratio = report(row_label(row), strategy, solutions, reference)
            ratios[row_label(row)] = min(ratio, ratios.get(row_label(row), float("inf")))
    missed = {label: ratio for label, ratio in ratios.items() if not ratio <= TOLERANCE}
    print(
        f"\n{len(ratios) - len(missed)} of {len(ratios)} rows within 5 % of the reference or below"
    )
    for label, ratio in missed.items():
        print(f"  missed: {label}, ratio {ratio:.3f}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="IPOPT against the reference objectives.")
    parser.add_argument("--reference", help="folder of the reference tables")
    parser.add_argument("--strategy", default="substituted", choices=STRATEGIES)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--rows", default="", help="only rows whose label contains this text")
    parser.add_argument("--time-limit", type=float, help="seconds per start")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def solve(problem: TrainingProblem, strategy: str, arguments: argparse.Namespace) -> list[Solution]:
    return multistart(
        problem,
        TimedStarts(IpoptSolver(strategy=strategy), arguments.time_limit),  # type: ignore[arg-type]
        n_starts=arguments.starts,
        seed=arguments.seed,
        n_jobs=arguments.jobs,
    )


@dataclass(frozen=True)
class TimedStarts(Solver):
    """IPOPT with the same time limit for every start.

    It wraps the solver and does not extend it: the process a limited run goes to cannot import
    from this script.
    """

    solver: IpoptSolver
    per_start: float | None
    name: str = "ipopt"
    start_rules: tuple[str, ...] = IpoptSolver.start_rules
    zero_threshold: float = IpoptSolver.zero_threshold

    def solve(self, problem: TrainingProblem, start: Start, budget: Budget) -> Solution:
        return self.solver.solve(problem, start, Budget(time_limit=self.per_start))


def report(label: str, strategy: str, solutions: list[Solution], reference: float) -> float:
    """Print one line; the ratio of the best feasible objective to the reference."""
    feasible = [s.objective for s in solutions if s.status.usable]
    best = min(feasible, default=float("inf"))
    ratio = best / reference
    seconds = median(solution.seconds for solution in solutions)
    ends = ", ".join(
        f"{count} {name.lower()}"
        for name, count in Counter(s.status.name for s in solutions).most_common()
    )
    print(
        f"{label:34s} {strategy:12s} {best:10.4f} {reference:10.4f} {ratio:7.3f} "
        f"{'yes' if ratio <= TOLERANCE else 'NO':>10s} {seconds:8.2f}  {ends}",
        flush=True,
    )
    return ratio


if __name__ == "__main__":
    main()
