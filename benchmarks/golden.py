"""Golden results: small fits whose trees must stay the same, to the bit, from version to version.

    python benchmarks/golden.py write [--file FILE]
    python benchmarks/golden.py check [--only PATTERN] [--small] [--tolerance 1e-9] [--jobs N]

A case is a fit through the public interface, on data bundled with scikit-learn or made from a seed.
For each tree of a case the file holds objective, cost, iterations, status and number of nonzero
coefficients, SHA-256 fingerprints of its parameters and of the class probabilities of some rows,
and a few of these probabilities, rounded.

``check`` runs the cases again and says for each "same bits" or what differs; it exits with 1 if any
bit does or, with ``--tolerance R``, if any objective is higher than stored by more than R of its
size. FILE is benchmarks/golden.json if not given. Bits depend on the processor and on the versions
of numerical libraries, which the file names: where they are not those of this machine, objectives
are compared, with the tolerance OTHER_MACHINE. ``write`` with ``--only`` replaces the cases named
and keeps all others of the file.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import importlib.util
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from common import arguments
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from softsplit import (
    DaskSoftTreeClassifier,
    DaskSoftTreeClassifierCV,
    NodeDecomposition,
    SoftTreeClassifier,
    SoftTreeClassifierCV,
    decomposition,
    strength_path,
)

REFERENCE = Path(__file__).with_name("golden.json")
OTHER_MACHINE = 1e-3
"""How much higher an objective may be, as a part of it, on another processor or with other
libraries: a descent that rounds otherwise may end in a neighbouring local minimum."""

LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "numba", "llvmlite")
"""Libraries whose version may change the bits of any case."""

N_ROWS, N_SHOWN = 40, 3
"""Rows whose probabilities are fingerprinted, and those of them that are stored readably."""

CORE = {"random_state": 0, "n_jobs": 1, "curves": False}
"""Parameters of all cases that do not name them: most check the core, on columns as they are."""

Result = dict[str, Any]
Tree = dict[str, Any]


# ------------------------------------------------------------------------------------------- data


def plain(n: int, p: int = 5, k: int = 3, seed: int = 0) -> tuple[Any, Any]:
    """Rows whose classes have noisy linear scores in the first features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.linspace(1, 3, p) + 10.0
    used = min(p, 4)
    scores = (X[:, :used] - 10.0) @ rng.normal(size=(used, k))
    return X, np.argmax(scores + 0.7 * rng.gumbel(size=scores.shape), axis=1)


def checkerboard(n: int = 200, seed: int = 0) -> tuple[Any, Any]:
    """Two classes that no single split separates, and two columns of noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 4))
    return X, ((X[:, 0] > 0) ^ (X[:, 1] > 0.1)).astype(int)


def word_counts(n: int = 300, p: int = 1200, seed: int = 0) -> tuple[Any, Any]:
    """A sparse matrix; three columns tell the class."""
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random(n, p, 0.02, random_state=rng).tolil()
    for j in (3, 5, 7):
        X[:, [j]] = rng.poisson(0.8, (n, 1)).astype(float)
    X = X.tocsr()
    score = X @ np.bincount([3, 5, 7], [2.0, -2.0, 1.0], p)
    return X, (score + rng.logistic(0, 0.5, n) > 0.5).astype(int)


def people(n: int = 240, seed: int = 0, gaps: bool = False) -> tuple[Any, Any]:
    """A table with numbers, categories, truth values and dates, optionally with missing values."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, n).astype(float)
    town = rng.choice(["Lyon", "Oslo", "Bern", "Graz"], n)
    since = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), unit="D")
    late = (since > pd.Timestamp("2022-06-01")).astype(float)
    score = age / 10 + 2.0 * (town == "Oslo") - 1.5 * (town == "Bern") + late
    risk = np.where(score + rng.logistic(0, 0.6, n) > 6, "high", "low")
    X = pd.DataFrame(
        {
            "age": age,
            "town": town,
            "height": np.round(rng.normal(1.7, 0.1, n), 2),
            "smoker": rng.random(n) < 0.5,
            "grade": pd.Categorical(
                rng.choice(["a", "b", "c"], n), categories=["a", "b", "c"], ordered=True
            ),
            "since": since,
        }
    )
    if gaps:
        for column, share in (("age", 0.1), ("town", 0.1), ("since", 0.05)):
            X.loc[rng.random(n) < share, column] = None
    return X, risk


def iris() -> tuple[Any, Any]:
    return load_iris(return_X_y=True)


def wine() -> tuple[Any, Any]:
    return load_wine(return_X_y=True)


def cancer() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    return X[:, :10], y


def digits() -> tuple[Any, Any]:
    X, y = load_digits(n_class=5, return_X_y=True)
    return X[:400], y[:400]


def weights(n: int) -> Any:
    """Sample weights, some of them zero."""
    return np.random.default_rng(1).integers(0, 4, n).astype(float)


# ----------------------------------------------------------------------------------- measurements


def fingerprint(*arrays: Any) -> str:
    """SHA-256 of the shapes, types and bytes of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array)
        digest.update(f"{array.shape} {array.dtype.str}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def tree_of(model: Any, solution: Any, X: Any) -> Tree:
    """All that is stored of a fitted tree."""
    rows = X.iloc[:N_ROWS] if hasattr(X, "iloc") else X[:N_ROWS]
    proba = np.asarray(model.predict_proba(rows))
    return {
        "objective": float(solution.objective),
        "cost": float(solution.cost),
        "n_iter": int(solution.n_iter),
        "status": solution.status.name,
        "nonzeros": int(np.count_nonzero(model.coef_)),
        "parameters": fingerprint(
            model.weights_,
            model.thresholds_,
            model.leaf_classes_,
            model.leaf_distributions_,
            model.coef_,
            model.intercept_,
        ),
        "probabilities": fingerprint(proba),
        "shown": np.round(proba[:N_SHOWN], 9).tolist(),
    }


# ------------------------------------------------------------------------------------------ cases


class Skipped(Exception):
    """A case cannot run here; the message says why."""


@dataclass(frozen=True)
class Case:
    """One fit, or several of the same kind.

    ``small``: it is quick, and part of ``make test``. ``bits`` is False where two runs of one
    version on one machine may differ in last digits, so that only objectives can be compared.
    ``needs`` names an optional package, whose version then matters too.
    """

    name: str
    run: Callable[[], list[Tree]]
    small: bool = False
    bits: bool = True
    needs: str | None = None


CASES: dict[str, Case] = {}


def add(name: str, run: Callable[[], list[Tree]], **about: Any) -> None:
    assert name not in CASES, name
    CASES[name] = Case(name, run, **about)


def fit(
    name: str,
    data: Callable[[], tuple[Any, Any]],
    *,
    weighted: bool = False,
    about: dict[str, Any] | None = None,
    **parameters: Any,
) -> None:
    """A case of ``SoftTreeClassifier``; callables among the parameters make them when it runs."""

    def run() -> list[Tree]:
        X, y = data()
        made = {key: value() if callable(value) else value for key, value in parameters.items()}
        model = SoftTreeClassifier(**{**CORE, "n_starts": 2, **made})
        model.fit(X, y, weights(len(y)) if weighted else None)
        return [tree_of(model, model.solution_, X)]

    add(name, run, **(about or {}))


def choose(
    name: str,
    data: Callable[[], tuple[Any, Any]],
    about: dict[str, Any] | None = None,
    **given: Any,
) -> None:
    """A case of ``SoftTreeClassifierCV``: its tree, and all mean scores that led to it."""

    def run() -> list[Tree]:
        X, y = data()
        model = SoftTreeClassifierCV(**{**CORE, "cv": 3, **given}).fit(X, y)
        scores = np.asarray(model.cv_results_["mean_test_score"], dtype=float)
        tree = tree_of(model, model.best_estimator_.solution_, X)
        return [tree | {"best_score": float(model.best_score_), "scores": fingerprint(scores)}]

    add(name, run, **(about or {}))


def path(
    name: str,
    data: Callable[[], tuple[Any, Any]],
    about: dict[str, Any] | None = None,
    *,
    scope: str = "global",
    n_points: int = 4,
    **given: Any,
) -> None:
    """A case of ``strength_path``: all trees of the path."""

    def run() -> list[Tree]:
        X, y = data()
        model = SoftTreeClassifier(**{**CORE, "n_starts": 2, **given})
        found = strength_path(X, y, estimator=model, scope=scope, n_points=n_points)
        return [tree_of(point.classifier, point.solution, X) for point in found.points]

    add(name, run, **(about or {}))


SMALL = {"small": True}
FEW = {"depths": (1,), "n_strengths": 3, "ridges": (1.0,), "scales": ("standard",)}
COST, LOG = {"loss": "cost", "effort": "fast"}, {"loss": "log"}
SCOPES = {
    "local": ("local_strength",),
    "global": ("global_strength",),
    "both": ("local_strength", "global_strength"),
}


def strengths(scope: str, value: float) -> dict[str, float]:
    """A strength in one scope and none in the other, or half of it in both."""
    none = {"local_strength": 0.0, "global_strength": 0.0}
    names = SCOPES[scope]
    return {**none, **{name: value / len(names) for name in names}}


def add_penalties() -> None:
    """Every penalty in every scope, by cost and by likelihood."""
    plans = {
        "l1": ("local", "global", "both"),
        "l0": ("local", "global", "both"),
        "power": ("local", "global"),
        "inverse_power": ("local", "both"),
        "log": ("global", "both"),
    }
    for penalty, scopes in plans.items():
        for scope in scopes:
            rare = {"small": scope == "both" and penalty in ("l0", "l1")}
            given = {"penalty": penalty, "about": rare}
            fit(f"cost-{penalty}-{scope}", iris, **COST, **given, **strengths(scope, 1.0))
            fit(f"log-{penalty}-{scope}", iris, depth=2, **LOG, **given, **strengths(scope, 1.0))
    for scope in ("local", "global", "both"):
        fit(f"log-count-{scope}", wine, penalty="count", depth=2, **strengths(scope, 2.0))
    fit("cost-no-penalty", iris, penalty=None, **COST)
    fit("log-no-penalty", iris, penalty=None, depth=2, about=SMALL)


def add_cost() -> None:
    """The paper's model: rates, costs, weights, depths, search."""
    l0 = {"penalty": "l0", "global_strength": 0.5}
    dear = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    fit("cost-depth-1", cancer, depth=1, **COST, **l0)
    fit("cost-depth-3", iris, depth=3, **COST, **l0)
    fit("cost-no-rate", wine, min_class_rate=0.0, about=SMALL, **COST, **l0)
    fit("cost-high-rate", lambda: plain(150), min_class_rate=0.6, **COST, **l0)
    fit("cost-rate-by-class", lambda: plain(150), min_class_rate={0: 0.8, 2: 0.3}, **COST, **l0)
    fit("cost-matrix", iris, cost_matrix=dear, **COST, **l0)
    fit("cost-class-weight", lambda: plain(150), class_weight="balanced", **COST, **l0)
    fit("cost-sample-weight", iris, weighted=True, about=SMALL, **COST, **l0)
    fit("cost-quantile-steepness", wine, scale="quantile", steepness=64.0, **COST, **l0)
    fit("cost-groups", wine, groups=[[0, 1, 2], [5, 6]], **COST, **l0)
    fit("cost-table", people, **COST, **l0)
    fit("cost-table-l1-local", people, penalty="l1", local_strength=0.5, **COST)
    fit("cost-one-start", checkerboard, depth=2, n_starts=1, **COST, **l0)
    fit("cost-default-search", checkerboard, depth=2, loss="cost", n_starts=10, **l0)
    fit("cost-thorough", iris, loss="cost", effort="thorough", n_starts=3, **l0)
    fit("cost-max-iter", wine, max_iter=30, **COST, **l0)
    fit(
        "cost-many-rows",
        lambda: plain(50_500, 2, 2),
        depth=1,
        n_starts=1,
        max_iter=60,
        **COST,
        **l0,
    )
    fit("custom-loss", iris, loss=own_loss, effort="fast", about=SMALL, **l0)
    fit("custom-loss-no-rate", wine, loss=own_loss, effort="fast", min_class_rate=0.0, **l0)


def own_loss() -> Any:
    """The loss of the tests' own, by its file: tests are no package."""
    found = sorted((Path(__file__).parent.parent / "tests").rglob("own_loss.py"))
    if not found:
        raise Skipped("tests/own_loss.py is not there")
    name = "golden_own_loss"
    spec = importlib.util.spec_from_file_location(name, found[0])
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SquaredError()


def add_likelihood() -> None:
    """The log-loss: defaults, rates, weights, tables, wide and long tables."""
    fit("log-default", iris, n_starts=10, about=SMALL)
    fit("log-depth-1", cancer, depth=1)
    fit("log-depth-3", wine, depth=3)
    fit("log-five-classes", digits, n_starts=1)
    fit("log-rate-l0", lambda: plain(150), depth=2, min_class_rate=0.5, penalty="l0")
    fit("log-rate-count", lambda: plain(150), depth=2, min_class_rate=0.5)
    fit("log-class-weight", lambda: plain(150), depth=2, class_weight={0: 2.0, 1: 0.5})
    fit("log-cost-matrix", iris, depth=2, cost_matrix=1.0 - np.eye(3) + np.eye(3, k=1))
    fit("log-sample-weight", wine, depth=2, weighted=True)
    fit("log-ridge-quantile", wine, depth=2, ridge=0.1, scale="quantile")
    fit("log-minmax-l1", wine, depth=2, penalty="l1", scale="minmax")
    fit("log-groups", wine, depth=2, groups=[[0, 1, 2], [5, 6, 9]])
    fit("log-groups-l1", wine, depth=2, penalty="l1", groups=[[0, 1, 2], [5, 6, 9]])
    fit("log-table", people, about=SMALL)
    fit("log-table-gaps", lambda: people(gaps=True))
    fit("log-table-no-groups", people, groups=False, feature_types={"height": "drop"})
    fit("log-wide", lambda: plain(200, 120, 2), depth=1)
    fit("log-very-wide", lambda: plain(100, 1100, 2), depth=1, n_starts=1)
    fit("log-sparse", lambda: word_counts(300, 60), depth=2)
    fit("log-wide-sparse", word_counts, depth=1)
    fit("log-wide-sparse-l1", word_counts, depth=1, penalty="l1", n_starts=1)
    fit("log-rows-6000", lambda: plain(6000, 4, 3), depth=2, n_starts=3)
    fit("log-rows-21000", lambda: plain(21_000, 3, 2), depth=1)
    fit("log-rows-21000-l1", lambda: plain(21_000, 3, 2), depth=1, n_starts=1, penalty="l1")
    fit("log-single-precision", lambda: single(plain(2000, 4, 2)), depth=2)
    fit("log-fast", wine, effort="fast", depth=2)
    fit("log-thorough", checkerboard, effort="thorough", depth=2)
    fit("log-two-jobs", wine, n_jobs=2, n_starts=4, depth=2)


def add_curves() -> None:
    """Numbers that bend at knots."""
    bent = {"curves": "auto"}
    fit("curves-one-knot", cancer, about=SMALL, **bent)
    fit("curves-three-knots-gaps", lambda: people(gaps=True), curves=3)
    fit("curves-quartiles-single", lambda: single(plain(2500, 4, 2)), depth=2, **bent)
    fit("curves-groups-l1", wine, depth=2, penalty="l1", groups=[[0, 1, 2]], **bent)
    fit("curves-cost", iris, curves=1, global_strength=0.5, **COST)
    choose("cv-curves", wine, n_strengths=4, **bent)


def single(rows: tuple[Any, Any]) -> tuple[Any, Any]:
    return rows[0].astype(np.float32), rows[1]


def add_choices() -> None:
    """Cross-validation and paths of strengths."""
    choose("cv-log", iris, n_strengths=6)
    choose("cv-log-l1", wine, penalties=("l1",), depths=(1, 2), n_strengths=4, ridges=(1.0,))
    choose("cv-log-table", people, depths=(1, 2), n_strengths=4, ridges=(1.0,))
    choose("cv-log-rare", lambda: rare(wine()), depths=(2,), n_strengths=4, selection="best")
    choose("cv-log-wide-sparse", word_counts, **FEW)
    choose("cv-cost", iris, loss="cost", depths=(2,), steepnesses=(512,), n_strengths=4)
    plan = {"loss": "cost", "scales": ("minmax",), "steepnesses": (128,), "n_strengths": 3}
    choose("cv-cost-l1", wine, penalties=("l1",), scopes=("local", "both"), depths=(2,), **plan)
    path("path-log", wine, depth=2, n_points=6)
    path("path-log-l1", wine, depth=2, penalty="l1")
    path("path-log-local", iris, scope="local", depth=2)
    path("path-cost", iris, loss="cost", effort="fast", about=SMALL)
    path("path-cost-both", iris, loss="cost", effort="fast", penalty="l1", scope="both", n_points=3)


def rare(rows: tuple[Any, Any]) -> tuple[Any, Any]:
    """The first class has few rows."""
    X, y = rows
    kept = (y != 0) | (np.arange(len(y)) % 4 == 0)
    return X[kept], y[kept]


def add_decomposition() -> None:
    """A few nodes at a time."""
    known = {"loss": "cost", "global_strength": 0.5}
    fit("decomposition", iris, solver="decomposition", about=SMALL, **known)
    subtrees = NodeDecomposition(
        working_sets=decomposition.Subtrees(2), proximal=1e-4, macro_iterations=3, initialisation=5
    )
    fit("decomposition-subtrees", iris, solver=lambda: subtrees, depth=3, n_starts=1, **known)
    largest = NodeDecomposition(
        working_sets=decomposition.LargestViolation(), macro_iterations=3, initialisation="neutral"
    )
    fit("decomposition-violation-l1", wine, solver=lambda: largest, penalty="l1", **known)
    inner = NodeDecomposition(inner="ipopt", inner_iter=10, macro_iterations=2)
    about = {"needs": "casadi"}
    fit("decomposition-ipopt", iris, solver=lambda: inner, n_starts=1, about=about, **known)


def add_ipopt() -> None:
    """The paper's reference method."""
    about = {"needs": "casadi"}
    short = {"n_starts": 1, "max_iter": 60, "about": about}
    l0 = {"loss": "cost", "penalty": "l0"}
    rows = checkerboard
    fit("ipopt-substituted", iris, solver="ipopt", **l0, **short, **strengths("global", 0.5))
    fit("ipopt-substituted-l1", rows, solver="ipopt", depth=2, loss="cost", penalty="l1", **short,
        **strengths("both", 0.5))  # fmt: skip
    fit("ipopt-likelihood", iris, solver="ipopt", depth=2, **short, **strengths("global", 1.0))
    fit("ipopt-likelihood-rate", iris, solver="ipopt", depth=2, min_class_rate=0.5, **short)


def add_dask() -> None:
    """Tables on workers that are threads of this process."""
    about = {"needs": "distributed"}
    small = {"depth": 1, "n_starts": 1}
    cases = {
        "dask-log": on_workers(lambda: plain(1500, 4, 3), depth=2, n_starts=1),
        "dask-log-many-rows": on_workers(lambda: plain(21_000, 3, 2), scale="quantile", **small),
        "dask-table": on_workers(lambda: people(gaps=True), **small),
        "dask-cost": on_workers(
            lambda: plain(300, 3, 2), global_strength=0.5, max_iter=40, **COST, **small
        ),
        "dask-cv": on_workers(lambda: plain(600, 4, 2), DaskSoftTreeClassifierCV, cv=3, **FEW),
    }
    for name, run in cases.items():
        add(name, run, **about)


@contextmanager
def cluster() -> Iterator[Any]:
    import distributed

    quiet = {"dashboard_address": None, "silence_logs": 50, "processes": False}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, **quiet) as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):
        yield client


def on_workers(
    rows: Callable[[], tuple[Any, Any]],
    make: Callable[..., Any] = DaskSoftTreeClassifier,
    **given: Any,
) -> Callable[[], list[Tree]]:
    """A case of a model that is fitted to plain rows, in four chunks, or to a table, in three."""

    def run() -> list[Tree]:
        import dask.array as da
        import dask.dataframe as dd

        X, y = rows()
        with cluster() as client:
            if isinstance(X, pd.DataFrame):
                frame = dd.from_pandas(X.assign(risk=y), npartitions=3)
                parts = frame[list(X.columns)], frame["risk"]
            else:
                chunk = -(-len(y) // 4)
                parts = (
                    da.from_array(X, chunks=(chunk, X.shape[1])),
                    da.from_array(y, chunks=chunk),
                )
            fitted = make(client=client, **{"random_state": 0, **given}).fit(*parts)
            chosen = getattr(fitted, "best_estimator_", fitted)
            tree = tree_of(fitted.to_local(), chosen.solution_, X)
        if chosen is not fitted:
            tree["best_score"] = float(fitted.best_score_)
        return [tree]

    return run


def add_torch() -> None:
    """Rows on a device, here the processor."""
    about = {"needs": "torch"}
    on = {"device": "cpu", "about": about}
    fit("torch-log", lambda: plain(500, 4, 3), depth=2, n_starts=1, **on)
    fit("torch-log-many-rows", lambda: single(plain(21_000, 3, 2)), depth=1, n_starts=1, **on)
    cost = {"loss": "cost", "effort": "fast", "global_strength": 0.5}
    fit("torch-cost", lambda: plain(200, 3, 2), depth=1, n_starts=1, max_iter=40, **cost, **on)
    choose("torch-cv", lambda: plain(400, 4, 2), **FEW, **on)


for _add in (
    add_penalties, add_cost, add_likelihood, add_curves, add_choices, add_decomposition, add_ipopt,
    add_dask, add_torch,
):  # fmt: skip
    _add()


# ---------------------------------------------------------------------------------- run and compare


def run_case(name: str) -> Result:
    """What a case yields here: its trees and seconds, or why it was skipped."""
    case = CASES[name]
    if case.needs is not None and importlib.util.find_spec(case.needs) is None:
        return {"skipped": f"{case.needs} is not installed"}
    began = time.process_time()
    if case.needs == "torch":  # sums of tensors depend on the number of threads
        importlib.import_module("torch").set_num_threads(1)
    try:
        with warnings.catch_warnings(action="ignore"):
            trees = case.run()
    except Skipped as reason:
        return {"skipped": str(reason)}
    return {"seconds": round(time.process_time() - began, 2), "trees": trees}


def run_cases(names: Sequence[str], jobs: int = 1) -> Iterator[tuple[str, Result]]:
    """The results of cases, in the order of their names."""
    if jobs <= 1:
        yield from ((name, run_case(name)) for name in names)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from zip(names, pool.map(run_case, names), strict=True)


def machine() -> dict[str, str]:
    """The processor and the versions on which bits depend."""
    import llvmlite.binding
    import numba

    here = {
        "processor": processor_name(),
        "code for": llvmlite.binding.get_host_cpu_name(),
        "system": f"{platform.system()} {platform.machine()}",
        "compiled": "no" if numba.config.DISABLE_JIT else "yes",
        "python": platform.python_version(),
    }
    optional = sorted({case.needs for case in CASES.values() if case.needs is not None})
    for library in (*LIBRARIES, *optional):
        try:
            here[library] = version(library)
        except PackageNotFoundError:
            here[library] = "missing"
    return here


def processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def unlike(here: dict[str, str], there: dict[str, str], needs: str | None = None) -> list[str]:
    """What differs between two machines and may change the bits of a case."""
    names = ["processor", "code for", "system", "compiled", *LIBRARIES, *filter(None, [needs])]
    return [
        f"{name} {here.get(name, 'unknown')}, was {there.get(name, 'unknown')}"
        for name in names
        if here.get(name) != there.get(name)
    ]


class Verdict(NamedTuple):
    """How a case compares with what is stored: one line, and whether it is as required."""

    text: str
    good: bool
    same: bool = False


def compare(
    result: Result, known: Result | None, *, bits: bool = True, tolerance: float | None = None
) -> Verdict:
    """Compare the results of a case with those stored.

    Without ``tolerance`` all bits must agree. With it, or where ``bits`` is False, objectives must
    not be higher by more than that part (OTHER_MACHINE where none is given).
    """
    if known is None:
        return Verdict("not in the file", good=False)
    for skipped in (result, known):
        if "skipped" in skipped:
            return Verdict(f"skipped: {skipped['skipped']}", good=True)
    here, there = result["trees"], known["trees"]
    if len(here) != len(there):
        return Verdict(f"{len(here)} trees, were {len(there)}", good=False)
    if here == there:
        return Verdict("same bits", good=True, same=True)
    pairs = list(zip(here, there, strict=True))
    highest = max(higher(new["objective"], old["objective"]) for new, old in pairs)
    differences = [f"objective higher by {highest:.1e} of its size at most"]
    for name in dict.fromkeys(name for tree in here for name in tree):
        changed = [(new[name], old.get(name)) for new, old in pairs if new[name] != old.get(name)]
        if changed:
            text = "{} have other bits" if name in FINGERPRINTS else "{} {}, was {}"
            differences.append(text.format(name, *changed[0]))
    allowed = OTHER_MACHINE if tolerance is None else tolerance
    good = not (bits and tolerance is None) and highest <= allowed
    return Verdict("; ".join(differences), good=good)


FINGERPRINTS = ("parameters", "probabilities", "scores")


def higher(new: float, old: float) -> float:
    """By what part of its size an objective is higher; not a number counts as infinitely higher."""
    change = (new - old) / max(abs(old), 1e-12)
    return float(change) if np.isfinite(change) else np.inf


# ---------------------------------------------------------------------------------------- commands


def chosen_names(args: argparse.Namespace) -> list[str]:
    """Cases that the options name."""
    names = [name for name, case in CASES.items() if case.small or not args.small]
    if args.only:
        patterns = [p if "*" in p else f"*{p}*" for p in args.only.split(",")]
        names = [name for name in names if any(fnmatch.fnmatchcase(name, p) for p in patterns)]
    if not names:
        sys.exit(f"no case is named like {args.only!r}; the cases are: {', '.join(CASES)}.")
    return names


def write(args: argparse.Namespace) -> int:
    """Write what the cases yield here."""
    names, here, cases = chosen_names(args), machine(), {}
    if len(names) < len(CASES) and args.file.exists():
        known = json.loads(args.file.read_text())
        if different := unlike(here, known["machine"]):
            sys.exit(f"{args.file} was written elsewhere: {'; '.join(different)}.")
        cases = known["cases"]
    for name, result in run_cases(names, args.jobs):
        print(f"{name:34} {result.get('skipped') or str(result['seconds']) + ' s'}", flush=True)
        cases[name] = {key: value for key, value in result.items() if key != "seconds"}
        ordered = {name: cases[name] for name in CASES if name in cases}
        args.file.write_text(json.dumps({"machine": here, "cases": ordered}, indent=1) + "\n")
    return 0


def check(args: argparse.Namespace) -> int:
    """Compare with the file; how many cases are not as required."""
    known, here = json.loads(args.file.read_text()), machine()
    if different := unlike(here, known["machine"]):
        print(f"written on another machine: {'; '.join(different)}; objectives are compared.")
    bad, same, seconds = [], 0, 0.0
    names = chosen_names(args)
    for name, result in run_cases(names, args.jobs):
        bits = CASES[name].bits and not unlike(here, known["machine"], CASES[name].needs)
        stored = known["cases"].get(name)
        verdict = compare(result, stored, bits=bits, tolerance=args.tolerance)
        by = "" if bits or verdict.same or "trees" not in result else " [by objective]"
        print(f"{'  ' if verdict.good else '! '}{name:34} {verdict.text}{by}", flush=True)
        bad += [] if verdict.good else [name]
        same += verdict.same
        seconds += result.get("seconds", 0.0)
    bad += [name for name in known["cases"] if name not in CASES]
    print(f"{len(names)} cases in {seconds:.0f} s: {same} the same to the bit")
    if bad:
        print(f"not as required: {', '.join(bad)}")
    return len(bad)


def main() -> None:
    args = arguments(
        __doc__,
        ("write", "check"),
        file=(REFERENCE, "results on file"),
        only=("", "patterns of names, separated by commas: cost-*,dask"),
        small=(False, "the part that make test runs"),
        tolerance=(float, "how much higher an objective may be, as a part of it"),
        jobs=(1, "processes"),
    )
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(1 if {"write": write, "check": check}[args.part](args) else 0)


if __name__ == "__main__":
    main()
