"""Run an experiment: everything that has no row in the store yet.

The store alone says what is done. A run that was killed is taken up by running it again, and ends
with the same rows as one that was not: a chain goes on from the tree of its last finished cell, bit
for bit.

``ExperimentProgress`` shows a bar with the time left on the console.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from softsplit.data import Dataset
from softsplit.experiments.cells import FRESH, WHOLE, Cell, Chain, chains_of
from softsplit.experiments.context import Context, data_digest, load_data, versions
from softsplit.experiments.peers import reason_to_skip
from softsplit.experiments.pools import Finished, in_processes, in_this_process
from softsplit.experiments.spec import Spec
from softsplit.experiments.store import Row, RunRecord, Store
from softsplit.experiments.work import ChainJob, solver_named
from softsplit.tree.parameters import Topology


class RunProgress:
    """Receives how far a run has come; this one shows nothing."""

    def begin(self, n_cells: int, n_done: int, work: float) -> None:
        """``work`` is what is left to do, in an arbitrary unit."""

    def advance(self, row: Row, work: float) -> None:
        """A row was written; it was so much of the work."""

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
    """
    # 1. What can be refused is refused before any work.
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
    # 2. The store takes rows of one software and of the same data only.
    store.check_versions(versions(), accept_versions)
    for name, data in datasets.items():
        store.check_dataset(name, spec.training.coding, data_digest(data))
    store.add_spec(spec)
    if spec.peers:
        store.skip(skipped)
    chains = [chain for chain in chains_of(spec) if chain.model not in skipped]
    effort = _effort(datasets)
    # 3. Long chains first: short ones then fill idle workers at the end. Inner folds come last of
    # all.
    jobs = sorted(
        pending_jobs(chains, store),
        key=lambda job: (job.chain.inner != WHOLE, -effort(job.chain)),
    )
    # 4. The work, recorded row by row.
    if jobs:
        progress, queue = progress or RunProgress(), deque(jobs)
        n_cells = sum(len(chain.steps) for chain in chains)
        n_done = n_cells - sum(len(job.missing) for job in jobs)
        where = f"{n_jobs} process{'es' if n_jobs > 1 else ''}" if dask is None else "Dask"
        finished = _finished(Context(spec, datasets), queue, n_jobs, dask)
        progress.begin(n_cells, n_done, sum(effort(j.chain) * len(j.missing) for j in jobs))
        try:
            _record(finished, queue, store, progress, effort, (spec.name, where))
        finally:
            progress.end()
    return summarise(spec, store)


def _finished(
    context: Context, jobs: deque[ChainJob], n_jobs: int, dask: str | None
) -> Generator[Finished]:
    """The jobs of a queue with their rows, from wherever they run."""
    if dask is None:
        if n_jobs == 1:
            return in_this_process(context, jobs)
        return in_processes(context, jobs, n_jobs)
    if find_spec("distributed") is None:
        raise ImportError(
            "--dask needs dask.distributed; install it with: pip install 'softsplit[dask]'."
        )
    from softsplit.experiments.cluster import on_cluster

    return on_cluster(context, jobs, dask)


def _record(
    finished: Generator[Finished],
    jobs: deque[ChainJob],
    store: Store,
    progress: RunProgress,
    effort: Callable[[Chain], float],
    about: tuple[str, str],
) -> None:
    """Write rows as they come, and how long the run has taken, even if it is interrupted."""
    began, n_rows = time.perf_counter(), 0
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds")

    def note() -> None:
        store.log_run(RunRecord(*about, stamp, n_rows, time.perf_counter() - began))

    try:
        for job, rows in finished:
            for row in rows:
                if store.write(row):
                    n_rows += 1
                    progress.advance(row, effort(job.chain))
            if (rest := job.rest(rows)) is not None:
                jobs.appendleft(rest)
            note()
    finally:
        note()
        finished.close()


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


def _effort(datasets: dict[str, Dataset]) -> Callable[[Chain], float]:
    """How long a cell may take beside others: rows x features x branches, and something fixed."""
    size = {
        name: 2e4 + data.X.size * Topology.with_leaves(len(data.class_names)).n_branches
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


class ExperimentProgress(RunProgress):
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
