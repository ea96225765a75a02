"""The same cells on a Dask cluster, with a worker killed on the way."""

from __future__ import annotations

import os

import pytest

from experiment_parts import contents, small
from fault_runs import KillAfter
from softsplit.experiments.runner import run_experiment
from softsplit.experiments.store import Store

pytestmark = pytest.mark.slow

distributed = pytest.importorskip("distributed")


def test_a_lost_worker_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv("SOFTSPLIT_DATA", raising=False)
    with Store(tmp_path / "here.sqlite") as store:
        run_experiment(small(), store)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = client.run(os.getpid)
        progress = KillAfter(8, next(iter(pids.values())))
        with Store(tmp_path / "there.sqlite") as store:
            done = run_experiment(small(), store, dask=cluster.scheduler_address, progress=progress)
        assert set(pids.values()) != set(client.run(os.getpid).values()), "no worker was lost"
    assert progress.seen == done.n_done == done.n_cells == 96
    assert contents(tmp_path / "there.sqlite") == contents(tmp_path / "here.sqlite")
