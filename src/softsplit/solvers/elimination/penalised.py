"""The log-loss under any penalty of the library, and under minimum class rates.

**Penalties.** With f the smooth log-loss of objective.py and g the penalties, a proximal gradient
step is

    x+ = prox_{g / alpha}(x - grad f(x) / alpha)

with the spectral step parameter alpha of Barzilai and Borwein (1988) from the last step and change
of gradient, accepted if f + g falls below the largest of its last ``look_back`` values (SpaRSA:
Wright, Nowak and Figueiredo 2009). The prox is exact, so that zeros are, and maxima of a row are
tied. Then L-BFGS-B runs on the *face* that was found, and Newton steps after it: zeros stay zero,
tied entries move together, and everything else is smooth there. Where that leads to the edge of the
face, proximal steps look for another one, until the first-order conditions hold.

**Rates.** The expected rate of class k is the mean of V_i, the probability that the tree gives to
the class of row i, over its rows; other rates are those of any class on any rows
(problem/rates.py). Below a bound rho_k, f contains the terms

    sum_k (max(0, m_k + weight (rho_k - rate_k))^2 - m_k^2) / (2 weight)

and between descents m_k becomes max(0, m_k + weight (rho_k - rate_k)): an augmented Lagrangian
(Hestenes 1969, Powell 1969). Its multipliers are those of the certificate (problem/optimality.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from softsplit.engines.outer import IDENTITY
from softsplit.problem.leaves import RATE_SLACK
from softsplit.problem.penalties import PenaltyPair
from softsplit.problem.rates import RateLimits
from softsplit.solvers.base import OutOfBudget
from softsplit.solvers.elimination.bounded import OrderedCoordinates
from softsplit.solvers.elimination.descents import AllRows, EngineFunction
from softsplit.solvers.elimination.objective import GroupMasses, Shrinkage
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


class BoundedRates(Protocol):
    """Rates with lower bounds, as functions of the parameters x of trees of one shape."""

    def shortfalls(self, x: FloatArray) -> FloatArray:
        """Return bound less rate, (n_rates,): negative where a rate is above its bound."""

    def add(self, x: FloatArray, factors: FloatArray, gradient: FloatArray) -> None:
        """Add the derivative of sum_q factors_q rate_q to ``gradient``, at the x asked last."""

    def slopes(self, x: FloatArray) -> FloatArray:
        """Return the derivatives of all rates, (n_rates, n)."""

    def per_row(self, prices: FloatArray) -> FloatArray | None:
        """Return prices (n_groups,) with sum_q prices_q rate_q = sum_i weight_i price_{y_i} V_i.

        None if there are none.
        """


class GroupRates:
    """The minimum rates of the classes, of whose rows a tree gives the class V_i on the mean."""

    def __init__(self, masses: GroupMasses, minimum: FloatArray) -> None:
        self.masses, self.minimum = masses, minimum

    def shortfalls(self, x: FloatArray) -> FloatArray:
        self._leaves, self._mass = self.masses.at(x)
        rates = np.sum(self._mass * self._leaves, axis=1) / self.masses.totals
        found: FloatArray = self.minimum - rates
        return found

    def add(self, x: FloatArray, factors: FloatArray, gradient: FloatArray) -> None:
        per_row = factors / self.masses.totals
        by_split = gradient[: -self._leaves.size].reshape(self._leaves.shape[1] - 1, -1)
        self.masses.add(x, per_row, by_split)
        _add_by_log_odds(self._leaves, per_row[:, None] * self._mass, gradient)

    def slopes(self, x: FloatArray) -> FloatArray:
        return _slopes(self, x, np.eye(len(self.minimum)))

    def per_row(self, prices: FloatArray) -> FloatArray:
        found: FloatArray = prices / self.masses.totals
        return found


class CellRates:
    """The lines of ``RateLimits``: rates of any class on any rows."""

    def __init__(self, limits: RateLimits, function: EngineFunction) -> None:
        self.limits, self.function = limits, function

    def shortfalls(self, x: FloatArray) -> FloatArray:
        self._leaves, self._mass = self.function.at(x)
        return self.limits.shortfalls(self._mass @ self._leaves.T)

    def add(self, x: FloatArray, factors: FloatArray, gradient: FloatArray) -> None:
        self._add(x, self.limits.prices(factors), gradient)

    def slopes(self, x: FloatArray) -> FloatArray:
        """From those of the groups: there are more pairs of groups than groups."""
        self.shortfalls(x)
        found = np.zeros((len(self.limits.of_groups), len(x)))
        for prices, line in zip(self.limits.of_groups, found, strict=True):
            self._add(x, prices, line)
        return self.limits.signs @ found

    def _add(self, x: FloatArray, prices: FloatArray, gradient: FloatArray) -> None:
        """Add the derivative of sum_gk prices_gk J_gk."""
        if not np.any(prices):
            return
        by_split = gradient[: -self._leaves.size].reshape(self._leaves.shape[1] - 1, -1)
        splits = self.function.parts(x)[0]
        by_split += self.function.sums(splits, prices @ self._leaves, IDENTITY).splits
        _add_by_log_odds(self._leaves, prices.T @ self._mass, gradient)

    def per_row(self, prices: FloatArray) -> None:
        """Return None: a row has a price for every class."""


class AllRates:
    """Several ``BoundedRates``, one after the other."""

    def __init__(self, parts: Sequence[BoundedRates]) -> None:
        self.parts = parts
        self._ends: list[int] = []

    def shortfalls(self, x: FloatArray) -> FloatArray:
        found = [part.shortfalls(x) for part in self.parts]
        self._ends = np.cumsum([len(one) for one in found]).tolist()
        return np.concatenate(found)

    def add(self, x: FloatArray, factors: FloatArray, gradient: FloatArray) -> None:
        for part, own in zip(self.parts, np.split(factors, self._ends[:-1]), strict=True):
            part.add(x, own, gradient)

    def slopes(self, x: FloatArray) -> FloatArray:
        return np.vstack([part.slopes(x) for part in self.parts])

    def per_row(self, prices: FloatArray) -> None:
        """Return None, as of ``CellRates``."""


class OrderedRates:
    """``BoundedRates`` as functions of the coordinates of a monotone order, by its chain rule."""

    def __init__(self, rates: BoundedRates, chart: OrderedCoordinates) -> None:
        self.rates, self.chart = rates, chart

    def shortfalls(self, x: FloatArray) -> FloatArray:
        return self.rates.shortfalls(self.chart.vector(x))

    def add(self, x: FloatArray, factors: FloatArray, gradient: FloatArray) -> None:
        vector = self.chart.vector(x)
        own = np.zeros_like(vector)
        self.rates.add(vector, factors, own)
        gradient += self.chart.by_coordinates(x, own)

    def slopes(self, x: FloatArray) -> FloatArray:
        return self.chart.by_coordinates(x, self.rates.slopes(self.chart.vector(x)))

    def per_row(self, prices: FloatArray) -> None:
        """Return None: the chart has a curvature of its own."""


def _slopes(rates: BoundedRates, x: FloatArray, factors: FloatArray) -> FloatArray:
    """Derivatives of combinations of rates, one for each line of ``factors``."""
    rates.shortfalls(x)
    found = np.zeros((len(factors), len(x)))
    for one, line in zip(factors, found, strict=True):
        rates.add(x, one, line)
    return found


def _add_by_log_odds(leaves: FloatArray, by_share: FloatArray, gradient: FloatArray) -> None:
    """Add the derivative by the log-odds of the leaves, from that by their distributions."""
    mean = np.sum(leaves * by_share, axis=0)
    gradient[-leaves.size :] += (leaves * (by_share - mean)).ravel()


def rates_of(rows: AllRows, tree: SupportTree) -> BoundedRates:
    """Return all rates that the problem of ``rows`` bounds, for trees shaped like ``tree``."""
    problem, limits = rows.problem, rows.problem.rate_limits
    of_classes = GroupRates(rows.masses(tree), problem.minimum_rates)
    if limits is None:
        return of_classes
    others = CellRates(limits, EngineFunction(problem, tree, limits))
    return AllRates([of_classes, others] if np.any(problem.minimum_rates > 0) else [others])


class RateTerms:
    """The augmented Lagrangian terms of the rates, for trees of one shape.

    Attributes
    ----------
    multipliers : array (n_rates,)
    """

    def __init__(
        self,
        rates: BoundedRates,
        x: FloatArray,
        total: float,
    ) -> None:
        self.rates = rates
        self.multipliers = np.zeros(len(rates.shortfalls(x)))
        self._first = self._weight = 10.0 * total
        self._last = np.inf

    def shortfalls(self, x: FloatArray) -> FloatArray:
        """As of ``BoundedRates``."""
        return self.rates.shortfalls(x)

    def add(self, x: FloatArray, gradient: FloatArray) -> float:
        """Return the terms at ``x``; add their derivative to ``gradient``."""
        prices = self._prices(x)
        self.rates.add(x, -prices, gradient)
        return float(np.sum(prices**2 - self.multipliers**2)) / (2.0 * self._weight)

    def curvature(self, x: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return the parts of the Hessian of the terms, prices and root; None if unknown.

        It is that of - sum_i weight_i price_{y_i} V_i, plus root' root with root (n_rates, n).
        """
        prices = self._prices(x)
        per_row = self.rates.per_row(prices)
        if per_row is None:
            return None
        root = np.zeros((len(prices), len(x)))
        for k in np.flatnonzero(prices > 0.0):
            one = np.zeros(len(prices))
            one[k] = np.sqrt(self._weight)
            self.rates.add(x, one, root[k])
        return per_row, root

    def _prices(self, x: FloatArray) -> FloatArray:
        """max(0, m_k + weight (rho_k - rate_k)), the derivative of the terms by - rate_k.

        It is zero for a class without a minimum: a rate is never below zero.
        """
        short = self.rates.shortfalls(x)
        prices: FloatArray = np.maximum(0.0, self.multipliers + self._weight * short)
        return prices

    def hold(self, short: FloatArray, tol: float) -> bool:
        """Whether rates that lack ``short`` are met, and those with multipliers exactly."""
        return bool(np.max(short) <= RATE_SLACK and np.max(self.multipliers * np.abs(short)) <= tol)

    def update(self, x: FloatArray) -> None:
        """Update the multipliers at the end of a descent."""
        short = self.shortfalls(x)
        self.multipliers = np.maximum(0.0, self.multipliers + self._weight * short)
        worst = float(np.max(short))
        if worst > self._last / 4.0:
            self._weight = min(4.0 * self._weight, 1e6 * self._first)
        self._last = worst


class Penalised:
    """f + g over all columns of a tree, or with ``support`` over its support alone.

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
        *,
        rates: RateTerms | None = None,
        support: bool = False,
    ) -> None:
        self.rows, self.tree, self.penalties = rows, tree, penalties
        self.shrinkage, self.rates = Shrinkage(ridge), rates
        self.best = tree.vector
        self._free = tree.free if support else np.ones(len(self.best), dtype=bool)
        self._function = rows.function(tree, self.shrinkage, self._free)
        self._calls = 0
        bounds = rows.problem.bounds
        self._bounds = bounds.restrict(tree.columns) if bounds.finite else bounds

    def smooth(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return f at ``x`` and its gradient."""
        self._calls += 1
        if self._calls % 20 == 0 and self.rows.budget.exhausted:
            raise OutOfBudget
        value, gradient = self._function(x)
        if self.rates is not None:
            value += self.rates.add(x, gradient)
            gradient[~self._free] = 0.0
        return value, gradient

    def weights(self, x: FloatArray) -> FloatArray:
        """Return a view of the weights of ``x``, (n_features, n_branches)."""
        shape = self.tree.splits.shape
        view: FloatArray = x[: self.tree.splits.size].reshape(shape)[:, :-1].T
        return view

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
            if any(self.penalties.strengths):  # without a penalty there is one face, the space
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
            moved = self._prox(x - gradient / alpha, 1.0 / alpha)
            change = moved - x
            new, fresh = self.smooth(moved)
            total = new + self.sparse(moved)
            size = float(change @ change)
            enough = max(past) - 0.5 * 1e-4 * alpha * size
            if total > enough and alpha < MOST_ALPHA:
                alpha = min(4.0 * alpha, MOST_ALPHA)
                continue
            curvature = float(change @ (fresh - gradient))
            small = float(np.max(np.abs(change), initial=0.0)) * max(alpha, 1.0) <= tol
            x, value, gradient = moved, new, fresh
            past.append(total)
            if total < lowest:
                lowest, self.best = total, x
            self.rows.steps += 1
            if small or size == 0:
                break
            # Barzilai and Borwein: alpha = s.y / s.s
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
            if self.rows.budget.exhausted:
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
        prices, root = None, None
        if self.rates is not None:
            known = self.rates.curvature(x)
            if known is None:
                return None
            prices, root = known
        found = self.rows.hessian(tree, self.shrinkage.ridge, prices)
        if found is None:
            return None
        if root is not None:
            found = found + root[:, moving].T @ root[:, moving]
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
