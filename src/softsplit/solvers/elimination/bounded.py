"""Descents of the smooth log-loss within bounds of the weights, by L-BFGS-B.

Byrd, Lu, Nocedal and Zhu (1995), "A limited memory algorithm for bound constrained optimization".
A weight at a bound whose derivative points outwards stays there. Without bounds descents are
compiled (descent.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from softsplit.problem.bounds import Bounds
from softsplit.solvers.elimination.support_tree import Draft
from softsplit.support.arrays import FloatArray

Box = tuple[FloatArray, FloatArray]
"""Lowest and highest values of all numbers of a draft."""


class BoundedEnd(NamedTuple):
    """Where a descent within bounds has led, its steps, and whether it ended by itself."""

    x: FloatArray
    value: float
    steps: int
    over: bool


def vector_bounds(draft: Draft, bounds: Bounds) -> Box:
    """Return the bounds of all numbers of a draft; intercepts and log-odds have none."""
    low, high = np.full(draft.free.shape, -np.inf), np.full(draft.free.shape, np.inf)
    for ends, weights in ((low, bounds.low), (high, bounds.high)):
        splits = ends[: draft.splits.size].reshape(draft.splits.shape)
        splits[:, :-1] = weights[draft.columns, : len(splits)].T
    return low, high


def bounded_descent(
    function: Callable[[FloatArray], tuple[float, FloatArray]],
    x: FloatArray,
    free: NDArray[np.bool_],
    box: Box,
    check: Callable[[], None],
    max_iter: int,
    decrease: float,
    tol: float,
) -> BoundedEnd:
    """Descend from the point of the box nearest to ``x``; what is not free stays.

    The descent ends after ``max_iter`` steps, where a step lowers the value by less than
    ``decrease`` of it, or where no projected derivative is larger than ``tol``. ``check`` is called
    before every evaluation and may raise.
    """
    begun = np.clip(x, *box)
    index = np.flatnonzero(free)
    limits = np.column_stack([box[0][index], box[1][index]])

    def spread(numbers: FloatArray) -> FloatArray:
        point = begun.copy()
        point[index] = np.clip(numbers, limits[:, 0], limits[:, 1])
        return point

    def restricted(numbers: FloatArray) -> tuple[float, FloatArray]:
        check()
        value, gradient = function(spread(numbers))
        return value, gradient[index]

    options = {"maxiter": max_iter, "ftol": decrease, "gtol": tol, "maxcor": 20}
    found = minimize(
        restricted, begun[index], jac=True, method="L-BFGS-B", bounds=limits, options=options
    )
    return BoundedEnd(spread(found.x), float(found.fun), int(found.nit), found.nit < max_iter)
