"""Parsing of cells as numbers, dates, truth values or texts.

Each parser returns None for a cell of another type. Missing values are None, NaN, NaT and blank
texts.

``table_columns`` splits a table of any supported type into columns: frames of pandas, polars and
pyarrow, arrays, nested lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
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
        return _of_sparse(table, places)
    if isinstance(table, pd.DataFrame):
        return {j: table.iloc[:, j] if names is None else table[names[j]] for j in places}
    if hasattr(table, "get_columns"):  # of polars
        columns = table.get_columns()
        return {j: _of_polars(columns[j]) for j in places}
    return {j: pd.Series(table[:, j]) for j in places}


def _of_sparse(X: Any, places: Iterable[int]) -> dict[int, pd.Series]:
    wanted = sorted(set(places))
    dense = X.tocsr()[:, wanted].toarray().astype(float, order="F")
    return {j: pd.Series(dense[:, at]) for at, j in enumerate(wanted)}


def _array(X: Any) -> np.ndarray[Any, Any]:
    """Return an array; nested lists become objects, since numpy would turn numbers into texts."""
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


NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf(?:inity)?", re.ASCII)
PADDED = re.compile(r"[+-]?0\d", re.ASCII)
"""Texts with a leading zero are codes, such as 007, and no numbers."""

PLAIN = re.compile(
    r"(?:[+-]?(?:(?:0|[1-9]\d*+)(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?\n)*+", re.ASCII
)
"""Lines with one number each, in the usual notation, without leading zeros. Quantifiers are
possessive (``*+``): backtracking would keep memory for each line."""

ISO_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
)
OTHER_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%d")
TIMES = ("", " %H:%M", " %H:%M:%S")
DATE_LIKE = re.compile(
    r"(?:\d{1,2}([./-])\d{1,2}\1\d{4}|\d{4}/\d{1,2}/\d{1,2})(?: \d{1,2}:\d\d(?::\d\d)?)?"
)
"""Texts that ``OTHER_DATES`` may fit and that are no numbers."""
ISO_LIKE = re.compile(rf"{ISO_DATE.pattern}|{DATE_LIKE.pattern}")


@dataclass(frozen=True)
class ContentOptions:
    """How the contents of a column are looked at."""

    listed: int = 5
    """Cells that a message names."""

    few: int = 32
    """Texts of so few rows are looked at one by one: pandas takes a tenth of a millisecond."""

    tried: int = 100
    """A format of dates is tried if it fits one of this many first values."""


OPTIONS = ContentOptions()
TRUTHS = {"true": 1.0, "false": 0.0}
EPOCH = datetime(1970, 1, 1)
DAY = timedelta(days=1)

Distinct = tuple[NDArray[np.intp], list[Any]]
"""For each row the position of its value, -1 if missing; and the distinct values."""


def distinct(column: pd.Series) -> Distinct:
    """Return the distinct values of a column in order of appearance, and their positions."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy().astype(np.intp)
        return _without_blanks(codes, list(column.cat.categories))
    if isinstance(column.dtype, pd.StringDtype):
        if len(column) <= OPTIONS.few:
            texts = column.to_numpy(dtype=object)
            places: dict[str, int] = {}
            known = [places.setdefault(t, len(places)) if isinstance(t, str) else -1 for t in texts]
            return _without_blanks(np.array(known, dtype=np.intp), list(places))
        codes, found = pd.factorize(column.array)
        return _without_blanks(codes, found.tolist())
    if pd.api.types.infer_dtype(column, skipna=True) in ("string", "empty"):
        codes, found = pd.factorize(column.astype(object))
        return _without_blanks(codes, list(found))
    values = column.to_numpy(dtype=object)
    absent = column.isna().to_numpy(dtype=bool)
    seen: dict[Any, int] = {}
    found = []
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
        if place == len(found):
            found.append(value)
        codes[i] = place
    return _without_blanks(codes, found)


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


def day_of(value: Any) -> float | None:
    """Return days since 1970-01-01 (UTC where a time zone is given), or None if it is no date."""
    if isinstance(value, pd.Period):
        value = value.to_timestamp()
    if isinstance(value, str):
        text = value.strip()
        if not ISO_DATE.fullmatch(text):
            return None
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            return None
    if isinstance(value, datetime):
        zone = value.utcoffset()
        plain = value.replace(tzinfo=None)
        return (plain - EPOCH - zone) / DAY if zone is not None else (plain - EPOCH) / DAY
    if isinstance(value, date):
        return (datetime.combine(value, time()) - EPOCH) / DAY
    return None


class NotDates(ValueError):
    """Some cells of a column of dates are no dates.

    Attributes
    ----------
    column : str
    cells : tuple of (value, int)
        The values that are no dates, each with the first of its rows, counted from one.
    count, total : int
        Number of cells that are no dates, and of all cells that are not missing.
    """

    def __init__(
        self, column: str, cells: Sequence[tuple[Any, int]], count: int, total: int
    ) -> None:
        super().__init__(column, cells, count, total)
        self.column, self.cells, self.count, self.total = column, tuple(cells), count, total

    def numbered(self, numbers: NDArray[np.intp]) -> NotDates:
        """Return the same error with ``numbers[i]`` as the number of the ``i``-th row."""
        cells = [(value, int(numbers[row - 1])) for value, row in self.cells]
        return NotDates(self.column, cells, self.count, self.total)

    def __str__(self) -> str:
        listed = ", ".join(
            f"{shown(value, 30)} (row {row})" for value, row in self.cells[: OPTIONS.listed]
        )
        more = (
            f" and {len(self.cells) - OPTIONS.listed} more"
            if len(self.cells) > OPTIONS.listed
            else ""
        )
        which = "cell is not a date" if self.total == 1 else "cells are not dates"
        return (
            f"column {shown(self.column)}: {self.count:,} of {self.total:,} {which}: {listed}{more}"
            "; correct them, or leave them empty, and write all dates in the same way."
        )


def date_form(content: Distinct, column: str) -> str:
    """Return the ``strptime`` format of all dates of a column, "" for ISO 8601.

    Raise ``ValueError`` if no format fits all values, or if several do and give different dates;
    it is ``NotDates`` if one fits at least half of the cells.
    """
    values = occurring(content)
    if all(day_of(value) is not None for value in values):
        return ""
    texts = [text_of(value).strip() for value in values]
    fitting = _fitting_forms(texts)
    if len(fitting) > 1:
        raise ValueError(
            f"column {shown(column)} holds dates such as {shown(texts[0])}, in which day and month "
            "cannot be told apart; write them as 2026-11-16."
        )
    if not fitting:
        odd_cells = cells_without_date(content, column)
        if 2 * odd_cells.count <= odd_cells.total:
            raise odd_cells
        odd = odd_cells.cells[0][0]
        raise ValueError(
            f"column {shown(column)} holds {shown(odd)} where dates are needed; write them as "
            "2026-11-16."
        )
    return fitting[0]


def cells_without_date(content: Distinct, column: str) -> NotDates:
    """Return the cells that are no dates in the format that fits most cells."""
    codes, values = content
    rows = np.flatnonzero(codes >= 0)
    places, firsts, counts = np.unique(codes[rows], return_index=True, return_counts=True)
    order = np.argsort(firsts)
    found = [values[place] for place in places[order]]
    firsts, counts = rows[firsts[order]], counts[order]
    texts = [text_of(value).strip() for value in found[: OPTIONS.tried]]
    forms = [form + time for form in OTHER_DATES for time in TIMES]
    forms = ["", *(form for form in forms if any(_parsed(text, form) for text in texts))]
    odd = [np.array([days_in(form)(value) is None for value in found]) for form in forms]
    least = min(odd, key=lambda marked: counts[marked].sum())
    cells = [(found[i], int(firsts[i]) + 1) for i in np.flatnonzero(least)]
    return NotDates(column, cells, int(counts[least].sum()), len(rows))


def share_like_dates(content: Distinct) -> float:
    """Return the share of the cells that are written like dates, missing values apart."""
    codes, values = content
    like = [
        isinstance(value, date)
        or (isinstance(value, str) and bool(ISO_LIKE.fullmatch(value.strip())))
        for value in values
    ]
    known = codes[codes >= 0]
    return float(np.mean(np.array(like)[known])) if len(known) else 0.0


def _fitting_forms(texts: list[str]) -> list[str]:
    """Return the ``strptime`` formats of all ``texts``; of formats that agree, the first one."""
    forms = [form + time for form in OTHER_DATES for time in TIMES]
    forms = [form for form in forms if _parsed(texts[0], form)]
    days = {form: tuple(_parsed(text, form) for text in texts) for form in forms}
    different = {found: form for form, found in reversed(days.items()) if all(found)}
    return list(different.values())


def look_like_dates(values: list[Any]) -> bool:
    """Whether all values are texts such as 16.11.2026, 11/16/2026 or 16-11-2026 08:30."""
    return all(isinstance(v, str) and DATE_LIKE.fullmatch(v.strip()) for v in values)


def is_written_date(values: list[Any]) -> bool:
    """Whether all values are dates in one format other than ISO 8601, with only one reading."""
    return look_like_dates(values) and len(_fitting_forms([v.strip() for v in values])) == 1


def days_in(form: str) -> Callable[[Any], float | None]:
    """Return a parser like ``day_of`` that also accepts dates in the format ``form``."""

    def reading(value: Any) -> float | None:
        found = day_of(value)
        if found is not None or not form:
            return found
        parsed = _parsed(text_of(value).strip(), form)
        return None if parsed is None else day_of(parsed)

    return reading


def _parsed(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


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


def day_text(days: float) -> str:
    """Return days since 1970-01-01 as an ISO date, with the time of day unless it is midnight."""
    try:
        moment = EPOCH + days * DAY
    except OverflowError:
        return f"{days:.0f} days from 1970-01-01"
    if moment.time() == time():
        return moment.date().isoformat()
    return moment.isoformat(sep=" ", timespec="minutes")
