"""From columns of a frame to numbers.

onehot        one column per level of a categorical column, levels sorted as text
drop-first    the same without the first level
binary-once   one-hot, but a column of two levels becomes one column, the indicator of the second
ordinal       the position of the level among the sorted levels
none          columns as they are; text is refused
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.data.dataset import Dataset
from softsplit.support.arrays import FloatArray

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
        levels: list[str] | None = None
        if column in categorical and coding != "none":
            values = as_text(frame[column]).to_numpy(dtype=object)
            levels = sorted(set(values))
        else:
            values = frame[column].to_numpy(dtype=float)
        names = coded_names(str(column), levels, coding)
        columns |= zip(names, coded_values(values, levels, coding).T, strict=True)
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


def coded_names(name: str, levels: Sequence[str] | None, coding: PlainCoding) -> tuple[str, ...]:
    """Names of the features that a column becomes; ``levels`` is None for a column of numbers."""
    if levels is None or coding == "ordinal":
        return (name,)
    return tuple(f"{name}={level}" for level in levels[_skipped(levels, coding) :])


def coded_values(
    values: NDArray[Any], levels: Sequence[str] | None, coding: PlainCoding
) -> FloatArray:
    """Features of a column, (n_rows, n_features); texts that are no level are none of them."""
    if levels is None:
        return values.astype(float)[:, None]
    if coding == "ordinal":
        places = {level: float(i) for i, level in enumerate(levels)}
        return np.array([places.get(value, np.nan) for value in values])[:, None]
    kept = np.array(levels[_skipped(levels, coding) :], dtype=object)
    return (values[:, None] == kept[None, :]).astype(float)


def _skipped(levels: Sequence[str], coding: PlainCoding) -> int:
    """How many of the first levels get no feature."""
    return int(coding == "drop-first" or (coding == "binary-once" and len(levels) == 2))


def as_text(column: pd.Series) -> pd.Series:
    """Values as text; whole numbers without a decimal point, however they are stored."""
    if pd.api.types.is_float_dtype(column.dtype) and np.all(
        (column == np.floor(column)) & (np.abs(column) <= LARGEST_WHOLE)
    ):
        column = column.astype("int64")
    return column.astype(str)
