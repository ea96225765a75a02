"""Log-loss under any penalty of the library: spectral proximal gradient steps, then the face.

With f the smooth log-loss of objective.py and g the penalties, a step is

    x+ = prox_{g / alpha}(x - grad f(x) / alpha),    alpha from the last step and change of gradient

(Barzilai and Borwein), accepted if f + g falls below the largest of its last LOOK_BACK values. The
prox is exact, so that zeros are, and maxima of a row are tied. At the end L-BFGS runs on the face
that was found: zeros stay zero, tied entries move together, and everything else is smooth there.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from softsplit.problem.penalties import PenaltyPair
from softsplit.solvers.likelihood.descent import Smoothing
from softsplit.solvers.likelihood.draft import Draft
from softsplit.solvers.likelihood.objective import value_and_gradient
from softsplit.solvers.likelihood.search import Descents, OutOfBudget
from softsplit.support.arrays import FloatArray

STEPS = 500
LOOK_BACK = 8
SUFFICIENT = 1e-4
GENTLEST, STEEPEST = 1e-8, 1e12
FACE_STEPS = 1000
LOOK_EVERY = 20
"""Steps between two looks at the clock."""

NEGLIGIBLE = 1e-7
"""Weights below this, in log-odds per unit, are zero: those that cost nothing but their ridge, in
a branch that decides nothing, come near to it and never there."""

TIE = 1e-6
"""Entries of a row this close to its maximum, relative to it, are tied."""


class Penalised:
    """f + g over all columns of a draft."""

    def __init__(
        self, descents: Descents, draft: Draft, penalties: PenaltyPair, ridge: float
    ) -> None:
        self.descents, self.draft, self.penalties = descents, draft, penalties
        self.smoothing = Smoothing(ridge)
        self.field = descents.on(draft)
        n_branches, n_classes = draft.shape
        self._free = np.ones(len(draft.vector), dtype=bool)
        self._scores = np.empty((n_branches, self.field.features.shape[1]))
        self._mass = np.empty((n_classes, n_branches + 1))

    def smooth(self, x: FloatArray) -> tuple[float, FloatArray]:
        """f and its derivative."""
        gradient = np.empty_like(x)
        value = value_and_gradient(
            x, self.field, self.smoothing, self._free, gradient, self._scores, self._mass
        )
        return float(value), gradient

    def weights(self, x: FloatArray) -> FloatArray:
        """The weights of a point, (n_features, n_branches); a view."""
        shape = self.draft.splits.shape
        view: FloatArray = x[: self.draft.splits.size].reshape(shape)[:, :-1].T
        return view

    def sparse(self, x: FloatArray) -> float:
        """g."""
        return self.penalties.value(self.weights(x))

    def _prox(self, x: FloatArray, step: float) -> FloatArray:
        moved = x.copy()
        shrunk = self.penalties.prox(np.ascontiguousarray(self.weights(x)), step, np.inf)
        self.weights(moved)[...] = shrunk
        return moved

    def descend(self, max_iter: int, tol: float) -> tuple[Draft, bool]:
        """Where the steps lead, and whether they ended by themselves."""
        x = self.draft.vector
        value, gradient = self.smooth(x)
        past = deque([value + self.sparse(x)], maxlen=LOOK_BACK)
        alpha = max(float(np.max(np.abs(gradient))) / 0.2, GENTLEST)
        lowest, best, over = past[0], x, False
        for step in range(max_iter):
            if step % LOOK_EVERY == 0 and self.descents.budget.exhausted:
                raise OutOfBudget
            moved = self._prox(x - gradient / alpha, 1.0 / alpha)
            change = moved - x
            new, fresh = self.smooth(moved)
            total = new + self.sparse(moved)
            size = float(change @ change)
            if total > max(past) - 0.5 * SUFFICIENT * alpha * size and alpha < STEEPEST:
                alpha = min(4.0 * alpha, STEEPEST)
                continue
            curvature = float(change @ (fresh - gradient))
            over = float(np.max(np.abs(change), initial=0.0)) * max(alpha, 1.0) <= tol
            x, value, gradient = moved, new, fresh
            past.append(total)
            if total < lowest:
                lowest, best = total, x
            self.descents.steps += 1
            if over or size == 0:
                break
            alpha = min(max(curvature / size, GENTLEST), STEEPEST)
        return self._with_zeros(self._on_face(best, tol)), over

    def _with_zeros(self, x: FloatArray) -> Draft:
        found = self.draft.moved_to(x)
        weights = found.splits[:, :-1]
        weights[np.abs(weights) < NEGLIGIBLE] = 0.0
        return Draft(
            found.splits, found.log_odds, found.columns, found.splits[:, :-1] != 0, found.open
        )

    def _on_face(self, x: FloatArray, tol: float) -> FloatArray:
        """L-BFGS on the face of ``x``; ``x`` itself if that leads out of it or not down."""
        owner, signs = self._face(x)
        n_variables = int(owner.max(initial=-1)) + 1
        moving = owner >= 0

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

        start = np.zeros(n_variables)
        start[owner[moving]] = signs[moving] * x[moving]
        options = {"maxiter": FACE_STEPS, "gtol": 0.1 * tol, "ftol": 0.0, "maxcor": 20}
        found = minimize(total, start, jac=True, method="L-BFGS-B", options=options)
        self.descents.steps += int(found.nit)
        point = spread(found.x)
        same = np.array_equal(np.sign(self.weights(point)), np.sign(self.weights(x)))
        better = self.smooth(point)[0] + self.sparse(point) <= self.smooth(x)[0] + self.sparse(x)
        return point if same and better and np.array_equal(self._face(point)[0], owner) else x

    def _face(self, x: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
        """The variable that each number follows (-1: it stays), and with which sign."""
        owner, signs = np.arange(len(x)), np.ones(len(x))
        numbers = owner[: self.draft.splits.size].reshape(self.draft.splits.shape)[:, :-1].T
        weights = self.weights(x)
        sizes = np.abs(weights)
        fixed = np.zeros(len(x), dtype=bool)
        if self.penalties.local.strength > 0:
            fixed[numbers[sizes == 0]] = True
        if self.penalties.global_.strength > 0:
            top = sizes.max(axis=1)
            fixed[numbers[top == 0]] = True
            for j in np.flatnonzero(top > 0):
                tied = np.flatnonzero(sizes[j] >= top[j] * (1.0 - TIE))
                owner[numbers[j, tied]] = numbers[j, tied[0]]
                signs[numbers[j, tied]] = np.sign(weights[j, tied])
        owner[fixed] = -1
        used = np.unique(owner[owner >= 0])
        renumbered = np.full(len(x) + 1, -1)
        renumbered[used] = np.arange(len(used))
        return renumbered[owner], signs
