"""On a new installation two processes compile the numerical code, which takes half as long.

The other process puts what it has compiled where this one looks for it, the cache on disk. If it
cannot be started, fails or hangs, this one compiles everything.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import parent_process
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from softsplit.problem.penalties import counting
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers import Budget, NativeSolver
from softsplit.solvers.likelihood.compile_parts import call_descent, call_prices
from softsplit.solvers.likelihood.fisher import inverse_fisher
from softsplit.solvers.native.compile_parts import call_first_half, call_second_half, call_whole
from softsplit.solvers.native.meter import Meter
from softsplit.solvers.native.program import follow
from softsplit.solvers.native.run import DescentRun
from softsplit.solvers.starts.rules import draw_start
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import is_on_disk
from softsplit.support.interruption import never_lost
from softsplit.training.tiny_problems import tiny_likelihood, tiny_problem

SECOND_HALF = "from softsplit.training.compile_together import HALVES; HALVES[{loss!r}].second()"
PATIENCE = 120.0
"""Seconds to wait for the other process after the work of this one is done."""


class Halves(NamedTuple):
    """What two processes compile, one half each.

    ``last`` is compiled after both: if that is on disk, all of it is.
    """

    last: Any
    first: Callable[[], None]
    second: Callable[[], None]
    whole: Callable[[], None]


def _with_run(half: Callable[[DescentRun, FloatArray, FloatArray], None]) -> Callable[[], None]:
    def call() -> None:
        problem = tiny_problem(2, 1)
        theta = np.zeros((1, problem.n_features + 1))
        half(DescentRun(problem, Meter(Budget(), 1)), theta, np.eye(2))

    return call


def _newton_and_starts() -> None:
    _with_run(call_second_half)()
    draw_start(NativeSolver().start_rules[0], tiny_problem(2, 1), np.random.default_rng(0))


def _likely() -> TrainingProblem:
    return tiny_likelihood(3, 2, counting())


HALVES = {
    "cost": Halves(follow, _with_run(call_first_half), _newton_and_starts, _with_run(call_whole)),
    "log": Halves(
        inverse_fisher,
        lambda: call_descent(_likely()),
        lambda: call_prices(_likely()),
        lambda: None,
    ),
}
"""By loss: each has a descent of its own."""

_one_at_a_time = Lock()
_done: set[str] = set()


def compile_together(loss: str = "cost") -> None:
    """Compile what trains by a loss in two processes, unless that was done before."""
    with _one_at_a_time:
        if loss not in _done:
            _compile_together(loss)
            _done.add(loss)


def _compile_together(loss: str) -> None:
    halves = HALVES[loss]
    if is_on_disk(halves.last) or not _may_start_another():
        return
    with never_lost():
        other = _start_other(loss)
        try:
            halves.first()
            if other is not None:
                with suppress(subprocess.TimeoutExpired):
                    other.wait(PATIENCE)
        finally:
            if other is not None:
                other.kill()
                other.wait()
        halves.whole()


def _may_start_another() -> bool:
    """Not in a pool, where others compile already, and not where Python is part of a program."""
    plain = "python" in Path(sys.executable or "").name.lower() and not hasattr(sys, "frozen")
    return plain and parent_process() is None and _n_cores() > 1


def _n_cores() -> int:
    """Those that this process may use, where the system tells."""
    with suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start_other(loss: str) -> subprocess.Popen[bytes] | None:
    """The same Python with the same paths; with -P it does not look into the working directory."""
    code = SECOND_HALF.format(loss=loss)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    quiet = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            env=environment, stdin=quiet, stdout=quiet, stderr=quiet,
        )  # fmt: skip
    except OSError:
        return None
