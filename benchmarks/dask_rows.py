"""Tables on a local Dask cluster: larger than its memory, with a worker lost, and at what cost.

    python benchmarks/dask_rows.py large       2e7 rows x 30 from Parquet, two workers of 1 GB each,
                                               and once more with a worker killed in the middle
    python benchmarks/dask_rows.py overhead    1e6 rows: two workers against two threads
    python benchmarks/dask_rows.py workers     rows per second of a pass against workers, 1 to 4

The rows are like those of benchmarks/scale.py: four classes, the largest of four random linear
scores with Gumbel noise of scale 0.3, and a tenth of the labels drawn anew; depth 3.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from common import arguments

N_FEATURES, N_CLASSES = 30, 4
SETTINGS = {"depth": 3, "random_state": 0}
KILL_IN = 3
"""A worker is killed in the pass of this number, the first being 0."""


def rows(n: int, part: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a part; all parts have the same scores."""
    weights = np.random.default_rng(0).normal(size=(N_FEATURES, N_CLASSES)) / np.sqrt(N_FEATURES)
    draw = np.random.default_rng([1, part])
    X = draw.normal(size=(n, N_FEATURES))
    y = np.argmax(X @ weights + 0.3 * draw.gumbel(size=(n, N_CLASSES)), axis=1)
    anew = draw.uniform(size=n) < 0.1
    y[anew] = draw.integers(0, N_CLASSES, anew.sum())
    return X, y


def write_parquet(folder: Path, n_rows: int, per_file: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(n_rows // per_file):
        X, y = rows(per_file, part)
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(N_FEATURES)])
        frame.assign(y=y).to_parquet(folder / f"{part:04}.parquet")


class Asked:
    """Counts the passes of a fit and their time; kills a worker in one of them."""

    def __init__(self, kill_in: int | None = None, pid: int = 0) -> None:
        from softsplit.on_dask.cluster_parts import DaskParts

        self.seconds: dict[str, list[float]] = {}
        self._class, self._ask, self._store = DaskParts, DaskParts.ask, DaskParts.store
        self._kill_in, self._pid = kill_in, pid

    def __enter__(self) -> Asked:
        asked = self

        def ask(parts, work, *question, each=None):
            began = time.perf_counter()
            name = work.__name__
            count = len(asked.seconds.setdefault(name, []))
            if name == "part_sums" and count == asked._kill_in:
                os.kill(asked._pid, signal.SIGKILL)
                print(f"killed worker process {asked._pid} in pass {count + 1}", flush=True)
            found = asked._ask(parts, work, *question, each=each)
            asked.seconds[name].append(time.perf_counter() - began)
            return found

        def store(parts):
            began = time.perf_counter()
            found = asked._store(parts)
            asked.seconds["store"] = [time.perf_counter() - began]
            return found

        self._class.ask, self._class.store = ask, store
        return self

    def __exit__(self, *_: object) -> None:
        self._class.ask, self._class.store = self._ask, self._store

    def told(self) -> str:
        return ", ".join(
            f"{name} {len(s)} x {np.median(s):.2f} s = {np.sum(s):.0f} s"
            for name, s in self.seconds.items()
        )


def cluster(n_workers: int, folder: Path, memory: str = "1GB", threads: int = 1):
    import distributed

    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=threads, memory_limit=memory,
        local_directory=str(folder), dashboard_address=":0", silence_logs=50,
    )  # fmt: skip


def peak() -> int:
    """Largest resident memory of this process so far, bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def fit_parquet(client, folder: Path, asked: Asked):
    import dask.dataframe as dd

    from softsplit import DaskSoftTreeClassifier

    frame = dd.read_parquet(folder)
    features = frame[[f"x{j}" for j in range(N_FEATURES)]]
    began = time.perf_counter()
    with asked:
        tree = DaskSoftTreeClassifier(client=client, **SETTINGS).fit(features, frame["y"])
    seconds = time.perf_counter() - began
    print(
        f"  {seconds:.0f} s; objective {tree.objective_:.6f} ({tree.solution_.status.name}); "
        f"{len(tree.selected_features_)} features; {asked.told()}",
        flush=True,
    )
    peaks = client.run(peak).values()
    print(f"  peak memory of the workers {max(peaks) / 1e9:.2f} GB", flush=True)
    return tree


def large(folder: Path, n_rows: int, rounds: int) -> None:
    import distributed

    data, local = folder / "large", folder / "workers"
    if not data.exists():
        began = time.perf_counter()
        write_parquet(data, n_rows, min(250_000, n_rows // 8))
        print(f"{n_rows:,} rows written in {time.perf_counter() - began:.0f} s", flush=True)
    with cluster(2, local) as made, distributed.Client(made) as client:
        print("two workers of 1 GB:", flush=True)
        kept = fit_parquet(client, data, Asked())
        print("the same, a worker killed in the middle:", flush=True)
        pid = next(iter(client.run(os.getpid).values()))
        asked = Asked(KILL_IN, pid)
        lost = fit_parquet(client, data, asked)
        left = list(local.rglob("*.rows"))
    same = np.array_equal(kept.coef_, lost.coef_) and kept.objective_ == lost.objective_
    print(f"same tree to the bit: {same}; files left: {len(left)}", flush=True)
    if len(asked.seconds["part_sums"]) <= KILL_IN:
        raise SystemExit("the fit had too few passes for a worker to be killed in one.")
    if left or not same:
        raise SystemExit("a lost worker changed the tree, or files were left.")


def overhead(folder: Path, n_rows: int, rounds: int) -> None:
    """Both sides in turn; the medians, of seconds and of processor seconds of all processes."""
    import dask.dataframe as dd
    import distributed

    from softsplit import DaskSoftTreeClassifier, SoftTreeClassifier

    data = folder / "million"
    if not data.exists():
        write_parquet(data, n_rows, n_rows // 8)
    table = pd.read_parquet(data)
    names = [f"x{j}" for j in range(N_FEATURES)]
    near, far = [], []
    with cluster(2, folder / "workers", "8GB") as made, distributed.Client(made) as client:
        frame = dd.read_parquet(data).persist()  # both sides have their rows in memory
        distributed.wait(frame)

        def timed(fit):
            began = time.perf_counter(), time.process_time(), client.run(time.process_time)
            tree = fit()
            there = client.run(time.process_time)
            spent = sum(there[worker] - before for worker, before in began[2].items())
            return tree, time.perf_counter() - began[0], time.process_time() - began[1] + spent

        few, part = table[:30_000], frame.partitions[:1]
        SoftTreeClassifier(n_starts=1, **SETTINGS).fit(few[names], few["y"])  # loads code
        DaskSoftTreeClassifier(n_starts=1, **SETTINGS).fit(part[names], part["y"])
        for _ in range(rounds):
            plain, *seconds = timed(
                lambda: SoftTreeClassifier(n_jobs=2, **SETTINGS).fit(table[names], table["y"])
            )
            near.append(seconds)
            asked = Asked()
            with asked:
                tree, *seconds = timed(
                    lambda: DaskSoftTreeClassifier(n_jobs=2, **SETTINGS).fit(
                        frame[names], frame["y"]
                    )
                )
            far.append(seconds)
            print(f"threads {near[-1]}, Dask {far[-1]}; {asked.told()}", flush=True)
    (wall, cpu), (dask_wall, dask_cpu) = np.median(near, axis=0), np.median(far, axis=0)
    print(
        f"two threads {wall:.1f} s ({cpu:.1f} s of processors), two workers {dask_wall:.1f} s "
        f"({dask_cpu:.1f} s): {dask_wall / wall:.2f} and {dask_cpu / cpu:.2f} times; objectives "
        f"differ by {tree.objective_ / plain.objective_ - 1:.1e}",
        flush=True,
    )


def workers(folder: Path, n_rows: int, rounds: int) -> None:
    """Passes at one tree of ten columns, after the table is stored."""
    import dask.dataframe as dd
    import distributed

    from softsplit import DaskSoftTreeClassifier
    from softsplit.engines.outer import LOGARITHM
    from softsplit.formulations.model_settings import ModelSettings
    from softsplit.on_dask.partitions import partitions
    from softsplit.on_dask.table import stored_table

    data = folder / "million"
    if not data.exists():
        write_parquet(data, n_rows, n_rows // 8)
    draw = np.random.default_rng(0)
    splits, leaves = draw.normal(size=(7, 11)), draw.dirichlet(np.ones(N_CLASSES), 8).T
    for count in (1, 2, 3, 4):
        with cluster(count, folder / "workers", "4GB") as made, distributed.Client(made) as client:
            frame = dd.read_parquet(data)
            names = [f"x{j}" for j in range(N_FEATURES)]
            given, asked = partitions(frame[names], frame["y"], None), Asked()
            estimator = DaskSoftTreeClassifier()
            with asked, stored_table(client, given, estimator, weighted=False) as table:
                placed = table.placed("standard", ModelSettings(loss="log"))
                rows = placed.engine.of_columns(np.arange(10))
                before = client.run(time.process_time)
                for _ in range(10):
                    rows.evaluate(splits, leaves, LOGARITHM, 60.0)
                after = client.run(time.process_time)
        told = {
            "workers": count,
            "rows per second of a pass": round(n_rows / float(np.min(asked.seconds["part_sums"]))),
            "rows per second of storing": round(n_rows / asked.seconds["store"][0]),
            "processor ns per row of a pass": round(
                1e9 * sum(after[w] - before[w] for w in before) / (10 * n_rows)
            ),
        }
        print(json.dumps(told), flush=True)


def main() -> None:
    given = arguments(
        __doc__,
        ["large", "overhead", "workers"],
        rows=(int, ""),
        rounds=(3, "Of overhead."),
        folder=(Path, "Where rows and files of workers go."),
        keep=(False, "Do not remove the folder."),
    )
    folder = given.folder or Path(tempfile.mkdtemp(prefix="softsplit-dask-"))
    folder.mkdir(parents=True, exist_ok=True)
    run, usual = {
        "large": (large, 20_000_000),
        "overhead": (overhead, 1_000_000),
        "workers": (workers, 1_000_000),
    }[given.part]
    try:
        run(folder, given.rows or usual, given.rounds)
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
