"""Our own solver of trees by likelihood.

From a start, or the winner of a race between several, features leave by elimination; of the path of
trees the one is taken whose objective is least at the strengths that are asked for, and descends on
all rows until its derivatives vanish. Under other penalties than the count proximal steps take the
place of elimination. Features are looked for on at most SUPPORT_ROWS rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from softsplit.engines.base import samples_of
from softsplit.problem.distributions import CountedDistributions
from softsplit.problem.penalties import COUNT
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Solution, Start, Status
from softsplit.solvers.likelihood.descent import Smoothing
from softsplit.solvers.likelihood.draft import Draft
from softsplit.solvers.likelihood.elimination import Stage, eliminate
from softsplit.solvers.likelihood.newton import sharpened
from softsplit.solvers.likelihood.penalised import STEPS, Penalised
from softsplit.solvers.likelihood.search import SUPPORT_ROWS, Descents, OutOfBudget, class_shares
from softsplit.support.interruption import is_interruption

POLISH_STEPS, POLISH_DECREASE = 1000, 1e-10
COMPARED_STEPS, COMPARED_DECREASE = 20, 1e-5
"""Where trees are only compared."""


def by_likelihood(problem: TrainingProblem) -> bool:
    """Whether a problem is one of likelihood: no box, class distributions, no rates, no block."""
    return (
        isinstance(problem.loss.leaf_rule, CountedDistributions)
        and not np.isfinite(problem.bound)
        and problem.block is None
        and not np.any(problem.minimum_rates > 0)
    )


def solve(problem: TrainingProblem, start: Start, budget: Budget) -> Solution:
    """The best tree found from a start."""
    return Elimination(problem, start, budget).trees([problem], tight=True)[0]


class Elimination:
    """What one start leads to: a path of trees from which those of all strengths are taken.

    The path is found when trees are first asked for. What has descended before goes on from there.
    """

    def __init__(self, problem: TrainingProblem, start: Start, budget: Budget) -> None:
        self.problem, self.start, self.budget = problem, start, budget
        self.began = time.perf_counter()
        self.few = Descents(problem, budget, problem.rows.sample(SUPPORT_ROWS))
        self._starts = [Draft.of(t, problem) for t in (start.parameters, *start.rivals)]
        self._won: Draft | None = None
        self._stages: list[Stage] = []
        self._last: dict[int, Draft] = {}
        self._ends: dict[tuple[int, float, bool], tuple[Draft, Status]] = {}
        self._measured_before: dict[int, Solution] = {}

    def trees(self, problems: Sequence[TrainingProblem], *, tight: bool) -> list[Solution]:
        """The best tree for each problem; fewer if the budget ends, but at least one."""
        status, found = Status.ACCEPTABLE, []
        try:
            if self._won is None:
                self._won = self._winner()
            if not self._stages and any(_counts(problem) for problem in problems):
                self._stages = eliminate(self.few, self._won, class_shares(self.problem))
            for problem in problems:
                draft, status = self._finished(problem, self._won, tight)
                found.append(self._measured(problem, draft, status))
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

    def _so_far(self, problem: TrainingProblem) -> Draft:
        """What there is when the budget ends; the tree without features if that is better."""
        draft = self._picked(problem) if self._stages else self._won or self._starts[0]
        drafts = (draft, draft.featureless(class_shares(problem)))
        return min(drafts, key=lambda one: problem.objective(one.tree(problem)))

    def _winner(self) -> Draft:
        """Where the race ends; a tree that was given keeps its zeros."""
        if len(self._starts) > 1:
            return self.few.race(self._starts)
        draft = self._starts[0]
        return draft if self.start.rule == "given" else self.few.race([draft])

    def _finished(
        self, problem: TrainingProblem, winner: Draft, tight: bool
    ) -> tuple[Draft, Status]:
        """The tree for a problem after its descent on all rows."""
        whole = self._on_all_rows(problem)
        tol = self.budget.tol * problem.cost_unit
        local, global_ = problem.penalties.local, problem.penalties.global_
        if not _counts(problem) and local.strength + global_.strength > 0:
            proximal = Penalised(whole, winner, problem.penalties, problem.ridge)
            draft, over = proximal.descend(self.budget.max_iter or STEPS, tol)
            return draft, Status.ACCEPTABLE if over or not self.budget.max_iter else Status.MAX_ITER
        picked = self._picked(problem) if self._stages else winner
        if not picked.n_coefficients:
            return picked, Status.ACCEPTABLE
        steps, decrease = COMPARED_STEPS, COMPARED_DECREASE
        if tight:
            steps, decrease = POLISH_STEPS, POLISH_DECREASE
        smoothing, small = Smoothing(problem.ridge), 0.5 * tol / max(problem.steepness, 1.0)
        known = self._ends.get((id(picked), problem.ridge, tight))
        if known is not None:
            return known
        begin = self._last.get(id(picked), picked)  # another ridge has been there
        draft, _, over = whole.descend(begin, smoothing, steps, decrease, tol=small)
        if tight and over:
            draft = sharpened(draft, whole.on(draft), smoothing, small)
        self.few.steps += 0 if whole is self.few else whole.steps
        status = Status.ACCEPTABLE if over or not self.budget.max_iter else Status.MAX_ITER
        self._last[id(picked)] = draft
        self._ends[id(picked), problem.ridge, tight] = draft, status
        return draft, status

    def _on_all_rows(self, problem: TrainingProblem) -> Descents:
        samples = samples_of(problem.rows)
        if samples.n_rows <= SUPPORT_ROWS:
            return self.few
        return Descents(problem, self.budget, samples)

    def _picked(self, problem: TrainingProblem) -> Draft:
        """The tree of the path whose objective is least at the strengths of a problem."""
        local, global_ = problem.penalties.local.strength, problem.penalties.global_.strength
        return min(self._stages, key=lambda stage: stage.price(local, global_)).draft

    def _measured(self, problem: TrainingProblem, draft: Draft, status: Status) -> Solution:
        """A tree may be the best at several strengths: it is measured once."""
        known = self._measured_before.get(id(draft))
        if known is not None and _counts(problem):
            weights = known.parameters.weights
            return replace(known, objective=known.cost + problem.penalties.value(weights))
        found = self._measure(problem, draft, status)
        self._measured_before[id(draft)] = found
        return found

    def _measure(self, problem: TrainingProblem, draft: Draft, status: Status) -> Solution:
        return Solution.measure(
            problem,
            draft.tree(problem),
            status,
            tol=self.budget.tol,
            n_iter=self.few.steps,
            seconds=time.perf_counter() - self.began,
            solver="native",
            message="elimination" if _counts(problem) else "proximal steps",
        )


def _counts(problem: TrainingProblem) -> bool:
    """Whether a problem counts coefficients or features."""
    pair = problem.penalties
    return any(
        part.strength > 0 and part.surrogate.kind == COUNT for part in (pair.local, pair.global_)
    )
