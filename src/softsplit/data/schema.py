"""What a table must look like for a tree: its columns, their kinds and levels.

A schema is learned from the training table and kept with the tree, so that later tables are coded
in the same way, whatever values and columns they have besides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.data.coding import PlainCoding, as_text
from softsplit.data.files import Table, as_numbers
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import cut, shown, visible

MissingRule = Literal["error", "drop", "fill"]
RowRule = Literal["error", "blank", "none"]
SCHEMA_CODINGS = tuple(c for c in get_args(PlainCoding) if c != "none")

MOST_CLASSES = 100
MANY_LEVELS = 50
ROWS_PER_LEVEL = 20
"""A text column of more than MANY_LEVELS levels, and fewer rows than this for each, is a name."""
MOST_LEVELS = 1000
SHOWN, KNOWN = 8, 5
"""Columns, and levels of one, that a sentence lists."""


@dataclass(frozen=True)
class Column:
    """A column of the table that becomes one or more features.

    Attributes
    ----------
    name : str
    levels : tuple of str or None
        Of a categorical column, in the order of the features; None for a column of numbers.
    fill : float or str
        What stands in for a missing value: the median, or the most frequent level.
    """

    name: str
    levels: tuple[str, ...] | None
    fill: float | str

    def feature_names(self, coding: PlainCoding) -> tuple[str, ...]:
        if self.levels is None or coding == "ordinal":
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self.levels[self._skipped(coding) :])

    def _skipped(self, coding: PlainCoding) -> int:
        assert self.levels is not None
        return int(coding == "drop-first" or (coding == "binary-once" and len(self.levels) == 2))

    def coded(self, values: NDArray[Any], coding: PlainCoding) -> FloatArray:
        """Features of the column, (n_rows, n_features); unknown levels are none of them."""
        if self.levels is None:
            return values.astype(float)[:, None]
        if coding == "ordinal":
            places = {level: float(i) for i, level in enumerate(self.levels)}
            return np.array([places.get(value, np.nan) for value in values])[:, None]
        kept = np.array(self.levels[self._skipped(coding) :], dtype=object)
        return (values[:, None] == kept[None, :]).astype(float)


@dataclass(frozen=True)
class Rows:
    """Coded rows of a table.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
    complete : array of bool, shape (n_rows,)
        Rows that have all values that are needed; of others X holds no meaning.
    """

    X: FloatArray
    complete: NDArray[np.bool_]


@dataclass(frozen=True)
class InputSchema:
    """Columns of the training table, the target, and how they were coded."""

    target: str
    columns: tuple[Column, ...]
    coding: PlainCoding = "onehot"
    missing: MissingRule = "error"

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(n for column in self.columns for n in column.feature_names(self.coding))

    def needed(self, features: Iterable[int]) -> set[str]:
        """Names of the columns that these features are made of."""
        homes = [c.name for c in self.columns for _ in c.feature_names(self.coding)]
        return {homes[j] for j in features}

    def code(
        self,
        table: Table,
        needed: Collection[str] | None = None,
        missing: Literal["error", "drop", "blank", "fill"] = "error",
        unknown: RowRule = "error",
    ) -> Rows:
        """Rows of a table as features of the tree.

        Parameters
        ----------
        table : Table
        needed : collection of str, optional
            Columns whose values matter, all if not given; others may be absent or incomplete.
        missing : {"error", "drop", "blank", "fill"}
            A missing value is refused, makes its row incomplete, or is filled.
        unknown : {"error", "blank", "none"}
            A level that the training table did not have is refused, makes its row incomplete,
            or counts as none of the known levels, which only the one-hot coding can say.
        """
        wanted = {column.name for column in self.columns} if needed is None else set(needed)
        if unknown == "none" and self.coding != "onehot" and any(c.levels for c in self.columns):
            raise ValueError(
                f"the coding {self.coding!r} of this model has no place for unknown levels; use "
                "'error' or 'blank' for them."
            )
        _require_columns(table.frame, [c.name for c in self.columns if c.name in wanted])
        n_rows = len(table.frame)
        complete = np.ones(n_rows, dtype=bool)
        blocks, holes, strangers = [], {}, []
        for column in self.columns:
            if column.name not in wanted:
                width = len(column.feature_names(self.coding))
                blocks.append(np.zeros((n_rows, width)))
                continue
            values, absent = _values(table, column)
            if absent.any() and missing != "fill":
                holes[column.name] = int(absent.sum())
                complete &= ~absent
            values[absent] = column.fill
            if column.levels is not None and unknown != "none":
                odd = ~np.isin(values.astype(str), column.levels)
                if odd.any():
                    strangers.append(_stranger(column, values, odd))
                    complete &= ~odd
                    values[odd] = column.fill
            blocks.append(column.coded(values, self.coding))
        if holes and missing == "error":
            raise ValueError(missing_sentence(holes))
        if strangers and unknown == "error":
            others = len(strangers) - 1
            more = f"; so do {others} other columns" if others > 1 else "; so does another column"
            raise ValueError(f"{strangers[0]}{more if others else ''}.")
        return Rows(np.hstack(blocks), complete)


@dataclass(frozen=True)
class Learned:
    """A schema and the coded training rows.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
    y : array of str, shape (n_rows,)
    missing : dict
        Missing values of the table by column.
    dropped_rows : int
        Rows that were left out because of them.
    """

    schema: InputSchema
    X: FloatArray
    y: NDArray[Any]
    missing: dict[str, int]
    dropped_rows: int


def learn(
    table: Table,
    target: str,
    *,
    categorical: Collection[str] = (),
    drop: Collection[str] = (),
    coding: PlainCoding = "onehot",
    missing: MissingRule = "error",
) -> Learned:
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
        raise ValueError(f"column {shown(name)} holds no values; leave it out.")
    if counts and missing == "error":
        raise ValueError(missing_sentence(counts))
    kept = frame[target].notna() if missing == "fill" else frame.notna().all(axis=1)
    complete = frame[kept].reset_index(drop=True)
    if len(complete) == 0:
        raise ValueError(
            f"no row is left: every one has a missing value, {_listed(counts)}; fill them in, or "
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
    return Learned(schema, coded.X, labels, counts, len(frame) - len(complete))


def labels_of(table: Table, target: str, classes: Collection[str]) -> NDArray[Any]:
    """The classes in a table as text, with None where one is missing; unknown ones are refused."""
    _require_columns(table.frame, [target], "target")
    column = table.frame[target]
    known = column.notna()
    labels = np.full(len(column), None, dtype=object)
    labels[known.to_numpy()] = _texts(column[known], table.decimal_comma)
    odd = next((v for v in labels if v is not None and v not in set(classes)), None)
    if odd is not None:
        raise ValueError(
            f"class {shown(odd)} in column {shown(target)} is none of the model's classes."
        )
    return labels


def missing_sentence(counts: dict[str, int]) -> str:
    """One sentence with the columns and counts of missing values."""
    return (
        f"values are missing, {_listed(counts)}; fill them in, or say with the option missing what "
        "to do with such rows."
    )


def _listed(counts: dict[str, int]) -> str:
    most = sorted(counts.items(), key=lambda item: -item[1])
    first = ", ".join(f"{shown(name, 20)} ({count})" for name, count in most[:SHOWN])
    more = f" and {len(most) - SHOWN} more columns" if len(most) > SHOWN else ""
    return f"in column {first}{more}"


def _check_request(
    frame: pd.DataFrame,
    target: str,
    categorical: Collection[str],
    drop: Collection[str],
    coding: str,
    missing: str,
) -> None:
    _require_columns(frame, [target], "target")
    _require_columns(frame, [*categorical, *drop])
    if target in drop or target in categorical:
        raise ValueError(f"target {shown(target)} cannot be a feature or be left out.")
    if coding not in SCHEMA_CODINGS:
        raise ValueError(f"coding {shown(coding)} is unknown; choose {', '.join(SCHEMA_CODINGS)}.")
    if missing not in get_args(MissingRule):
        raise ValueError(f"missing must be 'error', 'drop' or 'fill', got {shown(missing)}.")


def _require_columns(frame: pd.DataFrame, wanted: Iterable[str], what: str = "column") -> None:
    names = [str(column) for column in frame.columns]
    for name in wanted:
        if name not in names:
            close = get_close_matches(name, names, n=1)
            listed = ", ".join(cut(visible(known), 20) for known in names[:SHOWN])
            listed += ", ..." if len(names) > SHOWN else ""
            hint = f"did you mean {shown(close[0])}?" if close else f"there are: {listed}."
            what_else = "is not a column of the table" if what == "target" else "is not there"
            raise ValueError(f"{what} {shown(name)} {what_else}; {hint}")


def _texts(column: pd.Series, decimal_comma: bool) -> NDArray[Any]:
    """A complete column as text; 1 and 1.0 are the same, text stays as it is."""
    if column.dtype == object and all(isinstance(value, str) for value in column):
        return column.to_numpy(dtype=object)
    return as_text(column).to_numpy(dtype=object)


def _labels(column: pd.Series, target: str, decimal_comma: bool) -> NDArray[Any]:
    numbers = as_numbers(column, decimal_comma)
    if numbers is not None and np.any(numbers != np.floor(numbers)):
        raise ValueError(
            f"target {shown(target)} holds fractions, which are no classes; softsplit trains "
            "classifiers."
        )
    labels = _texts(column, decimal_comma).astype(str)
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
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        raise ValueError(
            f"column {shown(name)} holds dates; turn it into numbers, such as days since a day."
        )
    numbers = None if categorical else as_numbers(known, table.decimal_comma)
    if numbers is not None:
        if not np.all(np.isfinite(numbers)):
            raise ValueError(f"column {shown(name)} holds infinity; replace it.")
        return Column(name, None, float(np.median(numbers)))
    texts = _texts(known, table.decimal_comma).astype(str)
    levels, counts = np.unique(texts, return_counts=True)
    sparse = len(levels) > MANY_LEVELS and len(known) < ROWS_PER_LEVEL * len(levels)
    if sparse or len(levels) > MOST_LEVELS:
        odd = _odd_number(known) if not categorical else None
        hint = f" (or is {shown(odd)} a typing error in a column of numbers?)" if odd else ""
        raise ValueError(
            f"column {shown(name)} holds {len(levels)} different texts in {len(known)} rows, which "
            f"is a name rather than a category; leave it out{hint}."
        )
    return Column(name, tuple(levels.tolist()), str(levels[np.argmax(counts)]))


def _odd_number(column: pd.Series) -> str | None:
    """The text that keeps a column from being one of numbers, if hardly any is."""
    odd = pd.to_numeric(column, errors="coerce").isna()
    return str(column[odd].iloc[0]) if 0 < odd.mean() < 0.1 else None


def _values(table: Table, column: Column) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Values of a column, and where they are missing."""
    given = table.frame[column.name]
    absent = given.isna().to_numpy()
    values = np.full(len(given), column.fill, dtype=object)
    known = given[~absent]
    if column.levels is not None:
        values[~absent] = _texts(known, table.decimal_comma)
        return values, absent
    numbers = as_numbers(known, table.decimal_comma)
    if numbers is None:
        parsed = pd.to_numeric(known, errors="coerce")
        odd = known[parsed.isna()].iloc[0] if parsed.isna().any() else known.iloc[0]
        raise ValueError(
            f"column {shown(column.name)} holds {shown(odd)} where numbers are needed."
        )
    if not np.all(np.isfinite(numbers)):
        raise ValueError(f"column {shown(column.name)} holds infinity; replace it.")
    values[~absent] = numbers.to_numpy()
    return values, absent


def _stranger(column: Column, values: NDArray[Any], odd: NDArray[np.bool_]) -> str:
    assert column.levels is not None
    known = ", ".join(shown(level, 16) for level in column.levels[:KNOWN])
    more = ", ..." if len(column.levels) > KNOWN else ""
    return (
        f"column {shown(column.name)} holds {shown(values[odd][0])}, which the training data did "
        f"not have ({int(odd.sum())} rows; known: {known}{more})"
    )
