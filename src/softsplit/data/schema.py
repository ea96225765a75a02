"""What a table must look like for a tree: its columns, their kinds and levels.

A schema is learned from the training table and kept with the tree, so that later tables are coded
in the same way, whatever values and columns they have besides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.data.checks import missing_values, refuse_infinity, require_columns, texts_of
from softsplit.data.coding import PlainCoding, coded_names, coded_values
from softsplit.data.errors import MissingClasses, UnknownLevel
from softsplit.data.files import Table, as_numbers
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown

MissingRule = Literal["error", "drop", "fill"]
RowMissing = Literal["error", "drop", "blank", "fill"]
RowUnknown = Literal["error", "blank", "none"]
SCHEMA_CODINGS = tuple(c for c in get_args(PlainCoding) if c != "none")

KNOWN = 5
"""Levels that a sentence lists."""


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
        return coded_names(self.name, self.levels, coding)

    def coded(self, values: NDArray[Any], coding: PlainCoding) -> FloatArray:
        """Features of the column, (n_rows, n_features); unknown levels are none of them."""
        return coded_values(values, self.levels, coding)


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
        missing: RowMissing = "error",
        unknown: RowUnknown = "error",
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
        require_columns(table.frame, [c.name for c in self.columns if c.name in wanted])
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
            raise missing_values(holes)
        if strangers and unknown == "error":
            others = len(strangers) - 1
            more = f"; so do {others} other columns" if others > 1 else "; so does another column"
            raise UnknownLevel(f"{strangers[0]}{more if others else ''}")
        return Rows(np.hstack(blocks), complete)

    def label(
        self,
        table: Table,
        classes: Collection[str],
        missing: RowMissing | None = None,
    ) -> LabelledRows:
        """Rows of a table that has the target too, coded as the training table was.

        Parameters
        ----------
        table : Table
        classes : collection of str
            The classes that training knew; another one is refused.
        missing : {"error", "drop", "blank", "fill"}, optional
            What to do about a missing value, as in training if not given. Rows without a class,
            and rows that are incomplete, are refused or left out.
        """
        if len(table.frame) == 0:
            raise ValueError("the table has no rows.")
        rule = missing or self.missing
        labels = self._labels(table, classes)
        coded = self.code(table, None, rule)
        kept = coded.complete & np.array([label is not None for label in labels])
        if rule == "error" and not kept.all():
            raise MissingClasses(
                f"column {self.target!r} has no class in {int((~kept).sum())} rows",
                "go on without them by missing='drop'",
            )
        wanted = [column.name for column in self.columns]
        counts = table.frame[[*wanted, self.target]].isna().sum()
        holes = {str(c): int(n) for c, n in counts.items() if n}
        return LabelledRows(
            self, coded.X[kept], labels[kept].astype(str), holes, int((~kept).sum())
        )

    def _labels(self, table: Table, classes: Collection[str]) -> NDArray[Any]:
        """The classes in a table as text, with None where one is missing."""
        require_columns(table.frame, [self.target], "target")
        column = table.frame[self.target]
        known = column.notna()
        labels = np.full(len(column), None, dtype=object)
        labels[known.to_numpy()] = texts_of(column[known])
        other = next((v for v in labels if v is not None and v not in set(classes)), None)
        if other is not None:
            raise ValueError(
                f"class {shown(other)} in column {shown(self.target)} is none of the model's "
                "classes."
            )
        return labels


@dataclass(frozen=True)
class LabelledRows:
    """Coded rows of a table with their classes, and the schema that they were coded by.

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

    @property
    def frame(self) -> pd.DataFrame:
        """The rows with the names of their features, as estimators take them."""
        return framed(self.X, self.schema)


def framed(X: FloatArray, schema: InputSchema) -> pd.DataFrame:
    """Coded rows with the names that a tree is trained with."""
    return pd.DataFrame(X, columns=list(schema.feature_names))


def _values(table: Table, column: Column) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Values of a column, and where they are missing."""
    given = table.frame[column.name]
    absent = given.isna().to_numpy()
    values = np.full(len(given), column.fill, dtype=object)
    known = given[~absent]
    if column.levels is not None:
        values[~absent] = texts_of(known)
        return values, absent
    numbers = as_numbers(known, table.decimal_comma)
    if numbers is None:
        parsed = pd.to_numeric(known, errors="coerce")
        odd = known[parsed.isna()].iloc[0] if parsed.isna().any() else known.iloc[0]
        raise ValueError(
            f"column {shown(column.name)} holds {shown(odd)} where numbers are needed."
        )
    refuse_infinity(column.name, numbers)
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
