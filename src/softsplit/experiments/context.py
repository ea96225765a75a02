"""What every process needs to train any cell: the spec and the data, sent once; folds of the data.

Random numbers are drawn by name (``axis_seed``): they depend on the named axes, and on nothing
else. Two methods that draw for the same axes see the same folds and the same starts, in whatever
order and on whatever machine their cells run.

``versions`` says which software makes a row. The functions at the end measure a fitted method on
the test fold, trees and peers alike.
"""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from softsplit.data import Dataset, PlainCoding, load_dataset, read_dataset
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.samples import Samples
from softsplit.experiments.cells import WHOLE, Chain
from softsplit.experiments.spec import Folds, Spec, TrainingSpec
from softsplit.formulations import formulation_of
from softsplit.formulations.model_settings import ModelSettings
from softsplit.formulations.settings import make_topology
from softsplit.problem.penalties import PenaltyPair, linear
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.targets import Classes
from softsplit.support.arrays import FloatArray
from softsplit.support.version import __version__
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import mixed_values
from softsplit.tree.scaling import LinearScaling


def axis_seed(*axes: str | int) -> np.random.SeedSequence:
    """A seed sequence from names and numbers, the same on every machine."""
    text = json.dumps(axes, separators=(",", ":"))
    return np.random.SeedSequence(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16]))


Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Fold:
    """Scaled rows of one fold; labels are positions among all classes of the data set.

    A class without a training row cannot be learned: ``present`` lists those that can, and a test
    row of another class counts as an error.
    """

    X: FloatArray
    y: NDArray[np.int64]
    X_test: FloatArray
    y_test: NDArray[np.int64]
    present: NDArray[np.int64]
    samples: Samples
    n_classes: int


def make_fold(
    data: Dataset,
    folds: Folds,
    fold: int,
    *,
    inner: int = WHOLE,
    inner_folds: int = 0,
    seed: int = 0,
    scaling_fit: str = "train",
) -> Fold:
    """Fold ``fold`` of the data, or inner fold ``inner`` of its training rows."""
    y = np.searchsorted(data.class_names, data.y).astype(np.int64)
    train, test = split_rows(y, folds, fold)
    if inner != WHOLE:
        rng = np.random.default_rng(axis_seed("inner", seed, data.name, fold))
        parts = np.array_split(rng.permutation(train), inner_folds)
        test = np.sort(parts[inner])
        train = np.setdiff1d(train, test)
    scaling = LinearScaling.minmax(data.X[train] if scaling_fit == "train" else data.X)
    X = scaling.transform(data.X[train])
    present, labels = np.unique(y[train], return_inverse=True)
    return Fold(
        X=X,
        y=y[train],
        X_test=scaling.transform(data.X[test]),
        y_test=y[test],
        present=present,
        samples=Samples.from_arrays(X, labels, len(present)),
        n_classes=len(data.class_names),
    )


def split_rows(y: NDArray[np.int64], folds: Folds, fold: int) -> tuple[Rows, Rows]:
    """Training and test rows, each in ascending order."""
    if folds.rule == "stratified":
        splitter = StratifiedKFold(folds.count, shuffle=True, random_state=folds.seed)
        train, test = list(splitter.split(np.zeros(len(y)), y))[fold]
        return train, test
    # The legacy generator: the published folds were drawn with it.
    order = np.random.RandomState(folds.seed).permutation(len(y))
    test = np.sort(np.array_split(order, folds.count)[fold])
    return np.setdiff1d(np.arange(len(y)), test), test


PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "casadi")
NO_BEARING = ("experiments/", "cli/", "report/", "plots")
"""Parts of the package that change no row, but for the files in ``ROW_MAKERS``."""

ROW_MAKERS = ("experiments/context.py", "experiments/work.py")


@cache
def versions() -> dict[str, str]:
    """Package -> version; packages that are not installed are left out."""
    known = {"python": platform.python_version(), "softsplit": __version__}
    for name in PACKAGES:
        try:
            known[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    known["code"] = code_digest()
    return known


@cache
def code_digest() -> str:
    """Digest of the sources that a row depends on."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name in ROW_MAKERS or not name.startswith(NO_BEARING):
            digest.update(name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


KEPT_FOLDS = 8
"""Prepared folds that a process keeps."""


@dataclass(frozen=True)
class PreparedFold:
    """A fold, and its training problem with no penalty yet."""

    fold: Fold
    problem: TrainingProblem


class Context:
    """Spec and data; prepares folds when they are first asked for and keeps the last few."""

    def __init__(self, spec: Spec, datasets: dict[str, Dataset]) -> None:
        self.spec = spec
        self.datasets = datasets
        self._kept = lru_cache(KEPT_FOLDS)(self._prepare)

    def __reduce__(self) -> tuple[Any, ...]:
        return Context, (self.spec, self.datasets)  # another process prepares its own

    def prepared(self, chain: Chain) -> PreparedFold:
        """Fold and problem of a chain."""
        return self._kept(chain.dataset, chain.fold, chain.inner)

    def _prepare(self, dataset: str, number: int, inner: int) -> PreparedFold:
        spec, training = self.spec, self.spec.training
        fold = make_fold(
            self.datasets[dataset],
            spec.folds,
            number,
            inner=inner,
            inner_folds=spec.inner.folds if spec.inner else 0,
            seed=spec.seed,
            scaling_fit=training.scaling_fit,
        )
        return PreparedFold(fold, _problem(fold, training))


def _problem(fold: Fold, training: TrainingSpec) -> TrainingProblem:
    rows, n_classes = CompiledRows(fold.samples), len(fold.present)
    settings = ModelSettings(loss=training.loss, steepness=training.steepness, ridge=training.ridge)
    formulation, classes = formulation_of(settings.loss), np.arange(n_classes)
    units = formulation.units(settings, "minmax", rows.n_features, 1.0)
    depth = formulation.depth(training.depth, fold.n_classes)
    topology = make_topology(depth, fold.n_classes)
    return TrainingProblem(
        rows=rows,
        topology=topology,
        loss=formulation.loss(settings, Classes(classes, rows.group_totals), 1.0),
        penalties=PenaltyPair.of(linear()),
        minimum_rates=np.full(n_classes, training.min_class_rate),
        steepness=units.steepness,
        bounds=formulation.bounds(rows.n_features, topology.n_branches),
        ridge=units.ridge,
    )


def load_data(spec: Spec) -> dict[str, Dataset]:
    """The data sets of a spec by name."""
    data = {}
    for entry in spec.datasets:
        if isinstance(entry, str):
            data[entry] = load_dataset(entry, spec.training.coding)
            continue
        coding = spec.training.coding
        plain: PlainCoding = "onehot" if coding == "reported" or coding == "table" else coding
        data[entry.name] = read_dataset(
            entry.file,
            entry.target,
            name=entry.name,
            categorical=entry.categorical,
            coding=plain,
            missing=entry.missing,
        )
    return data


def data_digest(data: Dataset) -> str:
    """Digest of the numbers, the labels and the names of the features."""
    digest = hashlib.sha256(repr((data.X.shape, data.feature_names)).encode())
    digest.update(np.ascontiguousarray(data.X).tobytes())
    digest.update("\n".join(data.y.astype(str)).encode())
    return digest.hexdigest()[:16]


SMALLEST_PROBABILITY = 1e-15
"""Probabilities are cut here for the log-loss, which would otherwise be infinite."""


def tree_probabilities(
    tree: TreeParameters, X: FloatArray, steepness: float, fold: Fold
) -> FloatArray:
    """Probability of every class of the data set, (n_rows, n_classes)."""
    known = np.ascontiguousarray(mixed_values(tree, X.T, steepness).T)
    return spread(known, fold)


def spread(known: FloatArray, fold: Fold) -> FloatArray:
    """Columns of the classes in the training fold put in their places among all classes."""
    if known.shape[1] == fold.n_classes:
        return known
    proba = np.zeros((len(known), fold.n_classes))
    proba[:, fold.present] = known
    return proba


def accuracy(proba: FloatArray, labels: NDArray[np.int64]) -> float:
    """Share of rows whose most probable class is the right one."""
    return float(np.mean(np.argmax(proba, axis=1) == labels))


def log_loss(proba: FloatArray, labels: NDArray[np.int64]) -> float:
    """Mean of -log of the probability of the right class, normalised and cut from below."""
    right = proba[np.arange(len(labels)), labels] / proba.sum(axis=1)
    return float(-np.mean(np.log(np.clip(right, SMALLEST_PROBABILITY, 1.0))))
