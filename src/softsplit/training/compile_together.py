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

import numpy as np

from softsplit.solvers import Budget, NativeSolver
from softsplit.solvers.native.compile_parts import call_first_half, call_second_half, call_whole
from softsplit.solvers.native.descent import descend
from softsplit.solvers.native.run import DescentRun, Meter
from softsplit.solvers.starts.rules import draw_start
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import is_on_disk
from softsplit.support.interruption import never_lost
from softsplit.training.tiny_problems import tiny_problem

SECOND_HALF = (
    "from softsplit.training.compile_together import compile_second_half; compile_second_half()"
)
PATIENCE = 120.0
"""Seconds to wait for the other process after the work of this one is done."""

_one_at_a_time = Lock()
_done: list[bool] = []


def compile_together() -> None:
    """Compile the parts of a descent in two processes, unless that was done before."""
    with _one_at_a_time:
        if not _done:
            _compile_together()
            _done.append(True)


def _compile_together() -> None:
    if is_on_disk(descend) or not _may_start_another():
        return
    with never_lost():
        other = _start_other()
        try:
            _call(call_first_half)
            if other is not None:
                with suppress(subprocess.TimeoutExpired):
                    other.wait(PATIENCE)
        finally:
            if other is not None:
                other.kill()
                other.wait()
        _call(call_whole)


def compile_second_half() -> None:
    """What the other process does: Newton directions, and the splits of greedy starts."""
    _call(call_second_half)
    solver = NativeSolver()
    draw_start(solver.start_rules[0], tiny_problem(2, 1), np.random.default_rng(0))


def _call(half: Callable[[DescentRun, FloatArray, FloatArray], None]) -> None:
    problem = tiny_problem(2, 1)
    leaf_classes = np.eye(2)
    theta = np.zeros((1, problem.n_features + 1))
    half(DescentRun(problem, Meter(Budget(), 1)), theta, leaf_classes)


def _may_start_another() -> bool:
    """Not in a pool, where others compile already, and not where Python is part of a program."""
    plain = "python" in Path(sys.executable or "").name.lower() and not hasattr(sys, "frozen")
    return plain and parent_process() is None and _n_cores() > 1


def _n_cores() -> int:
    """Those that this process may use, where the system tells."""
    with suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start_other() -> subprocess.Popen[bytes] | None:
    """The same Python with the same paths; with -P it does not look into the working directory."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    quiet = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", SECOND_HALF],
            env=environment, stdin=quiet, stdout=quiet, stderr=quiet,
        )  # fmt: skip
    except OSError:
        return None
