"""Work in several threads: one of BLAS while training runs, and no more workers than work.

Another number of BLAS threads would change the last bits of a result. Libraries are loaded when
there is work: few rows are answered without them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

MOST_PER_CORE = 8
"""Workers beyond the cores bring nothing; thousands of them exhaust the system."""

Task = TypeVar("Task")

_lock = threading.Lock()
_users: list[Any] = []


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
    with _lock:
        _users.append(_libraries().limit(limits=1) if not _users else _users[0])
    try:
        yield
    finally:
        with _lock:
            limit = _users.pop()
            if not _users:
                limit.restore_original_limits()


def n_workers(n_jobs: int | None, n_tasks: int) -> int:
    """What ``n_jobs`` asks for, as far as there is work; joblib would start them all."""
    from joblib import cpu_count, effective_n_jobs

    return max(1, min(effective_n_jobs(n_jobs), n_tasks, MOST_PER_CORE * cpu_count()))


def n_threads(n_jobs: int | None) -> int:
    """Threads for work on many rows: what ``n_jobs`` asks for; where it is None, all cores.

    As in libraries with OpenMP, whose variable OMP_NUM_THREADS, which joblib sets in its workers,
    counts here too.
    """
    from joblib import cpu_count, effective_n_jobs

    if n_jobs is not None:
        return n_workers(n_jobs, MOST_PER_CORE * cpu_count())
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    cores = effective_n_jobs(-1)
    return min(cores, int(allowed)) if allowed.isdigit() and int(allowed) > 0 else cores


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


Result = TypeVar("Result")


def while_time(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    workers: int,
    over: Callable[[], bool],
    poll: float = 0.05,
) -> dict[int, Result]:
    """Return the results of the tasks, by their places, that are done before it is ``over``.

    For code of other libraries, which looks at no budget: it runs in threads that are left to
    themselves when the time has ended, and what they find then is dropped.
    """
    found: dict[int, Result] = {}
    errors: list[BaseException] = []
    waiting, ended = list(range(len(tasks)))[::-1], threading.Semaphore(0)
    changing, closed = threading.Lock(), threading.Event()

    def run() -> None:
        while not closed.is_set():
            with changing:
                if not waiting:
                    return
                place = waiting.pop()
            try:
                result = work(tasks[place])
                with changing:
                    if not closed.is_set():
                        found[place] = result
            except BaseException as error:
                errors.append(error)
            ended.release()

    for _ in range(workers):
        threading.Thread(target=run, daemon=True).start()
    try:
        done = 0
        while done < len(tasks) and not errors and not over():
            done += ended.acquire(timeout=poll)
    finally:
        with changing:
            closed.set()
    if errors:
        raise errors[0]
    return found
