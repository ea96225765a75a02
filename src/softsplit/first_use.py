"""Machine code is made ready before a clock runs.

Compiled functions are made, or loaded from disk, when they are first called: half a minute on a
new installation, a second later on. That is no training, and no time limit must be spent on it.
"""

from __future__ import annotations

from functools import cache

from softsplit.compile_together import compile_together
from softsplit.solvers import Budget, NativeSolver, Start
from softsplit.tiny_problems import tiny_problems
from softsplit.training import hop, multistart

MOST_ITERATIONS = 1000
"""Enough for each kind of hop to have its turn."""


@cache
def warm_up() -> None:
    """Train tiny trees in every way in which larger ones are trained, once in a process."""
    compile_together()
    solver = NativeSolver()
    for problem in tiny_problems():
        budget = Budget(max_iter=MOST_ITERATIONS)
        found = multistart(problem, solver, n_starts=len(solver.start_rules), budget=budget)
        best = hop(problem, solver, found, budget=budget)
        solver.solve(problem, Start(best.parameters), budget)
