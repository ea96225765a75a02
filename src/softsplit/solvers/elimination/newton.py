"""The last digits: Newton steps on all free numbers of a tree at once.

L-BFGS ends where the function falls by less than its rounding, which leaves derivatives of about
the square root of that. Here the Hessian is taken from differences of the derivative, one for each
free number, which is cheap for a sparse tree; directions of negative or no curvature (the log-odds
of a leaf may all be shifted) are taken by the size of their curvature, and left out where it is
none. A step counts only if the derivatives get smaller and the function does not rise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.bounds import Bounds
from softsplit.solvers.elimination.bounded import vector_bounds
from softsplit.solvers.elimination.descent import Field, Smoothing, evaluation
from softsplit.solvers.elimination.support_tree import Draft
from softsplit.support.arrays import FloatArray

MOST_NUMBERS = 300
MOST_WORK = 2e8
"""Largest product of rows, branches and free numbers."""

STEPS = 8
DIFFERENCE = 1e-6
FLAT = 1e-11
"""Curvature below this part of the largest is none."""

Function = Callable[[FloatArray], tuple[float, FloatArray]]
"""A value and its derivative."""


def affordable(n_numbers: int, n_rows: int, n_branches: int) -> bool:
    """Whether a Hessian by differences is cheap enough."""
    work = n_rows * n_branches * n_numbers
    return n_numbers <= MOST_NUMBERS and work <= MOST_WORK


def sharpened(
    draft: Draft, field: Field, smoothing: Smoothing, tol: float, bounds: Bounds
) -> Draft:
    """The draft after Newton steps, until no derivative is larger than ``tol``.

    Weights at a bound stay there; steps that would leave the bounds are not made.
    """
    index, moved = np.flatnonzero(draft.free), draft.vector
    if bounds.finite:
        return _sharpened_within(draft, field, smoothing, tol, bounds)
    if not affordable(len(index), field.features.shape[1], len(draft.splits)):
        return draft
    function = of_free_numbers(draft, over_field(draft, field, smoothing, draft.free))
    moved[index] = newton_steps(function, moved[index], tol)
    return draft.moved_to(moved)


def _sharpened_within(
    draft: Draft, field: Field, smoothing: Smoothing, tol: float, bounds: Bounds
) -> Draft:
    (low, high), moved = vector_bounds(draft, bounds), draft.vector
    free = draft.free & (moved > low) & (moved < high)
    index = np.flatnonzero(free)
    if not affordable(len(index), field.features.shape[1], len(draft.splits)):
        return draft
    function = over_field(draft, field, smoothing, free)
    moved[index] = newton_steps(of_numbers(moved.copy(), index, function), moved[index], tol)
    return draft.moved_to(moved) if np.all((moved >= low) & (moved <= high)) else draft


def over_field(
    draft: Draft, field: Field, smoothing: Smoothing, free: NDArray[np.bool_]
) -> Function:
    """The log-loss over rows in memory, of all numbers of drafts of one shape."""
    return partial(evaluation, field=field, smoothing=smoothing, free=free, shape=draft.shape)


def of_free_numbers(draft: Draft, function: Function) -> Function:
    """The function of the free numbers alone; the others stay as they are in the draft."""
    return of_numbers(draft.vector, np.flatnonzero(draft.free), function)


def of_numbers(begun: FloatArray, index: NDArray[np.intp], function: Function) -> Function:
    """The function of some numbers alone; the others stay as they are in ``begun``."""

    def restricted(numbers: FloatArray) -> tuple[float, FloatArray]:
        x = begun.copy()
        x[index] = numbers
        value, gradient = function(x)
        return value, gradient[index]

    return restricted


def newton_steps(function: Function, x: FloatArray, tol: float) -> FloatArray:
    """``x`` after Newton steps, until no derivative is larger than ``tol``."""
    value, gradient = function(x)
    for _ in range(STEPS):
        largest = float(np.max(np.abs(gradient), initial=0.0))
        if largest <= tol:
            break
        moved = x - _solved(hessian(function, x), gradient)
        new, fresh = function(moved)
        rises = new > value + 1e-12 * abs(value)
        if rises or not float(np.max(np.abs(fresh))) < largest:
            break
        x, value, gradient = moved, new, fresh
    return x


def hessian(function: Function, x: FloatArray) -> FloatArray:
    """Second derivatives from differences of the first."""
    found = np.empty((len(x), len(x)))
    for number in range(len(x)):
        moved = x.copy()
        step = DIFFERENCE * max(1.0, abs(x[number]))
        moved[number] += step
        above = function(moved)[1]
        moved[number] = x[number] - step
        found[number] = (above - function(moved)[1]) / (2.0 * step)
    return 0.5 * (found + found.T)


def _solved(matrix: FloatArray, gradient: FloatArray) -> FloatArray:
    """|matrix|^-1 gradient without the directions that are flat."""
    along, sizes = _curved(matrix, FLAT)
    step: FloatArray = along @ ((along.T @ gradient) / sizes)
    return step


def inverse_size(matrix: FloatArray, flat: float = FLAT, damping: float = 0.0) -> FloatArray:
    """(|matrix| + damping)^-1 without the directions that are flat."""
    along, sizes = _curved(matrix, flat)
    return np.ascontiguousarray((along / (sizes + damping)) @ along.T)


def _curved(matrix: FloatArray, flat: float) -> tuple[FloatArray, FloatArray]:
    """Directions with curvature, and its sizes."""
    sizes, directions = np.linalg.eigh(matrix)
    curved = np.abs(sizes) > flat * np.max(np.abs(sizes), initial=1e-300)
    return directions[:, curved], np.abs(sizes[curved])
