"""Trees where rates hold: an augmented Lagrangian, and Newton steps on its conditions.

A problem may bound rates from below: how often the tree says a class on some rows
(problem/rates.py). With f the log-loss, or the log-loss with penalties, and what a rate lacks of
its bound written as short_q, a round

1. lowers  f + sum_q (max(0, m_q + weight short_q)^2 - m_q^2) / (2 weight),  by L-BFGS-B where f is
   smooth and by proximal steps under penalties (penalised.py);
2. sets m_q to max(0, m_q + weight short_q) (Hestenes 1969, Powell 1969), and raises the weight if
   rates come nearer too slowly;
3. where f is smooth, takes Newton steps on the first-order conditions in parameters and
   multipliers, which gain the last digits at once

until these conditions hold. The multipliers are those of the certificate (problem/optimality.py).

Within a monotone order all of it runs in the coordinates of bounded.py, in which the order is
bounds: with x(y) the vector of a tree and J its Jacobian, loss and rates have the derivatives J' d
by y, so that a tree at the end of a descent is in order and holds its rates.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from softsplit.engines.outer import IDENTITY
from softsplit.problem.leaves import RATE_SLACK, TINY_SHARE
from softsplit.problem.penalties import PenaltyPair
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.rates import RateLimits
from softsplit.solvers.base import OutOfBudget
from softsplit.solvers.elimination.bounded import Coordinates, bounded_descent, coordinates
from softsplit.solvers.elimination.descents import AllRows, EngineFunction
from softsplit.solvers.elimination.objective import Shrinkage
from softsplit.solvers.elimination.penalised import Penalised
from softsplit.solvers.elimination.second_order import differenced_hessian
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.support.arrays import FloatArray

ROUNDS = 25
"""Most rounds of descents and multipliers."""

FIRST_DECREASE = 1e-10
"""Relative decrease that ends the first descent; a hundredth of it the next, and so on: Newton
steps mostly finish what the first has begun."""

MOST_PARAMETERS = 300
"""With more free parameters no Newton steps are taken: each needs a Hessian by differences."""

FLAT = 1e-12
"""Curvature below this part of the total weight counts as none."""


# --- rates ----------------------------------------------------------------------------------------


def limits_of(problem: TrainingProblem) -> RateLimits:
    """All requirements on rates of a problem; the minimum rates of its classes come last."""
    limits = problem.rate_limits
    if limits is None:
        limits = RateLimits(problem.rows, np.arange(problem.n_groups), (), problem.n_groups)
    return limits.with_minimum(problem.minimum_rates)


class TreeRates:
    """The lines of ``limits_of``, as functions of coordinates of trees shaped like ``tree``."""

    def __init__(self, problem: TrainingProblem, tree: SupportTree, space: Coordinates) -> None:
        self.limits, self.space = limits_of(problem), space
        self.function = EngineFunction(problem, tree, self.limits)

    def shortfalls(self, x: FloatArray) -> FloatArray:
        """Return bound less rate, (n_rates,): negative where a rate is above its bound."""
        self._vector = self.space.vector(x)
        self._leaves, self._mass = self.function.masses(self._vector)
        return self.limits.shortfalls(self._mass @ self._leaves.T)

    def slope(self, x: FloatArray, factors: FloatArray) -> FloatArray:
        """Return the derivative of sum_q factors_q rate_q, at the x asked last."""
        return self.space.by_coordinates(x, self._by_vector(self.limits.prices(factors)))

    def slopes(self, x: FloatArray) -> FloatArray:
        """Return the derivatives of all rates, (n_rates, n).

        They come from those of the groups: there are more pairs of groups than groups.
        """
        self.shortfalls(x)
        of_groups = np.array([self._by_vector(prices) for prices in self.limits.of_groups])
        return self.space.by_coordinates(x, self.limits.signs @ of_groups)

    def _by_vector(self, prices: FloatArray) -> FloatArray:
        """The derivative of sum_gk prices_gk J_gk, by splits and by log-odds of leaves."""
        slope = np.zeros_like(self._vector)
        if not np.any(prices):
            return slope
        leaves, splits = self._leaves, self.function.parts(self._vector)[0]
        by_split = self.function.sums(splits, prices @ leaves, IDENTITY).splits
        by_share = prices.T @ self._mass
        slope[: splits.size] = by_split.ravel()
        slope[splits.size :] = (leaves * (by_share - np.sum(leaves * by_share, axis=0))).ravel()
        return slope


class RateTerms:
    """The terms of the rates in the augmented Lagrangian.

    Attributes
    ----------
    multipliers : array (n_rates,)
    """

    def __init__(self, rates: TreeRates, multipliers: FloatArray, total: float) -> None:
        self.rates, self.multipliers = rates, multipliers
        self._first = self._weight = 10.0 * total
        self._last = np.inf

    def __call__(self, x: FloatArray, gradient: FloatArray) -> float:
        """Return the terms at ``x``; add their derivative to ``gradient``."""
        prices = np.maximum(0.0, self.multipliers + self._weight * self.rates.shortfalls(x))
        gradient -= self.rates.slope(x, prices)
        return float(np.sum(prices**2 - self.multipliers**2)) / (2.0 * self._weight)

    def hold(self, short: FloatArray, tol: float) -> bool:
        """Whether rates that lack ``short`` are met, and those with multipliers exactly."""
        return bool(np.max(short) <= RATE_SLACK and np.max(self.multipliers * np.abs(short)) <= tol)

    def update(self, x: FloatArray) -> None:
        """Update the multipliers at the end of a descent."""
        short = self.rates.shortfalls(x)
        self.multipliers = np.maximum(0.0, self.multipliers + self._weight * short)
        worst = float(np.max(short))
        if worst > self._last / 4.0:
            self._weight = min(4.0 * self._weight, 1e6 * self._first)
        self._last = worst


# --- rounds ---------------------------------------------------------------------------------------


class RatedEnd(NamedTuple):
    """Where descents under rates have led.

    ``over``: rates and first-order conditions hold. ``multipliers`` are those of ``limits_of``.
    """

    tree: SupportTree
    over: bool
    multipliers: FloatArray


def with_rates(
    rows: AllRows, tree: SupportTree, penalties: PenaltyPair, ridge: float, tol: float
) -> RatedEnd:
    """Return ``tree`` where the rates of the problem of ``rows`` hold.

    Under ``penalties`` all its coefficients move, without any those of its support. A tree of rows
    elsewhere is led to the rates of a sample first; on all rows the last digits are left out.
    """
    problem, few = rows.problem, rows.sampled()
    total = float(problem.rows.group_totals.sum())
    multipliers = np.zeros(len(limits_of(problem)))
    known = False
    if few is not None:
        end = with_rates(few, tree, penalties, ridge, tol)
        if end.over and len(end.multipliers) == len(multipliers):
            tree, multipliers, known = end.tree, end.multipliers, True
        tol = max(tol, 1e-6 * total)
    function = rows.function(tree, Shrinkage(ridge), tree.free)
    space = coordinates(tree, function, tree.free, problem.bounds, problem.order)
    terms = RateTerms(TreeRates(problem, tree, space), multipliers, total)
    if problem.order is None and any(penalties.strengths):
        return _under_penalties(Penalised(rows, tree, penalties, ridge, terms), terms, tol)
    return _on_support(rows, tree, space, terms, tol, known)


def _on_support(
    rows: AllRows, tree: SupportTree, space: Coordinates, terms: RateTerms, tol: float, known: bool
) -> RatedEnd:
    """Return the end of the rounds over the support of ``tree``.

    ``known``: the multipliers are about right, so that the first descent is left out.
    """
    budget, steepness = rows.budget, rows.problem.steepness

    def augmented(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = space.function(x)
        value += terms(x, gradient)
        return value, np.where(space.free, gradient, 0.0)

    def residual_at(x: FloatArray) -> float:
        moved = np.abs(np.clip(x - augmented(x)[1], *space.box) - x)
        moved[: tree.splits.size].reshape(tree.splits.shape)[:, -1] *= steepness
        return float(np.max(moved, initial=0.0))

    x, over, worst, residual = space.begun, False, [np.inf] * 8, np.inf
    with suppress(OutOfBudget):
        for number in range(ROUNDS):
            # 1. a descent, 2. multipliers
            if number or not known:
                decrease = max(FIRST_DECREASE * 0.01**number, 1e-13)
                limits = budget.max_iter or 500, decrease, 0.1 * tol
                end = bounded_descent(augmented, x, space.free, space.box, budget.check, limits)
                rows.steps += end.steps
                x = end.x
                terms.update(x)
            # 3. Newton steps
            if np.count_nonzero(space.free) <= MOST_PARAMETERS:
                enough = 0.1 * tol / max(steepness, 1.0)
                x, terms.multipliers = _on_conditions(rows, space, terms, x, enough)
            short = terms.rates.shortfalls(x)
            last, residual, lacking = residual, residual_at(x), float(np.max(short))
            held = terms.hold(short, tol)
            over = held and residual <= tol
            stalled = residual > 0.5 * last if held else lacking > 0.8 * worst[-8]
            if over or stalled:
                break
            worst.append(lacking)
    return RatedEnd(tree.moved_to(space.vector(x)), over, terms.multipliers)


def _under_penalties(steps: Penalised, terms: RateTerms, tol: float) -> RatedEnd:
    """Return the end of the rounds under penalties; the first descents are not exact."""
    budget, over, near, worst = steps.rows.budget, False, False, [np.inf] * 8
    tree = steps.tree
    for _ in budget.while_left(range(ROUNDS), at_least=1):
        # 1. a descent, 2. multipliers
        tree, over = steps.descend(budget.max_iter, tol, tight=near)
        exact = near and over
        terms.update(tree.vector)
        short = terms.rates.shortfalls(tree.vector)
        near = terms.hold(short, tol)
        over = near and exact
        hopeless = not near and np.max(short) > 0.8 * worst[-8]
        worst.append(float(np.max(short)))
        if over or hopeless:
            break
    return RatedEnd(tree, over, terms.multipliers)


# --- Newton steps ---------------------------------------------------------------------------------


def _on_conditions(
    rows: AllRows, space: Coordinates, terms: RateTerms, x: FloatArray, enough: float
) -> tuple[FloatArray, FloatArray]:
    """Return the point and the multipliers after Newton steps on the first-order conditions.

    With the Lagrangian L, its Hessian H (by differences) and the slopes A of the rates with a
    multiplier, a step solves  H dx - A' dm = - dL,  A dx = what these rates lack.  H and A are kept
    for as long as steps halve what is left. Steps end where no derivative is larger than
    ``enough``, where they no longer come nearer, or where a multiplier would become negative.
    """
    low, high = space.box
    index = np.flatnonzero(space.free & (x > low) & (x < high))
    rates, multipliers = terms.rates, terms.multipliers
    active = np.flatnonzero(multipliers > 0)
    total = float(rows.problem.rows.group_totals.sum())

    def lagrangian(point: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Its derivative, and what the active rates lack."""
        short = rates.shortfalls(point)[active]
        gradient = space.function(point)[1] - rates.slope(point, prices)
        return gradient[index], short

    def distance(slope: FloatArray, short: FloatArray) -> float:
        by_slope = np.max(np.abs(slope), initial=0.0) / total
        return float(by_slope + np.max(np.abs(short), initial=0.0))

    def along(values: FloatArray) -> tuple[float, FloatArray]:
        """What is differenced: the derivative at other values of the coordinates that move."""
        beside = x.copy()
        beside[index] = values
        return 0.0, lagrangian(beside, multipliers)[0]

    slope, short = lagrangian(x, multipliers)
    left, inverse = distance(slope, short), None
    for _ in range(12):
        if left <= enough / total:
            break
        rows.budget.check()
        # 1. Hessian and slopes
        fresh = inverse is None
        if inverse is None:
            matrix = differenced_hessian(along, x[index])
            if not np.all(np.isfinite(matrix)):
                break
            slopes = rates.slopes(x)[active][:, index]
            inverse = _condition_inverse(matrix, slopes, FLAT * total)
        change = inverse @ np.concatenate([-slope, short])
        # 2. a step, shortened if that leads nearer
        for length in (1.0, 0.3, 0.1):
            moved, prices = x.copy(), multipliers.copy()
            moved[index] += length * change[: len(index)]
            prices[active] += length * change[len(index) :]
            within = np.all(prices >= 0) and np.all(moved >= low) and np.all(moved <= high)
            there = lagrangian(moved, prices) if within else (slope, short)
            if within and distance(*there) < (1.0 - 0.5 * length) * left:
                x, multipliers, (slope, short), left = moved, prices, there, distance(*there)
                rows.steps += 1
                if length < 1.0:
                    inverse = None
                break
        else:
            if fresh:
                break
            inverse = None  # the curvature has changed
    return x, multipliers


def _condition_inverse(matrix: FloatArray, slopes: FloatArray, flat: float) -> FloatArray:
    """Return the inverse of ((H, -A'), (A, 0)), in units in which its entries are of one size.

    Shares of a leaf sum to one, so that there are flat directions: it is a pseudo-inverse.
    """
    units = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(matrix)), flat))
    scales = 1.0 / np.maximum(np.linalg.norm(slopes * units, axis=1), TINY_SHARE)
    sizes = np.concatenate([units, scales])
    lines = slopes * units * scales[:, None]
    none = np.zeros((len(scales), len(scales)))
    system = np.block([[matrix * np.outer(units, units), -lines.T], [lines, none]])
    return sizes[:, None] * np.linalg.pinv(system, rcond=1e-11) * sizes
