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

import numpy as np

from softsplit.constraints import InfeasibleLeafStep
from softsplit.problem import TrainingProblem
from softsplit.solvers.base import Budget, Solution, Start, Status
from softsplit.solvers.block_engine import make_engine
from softsplit.solvers.engine import Engine, Meter, OutOfBudget, pack, unpack
from softsplit.solvers.hops import Hops
from softsplit.solvers.stages import Approach, FixedLeaves, LogWarmUp, Polish, Race, Stage
from softsplit.tree import FloatArray, TreeParameters

Recipe = tuple[Stage, ...]
Point = tuple[FloatArray, FloatArray]
"""theta and leaf classes."""

COLD: Recipe = (LogWarmUp(max_iter=15), Approach(max_iter=20), Polish())
WARM: Recipe = (Approach(), Polish())
DEFAULT_RECIPES: dict[str, Recipe] = {
    "groups": WARM,
    "given": WARM,
    "points": COLD,
    "uniform": COLD,
}

LEAF_ROUNDS = 3
NEARLY = 1e-4
"""A shortfall of a class rate that the leaf step mends at little cost."""


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
    finish : FixedLeaves
        The descent after a leaf step that mixed leaves.
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
    finish: FixedLeaves = field(default_factory=FixedLeaves)
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
        engine = make_engine(problem, Meter(budget, budget.max_iter or self.max_iter))
        point = (pack(start.parameters), start.parameters.leaf_classes)
        ends: list[Point] = [point]
        status = Status.ACCEPTABLE
        try:
            if start.rivals:
                ends = [self.race.winner(engine, (start.parameters, *start.rivals))]
            cold = (ends[0][0].copy(), ends[0][1])
            ends = [self._follow(self.recipes[start.rule], engine, ends[0])]
            if start.rule == "groups" and problem.topology.depth == 1:
                ends.append(self._follow(COLD, engine, cold))
        except OutOfBudget:
            status = budget.verdict
        except KeyboardInterrupt:
            budget.cancel.requested = True
            status = Status.INTERRUPTED
        theta, leaves = min(ends, key=lambda end: _rank(problem, unpack(*end)))
        return self._measure(engine, theta, leaves, status, began)

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
        engine = Engine(problem, Meter(budget, self.max_iter))
        tree = self.hops.improve(engine, best.parameters, fresh)
        found = self._measure(engine, pack(tree), tree.leaf_classes, Status.ACCEPTABLE, began)
        better = found.status.usable and found.objective < best.objective
        return found if better else best

    def _measure(
        self, engine: Engine, theta: FloatArray, leaves: FloatArray, status: Status, began: float
    ) -> Solution:
        tree, status = self._close(engine, theta, leaves, status)
        return Solution.measure(
            engine.problem,
            tree,
            status,
            tol=engine.meter.budget.tol,
            n_iter=engine.meter.iterations,
            seconds=time.perf_counter() - began,
            solver=self.name,
            message=f"{engine.meter.calls} evaluations",
        )

    def _close(
        self, engine: Engine, theta: FloatArray, leaves: FloatArray, status: Status
    ) -> tuple[TreeParameters, Status]:
        """The exact leaf step, and descents for as long as it changes leaves for the better.

        Where rates bind, the best leaves may be mixed, and the branches must follow them.
        """
        problem = engine.problem
        tree = problem.pin(unpack(theta, leaves))
        try:
            best = problem.best_leaves(tree)
        except InfeasibleLeafStep:
            return tree, Status.INFEASIBLE
        for _ in range(LEAF_ROUNDS):
            if status is not Status.ACCEPTABLE or np.allclose(best.leaf_classes, leaves):
                break
            leaves = best.leaf_classes
            try:
                theta = pack(best)
                self.finish.apply(engine, theta, leaves)
                tree = problem.best_leaves(unpack(theta, leaves))
            except (OutOfBudget, InfeasibleLeafStep):
                break
            if not problem.objective(tree) < problem.objective(best):
                break
            best = tree
        return best, status


def _rank(problem: TrainingProblem, tree: TreeParameters) -> tuple[bool, float]:
    """Sorts trees that meet the class rates, or nearly so, before those that do not."""
    shortfall = float(np.max(problem.minimum_rates - problem.rates(tree)))
    return shortfall > NEARLY, problem.objective(tree)
