"""Jobs on a Dask cluster.

Every worker gets the spec and the data once, when it is first seen, be it at the beginning or after
another was lost: scattered data may be gone with the last worker that held it. Dask itself runs the
jobs of a lost worker elsewhere.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Generator
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

import distributed

from softsplit.experiments.context import Context, versions
from softsplit.experiments.pools import Finished
from softsplit.experiments.store import Row
from softsplit.experiments.work import ChainJob, run_job

PATIENCE = 10.0
"""Seconds to wait for a scheduler's answer."""

JOBS_PER_THREAD = 2
"""Jobs a worker has at a time for each of its threads, so that it need not wait for the next."""


class Delivery(distributed.WorkerPlugin):
    """Brings the context to every worker."""

    def __init__(self, context: Context, made_with: dict[str, str]) -> None:
        self.context = context
        self.made_with = made_with

    def setup(self, worker: Any) -> None:
        here = versions()
        changed = [k for k, v in self.made_with.items() if here.get(k) != v]
        if changed:
            differences = ", ".join(
                f"{k} {here.get(k)} instead of {self.made_with[k]}" for k in changed
            )
            raise RuntimeError(
                f"worker {worker.address} has {differences}; install the same versions everywhere."
            )


class SchedulerLost(ValueError):
    """The scheduler has gone, and with it the jobs it had."""


def on_cluster(context: Context, jobs: deque[ChainJob], address: str) -> Generator[Finished]:
    """Jobs on the workers of the scheduler at ``address``, some for each of their threads."""
    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {address!r} ({error}); start one with 'dask "
            "scheduler' and give its address."
        ) from None
    return _on_client(context, jobs, client, address)


def _on_client(
    context: Context, jobs: deque[ChainJob], client: distributed.Client, address: str
) -> Generator[Finished]:
    """The loop of ``on_cluster``: hand jobs over as there is room, yield what is finished."""
    name = f"softsplit-{uuid.uuid4()}"
    running: dict[Any, ChainJob] = {}
    try:
        client.wait_for_workers(1)
        client.register_plugin(Delivery(context, versions()), name=name)
        while jobs or running:
            room = max(1, JOBS_PER_THREAD * sum(client.nthreads().values())) - len(running)
            for _ in range(min(room, len(jobs))):
                job = jobs.popleft()
                running[client.submit(_run_delivered, job, name, pure=False)] = job
            with client.as_current():  # the caller may have one of its own
                distributed.wait(list(running), return_when="FIRST_COMPLETED")
            for future in [future for future in running if future.done()]:
                job = running.pop(future)
                if future.status == "finished":
                    yield job, future.result()
                    continue
                _raise_unless_killed(future)
                # Dask gives up a job after some workers died with it: then it is tried by steps.
                yield job.after_death("several workers died of it")
        client.unregister_worker_plugin(name)
    except (OSError, CancelledError):  # what is raised differs with the moment it went
        raise SchedulerLost(
            f"the Dask scheduler at {address!r} was lost; every row recorded so far is kept: "
            "start a scheduler and workers, and run the same command again."
        ) from None
    finally:
        with suppress(OSError, CancelledError):
            client.cancel(list(running), force=True)
        client.close(timeout=PATIENCE)


def _raise_unless_killed(future: Any) -> None:
    """Raise what a job raised; a job is cancelled only with its scheduler."""
    if future.status != "error":
        raise CancelledError
    error = future.exception()
    if not isinstance(error, distributed.KilledWorker):
        raise error


def _run_delivered(job: ChainJob, name: str) -> list[Row]:
    delivery: Any = distributed.get_worker().plugins[name]
    return run_job(job, delivery.context)
