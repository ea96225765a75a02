"""Run an experiment: everything that has no row in the store yet.

The store alone says what is done. A run that was killed is taken up by running it again, and ends
with the same rows as one that was not: a chain goes on from the tree of its last finished cell, bit
for bit.

``ExperimentProgress`` shows a bar with the time left on the console.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from softsplit.data import Dataset
from softsplit.experiments.cells import FRESH, Cell, Chain, chains_of
from softsplit.experiments.context import RUN_OPTIONS, Context, RunOptions, data_digest, load_data
from softsplit.experiments.folds import WHOLE
from softsplit.experiments.peers import reason_to_skip
from softsplit.experiments.pools import InlinePool, Pool, ProcessPool
from softsplit.experiments.spec import Spec
from softsplit.experiments.store import Row, RunRecord, Store, versions
from softsplit.experiments.work import ChainJob, solver_named
from softsplit.tree.parameters import Topology


class RunProgress(Protocol):
    """Is told how far a run has come."""

    def begin(self, n_cells: int, n_done: int, work: float) -> None:
        """``work`` is what is left to do, in an arbitrary unit."""

    def advance(self, row: Row, work: float) -> None:
        """A row was written; it was so much of the work."""

    def end(self) -> None: ...


class Silence:
    """Shows nothing."""

    def begin(self, n_cells: int, n_done: int, work: float) -> None: ...

    def advance(self, row: Row, work: float) -> None: ...

    def end(self) -> None: ...


@dataclass(frozen=True)
class RunSummary:
    """How many cells a spec has, how many have a row, and what became of those."""

    n_cells: int
    statuses: Counter[str]
    skipped: dict[str, str]

    @property
    def n_done(self) -> int:
        return self.statuses.total()


def run_experiment(
    spec: Spec,
    store: Store,
    *,
    n_jobs: int = 1,
    dask: str | None = None,
    accept_versions: bool = False,
    progress: RunProgress | None = None,
    options: RunOptions | None = None,
) -> RunSummary:
    """Run all cells of ``spec`` that have no row in ``store``.

    Parameters
    ----------
    spec : Spec
    store : Store
    n_jobs : int
        Processes of this machine; the results do not depend on it.
    dask : str, optional
        Address of a Dask scheduler, whose workers are used instead.
    accept_versions : bool
        Add to a store whose rows were made by other versions of the software.
    progress : RunProgress, optional
    options : RunOptions, optional
    """
    for solver in spec.solvers if spec.models else ():
        solver_named(solver, spec.training.loss)  # an unknown name is refused before any work
    skipped = {name: why for name in spec.peers if (why := reason_to_skip(name)) is not None}
    datasets = load_data(spec)
    for name, data in datasets.items():
        if spec.folds.count > len(data.y):
            raise ValueError(
                f"data set {name!r} has {len(data.y)} rows, too few for {spec.folds.count} folds; "
                "lower folds.count."
            )
    store.check_versions(versions(), accept_versions)
    for name, data in datasets.items():
        store.check_dataset(name, spec.training.coding, data_digest(data))
    store.add_spec(spec)
    if spec.peers:
        store.skip(skipped)
    chains = [chain for chain in chains_of(spec) if chain.model not in skipped]
    jobs = deque(pending_jobs(chains, store))
    if jobs:
        context = Context(spec, datasets, options or RUN_OPTIONS)
        pool = _pool(context, n_jobs, dask)
        where = f"{n_jobs} process{'es' if n_jobs > 1 else ''}" if dask is None else "Dask"
        with _on_record(context, store, where, progress or Silence()) as watched:
            _run(jobs, store, pool, watched, chains, datasets)
    return summarise(spec, store)


class _Counting:
    """Passes on to another progress, counts rows, and calls ``note`` after ``every`` seconds."""

    def __init__(self, progress: RunProgress, note: Callable[[int], None], every: float) -> None:
        self.n_rows, self._every = 0, every
        self.begin, self.end = progress.begin, progress.end
        self._advance, self._note = progress.advance, note
        self._noted = time.perf_counter()

    def advance(self, row: Row, work: float) -> None:
        self.n_rows += 1
        if time.perf_counter() - self._noted > self._every:
            self._note(self.n_rows)
            self._noted = time.perf_counter()
        self._advance(row, work)


@contextmanager
def _on_record(
    context: Context, store: Store, where: str, progress: RunProgress
) -> Iterator[RunProgress]:
    """Keep in the store how long a run took, even if it is interrupted or killed."""
    began = time.perf_counter()
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds")

    def note(n_rows: int) -> None:
        store.log_run(
            RunRecord(context.spec.name, stamp, where, n_rows, time.perf_counter() - began)
        )

    counting = _Counting(progress, note, context.options.noted_every)
    try:
        yield counting
    finally:
        note(counting.n_rows)


def _pool(context: Context, n_jobs: int, dask: str | None) -> Pool:
    if dask is not None:
        if find_spec("distributed") is None:
            raise ImportError(
                "--dask needs dask.distributed; install it with: pip install 'softsplit[dask]'."
            )
        from softsplit.experiments.cluster import DaskPool

        return DaskPool(context, dask)
    return InlinePool(context) if n_jobs == 1 else ProcessPool(context, n_jobs)


def pending_jobs(chains: list[Chain], store: Store) -> list[ChainJob]:
    """A job for every chain with cells that have no row."""
    done = store.finished({chain.protocol for chain in chains})
    jobs = []
    for chain in chains:
        missing = tuple(i for i in range(len(chain.steps)) if chain.cell(i) not in done)
        if missing:
            parents = {chain.steps[i].parent for i in missing} - {FRESH, *missing}
            jobs.append(ChainJob(chain, missing, store.trees(chain, sorted(parents))))
    return jobs


def _run(
    jobs: deque[ChainJob],
    store: Store,
    pool: Pool,
    progress: RunProgress,
    chains: list[Chain],
    datasets: dict[str, Dataset],
) -> None:
    effort = _effort(datasets)
    # Long chains first: short ones then fill idle workers at the end. Inner folds come last of all.
    jobs = deque(sorted(jobs, key=lambda job: (job.chain.inner != WHOLE, -effort(job.chain))))
    n_cells = sum(len(chain.steps) for chain in chains)
    n_left = sum(len(job.missing) for job in jobs)
    progress.begin(
        n_cells, n_cells - n_left, sum(effort(job.chain) * len(job.missing) for job in jobs)
    )
    running = 0
    try:
        while jobs or running:
            while jobs and pool.room() > 0:
                pool.submit(jobs.popleft())
                running += 1
            for job, rows in pool.collect():
                running -= 1
                for row in rows:
                    if store.write(row):
                        progress.advance(row, effort(job.chain))
                rest = job.rest(rows) if rows else job
                if rest is not None:
                    jobs.appendleft(rest)
    finally:
        pool.close()
        progress.end()


def _effort(datasets: dict[str, Dataset]) -> Callable[[Chain], float]:
    """How long a cell may take beside others: rows x features x branches, and something fixed."""
    size = {
        name: 2e4 + data.X.size * Topology.for_classes(len(data.class_names)).n_branches
        for name, data in datasets.items()
    }
    return lambda chain: size[chain.dataset]


def summarise(spec: Spec, store: Store) -> RunSummary:
    """What the store holds of a spec."""
    skipped = {name: why for name, why in store.skipped().items() if name in spec.peers}
    chains = [chain for chain in chains_of(spec) if chain.model not in skipped]
    frame = store.frame({chain.protocol for chain in chains})
    wanted = {chain.cell(i) for chain in chains for i in range(len(chain.steps))}
    keys = frame[list(Cell._fields)].itertuples(index=False, name=None)
    statuses = Counter(
        status for key, status in zip(keys, frame["status"], strict=True) if Cell(*key) in wanted
    )
    return RunSummary(len(wanted), statuses, skipped)


class ExperimentProgress:
    """Cells done, cells in all, the data set at work, time gone and time left.

    The time left goes by the size of the data of the cells that are left, not by their number.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._bar = Progress(
            TextColumn("{task.fields[dataset]:<20}"),
            BarColumn(),
            TextColumn("{task.fields[done]} of {task.fields[cells]} cells"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console or Console(stderr=True),
            speed_estimate_period=600.0,
        )

    def begin(self, n_cells: int, n_done: int, work: float) -> None:
        self._done = n_done
        self._task = self._bar.add_task("", total=work, dataset="", done=n_done, cells=n_cells)
        self._bar.start()

    def advance(self, row: Row, work: float) -> None:
        self._done += 1
        self._bar.update(self._task, advance=work, done=self._done, dataset=row.cell.dataset)

    def end(self) -> None:
        self._bar.stop()
