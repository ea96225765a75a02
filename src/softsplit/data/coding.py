"""From columns of a frame to numbers.

onehot        one column per level of a categorical column, levels sorted as text
drop-first    the same without the first level
binary-once   one-hot, but a column of two levels becomes one column, the indicator of the second
ordinal       the position of the level among the sorted levels
none          columns as they are; text is refused
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from softsplit.data.dataset import Dataset

LARGEST_WHOLE = 2.0**53
"""Beyond this floats skip whole numbers, and beyond 2^63 they fit into no integer."""

PlainCoding = Literal["onehot", "drop-first", "binary-once", "ordinal", "none"]


def code_frame(
    name: str,
    frame: pd.DataFrame,
    target: str,
    categorical: Collection[str],
    coding: PlainCoding,
    dropped_rows: int = 0,
) -> Dataset:
    """The data set of a complete frame: every column but ``target`` is a feature."""
    if coding not in get_args(PlainCoding):
        raise ValueError(
            f"coding {coding!r} is unknown; choose one of {', '.join(get_args(PlainCoding))}."
        )
    columns: dict[str, Any] = {}
    for column in frame.columns:
        if column == target:
            continue
        if column not in categorical or coding == "none":
            columns[str(column)] = frame[column].to_numpy(dtype=float)
        else:
            columns |= _code_column(str(column), frame[column], coding)
    if not columns:
        raise ValueError(f"data set {name!r} has no feature beside its target {target!r}.")
    labels = as_text(frame[target]).to_numpy(dtype=object).astype(str)
    return Dataset(
        name=name,
        X=np.column_stack(list(columns.values())),
        y=labels,
        feature_names=tuple(columns),
        class_names=tuple(sorted(set(labels))),
        dropped_rows=dropped_rows,
    )


def _code_column(name: str, column: pd.Series, coding: PlainCoding) -> dict[str, Any]:
    texts = as_text(column)
    levels = sorted(texts.unique())
    if coding == "ordinal":
        return {name: np.searchsorted(levels, texts.to_numpy(dtype=object)).astype(float)}
    skip = coding == "drop-first" or (coding == "binary-once" and len(levels) == 2)
    return {
        f"{name}={level}": (texts == level).to_numpy(dtype=float)
        for level in (levels[1:] if skip else levels)
    }


def as_text(column: pd.Series) -> pd.Series:
    """Values as text; whole numbers without a decimal point, however they are stored."""
    if pd.api.types.is_float_dtype(column.dtype) and np.all(
        (column == np.floor(column)) & (np.abs(column) <= LARGEST_WHOLE)
    ):
        column = column.astype("int64")
    return column.astype(str)
