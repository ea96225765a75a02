"""Fitted classifiers and the trees in them: out of any estimator, and back without training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.utils.validation import check_is_fitted

from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.estimators.fitted import know_table
from softsplit.reading.model import TreeModel


def classifier_in(estimator: Any) -> SoftTreeClassifier:
    """The estimator itself, or the one that a search has chosen."""
    found = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(found, SoftTreeClassifier):
        raise TypeError(f"a SoftTreeClassifier is needed, got {type(estimator).__name__}.")
    check_is_fitted(found, "tree_")
    return found


def classifier_of(
    tree: TreeModel, *, named: bool, parameters: Mapping[str, Any] | None = None
) -> SoftTreeClassifier:
    """A classifier that predicts as ``tree`` does; it knows no training runs.

    ``named`` says whether the tree was trained on named columns, ``parameters`` how.
    """
    classifier = SoftTreeClassifier(**(parameters or {}))
    know_table(classifier, tree, named=named)
    classifier.tree_ = tree
    return classifier
