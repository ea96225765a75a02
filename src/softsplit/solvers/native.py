"""Our own solver: short compiled descents along recipes of stages.

A start that already separates classes (rule "groups", or a tree given by the caller) goes straight
to the expected cost at full steepness; a random one is first warmed up with the log-loss. Where a
start comes with rivals, a race of short descents decides which one is run to the end. A tree of
one branch is run to the end twice, once after a warm-up: where one hyperplane must fit all rows
closely, neither way is always the better one. Every run ends with the polish and the exact leaf
step, so that the tree is feasible.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from softsplit.constraints import InfeasibleLeafStep
from softsplit.problem import TrainingProblem
from softsplit.solvers.base import Budget, Solution, Start, Status
from softsplit.solvers.engine import Engine, Meter, OutOfBudget, pack, unpack
from softsplit.solvers.hops import Hops
from softsplit.solvers.stages import LogWarmUp, Polish, Race, Stage, StrengthPath
from softsplit.tree import FloatArray, TreeParameters

Recipe = tuple[Stage, ...]
Point = tuple[FloatArray, FloatArray]
"""theta and leaf classes."""

COLD: Recipe = (LogWarmUp(max_iter=15), StrengthPath((1.0,), 20), Polish())
WARM: Recipe = (StrengthPath((1.0,), 40), Polish())
DEFAULT_RECIPES: dict[str, Recipe] = {
    "groups": WARM,
    "given": WARM,
    "points": COLD,
    "uniform": COLD,
}


@dataclass(frozen=True)
class NativeSolver:
    """Compiled solver of the paper's formulation.

    Parameters
    ----------
    recipes : dict from start rule to stages
    race : Race
        Decides between a start and its rivals.
    hops : Hops
        The search around the best tree after all starts.
    start_rules : tuple of str
        Rules of the starts, used in turn.
    rivals, hops_per_start : int
        Rivals of each start, and hops after the last one for each start there was.
    max_iter : int
        Iterations of one start where the budget has no limit.
    """

    recipes: dict[str, Recipe] = field(default_factory=lambda: dict(DEFAULT_RECIPES))
    race: Race = field(default_factory=Race)
    hops: Hops = field(default_factory=Hops)
    start_rules: tuple[str, ...] = ("groups",)
    rivals: int = 2
    hops_per_start: int = 2
    max_iter: int = 100_000
    name: str = "native"
    releases_gil: bool = True
    zero_threshold: float = 0.0

    def solve(self, problem: TrainingProblem, start: Start, budget: Budget) -> Solution:
        """Best tree found from ``start`` or one of its rivals."""
        began = time.perf_counter()
        meter = Meter(budget, budget.max_iter or self.max_iter)
        engine = Engine(problem, meter)
        point = (pack(start.parameters), start.parameters.leaf_classes)
        ends: list[Point] = []
        status = Status.ACCEPTABLE
        try:
            if start.rivals:
                point = self.race.winner(engine, (start.parameters, *start.rivals))
            cold = (point[0].copy(), point[1])
            ends.append(point)
            ends[-1] = self._follow(self.recipes[start.rule], engine, point)
            if start.rule == "groups" and problem.topology.depth == 1:
                ends.append(self._follow(COLD, engine, cold))
        except OutOfBudget:
            over_time = budget.remaining <= 0
            status = Status.TIME_LIMIT if over_time else Status.MAX_ITER
        theta, leaves = min(ends or [point], key=lambda end: problem.objective(unpack(*end)))
        return self._measure(problem, theta, leaves, status, meter, began)

    def _follow(self, recipe: Recipe, engine: Engine, point: Point) -> Point:
        theta, leaves = point
        for stage in recipe:
            leaves = stage.apply(engine, theta, leaves)
        return theta, leaves

    def improve(
        self,
        problem: TrainingProblem,
        best: Solution,
        fresh: Sequence[TreeParameters],
        budget: Budget,
    ) -> Solution:
        """Hop from ``best``; it is returned itself if no hop was lower."""
        began = time.perf_counter()
        meter = Meter(budget, self.max_iter)
        tree = self.hops.improve(Engine(problem, meter), best.parameters, fresh)
        found = self._measure(
            problem, pack(tree), tree.leaf_classes, Status.ACCEPTABLE, meter, began
        )
        better = found.status.usable and found.objective < best.objective
        return found if better else best

    def _measure(
        self,
        problem: TrainingProblem,
        theta: FloatArray,
        leaves: FloatArray,
        status: Status,
        meter: Meter,
        began: float,
    ) -> Solution:
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
        return found.promoted(meter.budget.tol * problem.cost_unit)

    def _close(
        self, problem: TrainingProblem, theta: FloatArray, leaves: FloatArray, status: Status
    ) -> tuple[TreeParameters, Status]:
        """The exact leaf step."""
        tree = problem.pin(unpack(theta, leaves))
        try:
            return problem.best_leaves(tree), status
        except InfeasibleLeafStep:
            return tree, Status.INFEASIBLE
