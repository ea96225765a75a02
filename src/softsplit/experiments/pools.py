"""Where jobs run: in this process, in others of this machine; cluster.py adds Dask.

All of them take the same jobs and give back the same rows. A process that dies takes nothing with
it but the slice it was working on: its job runs again. A job that kills one process after another
is given up in the end, with a row that says so.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from typing import Any, Protocol

from softsplit.experiments.context import Context
from softsplit.experiments.store import CRASHED, Row
from softsplit.experiments.work import ChainJob, run_job
from softsplit.support.parallel import one_blas_thread

Finished = tuple[ChainJob, list[Row]]
"""A job and its rows; none if it has to run again."""


class Pool(Protocol):
    """Runs jobs."""

    def room(self) -> int:
        """How many more jobs it wants now."""

    def submit(self, job: ChainJob) -> None:
        """Take a job."""

    def collect(self) -> list[Finished]:
        """Wait until jobs are finished, and hand them over."""

    def close(self) -> None:
        """Stop at once; jobs that were not handed over are lost."""


class InlinePool:
    """One job at a time, in this process."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._jobs: deque[ChainJob] = deque()
        # Held here, the limit need not be set again for every job, which takes milliseconds.
        self._limit = one_blas_thread()
        self._limit.__enter__()

    def room(self) -> int:
        return 1 - len(self._jobs)

    def submit(self, job: ChainJob) -> None:
        self._jobs.append(job)

    def collect(self) -> list[Finished]:
        job = self._jobs.popleft()
        return [(job, run_job(job, self._context))]

    def close(self) -> None:
        self._jobs.clear()
        self._limit.__exit__(None, None, None)


class ProcessPool:
    """Jobs in processes of this machine, which get the data once, when they start."""

    def __init__(self, context: Context, n_processes: int) -> None:
        self._context = context
        self._size = n_processes
        self._running: dict[Future[list[Row]], ChainJob] = {}
        self._suspects: deque[ChainJob] = deque()
        self._open()

    def _open(self) -> None:
        self._executor = ProcessPoolExecutor(
            self._size,
            # A forked copy of a process with threads may hang; a new one cannot.
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_receive,
            initargs=(self._context,),
        )

    def room(self) -> int:
        # One job more than processes, so that none waits for this process to write rows.
        return 0 if self._suspects else self._size + 1 - len(self._running)

    def submit(self, job: ChainJob) -> None:
        self._running[self._executor.submit(_run_received, job)] = job

    def collect(self) -> list[Finished]:
        if self._suspects:
            return self._try_alone(self._suspects.popleft())
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        if not any(isinstance(future.exception(), BrokenProcessPool) for future in done):
            return [(self._running.pop(future), future.result()) for future in done]
        # Some process died, and it cannot be known with which job: each is tried by itself.
        wait(self._running)
        finished: list[Finished] = []
        for future, job in self._running.items():
            if future.exception() is None:
                finished.append((job, future.result()))
            else:
                self._suspects.append(replace(job, strikes=job.strikes + 1))
        self._running.clear()
        self._reopen()
        return finished or self.collect()

    def _try_alone(self, job: ChainJob) -> list[Finished]:
        while True:
            try:
                return [(job, self._executor.submit(_run_received, job).result())]
            except BrokenProcessPool:
                self._reopen()
            job = replace(job, strikes=job.strikes + 1)
            if job.strikes >= self._context.options.strikes:
                return [(job, [job.failed(CRASHED, "the process died")])]

    def _reopen(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._open()

    def close(self) -> None:
        processes = list((self._executor._processes or {}).values())
        self._executor.shutdown(wait=False, cancel_futures=True)
        if self._running:
            for process in processes:
                process.kill()
        for process in processes:
            process.join()


_received: list[Any] = []
"""In a process of the pool: the context, and what holds BLAS to one thread."""


def _receive(context: Context) -> None:
    """Runs once in every process; an interruption is the business of the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    limit = one_blas_thread()
    limit.__enter__()
    _received[:] = [context, limit]


def _leave_with_parent() -> None:
    """A parent that was killed cannot end its processes; they must not outlive it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_received(job: ChainJob) -> list[Row]:
    return run_job(job, _received[0])
