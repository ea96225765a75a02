"""What every estimator that holds one tree says about rows."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.reading.model import TreeModel
from softsplit.support.arrays import FloatArray


class PredictionMixin:
    """Classes, probabilities and leaves of rows; an estimator supplies its tree and its checks."""

    @abstractmethod
    def _model(self) -> TreeModel:
        """The fitted tree as plain data."""

    @abstractmethod
    def _check(self, X: Any) -> FloatArray:
        """Rows validated as for training."""

    def leaf_proba(self, X: Any) -> FloatArray:
        """Probability of ending in each leaf, shape (n_samples, n_leaves)."""
        return self._model().leaf_proba(self._check(X))

    def decision_path(self, X: Any) -> FloatArray:
        """Probability of going left at each branch, shape (n_samples, n_branches)."""
        return self._model().gates(self._check(X)).T

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Most probable leaf of each sample, counted from the left, shape (n_samples,)."""
        return np.argmax(self.leaf_proba(X), axis=1)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, in the order of ``classes_``."""
        return self._model().predict_proba(self._check(X))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of ``predict_proba``; an underflow counts as the smallest float."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each sample."""
        best = np.argmax(self.predict_proba(X), axis=1)
        labels: NDArray[Any] = self._model().classes[best]
        return labels
