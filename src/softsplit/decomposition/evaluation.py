"""Accuracy of a tree on rows that are not trained on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.samples import Samples
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import predicted_classes


@dataclass(frozen=True)
class EvaluationSet:
    """Rows and their classes.

    Handed to ``SoftTreeClassifier`` inside a solver, X and y are in the user's units and labels. A
    solver that is called by itself takes X scaled as its problem is, and class indices.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)

    def adapted(
        self, transform: Callable[[Any], FloatArray], classes: NDArray[Any]
    ) -> EvaluationSet:
        """The same in the units of the solver; a label that training has not seen becomes -1."""
        try:
            rows = transform(self.X)
        except (TypeError, ValueError) as error:
            raise ValueError(f"an EvaluationSet does not fit the training rows: {error}") from None
        labels = self._labels(len(rows)).tolist()
        index = {label: k for k, label in enumerate(classes.tolist())}
        found = np.array([index.get(label, -1) for label in labels])
        if np.all(found < 0):
            raise ValueError(
                f"no label of an EvaluationSet is a class of y; it has {labels[0]!r}, "
                f"y has {classes.tolist()[0]!r}."
            )
        return EvaluationSet(rows, found)

    def check(self, n_features: int) -> None:
        """Refuse rows that a solver cannot look at, in one sentence."""
        try:
            rows = np.asarray(self.X, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("X of an EvaluationSet must be an array of numbers.") from None
        if rows.ndim != 2 or len(rows) == 0 or rows.shape[1] != n_features:
            raise ValueError(
                f"X of an EvaluationSet must have rows of {n_features} features, as in training, "
                f"got an array of shape {rows.shape}."
            )
        if not np.all(np.isfinite(rows)):
            raise ValueError("X of an EvaluationSet holds NaN or infinity; drop those rows.")
        if self._labels(len(rows)).dtype.kind not in "iu":
            raise ValueError("y of an EvaluationSet must hold class indices for a bare solver.")

    def _labels(self, n_rows: int) -> NDArray[Any]:
        labels = np.asarray(self.y)
        if labels.shape != (n_rows,):
            raise ValueError(
                f"y of an EvaluationSet must hold one label for each of its {n_rows} rows, got an "
                f"array of shape {labels.shape}."
            )
        return labels

    def accuracy(self, parameters: TreeParameters, steepness: float) -> float:
        features = np.asarray(self.X, dtype=np.float64).T
        found = predicted_classes(parameters, features, steepness)
        return float(np.mean(found == np.asarray(self.y)))


def training_accuracy(parameters: TreeParameters, samples: Samples, steepness: float) -> float:
    """Share of the training weight that is classified correctly."""
    right = predicted_classes(parameters, samples.features, steepness) == samples.labels
    return float(np.sum(samples.weights[right]) / np.sum(samples.weights))
