"""Iterations and time of a run: when compiled descents come back to look at the clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from softsplit.solvers.active_set.state import NEVER, DescentLimits
from softsplit.solvers.base import Budget, OutOfBudget


@dataclass(frozen=True)
class ClockOptions:
    """How often compiled code, which cannot look at the clock, comes back to Python for it.

    Times are of one core of the machines on which the library was measured, and rough.
    """

    slice_seconds: float = 0.2
    """Long descents return to Python this often."""

    first_order_seconds: float = 1e-8
    """Time of a first-order step for each row and coefficient, before one was measured."""

    newton_seconds: float = 3e-9
    """Time of a Newton step for each product in it, on a slow machine."""

    usual_part: float = 0.25
    """Part of that which it takes on others."""

    late_seconds: float = 0.3
    """A step may end so much after the time limit."""


class StepTimes(NamedTuple):
    """Estimated seconds of a first-order step, and of a Newton step on a slow machine."""

    first_order: float
    newton: float

    @classmethod
    def of(cls, size: int, n_rows: int, clock: ClockOptions) -> StepTimes:
        """Return those of steps over ``n_rows`` rows and ``size`` coefficients."""
        first_order = clock.first_order_seconds * n_rows * size
        return cls(first_order, clock.newton_seconds * size**2 * (n_rows + size))


@dataclass
class IterationBudget:
    """Iterations and calls of one run against its budget."""

    budget: Budget
    max_iter: int
    iterations: int = 0
    calls: int = 0
    seconds_per_iteration: float = 0.0
    clock: ClockOptions = ClockOptions()

    @property
    def left(self) -> int:
        """Iterations that may still be made."""
        return self.max_iter - self.iterations

    def check(self) -> None:
        """Raise ``OutOfBudget`` if nothing is left."""
        self.budget.check()
        if self.left <= 0:
            raise OutOfBudget

    def allowed(self, limits: DescentLimits, times: StepTimes, done: int) -> DescentLimits:
        """Return the limits of the steps that may be made before the clock is looked at again.

        ``times`` are used until an iteration has been measured. So many steps are ``done``. A
        Newton step may cost far more than those before the first: it is then timed by itself, and
        none is made that would end too long after the time limit.
        """
        self.check()
        seconds = self.clock.slice_seconds
        pace = max(self.seconds_per_iteration or times.first_order, 1e-9)
        steps = max(1, min(limits.max_iter - done, self.left, int(seconds / pace)))
        before_newton = limits.newton_from - done
        if before_newton >= 0 and times.newton * steps > seconds:
            steps = min(steps, max(1, before_newton))
        late = self.budget.remaining + self.clock.late_seconds
        if self.clock.usual_part * times.newton > late:
            limits = limits._replace(newton_from=NEVER)
        return limits if steps == limits.max_iter else limits._replace(max_iter=steps)

    def record(self, iterations: int, calls: int, began: float) -> None:
        """Record that so much was done since ``began`` of the clock."""
        self.iterations += iterations
        self.calls += calls
        self.seconds_per_iteration = (self.budget.now() - began) / max(iterations, 1)
