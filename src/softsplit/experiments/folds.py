"""Training and test rows of a fold, scaled, in the form the solvers take.

Random numbers are drawn by name (``axis_seed``): they depend on the named axes, and on nothing
else. Two methods that draw for the same axes see the same folds and the same starts, in whatever
order and on whatever machine their cells run.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from softsplit.data import Dataset
from softsplit.engines.samples import Samples
from softsplit.experiments.spec import Folds
from softsplit.support.arrays import FloatArray
from softsplit.tree.scaling import LinearScaling


def axis_seed(*axes: str | int) -> np.random.SeedSequence:
    """A seed sequence from names and numbers, the same on every machine."""
    text = json.dumps(axes, separators=(",", ":"))
    return np.random.SeedSequence(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16]))


WHOLE = -1
"""In place of the number of an inner fold: the whole training fold."""

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
