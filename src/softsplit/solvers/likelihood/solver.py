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
from softsplit.problem.leaves import CountedDistributions
from softsplit.problem.penalties import COUNT
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Solution, Start, Status
from softsplit.solvers.likelihood.descent import Smoothing
from softsplit.solvers.likelihood.draft import Draft
from softsplit.solvers.likelihood.elimination import Stage, close_idle, eliminate
from softsplit.solvers.likelihood.newton import sharpened
from softsplit.solvers.likelihood.penalised import STEPS, Penalised
from softsplit.solvers.likelihood.search import SUPPORT_ROWS, Descents, OutOfBudget, class_shares

POLISH_STEPS, POLISH_DECREASE = 1000, 1e-10
COMPARED_STEPS, COMPARED_DECREASE = 40, 1e-6
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
    return solve_path([problem], start, budget, tight=True)[0]


def solve_path(
    problems: Sequence[TrainingProblem], start: Start, budget: Budget, *, tight: bool = False
) -> list[Solution]:
    """The best tree found for each of some problems that differ in strengths and ridge only.

    They share starts and elimination. Fewer come back if the budget ends, but at least one. Without
    ``tight`` the descents end where trees can be compared.
    """
    return _Run(problems[0], start, budget, tight).along(problems)


class _Run:
    """One start on one problem."""

    def __init__(
        self, problem: TrainingProblem, start: Start, budget: Budget, tight: bool
    ) -> None:
        self.problem, self.start, self.budget, self.tight = problem, start, budget, tight
        self.began = time.perf_counter()
        self.few = Descents(problem, budget, problem.rows.sample(SUPPORT_ROWS))
        self.measured: dict[int, Solution] = {}
        self.last: dict[int, Draft] = {}
        self.ends: dict[tuple[int, float], tuple[Draft, Status]] = {}
        self.trees = [Draft.of(t, problem) for t in (start.parameters, *start.rivals)]

    def along(self, problems: Sequence[TrainingProblem]) -> list[Solution]:
        status, winner = Status.ACCEPTABLE, self.trees[0]
        stages: list[Stage] = []
        found: list[Solution] = []
        try:
            winner = self._winner()
            if any(_counts(problem) for problem in problems):
                stages = eliminate(self.few, winner, class_shares(self.problem))
            for problem in problems:
                draft, status = self._finished(problem, winner, stages)
                found.append(self._measured(problem, draft, status))
        except OutOfBudget:
            status = self.budget.verdict
        except KeyboardInterrupt:
            self.budget.stop()
            status = Status.INTERRUPTED
        if not found:
            draft = self._picked(problems[0], stages) if stages else winner
            found.append(self._measured(problems[0], draft, status))
        return found

    def _winner(self) -> Draft:
        """Where the race ends; a tree that was given keeps its zeros."""
        if len(self.trees) > 1:
            return self.few.race(self.trees)
        draft = self.trees[0]
        return draft if self.start.rule == "given" else self.few.race([draft])

    def _finished(
        self, problem: TrainingProblem, winner: Draft, stages: Sequence[Stage]
    ) -> tuple[Draft, Status]:
        whole = self._on_all_rows(problem)
        tol = self.budget.tol * problem.cost_unit
        local, global_ = problem.penalties.local, problem.penalties.global_
        if not _counts(problem) and local.strength + global_.strength > 0:
            steps = Penalised(whole, winner, problem.penalties, problem.ridge)
            draft, over = steps.descend(self.budget.max_iter or STEPS, tol)
            return draft, Status.ACCEPTABLE if over or not self.budget.max_iter else Status.MAX_ITER
        picked = self._picked(problem, stages) if stages else winner
        if not picked.n_coefficients:
            return picked, Status.ACCEPTABLE
        steps, decrease = COMPARED_STEPS, COMPARED_DECREASE
        if self.tight:
            steps, decrease = POLISH_STEPS, POLISH_DECREASE
        smoothing, small = Smoothing(problem.ridge), 0.5 * tol / max(problem.steepness, 1.0)
        known = self.ends.get((id(picked), problem.ridge))
        if known is not None:
            return known
        begin = self.last.get(id(picked), picked)  # another ridge has been there
        draft, _, over = whole.descend(begin, smoothing, steps, decrease, tol=small)
        if self.tight and over:
            draft = sharpened(draft, whole.on(draft), smoothing, small)
        self.few.steps += 0 if whole is self.few else whole.steps
        status = Status.ACCEPTABLE if over or not self.budget.max_iter else Status.MAX_ITER
        self.last[id(picked)] = draft
        self.ends[id(picked), problem.ridge] = draft, status
        return draft, status

    def _on_all_rows(self, problem: TrainingProblem) -> Descents:
        samples = samples_of(problem.rows)
        if samples.n_rows <= SUPPORT_ROWS:
            return self.few
        return Descents(problem, self.budget, samples)

    @staticmethod
    def _picked(problem: TrainingProblem, stages: Sequence[Stage]) -> Draft:
        """The tree of the path whose objective is least at the strengths of a problem."""
        local, global_ = problem.penalties.local.strength, problem.penalties.global_.strength
        return min(stages, key=lambda stage: stage.price(local, global_)).draft

    def _measured(self, problem: TrainingProblem, draft: Draft, status: Status) -> Solution:
        """A tree may be the best at several strengths: it is measured once."""
        known = self.measured.get(id(draft))
        if known is not None and _counts(problem):
            weights = known.parameters.weights
            return replace(known, objective=known.cost + problem.penalties.value(weights))
        found = self._measure(problem, draft, status)
        self.measured[id(draft)] = found
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


__all__ = ["by_likelihood", "close_idle", "solve", "solve_path"]
