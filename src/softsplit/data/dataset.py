"""The ``Dataset`` record and stratified sampling of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from softsplit.support.arrays import FloatArray


@dataclass(frozen=True)
class Dataset:
    """Features ``X`` of shape (n_samples, n_features), labels ``y`` as strings, and their names.

    ``dropped_rows`` is the number of rows dropped because of missing values.
    """

    name: str
    X: FloatArray
    y: NDArray[Any]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    dropped_rows: int = 0


def sample_rows(y: NDArray[Any], count: int, seed: int) -> NDArray[np.intp]:
    """Return the indices of ``count`` random rows in ascending order, stratified if possible.

    The same ``seed`` draws the same rows. If a class is not drawn, its first row is added.
    """
    everything = np.arange(len(y))
    if count >= len(y):
        return everything
    counts = np.unique(y, return_counts=True)[1]
    strata = y if counts.min() >= 2 and count >= len(counts) <= len(y) - count else None
    chosen = train_test_split(everything, train_size=count, stratify=strata, random_state=seed)[0]
    present = set(y[chosen].tolist())
    lost = [int(np.argmax(y == label)) for label in np.unique(y) if label not in present]
    return np.sort(np.concatenate([chosen, np.array(lost, dtype=np.intp)]))
