"""Descents within bounds of the weights, by L-BFGS-B (Byrd, Lu, Nocedal and Zhu 1995).

Under monotone effects they run in the chart of problem/order.py, where the order is bounds again.
Coordinates y are the splits, with slopes in place of the weights of a variable that bends, then the
continuation log-odds of the leaves, as differences along a chain, then the log-odds of the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from softsplit.problem.bounds import Bounds
from softsplit.problem.order import MonotoneOrder, OrderedChart
from softsplit.solvers.elimination.objective import Shrinkage, SmoothFunction, StandardisedRows
from softsplit.solvers.elimination.second_order import (
    differenced_hessian,
    hessian,
    newton_affordable,
    newton_descent,
    of_parameters,
)
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.support.arrays import FloatArray


class BoundedEnd(NamedTuple):
    """Where a descent within bounds has led, its steps, and whether it ended by itself."""

    x: FloatArray
    value: float
    steps: int
    over: bool


Limits = tuple[int, float, float]
"""Of a descent: most steps, and the ``decrease`` and ``tol`` of ``bounded_descent``."""


def descent_within(
    tree: SupportTree,
    function: SmoothFunction,
    free: NDArray[np.bool_],
    bounds: Bounds,
    order: MonotoneOrder | None,
    check: Callable[[], None],
    limits: Limits,
) -> BoundedEnd:
    """Descend from ``tree`` within ``bounds``, and in a monotone ``order`` if there is one."""
    space = coordinates(tree, function, free, bounds, order)
    end = bounded_descent(space.function, space.begun, space.free, space.box, check, limits)
    return end._replace(x=space.vector(end.x))


def bounded_descent(
    function: SmoothFunction,
    x: FloatArray,
    free: NDArray[np.bool_],
    box: tuple[FloatArray, FloatArray],
    check: Callable[[], None],
    limits: Limits,
) -> BoundedEnd:
    """Descend from the point of ``box`` nearest to ``x``; what is not free stays.

    ``limits`` are (max_iter, decrease, tol): the descent ends after ``max_iter`` steps, when a step
    lowers the value by less than ``decrease`` of it, or when no projected derivative is larger than
    ``tol``. ``check`` is called before every evaluation and may raise.
    """
    begun, index = np.clip(x, *box), np.flatnonzero(free)
    low, high = box[0][index], box[1][index]
    max_iter, decrease, tol = limits

    def spread(values: FloatArray) -> FloatArray:
        point = begun.copy()
        point[index] = np.clip(values, low, high)
        return point

    def restricted(values: FloatArray) -> tuple[float, FloatArray]:
        check()
        value, gradient = function(spread(values))
        return value, gradient[index]

    end = minimize(
        restricted, begun[index], jac=True, method="L-BFGS-B", bounds=np.column_stack([low, high]),
        options={"maxiter": max_iter, "ftol": decrease, "gtol": tol, "maxcor": 20},
    )  # fmt: skip
    return BoundedEnd(spread(end.x), float(end.fun), int(end.nit), end.nit < max_iter)


class SmoothRows(Protocol):
    """Rows in memory, as Newton steps see them."""

    bounds: Bounds
    order: MonotoneOrder | None

    @property
    def n_rows(self) -> int:
        """Distinct rows."""

    def on(self, tree: SupportTree) -> StandardisedRows:
        """The rows of the columns of a tree."""

    def function(
        self, tree: SupportTree, shrinkage: Shrinkage, free: NDArray[np.bool_]
    ) -> SmoothFunction:
        """The smooth log-loss of trees shaped like ``tree``."""


# --- coordinates ----------------------------------------------------------------------------------


class Coordinates(NamedTuple):
    """Where a descent begins, what may move, its box, and the way back to vectors of a tree.

    ``by_coordinates(y, gradient)`` is the chain rule: derivatives by the coordinates at ``y`` from
    those by the vector, one or several lines of them.
    """

    begun: FloatArray
    free: NDArray[np.bool_]
    box: tuple[FloatArray, FloatArray]
    function: SmoothFunction
    vector: Callable[[FloatArray], FloatArray]
    by_coordinates: Callable[[FloatArray, FloatArray], FloatArray]


def coordinates(
    tree: SupportTree,
    function: SmoothFunction,
    free: NDArray[np.bool_],
    bounds: Bounds,
    order: MonotoneOrder | None,
) -> Coordinates:
    """Return ``function`` of the vector of ``tree`` in coordinates that keep to ``order``.

    Without one they are the vector itself. What has no room within ``bounds`` does not move.
    """
    low, high = tree.vector_bounds(bounds)
    free = free & (low < high)
    if order is not None:
        return _ordered(tree, order, function, free)
    begun = np.clip(tree.vector, low, high)
    return Coordinates(begun, free, (low, high), function, lambda x: x, lambda x, slope: slope)


def _ordered(
    tree: SupportTree, order: MonotoneOrder, function: SmoothFunction, free: NDArray[np.bool_]
) -> Coordinates:
    """The coordinates of a monotone order."""
    chart, shape = chart_of(tree, order), tree.splits.shape
    size, n_groups = tree.splits.size, len(tree.log_odds)

    def parts(y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return y[:size].reshape(shape), y[size:].reshape(chart.n_steps + n_groups, -1)

    def vector(y: FloatArray) -> FloatArray:
        splits, steps = parts(y)
        weights = chart.weights_of(splits[:, :-1])
        log_odds = chart.log_shares_of(steps)
        return np.concatenate([np.column_stack([weights, splits[:, -1]]).ravel(), log_odds.ravel()])

    def by_coordinates(y: FloatArray, gradient: FloatArray) -> FloatArray:
        several = gradient.shape[:-1]
        by_split = gradient[..., :size].reshape(*several, *shape).copy()
        by_split[..., :-1] = chart.by_slopes(by_split[..., :-1])
        by_leaf = gradient[..., size:].reshape(*several, n_groups, -1)
        by_steps = chart.by_steps(parts(y)[1], by_leaf)
        flat = [part.reshape(*several, -1) for part in (by_split, by_steps)]
        return np.concatenate(flat, axis=-1)

    def value_in_chart(y: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = function(vector(y))
        return value, by_coordinates(y, gradient)

    slopes = np.column_stack([chart.slopes_of(tree.splits[:, :-1]), tree.splits[:, -1]])
    steps = chart.steps_of(tree.log_odds)
    low, high = (np.full(size + steps.size, end) for end in (-np.inf, np.inf))
    for ends, sign in ((low, 1.0), (high, -1.0)):
        held = ends[:size].reshape(shape)[:, :-1]
        held[chart.sign == sign] = 0.0
    rising = low[size:].reshape(steps.shape)[: chart.n_steps]
    rising[:, chart.differences] = 0.0
    moving = np.concatenate([free[:size], np.full(steps.size, bool(free[size:].any()))])
    begun = np.clip(np.concatenate([slopes.ravel(), steps.ravel()]), low, high)
    return Coordinates(begun, moving, (low, high), value_in_chart, vector, by_coordinates)


def chart_of(tree: SupportTree, order: MonotoneOrder) -> OrderedChart:
    """The chart of trees with the support of ``tree``."""
    shut = np.where(tree.saturated, np.sign(tree.splits[:, -1]), 0.0).astype(np.intp)
    return order.restrict(tree.columns).chart(tree.support, shut)


def turned_leaves(tree: SupportTree, order: MonotoneOrder) -> SupportTree:
    """Return a tree that has just grown with the lower level of each pair of leaves on the left."""
    shares = np.exp(tree.log_odds - tree.log_odds.max(axis=0))
    mean = order.levels @ (shares / shares.sum(axis=0))
    wrong = np.flatnonzero(mean[0::2] > mean[1::2])
    splits, log_odds = tree.splits.copy(), tree.log_odds.copy()
    splits[len(splits) // 2 + wrong] *= -1.0
    log_odds[:, 2 * wrong], log_odds[:, 2 * wrong + 1] = (
        tree.log_odds[:, 2 * wrong + 1],
        tree.log_odds[:, 2 * wrong],
    )
    return tree.moved_to(np.concatenate([splits.ravel(), log_odds.ravel()]))


def sharpened(tree: SupportTree, rows: SmoothRows, shrinkage: Shrinkage, tol: float) -> SupportTree:
    """Return the tree after Newton steps, taken until no derivative is larger than ``tol``.

    Coordinates at a bound stay there; steps that would leave the bounds are not taken. Within an
    order the Hessian is that of differences.
    """
    space = coordinates(
        tree, rows.function(tree, shrinkage, tree.free), tree.free, rows.bounds, rows.order
    )
    (low, high), moved = space.box, space.begun.copy()
    index = np.flatnonzero(space.free & (moved > low) & (moved < high))
    if not newton_affordable(len(index), rows.n_rows, len(tree.splits)):
        return tree
    function = of_parameters(space.begun, index, space.function)
    among_free = np.flatnonzero(np.isin(np.flatnonzero(tree.free), index))

    def curvature(values: FloatArray) -> FloatArray:
        if rows.order is not None:
            return differenced_hessian(function, values)
        moved[index] = values
        matrix = hessian(tree.moved_to(moved), rows.on(tree), shrinkage.ridge)
        return matrix[np.ix_(among_free, among_free)]

    moved[index] = newton_descent(function, curvature, space.begun[index], tol)
    within = np.all((moved >= low) & (moved <= high))
    return tree.moved_to(space.vector(moved)) if within else tree
