"""Iterations against a budget, and the clock: when compiled code has to come back to Python."""

from __future__ import annotations

from dataclasses import dataclass

from softsplit.solvers.base import Budget

SLICE_SECONDS = 0.2
"""Compiled code cannot look at the clock: long descents return to Python this often."""

FIRST_ORDER = 1e-8
"""Seconds of a first-order step for each row and coefficient."""

SLOW_NEWTON = 3e-9
"""Seconds of a Newton step for each product in it, on a slow machine."""

USUAL = 0.25
"""Part of that which it takes on others."""

LATE = 0.3
"""Seconds by which a step may end after the time limit."""


class OutOfBudget(Exception):
    """The time or the iterations of a run are used up."""


@dataclass(frozen=True)
class Guess:
    """Seconds that steps will take, by the number of coefficients and rows."""

    size: int
    n_rows: int

    @property
    def first_order(self) -> float:
        return FIRST_ORDER * self.n_rows * self.size

    @property
    def newton(self) -> float:
        """Of a Newton step, on a slow machine."""
        return SLOW_NEWTON * self.size**2 * (self.n_rows + self.size)

    def within_a_slice(self, steps: int, newton: int) -> bool:
        """Whether so many steps and Newton steps will usually end within a slice."""
        seconds = steps * self.first_order + newton * USUAL * self.newton
        return seconds <= SLICE_SECONDS


@dataclass
class Meter:
    """Iterations and calls of one run against its budget."""

    budget: Budget
    max_iter: int
    iterations: int = 0
    calls: int = 0
    seconds_per_iteration: float = 0.0

    @property
    def left(self) -> int:
        """Iterations that may still be made."""
        return self.max_iter - self.iterations

    def check(self) -> None:
        """Raise ``OutOfBudget`` if nothing is left."""
        if self.left <= 0 or self.budget.exhausted:
            raise OutOfBudget

    def allowance(self, wanted: int, guess: Guess, before_newton: int) -> int:
        """Iterations that may be run before the clock is looked at again.

        ``guess`` is used until an iteration has been measured; ``before_newton`` of them come
        before the first Newton step. That may cost far more than others: it is then timed by
        itself.
        """
        self.check()
        pace = max(self.seconds_per_iteration or guess.first_order, 1e-9)
        allowed = max(1, min(wanted, self.left, int(SLICE_SECONDS / pace)))
        if before_newton >= 0 and guess.newton * allowed > SLICE_SECONDS:
            return min(allowed, max(1, before_newton))
        return allowed

    def too_late(self, guess: Guess) -> bool:
        """Whether a Newton step would end too long after the time limit."""
        return USUAL * guess.newton > self.budget.remaining + LATE

    def record(self, iterations: int, calls: int, began: float) -> None:
        """So much was done since ``began`` of the clock."""
        self.iterations += iterations
        self.calls += calls
        self.seconds_per_iteration = (self.budget.now() - began) / max(iterations, 1)
