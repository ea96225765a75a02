"""Tables of any kind as columns: frames of pandas, polars and pyarrow, arrays, nested lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from softsplit.support.inputs import checked_table


def table_columns(X: Any) -> tuple[list[str] | None, list[pd.Series]]:
    """Names of the columns, None if they have none that are all text, and the columns.

    Columns keep their type: categories stay categories, dates stay dates.
    """
    X = checked_table(X)
    if isinstance(X, pd.DataFrame):
        names = [name if isinstance(name, str) else None for name in X.columns]
        columns = [X.iloc[:, j].reset_index(drop=True) for j in range(X.shape[1])]
        return _if_all(names), columns
    if hasattr(X, "get_columns") and hasattr(X, "columns"):  # of polars
        return list(X.columns), [_of_polars(column) for column in X.get_columns()]
    array = X if isinstance(X, np.ndarray) else _array(X)
    return None, [pd.Series(array[:, j]) for j in range(array.shape[1])]


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
