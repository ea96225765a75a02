"""Parsing of cells as numbers, dates, truth values or texts.

Each parser returns None for a cell of another type. Missing values are None, NaN, NaT and blank
texts.

``table_columns`` splits a table of any supported type into columns: frames of pandas, polars and
pyarrow, arrays, nested lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.support.arrays import LARGEST_WHOLE, FloatArray
from softsplit.support.inputs import checked_table, is_sparse
from softsplit.support.messages import shown


def table_columns(X: Any) -> tuple[list[str] | None, list[pd.Series]]:
    """Return the names of the columns (None unless all are text) and the columns.

    Columns keep their type: categories stay categories, dates stay dates.
    """
    X = as_table(X)
    columns = columns_at(X, range(X.shape[1]))
    return names_of(X), [column.reset_index(drop=True) for column in columns.values()]


def as_table(X: Any) -> Any:
    """Return X as a frame, an array or a sparse matrix."""
    X = checked_table(X)
    known = is_sparse(X) or isinstance(X, pd.DataFrame | np.ndarray)
    return X if known or (hasattr(X, "get_columns") and hasattr(X, "columns")) else _array(X)


def names_of(table: Any) -> list[str] | None:
    """Return the names of the columns of ``as_table``; None unless all are text."""
    columns = getattr(table, "columns", (None,))
    names = columns.tolist() if isinstance(columns, pd.Index) else list(columns)
    return names if all(isinstance(name, str) for name in names) else None


def columns_at(
    table: Any, places: Iterable[int], names: Sequence[str] | None = None
) -> dict[int, pd.Series]:
    """Return some columns of ``as_table`` by their places; columns of frames have its index.

    With the ``names`` of all columns it takes half of the time.
    """
    if is_sparse(table):
        wanted = sorted(set(places))
        dense = table.tocsr()[:, wanted].toarray().astype(float, order="F")
        return {j: pd.Series(dense[:, at]) for at, j in enumerate(wanted)}
    if isinstance(table, pd.DataFrame):
        return {j: table.iloc[:, j] if names is None else table[names[j]] for j in places}
    if hasattr(table, "get_columns"):  # of polars
        columns = table.get_columns()
        return {j: _of_polars(columns[j]) for j in places}
    return {j: pd.Series(table[:, j]) for j in places}


def _array(X: Any) -> np.ndarray[Any, Any]:
    """Return an array; nested lists become objects, since numpy would turn numbers into texts."""
    if isinstance(X, list | tuple):
        rows = [list(row) for row in X]
        cells = np.empty((len(rows), len(rows[0]) if rows else 0), dtype=object)
        for i, row in enumerate(rows):
            cells[i] = row
        return cells
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


NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf(?:inity)?", re.ASCII)

# Texts with a leading zero are codes, such as 007, and no numbers.
PADDED = re.compile(r"[+-]?0\d", re.ASCII)

# Lines with one number each, in the usual notation, without leading zeros. Quantifiers are
# possessive (``*+``): backtracking would keep memory for each line.
PLAIN = re.compile(
    r"(?:[+-]?(?:(?:0|[1-9]\d*+)(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?\n)*+", re.ASCII
)


# Texts of so few rows are looked at one by one: pandas takes a tenth of a millisecond.
FEW_ROWS = 32

TRUTHS = {"true": 1.0, "false": 0.0}
EPOCH = datetime(1970, 1, 1)
DAY = timedelta(days=1)

# For each row the position of its value, -1 if missing; and the distinct values.
Distinct = tuple[NDArray[np.intp], list[Any]]


def distinct(column: pd.Series) -> Distinct:
    """Return the distinct values of a column in order of appearance, and their positions."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy().astype(np.intp)
        return _without_blanks(codes, list(column.cat.categories))
    if isinstance(column.dtype, pd.StringDtype):
        if len(column) <= FEW_ROWS:
            texts = column.to_numpy(dtype=object)
            places: dict[str, int] = {}
            known = [places.setdefault(t, len(places)) if isinstance(t, str) else -1 for t in texts]
            return _without_blanks(np.array(known, dtype=np.intp), list(places))
        codes, values_seen = pd.factorize(column.array)
        return _without_blanks(codes, values_seen.tolist())
    if pd.api.types.infer_dtype(column, skipna=True) in ("string", "empty"):
        codes, values_seen = pd.factorize(column.astype(object))
        return _without_blanks(codes, list(values_seen))
    # Values of several types, one by one: 1 and True are equal for Python, and not the same value.
    values = column.to_numpy(dtype=object)
    absent = column.isna().to_numpy(dtype=bool)
    seen: dict[Any, int] = {}
    values_seen = []
    codes = np.full(len(values), -1, dtype=np.intp)
    for i in np.flatnonzero(~absent):
        value = values[i].item() if isinstance(values[i], np.generic) else values[i]
        if isinstance(value, bytes):
            value = value.decode("utf-8", errors="replace")
        try:
            # The flag keeps True apart from 1, which Python calls equal.
            place = seen.setdefault((isinstance(value, bool | str), value), len(seen))
        except TypeError:
            raise ValueError(
                f"column {shown(column.name)} holds a {type(value).__name__} in row {i}, which is "
                "no single value; make columns of its parts, or leave it out."
            ) from None
        if place == len(values_seen):
            values_seen.append(value)
        codes[i] = place
    return _without_blanks(codes, values_seen)


def _without_blanks(codes: NDArray[np.intp], values: list[Any]) -> Distinct:
    """Mark blank texts as missing values."""
    blank = [isinstance(value, str) and not value.strip() for value in values]
    if any(blank):
        codes = np.where((codes >= 0) & np.array(blank)[codes], -1, codes)
    return codes, values


def occurring(content: Distinct) -> list[Any]:
    """Return the distinct values that occur in at least one row."""
    codes, values = content
    return [values[place] for place in np.unique(codes[codes >= 0])]


def text_of(value: Any) -> str:
    """Return a value as the text of a level; 1 and 1.0 give the same text."""
    if isinstance(value, float) and value == np.floor(value) and abs(value) <= LARGEST_WHOLE:
        return str(int(value))
    return str(value)


def number_of(value: Any) -> float | None:
    """Return a value as a number, or None if it is not numeric; durations are in days."""
    if isinstance(value, str):
        text = value.strip()
        return float(text) if NUMBER.fullmatch(text.lower()) else None
    if isinstance(value, bool | np.bool_):
        return float(value)
    if isinstance(value, timedelta):
        return value / DAY
    if isinstance(value, Real | Decimal):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(
                "X holds an integer that no float can hold; divide its column by a constant."
            ) from None
    return None


def plain_numbers(column: pd.Series, chunk: int = 10_000) -> FloatArray | None:
    """Return a column of numeric texts as floats, NaN for missing values, or None.

    Distinct texts are matched ``chunk`` at a time, much faster than one by one as in ``number_of``.
    The result is also None if some number is in an unusual notation, which ``number_of`` may read.
    """
    if not (column.dtype == object or isinstance(column.dtype, pd.StringDtype)):
        return None
    try:
        codes, texts = pd.factorize(column.to_numpy(dtype=object))
        parts = (texts[low : low + chunk] for low in range(0, len(texts), chunk))
        if not len(texts) or not all(PLAIN.fullmatch("\n".join(part) + "\n") for part in parts):
            return None
        numbers: FloatArray = np.append(texts.astype(float), np.nan)[codes]
    except (TypeError, ValueError):  # no text, or one of several lines
        return None
    return numbers


def truth_of(value: Any) -> float | None:
    """Return 1 for true and 0 for false, or None if the value is neither."""
    if isinstance(value, str):
        return TRUTHS.get(value.strip().lower())
    if isinstance(value, bool | np.bool_):
        return float(value)
    number = number_of(value)
    return number if number in (0.0, 1.0) else None


def read(column: pd.Series, reading: Callable[[Any], float | None]) -> FloatArray | None:
    """Parse all cells by ``reading``, one of the parsers above.

    Missing values are NaN; the result is None if the parser rejects a cell.
    """
    if reading is number_of and isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf":
        return column.to_numpy().astype(float)
    if reading is number_of and pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=float, na_value=np.nan)
    if reading is number_of and (numbers := plain_numbers(column)) is not None:
        return numbers
    if reading is not number_of and pd.api.types.is_datetime64_any_dtype(column.dtype):
        moments = (
            column if column.dt.tz is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
        )
        return ((moments - pd.Timestamp(EPOCH)) / pd.Timedelta(DAY)).to_numpy(dtype=float)
    content = distinct(column)
    return spread(content, [reading(value) for value in content[1]])


def spread(content: Distinct, numbers: list[float | None]) -> FloatArray | None:
    """Return for each row the number of its value, or None if an occurring value has no number."""
    codes, _ = content
    table = np.array([np.nan if n is None else n for n in numbers] + [np.nan], dtype=float)
    none = np.array([n is None for n in numbers] + [False])
    return None if np.any(none[codes]) else table[codes]
