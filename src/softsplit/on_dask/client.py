"""The client of a Dask cluster, checked; or one of our own, closed again."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import cpu_count

from softsplit.support.messages import shown
from softsplit.support.version import __version__


def dask_needed() -> Any:
    """dask and distributed, or one sentence."""
    try:
        import dask
        import distributed
    except ImportError:
        raise ImportError(
            "rows on Dask need dask and distributed; install them with pip install "
            "'softsplit[dask]'."
        ) from None
    return dask, distributed


@contextmanager
def working_client(client: Any, n_jobs: int | None) -> Iterator[Any]:
    """The client, the current one, or that of a cluster in this process that ends with this."""
    _, distributed = dask_needed()
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError:
            client = None
    if client is not None:
        _check_client(client, distributed)
        yield client
        return
    threads = n_jobs if n_jobs and n_jobs > 0 else cpu_count()
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=threads,
            processes=False,  # scripts need no guard against being imported, and nothing is sent
            dashboard_address=":0",
            memory_limit=0,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as own,
    ):
        yield own


def _check_client(client: Any, distributed: Any) -> None:
    if not isinstance(client, distributed.Client):
        raise ValueError(f"client must be a distributed.Client, got {shown(client)}.")
    if client.asynchronous:
        raise ValueError("client is asynchronous, and fit waits for it; give a plain Client.")
    if client.status != "running":
        raise ValueError(f"the Dask client is {client.status}; open a new one and fit again.")
    if not client.nthreads():
        raise ValueError(
            "the Dask cluster has no workers; start some, wait with client.wait_for_workers(1), "
            "and fit again."
        )
    here = versions()
    try:
        there = client.run(versions)
    except ImportError:
        raise ValueError(
            "a worker of the Dask cluster cannot import softsplit; install the same version of "
            "softsplit[dask] on every machine."
        ) from None
    for address, found in there.items():
        for name, version in here.items():
            if found[name] != version:
                raise ValueError(
                    f"worker {address} has {name} {found[name]} and this process {version}; "
                    "install the same versions everywhere."
                )


def versions() -> dict[str, str]:
    """Versions that must be the same in all processes: pickles and bits depend on them."""
    _, distributed = dask_needed()
    return {
        "softsplit": __version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "distributed": distributed.__version__,
        "numpy": np.__version__,
    }
