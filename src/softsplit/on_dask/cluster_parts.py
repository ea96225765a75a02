"""The parts of a table on the workers of a Dask cluster: stored once, asked many times.

``store`` has every part read and written by some worker (parts.py). ``ask`` puts a question to all
parts: each worker gets the question once, with the names of those parts that it has, and answers
come back part by part, in their order, whoever gave them: the sum of the answers has the same bits
for any number of workers.

A worker may be lost at any time. Nothing but its files is gone: its parts are read again from where
the table came from, by others, and asked again. Dask keeps no data for us, and moves none.
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from softsplit.on_dask.parts import Part
from softsplit.support.parallel import one_blas_thread

# Makes a delayed (Part, facts) of the number of a part and the name of the table's folder.
Store = Callable[[int, str], Any]


# Times that lost parts are read again for one question.
ROUNDS = 20

# Seconds after which we look whether the workers that are asked are still there.
LOOK = 2.0

# Seconds to wait for a worker when none is left.
PATIENCE = 60.0

# Times that files are looked for at the end, and seconds in between.
CLEARED, SETTLED = 10, 0.3

# Seconds to wait for the scheduler's answer at the beginning.
ANSWER = 10.0


class ClusterLost(ValueError):
    """The scheduler, or every worker, is gone."""


class DaskParts:
    """Parts of a table on the workers of a client.

    Parameters
    ----------
    client : distributed.Client
    stores : sequence of callables
        For every part what reads it, checks it and stores it: see ``Store``.
    """

    def __init__(self, client: Any, stores: Sequence[Store]) -> None:
        self.client, self._stores = client, stores
        self.folder = f"softsplit-{uuid.uuid4().hex}"
        self._parts: dict[int, Part] = {}
        self._folders: set[str] = set()

    def store(self) -> list[Any]:
        """Have all parts stored; the facts that were told of each. Parts without rows are none."""
        return [facts for facts in self._stored(range(len(self._stores))) if facts is not None]

    @property
    def parts(self) -> list[Part]:
        """The parts that have rows, in their order."""
        return [self._parts[number] for number in sorted(self._parts)]

    def ask(
        self, work: Callable[..., Any], *question: Any, each: Sequence[Any] | None = None
    ) -> list[Any]:
        """``work(part, *question)`` for every part, in their order; None is no answer.

        With ``each``, a part gets its entry there as one more argument.
        """
        answers: dict[int, Any] = {}
        own = {} if each is None else dict(zip(sorted(self._parts), each, strict=True))
        for _ in range(ROUNDS):
            missing = [number for number in sorted(self._parts) if answers.get(number) is None]
            if not missing:
                return [answers[number] for number in sorted(answers)]
            lost = [n for n in missing if n in answers]
            if lost:
                self._stored(lost)
            answers |= self._asked(missing, work, question, own)
        raise ClusterLost(
            f"workers were lost in each of {ROUNDS} passes over the rows; look at "
            "their logs and memory limits, and fit again."
        )

    def close(self) -> None:
        """Remove the files; those of workers that have ended went with them."""
        with suppress(Exception):  # whatever has become of the cluster: there is nothing to mend
            for _ in range(CLEARED):
                if self.client.status != "running" or not self.client.nthreads():
                    break
                folders = sorted(self._folders), self.folder
                removed = self.client.run(remove, *folders, on_error="ignore")
                if not any(removed.values()):
                    break
                time.sleep(SETTLED)  # what was cancelled may still be writing

    def _stored(self, numbers: Sequence[int]) -> list[Any]:
        delayed = [self._stores[number](number, self.folder) for number in numbers]
        with self._answering():
            self._wait_for_workers()
            pairs = self._gathered(self.client.compute(delayed), {})
        facts = []
        for number, pair in zip(numbers, pairs, strict=True):
            if pair is None:
                raise ClusterLost(
                    f"workers died while they read partition {number}; give them more memory, or "
                    "make smaller partitions, with repartition or rechunk."
                )
            part, answer = pair
            if part is not None:
                self._parts[number] = part
                self._folders.add(str(Path(part.path).parent))
            facts.append(answer)
        return facts

    def _asked(
        self, numbers: Sequence[int], work: Any, question: tuple[Any, ...], own: dict[int, Any]
    ) -> dict[int, Any]:
        """Answers of those parts whose workers are there; None for others."""
        with self._answering():
            # 1. Parts by their homes.
            threads = self.client.nthreads()
            homes: dict[str, list[int]] = {}
            for number in numbers:
                homes.setdefault(self._parts[number].home, []).append(number)
            # 2. A batch of them for each thread there; none where the home is gone.
            futures, asked = [], []
            for home, here in homes.items():
                for shift in range(min(threads.get(home, 0), len(here))):
                    batch = here[shift :: threads[home]]
                    pairs = [(self._parts[n], own.get(n)) for n in batch]
                    futures.append(
                        self.client.submit(
                            _answers, work, pairs, question, bool(own), workers=[home], pure=False
                        )
                    )
                    asked.append(batch)
            homes_of = {f.key: self._parts[b[0]].home for f, b in zip(futures, asked, strict=True)}
            batches = self._gathered(futures, homes_of)
        # 3. Answers part by part.
        answers: dict[int, Any] = dict.fromkeys(numbers)
        for batch, given in zip(asked, batches, strict=True):
            answers |= dict(zip(batch, given or [None] * len(batch), strict=True))
        return answers

    def _gathered(self, futures: Sequence[Any], homes: dict[str, str]) -> list[Any]:
        """Results in the order of the futures; None where a worker was lost.

        A future that only its home may answer would wait for ever if that is gone.
        """
        import distributed

        waiting, lonely = list(futures), 0.0
        try:
            while waiting:
                # 1. Wait for a while.
                began = time.monotonic()
                with suppress(TimeoutError):
                    distributed.wait(waiting, timeout=LOOK)
                waiting = [future for future in waiting if future.status == "pending"]
                if not waiting:
                    break
                # 2. Give up what only a lost worker may answer, and a cluster without workers.
                there = self.client.nthreads()
                gone = [f for f in waiting if f.key in homes and homes[f.key] not in there]
                waiting = [future for future in waiting if future not in gone]
                lonely = 0.0 if there else lonely + time.monotonic() - began
                if lonely > PATIENCE:
                    raise self._deserted()
            return [self._result(future) for future in futures]
        finally:
            for future in futures:
                if future.status == "pending":
                    with suppress(Exception):
                        future.cancel()

    def _result(self, future: Any) -> Any:
        import distributed

        if future.status == "finished":
            try:
                return future.result(timeout=PATIENCE)
            except (TimeoutError, CancelledError):  # the worker went with its answer
                return None
        if future.status == "error":
            error = future.exception()
            if isinstance(error, distributed.KilledWorker):
                return None
            raise error
        return None

    def _wait_for_workers(self) -> None:
        if not self.client.nthreads():
            try:
                self.client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError:
                raise self._deserted() from None

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Say in one sentence that the scheduler is gone."""
        try:
            with self.client.as_current():  # the caller may have another one
                yield
        except (OSError, CancelledError, RuntimeError) as error:
            if self.client.status == "running" and not isinstance(error, CancelledError):
                raise
            raise ClusterLost(
                "the Dask scheduler was lost, or the client closed, before training had ended; "
                "start a cluster and fit again."
            ) from None

    @staticmethod
    def _deserted() -> ClusterLost:
        return ClusterLost(
            f"the Dask cluster has had no worker for {PATIENCE:.0f} seconds; start "
            "workers and fit again."
        )


def _answers(work: Any, pairs: Any, question: tuple[Any, ...], each: bool) -> list[Any]:
    """On a worker: what its parts answer; None where a file is not there."""
    with one_blas_thread():
        return [
            (work(part, *question, own) if each else work(part, *question)) if part.there else None
            for part, own in pairs
        ]


def own_folder(name: str) -> tuple[str, Path]:
    """On a worker: its address, and its folder for the parts of a table."""
    import distributed

    worker = distributed.get_worker()
    return worker.address, Path(worker.local_directory) / name


def remove(folders: Sequence[str], name: str, dask_worker: Any = None) -> int:
    """On a worker: remove folders that are on its machine, and all of that name beside its own.

    How many there were. When a worker is lost Dask may store a part again where nobody knows of it.
    """
    beside = Path(dask_worker.local_directory).parent.glob(f"*/{name}") if dask_worker else ()
    there = [folder for folder in {*map(Path, folders), *beside} if folder.exists()]
    for folder in there:
        shutil.rmtree(folder, ignore_errors=True)
    return len(there)
