"""Our own solver: short compiled descents along recipes of stages.

A start that already separates classes (rule "groups", or a tree given by the caller) goes straight
to the expected cost at full steepness; a random one is first warmed up with the log-loss. Where a
start comes with rivals, a race of short descents decides which one is run to the end. It is then
run to the end once more after a warm-up: neither way is always the better one. Every run ends with
the polish and the exact leaf step, so that the tree is feasible. Problems of likelihood go to a
solver of their own (solvers/elimination).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from softsplit.problem.leaves import InfeasibleLeafStep
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.strength_bound import all_zero_tree
from softsplit.solvers.abilities import Path, Report, silent
from softsplit.solvers.active_set.program import LOOK
from softsplit.solvers.base import Budget, Draw, Solution, Start, Status
from softsplit.solvers.basin_hopping.meter import Meter, OutOfBudget
from softsplit.solvers.basin_hopping.perturbations import Moved, Point
from softsplit.solvers.basin_hopping.run import DescentRun
from softsplit.solvers.basin_hopping.search import Hops
from softsplit.solvers.basin_hopping.stages import (
    Approach,
    FixedLeaves,
    LogWarmUp,
    Polish,
    Race,
    Stage,
)
from softsplit.solvers.elimination import solver as likelihood
from softsplit.solvers.elimination.race import SUPPORT_ROWS
from softsplit.solvers.stopping import EndPoints
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters

Recipe = tuple[Stage, ...]
COLD: Recipe = (LogWarmUp(max_iter=15), Approach())
WARM: Recipe = (Approach(),)
DEFAULT_RECIPES: dict[str, Recipe] = {
    "groups": WARM,
    "given": WARM,
    "points": COLD,
    "uniform": COLD,
}

LEAST_CHANCE = 0.04
"""The chance of a better tree that a hop is worth on a small problem, after a single start."""

TWICE_THAT = 2e5
"""Rows x branches x (features + 10) of a problem where it must be twice as large."""

MOST_RACING = 100
"""Trees in the race of a start, whatever the effort."""

SAMPLES, MANY_ROWS = (5_000, 20_000), 50_000
"""Rows on which trees are looked for by cost where there are more than MANY_ROWS."""

LARGER, MOST_OF = 4, 0.6
"""By likelihood the second sample is so many times the first; one that is more than this part of
the last saves too little."""

LONG = 1e6
"""Rows times numbers of a tree from which on the last digits of a start take seconds."""

LOOK_AGAIN = LogWarmUp(rounds=1, max_iter=15)
LESS_STEEP = (4.0, 16.0, 64.0)
"""How far trees of several branches are warmed up for another look."""

LEAF_ROUNDS = 3
SAME_LEAVES = 1e-6
"""Leaf classes that differ by no more are the same."""


@dataclass(frozen=True)
class NativeSolver:
    """Compiled solver of the paper's formulation; by likelihood it hands over to elimination.

    Parameters
    ----------
    recipes : dict from start rule to stages
    race : Race
        Decides between a start and its rivals.
    look_again : LogWarmUp, optional
        Where a start leads to is compared with where it leads to after this; a tree of several
        branches is not warmed up to the steepest splits.
    search : Hops
        The search around the best trees after all starts.
    finish : Polish
        The last tight descent.
    mixed : FixedLeaves
        The descent after a leaf step that mixed leaves.
    start_rules : tuple of str
        Rules of the starts, used in turn.
    rivals : int
        Rivals of each start.
    exploring : int
        Starts of any structure in a tree of several branches; all others have that of the best.
    effort : float
        How long the search goes on or, by likelihood, how many rivals a start has, as a multiple of
        what is usual; 0 for no search.
    max_iter : int
        Iterations of one start where the budget has no limit.
    """

    recipes: dict[str, Recipe] = field(default_factory=lambda: dict(DEFAULT_RECIPES))
    race: Race = field(default_factory=Race)
    look_again: LogWarmUp | None = LOOK_AGAIN
    search: Hops = field(default_factory=Hops)
    finish: Polish = field(default_factory=Polish)
    mixed: FixedLeaves = field(default_factory=FixedLeaves)
    start_rules: tuple[str, ...] = ("groups",)
    rivals: int = 1
    exploring: int = 5
    effort: float = 1.0
    max_iter: int = 100_000
    name: str = "native"
    releases_gil: bool = True
    zero_threshold: float = 0.0

    def solve(self, problem: TrainingProblem, start: Start, budget: Budget) -> Solution:
        """Best tree found from ``start`` or one of its rivals."""
        if problem.by_likelihood:
            return likelihood.solve(problem, start, budget)
        began = time.perf_counter()
        run = DescentRun(problem, Meter(budget, budget.max_iter or self.max_iter))
        point = (start.parameters.splits, start.parameters.leaf_classes)
        status = Status.ACCEPTABLE
        try:
            if start.rivals:
                point = self.race.winner(run, (start.parameters, *start.rivals))
            for stage in self.recipes[start.rule]:
                point = (point[0], stage.apply(run, *point))
            if start.rule == "groups":
                point = self._second_look(run, point, start.parameters)
            point = (point[0], self.finish.apply(run, *point))
        except OutOfBudget:
            status = budget.verdict
        except KeyboardInterrupt:
            budget.stop()
            status = Status.INTERRUPTED
        return self._measure(run, *point, status, began)

    def samples(self, problem: TrainingProblem) -> tuple[int, ...]:
        """By likelihood up to the rows on which features are looked for, and those are the last.

        All rows at once, roughly, where the last digits of a start take long.
        """
        n_rows = problem.rows.n_rows
        if not problem.by_likelihood:
            return SAMPLES if n_rows > MANY_ROWS else ()
        last, few = min(n_rows, SUPPORT_ROWS), likelihood.few_rows(problem)
        sizes = [size for size in (few, LARGER * few) if size <= MOST_OF * last]
        numbers = problem.topology.n_branches * (problem.n_features + problem.n_classes)
        long = problem.penalties.counts and n_rows * numbers > LONG
        return (*sizes, last) if sizes or n_rows > last or long else ()

    def rule(self, problem: TrainingProblem, number: int) -> str:
        """Mixtures for training by likelihood; the first is raced against a tree that is grown."""
        if problem.by_likelihood:
            return "mixtures" if number else "growth"
        return self.start_rules[number % len(self.start_rules)]

    def explorers(self, problem: TrainingProblem) -> int:
        """None in particular where there is but one structure, or by likelihood."""
        several = problem.topology.depth > 1 and problem.block is None
        return self.exploring if several and not problem.by_likelihood else 0

    def follows(self, problem: TrainingProblem) -> bool:
        """Elimination gives trees for all strengths at once."""
        return problem.by_likelihood and not problem.rated

    def follow(
        self, problem: TrainingProblem, start: Start, budget: Budget, *, compared: bool = False
    ) -> Path:
        return likelihood.Elimination(problem, start, budget, compared=compared)

    def with_effort(self, effort: float) -> NativeSolver:
        """The same with a longer search or, by likelihood, more trees in the race of a start."""
        return replace(self, effort=effort * self.effort)

    def rivals_for(self, problem: TrainingProblem) -> int:
        """Rivals of each start; the effort goes into them where there is no search."""
        if not problem.by_likelihood:
            return self.rivals
        return min(max(round(self.effort * (1 + self.rivals)), 1), MOST_RACING) - 1

    def worthwhile(self, problem: TrainingProblem) -> float:
        """Little on a small problem, where hops cost little; none is made on a million rows.

        None by likelihood either, where every start goes over many supports.
        """
        if problem.by_likelihood or self.effort == 0:
            return np.inf
        size = problem.rows.n_rows * problem.topology.n_branches * (problem.n_features + 10)
        return LEAST_CHANCE * (1.0 + size / TWICE_THAT) / self.effort

    def improve(
        self,
        problem: TrainingProblem,
        front: Sequence[Solution],
        draws: Iterator[Draw],
        ends: EndPoints,
        budget: Budget,
        report: Report = silent,
    ) -> Solution:
        """Hop from the trees of ``front``; the first is returned if nothing led below it.

        The result is no worse than the all-zero tree either.
        """
        began = time.perf_counter()
        best = front[0]
        if problem.by_likelihood:
            return best
        run = DescentRun(problem, Meter(budget, budget.max_iter or self.max_iter))
        points = [(s.parameters.splits, s.parameters.leaf_classes) for s in front]
        point = self.search.improve(run, points, draws, ends, report)
        if point is not points[0]:
            best = self._finished(run, point, best, began)
        zero = _all_zero(problem)
        if zero is not None and problem.objective(zero) < best.objective:
            best = self._finished(run, (zero.splits, zero.leaf_classes), best, began)
        return best

    def _second_look(self, run: DescentRun, point: Point, start: TreeParameters) -> Point:
        """The end of the same start after a warm-up, if that is lower."""
        if self.look_again is None:
            return point
        value, theta, warm_up = run.descend(*point, LOOK), start.splits, self.look_again
        if run.problem.topology.depth > 1:
            warm_up = replace(warm_up, steepness=LESS_STEEP)
        leaves = warm_up.apply(run, theta, start.leaf_classes)
        other, end = self.search.descend(run, Moved(theta, leaves), value)
        return end if other < value - run.meter.budget.tol * run.problem.cost_unit else point

    def _finished(self, run: DescentRun, point: Point, best: Solution, began: float) -> Solution:
        """The solution that ``point`` leads to, or ``best`` if that is no worse."""
        status = Status.ACCEPTABLE
        try:
            point = (point[0], self.finish.apply(run, *point))
        except OutOfBudget:
            status = run.meter.budget.verdict
        except KeyboardInterrupt:
            run.meter.budget.stop()
            status = Status.INTERRUPTED
        found = self._measure(run, *point, status, began)
        better = found.status.usable and found.objective < best.objective
        return found if better else best

    def _measure(
        self, run: DescentRun, theta: FloatArray, leaves: FloatArray, status: Status, began: float
    ) -> Solution:
        tree, status = self._close(run, theta, leaves, status)
        return Solution.measure(
            run.problem,
            tree,
            status,
            tol=run.meter.budget.tol,
            n_iter=run.meter.iterations,
            seconds=time.perf_counter() - began,
            solver=self.name,
            message=f"{run.meter.calls} evaluations",
        )

    def _close(
        self, run: DescentRun, theta: FloatArray, leaves: FloatArray, status: Status
    ) -> tuple[TreeParameters, Status]:
        """The exact leaf step, and descents for as long as it changes leaves for the better.

        Where rates bind, the best leaves may be mixed, and the branches must follow them.
        """
        problem = run.problem
        tree = problem.pin(TreeParameters.from_splits(theta, leaves))
        try:
            best = problem.best_leaves(tree)
        except InfeasibleLeafStep:
            return tree, Status.INFEASIBLE
        for _ in range(LEAF_ROUNDS):
            if status is not Status.ACCEPTABLE or _same(best.leaf_classes, leaves):
                break
            leaves = best.leaf_classes
            try:
                theta = best.splits
                self.mixed.apply(run, theta, leaves)
                tree = problem.best_leaves(TreeParameters.from_splits(theta, leaves))
            except (OutOfBudget, InfeasibleLeafStep):
                break
            if not problem.objective(tree) < problem.objective(best):
                break
            best = tree
        return best, status


def _same(leaves: FloatArray, others: FloatArray) -> bool:
    return float(np.abs(leaves - others).max()) <= SAME_LEAVES


def _all_zero(problem: TrainingProblem) -> TreeParameters | None:
    """The tree without features; None for a restricted problem and for rates it cannot meet.

    Under a strong concave penalty all descents may end above it: its basin is narrow.
    """
    if problem.block is not None or problem.minimum_rates.sum() > 1:
        return None
    return all_zero_tree(problem)
