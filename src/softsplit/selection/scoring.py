"""What a tree is worth on a sample that it was not trained on.

    value_i = [the most probable class is right] - CAUTION x min(-log p_i, FAR)

with p_i the probability of the true class. Accuracy is what most users look at; the log-loss is a
proper score, which tells trees apart that are right equally often, and it sees a tree that is sure
and wrong. FAR keeps one such sample from deciding alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.selection.scoreboard import Valued
from softsplit.support.arrays import FloatArray

CAUTION = 0.3
FAR = 10.0

LEAST = 1e-15
"""Probabilities below this count as this."""


def valued_samples(shares: FloatArray, labels: NDArray[np.int64], weights: FloatArray) -> Valued:
    """Values of samples with these class probabilities, (n_classes, n_samples), and labels."""
    probable = np.clip(shares[labels, np.arange(len(labels))], LEAST, 1.0)
    losses = -np.log(probable)
    right = np.argmax(shares, axis=0) == labels
    mean = float(np.average(losses, weights=weights)) if np.any(weights) else float("nan")
    return Valued(right - CAUTION * np.minimum(losses, FAR), weights, mean)
