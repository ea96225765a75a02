"""Jobs on a Dask cluster.

Every worker gets the spec and the data once, when it is first seen, be it at the beginning or after
another was lost: scattered data may be gone with the last worker that held it. Dask itself runs the
jobs of a lost worker elsewhere.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import distributed

from softsplit.experiments.context import Context
from softsplit.experiments.pools import Finished
from softsplit.experiments.store import CRASHED, Row, versions
from softsplit.experiments.work import ChainJob, run_job


class Delivery(distributed.WorkerPlugin):
    """Brings the context to every worker."""

    def __init__(self, context: Context, made_with: dict[str, str]) -> None:
        self.context = context
        self.made_with = made_with

    def setup(self, worker: Any) -> None:
        here = versions()
        changed = [k for k, v in self.made_with.items() if here.get(k) != v]
        if changed:
            said = ", ".join(f"{k} {here.get(k)} instead of {self.made_with[k]}" for k in changed)
            raise RuntimeError(
                f"worker {worker.address} has {said}; install the same versions everywhere."
            )


class SchedulerLost(ValueError):
    """The scheduler has gone, and with it the jobs it had."""


class DaskPool:
    """Jobs on the workers of the scheduler at ``address``."""

    def __init__(self, context: Context, address: str) -> None:
        self._options = context.options
        try:
            self._client = distributed.Client(
                address, timeout=self._options.patience, set_as_default=False
            )
        except (OSError, ValueError) as error:
            raise ValueError(
                f"no Dask scheduler answers at {address!r} ({error}); start one with 'dask "
                "scheduler' and give its address."
            ) from None
        self._address, self._lost = address, False
        self._running: dict[Any, ChainJob] = {}
        self._name = f"softsplit-{uuid.uuid4()}"
        with self._answering():
            self._client.wait_for_workers(1)
            self._client.register_plugin(Delivery(context, versions()), name=self._name)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Say in one sentence that the scheduler is gone."""
        try:
            yield
        except (OSError, CancelledError):  # what is said differs with the moment it went
            raise self._loss() from None

    def _loss(self) -> SchedulerLost:
        self._lost = True
        return SchedulerLost(
            f"the Dask scheduler at {self._address!r} was lost; every row recorded so far is kept: "
            "start a scheduler and workers, and run the same command again."
        )

    def room(self) -> int:
        with self._answering():
            threads = sum(self._client.nthreads().values())
        return max(1, self._options.jobs_per_thread * threads) - len(self._running)

    def submit(self, job: ChainJob) -> None:
        with self._answering():
            future = self._client.submit(_run_delivered, job, self._name, pure=False)
        self._running[future] = job

    def collect(self) -> list[Finished]:
        with self._answering(), self._client.as_current():  # the caller may have one of its own
            distributed.wait(list(self._running), return_when="FIRST_COMPLETED")
        finished: list[Finished] = []
        for future in [f for f in self._running if f.done()]:
            job = self._running.pop(future)
            if future.status == "finished":
                with self._answering():
                    finished.append((job, future.result()))
                continue
            # A lost worker's jobs run elsewhere; a job is cancelled only with its scheduler.
            if future.status != "error":
                raise self._loss()
            error = future.exception()
            if not isinstance(error, distributed.KilledWorker):
                raise error
            # Dask gives up a job after some workers died with it. It is then tried step by step.
            if job.strikes == 0:
                finished.append((replace(job, strikes=1), []))
            else:
                finished.append((job, [job.failed(CRASHED, "several workers died of it")]))
        return finished

    def close(self) -> None:
        if not self._lost:
            with suppress(OSError, CancelledError):
                self._client.cancel(list(self._running), force=True)
                self._client.unregister_worker_plugin(self._name)
        self._client.close(timeout=self._options.patience)


def _run_delivered(job: ChainJob, name: str) -> list[Row]:
    delivery: Any = distributed.get_worker().plugins[name]
    return run_job(job, delivery.context)
