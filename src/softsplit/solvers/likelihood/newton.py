"""The last digits: Newton steps on all free numbers of a tree at once.

L-BFGS ends where the function falls by less than its rounding, which leaves derivatives of about
the square root of that. Here the Hessian is taken from differences of the derivative, one for each
free number, which is cheap for a sparse tree; directions of negative or no curvature (the log-odds
of a leaf may all be shifted) are taken by the size of their curvature, and left out where it is
none. A step counts only if the derivatives get smaller and the function does not rise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softsplit.solvers.likelihood.descent import Field, Smoothing
from softsplit.solvers.likelihood.draft import Draft
from softsplit.solvers.likelihood.objective import value_and_gradient
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


def affordable(n_numbers: int, field: Field, n_branches: int) -> bool:
    """Whether a Hessian by differences is cheap enough."""
    work = field.features.shape[1] * n_branches * n_numbers
    return n_numbers <= MOST_NUMBERS and work <= MOST_WORK


def sharpened(draft: Draft, field: Field, smoothing: Smoothing, tol: float) -> Draft:
    """The draft after Newton steps, until no derivative is larger than ``tol``."""
    free = draft.free
    index, begun = np.flatnonzero(free), draft.vector
    n_branches, n_classes = draft.shape
    if not affordable(len(index), field, n_branches):
        return draft
    scores = np.empty((n_branches, field.features.shape[1]))
    mass = np.empty((n_classes, n_branches + 1))

    def function(numbers: FloatArray) -> tuple[float, FloatArray]:
        x, gradient = begun.copy(), np.empty_like(begun)
        x[index] = numbers
        value = value_and_gradient(x, field, smoothing, free, gradient, scores, mass)
        return float(value), gradient[index]

    moved = begun.copy()
    moved[index] = newton_steps(function, begun[index], tol)
    return draft.moved_to(moved)


def newton_steps(function: Function, x: FloatArray, tol: float) -> FloatArray:
    """``x`` after Newton steps, until no derivative is larger than ``tol``."""
    value, gradient = function(x)
    for _ in range(STEPS):
        largest = float(np.max(np.abs(gradient), initial=0.0))
        if largest <= tol:
            break
        hessian = np.empty((len(x), len(x)))
        for number in range(len(x)):
            moved = x.copy()
            step = DIFFERENCE * max(1.0, abs(x[number]))
            moved[number] += step
            above = function(moved)[1]
            moved[number] = x[number] - step
            hessian[number] = (above - function(moved)[1]) / (2.0 * step)
        moved = x - _solved(0.5 * (hessian + hessian.T), gradient)
        new, fresh = function(moved)
        rises = new > value + 1e-12 * abs(value)
        if rises or not float(np.max(np.abs(fresh))) < largest:
            break
        x, value, gradient = moved, new, fresh
    return x


def _solved(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """|hessian|^-1 gradient without the directions that are flat."""
    sizes, directions = np.linalg.eigh(hessian)
    curved = np.abs(sizes) > FLAT * np.max(np.abs(sizes), initial=1e-300)
    along = directions[:, curved]
    step: FloatArray = along @ ((along.T @ gradient) / np.abs(sizes[curved]))
    return step
