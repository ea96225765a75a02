"""A search that answers as the tree that it has chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.reading.explanation import Explanation
from softsplit.reading.hard import HardTree
from softsplit.reading.model import TreeModel
from softsplit.reading.prediction import PredictionMixin
from softsplit.support.arrays import FloatArray


class ChosenTreeMixin(PredictionMixin):
    """Predictions, readings and attributes of ``best_estimator_``, a ``SoftTreeClassifier``."""

    best_estimator_: SoftTreeClassifier

    def _fitted(self) -> SoftTreeClassifier:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def _model(self) -> TreeModel:
        return self._fitted()._model()

    def _check(self, X: Any) -> FloatArray:
        return self._fitted()._check(X)

    @property
    def coef_(self) -> FloatArray:
        return self._of_best("coef_")

    @property
    def intercept_(self) -> FloatArray:
        return self._of_best("intercept_")

    @property
    def weights_(self) -> FloatArray:
        return self._of_best("weights_")

    @property
    def thresholds_(self) -> FloatArray:
        return self._of_best("thresholds_")

    @property
    def leaf_classes_(self) -> FloatArray:
        return self._of_best("leaf_classes_")

    @property
    def selected_features_(self) -> NDArray[np.intp]:
        return self._of_best("selected_features_")

    @property
    def feature_importances_(self) -> FloatArray:
        return self._of_best("feature_importances_")

    @property
    def n_iter_(self) -> int:
        return self._of_best("n_iter_")

    @property
    def local_sparsity_(self) -> float:
        return self._of_best("local_sparsity_")

    @property
    def global_sparsity_(self) -> float:
        return self._of_best("global_sparsity_")

    def _of_best(self, name: str) -> Any:
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"{name} is there once {type(self).__name__} has been fitted.")
        return getattr(self.best_estimator_, name)

    def explain(self, x: Any) -> Explanation:
        """Why the chosen tree says what it says about one row."""
        return self._fitted().explain(x)

    def to_hard_tree(self) -> HardTree:
        """The chosen tree with every split a plain yes or no."""
        return self._fitted().to_hard_tree()

    def simplify(self, X: Any = None, *, tol: float = 1e-9) -> SoftTreeClassifier:
        """The chosen tree without branches that decide nothing."""
        return self._fitted().simplify(X, tol=tol)
