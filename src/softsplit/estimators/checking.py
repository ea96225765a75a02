"""New rows beside the training rows of a fitted tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from softsplit.drift.results import TableCheck
from softsplit.drift.table_check import check_table, coded_with_missing
from softsplit.estimators.row_reading import read_rows
from softsplit.fitted.conformal import checked_confidence, known_labels
from softsplit.fitted.model import TreeModel, holder_of
from softsplit.variables import CodedRows


def check_rows(
    tree: Any, X: Any, y: Any = None, *, level: float = 0.05, used_only: bool = False
) -> TableCheck:
    """Compare new rows with the rows that a tree was trained on.

    Columns outside of their training range, shares of levels, bins and leaves that have moved,
    missing values and, where classes are known, their shares, whether answers are worse than on
    held-out rows, and whether probabilities are right. The tests hold for all columns together: if
    nothing has moved, anything is said to have moved with a chance of at most ``level`` (Holm). The
    formulas are in ``softsplit.drift.table_check``.

    Parameters
    ----------
    tree : fitted SoftTreeClassifier or SoftTreeClassifierCV
    X : rows
        Columns that the tree does not use may be absent from a table with names.
    y : classes, optional
        A column of X with the name of the target is taken if it is not given.
    level : float, default=0.05
    used_only : bool, default=False
        Compare only the columns that the tree uses.

    Returns
    -------
    TableCheck
        ``print`` it; ``fine``, ``moved``, ``to_frame()``, ``to_dict()``, ``to_html()``.
    """
    level = checked_confidence(level, "level")
    holder = holder_of(tree)
    model = holder.tree_
    if y is None and model.target is not None and model.target in getattr(X, "columns", ()):
        y = X[model.target]
    rows, absent = _coded(holder, X)
    labels = None if y is None else known_labels(model.labels, np.asarray(y, dtype=object))
    if labels is not None and labels.shape != (len(rows),):
        raise ValueError(f"y must hold one class for each of the {len(rows)} rows of X.")
    return check_table(model, rows, labels, absent=absent, level=level, used_only=used_only)


def _coded(estimator: Any, X: Any) -> tuple[CodedRows, list[int]]:
    """Coded rows, and variables whose columns are absent and not used."""
    model: TreeModel = estimator.tree_
    if not hasattr(X, "columns") or not hasattr(estimator, "feature_names_in_"):
        rows = read_rows(estimator, X, whole=True)
        if isinstance(rows, CodedRows):
            return rows, []
        return model.table_coding.code_matrix(rows), []
    return coded_with_missing(model, X)
