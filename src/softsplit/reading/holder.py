"""Objects that hold a fitted tree, and how a reader finds the tree in them."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from softsplit.reading.model import TreeModel


class TreeHolder:
    """An estimator that has a tree, ``tree_``, once it is fitted."""

    tree_: TreeModel


def holder_of(estimator: Any) -> Any:
    """The fitted estimator itself, or the one that a search has chosen."""
    found = getattr(estimator, "best_estimator_", estimator)
    if found is estimator and hasattr(estimator, "cv"):  # a search that may not have chosen yet
        check_is_fitted(estimator)
    if not isinstance(found, TreeHolder):
        raise TypeError(f"a SoftTreeClassifier is needed, got {type(estimator).__name__}.")
    check_is_fitted(found, "tree_")
    return found


def tree_of(estimator: Any) -> TreeModel:
    """The tree of a fitted estimator, or of the one that a search has chosen."""
    tree: TreeModel = holder_of(estimator).tree_
    return tree
