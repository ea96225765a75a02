"""The tree with every split taken as a plain yes or no."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.reading.model import TreeModel
from softsplit.reading.text import tree_text
from softsplit.support.arrays import FloatArray
from softsplit.support.inputs import refuse_masked


@dataclass(frozen=True)
class HardTree:
    """A tree whose splits are plain yes or no.

    It goes left where the soft tree would with probability at least one half, and says the class
    of the leaf. It answers without probabilities and can be followed with a pencil. It is not the
    tree that was trained: ``agreement`` is the share of rows for which both predict the same.

    Attributes
    ----------
    model : TreeModel
        The soft tree.
    check : callable
        Validates rows as the soft tree does.
    """

    model: TreeModel
    check: Callable[[Any], FloatArray]

    @property
    def classes_(self) -> NDArray[Any]:
        return self.model.classes

    def apply(self, X: Any) -> NDArray[np.int64]:
        """The leaf of each row, counted from the left."""
        left = self.model.scores(self.check(X)) >= 0
        node = np.zeros(left.shape[1], dtype=np.int64)
        for _ in range(self.model.topology.depth):
            goes_left = left[node, np.arange(len(node))]
            node = 2 * node + np.where(goes_left, 1, 2)
        return node - self.model.topology.n_branches

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row's leaf."""
        labels: NDArray[Any] = self.model.classes[self.model.leaf_predictions[self.apply(X)]]
        return labels

    def agreement(self, X: Any) -> float:
        """Share of rows for which the soft tree predicts the same class."""
        checked = self.check(X)
        soft = self.model.classes[self.model.predict_index(checked)]
        return float(np.mean(self.predict(X) == soft))

    def score(self, X: Any, y: Any) -> float:
        """Share of rows whose class is predicted correctly."""
        refuse_masked("y", y)
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def export_text(self, *, max_terms: int | None = None, precision: int = 4) -> str:
        """The tree as indented text, with splits in original units."""
        return tree_text(self.model, max_terms, precision, hard=True)

    def __str__(self) -> str:
        return self.export_text()
