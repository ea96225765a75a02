"""How many threads there are: one of BLAS while training runs, and no more workers than work.

Another number of BLAS threads would change the last bits of a result.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from joblib import cpu_count, effective_n_jobs
from threadpoolctl import threadpool_limits

MOST_PER_CORE = 8
"""Workers beyond the cores bring nothing; thousands of them exhaust the system."""

_lock = threading.Lock()
_users: list[threadpool_limits] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread for as long as any fit of this process runs.

    The limit belongs to the whole process: the first fit sets it, and the last one out, whichever
    that is, takes it back.
    """
    with _lock:
        _users.append(threadpool_limits(limits=1) if not _users else _users[0])
    try:
        yield
    finally:
        with _lock:
            limit = _users.pop()
            if not _users:
                limit.restore_original_limits()


def n_workers(n_jobs: int | None, n_tasks: int) -> int:
    """What ``n_jobs`` asks for, as far as there is work; joblib would start them all."""
    return max(1, min(effective_n_jobs(n_jobs), n_tasks, MOST_PER_CORE * cpu_count()))
