"""A few rows of many, with every class among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split


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
