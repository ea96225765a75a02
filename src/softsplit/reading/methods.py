"""What every estimator that holds one tree offers to its reader."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, Self

import numpy as np

from softsplit.reading.explanation import Explanation, explain
from softsplit.reading.hard import HardTree
from softsplit.reading.model import TreeModel
from softsplit.reading.pruning import simplified
from softsplit.support.arrays import FloatArray
from softsplit.support.inputs import refuse_masked
from softsplit.support.messages import shown
from softsplit.tree.parameters import TreeParameters


class ReadingMixin:
    """Methods that read a fitted tree; an estimator supplies its tree and its checks."""

    @abstractmethod
    def _model(self) -> TreeModel:
        """The fitted tree as plain data."""

    @abstractmethod
    def _check(self, X: Any) -> FloatArray:
        """Rows validated as ``predict`` does."""

    @abstractmethod
    def _adopt(self, parameters: TreeParameters) -> None:
        """Take another tree in place of the fitted one."""

    def explain(self, x: Any) -> Explanation:
        """Why the tree says what it says about one row.

        The explanation prints as text: class probabilities, the splits on the way to the most
        probable leaf with their terms, and for each feature the smallest change within its
        training range that changes the predicted class.

        Parameters
        ----------
        x : array of shape (n_features,), or X with a single row
        """
        if hasattr(x, "to_frame") and getattr(x, "ndim", 2) == 1:
            x = x.to_frame().T  # a row of a frame
        elif not hasattr(x, "columns"):
            refuse_masked("x", x, of="column")
            x = np.asarray(x)
            x = x[None, :] if x.ndim == 1 else x
        rows = self._check(x).astype(np.float64, copy=False)
        if len(rows) != 1:
            raise ValueError(f"explain takes one row, got {len(rows)}.")
        return explain(self._model(), rows[0])

    def to_hard_tree(self) -> HardTree:
        """The tree with every split a plain yes or no; ``agreement(X)`` says how alike they are."""
        return HardTree(self._model(), self._check)

    def simplify(self, X: Any = None, *, tol: float = 1e-9) -> Self:
        """A copy of this fitted estimator without branches that decide nothing.

        Class probabilities are the same to within ``tol``, for every input, and so are the
        classes except where two are tied to within ``tol``. With ``X``, branches are removed as
        well that these rows do not need: for them, and only them, classes are the same without
        exception and probabilities within ``tol``. The copy keeps what is known of the training
        (``solution_``, ``starts_``, ``objective_``).

        Parameters
        ----------
        X : array of shape (n_samples, n_features), optional
        tol : float, default=1e-9
            At most one; raise it with ``X`` to remove branches that hardly matter.
        """
        if not isinstance(tol, int | float) or not 0 <= tol <= 1:
            raise ValueError(f"tol must be a number from 0 to 1, got {shown(tol)}.")
        rows = None if X is None else self._check(X)
        model = self._model()
        scaled = None if rows is None else model.scaled(rows).T
        twin = copy.copy(self)
        twin._adopt(simplified(model.parameters, model.steepness, float(tol), scaled))
        return twin
