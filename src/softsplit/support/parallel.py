"""Work in several threads: one of BLAS while training runs, and no more workers than work.

Another number of BLAS threads would change the last bits of a result. Libraries are loaded when
there is work: few rows are answered without them.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from softsplit.support.row_budgets import ROWS

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# Workers beyond the cores bring nothing; thousands of them exhaust the system.
MOST_PER_CORE = 8

Task = TypeVar("Task")

_lock = threading.Lock()
_users: list[Any] = []
_openmp = sys.maxsize  # before the first of them limited it


@cache
def _libraries() -> ThreadpoolController:
    """The libraries with threads that our imports have loaded; to find them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread for as long as any fit of this process runs.

    The limit belongs to the whole process: the first fit sets it, and the last one out, whichever
    that is, takes it back.
    """
    global _openmp
    with _lock:
        if not _users:
            _openmp = _openmp_threads()
        _users.append(_libraries().limit(limits=1) if not _users else _users[0])
    try:
        yield
    finally:
        with _lock:
            limit = _users.pop()
            if not _users:
                limit.restore_original_limits()


def n_workers(n_jobs: int | None, n_tasks: int) -> int:
    """Number of processes: ``n_jobs`` as joblib reads it, at most one a task and eight a core.

    A positive number is taken as it is, also where joblib would start no processes: callers may use
    threads.
    """
    from joblib import cpu_count, effective_n_jobs

    asked = n_jobs if n_jobs is not None and n_jobs > 0 else effective_n_jobs(n_jobs)
    return max(1, min(asked, n_tasks, MOST_PER_CORE * cpu_count()))


def n_threads(n_jobs: int | None, n_rows: int | None = None) -> int:
    """Threads of one call: the only place that decides how many.

    If ``n_jobs`` is given, or set by ``joblib.parallel_config``, that number. If it is not given:
    all cores with more than ``ROWS.parallel`` rows, or where a start takes seconds (callers then
    leave ``n_rows`` out); otherwise one. All cores are those within the limits of affinity,
    container, OMP_NUM_THREADS, NUMBA_NUM_THREADS and threadpoolctl; inside a worker of joblib it
    is one.
    """
    from joblib import cpu_count
    from joblib.parallel import get_active_backend

    asked = get_active_backend()[1] if n_jobs is None else n_jobs
    # Threads, not processes, which a process of multiprocessing's pools may not start.
    threads, _ = get_active_backend(require="sharedmem")
    if asked is not None:
        return max(1, min(int(threads.effective_n_jobs(asked)), MOST_PER_CORE * cpu_count()))
    if (n_rows is not None and n_rows <= ROWS.parallel) or threads.nesting_level:
        return 1
    return max(1, min(cpu_count(), *_limits()))


def _limits() -> list[int]:
    """Numbers of threads that this process is limited to."""
    from numba import config

    numba = int(config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    limits = [numba, _openmp if _users else _openmp_threads()]
    said = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if said.isdigit() and int(said) > 0:
        limits.append(int(said))
    return limits


def _openmp_threads() -> int:
    """Threads that libraries with OpenMP may use in this thread now."""
    known = [one["num_threads"] for one in _libraries().info() if one["user_api"] == "openmp"]
    return min((int(one) for one in known if one), default=sys.maxsize)


def in_threads(
    work: Callable[[Task], None], tasks: Sequence[Task], workers: int, stop: Callable[[], None]
) -> None:
    """Call ``work`` with every task, several at a time; one worker is the calling thread.

    Ctrl-C calls ``stop``, which running tasks look at, waits until they have ended, and is raised
    again.
    """
    running: set[int] = set()

    def run(number: int) -> None:
        running.add(number)
        try:
            work(tasks[number])
        finally:
            running.discard(number)

    try:
        if workers == 1:
            for number in range(len(tasks)):
                run(number)
        else:
            from joblib import Parallel, delayed

            parallel = Parallel(n_jobs=workers, require="sharedmem")
            parallel(delayed(run)(number) for number in range(len(tasks)))
    except KeyboardInterrupt:
        stop()
        while running:
            time.sleep(0.01)
        raise
