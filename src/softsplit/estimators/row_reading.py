"""How a fitted estimator reads rows: which columns, checked how, coded as its tree takes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted, validate_data

from softsplit.drift.results import TableCheck
from softsplit.drift.table_check import check_table, coded_with_missing
from softsplit.fitted.conformal import checked_confidence, known_labels
from softsplit.fitted.model import TreeModel, holder_of
from softsplit.support.arrays import FloatArray
from softsplit.support.inputs import checked_table, has_missing, holds_numbers, made_floats
from softsplit.support.messages import nearest, shown
from softsplit.variables import CodedRows, Coding
from softsplit.variables.columns import listed_columns


def checked_rows(estimator: Any, X: Any) -> FloatArray:
    """Rows that a fitted estimator can be asked about, validated as those of training are.

    Of a table only the columns that the tree uses are read.
    """
    if not hasattr(estimator, "tree_"):
        check_is_fitted(estimator, "tree_")
    rows = read_rows(estimator, X, parsed=False)
    return rows.X if isinstance(rows, CodedRows) else rows


def validated_rows(estimator: Any, X: Any) -> FloatArray:
    """All columns of rows, for an estimator that knows them and may not have a tree yet."""
    rows = read_rows(estimator, X)
    return rows.X if isinstance(rows, CodedRows) else rows


def read_rows(
    estimator: Any, X: Any, *, whole: bool = False, parsed: bool = True
) -> FloatArray | CodedRows:
    """Rows as the tree takes them, with what was read where they are more than plain numbers.

    Of wide sparse rows only columns that the tree uses are read, unless the ``whole`` of them is
    asked for; of other tables all columns are, unless nobody looks at what was ``parsed``.
    """
    coding: Coding | None = getattr(estimator, "coding_", None)
    # 1. Rows that were coded before need the knots of this tree.
    if isinstance(X, CodedRows):
        return X.coded_as(coding) if hasattr(estimator, "tree_") else X
    X = checked_table(X)
    if hasattr(X, "columns") and not len(X.columns):
        raise ValueError("X has no columns; give a table with those that the tree was trained on.")
    # 2. Plain numbers, for a tree of plain numbers.
    if issparse(X) and coding is None:
        X = X.toarray()
    if (coding is None or (coding.of_matrices and not issparse(X))) and holds_numbers(X):
        checked = _as_numbers(estimator, X)
        if not has_missing(checked, getattr(estimator, "feature_names_in_", None)):
            if coding is None:
                return checked
            return coding.code_matrix(checked, None if whole else _columns_in_use(estimator))
    # 3. Anything else is coded, by the names of its columns where there are any.
    if not _same_columns(estimator, X):
        _refuse_other_columns(estimator, X)
        validate_data(estimator, X, reset=False, skip_check_array=True)
    if coding is None:
        if not hasattr(estimator, "tree_"):  # in training a missing value has no middle yet
            raise ValueError(
                "X holds text or missing values where the training rows are plain numbers."
            )
        named = hasattr(estimator, "feature_names_in_")
        coding = replace(estimator.tree_.table_coding, named=named)
    all_columns = whole or (parsed and not issparse(X)) or not hasattr(estimator, "tree_")
    return coding.code(X, None if all_columns else estimator.tree_.variables_in_use)


def _as_numbers(estimator: Any, X: Any) -> FloatArray:
    """A table of numbers as an array, checked as scikit-learn does.

    Single precision stays as it is: doubles are made of a few rows at a time. The check takes a
    millisecond, and is left out where it would change nothing.
    """
    if type(X) is np.ndarray and len(X) and X.dtype in (np.float64, np.float32):
        named = hasattr(estimator, "feature_names_in_")
        if not named and X.shape[1] == getattr(estimator, "n_features_in_", -1):
            return X
    if isinstance(X, pd.DataFrame) and len(X) and _same_columns(estimator, X):
        kinds = X.dtypes.tolist()
        if all(kind == np.float64 or getattr(kind, "kind", "") in "iu" for kind in kinds) and all(
            isinstance(kind, np.dtype) for kind in kinds
        ):
            return X.to_numpy(dtype=np.float64)
    _refuse_other_columns(estimator, X)
    with made_floats():
        checked: FloatArray = validate_data(
            estimator, X, dtype=[np.float64, np.float32], reset=False, ensure_all_finite=False
        )
    return checked


def _same_columns(estimator: Any, X: Any) -> bool:
    """Whether X has the named columns of training in their order."""
    names, columns = getattr(estimator, "feature_names_in_", None), getattr(X, "columns", None)
    if names is None or columns is None or len(names) != len(columns):
        return False
    return list(names) == (columns.tolist() if isinstance(columns, pd.Index) else list(columns))


def _refuse_other_columns(estimator: Any, X: Any) -> None:
    """Columns with other names than in training, or in another order.

    The sentence begins as scikit-learn's does, which tells the same in several lines.
    """
    if not hasattr(estimator, "feature_names_in_") or not hasattr(X, "columns"):
        return
    names, columns = list(estimator.feature_names_in_), list(X.columns)
    if names == columns or not all(isinstance(name, str) for name in columns):
        return  # without names scikit-learn warns
    absent, extra = _without(names, columns), _without(columns, names)
    close = nearest(absent[0], extra) if len(absent) == 1 else None
    taken = "X[list(tree.feature_names_in_)] selects the columns of training"
    if close:
        what = f"X has no column {shown(absent[0], 40)}; did you mean {close}?"
    elif absent:
        beside = f", and {_listed(extra)} beside" if extra else ""
        what = f"X has no {_listed(absent)}{beside}; give the columns of training."
    elif extra:
        what = f"training had no {_listed(extra)}; {taken}."
    else:
        what = f"X has them in another order; {taken} in their order."
    raise ValueError(f"The feature names should match those that were passed during fit: {what}")


def _without(names: list[str], others: list[str]) -> list[str]:
    known = set(others)
    return [name for name in names if name not in known]


def _listed(names: list[str]) -> str:
    """ "column 'a'", "columns 'a', 'b' and 3 more"."""
    listed = listed_columns([shown(name, 40) for name in names], 4)
    return f"column{'' if len(names) == 1 else 's'} {listed}"


def _columns_in_use(estimator: Any) -> NDArray[np.bool_] | None:
    """Which columns of the problem a tree looks at; None, for all, before there is a tree."""
    return estimator.tree_.columns_in_use if hasattr(estimator, "tree_") else None


def tree_labels(tree: TreeModel, y: Any, n_rows: int) -> NDArray[np.int64]:
    """Positions of the classes of rows; an error names one that the tree does not know."""
    given = np.asarray(y, dtype=object)
    if given.shape != (n_rows,):
        raise ValueError(f"y must hold one class for each of the {n_rows} rows of X.")
    if not n_rows:
        raise ValueError("X has no rows.")
    labels = known_labels(tree.labels, given)
    if np.any(labels < 0):
        odd = given[np.argmax(labels < 0)]
        raise ValueError(
            f"y holds {shown(odd)}, which is not a class of the tree; its classes are "
            f"{', '.join(map(shown, tree.labels[:8]))}."
        )
    return labels


def know_table(estimator: Any, tree: TreeModel, *, named: bool) -> None:
    """Tell an estimator which columns its tree is for."""
    known = vars(estimator)
    known["n_features_in_"] = len(tree.column_names)
    known.pop("feature_names_in_", None)
    known.pop("coding_", None)
    if named:
        known["feature_names_in_"] = np.array(tree.column_names, dtype=object)
    if tree.coding is not None:
        known["coding_"] = tree.coding


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
    y : classes or numbers, optional
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
    holder = holder_of(tree, numbers=True)
    model = holder.tree_
    if y is None and model.target is not None and model.target in getattr(X, "columns", ()):
        y = X[model.target]
    rows, absent = _coded_new(holder, X)
    labels = None
    if y is not None and model.numbers is not None:
        labels = np.asarray(pd.to_numeric(y, errors="coerce"), dtype=float)
    elif y is not None:
        labels = known_labels(model.labels, np.asarray(y, dtype=object))
    if labels is not None and labels.shape != (len(rows),):
        what = "class" if model.numbers is None else "number"
        raise ValueError(f"y must hold one {what} for each of the {len(rows)} rows of X.")
    return check_table(model, rows, labels, absent=absent, level=level, used_only=used_only)


def _coded_new(estimator: Any, X: Any) -> tuple[CodedRows, list[int]]:
    """Coded rows, and variables whose columns are absent and not used."""
    model: TreeModel = estimator.tree_
    if not hasattr(X, "columns") or not hasattr(estimator, "feature_names_in_"):
        rows = read_rows(estimator, X, whole=True)
        if isinstance(rows, CodedRows):
            return rows, []
        return model.table_coding.code_matrix(rows), []
    return coded_with_missing(model, X)
