"""Other processes of the same Python: whether they may be started, and pools of them.

Threads share one interpreter, and code that is mostly Python gains nothing from a second one.
Processes are spawned: a forked copy of a process with threads may hang, and a new one cannot.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import parent_process
from pathlib import Path
from typing import Any


def n_cores() -> int:
    """Return the number of cores that this process may use, where the system tells."""
    with suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def may_start_processes() -> bool:
    """Return False in a pool, where others work already, and where Python is embedded."""
    plain = "python" in Path(sys.executable or "").name.lower() and not hasattr(sys, "frozen")
    return plain and parent_process() is None and n_cores() > 1


def start_python(code: str) -> subprocess.Popen[bytes] | None:
    """Start the same Python with the same paths; None where that fails.

    -P keeps the working directory out of the paths. Unlike the processes of a pool it does not
    import the program of the user, who may not have guarded it.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    silent = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            env=environment, stdin=silent, stdout=silent, stderr=silent,
        )  # fmt: skip
    except OSError:
        return None


def process_pool(
    n: int, ready: Callable[..., object] = int, *arguments: Any
) -> ProcessPoolExecutor:
    """Return a pool of ``n`` processes, each of which calls ``ready`` first."""
    return ProcessPoolExecutor(
        n,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(ready, arguments),
    )


def end(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool, whatever they do."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()
        process.join()


def _begin(ready: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    """An interruption is the business of the parent, and no process outlives it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    ready(*arguments)


def _leave_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
