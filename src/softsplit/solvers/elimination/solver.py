"""``EliminationSolver``, the native solver of the log-loss, and the phases of one of its runs.

From a start, or the winner of a race between several candidates (race.py, screening.py), backward
elimination makes a path of trees (path.py). The tree of the path whose objective is least at the
strengths of a problem descends on all rows until its derivatives vanish. Under other penalties than
the count proximal gradient steps take the place of elimination (penalised.py), and minimum class
rates are met in a last phase (rated_descents.py). Supports are selected on at most
``EliminationOptions.support_rows`` rows; where there are more, or where rows are not arrays of this
process, the last descents ask the engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isclose
from typing import ClassVar, NamedTuple

import numpy as np

from softsplit.engines.base import drawn_from, samples_of
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.problem.leaves import RATE_SLACK
from softsplit.problem.penalties import PenaltyPair, linear
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.size_limits import SizeLimits
from softsplit.solvers.base import (
    PROMOTED,
    Budget,
    OutOfBudget,
    Path,
    Solution,
    Solver,
    Start,
    Status,
)
from softsplit.solvers.elimination.bounded import sharpened
from softsplit.solvers.elimination.descents import EngineDescents, RowDescents, group_shares
from softsplit.solvers.elimination.objective import Shrinkage
from softsplit.solvers.elimination.options import DEFAULTS, EliminationOptions
from softsplit.solvers.elimination.path import RIDGE, Criterion, EliminationPath, EliminationPoint
from softsplit.solvers.elimination.penalised import Penalised
from softsplit.solvers.elimination.race import Entrants, race
from softsplit.solvers.elimination.rated_descents import with_rates
from softsplit.solvers.elimination.rules import cut_to_rules, ruled_trees, with_required
from softsplit.solvers.elimination.screening import feature_noise_threshold, screened_race
from softsplit.solvers.elimination.second_order import newton_affordable
from softsplit.solvers.elimination.splicing import Splicing, cut
from softsplit.solvers.elimination.support_tree import FEATURE_SIZE, SupportTree
from softsplit.solvers.ruled import solve_masked
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import mixed_values

LONG = 1e6
"""Rows times parameters of a tree from which the final descent of each start takes seconds: starts
are then compared first, and only the best are finished."""

MANY_ROWS = 3_000
"""With more rows the final descent ends at a decrease of the tolerance: what is left is far below
the sampling error, and each pass takes long."""

ROUGH = 1e-3
"""From this tolerance on no Newton steps follow a descent, and rates need not hold more exactly
where trees are only compared."""

COMPARED_TREES = 3
"""Points of a path that are compared at the ridge of a problem, if it is not the path's; points
from which proximal steps start too, since they may end sparser than the winner."""

RATED_TREES = 6
"""Points of a path that are moved to where rates hold."""

NOTICED, EXPENSIVE = 1.01, 1.5
"""Where rates raise the objective by more than the first factor, drawn trees are led there too; by
more than the second, the next trees of the path."""


@dataclass(frozen=True)
class EliminationSolver(Solver):
    """Compiled solver of the log-loss: splits and leaves descend together, features are eliminated.

    Parameters
    ----------
    candidates : int
        Further candidates in the race of each start.
    effort : float
        Candidates in the race of a start, as a multiple of the usual number.
    options : EliminationOptions
        Sizes of samples.
    """

    candidates: int = 1
    effort: float = 1.0
    options: EliminationOptions = field(default=DEFAULTS, repr=False)
    name: str = "native"
    releases_gil: bool = True
    zero_threshold: float = 0.0
    eliminates: ClassVar[bool] = True
    keeps_order: ClassVar[bool] = True
    keeps_rules: ClassVar[bool] = True
    meets_rates: ClassVar[bool] = True
    compiled_code: ClassVar[str | None] = "log"

    def supports(self, problem: TrainingProblem) -> str | None:
        """The log-loss of a whole tree, without bounds on its thresholds."""
        if problem.by_likelihood:
            return None
        if problem.log_loss:
            return "trains whole trees without bounds on their thresholds only"
        return "trains loss='log' only"

    def solve(self, problem: TrainingProblem, start: Start, budget: Budget) -> Solution:
        """Return the best tree found from ``start``; class rates are met in a last phase."""
        rules = problem.binding_rules
        if rules is not None and not problem.penalties.counts:  # elimination keeps them
            return solve_masked(self, problem, rules, start, budget)
        run = EliminationRun(problem, start, budget, self.options)
        return run.tree(problem, tight=not budget.rough)

    def sample_sizes(self, problem: TrainingProblem) -> tuple[int, ...]:
        """Sizes up to that on which supports are selected, which is the last.

        All rows at once, roughly, where the final descent of a start takes long.
        """
        options, n_rows = self.options, problem.rows.n_rows
        last, few = min(n_rows, options.support_rows), options.rows_to_compare(problem.n_groups)
        # a sample that is a larger part of the last one saves too little time
        sizes = [size for size in (few, options.sample_growth * few) if size <= 0.6 * last]
        n_parameters = problem.topology.n_branches * (problem.n_features + problem.n_groups)
        long = problem.penalties.counts and n_rows * n_parameters > LONG
        return (*sizes, last) if sizes or n_rows > last or long else ()

    def start_rule(self, problem: TrainingProblem, number: int) -> str:
        """Mixtures of logistic regressions; in the first start a grown tree takes part."""
        return "mixtures" if number else "growth"

    def follows(self, problem: TrainingProblem) -> bool:
        """Elimination gives the trees of all strengths at once, but not under class rates."""
        masked = problem.binding_rules is not None and not problem.penalties.counts
        return problem.by_likelihood and not masked and not np.any(problem.minimum_rates > 0)

    def path(
        self, problem: TrainingProblem, start: Start, budget: Budget, *, compared: bool = False
    ) -> Path:
        return EliminationRun(problem, start, budget, self.options, compared=compared)

    def with_effort(self, effort: float) -> EliminationSolver:
        """Return the same solver with more or fewer candidates in the race of a start."""
        return replace(self, effort=effort * self.effort)

    def n_candidates(self, problem: TrainingProblem) -> int:
        """Further candidates of each start: the effort goes into them."""
        return min(max(round(self.effort * (1 + self.candidates)), 1), 100) - 1


class FinalTree(NamedTuple):
    """A tree at the end of its descent, with the value there and how the descent ended."""

    tree: SupportTree
    value: float
    status: Status


class RatedTree(NamedTuple):
    """A tree, what it becomes where the rates hold, and the multipliers of all rates there."""

    tree: SupportTree
    solution: Solution
    multipliers: FloatArray


class EliminationRun:
    """All phases of one start: race, elimination path, final descents.

    It is a ``Path`` of trees for all strengths. The path is computed when trees are first asked
    for, and as far as they need it; a tree that has descended before goes on from there.
    """

    def __init__(
        self,
        problem: TrainingProblem,
        start: Start,
        budget: Budget,
        options: EliminationOptions = DEFAULTS,
        *,
        compared: bool = False,
    ) -> None:
        start = start.within(problem)
        self.problem, self.start, self.budget, self.options = problem, start, budget, options
        self.began = time.perf_counter()
        rows = options.rows_to_select(problem.rows.n_rows)
        if compared:
            rows = options.rows_to_compare(problem.n_groups)
        few = drawn_from(problem.rows, rows).with_totals(problem.rows.group_totals)
        self.few = RowDescents(problem, budget, few, options, compared=compared)
        self._all: RowDescents | EngineDescents | None = (
            self.few if few.n_rows >= problem.rows.n_rows else None
        )
        self._starts = [SupportTree.of(t, problem) for t in (start.parameters, *start.candidates)]
        self._winner: SupportTree | None = None
        self._paths: dict[SizeLimits, list[EliminationPath]] = {}
        # Trees of the path are known by their identity: the last point of each, its ends (for each
        # ridge, tightness and choice of rows), and where rates hold.
        self._last: dict[int, SupportTree] = {}
        self._ends: dict[tuple[int, float, bool, bool], FinalTree] = {}
        self._rated: dict[tuple[int, float, bool], RatedTree] = {}
        self._with_prices: EliminationRun | None = None

    def trees(self, problems: Sequence[TrainingProblem], *, tight: bool) -> list[Solution]:
        """Return the best tree for each problem; fewer if the budget ends, but at least one.

        1. The race of the candidates has a winner, from which paths begin.
        2. The best tree of the path descends on all rows.
        3. Where it misses rates, it is moved to where they hold.
        """
        solutions: list[Solution] = []
        with self.budget.interruptible(), suppress(OutOfBudget):
            for problem in problems:
                # 1. and 2.
                self._paths_of(problem)
                end = self._finished(problem, tight)
                parameters = end.tree.parameters(problem)
                # 3.
                if problem.rated and problem.violation(parameters).largest > RATE_SLACK:
                    cost = end.value + problem.penalty(parameters.weights)
                    solution = self._within_rates(problem, end.tree, cost, tight)
                elif tight:
                    solution = self._measured(problem, end.tree, end.status)
                else:
                    solution = Solution.unmeasured(problem, parameters, end.value, end.status)
                solutions.append(solution)
        self.few.release()
        if not solutions:
            so_far = self._so_far(problems[0])
            solutions.append(self._measured(problems[0], so_far, self.budget.verdict))
        return solutions

    @property
    def winner(self) -> TreeParameters | None:
        """Winner of the race, if there was one: a deeper tree may be grown from it."""
        return None if self._winner is None else self._winner.parameters(self.problem)

    def tree(self, problem: TrainingProblem, *, tight: bool) -> Solution:
        """Return the best tree for ``problem``, measured."""
        solution = self.trees([problem], tight=tight)[0]
        if tight:
            return solution
        tree = SupportTree.of(solution.parameters, problem)
        return self._measured(problem, tree, solution.status)

    # --- race -------------------------------------------------------------------------------------

    def _paths_of(self, problem: TrainingProblem) -> list[EliminationPath]:
        """Return the paths within the limits of ``problem``, from the winner of the race."""
        if self._winner is None:
            self._winner = self._race(problem.limits)
        if problem.limits not in self._paths:
            self._paths[problem.limits] = self._paths_from(self._winner, problem.limits)
        return self._paths[problem.limits]

    def _race(self, limits: SizeLimits) -> SupportTree:
        """Return the winner of the race; a tree that was given keeps its zeros."""
        rule, shallower = self.start.rule, self.start.shallower
        if rule == "given" and len(self._starts) == 1:
            return self._starts[0]
        below = None if shallower is None else SupportTree.of(shallower, self.problem)
        entrants = Entrants(
            self._starts, rule == "growth", below, rule == "grown", rule == PROMOTED
        )
        screened: SupportTree | None = None
        if self.problem.penalties.counts:
            always = np.zeros(self.problem.n_features, dtype=bool)
            if rule in ("given", PROMOTED):
                always = np.any([tree.support.any(axis=0) for tree in self._starts], axis=0)
            if self.problem.rules is not None:
                always = always | np.isin(self.problem.rules.of, self.problem.rules.required)
            screened = screened_race(self.few, entrants, always)
        if screened is not None and self.problem.n_features > 1000:  # all at once take too long
            return screened
        unscreened = race(self.few, entrants)
        return unscreened if screened is None else self._better(screened, unscreened, limits)

    def _paths_from(self, winner: SupportTree, limits: SizeLimits) -> list[EliminationPath]:
        """Return the paths that begin at ``winner``, all of them within ``limits`` and the rules;
        there are several if rules leave a choice."""
        trees = ruled_trees(self.few, winner) if self.problem.penalties.counts else [winner]
        if limits:
            trees = [Splicing(self.few, limits).tree(tree) for tree in trees]
        return [EliminationPath(self.few, tree, group_shares(self.problem)) for tree in trees]

    def _better(
        self, screened: SupportTree, unscreened: SupportTree, limits: SizeLimits
    ) -> SupportTree:
        """Return the better of the two winners, judged at the noise threshold.

        Prefer ``screened`` unless the path of the other is better by more than that threshold.
        """
        threshold = feature_noise_threshold(self.few.frame)
        try:
            both = [self._paths_from(tree, limits) for tree in (screened, unscreened)]
            least = [
                min(p.objective(threshold / FEATURE_SIZE, threshold) for p in _points(paths))
                for paths in both
            ]
        except OutOfBudget:  # a winner is not lost
            return screened
        chosen = 1 if least[1] < least[0] - threshold else 0
        self._paths[limits] = both[chosen]
        return (screened, unscreened)[chosen]

    # --- choice of a point of the path ------------------------------------------------------------

    def _picked(self, problem: TrainingProblem, tight: bool) -> SupportTree:
        """Return the tree of the path whose objective is least for ``problem``.

        Values of the path are those at its own ridge: at another ridge a ``tight`` choice refits
        the best few and compares them.
        """
        local, global_ = problem.penalties.local.strength, problem.penalties.global_.strength
        if not tight or isclose(problem.ridge, RIDGE * self.few.unit):
            return self.ranked(problem)[0].tree
        compared = []
        for point in self.ranked(problem)[:COMPARED_TREES]:
            if point.tree.n_coefficients:
                end = self._descended(problem, point.tree, self.few, tight=False)
                point = replace(point, value=end.value)
            compared.append(point)
        return min(compared, key=lambda point: point.objective(local, global_)).tree

    def ranked(self, problem: TrainingProblem) -> list[EliminationPoint]:
        """Return the points of the path that may be best for ``problem``, in that order.

        A later point has a larger value and at least one coefficient of one feature, or is the
        constant tree, which is known from the beginning: this bounds its objective from below.
        """
        global_ = problem.penalties.global_
        least = 1.0 if global_.prices is None else min(float(global_.prices.min()), 1.0)
        one = problem.penalties.local.strength + least * global_.strength
        added, criterion = min(0.0, self._ridge_cost(problem)), self._criterion(problem)
        points = [
            point
            for path in self._paths_of(problem)
            for point in path.up_to(criterion, lambda p: p.value + one + added * p.squares)
        ]
        return sorted(points, key=criterion)

    def _criterion(self, problem: TrainingProblem) -> Criterion:
        """About the objective of a point at the strengths and the ridge of ``problem``."""
        local, global_ = problem.penalties.local.strength, problem.penalties.global_.strength
        added = self._ridge_cost(problem)
        return lambda point: point.objective(local, global_) + added * point.squares

    def _ridge_cost(self, problem: TrainingProblem) -> float:
        """Cost of each squared weight at the ridge of ``problem``: a refit saves half of it."""
        return 0.25 * (problem.ridge - RIDGE * self.few.unit)

    def _sparse_starts(self, problem: TrainingProblem) -> list[SupportTree]:
        """Return the best tree of the path for each number of branches in use, on all columns."""
        best: dict[int, tuple[float, TreeParameters]] = {}
        for point in _points(self._paths_of(problem)):
            tree = point.tree.parameters(problem)
            n_used, cost = int(np.sum(np.any(tree.weights != 0, axis=0))), problem.objective(tree)
            if n_used not in best or cost < best[n_used][0]:
                best[n_used] = cost, tree
        ranked = sorted(best.values(), key=lambda pair: pair[0])
        return [SupportTree.of(tree, problem) for _, tree in ranked[:COMPARED_TREES]]

    # --- final descents ---------------------------------------------------------------------------

    def _finished(self, problem: TrainingProblem, tight: bool) -> FinalTree:
        """Return the tree for ``problem`` after its descent on all rows."""
        assert self._winner is not None
        rows, winner = self._all_rows(), self._winner
        if not problem.penalties.counts and any(problem.penalties.strengths):
            starts = [winner, *(self._sparse_starts(problem) if tight else ())]
            ends = [self._penalised(problem, rows, tree, tight) for tree in starts]
            return min(ends, key=lambda end: problem.objective(end.tree.parameters(problem)))
        picked = self._picked(problem, tight) if problem.penalties.counts else winner
        if not picked.n_coefficients:
            value = problem.cost(picked.parameters(problem))
            return FinalTree(picked, value, Status.ACCEPTABLE)
        return self._descended(problem, picked, rows, tight)

    def _descended(
        self,
        problem: TrainingProblem,
        picked: SupportTree,
        rows: RowDescents | EngineDescents,
        tight: bool,
    ) -> FinalTree:
        """Return ``picked`` fitted on its support; each tree is fitted once for each ridge.

        1. A descent, from where one with another ridge has ended.
        2. Newton steps for the last digits, where they are cheap.
        """
        key = id(picked), problem.ridge, tight, rows is self.few
        if key in self._ends:
            return self._ends[key]
        begin = self._last.get(id(picked), picked)
        tol, shrinkage = self.budget.tol, Shrinkage(problem.ridge)
        small = 0.5 * tol * problem.cost_unit / max(problem.steepness, 1.0)
        steps, decrease = (1000, max(1e-10, 1e-4 * tol)) if tight else (12, 1e-5)
        n_free, n_branches = int(begin.free.sum()), len(begin.splits)
        fine = tight and tol < ROUGH and isinstance(rows, RowDescents)
        # 1. descent
        if isinstance(rows, EngineDescents):
            tree, value, over = rows.descend_to_tolerance(
                begin, shrinkage, steps, decrease, small if tight else 0.0
            )
        elif tight and rows.n_rows > MANY_ROWS:
            decrease = max(decrease, tol) * rows.decrease_factor(begin, shrinkage)
            tree, value, over = rows.descend_to_tolerance(begin, shrinkage, steps, decrease, small)
            fine = fine and rows.n_rows * n_branches * n_free <= 1e7
        else:
            if fine and not newton_affordable(n_free, rows.n_rows, n_branches):
                decrease = 1e-13  # no Newton steps will follow
            tree, value, over = rows.descend(begin, shrinkage, steps, decrease, tol=small)
        # 2. Newton steps
        if fine and over and isinstance(rows, RowDescents):
            tree = sharpened(tree, rows, shrinkage, small)
        self._last[id(picked)] = tree
        self._ends[key] = FinalTree(tree, value, self._status(over))
        return self._ends[key]

    def _penalised(
        self,
        problem: TrainingProblem,
        rows: RowDescents | EngineDescents,
        tree: SupportTree,
        tight: bool,
    ) -> FinalTree:
        """Return ``tree`` after proximal steps; with an engine, first after those on few rows."""
        if isinstance(rows, EngineDescents):
            tree = self._penalised(problem, self.few, tree, tight).tree
        steps = Penalised(rows, tree, problem.penalties, problem.ridge)
        tol = self.budget.tol * problem.cost_unit
        tree, over = steps.descend(self.budget.max_iter, tol, tight=tight)
        return FinalTree(tree, problem.cost(tree.parameters(problem)), self._status(over))

    def _all_rows(self) -> RowDescents | EngineDescents:
        """Descents over arrays of all rows where these are few, else over the engine."""
        if self._all is None:
            problem, budget, rows = self.problem, self.budget, self.problem.rows
            whole = self.options.rows_to_select(rows.n_rows) == rows.n_rows
            if whole and (samples := rows.sample()).n_rows >= rows.n_rows:
                self._all = RowDescents(problem, budget, samples, self.options)
            else:
                self._all = EngineDescents(problem, budget, self.few)
        return self._all

    # --- rates ------------------------------------------------------------------------------------

    def _within_rates(
        self, problem: TrainingProblem, free: SupportTree, objective: float, tight: bool
    ) -> Solution:
        """Return the tree ``free``, without rates the best of the path, moved to where the rates
        of ``problem`` hold, or a better one that was moved there; ``objective`` is its own."""
        solutions: list[Solution] = []

        def within(factor: float) -> bool:
            """Whether a usable tree costs at most ``factor`` times the free one."""
            usable = [solution.objective for solution in solutions if solution.status.usable]
            return bool(usable) and min(usable) <= objective + (factor - 1.0) * abs(objective)

        try:
            candidates = self._rated_candidates(problem, free, tight, within)
            for tree in self.budget.while_left(candidates, at_least=1):
                solutions.append(self._with_rates(problem, tree, tight))
        except OutOfBudget:
            if not solutions:
                raise
        return min(solutions, key=lambda solution: (not solution.status.usable, solution.objective))

    def _rated_candidates(
        self,
        problem: TrainingProblem,
        free: SupportTree,
        tight: bool,
        within: Callable[[float], bool],
    ) -> Iterator[SupportTree]:
        """Yield trees to move to where the rates hold, while it pays.

        1. The free tree.
        2. Trees as they were drawn, on the same support: the free optimum may lie far from the best
           tree that meets the rates.
        3. Under the count rates may be out of reach for the support: the best tree of an
           elimination in which rates have their prices.
        4. The next best trees of the path. The constant tree meets any rates, at a cost that the
           path does not know, and comes last.

        A tree that was given keeps its features.
        """
        counts, limits = problem.penalties.counts, problem.rate_limits
        given = self.start.rule == "given"
        # 1. the free tree
        yield free
        usable = within(np.inf)
        # 2. drawn trees
        if limits is not None and not given and not within(NOTICED):
            yield from self._drawn_on(free) if counts else self._starts[:2]
        # 3. with prices
        if limits is not None and not given and counts and usable:
            yield self._eliminate_with_prices(problem, free, tight)
        # 4. the path
        if counts and not within(EXPENSIVE):
            ranked = sorted(_points(self._paths_of(problem)), key=self._criterion(problem))
            trees = sorted((point.tree for point in ranked), key=lambda t: t.n_coefficients == 0)
            some = [tree for tree in trees if tree.n_coefficients][:RATED_TREES]
            for tree in [*some, *trees[-1:]]:
                if not within(EXPENSIVE):
                    yield tree

    def _drawn_on(self, free: SupportTree) -> list[SupportTree]:
        """Return the drawn tree on the support of ``free``."""
        drawn = self._starts[0]
        splits = drawn.splits[:, np.append(free.columns, drawn.splits.shape[1] - 1)]
        splits[:, :-1] *= free.support
        splits[free.saturated] = free.splits[free.saturated]
        return [replace(free, splits=splits, log_odds=drawn.log_odds)]

    def _eliminate_with_prices(
        self, problem: TrainingProblem, free: SupportTree, tight: bool
    ) -> SupportTree:
        """Return the best tree of an elimination in which rates have prices.

        With the multipliers m and the probabilities V0 of the tree ``free`` where rates hold, the
        Lagrangian contains - sum_i w_i sum_k R_ik V_ik, R_ik >= 0 the price of class k for row i
        less that of the cheapest class. Since - V <= - V0 (1 + log(V / V0)), it is bounded by a
        log-loss in which row i also counts as class k, with the weight w_i R_ik V0_ik: features are
        selected for what they do to loss and rates together.
        """
        if self._with_prices is None:
            rated = self._rated[id(free), problem.ridge, tight]
            here = problem
            if getattr(problem.rows, "samples", None) is None:
                here = problem.on_sample(self.options.support_rows)
            rows = _priced_rows(here, rated.solution.parameters, rated.multipliers)
            self._with_prices = EliminationRun(
                replace(problem.unrated, rows=rows), self.start, self.budget, self.options,
                compared=self.few.compared,
            )  # fmt: skip
        run = self._with_prices
        with suppress(OutOfBudget):
            return run.ranked(replace(problem.unrated, rows=run.problem.rows))[0].tree
        return free

    def _with_rates(self, problem: TrainingProblem, tree: SupportTree, tight: bool) -> Solution:
        """Return ``tree`` where the rates hold, on its support under the count.

        A tree is moved there once for each ridge and tightness; the penalty is that of ``problem``.
        """
        counted = problem.penalties.counts
        key = id(tree), problem.ridge, tight
        if counted and key in self._rated:
            known = self._rated[key].solution
            return replace(known, objective=known.cost + problem.penalty(known.parameters.weights))
        penalties = PenaltyPair.of(linear()) if counted else problem.penalties
        if not counted and not any(problem.penalties.strengths):  # all coefficients move
            tree = replace(
                tree,
                support=np.ones_like(tree.support),
                saturated=np.zeros_like(tree.saturated),
            )
        tol = self.budget.tol if tight else max(self.budget.tol, ROUGH)
        end, over, multipliers = with_rates(
            self._all_rows(), tree, penalties, problem.ridge, tol * problem.cost_unit
        )
        solution = self._measured(problem, end, self._status(over))
        if counted:
            self._rated[key] = RatedTree(tree, solution, multipliers)
        return solution

    # --- results ----------------------------------------------------------------------------------

    def _so_far(self, problem: TrainingProblem) -> SupportTree:
        """Return what there is when the budget ends, or the constant tree if that is better."""
        points = [p for path in self._paths.get(problem.limits, []) for p in path.points]
        tree, rules = self._winner or self._starts[0], problem.binding_rules
        if points:
            tree = min(points, key=self._criterion(problem)).tree
        else:
            tree = cut_to_rules(with_required(self.few, tree, rules), rules)
            tree = cut(tree, problem.limits, rules) if problem.limits else tree
        if rules is not None and rules.required:
            return tree
        trees = (tree, tree.constant(group_shares(problem)))
        return min(trees, key=lambda tree: problem.objective(tree.parameters(problem)))

    def _status(self, over: bool) -> Status:
        if not over and self.budget.exhausted:
            return self.budget.verdict
        return Status.ACCEPTABLE if over or not self.budget.max_iter else Status.MAX_ITER

    def _measured(self, problem: TrainingProblem, tree: SupportTree, status: Status) -> Solution:
        return Solution.measure(
            problem,
            tree.parameters(problem),
            status,
            tol=self.budget.tol,
            n_iter=self.few.steps + (0 if self._all in (None, self.few) else self._all.steps),
            seconds=time.perf_counter() - self.began,
            solver="native",
            message="elimination" if problem.penalties.counts else "proximal steps",
        )


def _points(paths: Sequence[EliminationPath]) -> list[EliminationPoint]:
    """All points of some paths."""
    return [point for path in paths for point in path.all()]


def _priced_rows(
    problem: TrainingProblem, tree: TreeParameters, multipliers: FloatArray
) -> CompiledRows:
    """Return the rows of a problem with rates, which also count as the classes that these price.

    See ``EliminationRun._eliminate_with_prices``. ``multipliers`` begin with those of the lines of
    ``rate_limits``. Both engines must have their rows in this process. A row does not count as a
    class that would get less than 1e-6 of its weight.
    """
    limits, samples = problem.rate_limits, problem.samples
    assert limits is not None
    cells = samples_of(limits.rows)
    prices = limits.prices(multipliers[: len(limits)])
    prices = prices - prices.min(axis=1, keepdims=True)
    probabilities = mixed_values(tree, cells.features, problem.steepness)
    more = cells.weights * prices[cells.labels].T * probabilities
    features, weights, counts = [], [], []
    for k in range(problem.n_groups):
        extra = more[k] > 1e-6 * cells.weights
        some = slice(samples.starts[k], samples.starts[k + 1])
        features += [samples.features[:, some], cells.features[:, extra]]
        weights += [samples.weights[some], more[k, extra]]
        counts.append(samples.starts[k + 1] - samples.starts[k] + np.count_nonzero(extra))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    weight = np.concatenate(weights)
    priced = Samples(
        np.ascontiguousarray(np.concatenate(features, axis=1), dtype=float), starts, weight,
        np.add.reduceat(weight, starts[:-1]),
    )  # fmt: skip
    # ridge and tolerances stay those of the rows
    return CompiledRows(replace(priced, per_row=problem.rows.mean_weight / float(weight.mean())))
