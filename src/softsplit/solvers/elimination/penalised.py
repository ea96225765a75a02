"""The log-loss under any penalty of the library.

With f the smooth log-loss of objective.py and g the penalties, a proximal gradient
step is

    x+ = prox_{g / alpha}(x - grad f(x) / alpha)

with the spectral step parameter alpha of Barzilai and Borwein (1988) from the last step and change
of gradient, accepted if f + g falls below the largest of its last ``look_back`` values (SpaRSA:
Wright, Nowak and Figueiredo 2009). The prox is exact, so that zeros are, and maxima of a row are
tied. Then L-BFGS-B runs on the *face* that was found, and Newton steps after it: zeros stay zero,
tied entries move together, and everything else is smooth there. Where that leads to the edge of the
face, proximal steps look for another one, until the first-order conditions hold.

Further smooth terms of f may be given, as those of rates are (rated_descents.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from softsplit.problem.penalties import PenaltyPair
from softsplit.solvers.base import OutOfBudget
from softsplit.solvers.elimination.descents import AllRows
from softsplit.solvers.elimination.objective import Shrinkage
from softsplit.solvers.elimination.second_order import (
    differenced_hessian,
    newton_affordable,
    newton_descent,
    of_parameters,
)
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.support.arrays import FloatArray

STEPS, LATER_STEPS, ROUNDS = 500, 100, 12
"""Proximal steps of the first round, of each later one, and the most rounds."""

LEAST_ALPHA, MOST_ALPHA = 1e-8, 1e12
"""Range of the spectral step parameter."""


class Penalised:
    """f + g over all columns of a tree, with ``terms(x, gradient)`` added to f if there are any.

    Attributes
    ----------
    best : array
        The lowest point so far, also where the budget has ended.
    """

    def __init__(
        self,
        rows: AllRows,
        tree: SupportTree,
        penalties: PenaltyPair,
        ridge: float,
        terms: Callable[[FloatArray, FloatArray], float] | None = None,
    ) -> None:
        self.rows, self.tree, self.penalties = rows, tree, penalties
        self.shrinkage, self.terms = Shrinkage(ridge), terms
        self.best = tree.vector
        every = np.ones(len(self.best), dtype=bool)
        self._function = rows.function(tree, self.shrinkage, every)
        self._calls = 0
        bounds = rows.problem.bounds
        self._bounds = bounds.restrict(tree.columns) if bounds.finite else bounds

    def smooth(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return f at ``x`` and its gradient."""
        self._calls += 1
        if self._calls % 20 == 0:
            self.rows.budget.check()
        value, gradient = self._function(x)
        if self.terms is not None:
            value += self.terms(x, gradient)
        return value, gradient

    def weights(self, x: FloatArray) -> FloatArray:
        """Return a view of the weights of ``x``, (n_features, n_branches)."""
        shape = self.tree.splits.shape
        return x[: self.tree.splits.size].reshape(shape)[:, :-1].T

    def sparse(self, x: FloatArray) -> float:
        """Return g at ``x``."""
        return self.penalties.value(self.weights(x))

    def descend(
        self, max_iter: int | None, tol: float, *, tight: bool = True
    ) -> tuple[SupportTree, bool]:
        """Return the tree at the end, and whether the first-order conditions hold to ``tol`` there.

        Without ``tight`` there is one round. If the budget ends, the tree is the lowest so far.
        """
        try:
            over = self._rounds(max_iter, tol, tight)
        except OutOfBudget:
            over = False
        return self._with_zeros(self.best), over

    def _rounds(self, max_iter: int | None, tol: float, tight: bool) -> bool:
        over = False
        left = max_iter or STEPS + ROUNDS * LATER_STEPS
        for number in range(ROUNDS if tight else 1):
            before = self._total(self.best)
            steps = min(left, LATER_STEPS if number else STEPS)
            self._proximal_steps(steps, tol)
            left -= steps
            if max_iter is None or left > 0:
                self._on_face(tol, tight)
            over = self.residual(self.best) <= tol
            stalled = before - self._total(self.best) <= 1e-14 * abs(before)
            if over or left <= 0 or (stalled and number > 1):
                break
        return over

    def _total(self, x: FloatArray) -> float:
        return self.smooth(x)[0] + self.sparse(x)

    def residual(self, x: FloatArray) -> float:
        """Return the largest residual of the first-order conditions, in units of the problem."""
        _, gradient = self.smooth(x)
        splits = gradient[: self.tree.splits.size].reshape(self.tree.splits.shape)
        weights = np.ascontiguousarray(self.weights(x))
        wanted = weights - self.weights(gradient)
        stepped = self.penalties.linearised_prox(wanted, weights, bound=self._sizes(wanted))
        if self._bounds.finite:
            stepped = self._bounds.project(stepped)
        moved = np.max(np.abs(stepped - weights), initial=0.0)
        by_threshold = self.rows.problem.steepness * np.max(np.abs(splits[:, -1]), initial=0.0)
        return float(max(moved, by_threshold, np.max(np.abs(gradient[splits.size :]))))

    def _proximal_steps(self, max_iter: int, tol: float) -> None:
        """Take spectral proximal gradient steps from the best point."""
        x = self.best
        value, gradient = self.smooth(x)
        past = deque([value + self.sparse(x)], maxlen=8)
        alpha = max(float(np.max(np.abs(gradient))) / 0.2, LEAST_ALPHA)
        lowest = past[0]
        for _ in range(max_iter):
            # 1. A proximal gradient step.
            moved = self._prox(x - gradient / alpha, 1.0 / alpha)
            change = moved - x
            new, fresh = self.smooth(moved)
            total = new + self.sparse(moved)
            size = float(change @ change)
            # 2. It must be lower than the largest of the last values, or is shortened.
            enough = max(past) - 0.5 * 1e-4 * alpha * size
            if total > enough and alpha < MOST_ALPHA:
                alpha = min(4.0 * alpha, MOST_ALPHA)
                continue
            # 3. The step is taken; the best point is kept.
            curvature = float(change @ (fresh - gradient))
            small = float(np.max(np.abs(change), initial=0.0)) * max(alpha, 1.0) <= tol
            x, value, gradient = moved, new, fresh
            past.append(total)
            if total < lowest:
                lowest, self.best = total, x
            self.rows.steps += 1
            if small or size == 0:
                break
            # 4. Barzilai and Borwein: alpha = s.y / s.s
            alpha = min(max(curvature / size, LEAST_ALPHA), MOST_ALPHA)

    def _prox(self, x: FloatArray, step: float) -> FloatArray:
        moved = x.copy()
        wanted = np.ascontiguousarray(self.weights(x))
        self.weights(moved)[...] = self.penalties.prox(wanted, step, self._sizes(wanted))
        return moved

    def _sizes(self, wanted: FloatArray) -> FloatArray | float:
        """The largest sizes of weights with the signs of ``wanted``."""
        return self._bounds.largest_sizes(wanted)

    def _with_zeros(self, x: FloatArray) -> SupportTree:
        found = self.tree.moved_to(x)
        weights = found.splits[:, :-1]
        weights[np.abs(weights) < 1e-7] = 0.0
        support = found.splits[:, :-1] != 0
        return SupportTree(found.splits, found.log_odds, found.columns, support, found.saturated)

    def _on_face(self, tol: float, tight: bool) -> None:
        """Take L-BFGS-B and Newton steps on the face of the best point; keep a better one."""
        x = self.best
        owner, signs, bounded = self._face(x)
        moving = np.flatnonzero(owner >= 0)
        n_variables = int(owner.max(initial=-1)) + 1

        def spread(values: FloatArray) -> FloatArray:
            point = x.copy()
            point[moving] = signs[moving] * values[owner[moving]]
            return point

        def total(values: FloatArray) -> tuple[float, FloatArray]:
            self.rows.budget.check()
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
            low, high = self.tree.vector_bounds(self.rows.problem.bounds)
            flipped = signs[moving] < 0
            np.maximum.at(least, owner[moving], np.where(flipped, -high[moving], low[moving]))
            np.minimum.at(most, owner[moving], np.where(flipped, -low[moving], high[moving]))
            start = np.clip(start, least, most)
        lowest = self._total(x)
        options = {"maxiter": 1000, "gtol": 0.1 * tol, "ftol": 0.0, "maxcor": 20}
        bounds = np.column_stack([least, most])
        found = minimize(total, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        self.rows.steps += int(found.nit)
        if found.fun <= lowest:
            self.best, start, lowest = spread(found.x), found.x, float(found.fun)
        inside = bool(np.all(start[least == 0.0] > 0.0)) or self._bounds.finite
        n_branches, n_rows = len(self.tree.splits), self.rows.n_rows
        if not tight or not inside or not newton_affordable(n_variables, n_rows, n_branches):
            return
        small = 0.5 * tol / max(self.rows.problem.steepness, 1.0)
        index = np.flatnonzero((start > least) & (start < most))  # others stay at their bounds
        sharp, function = start.copy(), of_parameters(start, index, total)

        def curvature(values: FloatArray) -> FloatArray:
            sharp[index] = values
            found = self._hessian(spread(sharp), owner, signs)
            if found is None:
                return differenced_hessian(function, values)
            return found[np.ix_(index, index)]

        sharp[index] = newton_descent(function, curvature, start[index], small)
        within = np.all((sharp >= least) & (sharp <= most)) and np.all(sharp[index] > least[index])
        if within and total(sharp)[0] <= lowest + 1e-12 * abs(lowest):
            self.best = spread(sharp)

    def _hessian(
        self, x: FloatArray, owner: NDArray[np.int64], signs: FloatArray
    ) -> FloatArray | None:
        """Return the Hessian of f + g by the variables of a face; None where that of f is unknown.

        ``owner`` and ``signs`` are those of ``_face``.
        """
        tree, moving = self.tree.moved_to(x), owner >= 0
        splits = moving[: tree.splits.size].reshape(tree.splits.shape)
        tree = replace(tree, support=splits[:, :-1], saturated=~splits[:, -1])
        found = None if self.terms is not None else self.rows.hessian(tree, self.shrinkage.ridge)
        if found is None:
            return None
        # by the variables: parameters that are tied move together, with their signs
        matrix = np.zeros((owner.max() + 1, int(moving.sum())))
        np.add.at(matrix, (owner[moving], np.arange(matrix.shape[1])), signs[moving])
        found = matrix @ found @ matrix.T
        found[np.diag_indices_from(found)] += self._penalty_curvature(x, owner)
        return found

    def _penalty_curvature(self, x: FloatArray, owner: NDArray[np.int64]) -> FloatArray:
        """Return the second derivatives of g by the variables of a face: it is a sum over them."""
        found = np.zeros(owner.max() + 2)  # the last entry for what is fixed
        owners = owner[: self.tree.splits.size].reshape(self.tree.splits.shape)[:, :-1].T
        local, global_ = self.penalties.local, self.penalties.global_
        sizes = np.abs(self.weights(x))
        if local.strength > 0:
            np.add.at(found, owners, local.strength * local.surrogate.curvature(sizes))
        if global_.strength > 0:  # of a group only the largest entry counts
            group_of = np.arange(len(sizes)) if global_.groups is None else global_.groups.of
            largest, lines = sizes.argmax(axis=1), np.zeros(group_of.max() + 1, dtype=np.intp)
            order = np.argsort(sizes.max(axis=1), kind="stable")
            lines[group_of[order]] = order
            places = lines, largest[lines]
            curvatures = global_.strength * global_.surrogate.curvature(sizes[places])
            curvatures = curvatures if global_.prices is None else global_.prices * curvatures
            np.add.at(found, owners[places], curvatures)
        return found[:-1]

    def _face(self, x: FloatArray) -> tuple[NDArray[np.int64], FloatArray, NDArray[np.bool_]]:
        """Return the variable that each parameter follows (-1: it is fixed), its sign, and whether
        the sign is fixed, which it is where a penalty has a kink at zero."""
        owner, signs = np.arange(len(x)), np.ones(len(x))
        shape = self.tree.splits.shape
        numbers = np.arange(self.tree.splits.size).reshape(shape)[:, :-1].T
        weights = self.weights(x)
        sizes = np.abs(weights)
        fixed, bounded = np.zeros(len(x), dtype=bool), np.zeros(len(x), dtype=bool)
        if self.penalties.local.strength > 0:
            fixed[numbers[sizes == 0]] = True
            bounded[numbers[sizes > 0]] = True
        if self.penalties.global_.strength > 0:
            groups = self.penalties.global_.groups
            homes = np.arange(len(sizes)) if groups is None else groups.of
            top = np.zeros(int(homes.max()) + 1)
            np.maximum.at(top, homes, sizes.max(axis=1))
            fixed[numbers[top[homes] == 0]] = True
            tied = (sizes >= top[homes][:, None] * (1.0 - 1e-6)) & (top[homes] > 0)[:, None]
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
