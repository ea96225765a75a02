"""Fitted estimators and the trees in them: out of any estimator, and back without training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from softsplit.estimators.classifier import SoftTreeClassifier
from softsplit.estimators.leaf_tree import LeafTree
from softsplit.estimators.regressor import SoftTreeRegressor
from softsplit.estimators.row_reading import know_table
from softsplit.estimators.survival import SoftTreeSurvival
from softsplit.fitted.model import TreeModel
from softsplit.persistence.records import ModelFileError


def estimator_in(estimator: Any) -> SoftTreeClassifier | LeafTree:
    """The estimator itself, the one that a search has chosen, or the last step of a pipeline.

    A tree behind steps that are not its own would be asked about other rows than it knows.
    """
    if isinstance(estimator, Pipeline):
        others = [name for name, step in estimator.steps[:-1] if step not in (None, "passthrough")]
        if others:
            raise TypeError(
                f"the step {others[0]!r} of the pipeline cannot be written; train the tree on the "
                "table itself, which needs no steps before it, or save the last step and keep the "
                "others."
            )
        estimator = estimator.steps[-1][1]
    chosen = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(chosen, SoftTreeClassifier | LeafTree):
        raise TypeError(f"a SoftTreeClassifier is needed, got {type(estimator).__name__}.")
    check_is_fitted(chosen, "tree_")
    return chosen


def classifier_of(
    tree: TreeModel, *, named: bool, parameters: Mapping[str, Any] | None = None
) -> Any:
    """An estimator that predicts as ``tree`` does; it knows no training runs.

    ``named`` says whether the tree was trained on named columns, ``parameters`` how.
    """
    kind: Any = SoftTreeClassifier
    if tree.numbers is not None:
        kind = SoftTreeRegressor if tree.numbers.baseline is None else SoftTreeSurvival
    try:
        estimator = kind(**(parameters or {}))
    except TypeError as error:
        raise ModelFileError(f"training.parameters of the model file: {error}.") from None
    know_table(estimator, tree, named=named)
    estimator.tree_ = tree
    return estimator
