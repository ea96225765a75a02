"""Descents over all rows of an engine, which go through its ``evaluate``: rows may be anywhere.

A tree that has descended on a sample is near the end already: on all N rows its numbers are off by
what a sample of n rows leaves open, and the curvature there is known from the sample to a few
percent. So a step on all rows is a Newton step with the Hessian of a sample (whose weights add up
to those of all rows), which pairs of earlier steps mend as in L-BFGS: each is an evaluation, and
each takes off a digit or so. The sample grows: what some 20,000 rows leave open is settled on
MIDDLE_ROWS rows before all rows are asked; an engine that answers faster is asked at once.

The change of units is that of draft.py. With m columns and unit = steepness / n_features an engine
of those columns is asked at steepness unit m, where weights are the same and

    threshold  mu   = (unit / 2 sum_j w_j - b) / (unit m)
    d / d w_j       = d / d a_j + 1 / (2 m) d / d mu          d / d b = - 1 / (unit m) d / d mu

Near the end the function falls by less than the rounding of its sum; a step is then judged by its
slope: the value must be level to ``rounding``, and the slope along the step smaller than before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import Sums, with_columns
from softsplit.engines.outer import IDENTITY, LOGARITHM
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget
from softsplit.solvers.elimination.bounded import bounded_descent, vector_bounds
from softsplit.solvers.elimination.curvature import hessian
from softsplit.solvers.elimination.descent import (
    FIRST_MOVE,
    MAX_CUTS,
    SUFFICIENT,
    Field,
    Smoothing,
    shorter,
)
from softsplit.solvers.elimination.newton import Function, inverse_size, over_field
from softsplit.solvers.elimination.objective import by_log_odds, shrink, softmax
from softsplit.solvers.elimination.race import Descents
from softsplit.solvers.elimination.support_tree import Draft
from softsplit.support.arrays import FloatArray

MIDDLE_ROWS = 100_000
"""Rows of the sample from which the curvature is taken."""

MOST_NUMBERS = 1200
"""Free numbers of which a Hessian is worked out."""

COSTLY = 2e10
"""Products, rows times the square of the numbers, beyond which it is worked out on the first sample
alone: pairs of steps mend it for less."""

NEAR_STEPS, NEAR_DECREASE = 300, 1e-7
"""The descent on the first sample: what it leaves is less than the sample leaves open."""

FLAT = 1e-11
"""Curvature below this part of the largest is none, in units in which every number has the same."""

MIDDLE_DECREASE = 1e-6
"""A descent on a sample ends where two steps in a row lower its value by less than this part."""

ROUNDING = 1e-12
"""Relative rounding of the value of an engine that does not say otherwise."""

FLATTER = 0.9
"""A step at the same level must lower the size of the slope along it by this factor."""

SLOW, FAR, RENEWALS = 0.2, 1e-7, 8
"""Where a step lowers the largest derivative by less than the factor SLOW, and the value by more
than the part FAR, the Hessian is taken anew, RENEWALS times at most. Nearer to the end pairs of
steps know more than a sample: a direction that it leaves open has another curvature on all rows."""

CUT_DAMPING = 0.01
"""Damping of the next Hessian after a step that was too long; whole steps lower it."""

MOST_STEPS = 50
"""Steps on all rows: what more of them find is far below what the rows leave open."""

PAIRS = 60
STALLS, PATIENCE = 2, 12


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
        limit = min(max_iter, self.budget.max_iter or MOST_STEPS)
        everywhere = self.function(draft, smoothing, draft.free)
        quick = getattr(self.problem.rows, "quick", False) and not self.problem.bounds.finite
        if quick:  # steps on all rows cost less than elsewhere
            few = self.few.on(draft)
            return self._descend(everywhere, draft, few, smoothing, limit, decrease, tol)
        draft, _, _ = self.few.descend(draft, smoothing, NEAR_STEPS, NEAR_DECREASE)
        if self.problem.bounds.finite:
            box = vector_bounds(draft, self.problem.bounds)
            end = bounded_descent(
                everywhere, draft.vector, draft.free, box, self.few.check, limit, decrease, tol
            )
            self.steps += end.steps
            return draft.moved_to(end.x), end.value, end.over
        few, middle = self.few.on(draft), self._middle(draft)
        near = over_field(draft, middle, smoothing, draft.free)
        curved = few if len(middle.weights) * int(draft.free.sum()) ** 2 > COSTLY else middle
        if len(middle.weights) >= self.n_rows:
            return self._descend(near, draft, curved, smoothing, limit, decrease, tol)
        if middle.weights is not self.few.field.weights:
            rough = max(decrease, MIDDLE_DECREASE)
            draft, _, _ = self._descend(near, draft, few, smoothing, limit, rough, 0.0)
        return self._descend(everywhere, draft, curved, smoothing, limit, decrease, tol)

    def _middle(self, draft: Draft) -> Field:
        """A sample of the rows of the columns of a draft, standardised."""
        rows, columns = with_columns(self.problem.rows, draft.columns)
        samples = rows.sample(MIDDLE_ROWS).with_totals(self.problem.rows.class_totals)
        if samples.n_rows <= self.few.n_rows:
            return self.few.on(draft)
        unit = self.problem.steepness / self.problem.n_features
        features = unit * (samples.features[columns].astype(float, copy=False) - 0.5)
        return self.few.field._replace(
            features=features, starts=samples.starts, weights=samples.weights
        )

    def _descend(
        self,
        function: Function,
        draft: Draft,
        sample: Field,
        smoothing: Smoothing,
        max_iter: int,
        decrease: float,
        tol: float,
    ) -> tuple[Draft, float, bool]:
        """A descent of a function whose curvature is that on a sample."""
        free, x = np.flatnonzero(draft.free), draft.vector
        curved = len(free) <= MOST_NUMBERS
        model, far, renewals, stalled, damping = Model(), True, RENEWALS, 0, 0.0
        value, gradient = function(x)
        steep = steepest = _largest(gradient)
        least = min(1.0, float(sample.weights.sum()))
        for _ in range(max_iter):
            if steep <= tol:
                return draft.moved_to(x), value, True
            if curved and renewals and far:
                here = hessian(draft.moved_to(x), sample, smoothing.ridge)
                model, renewals = Model(_inverse(here, damping)), renewals - 1
            steepest = min(steepest, steep)
            step = self._step(function, x, free, value, gradient, model)
            self.steps += 1
            if step is None:
                if not model.pairs or self.budget.exhausted:
                    return draft.moved_to(x), value, not self.budget.exhausted
                model.pairs.clear()
                continue
            moved, new, fresh, whole = step
            damping = 0.1 * damping if whole else max(4.0 * damping, CUT_DAMPING)
            model.learn((moved - x)[free], (fresh - gradient)[free])
            fall = value - new
            small = fall <= max(decrease, self._rounding) * max(abs(new), least)
            x, value, gradient, steep = moved, new, fresh, _largest(fresh)
            far = fall > max(FAR, self._rounding) * abs(new) and steep > SLOW * steepest
            nearer = tol > 0.0 and steep <= 0.5 * steepest
            stalled = stalled + 1 if small and not nearer else 0
            if stalled >= (PATIENCE if tol > 0.0 else STALLS):
                return draft.moved_to(x), value, True
        return draft.moved_to(x), value, False

    def _step(
        self,
        function: Function,
        x: FloatArray,
        free: NDArray[np.intp],
        value: float,
        gradient: FloatArray,
        model: Model,
    ) -> tuple[FloatArray, float, FloatArray, bool] | None:
        """A point further down with its value and derivative, and whether the step was a whole one;
        None if there is none, or no time."""
        direction = np.zeros_like(x)
        direction[free] = model.direction(gradient[free])
        fall = float(gradient @ direction)
        if not fall < 0.0:
            model.pairs.clear()
            direction[free] = model.direction(gradient[free])
            fall = float(gradient @ direction)
        length = 1.0
        if model.inverse is None and not model.pairs:
            length = min(1.0, FIRST_MOVE / max(_largest(direction), 1e-300))
        for _ in range(MAX_CUTS):
            if self.budget.exhausted:
                return None
            moved = x + length * direction
            new, fresh = function(moved)
            level = new <= value + self._rounding * abs(value)
            flatter = abs(float(fresh @ direction)) <= FLATTER * abs(fall)
            if new <= value + SUFFICIENT * length * fall or (level and flatter):
                return moved, new, fresh, length == 1.0
            length *= shorter(value, new, length * fall)
        return None


@dataclass
class Model:
    """What a descent knows of the curvature: an inverse to begin from, and pairs of steps."""

    inverse: FloatArray | None = None
    pairs: list[tuple[FloatArray, FloatArray, float]] = field(default_factory=list)

    def direction(self, gradient: FloatArray) -> FloatArray:
        """Minus the inverse Hessian estimate times the gradient."""
        found, shares = -gradient, []
        for step, change, curvature in reversed(self.pairs):
            shares.append(float(step @ found) / curvature)
            found = found - shares[-1] * change
        if self.inverse is not None:
            found = self.inverse @ found
        elif self.pairs:
            _, change, curvature = self.pairs[-1]
            found = found * (curvature / float(change @ change))
        for (step, change, curvature), share in zip(self.pairs, reversed(shares), strict=True):
            found = found + (share - float(change @ found) / curvature) * step
        return found

    def learn(self, step: FloatArray, change: FloatArray) -> None:
        """Keep a pair if it shows positive curvature."""
        curvature = float(step @ change)
        if curvature > 1e-10 * np.sqrt(float(step @ step) * float(change @ change)):
            self.pairs = [*self.pairs, (step, change, curvature)][-PAIRS:]


def _inverse(matrix: FloatArray, damping: float) -> FloatArray:
    """(|matrix| + damping)^-1 in units in which its diagonal is one: leaves that few rows reach
    have a curvature of their own, which is no flatness."""
    sizes = np.abs(np.diag(matrix))
    units = 1.0 / np.sqrt(np.maximum(sizes, 1e-14 * np.max(sizes, initial=1e-300)))
    return np.outer(units, units) * inverse_size(matrix * np.outer(units, units), FLAT, damping)


def _largest(vector: FloatArray) -> float:
    return float(np.max(np.abs(vector), initial=0.0))
