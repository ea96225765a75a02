"""Our own solver: short compiled descents along a recipe of stages.

A start that already separates classes (rule "groups", or a tree given by the caller) goes straight
to the expected cost at full steepness along the strength path; a random one is first warmed up
with the log-loss. Every recipe ends with the polish, then the exact leaf step, so that the tree
is feasible.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from softsplit.constraints import InfeasibleLeafStep
from softsplit.problem import TrainingProblem
from softsplit.solvers.base import Budget, Solution, Start, Status
from softsplit.solvers.engine import Engine, Meter, OutOfBudget, pack, unpack
from softsplit.solvers.stages import LogWarmUp, Polish, Race, Stage, StrengthPath
from softsplit.tree import FloatArray, TreeParameters

DEFAULT_RECIPES: dict[str, tuple[Stage, ...]] = {
    "groups": (StrengthPath(fractions=(1.0,), max_iter=40), Polish()),
    "points": (LogWarmUp(), StrengthPath(), Polish()),
    "uniform": (LogWarmUp(), StrengthPath(), Polish()),
    "given": (StrengthPath(fractions=(1.0,)), Polish()),
}


@dataclass(frozen=True)
class NativeSolver:
    """Compiled solver of the paper's formulation.

    Parameters
    ----------
    recipes : dict from start rule to stages
    start_rules : tuple of str
        Rules of the starts, used in turn.
    max_iter : int
        Iterations of one start where the budget has no limit.
    """

    recipes: dict[str, tuple[Stage, ...]] = field(default_factory=lambda: dict(DEFAULT_RECIPES))
    race: Race = Race()
    start_rules: tuple[str, ...] = ("groups",)
    rivals: int = 5
    max_iter: int = 100_000
    name: str = "native"
    releases_gil: bool = True
    zero_threshold: float = 0.0

    def solve(self, problem: TrainingProblem, start: Start, budget: Budget) -> Solution:
        """Best tree found from ``start``."""
        began = time.perf_counter()
        meter = Meter(budget, budget.max_iter or self.max_iter)
        theta, leaves = pack(start.parameters), start.parameters.leaf_classes
        engine = Engine(problem, meter)
        status = Status.ACCEPTABLE
        try:
            if start.rivals:
                theta, leaves = self.race.winner(engine, (start.parameters, *start.rivals))
            for stage in self.recipes[start.rule]:
                leaves = stage.apply(engine, theta, leaves)
        except OutOfBudget:
            over_time = budget.remaining <= 0
            status = Status.TIME_LIMIT if over_time else Status.MAX_ITER
        tree, status = self._close(problem, theta, leaves, status)
        found = Solution.measure(
            problem,
            tree,
            status,
            n_iter=meter.iterations,
            seconds=time.perf_counter() - began,
            solver=self.name,
            message=f"{meter.calls} evaluations",
        )
        return found.promoted(budget.tol * problem.cost_unit)

    def _close(
        self, problem: TrainingProblem, theta: FloatArray, leaves: FloatArray, status: Status
    ) -> tuple[TreeParameters, Status]:
        """The exact leaf step."""
        tree = problem.pin(unpack(theta, leaves))
        try:
            return problem.best_leaves(tree), status
        except InfeasibleLeafStep:
            return tree, Status.INFEASIBLE
