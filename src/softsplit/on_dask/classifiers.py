"""The estimators for tables on a Dask cluster.

``working_client`` checks the client that the user gives, or starts a cluster in this process and
closes it again.
"""

from __future__ import annotations

import inspect
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import cpu_count
from numpy.typing import DTypeLike
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from softsplit.estimators.base import SoftTreeBase, training_run
from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.estimators.classifier_cv import SoftTreeClassifierCV
from softsplit.formulations.rates import as_requirements, asked_columns
from softsplit.on_dask.partitions import is_dask, one_block_wide, partitions
from softsplit.on_dask.table import stored_table
from softsplit.settings.checks import knot_count
from softsplit.support.arguments import precision
from softsplit.support.messages import shown, unfit
from softsplit.support.row_budgets import ROWS
from softsplit.support.version import __version__
from softsplit.training.rows import Rows, TrainingRows

# Parameters of the local estimators that say where rows are.
PLACES = ("engine", "device")


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
        raise unfit("client", client, "must be a distributed.Client")
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
    for address, installed in there.items():
        for name, version in here.items():
            if installed[name] != version:
                raise ValueError(
                    f"worker {address} has {name} {installed[name]} and this process {version}; "
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


class DaskTree(SoftTreeBase):
    """What both estimators do with a cluster."""

    client: Any
    local_class: type[SoftTreeBase]

    def fit(self, X: Any, y: Any, sample_weight: Any = None, sensitive: Any = None) -> Self:
        """Train on X (n_samples, n_features), labels y and weights in the same partitions.

        X is a dask array or a dask frame of pandas partitions, with numbers, text, categories,
        truth values, dates and missing values; it is read once, once more where it is not all
        numbers, and once more under ``fairness`` and ``constraints``. ``sensitive`` holds columns
        that these name and that are no features: a dask array, series or frame.
        """
        dask_needed()
        # 1. A wrong parameter is told before anything is read.
        if self.solver != "native":
            raise ValueError(
                f"solver {shown(self.solver)} needs all rows in one process; on Dask use "
                "solver='native'."
            )
        if knot_count("curves", self.curves):
            raise ValueError(
                "curves is for rows in memory: on Dask effects are straight; leave it at 'auto'."
            )
        asked_columns(as_requirements(self.constraints, self.fairness))
        run = training_run(self)
        # 2. The table goes to the workers, and the local estimator trains on it.
        given = partitions(X, y, sample_weight, sensitive)
        with (
            working_client(self.client, run.n_jobs) as client,
            stored_table(client, given, self, weighted=sample_weight is not None) as table,
        ):
            self.local_class.fit(self, table, None)
        return self

    def _rows(
        self, X: Any, y: Any, sample_weight: Any, sensitive: Any = None
    ) -> tuple[Rows, TrainingRows]:
        """A sample to compare settings on, and the table to train on."""
        fitted: dict[str, Any] = self.__dict__
        for name in ("coding_", "feature_names_in_"):
            fitted.pop(name, None)
        names, named = X.names, X.names is not None
        fitted["n_features_in_"] = len(X.moments.low)
        if X.coding is not None:
            names, named = np.array(X.coding.names, dtype=object), X.coding.named
            fitted |= {"coding_": X.coding, "n_features_in_": len(names)}
        if named:
            fitted["feature_names_in_"] = names
        return X.sample(ROWS.compared), X

    def predict(self, X: Any) -> Any:
        """Class of each sample: lazily, partition by partition, for dask collections."""
        if not is_dask(X):
            return super().predict(X)
        local = self.to_local()
        return _by_partition(local.predict, X, local.classes_[:0], local.tree_.target)

    def predict_proba(self, X: Any, *, dtype: DTypeLike = np.float64) -> Any:
        """Probability of each class: lazily, partition by partition, for dask collections."""
        if not is_dask(X):
            return super().predict_proba(X, dtype=dtype)
        local = self.to_local()
        empty = np.zeros((0, len(local.classes_)), dtype=precision("dtype", dtype))
        asked = partial(local.predict_proba, dtype=empty.dtype)
        return _by_partition(asked, X, empty, local.classes_.tolist())

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the samples whose class is predicted, which is done on the cluster."""
        if not is_dask(X):
            return float(super().score(X, y, sample_weight))
        dask, _ = dask_needed()
        called, true, weight = dask.compute(self.predict(X), y, sample_weight)
        return float(accuracy_score(np.asarray(true), np.asarray(called), sample_weight=weight))

    def report(self, X: Any, y: Any, path: Any = None, **options: Any) -> Any:
        """The report of the local estimator, on rows in memory."""
        return self.to_local().report(X, y, path, **options)

    def to_local(self) -> Any:
        """The fitted estimator without Dask, for rows in memory; it has the same tree."""
        check_is_fitted(self, "tree_")
        given = self.get_params(deep=False)
        del given["client"]
        local = self.local_class(**given)
        fitted = {k: v for k, v in vars(self).items() if k not in (*given, "client")}
        local.__dict__.update(fitted)
        return local

    def __sklearn_clone__(self) -> Self:
        """A client is no part of a model, and cannot be copied: the clone has the same one."""
        given = self.get_params(deep=False)
        client = given.pop("client")
        make: Any = type(self)
        return make(client=client, **{k: clone(v, safe=False) for k, v in given.items()})

    def __getstate__(self) -> dict[str, Any]:
        """Without the client, which belongs to this process."""
        return {**super().__getstate__(), "client": None}


def _refuse_places(parameters: dict[str, Any]) -> None:
    for name in PLACES:
        if name in parameters:
            raise TypeError(f"{name} is no setting on Dask, where rows stay with the workers.")


def _signature(plain: type[SoftTreeBase]) -> inspect.Signature:
    """The parameters of an estimator without Dask, but for where rows are, and the client."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    plain_ones = inspect.signature(plain).parameters.values()
    kept = [one.replace(kind=keyword) for one in plain_ones if one.name not in PLACES]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Signature([own, *kept, inspect.Parameter("client", keyword, default=None)])


class DaskSoftTreeClassifier(DaskTree, SoftTreeClassifier):  # type: ignore[misc]
    """``SoftTreeClassifier`` for tables on a Dask cluster, which may be larger than its memory.

    Rows stay with the workers, in files of their local directories; for each evaluation a tree goes
    out and sums come back, which are added in the order of the partitions. The tree is the same for
    any number of workers; a worker that is lost costs a repeated pass. See docs/dask.md.

    Parameters
    ----------
    **parameters
        Those of ``SoftTreeClassifier``, by name, without ``engine`` and ``device``.
    client : distributed.Client, optional
        The client of the cluster; the current one if not given. Where there is none, a cluster is
        started in this process, with ``n_jobs`` threads, and closed again.

    Attributes
    ----------
    tree_ : TreeModel
        The tree; all other attributes of a fitted ``SoftTreeClassifier`` are there too.
    """

    local_class = SoftTreeClassifier

    def __init__(self, *, client: Any = None, **parameters: Any) -> None:
        _refuse_places(parameters)
        SoftTreeClassifier.__init__(self, **parameters)
        self.client = client

    __init__.__signature__ = _signature(SoftTreeClassifier)  # type: ignore[attr-defined]


class DaskSoftTreeClassifierCV(DaskTree, SoftTreeClassifierCV):  # type: ignore[misc]
    """``SoftTreeClassifierCV`` for tables on a Dask cluster, which may be larger than its memory.

    Settings are compared on a stratified sample of 10,000 rows in this process; the tree is trained
    with the chosen ones on all rows, as ``DaskSoftTreeClassifier`` does.

    Parameters
    ----------
    **parameters
        Those of ``SoftTreeClassifierCV``, by name, without ``engine`` and ``device``; folds are
        those of the sample.
    client : distributed.Client, optional
        As in ``DaskSoftTreeClassifier``.

    Attributes
    ----------
    best_estimator_ : SoftTreeClassifier
        The tree on all rows; all other attributes of a fitted ``SoftTreeClassifierCV`` are there
        too, and ``best_score_`` and ``cv_results_`` are of the sample.
    """

    local_class = SoftTreeClassifierCV

    def __init__(self, *, client: Any = None, **parameters: Any) -> None:
        _refuse_places(parameters)
        SoftTreeClassifierCV.__init__(self, **parameters)
        self.client = client

    __init__.__signature__ = _signature(SoftTreeClassifierCV)  # type: ignore[attr-defined]


def _by_partition(method: Any, X: Any, empty: Any, names: Any) -> Any:
    """What a method says of each partition, when it is asked for."""
    import dask.array as da
    import pandas as pd

    if isinstance(X, da.Array):
        X = one_block_wide(X)
        wide = {"drop_axis": 1} if empty.ndim == 1 else {"chunks": (X.chunks[0], empty.shape[1:])}
        return X.map_blocks(partial(_block, method, empty), dtype=empty.dtype, meta=empty, **wide)
    meta = pd.Series(empty, name=names) if empty.ndim == 1 else pd.DataFrame(empty, columns=names)
    return X.map_partitions(partial(_frame, method, meta), meta=meta)


def _block(method: Any, empty: Any, X: Any) -> Any:
    return method(X) if len(X) else empty


def _frame(method: Any, meta: Any, X: Any) -> Any:
    if not len(X):
        return meta
    names = {"name": meta.name} if meta.ndim == 1 else {"columns": meta.columns}
    return type(meta)(method(X), index=X.index, **names)
