"""From a training table to a schema and coded rows: which columns are numbers, which are levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.data.checks import (
    listed,
    missing_values,
    refuse_dates,
    refuse_fractions,
    refuse_infinity,
    require_columns,
    texts_of,
)
from softsplit.data.coding import PlainCoding
from softsplit.data.errors import UselessColumn
from softsplit.data.files import Table, as_numbers
from softsplit.data.schema import (
    SCHEMA_CODINGS,
    Column,
    InputSchema,
    LabelledRows,
    MissingRule,
)
from softsplit.support.messages import shown

MOST_CLASSES = 100
MANY_LEVELS = 50
ROWS_PER_LEVEL = 20
"""A text column of more than MANY_LEVELS levels, and fewer rows than this for each, is a name."""
MOST_LEVELS = 1000


def learn(
    table: Table,
    target: str,
    *,
    categorical: Collection[str] = (),
    drop: Collection[str] = (),
    coding: PlainCoding = "onehot",
    missing: MissingRule = "error",
) -> LabelledRows:
    """The schema of a training table, and its rows.

    Parameters
    ----------
    table : Table
    target : str
        The column with the classes; rows without one are left out unless ``missing`` is "error".
    categorical, drop : collections of str
        Columns of numbers that are categories, and columns to leave out.
    coding : str
        See ``softsplit.data.coding``; "none" is not for tables with text.
    missing : {"error", "drop", "fill"}
        A missing value is refused, its row is left out, or it is replaced by the median or the
        most frequent level.
    """
    _check_request(table.frame, target, categorical, drop, coding, missing)
    frame = table.frame.drop(columns=list(drop))
    if len(frame) == 0:
        raise ValueError("the table has no rows.")
    counts = {str(c): int(n) for c, n in frame.isna().sum().items() if n}
    for name in (str(c) for c in frame.columns if c != target and frame[c].isna().all()):
        raise UselessColumn(name, f"column {shown(name)} holds no values")
    if counts and missing == "error":
        raise missing_values(counts)
    kept = frame[target].notna() if missing == "fill" else frame.notna().all(axis=1)
    complete = frame[kept].reset_index(drop=True)
    if len(complete) == 0:
        raise ValueError(
            f"no row is left: every one has a missing value, {listed(counts)}; fill them in, or "
            "leave out columns that are mostly empty."
        )
    labels = _labels(complete[target], target, table.decimal_comma)
    rows = Table(table.name, complete, table.decimal_comma)
    names = [str(c) for c in complete.columns if c != target]
    if not names:
        raise ValueError(f"there is no column beside the target {shown(target)}.")
    columns = tuple(_learned(rows, name, name in categorical) for name in names)
    schema = InputSchema(target, columns, coding, missing)
    features = schema.feature_names
    twice = next((f for f, count in Counter(features).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"two columns give a feature {shown(twice)}; rename one of them.")
    coded = schema.code(rows, missing="fill" if missing == "fill" else "error")
    return LabelledRows(schema, coded.X, labels, counts, len(frame) - len(complete))


def _check_request(
    frame: pd.DataFrame,
    target: str,
    categorical: Collection[str],
    drop: Collection[str],
    coding: str,
    missing: str,
) -> None:
    require_columns(frame, [target], "target")
    require_columns(frame, [*categorical, *drop])
    if target in drop or target in categorical:
        raise ValueError(f"target {shown(target)} cannot be a feature or be left out.")
    if coding not in SCHEMA_CODINGS:
        raise ValueError(f"coding {shown(coding)} is unknown; choose {', '.join(SCHEMA_CODINGS)}.")
    if missing not in get_args(MissingRule):
        raise ValueError(f"missing must be 'error', 'drop' or 'fill', got {shown(missing)}.")


def _labels(column: pd.Series, target: str, decimal_comma: bool) -> NDArray[Any]:
    numbers = as_numbers(column, decimal_comma)
    if numbers is not None:
        refuse_fractions(target, numbers)
    labels = texts_of(column).astype(str)
    count = len(np.unique(labels))
    if count < 2:
        raise ValueError(
            f"target {shown(target)} holds one class, {shown(str(labels[0]))}; a classifier needs "
            "two."
        )
    if count > MOST_CLASSES:
        raise ValueError(
            f"target {shown(target)} holds {count} different values; softsplit trains classifiers "
            f"of at most {MOST_CLASSES} classes."
        )
    return labels


def _learned(table: Table, name: str, categorical: bool) -> Column:
    column = table.frame[name]
    known = column.dropna()
    refuse_dates(name, column)
    numbers = None if categorical else as_numbers(known, table.decimal_comma)
    if numbers is not None:
        refuse_infinity(name, numbers)
        return Column(name, None, float(np.median(numbers)))
    texts = texts_of(known).astype(str)
    levels, counts = np.unique(texts, return_counts=True)
    sparse = len(levels) > MANY_LEVELS and len(known) < ROWS_PER_LEVEL * len(levels)
    if sparse or len(levels) > MOST_LEVELS:
        odd = _odd_number(known) if not categorical else None
        doubt = f" (or is {shown(odd)} a typing error in a column of numbers?)" if odd else ""
        problem = (
            f"column {shown(name)} holds {len(levels)} different texts in {len(known)} rows, which "
            "is a name rather than a category"
        )
        raise UselessColumn(name, problem, doubt)
    return Column(name, tuple(levels.tolist()), str(levels[np.argmax(counts)]))


def _odd_number(column: pd.Series) -> str | None:
    """The text that keeps a column from being one of numbers, if hardly any is."""
    odd = pd.to_numeric(column, errors="coerce").isna()
    return str(column[odd].iloc[0]) if 0 < odd.mean() < 0.1 else None
