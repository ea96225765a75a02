"""A fitted estimator made of a tree and nothing else, without training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.reading.model import TreeModel
from softsplit.support.arrays import FloatArray


def classifier_of(
    model: TreeModel,
    importances: FloatArray | None,
    *,
    named: bool,
    parameters: Mapping[str, Any] | None = None,
    objective: float | None = None,
    n_iter: int | None = None,
) -> SoftTreeClassifier:
    """A classifier that predicts as ``model`` does; it knows no training runs.

    ``named`` says whether the tree was trained on named columns, ``parameters`` how.
    """
    classifier = SoftTreeClassifier(**(parameters or {}))
    classifier.classes_ = model.classes
    classifier.n_features_in_ = model.parameters.n_features
    if named:
        classifier.feature_names_in_ = np.array(model.feature_names, dtype=object)
    classifier.scaling_ = model.scaling
    classifier._summary = model.summary
    classifier._steepness = model.steepness
    classifier._zero_threshold = model.zero_threshold
    if importances is not None:
        classifier.feature_importances_ = importances
    if objective is not None:
        classifier.objective_ = objective
    if n_iter is not None:
        classifier.n_iter_ = n_iter
    classifier._adopt(model.parameters)
    return classifier
