"""What a column must be like to be of use, and the sentences about those that are not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd

from softsplit.support.messages import cut, shown, visible

SHOWN = 8
"""Columns that a sentence lists."""


def require_columns(frame: pd.DataFrame, wanted: Iterable[str], what: str = "column") -> None:
    """Refuse a table that lacks columns, with the name that was perhaps meant."""
    names = [str(column) for column in frame.columns]
    absent = [name for name in wanted if name not in names]
    if not absent:
        return
    close = get_close_matches(absent[0], names, n=1) if len(absent) == 1 else []
    listed = ", ".join(cut(visible(known), 20) for known in names[:SHOWN])
    listed += f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    hint = f"did you mean {shown(close[0])}?" if close else f"there are: {listed}."
    told = ", ".join(shown(name, 24) for name in absent[:SHOWN])
    told += f" and {len(absent) - SHOWN} more" if len(absent) > SHOWN else ""
    if what == "target":
        raise ValueError(f"target {told} is not a column of the table; {hint}")
    which = "column {} is" if len(absent) == 1 else "columns {} are"
    raise ValueError(f"{which.format(told)} not there; {hint}")


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
