"""Where jobs run: in this process, or in others of this machine; cluster.py adds Dask.

Each way is a generator: it takes jobs from a queue, to which the caller may add more, and yields
each with its rows. All give the same rows. A process that dies takes nothing with it but the slice
it was working on: its job runs again by itself, step by step, and a step that kills its process
once more is given up, with a row that says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from softsplit.experiments.context import Context
from softsplit.experiments.store import Row
from softsplit.experiments.work import ChainJob, run_job
from softsplit.support.parallel import one_blas_thread
from softsplit.support.processes import end, process_pool

Finished = tuple[ChainJob, list[Row]]
"""A job and its rows; none if it has to run again."""


def in_this_process(context: Context, jobs: deque[ChainJob]) -> Generator[Finished]:
    """One job after the other."""
    with one_blas_thread():  # held here, it need not be set for every job
        while jobs:
            job = jobs.popleft()
            yield job, run_job(job, context)


def in_processes(context: Context, jobs: deque[ChainJob], n: int) -> Generator[Finished]:
    """Jobs in ``n`` processes of this machine, which get the data once, when they start.

    1. Hand over jobs, one more than there are processes, so that none waits for rows to be written;
       a job that was there when a process died runs with no other beside it.
    2. Yield what is finished.
    3. If a process died, it cannot be known with which job: all that ran count as suspects, and the
       processes are started anew. A suspect that ran alone is to blame.
    """
    executor = process_pool(n, _receive, context)
    running: dict[Future[list[Row]], ChainJob] = {}
    try:
        while jobs or running:
            # 1. hand over
            while jobs and len(running) <= n and not (running and _alone(jobs[0], running)):
                job = jobs.popleft()
                running[executor.submit(_run_received, job)] = job
            # 2. what is finished
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            if not any(isinstance(future.exception(), BrokenProcessPool) for future in done):
                yield from [(running.pop(future), future.result()) for future in done]
                continue
            # 3. a process died
            wait(running)
            ended, running = running, {}
            executor.shutdown(wait=True, cancel_futures=True)
            executor = process_pool(n, _receive, context)
            for future, job in ended.items():
                if future.exception() is None:
                    yield job, future.result()
                else:
                    yield job.after_death("the process died")
    finally:
        end(executor)


def _alone(job: ChainJob, running: dict[Future[list[Row]], ChainJob]) -> bool:
    return job.suspect or any(other.suspect for other in running.values())


_received: list[Any] = []
"""In a process of the pool: the context, and what holds BLAS to one thread."""


def _receive(context: Context) -> None:
    """Runs once in every process."""
    limit = one_blas_thread()
    limit.__enter__()
    _received[:] = [context, limit]


def _run_received(job: ChainJob) -> list[Row]:
    return run_job(job, _received[0])
