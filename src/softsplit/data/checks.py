"""What a column must be like to be of use, and the sentences about those that are not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.data.coding import as_text
from softsplit.data.errors import MissingValues
from softsplit.support.messages import cut, shown, visible

SHOWN = 8
"""Columns that a sentence lists."""


def require_columns(frame: pd.DataFrame, wanted: Iterable[str], what: str = "column") -> None:
    """Refuse a table that lacks a column, with the name that was perhaps meant."""
    names = [str(column) for column in frame.columns]
    for name in wanted:
        if name not in names:
            close = get_close_matches(name, names, n=1)
            listed = ", ".join(cut(visible(known), 20) for known in names[:SHOWN])
            listed += ", ..." if len(names) > SHOWN else ""
            hint = f"did you mean {shown(close[0])}?" if close else f"there are: {listed}."
            what_else = "is not a column of the table" if what == "target" else "is not there"
            raise ValueError(f"{what} {shown(name)} {what_else}; {hint}")


def refuse_dates(name: str, column: pd.Series) -> None:
    """Dates have no zero and no unit."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        raise ValueError(
            f"column {shown(name)} holds dates; turn it into numbers, such as days since a day."
        )


def refuse_infinity(name: str, numbers: Any) -> None:
    """No scaling has a place for it."""
    if not np.all(np.isfinite(numbers)):
        raise ValueError(f"column {shown(name)} holds infinity; replace it.")


def refuse_fractions(target: str, numbers: Any) -> None:
    """Fractions are measured; whole numbers may be names of classes."""
    if np.any(numbers != np.floor(numbers)):
        raise ValueError(
            f"target {shown(target)} holds fractions, which are no classes; softsplit trains "
            "classifiers."
        )


def missing_values(counts: dict[str, int]) -> MissingValues:
    """The error that names columns and counts of missing values."""
    advice = "fill them in, or say with the option missing what to do with such rows"
    return MissingValues(f"values are missing, {listed(counts)}", advice)


def listed(counts: dict[str, int]) -> str:
    """Columns with their counts, largest first, as many as a reader takes in."""
    most = sorted(counts.items(), key=lambda item: -item[1])
    first = ", ".join(f"{shown(name, 20)} ({count})" for name, count in most[:SHOWN])
    more = f" and {len(most) - SHOWN} more columns" if len(most) > SHOWN else ""
    return f"in column {first}{more}"


def texts_of(column: pd.Series) -> NDArray[Any]:
    """A complete column as text; 1 and 1.0 are the same, text stays as it is."""
    if column.dtype == object and all(isinstance(value, str) for value in column):
        return column.to_numpy(dtype=object)
    return as_text(column).to_numpy(dtype=object)
