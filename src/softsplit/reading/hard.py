"""A tree that predicts by mixture, with every split taken as a plain yes or no."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.fitted.walk import arrivals
from softsplit.reading.text import tree_text
from softsplit.support.arrays import FloatArray
from softsplit.support.inputs import refuse_masked


@dataclass(frozen=True)
class HardTree:
    """A tree whose splits are plain yes or no.

    A tree that predicts by its walk is one already: both answer alike. Otherwise it goes left where
    the soft tree would with probability at least one half, and says the class of the leaf. It is
    then not the tree that was trained: ``agreement`` is the share of rows for which both predict
    the same.

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
        rows = self.check(X)
        if self.model.walk is not None:
            return self.model.arrive(rows)
        return arrivals(self.model.scores(rows) >= 0)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row's leaf."""
        return self.model.classes[self.model.leaf_predictions[self.apply(X)]]

    def agreement(self, X: Any) -> float:
        """Share of rows for which the soft tree predicts the same class."""
        checked = self.check(X)
        soft = self.model.classes[self.model.predict_index(checked)]
        return float(np.mean(self.predict(X) == soft))

    def score(self, X: Any, y: Any) -> float:
        """Share of rows whose class is predicted correctly."""
        refuse_masked("y", y)
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def export_text(self, **how: Any) -> str:
        """The tree as indented text, with splits in original units; options of ``export_text``."""
        return tree_text(self.model, **how)

    def __str__(self) -> str:
        return self.export_text()
