"""Descents on the rows of one problem, within a budget, and the race between starts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.samples import Samples
from softsplit.problem.leaves import CountedDistributions
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget
from softsplit.solvers.elimination.bounded import bounded_descent, vector_bounds
from softsplit.solvers.elimination.descent import (
    NO_INVERSE,
    Field,
    Smoothing,
    descend,
    ended,
    new_memory,
    steps_of,
)
from softsplit.solvers.elimination.fisher import inverse_fisher, pays
from softsplit.solvers.elimination.growth import featureless_draft, grown
from softsplit.solvers.elimination.newton import Function, over_field
from softsplit.solvers.elimination.rates import FieldMasses, Masses
from softsplit.solvers.elimination.support_tree import Draft
from softsplit.support.arrays import FloatArray

SLICE_SECONDS = 0.2
"""Compiled code cannot look at the clock: long descents return to Python this often."""

PACE = 3e-8
"""Seconds of a step for each row and branch, until one has been measured."""

SUPPORT_ROWS = 20_000
"""Rows on which features are looked for; the tree that is found descends on all rows."""

SCOUT = 0.0075
"""Strength, as a part of the total weight, at which starts are raced: a middle one."""

SHALLOW = 4
"""Leaves up to which a tree is raced at full strength."""

RACE_STEPS, PURE_STEPS, GROWTH_STEPS = 12, 5, 10
WINNER_STEPS, WINNER_DECREASE = 80, 3e-5
FINALISTS = 2

WEAKER, WEAKER_STEPS = 0.2, 40
"""The winner is descended once more at this part of SCOUT: more features than a tree will keep."""

COMPARED_PART = 0.5
"""Part of these steps where trees are only compared."""

RACE_RIDGE = 0.1


class OutOfBudget(Exception):
    """The time of a run is used up, or it was interrupted."""


class Whole(Protocol):
    """All rows of a problem, as far as steps under penalties and class rates ask for them."""

    problem: TrainingProblem
    budget: Budget
    steps: int

    @property
    def n_rows(self) -> int:
        """Distinct rows."""

    def function(self, draft: Draft, smoothing: Smoothing, free: NDArray[np.bool_]) -> Function:
        """The log-loss with its terms, of all numbers of drafts of one shape."""

    def masses(self, draft: Draft) -> Masses:
        """The masses of drafts of one shape."""


class Descents:
    """Descents over the rows of a problem, or over some of them.

    Attributes
    ----------
    steps : int
        Steps so far.
    unit : float
        Weight of a row, in which ridges count.
    compared : bool
        Whether trees are only compared: a race is then shorter.
    """

    def __init__(
        self, problem: TrainingProblem, budget: Budget, samples: Samples, *, compared: bool = False
    ) -> None:
        rule = problem.loss.leaf_rule
        assert isinstance(rule, CountedDistributions)
        unit = problem.steepness / problem.n_features
        self.problem, self.budget = problem, budget
        self.total = float(samples.weights.sum())
        self.unit = problem.row_unit
        features = unit * (samples.features.astype(float, copy=False) - 0.5)
        self.field = Field(features, samples.starts, samples.weights, rule.pseudo_counts)
        self.bounds = problem.bounds
        self.steps = 0
        self.compared = compared
        self._pace = 0.0

    def on(self, draft: Draft) -> Field:
        """The rows of the columns of a draft."""
        if len(draft.columns) == len(self.field.features):
            return self.field
        return self.field._replace(
            features=np.ascontiguousarray(self.field.features[draft.columns])
        )

    def narrowed(self, columns: NDArray[np.intp]) -> Descents:
        """Descents over the same rows of some columns."""
        narrow = copy(self)
        narrow.field = self.field._replace(
            features=np.ascontiguousarray(self.field.features[columns])
        )
        narrow.bounds = self.bounds.restrict(columns)
        return narrow

    @property
    def n_rows(self) -> int:
        """Distinct rows."""
        return int(self.field.features.shape[1])

    def check(self) -> None:
        """Raise ``OutOfBudget`` if nothing is left."""
        if self.budget.exhausted:
            raise OutOfBudget

    def function(self, draft: Draft, smoothing: Smoothing, free: NDArray[np.bool_]) -> Function:
        """The log-loss with its terms, of all numbers of drafts of one shape."""
        return over_field(draft, self.on(draft), smoothing, free)

    def masses(self, draft: Draft) -> Masses:
        """The masses of drafts of one shape."""
        return FieldMasses(self.on(draft), draft.shape)

    def descend(
        self,
        draft: Draft,
        smoothing: Smoothing,
        max_iter: int,
        decrease: float,
        *,
        tol: float = 0.0,
        leaves: bool = True,
        rows: Field | None = None,
    ) -> tuple[Draft, float, bool]:
        """Where a descent leads, its value, and whether it ended by itself.

        Without ``leaves`` only splits move. ``rows`` are those of the draft's columns, if known.
        """
        field = self.on(draft) if rows is None else rows
        vector, free = draft.vector, draft.free
        if not leaves:
            free[draft.splits.size :] = False
        allowed = min(max_iter, self.budget.max_iter or max_iter)
        if self.bounds.finite:
            function = over_field(draft, field, smoothing, free)
            box = vector_bounds(draft, self.bounds)
            end = bounded_descent(function, vector, free, box, self.check, allowed, decrease, tol)
            self.steps += end.steps
            return draft.moved_to(end.x), end.value, end.over
        inverse = NO_INVERSE
        if smoothing.entry == 0.0 and pays(
            int(np.count_nonzero(free)), len(draft.splits), max_iter
        ):
            inverse = inverse_fisher(vector, field, smoothing.ridge, free, draft.shape)
        memory, value = new_memory(free, inverse), np.inf
        while True:
            self.check()
            done = steps_of(memory)
            size = field.features.shape[1] * len(draft.splits)
            part = min(allowed - done, max(1, int(SLICE_SECONDS / (self._pace or PACE * size))))
            began = self.budget.now()
            value = descend(
                vector, field, smoothing, free, draft.shape, memory, part, decrease, tol
            )
            made = steps_of(memory) - done
            self.steps += made
            self._pace = (self.budget.now() - began) / max(made, 1) if size > 1e5 else 0.0
            if ended(memory) or steps_of(memory) >= allowed:
                return draft.moved_to(vector), float(value), ended(memory)

    def race(
        self, starts: Sequence[Draft], *, grow: bool = False, stem: Draft | None = None
    ) -> Draft:
        """The start that leads furthest: short descents from all, longer ones from the best.

        Every other one first descends with its leaves held: where leaves are free at once, some
        settle for the same answer on both sides of a split. With ``grow`` a grown tree races too.
        One grown from ``stem``, a tree of fewer levels that has come far already, would win against
        better ones over a short distance: it joins the best.
        """
        n_branches = len(starts[0].splits)
        scout = self.scout(n_branches)
        smoothing = Smoothing(RACE_RIDGE * self.unit, scout / 2, scout / 2)
        runs: list[tuple[float, Draft]] = []
        with suppress(OutOfBudget):
            if grow:
                draft = self.grow(featureless_draft(self.field), n_branches)
                draft, value, _ = self.descend(draft, smoothing, RACE_STEPS, 1e-4)
                runs.append((value, draft))
            for number, start in enumerate(starts):
                if number % 2 == 1:
                    start, _, _ = self.descend(start, smoothing, PURE_STEPS, 1e-4, leaves=False)
                draft, value, _ = self.descend(start, smoothing, RACE_STEPS, 1e-4)
                runs.append((value, draft))
        if not runs:
            return starts[0]
        runs.sort(key=lambda run: run[0])
        part = COMPARED_PART if self.compared else 1.0
        ends: list[tuple[float, Draft]] = []
        with suppress(OutOfBudget):
            best = [draft for _, draft in runs[:FINALISTS]]
            for draft in best if stem is None else [*best, self.grow(stem, n_branches)]:
                steps = int(part * WINNER_STEPS)
                draft, value, _ = self.descend(draft, smoothing, steps, WINNER_DECREASE)
                ends.append((value, draft))
        _, winner = min(ends or runs[:1], key=lambda run: run[0])
        with suppress(OutOfBudget):
            weak = WEAKER * scout
            smoothing = Smoothing(RACE_RIDGE * self.unit, weak / 2, weak / 2)
            steps = int(part * WEAKER_STEPS)
            winner, _, _ = self.descend(winner, smoothing, steps, WINNER_DECREASE)
        return winner

    def scout(self, n_branches: int) -> float:
        """Strength of the race: weaker for deep trees, whose coefficients serve fewer rows."""
        return SCOUT * self.total * min(1.0, SHALLOW / (n_branches + 1))

    def grow(self, stem: Draft, n_branches: int) -> Draft:
        """A tree that is grown level by level, with short descents in between."""
        draft = grown(stem, self.field)
        while len(draft.splits) < n_branches:
            scout = self.scout(len(draft.splits))
            smoothing = Smoothing(RACE_RIDGE * self.unit, scout / 2, scout / 2)
            draft, _, _ = self.descend(draft, smoothing, GROWTH_STEPS, 1e-4)
            draft = grown(draft, self.field)
        return draft


def class_shares(problem: TrainingProblem) -> FloatArray:
    """Share of each class in the weight of all rows."""
    totals = problem.rows.class_totals
    return totals / totals.sum()
