"""One BLAS thread while training runs: another number would change the last bits of a result."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

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
