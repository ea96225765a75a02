"""Compiled solver of the expected cost: descents, and basin hopping (Wales and Doye, 1997).

A start that already separates classes (rule "groups", or a tree given by the caller) goes straight
to the expected cost at full steepness; a random one is first warmed up with the log-loss. Where a
start comes with candidates, a race of short descents decides which one is run to the end. It is
then run to the end once more after a warm-up: neither way is always the better one. Every run ends
with the polish and the exact leaf step, so that the tree is feasible.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from softsplit.problem.leaves import InfeasibleLeafStep
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.strength_bound import all_zero_tree
from softsplit.solvers.active_set.state import EVALUATE_ONLY
from softsplit.solvers.base import (
    Budget,
    OutOfBudget,
    Report,
    Solution,
    Solver,
    Start,
    Status,
    silent,
)
from softsplit.solvers.basin_hopping.budget import (
    ClockOptions,
    IterationBudget,
)
from softsplit.solvers.basin_hopping.joint import JointPrograms
from softsplit.solvers.basin_hopping.perturbations import Point
from softsplit.solvers.basin_hopping.run import DescentRun
from softsplit.solvers.basin_hopping.search import BasinHopping
from softsplit.solvers.basin_hopping.stages import (
    Approach,
    FixedLeaves,
    LogWarmUp,
    Polish,
    Race,
    RecipeStage,
)
from softsplit.solvers.ruled import improve_masked, solve_masked
from softsplit.solvers.stopping import EndPoints
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters

Recipe = tuple[RecipeStage, ...]
COLD: Recipe = (LogWarmUp(max_iter=15), Approach())
WARM: Recipe = (Approach(),)
DEFAULT_RECIPES: dict[str, Recipe] = {
    "groups": WARM,
    "given": WARM,
    "points": COLD,
    "uniform": COLD,
}


@dataclass(frozen=True)
class BasinHoppingSolver(Solver):
    """Compiled solver of problems with bounded coefficients, the paper's formulation.

    Parameters
    ----------
    recipes : dict from start rule to stages
    race : Race
        Decides between a start and its candidates.
    look_again : LogWarmUp, optional
        Where a start leads to is compared with where it leads to after this; a tree of several
        branches is not warmed up to the steepest splits.
    search : BasinHopping
        The search around the best trees after all starts.
    finish : Polish
        The last tight descent.
    mixed : FixedLeaves
        The descent after a leaf step that mixed leaves.
    joint : JointPrograms
        The last steps under requirements on rates, of branches and leaves together.
    start_rules : tuple of str
        Rules of the starts, used in turn.
    candidates : int
        Further candidates of each start.
    exploring : int
        Starts of any structure in a tree of several branches; all others have that of the best.
    effort : float
        Length of the search as a multiple of the usual one; 0 for no search.
    max_iter : int
        Iterations of one start where the budget has no limit.
    least_chance_of_better : float
        The estimated chance of a better tree that a hop is worth on a small problem, after a
        single start.
    twice_that : float
        Rows x branches x (features + 10) of a problem where that chance must be twice as large.
    samples, many_rows : tuple of int, int
        Rows on which trees are looked for where there are more than ``many_rows``.
    gentle : tuple of float
        Steepnesses at which trees of several branches are warmed up for another look.
    leaf_rounds, same_leaves : int, float
        Exact leaf steps at the end, and the difference of leaf classes below which one has changed
        nothing.
    clock : ClockOptions
        When compiled code comes back to look at the clock.
    """

    recipes: dict[str, Recipe] = field(default_factory=lambda: dict(DEFAULT_RECIPES))
    race: Race = field(default_factory=Race)
    look_again: LogWarmUp | None = field(default_factory=lambda: LogWarmUp(rounds=1, max_iter=15))
    search: BasinHopping = field(default_factory=BasinHopping)
    finish: Polish = field(default_factory=Polish)
    mixed: FixedLeaves = field(default_factory=FixedLeaves)
    joint: JointPrograms = field(default_factory=JointPrograms)
    start_rules: tuple[str, ...] = ("groups",)
    candidates: int = 1
    exploring: int = 5
    effort: float = 1.0
    max_iter: int = 100_000
    least_chance_of_better: float = 0.04
    twice_that: float = 2e5
    samples: tuple[int, ...] = (5_000, 20_000)
    many_rows: int = 50_000
    gentle: tuple[float, ...] = (4.0, 16.0, 64.0)
    leaf_rounds: int = 3
    same_leaves: float = 1e-6
    clock: ClockOptions = field(default_factory=ClockOptions)
    name: str = "native"
    releases_gil: bool = True
    zero_threshold: float = 0.0
    searches: ClassVar[bool] = True
    keeps_order: ClassVar[bool] = True
    keeps_rules: ClassVar[bool] = True
    meets_rates: ClassVar[bool] = True
    compiled_code: ClassVar[str | None] = "cost"

    def supports(self, problem: TrainingProblem) -> str | None:
        """Descents move inside the bounds of the coefficients."""
        if not problem.boxed:
            return "needs bounded coefficients, as loss='cost' has them"
        if problem.rate_limits is not None and not problem.linear:
            return "trains under constraints and fairness with loss='log' and loss='cost' only"
        return None

    def solve(self, problem: TrainingProblem, start: Start, budget: Budget) -> Solution:
        """Best tree from ``start`` or one of its candidates."""
        if problem.binding_rules is not None:
            return solve_masked(self, problem, problem.binding_rules, start, budget)
        began = time.perf_counter()
        run = self._run(problem, budget)
        start = start.within(problem)
        point = (start.parameters.splits, start.parameters.leaf_values)
        status = Status.INTERRUPTED
        try:
            with budget.interruptible():
                # 1. The start or one of its candidates.
                if start.candidates:
                    point = self.race.winner(run, (start.parameters, *start.candidates))
                # 2. Where it leads to, and where it leads to after a warm-up.
                for stage in self.recipes[start.rule]:
                    point = (point[0], stage.apply(run, *point))
                if start.rule == "groups":
                    point = self._second_look(run, point, start.parameters)
                # 3. The polish, and the exact leaves in _measure.
                point = (point[0], self.finish.apply(run, *point))
                status = Status.ACCEPTABLE
        except OutOfBudget:
            status = budget.verdict
        return self._measure(run, *point, status, began)

    def sample_sizes(self, problem: TrainingProblem) -> tuple[int, ...]:
        """Two samples where rows are many."""
        return self.samples if problem.rows.n_rows > self.many_rows else ()

    def n_exploring(self, problem: TrainingProblem) -> int:
        """``exploring``, or 0 where trees have one structure only."""
        several = problem.topology.depth > 1 and problem.block is None
        return self.exploring if several else 0

    def with_effort(self, effort: float) -> BasinHoppingSolver:
        """Return the same solver with a longer search."""
        return replace(self, effort=effort * self.effort)

    def least_chance(self, problem: TrainingProblem) -> float:
        """Small on a small problem, where perturbations are cheap; above one on a million rows."""
        if self.effort == 0:
            return np.inf
        size = problem.rows.n_rows * problem.topology.n_branches * (problem.n_features + 10)
        return self.least_chance_of_better * (1.0 + size / self.twice_that) / self.effort

    def improve(
        self,
        problem: TrainingProblem,
        front: Sequence[Solution],
        seeds: Iterator[int],
        ends: EndPoints,
        budget: Budget,
        report: Report = silent,
    ) -> Solution:
        """Hop from the trees of ``front``; the first is returned if nothing led below it.

        The result is no worse than the all-zero tree either.
        """
        if problem.binding_rules is not None:
            rules = problem.binding_rules
            return improve_masked(self, problem, rules, front, seeds, ends, budget, report)
        began = time.perf_counter()
        best = front[0]
        run = self._run(problem, budget)
        run.price(best)
        # 1. Hops from the trees of the front, compared by the Lagrangian of the best.
        points = [(s.parameters.splits, s.parameters.leaf_values) for s in front]
        point = self.search.improve(run, points, seeds, ends, report)
        if point is not points[0]:
            best = self._finished(run, point, best, began)
        # 2. The tree without features, if it is better still.
        zero = _all_zero(problem)
        if zero is not None and problem.objective(zero) < best.objective:
            best = self._finished(run, (zero.splits, zero.leaf_values), best, began)
            if problem.rate_limits is not None:  # where rates bind, descents may lead away from it
                at_zero = self._measure(
                    run, zero.splits, zero.leaf_values, Status.ACCEPTABLE, began
                )
                best = _lower(at_zero, best)
        return best

    def _second_look(self, run: DescentRun, point: Point, start: TreeParameters) -> Point:
        """The end of the same start after a warm-up, if that is lower."""
        if self.look_again is None:
            return point
        value, theta, warm_up = run.descend(*point, EVALUATE_ONLY), start.splits, self.look_again
        if run.problem.topology.depth > 1:
            warm_up = replace(warm_up, steepness=self.gentle)
        leaves = warm_up.apply(run, theta, start.leaf_values)
        other, end = self.search.descend(run, (theta, leaves), value)
        return end if other < value - run.work.budget.tol * run.problem.cost_unit else point

    def _finished(self, run: DescentRun, point: Point, best: Solution, began: float) -> Solution:
        """The solution that ``point`` leads to, or ``best`` if that is no worse."""
        status = Status.INTERRUPTED
        try:
            with run.work.budget.interruptible():
                point = (point[0], self.finish.apply(run, *point))
                status = Status.ACCEPTABLE
        except OutOfBudget:
            status = run.work.budget.verdict
        return _lower(self._measure(run, *point, status, began), best)

    def _measure(
        self, run: DescentRun, theta: FloatArray, leaves: FloatArray, status: Status, began: float
    ) -> Solution:
        tree, status = self._close(run, theta, leaves, status)
        if run.problem.rate_limits is not None and status is Status.ACCEPTABLE:
            tree = self.joint.apply(run.problem, tree, run.work.budget.check)
        return Solution.measure(
            run.problem,
            tree,
            status,
            tol=run.work.budget.tol,
            n_iter=run.work.iterations,
            seconds=time.perf_counter() - began,
            solver=self.name,
            message=f"{run.work.calls} evaluations",
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
        for _ in range(self.leaf_rounds):
            if status is not Status.ACCEPTABLE or self._same(best.leaf_values, leaves):
                break
            leaves = best.leaf_values
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

    def _same(self, leaves: FloatArray, others: FloatArray) -> bool:
        return float(np.abs(leaves - others).max()) <= self.same_leaves

    def _run(self, problem: TrainingProblem, budget: Budget) -> DescentRun:
        most = budget.max_iter or self.max_iter
        return DescentRun(problem, IterationBudget(budget, most, clock=self.clock))


def _lower(solution: Solution, best: Solution) -> Solution:
    """Return ``solution`` if it may be used and is lower than ``best``."""
    better = solution.status.usable and solution.objective < best.objective
    return solution if better else best


def _all_zero(problem: TrainingProblem) -> TreeParameters | None:
    """The tree without features; None for a restricted problem and for rates it cannot meet.

    Under a strong concave penalty all descents may end above it: its basin is narrow.
    """
    if problem.block is not None or problem.minimum_rates.sum() > 1:
        return None
    return all_zero_tree(problem)
