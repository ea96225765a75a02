"""Log-loss under any penalty of the library: spectral proximal gradient steps, then the face.

With f the smooth log-loss of objective.py and g the penalties, a step is

    x+ = prox_{g / alpha}(x - grad f(x) / alpha),    alpha from the last step and change of gradient

(Barzilai and Borwein), accepted if f + g falls below the largest of its last LOOK_BACK values. The
prox is exact, so that zeros are, and maxima of a row are tied. Then L-BFGS runs on the face that
was found, and Newton steps after it: zeros stay zero, tied entries move together, and everything
else is smooth there. Where that leads to the edge of the face proximal steps look for another one,
until the first-order conditions hold. Terms of class rates (rates.py) are part of f.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from softsplit.problem.penalties import PenaltyPair
from softsplit.solvers.elimination.bounded import vector_bounds
from softsplit.solvers.elimination.descent import Smoothing
from softsplit.solvers.elimination.newton import affordable, newton_steps, of_numbers
from softsplit.solvers.elimination.race import OutOfBudget, Whole
from softsplit.solvers.elimination.rates import RateTerms
from softsplit.solvers.elimination.support_tree import Draft
from softsplit.support.arrays import FloatArray

STEPS, LATER_STEPS = 500, 100
"""Proximal steps of the first round, and of each later one."""

ROUNDS = 12
LOOK_BACK = 8
SUFFICIENT = 1e-4
GENTLEST, STEEPEST = 1e-8, 1e12
FACE_STEPS = 1000
LOOK_EVERY = 20
"""Evaluations between two looks at the clock."""

NEGLIGIBLE = 1e-7
"""Weights below this, in log-odds per unit, are zero: those that cost nothing but their ridge, in
a branch that decides nothing, come near to it and never there."""

TIE = 1e-6
"""Entries of a row this close to its maximum, relative to it, are tied."""

STALLED = 1e-14
"""A round that lowers the function by less than this part of it is the last."""


class Penalised:
    """f + g over all columns of a draft, or with ``support`` over the coefficients it has.

    Attributes
    ----------
    best : array
        The lowest point so far, also where the budget has ended.
    """

    def __init__(
        self,
        descents: Whole,
        draft: Draft,
        penalties: PenaltyPair,
        ridge: float,
        *,
        rates: RateTerms | None = None,
        support: bool = False,
    ) -> None:
        self.descents, self.draft, self.penalties = descents, draft, penalties
        self.smoothing, self.rates = Smoothing(ridge), rates
        self.best = draft.vector
        self._free = draft.free if support else np.ones(len(self.best), dtype=bool)
        self._function = descents.function(draft, self.smoothing, self._free)
        self._calls = 0
        bounds = descents.problem.bounds
        self._bounds = bounds.restrict(draft.columns) if bounds.finite else bounds

    def smooth(self, x: FloatArray) -> tuple[float, FloatArray]:
        """f and its derivative."""
        self._calls += 1
        if self._calls % LOOK_EVERY == 0 and self.descents.budget.exhausted:
            raise OutOfBudget
        value, gradient = self._function(x)
        if self.rates is not None:
            value += self.rates.add(x, gradient)
            gradient[~self._free] = 0.0
        return value, gradient

    def weights(self, x: FloatArray) -> FloatArray:
        """The weights of a point, (n_features, n_branches); a view."""
        shape = self.draft.splits.shape
        view: FloatArray = x[: self.draft.splits.size].reshape(shape)[:, :-1].T
        return view

    def sparse(self, x: FloatArray) -> float:
        """g."""
        return self.penalties.value(self.weights(x))

    def descend(
        self, max_iter: int | None, tol: float, *, tight: bool = True
    ) -> tuple[Draft, bool]:
        """Where the steps lead, and whether the first-order conditions hold to ``tol`` there.

        Without ``tight`` there is one round. Where the budget ends it is the lowest point so far.
        """
        try:
            over = self._rounds(max_iter, tol, tight)
        except OutOfBudget:
            over = False
        return self._with_zeros(self.best), over

    def _rounds(self, max_iter: int | None, tol: float, tight: bool) -> bool:
        left, over = max_iter or STEPS + ROUNDS * LATER_STEPS, False
        for number in range(ROUNDS if tight else 1):
            before = self._total(self.best)
            steps = min(left, STEPS if number == 0 else LATER_STEPS)
            if any(self.penalties.strengths):  # without a penalty there is one face, the space
                self._proximal_steps(steps, tol)
            left -= steps
            if max_iter is None or left > 0:
                self._on_face(tol, tight)
            over = self.residual(self.best) <= tol
            stalled = before - self._total(self.best) <= STALLED * abs(before)
            if over or left <= 0 or (stalled and number > 1):
                break
        return over

    def _total(self, x: FloatArray) -> float:
        return self.smooth(x)[0] + self.sparse(x)

    def residual(self, x: FloatArray) -> float:
        """Largest residual of the first-order conditions, in the units of the problem."""
        _, gradient = self.smooth(x)
        splits = gradient[: self.draft.splits.size].reshape(self.draft.splits.shape)
        weights = np.ascontiguousarray(self.weights(x))
        wanted = weights - self.weights(gradient)
        stepped = self.penalties.linearised_prox(wanted, weights, bound=self._sizes(wanted))
        if self._bounds.finite:
            stepped = self._bounds.project(stepped)
        moved = np.max(np.abs(stepped - weights), initial=0.0)
        by_threshold = self.descents.problem.steepness * np.max(np.abs(splits[:, -1]), initial=0.0)
        return float(max(moved, by_threshold, np.max(np.abs(gradient[splits.size :]))))

    def _proximal_steps(self, max_iter: int, tol: float) -> None:
        x = self.best
        value, gradient = self.smooth(x)
        past = deque([value + self.sparse(x)], maxlen=LOOK_BACK)
        alpha = max(float(np.max(np.abs(gradient))) / 0.2, GENTLEST)
        lowest = past[0]
        for _ in range(max_iter):
            moved = self._prox(x - gradient / alpha, 1.0 / alpha)
            change = moved - x
            new, fresh = self.smooth(moved)
            total = new + self.sparse(moved)
            size = float(change @ change)
            if total > max(past) - 0.5 * SUFFICIENT * alpha * size and alpha < STEEPEST:
                alpha = min(4.0 * alpha, STEEPEST)
                continue
            curvature = float(change @ (fresh - gradient))
            small = float(np.max(np.abs(change), initial=0.0)) * max(alpha, 1.0) <= tol
            x, value, gradient = moved, new, fresh
            past.append(total)
            if total < lowest:
                lowest, self.best = total, x
            self.descents.steps += 1
            if small or size == 0:
                break
            alpha = min(max(curvature / size, GENTLEST), STEEPEST)

    def _prox(self, x: FloatArray, step: float) -> FloatArray:
        moved = x.copy()
        wanted = np.ascontiguousarray(self.weights(x))
        self.weights(moved)[...] = self.penalties.prox(wanted, step, self._sizes(wanted))
        return moved

    def _sizes(self, wanted: FloatArray) -> FloatArray | float:
        """The largest sizes of weights with the signs of ``wanted``."""
        return self._bounds.largest_sizes(wanted)

    def _with_zeros(self, x: FloatArray) -> Draft:
        found = self.draft.moved_to(x)
        weights = found.splits[:, :-1]
        weights[np.abs(weights) < NEGLIGIBLE] = 0.0
        return Draft(
            found.splits, found.log_odds, found.columns, found.splits[:, :-1] != 0, found.open
        )

    def _on_face(self, tol: float, tight: bool) -> None:
        """L-BFGS and Newton steps on the face of the best point; a better one is kept."""
        x = self.best
        owner, signs, bounded = self._face(x)
        moving = np.flatnonzero(owner >= 0)
        n_variables = int(owner.max(initial=-1)) + 1

        def spread(values: FloatArray) -> FloatArray:
            point = x.copy()
            point[moving] = signs[moving] * values[owner[moving]]
            return point

        def total(values: FloatArray) -> tuple[float, FloatArray]:
            if self.descents.budget.exhausted:
                raise OutOfBudget
            point = spread(values)
            value, gradient = self.smooth(point)
            self.weights(gradient)[...] += self.penalties.gradient(self.weights(point))
            gathered = np.zeros(n_variables)
            np.add.at(gathered, owner[moving], signs[moving] * gradient[moving])
            return value + self.sparse(point), gathered

        start, least = np.zeros(n_variables), np.full(n_variables, -np.inf)
        start[owner[moving]] = signs[moving] * x[moving]
        least[owner[moving[bounded[moving]]]] = 0.0  # at zero a coefficient leaves the face
        most = np.full(n_variables, np.inf)
        if self._bounds.finite:
            low, high = vector_bounds(self.draft, self.descents.problem.bounds)
            flipped = signs[moving] < 0
            np.maximum.at(least, owner[moving], np.where(flipped, -high[moving], low[moving]))
            np.minimum.at(most, owner[moving], np.where(flipped, -low[moving], high[moving]))
            start = np.clip(start, least, most)
        lowest = self._total(x)
        options = {"maxiter": FACE_STEPS, "gtol": 0.1 * tol, "ftol": 0.0, "maxcor": 20}
        bounds = np.column_stack([least, most])
        found = minimize(total, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        self.descents.steps += int(found.nit)
        if found.fun <= lowest:
            self.best, start, lowest = spread(found.x), found.x, float(found.fun)
        inside = bool(np.all(start[least == 0.0] > 0.0)) or self._bounds.finite
        n_branches, n_rows = len(self.draft.splits), self.descents.n_rows
        if not tight or not inside or not affordable(n_variables, n_rows, n_branches):
            return
        small = 0.5 * tol / max(self.descents.problem.steepness, 1.0)
        moves = np.flatnonzero((start > least) & (start < most))  # others stay at their bounds
        sharp = start.copy()
        sharp[moves] = newton_steps(of_numbers(start, moves, total), start[moves], small)
        within = np.all((sharp >= least) & (sharp <= most)) and np.all(sharp[moves] > least[moves])
        if within and total(sharp)[0] <= lowest + 1e-12 * abs(lowest):
            self.best = spread(sharp)

    def _face(self, x: FloatArray) -> tuple[NDArray[np.int64], FloatArray, NDArray[np.bool_]]:
        """The variable that each number follows (-1: it stays), its sign, and whether that stays.

        The sign stays where a penalty has a kink at zero.
        """
        owner, signs = np.arange(len(x)), np.ones(len(x))
        shape = self.draft.splits.shape
        numbers = np.arange(self.draft.splits.size).reshape(shape)[:, :-1].T
        weights = self.weights(x)
        sizes = np.abs(weights)
        fixed, bounded = ~self._free, np.zeros(len(x), dtype=bool)
        if self.penalties.local.strength > 0:
            fixed[numbers[sizes == 0]] = True
            bounded[numbers[sizes > 0]] = True
        if self.penalties.global_.strength > 0:
            groups = self.penalties.global_.groups
            homes = np.arange(len(sizes)) if groups is None else groups.of
            top = np.zeros(int(homes.max()) + 1)
            np.maximum.at(top, homes, sizes.max(axis=1))
            fixed[numbers[top[homes] == 0]] = True
            tied = (sizes >= top[homes][:, None] * (1.0 - TIE)) & (top[homes] > 0)[:, None]
            lines, branches = np.nonzero(tied)
            first = np.full(len(top), len(x))
            np.minimum.at(first, homes[lines], numbers[lines, branches])
            owner[numbers[lines, branches]] = first[homes[lines]]
            bounded[numbers[lines, branches]] = True
        signs[numbers[weights < 0]] = -1.0
        signs[~bounded] = 1.0
        owner[fixed] = -1
        used = np.unique(owner[owner >= 0])
        renumbered = np.full(len(x) + 1, -1)
        renumbered[used] = np.arange(len(used))
        return renumbered[owner], signs, bounded
