"""What is kept of an IPOPT run while it goes on, and what it comes to in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import FEASIBLE, Status
from softsplit.tree.parameters import TreeParameters

Listener = Callable[[TreeParameters, float, float], None]
"""Takes a tree, its objective and its largest violation."""


@dataclass(frozen=True)
class Outcome:
    """Where a run ended, before it is measured on the problem.

    ``child_cpu_seconds`` is the processor time of the run where it had a process of its own.
    """

    parameters: TreeParameters
    status: Status
    n_iter: int
    message: str
    child_cpu_seconds: float = 0.0


@dataclass
class Progress:
    """The iterates worth keeping: the last one, and the best that meets the constraints."""

    listener: Listener | None = None
    last: TreeParameters | None = None
    best: TreeParameters | None = None
    lowest: float = np.inf
    n_iter: int = 0

    def keep(self, parameters: TreeParameters, value: float, violation: float) -> None:
        """Note one iterate."""
        self.last = parameters
        self.n_iter += 1
        if violation <= 0.1 * FEASIBLE and value < self.lowest:
            self.best, self.lowest = parameters, value
        if self.listener is not None:
            self.listener(parameters, value, violation)

    def pick(self, problem: TrainingProblem, fallback: TreeParameters) -> TreeParameters:
        """The last iterate if it is feasible, else the best feasible one, else the last."""
        last = tidy(problem, fallback if self.last is None else self.last)
        if self.best is None or problem.violation(last).largest <= FEASIBLE:
            return last
        return tidy(problem, self.best)


def tidy(problem: TrainingProblem, parameters: TreeParameters) -> TreeParameters:
    """Remove violations of bounds and of the leaf simplex the size of IPOPT's tolerance."""
    leaf_classes = np.clip(parameters.leaf_classes, 0.0, 1.0)
    totals, bound = leaf_classes.sum(axis=0), problem.bound
    leaf_classes = leaf_classes / np.where(totals > 0, totals, 1.0)
    return problem.pin(
        TreeParameters(
            np.clip(parameters.weights, -bound, bound),
            np.clip(parameters.thresholds, -bound, bound),
            leaf_classes,
        )
    )
