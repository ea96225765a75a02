"""Descents over all rows of an engine, which go through its ``evaluate``: rows may be anywhere.

A tree that has descended on a sample is near the end already: on all N rows its numbers are off by
what a sample of n rows leaves open, and the curvature there is known from the sample to a few
percent. So the descent begins from the inverse Hessian of the sample (whose weights add up to those
of all rows), and L-BFGS mends the rest: each step is an evaluation, and each takes off a digit or
more.

The change of units is that of draft.py. With m columns and unit = steepness / n_features an engine
of those columns is asked at steepness unit m, where weights are the same and

    threshold  mu   = (unit / 2 sum_j w_j - b) / (unit m)
    d / d w_j       = d / d a_j + 1 / (2 m) d / d mu          d / d b = - 1 / (unit m) d / d mu

Near the end the function falls by less than the rounding of its sum; a step is then judged by its
slope: the value must be level to ``rounding``, and the slope along the step smaller than before.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import Sums, with_columns
from softsplit.engines.outer import IDENTITY, LOGARITHM
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget
from softsplit.solvers.likelihood.descent import (
    FIRST_MOVE,
    MAX_CUTS,
    NO_INVERSE,
    STALLS,
    STORED,
    SUFFICIENT,
    Memory,
    Smoothing,
    aim,
    keep,
    largest,
    new_memory,
    shorter,
)
from softsplit.solvers.likelihood.draft import Draft
from softsplit.solvers.likelihood.fisher import inverse_fisher
from softsplit.solvers.likelihood.newton import (
    Function,
    affordable,
    hessian,
    inverse_size,
    of_free_numbers,
    over_field,
)
from softsplit.solvers.likelihood.objective import by_log_odds, shrink, softmax
from softsplit.solvers.likelihood.search import Descents, OutOfBudget
from softsplit.support.arrays import FloatArray

MOST_FISHER_NUMBERS = 600
"""Free numbers for which the Fisher information is worked out, where a Hessian takes too long."""

NEAR_STEPS, NEAR_DECREASE = 300, 1e-8
"""The descent on the sample before: what it leaves is less than the sample leaves open."""

FLAT = 1e-7
"""Curvature below this part of the largest is not known from a sample."""

ROUNDING = 1e-12
"""Relative rounding of the value of an engine that does not say otherwise."""

PATIENCE = 6

CURVED = 0.9
"""A step at the same level must lower the size of the slope along it by this factor."""


class EngineFunction:
    """The function of objective.py over all rows of an engine, of drafts of one shape."""

    def __init__(self, problem: TrainingProblem, draft: Draft) -> None:
        rows, columns = with_columns(problem.rows, draft.columns)
        self.rows, self.columns = rows, columns
        self.pseudo = problem.loss.leaf_rule.pseudo_counts  # type: ignore[attr-defined]
        self.steepness = problem.steepness / problem.n_features * rows.n_features
        self.shape = draft.shape
        self.totals = problem.rows.class_totals

    def parts(self, x: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Splits, the leaves' distributions, and the term of their prior."""
        n_branches, n_classes = self.shape
        splits = x[: n_branches * (len(self.columns) + 1)].reshape(n_branches, -1)
        leaves = np.empty((n_classes, n_branches + 1))
        prior = softmax(x[splits.size :].reshape(leaves.shape), self.pseudo, leaves)
        return splits, leaves, float(prior)

    def sums(self, splits: FloatArray, table: FloatArray, outer: int) -> Sums:
        """The sums of the engine, with the derivative by the splits of a draft."""
        n_features = self.rows.n_features
        asked = np.zeros((len(splits), n_features + 1))
        asked[:, self.columns] = splits[:, :-1]
        half = 0.5 / n_features
        asked[:, -1] = half * splits[:, :-1].sum(axis=1) - splits[:, -1] / self.steepness
        found = self.rows.evaluate(asked, table, outer, self.steepness)
        by_split = np.empty_like(splits)
        by_split[:, :-1] = found.splits[:, self.columns] + half * found.splits[:, -1:]
        by_split[:, -1] = -found.splits[:, -1] / self.steepness
        return Sums(found.value, by_split, found.mass, found.table)

    def smooth(self, smoothing: Smoothing, free: NDArray[np.bool_]) -> Function:
        """Log-loss, prior and ridge."""

        def function(x: FloatArray) -> tuple[float, FloatArray]:
            splits, leaves, value = self.parts(x)
            found = self.sums(splits, leaves, LOGARITHM)
            gradient = np.empty_like(x)
            by_split = gradient[: splits.size].reshape(splits.shape)
            by_split[...] = found.splits
            by_leaf = gradient[splits.size :].reshape(leaves.shape)
            by_log_odds(leaves, np.ascontiguousarray(found.table), self.pseudo, by_leaf)
            value += found.value + shrink(splits, smoothing, by_split)
            gradient[~free] = 0.0
            return value, gradient

        return function

    def at(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As ``Masses`` of rates.py."""
        splits, leaves, _ = self.parts(x)
        return leaves, self.sums(splits, leaves, IDENTITY).mass

    def add(self, x: FloatArray, prices: FloatArray, by_split: FloatArray) -> None:
        """As ``Masses`` of rates.py."""
        splits, leaves, _ = self.parts(x)
        by_split += self.sums(splits, prices[:, None] * leaves, IDENTITY).splits


class EngineDescents:
    """Descents over all rows of a problem, which begin where those over ``few`` of them end.

    Attributes
    ----------
    steps : int
        Steps so far.
    """

    def __init__(self, problem: TrainingProblem, budget: Budget, few: Descents) -> None:
        self.problem, self.budget, self.few = problem, budget, few
        self.steps = 0
        self._rounding = float(getattr(problem.rows, "rounding", ROUNDING))

    @property
    def n_rows(self) -> int:
        """Distinct rows."""
        return self.problem.rows.n_rows

    def function(self, draft: Draft, smoothing: Smoothing, free: NDArray[np.bool_]) -> Function:
        """The log-loss with its terms, of all numbers of drafts of one shape."""
        return self.masses(draft).smooth(smoothing, free)

    def masses(self, draft: Draft) -> EngineFunction:
        """The masses of drafts of one shape."""
        return EngineFunction(self.problem, draft)

    def descend(
        self, draft: Draft, smoothing: Smoothing, max_iter: int, decrease: float, tol: float
    ) -> tuple[Draft, float, bool]:
        """Where a descent leads, its value, and whether it ended by itself.

        It ends where no derivative is larger than ``tol``, or after STALLS steps in a row that
        lower the value by less than ``decrease`` of it; with a ``tol``, after PATIENCE of them in
        which the largest derivative has not been halved either.
        """
        draft, _, _ = self.few.descend(draft, smoothing, NEAR_STEPS, NEAR_DECREASE)
        free = draft.free
        function = self.function(draft, smoothing, free)
        memory = new_memory(free, self._inverse(draft, smoothing))
        x, direction = draft.vector, np.empty(len(free))
        value, memory.gradient[:] = function(x)
        steepest, stalled = largest(memory.gradient), 0
        least = min(1.0, float(self.problem.rows.class_totals.sum()))
        for _ in range(min(max_iter, self.budget.max_iter or max_iter)):
            if largest(memory.gradient) <= tol:
                return draft.moved_to(x), value, True
            step = self._step(function, x, value, memory, direction)
            self.steps += 1
            if step is None:
                if memory.counters[STORED] == 0 or self.budget.exhausted:
                    return draft.moved_to(x), value, not self.budget.exhausted
                memory.counters[STORED] = 0
                continue
            moved, new, fresh = step
            keep(x, moved, fresh, memory)
            small = value - new <= decrease * max(abs(new), least)
            nearer = tol > 0.0 and largest(fresh) <= 0.5 * steepest
            stalled = stalled + 1 if small and not nearer else 0
            steepest, value = min(steepest, largest(fresh)), new
            if stalled >= (PATIENCE if tol > 0.0 else STALLS):
                return draft.moved_to(x), value, True
        return draft.moved_to(x), value, False

    def _step(
        self,
        function: Function,
        x: FloatArray,
        value: float,
        memory: Memory,
        direction: FloatArray,
    ) -> tuple[FloatArray, float, FloatArray] | None:
        """A point further down with its value and derivative; None if there is none, or no time."""
        fall = aim(memory, direction)
        if not fall < 0.0:
            memory.counters[STORED] = 0
            fall = aim(memory, direction)
        length = 1.0
        if memory.counters[STORED] == 0 and memory.inverse.size == 0:
            length = min(1.0, FIRST_MOVE / max(largest(direction), 1e-300))
        for _ in range(MAX_CUTS):
            if self.budget.exhausted:
                return None
            moved = x + length * direction
            new, fresh = function(moved)
            level = new <= value + self._rounding * abs(value)
            flatter = abs(float(fresh @ direction)) <= CURVED * abs(fall)
            if new <= value + SUFFICIENT * length * fall or (level and flatter):
                return moved, new, fresh
            length *= shorter(value, new, length * fall)
        return None

    def _inverse(self, draft: Draft, smoothing: Smoothing) -> FloatArray:
        """The inverse Hessian on the sample, or that of its Fisher information."""
        n_free, n_rows = int(np.sum(draft.free)), self.few.n_rows
        field = self.few.on(draft)
        if affordable(n_free, n_rows, len(draft.splits)):
            smooth = over_field(draft, field, smoothing, draft.free)
            matrix = hessian(of_free_numbers(draft, smooth), draft.vector[draft.free])
            return inverse_size(matrix, FLAT)
        if n_free <= MOST_FISHER_NUMBERS:
            if self.budget.exhausted:
                raise OutOfBudget
            found = inverse_fisher(draft.vector, field, smoothing.ridge, draft.free, draft.shape)
            return np.ascontiguousarray(found)
        return NO_INVERSE
