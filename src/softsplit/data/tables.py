"""Data sets from the user's own files and frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from softsplit.data.dataset import Dataset, PlainCoding, code_frame
from softsplit.data.files import (
    first_repeated,
    read_table,
    refuse_fractions,
    require_columns,
    typed,
)
from softsplit.support.messages import cut, shown, unfit
from softsplit.variables.columns import listed_columns
from softsplit.variables.variable import refuse_infinity


def read_dataset(
    source: Any,
    target: str,
    *,
    name: str | None = None,
    categorical: Sequence[str] = (),
    coding: PlainCoding = "onehot",
    missing: Literal["refuse", "drop"] = "refuse",
) -> Dataset:
    """Read a data set from a file or a frame, with categorical columns coded.

    Parameters
    ----------
    source : path, pandas or polars frame
        A file ends in .csv, .tsv, .parquet or .pq; the text formats may be compressed (.gz) and
        use commas, semicolons, tabs or bars. Empty fields, ``?``, ``NA`` and the like are missing
        values.
    target : str
        Name of the column with the classes.
    name : str, optional
        The name of the data set; default: the name of the file.
    categorical : sequence of str
        Numeric columns to treat as categories. Columns of text and of truth values always are.
    coding : str
        See :func:`load_dataset`.
    missing : {"refuse", "drop"}
        Raise an error that counts missing values by column, or drop rows with missing values.
    """
    frame = _as_frame(source)
    _check_columns(frame, target, categorical)
    complete = _complete_rows(frame, missing)
    kinds = pd.api.types
    numbers = {
        name
        for name, kind in complete.dtypes.items()
        if kinds.is_numeric_dtype(kind) and not kinds.is_bool_dtype(kind)
    }
    chosen = set(frame.columns) - numbers - {target}
    _check_features(complete, target, chosen | set(categorical))
    _check_target(complete[target])
    return code_frame(
        name or (Path(source).name.split(".")[0] if isinstance(source, str | Path) else "frame"),
        complete,
        target,
        chosen | set(categorical),
        coding,
        len(frame) - len(complete),
    )


def _as_frame(source: Any) -> pd.DataFrame:
    if isinstance(source, pd.DataFrame):
        return source
    if hasattr(source, "columns") and hasattr(source, "get_column"):
        return pd.DataFrame({c: source.get_column(c).to_list() for c in source.columns})
    if not isinstance(source, str | Path):
        raise ValueError(
            f"source must be a path or a frame, got {type(source).__name__}; read it into a pandas "
            "frame first."
        )
    return typed(read_table(source))


def _check_columns(frame: pd.DataFrame, target: str, categorical: Sequence[str]) -> None:
    names = [str(column) for column in frame.columns]
    repeated = first_repeated(names)
    if repeated is not None:
        raise ValueError(f"there are several columns named {shown(repeated)}; rename all but one.")
    require_columns(frame, [target], "target")
    require_columns(frame, categorical)
    if target in categorical:
        raise ValueError(f"target {shown(target)} cannot be a feature as well.")


def _complete_rows(frame: pd.DataFrame, missing: str) -> pd.DataFrame:
    if missing not in ("refuse", "drop"):
        raise unfit("missing", missing, "must be 'refuse' or 'drop'")
    counts = frame.isna().sum()
    gaps = [cut(f"{column!r} ({count})") for column, count in counts[counts > 0].items()]
    incomplete = listed_columns(gaps, most=5)
    if incomplete and missing == "refuse":
        raise ValueError(
            f"values are missing in column {incomplete}; fill them in, or leave those rows out "
            "with missing='drop'."
        )
    complete = frame.dropna()
    if len(complete) == 0:
        raise ValueError(
            f"no row is left: every one has a missing value, in column {incomplete}."
            if incomplete
            else "the table has no rows."
        )
    return complete


def _check_features(
    frame: pd.DataFrame, target: str, categorical: set[str], most_levels: int = 50
) -> None:
    """Raise ``ValueError`` for a feature that cannot be used.

    A categorical column of more than ``most_levels`` levels and fewer than two rows per level is
    taken for a name.
    """
    for column in frame.columns:
        if column == target:
            continue
        # 1. Numbers: dates have no natural zero and no unit, infinity no scale.
        values = frame[column]
        if pd.api.types.is_datetime64_any_dtype(values.dtype):
            raise ValueError(
                f"column {shown(column)} holds dates; turn it into numbers, such as days since a "
                "day."
            )
        if column not in categorical:
            refuse_infinity(column, values.to_numpy(dtype=float))
            continue
        # 2. Categories: of nearly as many texts as rows each is a name.
        levels = values.nunique()
        if levels > max(most_levels, len(frame) // 2):
            raise ValueError(
                f"column {shown(column)} holds {levels} different texts in {len(frame)} rows, "
                "which is a name rather than a category; drop it."
            )


def _check_target(labels: pd.Series) -> None:
    if pd.api.types.is_float_dtype(labels.dtype):
        if np.any(np.isinf(labels)):
            raise ValueError(f"target {shown(labels.name)} holds infinity; replace it.")
        refuse_fractions(labels.name, labels)
    if labels.nunique() < 2:
        raise ValueError(
            f"target {shown(labels.name)} has only one class; a classifier needs at least two."
        )
