"""Columns that requirements on rates name: those of X, or of what ``fit`` gets as ``sensitive``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from softsplit.formulations.rates import FindColumn, Grouped
from softsplit.support.messages import shown
from softsplit.variables import CodedRows
from softsplit.variables.contents import distinct, table_columns
from softsplit.variables.variable import NUMBER


def find_column(X: Any, sensitive: Any, n_rows: int) -> FindColumn:
    """Return what finds a column by its name, first in ``sensitive`` and then in X.

    ``sensitive`` is a table, a Series, or an array of one column, which has the first name that is
    asked for and not in X. Columns of X without names are known by their position.
    """
    if sensitive is None and isinstance(X, CodedRows):
        sensitive = X.apart
    apart = None if sensitive is None else _apart(sensitive, n_rows)
    given: list[Any] = []  # the name of a column without one

    def find(name: Any) -> Grouped:
        # 1. Columns handed over apart go before those of X.
        if apart is not None and name is not None and name in apart:
            return _grouped(apart[name])
        # 2. A column of X, then the one column apart that has no name.
        if isinstance(X, CodedRows):
            column = _coded(X, name)
        else:
            names, columns = table_columns(X)
            known = list(range(len(columns))) if names is None else names
            column = _grouped(columns[known.index(name)]) if name in known else None
        if column is None and apart is not None and None in apart and given in ([], [name]):
            given[:] = [name]
            return _grouped(apart[None])
        if column is None:
            place = "of X" if apart is None else "of X or of sensitive"
            raise ValueError(
                f"a requirement on rates names the column {shown(name)}, which is not a column "
                f"{place}; correct the name, or hand the column to fit as sensitive=..."
            )
        return column

    return find


def _apart(sensitive: Any, n_rows: int) -> dict[Any, pd.Series]:
    """The columns of ``sensitive`` by name; None is the name of a single one without a name."""
    if isinstance(sensitive, pd.DataFrame):
        tables = {name: sensitive[name] for name in sensitive.columns}
    elif hasattr(sensitive, "get_columns"):
        names, columns = table_columns(sensitive)
        tables = dict(zip(names or [], columns, strict=True))
    else:
        column = pd.Series(sensitive if hasattr(sensitive, "__array__") else list(sensitive))
        if isinstance(sensitive, np.ndarray) and sensitive.ndim != 1:
            raise ValueError("sensitive must be one column, or a table with names of its columns.")
        tables = {column.name: column}
    for name, column in tables.items():
        if len(column) != n_rows:
            called = "sensitive" if name is None else f"column {shown(name)} of sensitive"
            raise ValueError(f"{called} has {len(column)} rows, and X has {n_rows}.")
    return {name: column.reset_index(drop=True) for name, column in tables.items()}


def _grouped(column: pd.Series) -> Grouped:
    """The values of a column in their order, as codes."""
    codes, values = distinct(column)
    held = np.unique(codes[codes >= 0])
    try:
        order = sorted(held.tolist(), key=lambda code: values[code])
    except TypeError:  # texts and numbers
        order = sorted(held.tolist(), key=lambda code: str(values[code]))
    places = np.full(len(values) + 1, -1, dtype=np.intp)
    places[order] = np.arange(len(order))
    return Grouped(places[codes], [values[code] for code in order])


def _coded(X: CodedRows, name: Any) -> Grouped | None:
    """A column of a table that was coded before."""
    names = [variable.name for variable in X.coding.variables]
    if name not in names or not X.cells:
        return None
    cells, variable = X.cells[names.index(name)], X.coding.variables[names.index(name)]
    if cells.content is not None and variable.kind != NUMBER:
        return _grouped(pd.Series([None, *cells.content[1]], dtype=object)[cells.content[0] + 1])
    numbers = pd.Series(np.where(cells.missing, np.nan, cells.numbers))
    if variable.levels:
        texts = np.array([None, *variable.levels], dtype=object)
        places = np.nan_to_num(numbers.to_numpy(), nan=-1.0).astype(np.intp) + 1
        return _grouped(pd.Series(texts[places]))
    return _grouped(numbers)
