"""The ``Dataset`` record, codings of the columns of a frame as numbers, and samples of rows.

onehot        one indicator per level of a categorical column, levels sorted as text
drop-first    the same without the first level
binary-once   one-hot, but two levels give one column, the indicator of the second level
ordinal       the position of the level among the sorted levels
none          numeric columns unchanged; text is an error
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from softsplit.support.arrays import LARGEST_WHOLE, FloatArray

PlainCoding = Literal["onehot", "drop-first", "binary-once", "ordinal", "none"]


@dataclass(frozen=True)
class Dataset:
    """Features ``X`` of shape (n_samples, n_features), labels ``y`` as strings, and their names.

    ``dropped_rows`` is the number of rows dropped because of missing values.
    """

    name: str
    X: FloatArray
    y: NDArray[Any]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    dropped_rows: int = 0


def code_frame(
    name: str,
    frame: pd.DataFrame,
    target: str,
    categorical: Collection[str],
    coding: PlainCoding,
    dropped_rows: int = 0,
) -> Dataset:
    """Return the data set of a frame without missing values: features are all but ``target``."""
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
    """Return the names of the features of a column; ``levels`` is None for a numeric column."""
    if levels is None or coding == "ordinal":
        return (name,)
    return tuple(f"{name}={level}" for level in levels[_skipped(levels, coding) :])


def coded_values(
    values: NDArray[Any], levels: Sequence[str] | None, coding: PlainCoding
) -> FloatArray:
    """Return the features of a column, shape (n_rows, n_features).

    An unlisted text gives zeros, or NaN under the ordinal coding.
    """
    if levels is None:
        return values.astype(float)[:, None]
    if coding == "ordinal":
        places = {level: float(i) for i, level in enumerate(levels)}
        return np.array([places.get(value, np.nan) for value in values])[:, None]
    kept = np.array(levels[_skipped(levels, coding) :], dtype=object)
    return (values[:, None] == kept[None, :]).astype(float)


def _skipped(levels: Sequence[str], coding: PlainCoding) -> int:
    """Return the number of leading levels without a feature, 0 or 1."""
    return int(coding == "drop-first" or (coding == "binary-once" and len(levels) == 2))


def as_text(column: pd.Series) -> pd.Series:
    """Return values as text; integers stored as floats are written without a decimal point."""
    if pd.api.types.is_float_dtype(column.dtype) and np.all(
        (column == np.floor(column)) & (np.abs(column) <= LARGEST_WHOLE)
    ):
        column = column.astype("int64")
    return column.astype(str)


def sample_rows(y: NDArray[Any], count: int, seed: int) -> NDArray[np.intp]:
    """Return the indices of ``count`` random rows in ascending order, stratified if possible.

    The same ``seed`` draws the same rows. If a class is not drawn, its first row is added.
    """
    everything = np.arange(len(y))
    if count >= len(y):
        return everything
    counts = np.unique(y, return_counts=True)[1]
    strata = y if counts.min() >= 2 and count >= len(counts) <= len(y) - count else None
    chosen = train_test_split(everything, train_size=count, stratify=strata, random_state=seed)[0]
    present = set(y[chosen].tolist())
    lost = [int(np.argmax(y == label)) for label in np.unique(y) if label not in present]
    return np.sort(np.concatenate([chosen, np.array(lost, dtype=np.intp)]))
