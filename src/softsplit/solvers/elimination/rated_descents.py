"""Trees on their way to where rates hold: quadratic programs, Newton steps, multipliers in turn.

The rates and their augmented Lagrangian are those of penalised.py. Within a monotone order all of
it runs in the coordinates of ordered.py, in which the order is bounds: with x(y) the vector of a
tree and J its Jacobian, loss and rates have the derivatives J' d by y, so that a tree at the end of
a descent is in order and holds its rates.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls

from softsplit.problem.leaves import RATE_SLACK, TINY_SHARE
from softsplit.problem.order import MonotoneOrder
from softsplit.problem.penalties import PenaltyPair
from softsplit.solvers.base import OutOfBudget
from softsplit.solvers.elimination.bounded import bounded_descent, ordered_coordinates
from softsplit.solvers.elimination.descents import AllRows
from softsplit.solvers.elimination.objective import Shrinkage, SmoothFunction
from softsplit.solvers.elimination.penalised import (
    BoundedRates,
    OrderedRates,
    Penalised,
    RateTerms,
    rates_of,
)
from softsplit.solvers.elimination.second_order import differenced_hessian, of_parameters
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.support.arrays import FloatArray

MOST_PARAMETERS, FLAT = 150, 1e-12


class RatedEnd(NamedTuple):
    """Where descents under rates have led.

    ``over``: all rates hold and the last descent ended by itself. ``multipliers`` are those of all
    rates, (n_rates,).
    """

    tree: SupportTree
    over: bool
    multipliers: FloatArray


class Support(NamedTuple):
    """The support of a tree: its loss and its rates as functions of coordinates x in a box.

    ``root`` are units in which the mean loss has the curvature of the identity, if they are known:
    quadratic programs then begin with it.
    """

    begun: FloatArray
    free: NDArray[np.bool_]
    low: FloatArray
    high: FloatArray
    function: SmoothFunction
    rates: BoundedRates
    root: FloatArray | None = None


def with_rates(
    rows: AllRows, tree: SupportTree, penalties: PenaltyPair, ridge: float, tol: float,
    *, support: bool,
) -> RatedEnd:  # fmt: skip
    """Return ``tree`` after descents in turn with updates of the multipliers.

    With ``support`` only the coefficients of the tree's support move; rates of any rows are then
    approached by sequential quadratic programs and Newton steps on the first-order conditions,
    after which there is mostly nothing left to do. A tree of rows elsewhere is led to the rates of
    a sample first, from where those Newton steps are often enough.
    """
    few = None if rows.problem.rate_limits is None else rows.sampled()
    prices = np.zeros(0)
    if few is not None:
        end = with_rates(few, tree, penalties, ridge, tol, support=support)
        tree, prices = (end.tree, end.multipliers) if end.over else (tree, prices)
    if rows.problem.order is not None:
        return _in_order(rows, tree, rows.problem.order, ridge, tol)
    budget = rows.budget
    total, rates = float(rows.problem.rows.group_totals.sum()), rates_of(rows, tree)
    terms = RateTerms(rates, tree.vector, total)
    if support and rows.problem.rate_limits is not None:
        low, high = tree.vector_bounds(rows.problem.bounds)
        function, root = rows.function(tree, Shrinkage(ridge), tree.free), None
        if few is not None and np.any(prices):
            space = Support(tree.vector, tree.free, low, high, function, rates)
            x, terms.multipliers = _on_conditions(rows, space, tree.vector, prices)
            tree = tree.moved_to(x)
            steps = Penalised(rows, tree, penalties, ridge, rates=terms, support=True)
            if _holds(steps, terms, x, tol):
                return RatedEnd(tree, True, terms.multipliers)
        if not rows.problem.bounds.finite and tree.free.sum() <= MOST_PARAMETERS:
            curved = (rows if few is None else few).hessian(tree, ridge, None)
            root = _curvature_root(curved, total, FLAT)
        space = Support(tree.vector, tree.free, low, high, function, rates, root)
        x, terms.multipliers = _quadratic_programs(rows, space, total)
        if np.any(terms.multipliers):
            x, terms.multipliers = _on_conditions(rows, space, x, terms.multipliers)
        tree = tree.moved_to(x)
    steps = Penalised(rows, tree, penalties, ridge, rates=terms, support=support)
    enough = tol if few is None else max(tol, 1e-6 * total)
    if np.any(terms.multipliers) and _holds(steps, terms, tree.vector, enough):
        return RatedEnd(tree, True, terms.multipliers)
    over, met, worst = False, False, [np.inf] * 8
    for _ in range(25):
        tree, over = steps.descend(budget.max_iter, tol, tight=met)
        terms.update(tree.vector)
        short = terms.shortfalls(tree.vector)
        near = terms.hold(short, tol)
        done = near and met and over  # the last descent was an exact one
        met = near
        hopeless = not near and np.max(short) > 0.8 * worst[-8]
        worst.append(float(np.max(short)))
        if budget.exhausted or done or hopeless:
            break
    return RatedEnd(tree, over and met, terms.multipliers)


def _holds(steps: Penalised, terms: RateTerms, x: FloatArray, tol: float) -> bool:
    """Whether rates and first-order conditions hold at ``x`` to ``tol``."""
    return terms.hold(terms.shortfalls(x), tol) and steps.residual(x) <= tol


def _in_order(
    rows: AllRows, tree: SupportTree, order: MonotoneOrder, ridge: float, tol: float
) -> RatedEnd:
    """The same within a monotone order, in whose coordinates it is bounds (ordered.py)."""
    budget = rows.budget
    total = float(rows.problem.rows.group_totals.sum())
    function = rows.function(tree, Shrinkage(ridge), tree.free)
    low, high = tree.vector_bounds(rows.problem.bounds)  # what has no room does not move
    chart = ordered_coordinates(tree, order, function, tree.free & (low < high))
    rates = OrderedRates(rates_of(rows, tree), chart)
    terms = RateTerms(rates, chart.begun, total)
    index = np.flatnonzero(chart.free)
    root = None
    if 0 < len(index) <= MOST_PARAMETERS:
        inner = of_parameters(chart.begun, index, chart.function)
        curved = differenced_hessian(inner, chart.begun[index])
        sizes, directions = np.linalg.eigh(curved)  # at a bound it need not be positive
        positive = directions * np.abs(sizes) @ directions.T
        root = _curvature_root(positive, total, FLAT)
    space = Support(chart.begun, chart.free, *chart.box, chart.function, rates, root)

    def augmented(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = chart.function(x)
        return value + terms.add(x, gradient), gradient

    def residual(x: FloatArray) -> float:
        gradient = np.where(chart.free, augmented(x)[1], 0.0)
        moved = np.abs(np.clip(x - gradient, *chart.box) - x)
        moved[: tree.splits.size].reshape(tree.splits.shape)[:, -1] *= rows.problem.steepness
        return float(np.max(moved, initial=0.0))

    def check() -> None:
        if budget.exhausted:
            raise OutOfBudget

    x, over = chart.begun, False
    worst = [np.inf] * 8
    with suppress(OutOfBudget):
        x, terms.multipliers = _quadratic_programs(rows, space, total)
        limits = budget.max_iter or 500, 1e-12, 0.1 * tol
        for _ in range(25):
            if np.any(terms.multipliers):
                x, terms.multipliers = _on_conditions(rows, space, x, terms.multipliers)
            over = terms.hold(short := terms.shortfalls(x), tol) and residual(x) <= tol
            near = float(np.max(short))
            if over or (near > RATE_SLACK and near > 0.8 * worst[-8]):
                break
            worst.append(near)
            end = bounded_descent(augmented, x, chart.free, chart.box, check, limits)
            rows.steps += end.steps
            x = end.x
            terms.update(x)
    return RatedEnd(tree.moved_to(chart.vector(x)), over, terms.multipliers)


def _on_conditions(
    rows: AllRows,
    space: Support,
    x: FloatArray,
    multipliers: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the point and the multipliers after Newton steps on the first-order conditions.

    With the Lagrangian L, its Hessian H (by differences) and the slopes A of the rates with a
    multiplier, a step solves  H dx - A' dm = - dL,  A dx = what these rates lack.  H and A are kept
    for as long as steps halve what is left. Steps end where they no longer come nearer, or where a
    multiplier would become negative.
    """
    held, rates, function = multipliers, space.rates, space.function
    low, high = space.low, space.high
    index = np.flatnonzero(space.free & (x > low) & (x < high))
    active = np.flatnonzero(held > 0)
    total = float(rows.problem.rows.group_totals.sum())

    def lagrangian(point: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Its derivative, and what the active rates lack."""
        gradient, short = function(point)[1], rates.shortfalls(point)[active]
        rates.add(point, -prices, gradient)
        return gradient[index], short

    def far(slope: FloatArray, short: FloatArray) -> float:
        return float(np.max(np.abs(slope)) / total + np.max(np.abs(short)))

    slope, short = lagrangian(x, held)
    left, inverse = far(slope, short), None
    for _ in range(12):
        if left <= 1e-11 or rows.budget.exhausted:
            break
        fresh = inverse is None
        if inverse is None:
            curved = np.empty((len(index), len(index)))
            for number, place in enumerate(index):
                step = 1e-6 * max(1.0, abs(x[place]))
                beside = x.copy()
                beside[place] += step
                curved[number] = (lagrangian(beside, held)[0] - slope) / step
            if not np.all(np.isfinite(curved)):
                break
            rates.shortfalls(x)
            inverse = _condition_inverse(
                0.5 * (curved + curved.T), rates.slopes(x)[active][:, index], FLAT * total
            )
        change = inverse @ np.concatenate([-slope, short])
        taken = False
        for length in (1.0, 0.3, 0.1) if rows.sampled() is not None else (1.0,):
            moved, prices = x.copy(), held.copy()
            moved[index] += length * change[: len(index)]
            prices[active] += length * change[len(index) :]
            within = np.all(prices >= 0) and np.all(moved >= low) and np.all(moved <= high)
            there = lagrangian(moved, prices) if within else (slope, short)
            nearer = far(*there)
            taken = bool(within and nearer < (1.0 - 0.5 * length) * left)
            if taken:
                x, held, (slope, short), left = moved, prices, there, nearer
                rows.steps += 1
                inverse = inverse if length == 1.0 else None
                break
        if not taken and fresh:
            break
        if not taken:
            inverse = None  # the curvature has changed
    return x, held


def _condition_inverse(curved: FloatArray, slopes: FloatArray, flat: float) -> FloatArray:
    """Return the inverse of ((H, -A'), (A, 0)), in units in which its entries are of one size.

    Shares of a leaf sum to one, so that there are flat directions: it is a pseudo-inverse.
    """
    units = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(curved)), flat))
    scales = 1.0 / np.maximum(np.linalg.norm(slopes * units, axis=1), TINY_SHARE)
    sizes = np.concatenate([units, scales])
    lines = slopes * units * scales[:, None]
    none = np.zeros((len(scales), len(scales)))
    system = np.block([[curved * np.outer(units, units), -lines.T], [lines, none]])
    found: FloatArray = sizes[:, None] * np.linalg.pinv(system, rcond=1e-11) * sizes
    return found


def _curvature_root(matrix: FloatArray | None, total: float, flat: float) -> FloatArray | None:
    """Return R, (n, n_curved), such that R' ``matrix`` R / ``total`` is the identity, or nearly so.

    Quadratic programs begin with the identity as the Hessian of the mean loss. None if ``matrix``
    is.
    """
    if matrix is None:
        return None
    units = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(matrix)), flat * total))
    sizes, directions = np.linalg.eigh(matrix * np.outer(units, units))
    curved = sizes > np.sqrt(flat)
    found: FloatArray = units[:, None] * directions[:, curved] * np.sqrt(total / sizes[curved])
    return found


def _quadratic_programs(
    rows: AllRows, space: Support, total: float
) -> tuple[FloatArray, FloatArray]:
    """Return a point after sequential quadratic programs (SLSQP: Kraft 1988), and multipliers.

    They need few evaluations where parameters are tens. The multipliers are those of least squares
    at the end; the point is where it was if the steps led nowhere.
    """
    begun, function, rates, root = space.begun, space.function, space.rates, space.root
    index = np.flatnonzero(space.free)
    n_rates = len(rates.shortfalls(begun))
    if len(index) > MOST_PARAMETERS or not len(index):
        return begun, np.zeros(n_rates)

    def point(values: FloatArray) -> FloatArray:
        found = begun.copy()
        found[index] = values if root is None else begun[index] + root @ values
        return found

    def along(slopes: FloatArray) -> FloatArray:
        return slopes[..., index] if root is None else slopes[..., index] @ root

    def value(values: FloatArray) -> tuple[float, FloatArray]:
        if rows.budget.exhausted:
            raise OutOfBudget
        rows.steps += 1
        found, gradient = function(point(values))
        return found / total, along(gradient) / total

    required = [
        {
            "type": "ineq",
            "fun": lambda values: -rates.shortfalls(point(values)),
            "jac": lambda values: along(rates.slopes(point(values))),
        }
    ]
    if root is not None:  # in whose units bounds are linear constraints
        for ends, sign in ((space.low[index], 1.0), (space.high[index], -1.0)):
            if np.any(held := np.isfinite(ends)):
                lines, room = sign * root[held], sign * (begun[index] - ends)[held]
                required.append(
                    {
                        "type": "ineq",
                        "fun": lambda values, lines=lines, room=room: room + lines @ values,
                        "jac": lambda values, lines=lines: lines,
                    }
                )
    box, start = None, np.zeros(0 if root is None else root.shape[1])
    if root is None:
        box = np.column_stack([space.low[index], space.high[index]])
        start = np.clip(begun[index], box[:, 0], box[:, 1])
    with suppress(OutOfBudget), np.errstate(all="ignore"):
        found = minimize(
            value, start, jac=True, method="SLSQP", bounds=box, constraints=required,
            options={"maxiter": 100, "ftol": 1e-9},
        )  # fmt: skip
        end = point(found.x)
        end = np.where(end < space.low + 1e-9, space.low, end)
        end = np.where(end > space.high - 1e-9, space.high, end)
        short = rates.shortfalls(end)
        far = not np.all(np.isfinite(end)) or np.max(short) > 1e-4
        if far or np.max(np.abs(end)) > 1e4:
            return begun, np.zeros(n_rates)
        active = np.flatnonzero(short > -1e-4)
        multipliers = np.zeros(n_rates)
        if len(active):
            inside = index[(end[index] > space.low[index]) & (end[index] < space.high[index])]
            slopes = rates.slopes(end)[active][:, inside]
            multipliers[active] = nnls(slopes.T, function(end)[1][inside])[0]
        return end, multipliers
    return begun, np.zeros(n_rates)
