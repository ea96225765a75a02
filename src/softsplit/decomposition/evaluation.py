"""Accuracy of a tree on rows that are not trained on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.routing import leaf_probabilities, split_scores
from softsplit.samples import Samples
from softsplit.tree import FloatArray, TreeParameters


@dataclass(frozen=True)
class EvaluationSet:
    """Rows and their classes.

    Handed to ``SoftTreeClassifier`` inside a solver, X and y are in the user's units and labels. A
    solver that is called by itself takes X scaled as its problem is, and class indices.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)

    def adapted(
        self, transform: Callable[[FloatArray], FloatArray], classes: NDArray[Any]
    ) -> EvaluationSet:
        """The same in the units of the solver; a label that training has not seen becomes -1."""
        labels = np.asarray(self.y)
        index = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
        return EvaluationSet(
            transform(np.asarray(self.X, dtype=np.float64)),
            np.where(classes[index] == labels, index, -1),
        )

    def accuracy(self, parameters: TreeParameters, steepness: float) -> float:
        features = np.asarray(self.X, dtype=np.float64).T
        return float(np.mean(predicted(parameters, features, steepness) == np.asarray(self.y)))


def predicted(
    parameters: TreeParameters, features: FloatArray, steepness: float
) -> NDArray[np.intp]:
    """Most probable class index for features of shape (n_features, n_rows)."""
    routed = leaf_probabilities(split_scores(parameters, features), steepness)
    return np.argmax(parameters.leaf_classes @ routed, axis=0)


def training_accuracy(parameters: TreeParameters, samples: Samples, steepness: float) -> float:
    """Share of the training weight that is classified correctly."""
    right = predicted(parameters, samples.features, steepness) == samples.labels
    return float(np.sum(samples.weights[right]) / np.sum(samples.weights))
