"""A fitted tree as plain text and as Markdown, with splits in original units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from softsplit.reading.holder import tree_of
from softsplit.reading.text import tree_markdown, tree_text
from softsplit.support.messages import shown


def export_text(
    classifier: Any,
    feature_names: Sequence[str] | None = None,
    *,
    class_names: Sequence[Any] | None = None,
    max_terms: int | None = None,
    precision: int = 4,
) -> str:
    """The tree as indented text.

    Each split reads "go left if <terms> > <threshold>": a sample on the boundary goes either way
    with probability one half, and the bracket says by how much the left side must differ from the
    threshold to be 95 % sure. Coefficients are in original units, divided by that of the
    weightiest feature, which stands first. A branch above leaves of one class decides nothing and
    is written as one leaf.

    Under the quantile scaling a split on one feature is written as a threshold in original units
    too; in a longer one each feature stands for its rank from 0 to 1, and lines below the tree say
    which values have which rank.

    Parameters
    ----------
    classifier : fitted SoftTreeClassifier, or a search that holds one as ``best_estimator_``
    feature_names : sequence of str, optional
        Names to use instead of the fitted ones (``feature_names_in_`` or x0, x1, ...).
    class_names : sequence of str, optional
        Names to use instead of the classes, in the order of ``classes_``.
    max_terms : int, optional
        Most terms written per split; the rest is counted.
    precision : int, default=4
        Significant digits.
    """
    model = tree_of(classifier).with_names(feature_names, class_names)
    return tree_text(model, _at_least_one("max_terms", max_terms), _digits(precision))


def export_markdown(
    classifier: Any,
    feature_names: Sequence[str] | None = None,
    *,
    class_names: Sequence[Any] | None = None,
    max_terms: int | None = None,
    precision: int = 4,
) -> str:
    """The tree as Markdown: a nested list, and a table of all coefficients with importances.

    Parameters are those of ``export_text``. Names are escaped, so that no feature or class can
    break the list or the tables.
    """
    model = tree_of(classifier).with_names(feature_names, class_names)
    return tree_markdown(model, _at_least_one("max_terms", max_terms), _digits(precision))


def _at_least_one(name: str, value: int | None) -> int | None:
    if value is not None and (not isinstance(value, int) or value < 1):
        raise ValueError(f"{name} must be an integer >= 1 or None, got {shown(value)}.")
    return value


def _digits(precision: int) -> int:
    if not isinstance(precision, int) or not 1 <= precision <= 17:
        raise ValueError(f"precision must be an integer from 1 to 17, got {shown(precision)}.")
    return precision
