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

from softsplit.solvers.base import Budget
from softsplit.solvers.elimination.lbfgs import LBFGS, shorter
from softsplit.solvers.elimination.objective import Shrinkage, SmoothFunction, StandardisedRows
from softsplit.solvers.elimination.options import SubsampledNewtonOptions
from softsplit.solvers.elimination.second_order import damped_inverse, hessian
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.support.arrays import FloatArray


class NewtonEnd(NamedTuple):
    """Where Newton steps have led, the value there, whether they ended by themselves, and how many
    they were."""

    tree: SupportTree
    value: float
    over: bool
    steps: int


@dataclass(frozen=True)
class SubsampledNewton:
    """Descents whose Hessian is that of a sample.

    Attributes
    ----------
    budget : Budget
        No further step is taken when it is exhausted.
    options : SubsampledNewtonOptions
    rounding : float
        Relative rounding of the value.
    """

    budget: Budget
    options: SubsampledNewtonOptions
    rounding: float

    def descend(
        self,
        function: SmoothFunction,
        tree: SupportTree,
        sample: StandardisedRows,
        shrinkage: Shrinkage,
        max_iter: int,
        decrease: float,
        tol: float,
    ) -> NewtonEnd:
        """Descend ``function`` from ``tree`` with the Hessian of ``sample``.

        A descent ends when no derivative is larger than ``tol``, or after ``stalls`` steps in a row
        that lower the value by less than ``decrease`` of it; with a ``tol``, after ``patience`` of
        them in which the largest derivative was not halved either.
        """
        options = self.options
        free, x = np.flatnonzero(tree.free), tree.vector
        curved = len(free) <= options.most_parameters
        model, far, renewals, stalled, damping = Curvature(), True, options.renewals, 0, 0.0
        value, gradient = function(x)
        steep = steepest = _largest(gradient)
        steps = 0
        least = min(1.0, float(sample.weights.sum()))
        for _ in range(max_iter):
            if steep <= tol:
                return NewtonEnd(tree.moved_to(x), value, True, steps)
            if curved and renewals and far:
                here = hessian(tree.moved_to(x), sample, shrinkage.ridge)
                model = Curvature(damped_inverse(here, options.flat, damping))
                renewals -= 1
            steepest = min(steepest, steep)
            step = self._step(function, x, free, value, gradient, model)
            steps += 1
            if step is None:
                if not model.pairs or self.budget.exhausted:
                    return NewtonEnd(tree.moved_to(x), value, not self.budget.exhausted, steps)
                model.pairs = ()
                continue
            moved, new, fresh, whole = step
            damping = 0.1 * damping if whole else max(4.0 * damping, options.damping)
            model.learn((moved - x)[free], (fresh - gradient)[free], options.pairs)
            fall = value - new
            small = fall <= max(decrease, self.rounding) * max(abs(new), least)
            x, value, gradient, steep = moved, new, fresh, _largest(fresh)
            far = (
                fall > max(options.far, self.rounding) * abs(new)
                and steep > options.slow * steepest
            )
            nearer = tol > 0.0 and steep <= 0.5 * steepest
            stalled = stalled + 1 if small and not nearer else 0
            if stalled >= (options.patience if tol > 0.0 else options.stalls):
                return NewtonEnd(tree.moved_to(x), value, True, steps)
        return NewtonEnd(tree.moved_to(x), value, False, steps)

    def _step(
        self,
        function: SmoothFunction,
        x: FloatArray,
        free: NDArray[np.intp],
        value: float,
        gradient: FloatArray,
        model: Curvature,
    ) -> tuple[FloatArray, float, FloatArray, bool] | None:
        """Return a lower point, its value and gradient, and whether it is a whole step away.

        None if there is no lower point, or no time.
        """
        direction = np.zeros_like(x)
        direction[free] = model.direction(gradient[free])
        fall = float(gradient @ direction)
        if not fall < 0.0:
            model.pairs = ()
            direction[free] = model.direction(gradient[free])
            fall = float(gradient @ direction)
        length = 1.0
        if model.inverse is None and not model.pairs:
            length = min(1.0, LBFGS.first_move / max(_largest(direction), 1e-300))
        for _ in range(LBFGS.max_cuts):
            if self.budget.exhausted:
                return None
            moved = x + length * direction
            new, fresh = function(moved)
            level = new <= value + self.rounding * abs(value)
            flatter = abs(float(fresh @ direction)) <= self.options.flatter * abs(fall)
            if new <= value + LBFGS.sufficient * length * fall or (level and flatter):
                return moved, new, fresh, length == 1.0
            length *= shorter(value, new, length * fall)
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
        found, shares = -gradient, []
        for step, change, curvature in reversed(self.pairs):
            shares.append(float(step @ found) / curvature)
            found = found - shares[-1] * change
        if self.inverse is not None:
            found = self.inverse @ found
        elif self.pairs:
            _, change, curvature = self.pairs[-1]
            found = found * (curvature / float(change @ change))
        for (step, change, curvature), share in zip(self.pairs, reversed(shares), strict=True):
            found = found + (share - float(change @ found) / curvature) * step
        return found

    def learn(self, step: FloatArray, change: FloatArray, most: int) -> None:
        """Keep a pair if its curvature is positive, and ``most`` pairs in all."""
        product = float(step @ change)
        if product > LBFGS.positive * np.sqrt(float(step @ step) * float(change @ change)):
            self.pairs = [*self.pairs, (step, change, product)][-most:]


def _largest(vector: FloatArray) -> float:
    return float(np.max(np.abs(vector), initial=0.0))
