"""The last digits: Newton steps on all free numbers of a tree at once.

L-BFGS ends where the function falls by less than its rounding, which leaves derivatives of about
the square root of that. Here the Hessian is taken from differences of the derivative, one for each
free number, which is cheap for a sparse tree; directions of negative or no curvature (the log-odds
of a leaf may all be shifted) are taken by the size of their curvature, and left out where it is
none. A step counts only if the derivatives get smaller and the function does not rise.
"""

from __future__ import annotations

import numpy as np

from softsplit.solvers.likelihood.descent import Field, Smoothing
from softsplit.solvers.likelihood.draft import Draft
from softsplit.solvers.likelihood.objective import value_and_gradient
from softsplit.support.arrays import FloatArray

MOST_NUMBERS = 150
MOST_WORK = 2e8
"""Largest product of rows, branches and free numbers."""

STEPS = 8
DIFFERENCE = 1e-6
FLAT = 1e-11
"""Curvature below this part of the largest is none."""


def sharpened(draft: Draft, field: Field, smoothing: Smoothing, tol: float) -> Draft:
    """The draft after Newton steps, until no derivative is larger than ``tol``."""
    free = draft.free
    index, size = np.flatnonzero(free), field.features.shape[1] * len(draft.splits)
    if len(index) > MOST_NUMBERS or size * len(index) > MOST_WORK:
        return draft
    n_branches, n_classes = draft.shape
    scores = np.empty((n_branches, field.features.shape[1]))
    mass = np.empty((n_classes, n_branches + 1))

    def slope(x: FloatArray) -> tuple[float, FloatArray]:
        gradient = np.empty_like(x)
        value = value_and_gradient(x, field, smoothing, free, gradient, scores, mass)
        return float(value), gradient

    x = draft.vector
    value, gradient = slope(x)
    for _ in range(STEPS):
        largest = float(np.max(np.abs(gradient), initial=0.0))
        if largest <= tol:
            break
        hessian = np.empty((len(index), len(index)))
        for place, number in enumerate(index):
            moved = x.copy()
            step = DIFFERENCE * max(1.0, abs(x[number]))
            moved[number] += step
            above = slope(moved)[1][index]
            moved[number] = x[number] - step
            hessian[place] = (above - slope(moved)[1][index]) / (2.0 * step)
        moved = x.copy()
        moved[index] -= _solved(0.5 * (hessian + hessian.T), gradient[index])
        new, fresh = slope(moved)
        rises = new > value + 1e-12 * abs(value)
        if rises or not float(np.max(np.abs(fresh))) < largest:
            break
        x, value, gradient = moved, new, fresh
    return draft.moved_to(x)


def _solved(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
    """|hessian|^-1 gradient without the directions that are flat."""
    sizes, directions = np.linalg.eigh(hessian)
    curved = np.abs(sizes) > FLAT * np.max(np.abs(sizes), initial=1e-300)
    along = directions[:, curved]
    step: FloatArray = along @ ((along.T @ gradient) / np.abs(sizes[curved]))
    return step
