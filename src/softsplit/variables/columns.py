"""Tables of any kind as columns: frames of pandas, polars and pyarrow, arrays, nested lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from softsplit.support.inputs import checked_table, is_sparse


def table_columns(
    X: Any, needed: Sequence[int] | None = None
) -> tuple[list[str] | None, list[pd.Series]]:
    """Names of the columns, None if they have none that are all text, and the columns.

    Columns keep their type: categories stay categories, dates stay dates. Of arrays and sparse
    matrices those that are not ``needed`` come back empty.
    """
    X = checked_table(X)
    if is_sparse(X):
        return None, _of_sparse(X, range(X.shape[1]) if needed is None else needed)
    if isinstance(X, pd.DataFrame):
        names = [name if isinstance(name, str) else None for name in X.columns]
        columns = [X.iloc[:, j].reset_index(drop=True) for j in range(X.shape[1])]
        return _if_all(names), columns
    if hasattr(X, "get_columns") and hasattr(X, "columns"):  # of polars
        return list(X.columns), [_of_polars(column) for column in X.get_columns()]
    if not isinstance(X, np.ndarray):
        array = _array(X)
        return None, [pd.Series(array[:, j]) for j in range(array.shape[1])]
    columns = [pd.Series(dtype=X.dtype)] * X.shape[1]
    for j in range(X.shape[1]) if needed is None else needed:
        if j < X.shape[1]:
            columns[j] = pd.Series(X[:, j])
    return None, columns


def n_rows_of(X: Any, columns: Sequence[pd.Series]) -> int:
    """Rows of a table."""
    if hasattr(X, "shape"):
        return int(X.shape[0])
    return len(columns[0]) if columns else 0


def _of_sparse(X: Any, needed: Sequence[int]) -> list[pd.Series]:
    columns = [pd.Series(dtype=float)] * X.shape[1]
    places = sorted(j for j in set(needed) if j < X.shape[1])
    dense = X.tocsr()[:, places].toarray().astype(float, order="F")
    for at, j in enumerate(places):
        columns[j] = pd.Series(dense[:, at])
    return columns


def _if_all(names: list[Any]) -> list[str] | None:
    return None if any(name is None for name in names) else names


def _array(X: Any) -> np.ndarray[Any, Any]:
    """Nested lists cell by cell: numpy would make text of the numbers beside a text."""
    if isinstance(X, list | tuple):
        rows = [list(row) for row in X]
        made = np.empty((len(rows), len(rows[0]) if rows else 0), dtype=object)
        for i, row in enumerate(rows):
            made[i] = row
        return made
    return np.asarray(X)


def _of_polars(column: Any) -> pd.Series:
    kind = str(column.dtype)
    if kind.startswith(("Int", "UInt", "Float")):
        return pd.Series(column.to_numpy())
    if kind.startswith(("Categorical", "Enum")):
        return pd.Series(pd.Categorical(column.to_list()))
    if kind.startswith("Duration"):
        return pd.Series(pd.to_timedelta(column.to_list()))
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_list()
    return pd.Series(values)
