"""Machine code is made ready before a clock runs.

Compiled functions are made, or loaded from disk, when they are first called: many seconds on a new
installation, one later on. That is no training, and no time limit must be spent on it.
"""

from __future__ import annotations

from functools import cache

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers import BasinHoppingSolver, EliminationSolver, Solver
from softsplit.training.compile_together import compile_together
from softsplit.training.pieces import PIECES, train_tiny, train_tiny_blocks
from softsplit.training.tiny_problems import tiny_likelihoods, tiny_problems


def make_ready(solver: Solver, problem: TrainingProblem, *, timed: bool) -> None:
    """Have the code that trains ``problem`` compiled; if the run is ``timed``, and loaded."""
    parts, native = solver.parts(), (BasinHoppingSolver, EliminationSolver)
    if not any(isinstance(part, native) for part in parts or (solver,)):
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
    PIECES["importances"]()
    train_tiny(problems)


@cache
def warm_up_blocks() -> None:
    """The same for a decomposition."""
    train_tiny_blocks()


@cache
def warm_up_samples() -> None:
    """Rows are put in order by compiled code too."""
    for name in ("order", "single-order"):
        PIECES[name]()
