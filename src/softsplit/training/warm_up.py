"""Machine code is made ready before a clock runs.

Compiled functions are made, or loaded from disk, when they are first called: half a minute on a
new installation, a second later on. That is no training, and no time limit must be spent on it.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from softsplit.engines.samples import Samples
from softsplit.problem.problem import TrainingProblem
from softsplit.reading.importance import add_spreads
from softsplit.solvers import Budget, NativeSolver, Solver, Start
from softsplit.solvers.base import Composed
from softsplit.solvers.decomposition import NodeDecomposition
from softsplit.training.compile_together import compile_together
from softsplit.training.multistart import hop, multistart
from softsplit.training.tiny_problems import tiny_likelihoods, tiny_problems

MOST_ITERATIONS = 1000
"""Enough for each kind of hop to have its turn."""


def make_ready(solver: Solver, problem: TrainingProblem, *, timed: bool) -> None:
    """Have the code that trains ``problem`` compiled; if the run is ``timed``, and loaded."""
    parts = solver.parts() if isinstance(solver, Composed) else ()
    if not any(isinstance(part, NativeSolver) for part in parts or (solver,)):
        return
    if problem.by_likelihood:
        compile_together("log")
        if timed:
            warm_up_likelihood()
        return
    compile_together()
    if timed:
        warm_up()
        if parts:
            warm_up_blocks()


@cache
def warm_up() -> None:
    """Train tiny trees in every way in which larger ones are trained, once in a process."""
    compile_together()
    _warm_up(tiny_problems())


@cache
def warm_up_likelihood() -> None:
    """The same by likelihood, which calls other functions."""
    compile_together("log")
    _warm_up(tiny_likelihoods())


def _warm_up(problems: list[TrainingProblem]) -> None:
    warm_up_samples()
    one = np.zeros((1, 1))
    add_spreads(one, one, one, np.zeros((1, 2), dtype=np.intp), one)  # importances of large trees
    solver = NativeSolver()
    for problem in problems:
        budget = Budget(max_iter=MOST_ITERATIONS)
        found = multistart(problem, solver, n_starts=len(solver.start_rules), budget=budget)
        best = hop(problem, solver, found, budget=budget)
        solver.solve(problem, Start(best.parameters), budget)


@cache
def warm_up_blocks() -> None:
    """The same for a decomposition."""
    for problem in tiny_problems():
        multistart(problem, NodeDecomposition(), n_starts=1, budget=Budget(max_iter=3))


@cache
def warm_up_samples() -> None:
    """Rows are put in order by compiled code too, of either precision."""
    for kind in (np.float32, np.float64):
        Samples.from_arrays(np.zeros((2, 1), dtype=kind), np.array([0, 1]), 2)
