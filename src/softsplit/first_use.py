"""Machine code is made ready before a clock runs.

Compiled functions are made, or loaded from disk, when they are first called: about a minute on a
new installation, a second later on. That is no training, and no time limit must be spent on it.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from softsplit.loss import ExpectedCost
from softsplit.penalties import PenaltyPair, exponential
from softsplit.problem import TrainingProblem
from softsplit.samples import Samples
from softsplit.solvers import Budget, NativeSolver, Start
from softsplit.training import hop, multistart
from softsplit.tree import Topology

N_ROWS = 30

MOST_ITERATIONS = 1000
"""Enough for each kind of hop to have its turn."""


@cache
def warm_up() -> None:
    """Train tiny trees in every way in which larger ones are trained, once in a process."""
    solver = NativeSolver()
    for problem in tiny_problems():
        budget = Budget(max_iter=MOST_ITERATIONS)
        found = multistart(problem, solver, n_starts=len(solver.start_rules), budget=budget)
        best = hop(problem, solver, found, budget=budget)
        solver.solve(problem, Start(best.parameters), budget)


def tiny_problems() -> list[TrainingProblem]:
    """One split between two classes, and three between three."""
    return [_tiny(2, 1), _tiny(3, 2)]


def _tiny(n_classes: int, depth: int) -> TrainingProblem:
    rng = np.random.default_rng(0)
    labels = np.arange(N_ROWS) % n_classes
    X = rng.uniform(size=(N_ROWS, 2)) + labels[:, None]
    return TrainingProblem(
        Samples.from_arrays(X, labels, n_classes),
        Topology(depth),
        ExpectedCost.uniform(n_classes),
        PenaltyPair.of(exponential(), 0.1, 0.1),
        np.full(n_classes, 0.1),
    )
