"""Data sets as numbers with names, errors that callers tell apart, and stratified samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import AdvisedError


@dataclass(frozen=True)
class Dataset:
    """Features (n_samples, n_features), labels as strings, and the names of both.

    ``dropped_rows`` counts rows that were left out because a value was missing.
    """

    name: str
    X: FloatArray
    y: NDArray[Any]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    dropped_rows: int = 0


class TooFewToChoose(AdvisedError):
    """Rows are too few to compare settings by cross-validation."""


class UnknownTarget(AdvisedError):
    """A tree does not know what the column with its classes is called."""


def sample_rows(y: NDArray[Any], count: int, seed: int) -> NDArray[np.intp]:
    """``count`` rows in ascending order, with classes in proportion where they can be.

    The same seed draws the same rows. A class of which none was drawn gets its first row added.
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
