"""Newton steps with the Hessian of a sample, corrected by pairs of earlier steps.

A tree that has been fitted to a sample is close to the minimum on all rows: it differs by the
sampling error, and the Hessian is known from the sample to a few per cent. So a step on all rows is
a subsampled Newton step (Byrd, Chin, Neveitt and Nocedal 2011),

    step = - H gradient,      H = |Hessian of the sample|^-1, then corrected as in L-BFGS

Each step is one evaluation on all rows and gains about a digit. Weights of the sample add up to
those of all rows. The Hessian is computed anew where steps gain little (``renewals``).

Near the minimum the function falls by less than the rounding of its sum; a step is then judged by
its slope: the value must be level to ``rounding``, and the slope along the step smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.solvers.base import Budget, OutOfBudget
from softsplit.solvers.elimination.lbfgs import LBFGS, shorter
from softsplit.solvers.elimination.objective import SmoothFunction, StandardisedRows
from softsplit.solvers.elimination.second_order import damped_inverse, hessian
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.support.arrays import FloatArray

MOST_PARAMETERS = 1200
"""Most free parameters of which a Hessian is computed."""

ROUNDING = 1e-12
"""Relative rounding of the value, where an engine does not state its own."""

SLOW, FAR = 0.2, 1e-7
"""Where a step lowers the largest derivative by less than the factor SLOW, and the value by more
than the part FAR, the Hessian is computed anew. Nearer to the minimum pairs of steps know more than
a sample does."""

DAMPING = 0.01
"""Damping of the next Hessian after a step that had to be shortened."""

FLATTER = 0.9
"""A step that leaves the value at the same level must lower the size of the slope along it by this
factor."""

FURTHEST = 3.0
"""Largest change of a parameter in a step: where a gate is nearly shut the Hessian says nothing,
and a longer step would only be cut."""

PAIRS = 60
"""Pairs of steps and gradient changes that are kept."""

STALLS, PATIENCE = 2, 12
"""Steps of too small a decrease in a row that end a descent; the second with a tolerance, while the
largest derivative is not halved either."""


class NewtonEnd(NamedTuple):
    """Where Newton steps have led, the value there, whether they ended by themselves, and how many
    they were."""

    tree: SupportTree
    value: float
    over: bool
    steps: int


def newton_on_sample(
    function: SmoothFunction,
    tree: SupportTree,
    sample: StandardisedRows,
    ridge: float,
    budget: Budget,
    *,
    max_iter: int,
    decrease: float,
    tol: float = 0.0,
    renewals: int = 8,
    rounding: float = ROUNDING,
    damping: float = 0.0,
    threads: int = 1,
) -> NewtonEnd:
    """Descend ``function`` from ``tree`` with the Hessian of ``sample``, made by ``threads``.

    1. The Hessian is computed, ``renewals`` times at most, the first one with this ``damping``.
    2. A step is taken. Where none leads lower, the pairs are dropped, then the descent ends.
    3. The step becomes a pair.
    4. A descent ends when no derivative is larger than ``tol``, or after STALLS steps in a row that
       lower the value by less than ``decrease`` of it; with a ``tol``, after PATIENCE of them in
       which the largest derivative was not halved either.
    """
    free, x = np.flatnonzero(tree.free), tree.vector
    curved = len(free) <= MOST_PARAMETERS
    model, far, stalled = Curvature(), True, 0
    value, gradient = function(x)
    steep = steepest = _largest(gradient)
    least = min(1.0, float(sample.weights.sum()))
    for steps in range(max_iter):
        if steep <= tol:
            return NewtonEnd(tree.moved_to(x), value, True, steps)
        # 1. Hessian
        if curved and renewals and far:
            found = hessian(tree.moved_to(x), sample, ridge, threads)
            model = Curvature(damped_inverse(found, damping))
            renewals -= 1
        # 2. step
        steepest = min(steepest, steep)
        try:
            step = _step(function, x, free, value, gradient, model, budget, rounding)
        except OutOfBudget:
            return NewtonEnd(tree.moved_to(x), value, False, steps + 1)
        if step is None:
            if not model.pairs:
                return NewtonEnd(tree.moved_to(x), value, True, steps + 1)
            model.pairs = ()
            continue
        moved, lower, fresh, whole = step
        damping = 0.1 * damping if whole else max(4.0 * damping, DAMPING)
        # 3. pair
        model.learn((moved - x)[free], (fresh - gradient)[free])
        fall = value - lower
        small = fall <= max(decrease, rounding) * max(abs(lower), least)
        x, value, gradient, steep = moved, lower, fresh, _largest(fresh)
        # 4. progress
        far = fall > max(FAR, rounding, decrease) * abs(value) and steep > SLOW * steepest
        nearer = tol > 0.0 and steep <= 0.5 * steepest
        stalled = stalled + 1 if small and not nearer else 0
        if stalled >= (PATIENCE if tol > 0.0 else STALLS):
            return NewtonEnd(tree.moved_to(x), value, True, steps + 1)
    return NewtonEnd(tree.moved_to(x), value, False, max_iter)


def _step(
    function: SmoothFunction,
    x: FloatArray,
    free: NDArray[np.intp],
    value: float,
    gradient: FloatArray,
    model: Curvature,
    budget: Budget,
    rounding: float,
) -> tuple[FloatArray, float, FloatArray, bool] | None:
    """Return a lower point, its value and gradient, and whether it is a whole step away; None if
    there is no lower point."""
    direction = np.zeros_like(x)
    direction[free] = model.direction(gradient[free])
    fall = float(gradient @ direction)
    if not fall < 0.0:
        model.pairs = ()
        direction[free] = model.direction(gradient[free])
        fall = float(gradient @ direction)
    length = min(1.0, FURTHEST / max(_largest(direction), 1e-300))
    if model.inverse is None and not model.pairs:
        length = min(1.0, LBFGS.first_move / max(_largest(direction), 1e-300))
    for _ in range(LBFGS.max_cuts):
        budget.check()
        moved = x + length * direction
        lower, fresh = function(moved)
        level = lower <= value + rounding * abs(value)
        flatter = abs(float(fresh @ direction)) <= FLATTER * abs(fall)
        if lower <= value + LBFGS.sufficient * length * fall or (level and flatter):
            return moved, lower, fresh, length == 1.0
        length *= shorter(value, lower, length * fall)
    return None


Pair = tuple[FloatArray, FloatArray, float]
"""A step, the change of the gradient along it, and their product."""


@dataclass
class Curvature:
    """Inverse Hessian estimate: an initial ``inverse``, corrected by ``pairs`` of steps."""

    inverse: FloatArray | None = None
    pairs: Sequence[Pair] = ()

    def direction(self, gradient: FloatArray) -> FloatArray:
        """Return minus the estimate times ``gradient`` (the two-loop recursion of L-BFGS)."""
        direction, shares = -gradient, []
        for step, change, curvature in reversed(self.pairs):
            shares.append(float(step @ direction) / curvature)
            direction = direction - shares[-1] * change
        if self.inverse is not None:
            direction = self.inverse @ direction
        elif self.pairs:
            _, change, curvature = self.pairs[-1]
            direction = direction * (curvature / float(change @ change))
        for (step, change, curvature), share in zip(self.pairs, reversed(shares), strict=True):
            direction = direction + (share - float(change @ direction) / curvature) * step
        return direction

    def learn(self, step: FloatArray, change: FloatArray) -> None:
        """Keep a pair if its curvature is positive, and PAIRS of them in all."""
        product = float(step @ change)
        if product > LBFGS.positive * np.sqrt(float(step @ step) * float(change @ change)):
            self.pairs = [*self.pairs, (step, change, product)][-PAIRS:]


def _largest(vector: FloatArray) -> float:
    return float(np.max(np.abs(vector), initial=0.0))
