"""What a data set is to the rest of the library: numbers with names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray


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
