"""Our own solver of trees by likelihood.

From a start, or the winner of a race between several, features leave by elimination; of the path of
trees the one is taken whose objective is least at the strengths that are asked for, and descends on
all rows until its derivatives vanish. Under other penalties than the count proximal steps take the
place of elimination. Features are looked for on at most SUPPORT_ROWS rows; where there are more,
or where they are not arrays of this process, the last descents go through the engine of the rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isclose
from typing import ClassVar, NamedTuple

import numpy as np

from softsplit.problem.leaves import RATE_SLACK
from softsplit.problem.penalties import PenaltyPair, linear
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Path, Solution, Solver, Start, Status
from softsplit.solvers.elimination.deletion_costs import FEATURE_SIZE
from softsplit.solvers.elimination.descent import Smoothing
from softsplit.solvers.elimination.engine_descent import EngineDescents
from softsplit.solvers.elimination.newton import affordable, sharpened
from softsplit.solvers.elimination.path import RIDGE, Price, Stage, Stages
from softsplit.solvers.elimination.penalised import Penalised
from softsplit.solvers.elimination.race import SUPPORT_ROWS, Descents, OutOfBudget, class_shares
from softsplit.solvers.elimination.rates import RateTerms
from softsplit.solvers.elimination.screened_race import MOST_COLUMNS, narrow_race, price_of_luck
from softsplit.solvers.elimination.support_tree import Draft
from softsplit.support.interruption import is_interruption
from softsplit.tree.parameters import TreeParameters

FEW_ROWS, FEW_OF_A_CLASS = 1500, 100
"""Rows on which features are looked for where trees are only compared."""

POLISH_STEPS, POLISH_DECREASE = 1000, 1e-10
DECREASE_PER_TOL, ROUGH = 1e-4, 1e-3
"""A rough tolerance ends descents earlier, and spares the last digits."""

COMPARED_STEPS, COMPARED_DECREASE = 12, 1e-5
"""Where trees are only compared."""

COMPARED = 3
"""Trees of a path that are compared at the ridge of a problem."""

FINE_DECREASE = 1e-13
"""Where a tree has too many numbers for Newton steps."""

SPARSE_STARTS = 3
"""Trees of the path from which proximal steps start too: they may end sparser than dense ones."""

RATE_ROUNDS, TRIED = 25, 6
"""Most rounds of multipliers, and trees of a path that are tried under class rates."""

DEAR = 1.5
"""Where rates raise the objective by more than this factor, another tree may have them for less."""

MOST_RACING = 100
"""Trees in the race of a start, whatever the effort."""

LARGER, MOST_OF = 4, 0.6
"""The second sample is so many times the first; one that is more than this part of the last saves
too little."""

LONG = 1e6
"""Rows times numbers of a tree from which on the last digits of a start take seconds."""

RATE_PATIENCE, NEARER = 8, 0.8
"""Rates that have not come nearer by this factor in so many rounds are out of reach for a tree."""


def without_rates(problem: TrainingProblem) -> TrainingProblem:
    """The problem without its minimum class rates."""
    return replace(problem, minimum_rates=np.zeros(problem.n_classes))


def few_rows(problem: TrainingProblem) -> int:
    """Rows that are enough to compare trees."""
    return FEW_ROWS + FEW_OF_A_CLASS * problem.n_classes


AllRows = Descents | EngineDescents
"""Descents over all rows of a problem."""


class End(NamedTuple):
    """Where a descent has ended."""

    draft: Draft
    value: float
    status: Status


class Elimination:
    """What one start leads to: a path of trees from which those of all strengths are taken.

    The path is found when trees are first asked for. What has descended before goes on from there.
    """

    def __init__(
        self, problem: TrainingProblem, start: Start, budget: Budget, *, compared: bool = False
    ) -> None:
        start = start.within(problem.bounds)
        self.problem, self.start, self.budget = problem, start, budget
        self.began = time.perf_counter()
        rows = few_rows(problem) if compared else SUPPORT_ROWS
        few = problem.rows.sample(rows).with_totals(problem.rows.class_totals)
        self.few = Descents(problem, budget, few, compared=compared)
        self._all: AllRows | None = self.few if few.n_rows >= problem.rows.n_rows else None
        self._starts = [Draft.of(t, problem) for t in (start.parameters, *start.rivals)]
        self._won: Draft | None = None
        self._stages: Stages | None = None
        self._last: dict[int, Draft] = {}
        self._ends: dict[tuple[int, float, bool, bool], End] = {}
        self._trees: dict[int, tuple[Draft, TreeParameters]] = {}

    def trees(self, problems: Sequence[TrainingProblem], *, tight: bool) -> list[Solution]:
        """The best tree for each problem; fewer if the budget ends, but at least one."""
        status, found = Status.ACCEPTABLE, []
        try:
            if self._won is None:
                self._won = self._winner()
            if self._stages is None:
                self._stages = Stages(self.few, self._won, class_shares(self.problem))
            for problem in problems:
                end = self._finished(problem, self._won, tight)
                if tight:
                    found.append(self._measured(problem, end.draft, end.status))
                else:
                    tree = self._tree(end.draft)
                    found.append(Solution.unmeasured(problem, tree, end.value, end.status))
        except OutOfBudget:
            status = self.budget.verdict
        except (KeyboardInterrupt, SystemError) as error:
            if not is_interruption(error):
                raise
            self.budget.stop()
            status = Status.INTERRUPTED
        if not found:
            found.append(self._measured(problems[0], self._so_far(problems[0]), status))
        return found

    @property
    def stem(self) -> TreeParameters | None:
        """The winner of the race, if there was one, from which a deeper tree may be grown."""
        return None if self._won is None else self._tree(self._won)

    def tree(self, problem: TrainingProblem, *, tight: bool) -> Solution:
        """The best tree for a problem, measured."""
        found = self.trees([problem], tight=tight)[0]
        if tight:
            return found
        return self._measured(problem, Draft.of(found.parameters, problem), found.status)

    def _so_far(self, problem: TrainingProblem) -> Draft:
        """What there is when the budget ends; the tree without features if that is better."""
        draft = self._won or self._starts[0]
        if self._stages is not None and self._stages.found:
            draft = min(self._stages.found, key=self._price(problem)).draft
        drafts = (draft, draft.featureless(class_shares(problem)))
        return min(drafts, key=lambda one: problem.objective(one.tree(problem)))

    def _winner(self) -> Draft:
        """Where the race ends; a tree that was given keeps its zeros."""
        if self.start.rule == "given" and len(self._starts) == 1:
            return self._starts[0]
        grow, stem = self.start.rule == "growth", self.start.stem
        known = None if stem is None else Draft.of(stem, self.problem)
        narrow: Draft | None = None
        if self.problem.penalties.counts:
            held = np.zeros(self.problem.n_features, dtype=bool)
            if self.start.rule == "given":
                held = np.any([draft.kept.any(axis=0) for draft in self._starts], axis=0)
            narrow = narrow_race(self.few, self._starts, grow=grow, stem=known, held=held)
        if narrow is not None and self.problem.n_features > MOST_COLUMNS:
            return narrow
        wide = self.few.race(self._starts, grow=grow, stem=known)
        return wide if narrow is None else self._better(narrow, wide)

    def _better(self, narrow: Draft, wide: Draft) -> Draft:
        """Of the winners on few and on all columns the one whose path is better where every feature
        has the price of luck, the first unless the other is so by more than that."""
        shares, price = class_shares(self.problem), price_of_luck(self.few.field)
        paths = [Stages(self.few, draft, shares) for draft in (narrow, wide)]
        try:
            least = [min(s.price(price / FEATURE_SIZE, price) for s in p.all()) for p in paths]
        except OutOfBudget:  # what has won a race is not lost
            return narrow
        chosen = 1 if least[1] < least[0] - price else 0
        self._stages = paths[chosen]
        return (narrow, wide)[chosen]

    def _tree(self, draft: Draft) -> TreeParameters:
        """The tree of a draft, made once."""
        if id(draft) not in self._trees:
            self._trees[id(draft)] = draft, draft.tree(self.problem)
        return self._trees[id(draft)][1]

    def _finished(self, problem: TrainingProblem, winner: Draft, tight: bool) -> End:
        """The tree for a problem after its descent on all rows."""
        whole = self._on_all_rows()
        local, global_ = problem.penalties.local, problem.penalties.global_
        if not problem.penalties.counts and local.strength + global_.strength > 0:
            starts = [winner, *(self._cheapest(problem) if tight else ())]
            ends = [self._penalised(problem, whole, draft, tight) for draft in starts]
            return min(ends, key=lambda end: problem.objective(end.draft.tree(problem)))
        picked = self._picked(problem, tight) if problem.penalties.counts else winner
        if not picked.n_coefficients:
            return End(picked, problem.cost(self._tree(picked)), Status.ACCEPTABLE)
        return self._descended(problem, picked, whole, tight)

    def _descended(
        self, problem: TrainingProblem, picked: Draft, whole: AllRows, tight: bool
    ) -> End:
        """Where a tree leads on its own coefficients; each is descended once for each ridge."""
        tol = self.budget.tol * problem.cost_unit
        steps, decrease = COMPARED_STEPS, COMPARED_DECREASE
        if tight:
            steps, decrease = POLISH_STEPS, max(POLISH_DECREASE, DECREASE_PER_TOL * self.budget.tol)
        smoothing, small = Smoothing(problem.ridge), 0.5 * tol / max(problem.steepness, 1.0)
        key = id(picked), problem.ridge, tight, whole is self.few
        if key in self._ends:
            return self._ends[key]
        begin = self._last.get(id(picked), picked)  # another ridge has been there
        if isinstance(whole, EngineDescents):
            near = small if tight else 0.0
            draft, value, over = whole.descend(begin, smoothing, steps, decrease, near)
        else:
            fine = tight and self.budget.tol < ROUGH
            if fine and not affordable(int(begin.free.sum()), whole.n_rows, len(begin.splits)):
                decrease = FINE_DECREASE
            draft, value, over = whole.descend(begin, smoothing, steps, decrease, tol=small)
            if fine and over:
                draft = sharpened(draft, whole.on(draft), smoothing, small, problem.bounds)
        self._last[id(picked)] = draft
        self._ends[key] = End(draft, value, self._status(over))
        return self._ends[key]

    def _penalised(
        self, problem: TrainingProblem, whole: AllRows, draft: Draft, tight: bool
    ) -> End:
        """Where proximal steps lead; with many rows, from where those on few of them do."""
        if isinstance(whole, EngineDescents):
            draft = self._penalised(problem, self.few, draft, tight).draft
        steps = Penalised(whole, draft, problem.penalties, problem.ridge)
        tol = self.budget.tol * problem.cost_unit
        draft, over = steps.descend(self.budget.max_iter, tol, tight=tight)
        return End(draft, problem.cost(draft.tree(problem)), self._status(over))

    def _cheapest(self, problem: TrainingProblem) -> list[Draft]:
        """Of the path the cheapest tree for each number of branches in use, on all columns."""
        best: dict[int, tuple[float, TreeParameters]] = {}
        for stage in self._path():
            tree = stage.draft.tree(problem)
            n_used, cost = int(np.sum(np.any(tree.weights != 0, axis=0))), problem.objective(tree)
            if n_used not in best or cost < best[n_used][0]:
                best[n_used] = cost, tree
        ranked = sorted(best.values(), key=lambda pair: pair[0])
        return [Draft.of(tree, problem) for _, tree in ranked[:SPARSE_STARTS]]

    def within_rates(self, problem: TrainingProblem, found: Solution) -> Solution:
        """The tree that was found, moved to where the class rates of a problem hold.

        Under the count they may be out of reach for its coefficients, or dear: then the next best
        trees of the path are tried.
        """
        drafts = [Draft.of(found.parameters, problem)]
        if problem.penalties.counts:
            with suppress(OutOfBudget):
                ranked = sorted(self._path(), key=self._price(problem))
                drafts += [stage.draft for stage in ranked]
        # Without features any rates are met, at a price that the path does not know: tried last.
        drafts.sort(key=lambda draft: draft.n_coefficients == 0)
        some = [draft for draft in drafts if draft.n_coefficients][: TRIED + 1]
        tried: list[Solution] = []
        for draft in [*some, *drafts[-1:]]:
            end = self._rated(problem, draft)
            tried.append(self._measured(problem, end.draft, end.status))
            fine = tried[-1].objective <= DEAR * abs(found.objective)
            if (tried[-1].status.usable and fine) or self.budget.exhausted:
                break
        return min(tried, key=lambda one: (not one.status.usable, one.objective))

    def _rated(self, problem: TrainingProblem, draft: Draft) -> End:
        """Descents in turn with new multipliers, until the rates hold."""
        whole, counted = self._on_all_rows(), problem.penalties.counts
        tol = self.budget.tol * problem.cost_unit
        penalties = PenaltyPair.of(linear()) if counted else problem.penalties
        terms = RateTerms(whole.masses(draft), problem.minimum_rates)
        steps = Penalised(whole, draft, penalties, problem.ridge, rates=terms, support=counted)
        over, met, worst = False, False, [np.inf] * RATE_PATIENCE
        for _ in range(RATE_ROUNDS):
            draft, over = steps.descend(self.budget.max_iter, tol, tight=met)
            terms.update(draft.vector)
            short = terms.shortfalls(draft.vector)
            near = bool(np.max(short) <= RATE_SLACK)
            near &= bool(np.max(terms.multipliers * np.abs(short)) <= tol)
            done = near and met and over  # the last descent was an exact one
            met = near
            hopeless = not near and np.max(short) > NEARER * worst[-RATE_PATIENCE]
            worst.append(float(np.max(short)))
            if self.budget.exhausted or done or hopeless:
                break
        return End(draft, problem.cost(draft.tree(problem)), self._status(over and met))

    def _status(self, over: bool) -> Status:
        if not over and self.budget.exhausted:
            return self.budget.verdict
        return Status.ACCEPTABLE if over or not self.budget.max_iter else Status.MAX_ITER

    def _on_all_rows(self) -> AllRows:
        """Descents over arrays of all rows where these are few; else over the engine."""
        if self._all is None:
            problem, budget, rows = self.problem, self.budget, self.problem.rows
            if rows.n_rows <= SUPPORT_ROWS and (all_ := rows.sample()).n_rows >= rows.n_rows:
                self._all = Descents(problem, budget, all_)
            else:
                self._all = EngineDescents(problem, budget, self.few)
        return self._all

    def _picked(self, problem: TrainingProblem, tight: bool) -> Draft:
        """The tree of the path whose objective is least at the strengths of a problem.

        Values of the path are those at its own ridge: at another one the cheapest few are compared,
        where it is not other settings that are.
        """
        local, global_ = problem.penalties.local.strength, problem.penalties.global_.strength
        if not tight or isclose(problem.ridge, RIDGE * self.few.unit):
            return self._ranked(problem)[0].draft
        compared = []
        for stage in self._ranked(problem)[:COMPARED]:
            if stage.draft.n_coefficients:
                end = self._descended(problem, stage.draft, self.few, tight=False)
                stage = replace(stage, value=end.value)
            compared.append(stage)
        return min(compared, key=lambda stage: stage.price(local, global_)).draft

    def _path(self) -> list[Stage]:
        """All of the path."""
        if self._stages is None:
            raise OutOfBudget
        return self._stages.all()

    def _ranked(self, problem: TrainingProblem) -> list[Stage]:
        """The trees of the path that may be the cheapest for a problem, in that order.

        The less there is left of a tree the larger is its value, and it has a feature, or it is the
        one without features, which is known from the beginning.
        """
        if self._stages is None:
            raise OutOfBudget
        one = problem.penalties.local.strength + problem.penalties.global_.strength
        added = min(0.0, self._added(problem))
        return self._stages.up_to(
            self._price(problem), lambda stage: stage.value + one + added * stage.square
        )

    def _price(self, problem: TrainingProblem) -> Price:
        """About the objective of a tree at the strengths and the ridge of a problem."""
        local, global_ = problem.penalties.local.strength, problem.penalties.global_.strength
        added = self._added(problem)
        return lambda stage: stage.price(local, global_) + added * stage.square

    def _added(self, problem: TrainingProblem) -> float:
        """What the ridge of a problem adds for each squared weight: half is fitted away."""
        return 0.25 * (problem.ridge - RIDGE * self.few.unit)

    def _measured(self, problem: TrainingProblem, draft: Draft, status: Status) -> Solution:
        return Solution.measure(
            problem,
            draft.tree(problem),
            status,
            tol=self.budget.tol,
            n_iter=self.few.steps + (0 if self._all in (None, self.few) else self._all.steps),
            seconds=time.perf_counter() - self.began,
            solver="native",
            message="elimination" if problem.penalties.counts else "proximal steps",
        )


@dataclass(frozen=True)
class EliminationSolver(Solver):
    """Compiled solver of the log-loss: splits and leaves descend together, features are eliminated.

    Parameters
    ----------
    rivals : int
        Further trees in the race of each start.
    effort : float
        Trees in the race of a start, as a multiple of the usual number.
    """

    rivals: int = 1
    effort: float = 1.0
    name: str = "native"
    releases_gil: bool = True
    zero_threshold: float = 0.0
    eliminates: ClassVar[bool] = True

    def supports(self, problem: TrainingProblem) -> str | None:
        """The log-loss of a whole tree, without bounds on its thresholds."""
        return None if problem.by_likelihood else "trains loss='log' only"

    def solve(self, problem: TrainingProblem, start: Start, budget: Budget) -> Solution:
        """Return the best tree found from ``start``; class rates are met in a last step."""
        free = without_rates(problem)
        path = Elimination(free, start, budget)
        found = path.tree(free, tight=not budget.rough)
        met = problem.violation(found.parameters).largest <= RATE_SLACK
        return found if met else path.within_rates(problem, found)

    def sample_sizes(self, problem: TrainingProblem) -> tuple[int, ...]:
        """Up to the rows on which features are selected, and those are the last.

        All rows at once, roughly, where the last digits of a start take long.
        """
        n_rows = problem.rows.n_rows
        last, few = min(n_rows, SUPPORT_ROWS), few_rows(problem)
        sizes = [size for size in (few, LARGER * few) if size <= MOST_OF * last]
        numbers = problem.topology.n_branches * (problem.n_features + problem.n_classes)
        long = problem.penalties.counts and n_rows * numbers > LONG
        return (*sizes, last) if sizes or n_rows > last or long else ()

    def start_rule(self, problem: TrainingProblem, number: int) -> str:
        """Mixtures of logistic regressions; the first races against a tree that is grown."""
        return "mixtures" if number else "growth"

    def follows(self, problem: TrainingProblem) -> bool:
        """Elimination gives the trees of all strengths at once."""
        return problem.by_likelihood and not problem.rated

    def path(
        self, problem: TrainingProblem, start: Start, budget: Budget, *, compared: bool = False
    ) -> Path:
        return Elimination(problem, start, budget, compared=compared)

    def with_effort(self, effort: float) -> EliminationSolver:
        """Return the same solver with more or fewer trees in the race of a start."""
        return replace(self, effort=effort * self.effort)

    def n_rivals(self, problem: TrainingProblem) -> int:
        """Rivals of each start: the effort goes into them."""
        return min(max(round(self.effort * (1 + self.rivals)), 1), MOST_RACING) - 1
