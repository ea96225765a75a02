"""What is measured of a fitted method on the test fold, the same for trees and peers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.experiments.folds import Fold
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import class_probabilities

SMALLEST_PROBABILITY = 1e-15
"""Probabilities are cut here for the log-loss, which would otherwise be infinite."""


def tree_probabilities(
    tree: TreeParameters, X: FloatArray, steepness: float, fold: Fold
) -> FloatArray:
    """Probability of every class of the data set, (n_rows, n_classes)."""
    known = np.ascontiguousarray(class_probabilities(tree, X.T, steepness).T)
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
