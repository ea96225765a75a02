"""``EliminationSolver``, the native solver of the log-loss, and the phases of one of its runs.

From a start, or the winner of a race between several candidates (race.py, screening.py), backward
elimination makes a path of trees (path.py). The tree of the path whose objective is least at the
strengths of a problem descends on all rows until its derivatives vanish. Under other penalties than
the count proximal gradient steps take the place of elimination (penalised.py), and minimum class
rates are met in a last phase. Supports are selected on at most ``SampleSizes.support`` rows; where
there are more, or where rows are not arrays of this process, the last descents ask the engine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
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
from softsplit.solvers.base import Budget, OutOfBudget, Path, Solution, Solver, Start, Status
from softsplit.solvers.elimination.descents import EngineDescents, RowDescents, class_shares
from softsplit.solvers.elimination.objective import Shrinkage
from softsplit.solvers.elimination.options import DEFAULTS, EliminationOptions
from softsplit.solvers.elimination.ordered import sharpened_in_order
from softsplit.solvers.elimination.path import (
    Criterion,
    EliminationPath,
    EliminationPoint,
    JoinedPaths,
)
from softsplit.solvers.elimination.penalised import Penalised
from softsplit.solvers.elimination.race import race
from softsplit.solvers.elimination.rated_descents import with_rates
from softsplit.solvers.elimination.rules import cut_to_rules, ruled_trees, with_required
from softsplit.solvers.elimination.screening import feature_noise_threshold, screened_race
from softsplit.solvers.elimination.second_order import sharpened
from softsplit.solvers.elimination.splicing import Splicing, cut
from softsplit.solvers.elimination.support_tree import FEATURE_SIZE, SupportTree
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import class_probabilities


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
        Tuning numbers of all algorithms.
    """

    candidates: int = 1
    effort: float = 1.0
    options: EliminationOptions = field(default=DEFAULTS, repr=False)
    name: str = "native"
    releases_gil: bool = True
    zero_threshold: float = 0.0
    eliminates: ClassVar[bool] = True
    keeps_order: ClassVar[bool] = True
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
        run = EliminationRun(problem, start, budget, self.options)
        return run.tree(problem, tight=not budget.rough)

    def keeps_rules(self, problem: TrainingProblem) -> bool:
        """Elimination keeps them."""
        return problem.by_likelihood and problem.penalties.counts

    def sample_sizes(self, problem: TrainingProblem) -> tuple[int, ...]:
        """Sizes up to that on which supports are selected, which is the last.

        All rows at once, roughly, where the final descent of a start takes long.
        """
        rows, n_rows = self.options.rows, problem.rows.n_rows
        last, few = min(n_rows, rows.support), rows.to_compare(problem.n_classes)
        sizes = [size for size in (few, rows.growth * few) if size <= rows.largest_part * last]
        n_parameters = problem.topology.n_branches * (problem.n_features + problem.n_classes)
        long = problem.penalties.counts and n_rows * n_parameters > rows.long
        return (*sizes, last) if sizes or n_rows > last or long else ()

    def start_rule(self, problem: TrainingProblem, number: int) -> str:
        """Mixtures of logistic regressions; in the first start a grown tree takes part."""
        return "mixtures" if number else "growth"

    def follows(self, problem: TrainingProblem) -> bool:
        """Elimination gives the trees of all strengths at once, but not under class rates."""
        return problem.by_likelihood and not np.any(problem.minimum_rates > 0)

    def path(
        self, problem: TrainingProblem, start: Start, budget: Budget, *, compared: bool = False
    ) -> Path:
        return EliminationRun(problem, start, budget, self.options, compared=compared)

    def with_effort(self, effort: float) -> EliminationSolver:
        """Return the same solver with more or fewer candidates in the race of a start."""
        return replace(self, effort=effort * self.effort)

    def n_candidates(self, problem: TrainingProblem) -> int:
        """Further candidates of each start: the effort goes into them."""
        count = max(round(self.effort * (1 + self.candidates)), 1)
        return min(count, self.options.race.most_candidates) - 1


LEAST_PART = 1e-6
"""A row does not count as a class that would get less than this part of its weight."""


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


def _priced_rows(
    problem: TrainingProblem, tree: TreeParameters, multipliers: FloatArray
) -> CompiledRows:
    """Return the rows of a problem with rates, which also count as the classes that these price.

    See ``EliminationRun._priced``. ``multipliers`` end with those of the lines of ``rate_limits``.
    Both engines must have their rows in this process.
    """
    limits, own = problem.rate_limits, problem.samples
    assert limits is not None
    cells = samples_of(limits.rows)
    prices = limits.prices(multipliers[len(multipliers) - len(limits) :])
    prices = prices - prices.min(axis=1, keepdims=True)
    said = class_probabilities(tree, cells.features, problem.steepness)
    more = cells.weights * prices[cells.labels].T * said
    features, weights, counts = [], [], []
    for k in range(problem.n_classes):
        extra = more[k] > LEAST_PART * cells.weights
        some = slice(own.starts[k], own.starts[k + 1])
        features += [own.features[:, some], cells.features[:, extra]]
        weights += [own.weights[some], more[k, extra]]
        counts.append(own.starts[k + 1] - own.starts[k] + np.count_nonzero(extra))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    weight = np.concatenate(weights)
    made = Samples(
        np.ascontiguousarray(np.concatenate(features, axis=1), dtype=float), starts, weight,
        np.add.reduceat(weight, starts[:-1]),
    )  # fmt: skip
    # ridge and tolerances stay those of the rows
    return CompiledRows(replace(made, per_row=problem.rows.mean_weight / float(weight.mean())))


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
        rows = options.rows.to_support(problem.rows.n_rows)
        if compared:
            rows = options.rows.to_compare(problem.n_classes)
        few = drawn_from(problem.rows, rows).with_totals(problem.rows.class_totals)
        self.few = RowDescents(problem, budget, few, options, compared=compared)
        self._all: RowDescents | EngineDescents | None = (
            self.few if few.n_rows >= problem.rows.n_rows else None
        )
        self._starts = [SupportTree.of(t, problem) for t in (start.parameters, *start.candidates)]
        self._winner: SupportTree | None = None
        self._paths: dict[SizeLimits, EliminationPath | JoinedPaths] = {}
        # Trees of the path are known by their identity: the last point of each, its ends (for each
        # ridge, tightness and choice of rows), and its parameters in the units of the problem.
        self._last: dict[int, SupportTree] = {}
        self._ends: dict[tuple[int, float, bool, bool], FinalTree] = {}
        self._parameters: dict[int, tuple[SupportTree, TreeParameters]] = {}
        self._rated: dict[tuple[int, float, bool], RatedTree] = {}
        self._again: list[EliminationRun] = []

    def trees(self, problems: Sequence[TrainingProblem], *, tight: bool) -> list[Solution]:
        """Return the best tree for each problem; fewer if the budget ends, but at least one."""
        found: list[Solution] = []
        with self.budget.interruptible(), suppress(OutOfBudget):
            if self._winner is None:
                self._winner = self._race(problems[0].limits)
            for problem in problems:
                if problem.limits not in self._paths:
                    self._paths[problem.limits] = self._path_from(self._winner, problem.limits)
                end = self._finished(problem, self._winner, tight)
                free = self._in_units(end.tree)
                if problem.rated and problem.violation(free).largest > RATE_SLACK:
                    cost = end.value + problem.penalty(free.weights)
                    found.append(self._within_rates(problem, end.tree, cost, tight))
                elif tight:
                    found.append(self._measured(problem, end.tree, end.status))
                else:
                    found.append(Solution.unmeasured(problem, free, end.value, end.status))
        self.few.release()
        if not found:
            so_far = self._so_far(problems[0])
            found.append(self._measured(problems[0], so_far, self.budget.verdict))
        return found

    @property
    def winner(self) -> TreeParameters | None:
        """Winner of the race, if there was one: a deeper tree may be grown from it."""
        return None if self._winner is None else self._in_units(self._winner)

    def tree(self, problem: TrainingProblem, *, tight: bool) -> Solution:
        """Return the best tree for ``problem``, measured."""
        found = self.trees([problem], tight=tight)[0]
        if tight:
            return found
        return self._measured(problem, SupportTree.of(found.parameters, problem), found.status)

    def _within_rates(
        self, problem: TrainingProblem, found: SupportTree, objective: float, tight: bool
    ) -> Solution:
        """Return the tree ``found``, without rates the best of the path, moved to where the rates
        of ``problem`` hold; ``objective`` is its own.

        Where they are expensive, the trees that were drawn are moved there too, on the same
        support: the free optimum may lie far from the best tree that meets the rates. Under the
        count they may be out of reach for the support. Then trees from an elimination in which
        rates have their prices are tried (``_priced``), and the next best trees of the path.
        """
        options, counts = self.options.rates, problem.penalties.counts
        tried = [self._with_rates(problem, found, tight)]

        def fine() -> bool:
            best = min(one.objective for one in tried if one.status.usable)
            return best <= options.expensive * abs(objective)

        def usable() -> bool:
            return any(one.status.usable for one in tried)

        noticed = not usable() or tried[0].objective > objective + options.noticed * abs(objective)
        if problem.rate_limits is not None and noticed and self.start.rule != "given":
            for tree in self._drawn_on(found, counts):
                if not self.budget.exhausted:
                    tried.append(self._with_rates(problem, tree, tight))
        if counts and problem.rate_limits is not None:
            tree, best = found, tried[0]
            # A tree that was given keeps its features.
            for number in range(0 if self.start.rule == "given" else options.repriced):
                if not best.status.usable or self.budget.exhausted:
                    break
                with suppress(OutOfBudget):
                    tree = self._priced(problem, tree, tight, number)
                tried.append(self._with_rates(problem, tree, tight))
                best = tried[-1]
        if counts and not (usable() and fine()):
            trees: list[SupportTree] = []
            with suppress(OutOfBudget):
                ranked = sorted(self._points(problem), key=self._criterion(problem))
                trees = [point.tree for point in ranked]
            # The constant tree meets any rates, at a cost that the path does not know: tried last.
            trees.sort(key=lambda tree: tree.n_coefficients == 0)
            some = [tree for tree in trees if tree.n_coefficients][: options.trees]
            for tree in [*some, *trees[-1:]]:
                if self.budget.exhausted or (usable() and fine()):
                    break
                tried.append(self._with_rates(problem, tree, tight))
        return min(tried, key=lambda one: (not one.status.usable, one.objective))

    def _drawn_on(self, found: SupportTree, counts: bool) -> list[SupportTree]:
        """Return two drawn trees; under the count the first one on the support of ``found``."""
        if not counts:
            return self._starts[:2]
        drawn = self._starts[0]
        splits = drawn.splits[:, np.append(found.columns, drawn.splits.shape[1] - 1)]
        splits[:, :-1] *= found.support
        splits[found.saturated] = found.splits[found.saturated]
        return [replace(found, splits=splits, log_odds=drawn.log_odds)]

    def _priced(
        self, problem: TrainingProblem, found: SupportTree, tight: bool, number: int
    ) -> SupportTree:
        """Return the best tree of an elimination in which rates have prices, the ``number``-th.

        With the multipliers m and the probabilities V0 of the tree ``found`` where rates hold, the
        Lagrangian contains - sum_i w_i sum_k R_ik V_ik, R_ik >= 0 the price of class k for row i
        less that of the cheapest class. Since - V <= - V0 (1 + log(V / V0)), it is bounded by a
        log-loss in which row i also counts as class k, with the weight w_i R_ik V0_ik: features are
        selected for what they do to loss and rates together.
        """
        if number == len(self._again):
            known = self._rated[id(found), problem.ridge, tight]
            here = problem
            if getattr(problem.rows, "samples", None) is None:
                here = problem.on_sample(self.options.rows.support)
            rows = _priced_rows(here, known.solution.parameters, known.multipliers)
            free = replace(problem.unrated, rows=rows)
            again = EliminationRun(
                free, self.start, self.budget, self.options, compared=self.few.compared
            )
            self._again.append(again)
        return self._again[number].best(problem.unrated)

    def best(self, problem: TrainingProblem) -> SupportTree:
        """Return the best tree within the limits of ``problem``, on the rows of this run."""
        if self._winner is None:
            self._winner = self._race(problem.limits)
        if problem.limits not in self._paths:
            self._paths[problem.limits] = self._path_from(self._winner, problem.limits)
        return self._ranked(replace(problem, rows=self.problem.rows))[0].tree

    # --- race -------------------------------------------------------------------------------------

    def _race(self, limits: SizeLimits) -> SupportTree:
        """Return the winner of the race; a tree that was given keeps its zeros."""
        if self.start.rule == "given" and len(self._starts) == 1:
            return self._starts[0]
        grow, shallower = self.start.rule == "growth", self.start.shallower
        grown_only = self.start.rule == "grown"
        known = None if shallower is None else SupportTree.of(shallower, self.problem)
        screened: SupportTree | None = None
        if self.problem.penalties.counts:
            always = np.zeros(self.problem.n_features, dtype=bool)
            if self.start.rule == "given":
                always = np.any([tree.support.any(axis=0) for tree in self._starts], axis=0)
            if self.problem.rules is not None:
                always = always | np.isin(self.problem.rules.of, self.problem.rules.required)
            screened = screened_race(
                self.few,
                self._starts,
                grow=grow,
                shallower=known,
                grown_only=grown_only,
                always=always,
            )
        if screened is not None and self.problem.n_features > self.options.screening.most_columns:
            return screened
        unscreened = race(self.few, self._starts, grow=grow, shallower=known, grown_only=grown_only)
        return unscreened if screened is None else self._better(screened, unscreened, limits)

    def _path_from(self, winner: SupportTree, limits: SizeLimits) -> EliminationPath | JoinedPaths:
        """Return the path that begins at ``winner``, all of it within ``limits`` and the rules."""
        trees = [winner]
        if self.problem.penalties.counts:
            trees = ruled_trees(self.few, winner)
        if limits:
            trees = [Splicing(self.few, limits).tree(tree) for tree in trees]
        shares = class_shares(self.problem)
        paths = [EliminationPath(self.few, tree, shares) for tree in trees]
        return paths[0] if len(paths) == 1 else JoinedPaths(paths)

    def _better(
        self, screened: SupportTree, unscreened: SupportTree, limits: SizeLimits
    ) -> SupportTree:
        """Return the better of the two winners, judged at the noise threshold.

        Prefer ``screened`` unless the path of the other is better by more than that threshold.
        """
        threshold = feature_noise_threshold(self.few.frame)
        try:
            paths = [self._path_from(tree, limits) for tree in (screened, unscreened)]
            least = [
                min(point.objective(threshold / FEATURE_SIZE, threshold) for point in path.all())
                for path in paths
            ]
        except OutOfBudget:  # a winner is not lost
            return screened
        chosen = 1 if least[1] < least[0] - threshold else 0
        self._paths[limits] = paths[chosen]
        return (screened, unscreened)[chosen]

    # --- choice of a point of the path ------------------------------------------------------------

    def _picked(self, problem: TrainingProblem, tight: bool) -> SupportTree:
        """Return the tree of the path whose objective is least for ``problem``.

        Values of the path are those at its own ridge: at another ridge a ``tight`` choice refits
        the best few and compares them.
        """
        local, global_ = problem.penalties.local.strength, problem.penalties.global_.strength
        if not tight or isclose(problem.ridge, self._path_ridge):
            return self._ranked(problem)[0].tree
        compared = []
        for point in self._ranked(problem)[: self.options.final.compared_trees]:
            if point.tree.n_coefficients:
                end = self._descended(problem, point.tree, self.few, tight=False)
                point = replace(point, value=end.value)
            compared.append(point)
        return min(compared, key=lambda point: point.objective(local, global_)).tree

    def _ranked(self, problem: TrainingProblem) -> list[EliminationPoint]:
        """Return the points of the path that may be best for ``problem``, in that order.

        A later point has a larger value and at least one coefficient of one feature, or is the
        constant tree, which is known from the beginning: this bounds its objective from below.
        """
        global_ = problem.penalties.global_
        least = 1.0 if global_.prices is None else min(float(global_.prices.min()), 1.0)
        one = problem.penalties.local.strength + least * global_.strength
        added = min(0.0, self._ridge_cost(problem))
        return self._path_of(problem).up_to(
            self._criterion(problem), lambda point: point.value + one + added * point.squares
        )

    def _criterion(self, problem: TrainingProblem) -> Criterion:
        """About the objective of a point at the strengths and the ridge of ``problem``."""
        local, global_ = problem.penalties.local.strength, problem.penalties.global_.strength
        added = self._ridge_cost(problem)
        return lambda point: point.objective(local, global_) + added * point.squares

    def _ridge_cost(self, problem: TrainingProblem) -> float:
        """Cost of each squared weight at the ridge of ``problem``: a refit saves half of it."""
        return 0.25 * (problem.ridge - self._path_ridge)

    @property
    def _path_ridge(self) -> float:
        return self.options.path.ridge * self.few.unit

    def _path_of(self, problem: TrainingProblem) -> EliminationPath | JoinedPaths:
        if problem.limits not in self._paths:
            raise OutOfBudget
        return self._paths[problem.limits]

    def _points(self, problem: TrainingProblem) -> list[EliminationPoint]:
        """Return all points of the path."""
        return self._path_of(problem).all()

    def _sparse_starts(self, problem: TrainingProblem) -> list[SupportTree]:
        """Return the best tree of the path for each number of branches in use, on all columns."""
        best: dict[int, tuple[float, TreeParameters]] = {}
        for point in self._points(problem):
            tree = point.tree.parameters(problem)
            n_used, cost = int(np.sum(np.any(tree.weights != 0, axis=0))), problem.objective(tree)
            if n_used not in best or cost < best[n_used][0]:
                best[n_used] = cost, tree
        ranked = sorted(best.values(), key=lambda pair: pair[0])
        some = ranked[: self.options.final.sparse_starts]
        return [SupportTree.of(tree, problem) for _, tree in some]

    # --- final descents ---------------------------------------------------------------------------

    def _finished(self, problem: TrainingProblem, winner: SupportTree, tight: bool) -> FinalTree:
        """Return the tree for ``problem`` after its descent on all rows."""
        rows = self._all_rows()
        local, global_ = problem.penalties.local, problem.penalties.global_
        if not problem.penalties.counts and local.strength + global_.strength > 0:
            starts = [winner, *(self._sparse_starts(problem) if tight else ())]
            ends = [self._penalised(problem, rows, tree, tight) for tree in starts]
            return min(ends, key=lambda end: problem.objective(end.tree.parameters(problem)))
        picked = self._picked(problem, tight) if problem.penalties.counts else winner
        if not picked.n_coefficients:
            return FinalTree(picked, problem.cost(self._in_units(picked)), Status.ACCEPTABLE)
        return self._descended(problem, picked, rows, tight)

    def _descended(
        self,
        problem: TrainingProblem,
        picked: SupportTree,
        rows: RowDescents | EngineDescents,
        tight: bool,
    ) -> FinalTree:
        """Return ``picked`` fitted on its support; each tree is fitted once for each ridge."""
        options, newton = self.options.final, self.options.newton
        tol = self.budget.tol * problem.cost_unit
        steps, decrease = options.compared_steps, options.compared_decrease
        if tight:
            steps = options.steps
            decrease = max(options.decrease, options.decrease_per_tol * self.budget.tol)
        shrinkage, small = Shrinkage(problem.ridge), 0.5 * tol / max(problem.steepness, 1.0)
        key = id(picked), problem.ridge, tight, rows is self.few
        if key in self._ends:
            return self._ends[key]
        begin = self._last.get(id(picked), picked)  # where a descent with another ridge has ended
        if isinstance(rows, EngineDescents):
            near = small if tight else 0.0
            tree, value, over = rows.descend(begin, shrinkage, steps, decrease, near)
        else:
            fine = tight and self.budget.tol < options.rough_tol
            n_free = int(begin.free.sum())
            if tight and rows.n_rows > options.many:
                decrease = max(decrease, options.many_per_tol * self.budget.tol)
                decrease *= rows.decrease_factor(begin, shrinkage)
                tree, value, over = rows.settle(begin, shrinkage, steps, decrease, small)
                fine = fine and rows.n_rows * len(begin.splits) * n_free <= options.many_work
            else:
                if fine and not newton.affordable(n_free, rows.n_rows, len(begin.splits)):
                    decrease = options.fine_decrease
                tree, value, over = rows.descend(begin, shrinkage, steps, decrease, tol=small)
            if fine and over and problem.order is not None:
                function = rows.function(tree, shrinkage, tree.free)
                tree = sharpened_in_order(tree, problem.order, function, small, rows.n_rows, newton)
            elif fine and over:
                tree = sharpened(tree, rows.on(tree), shrinkage, small, problem.bounds, newton)
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
        limited = problem.rate_limits is not None or problem.order is not None
        everything = limited and not any(problem.penalties.strengths)
        if everything and not counted:  # nothing leaves: all coefficients move
            tree = replace(
                tree,
                support=np.ones_like(tree.support),
                saturated=np.zeros_like(tree.saturated),
            )
        tol = self.budget.tol if tight else max(self.budget.tol, self.options.rates.rough_tol)
        end, over, multipliers = with_rates(
            self._all_rows(), tree, penalties, problem.ridge, tol * problem.cost_unit,
            support=counted or everything,
        )  # fmt: skip
        found = self._measured(problem, end, self._status(over))
        if counted:
            self._rated[key] = RatedTree(tree, found, multipliers)
        return found

    def _all_rows(self) -> RowDescents | EngineDescents:
        """Descents over arrays of all rows where these are few, else over the engine."""
        if self._all is None:
            problem, budget, rows = self.problem, self.budget, self.problem.rows
            whole = self.options.rows.to_support(rows.n_rows) == rows.n_rows
            if whole and (all_ := rows.sample()).n_rows >= rows.n_rows:
                self._all = RowDescents(problem, budget, all_, self.options)
            else:
                self._all = EngineDescents(problem, budget, self.few)
        return self._all

    # --- results ----------------------------------------------------------------------------------

    def _so_far(self, problem: TrainingProblem) -> SupportTree:
        """Return what there is when the budget ends, or the constant tree if that is better."""
        path = self._paths.get(problem.limits)
        tree, rules = self._winner or self._starts[0], problem.binding_rules
        if path is not None and path.found:
            tree = min(path.found, key=self._criterion(problem)).tree
        else:
            tree = cut_to_rules(with_required(self.few, tree, rules), rules)
            tree = cut(tree, problem.limits, rules) if problem.limits else tree
        if rules is not None and rules.required:
            return tree
        trees = (tree, tree.constant(class_shares(problem)))
        return min(trees, key=lambda one: problem.objective(one.parameters(problem)))

    def _in_units(self, tree: SupportTree) -> TreeParameters:
        """Return ``tree`` in the units of the problem, computed once."""
        if id(tree) not in self._parameters:
            self._parameters[id(tree)] = tree, tree.parameters(self.problem)
        return self._parameters[id(tree)][1]

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
