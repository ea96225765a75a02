"""How the coding of a training table is learned: kinds, knots and class shares of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.bent_rows import sampled_rows
from softsplit.support.messages import ParameterError, shown, warn_user
from softsplit.support.row_budgets import ROWS
from softsplit.variables.coding import CodedRows, Coding, call_for_each
from softsplit.variables.columns import Columns, listed_columns
from softsplit.variables.contents import distinct, plain_numbers, table_columns
from softsplit.variables.curves import Ordered, knots_of
from softsplit.variables.dates import PARTS
from softsplit.variables.kinds import DROP, HINTS, Hint, kind_of, learn_variables
from softsplit.variables.levels import KEEP, NEARLY_DATES, needs_shares
from softsplit.variables.shares import Shared, fold_of_rows
from softsplit.variables.variable import DATE, NUMBER, ORDERED, Cells, DayReader


class ColumnsLeftOut(UserWarning):
    """Warns that columns of a table are not used for training.

    Attributes
    ----------
    columns : tuple of (str, str)
        Name of each column and why it is not used.
    """

    def __init__(self, columns: Sequence[tuple[str, str]]) -> None:
        super().__init__(columns)
        self.columns = tuple(columns)

    @property
    def nearly_dates(self) -> str | None:
        """The first column whose cells are dates except for a few."""
        return next((name for name, why in self.columns if why.startswith(NEARLY_DATES)), None)

    def advising(self, name_it: str, list_cells: str) -> str:
        """Return the message; ``name_it`` says how to use a column, ``list_cells`` what lists the
        cells of ``nearly_dates`` that are no dates."""
        which, verb, one = ("column", "is", "it")
        if len(self.columns) > 1:
            which, verb, one = ("columns", "are", "one")
        listed = listed_columns([f"{shown(name, 20)} ({why})" for name, why in self.columns])
        dates = f"; correct the cells that are not dates or leave them empty ({list_cells})"
        dates = "" if self.nearly_dates is None else dates
        return f"{which} {listed} {verb} left out; to use {one} all the same, {name_it}{dates}."

    def __str__(self) -> str:
        return self.advising(
            f"name its kind, such as feature_types={{{self.columns[0][0]!r}: 'keep'}}",
            f"feature_types={{{self.nearly_dates!r}: 'date'}} lists them",
        )


class IdentifierUsed(UserWarning):
    """Warns that a tree asks for a column that seems to number the rows."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"column {shown(self.name, 40)} seems to number the rows, and the tree asks for it: "
            "new rows have other numbers; leave the column out."
        )


def learn(
    X: Any,
    labels: NDArray[np.int64],
    classes: NDArray[Any],
    weight: FloatArray,
    feature_types: Mapping[Any, str] | None = None,
) -> CodedRows:
    """Learn the coding of a training table and return its coded rows.

    Parameters
    ----------
    X : table
    labels : array of int, shape (n_rows,)
        Positions in ``classes``.
    classes : array of shape (n_classes,)
    weight : array of shape (n_rows,)
        Sample weights. Rows of weight zero are coded but do not influence the coding.
    feature_types : mapping, optional
        Kinds of columns, by name or position: "number", "category", "ordered" or "ordered: low <
        mid < high", "date", "date: hour, weekday" or "date: since signup", "keep" (the inferred
        kind, and the column is used even if it looks useless) or "drop".
    """
    # 1. Columns and what the user says of them; numeric texts are parsed once.
    names, columns = table_columns(X)
    column_names = [f"x{j}" for j in range(len(columns))] if names is None else names
    hints = _hints(feature_types, column_names)
    columns = [
        column if hints.get(j) not in (None, KEEP, NUMBER) else _as_numbers(column)
        for j, column in enumerate(columns)
    ]
    # 2. Nothing is dropped from a table of numbers.
    if not hints and (names is None or all(map(_is_plain, columns))):
        # A purely numeric table is used as it is; without names no column can look like an
        # identifier.
        hints = {j: KEEP for j, column in enumerate(columns) if kind_of(column) == NUMBER}
    # 3. The variables of each column, or why it has none; errors of all columns are told at once.
    rows = weight / min(1.0, float(weight[weight > 0].mean()))
    named = [column.rename(name) for column, name in zip(columns, column_names, strict=True)]
    by_name = dict(zip(column_names, named, strict=True))
    calls = {
        j: (learn_variables, (column_names[j], named[j], rows, hints.get(j), by_name))
        for j in range(len(columns))
        if hints.get(j) != DROP
    }
    learned = dict.fromkeys(range(len(columns)), DROP) | call_for_each(calls)
    used = [
        (j, v)
        for j, variables in learned.items()
        if not isinstance(variables, str)
        for v in variables
    ]
    unused = {j: why for j, why in learned.items() if isinstance(why, str)}
    left_out = tuple((column_names[j], why) for j, why in unused.items())
    unasked = [
        (column_names[j], why) for j, why in unused.items() if why != DROP and hints.get(j) != KEEP
    ]
    if not used:
        listed = listed_columns([f"{shown(name, 20)} ({why})" for name, why in left_out])
        raise ParameterError("X", left_out, f"has no column that a tree can use: {listed}.")
    if unasked:
        warn_user(ColumnsLeftOut(unasked))
    # 4. Cells, coded with class shares where there are many levels.
    places, variables = zip(*used, strict=True)
    coding = Coding(tuple(column_names), variables, places, left_out, names is not None)
    days = DayReader()
    cells = [v.cells(named[j], by_name.get(v.since), days) for j, v in used]
    return _with_shares(coding, cells, labels, classes, weight)


def bent_matrix(
    X: FloatArray, names: Sequence[str] | None, n_knots: int, weight: FloatArray
) -> CodedRows | None:
    """Return a matrix of numbers with the hinges of its columns; None if no column bends.

    Parameters
    ----------
    X : array of shape (n_rows, n_columns)
        Without missing values. Many rows keep their precision, and knots are learned from a sample.
    names : sequence of str or None
        Names of the columns, if they have any.
    n_knots : int
    weight : array of shape (n_rows,)
    """
    if len(X) <= ROWS.double_precision:
        X = X.astype(float, copy=False)
    some = sampled_rows(X, weight > 0, ROWS.knots)
    few, weight = X[some], weight[some]
    knots: list[tuple[float, ...]] = []
    middles = np.empty(X.shape[1])
    for j in range(X.shape[1]):  # one sorted column at a time
        column = Ordered.of(few[:, j].astype(float, copy=False), weight)
        knots.append(knots_of(column, n_knots))
        middles[j] = column.quantile(0.5)
    if not any(knots):
        return None
    called = [f"x{j}" for j in range(X.shape[1])] if names is None else names
    plain = Coding.of_numbers(called, middles, names is not None)
    return CodedRows(X, plain).with_knots(knots, held=False)


def _as_numbers(column: pd.Series) -> pd.Series:
    """Return a column of numeric texts as floats (parsed once), any other column unchanged."""
    numbers = plain_numbers(column)
    return column if numbers is None else pd.Series(numbers, column.index, name=column.name)


def _is_plain(column: pd.Series) -> bool:
    """Whether a column is numeric and has no missing values."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return kind_of(column) == NUMBER and not column.isna().any()
    return kind_of(column) == NUMBER and not np.any(distinct(column)[0] < 0)


def _with_shares(
    coding: Coding,
    cells: list[Cells],
    labels: NDArray[np.int64],
    classes: NDArray[Any],
    weight: FloatArray,
) -> CodedRows:
    """Return the coded rows; learn the class shares of categories of many levels.

    Training rows get out-of-fold shares, rows of weight zero the shares of all training rows.
    """
    folds = None
    variables, blocks, shared = list(coding.variables), [], []
    shown_classes = (1,) if len(classes) == 2 else tuple(range(len(classes)))
    counted = weight > 0
    for i, (variable, read) in enumerate(zip(variables, cells, strict=True)):
        # 1. All but categories of many levels are coded at once.
        if not needs_shares(variable):
            blocks.append(variable.coded(read))
            continue
        # 2. Shares of the classes by level; of two classes the second says all.
        if folds is None:
            folds = fold_of_rows(np.column_stack([part.numbers for part in cells]))
        variable = replace(variable, classes=tuple(str(classes[k]) for k in shown_classes))
        first = sum(block.shape[1] for block in blocks)
        category = Shared.of(read.numbers, folds, first, variable)
        variables[i] = replace(
            variable,
            shares=tuple(tuple(map(float, line)) for line in category.table(labels, weight)),
        )
        # 3. A training row is coded by rows of other folds: its own class must not leak into it.
        block = variables[i].coded(read)
        block[counted, : len(shown_classes)] = category.held_out(labels, weight)[counted]
        blocks.append(block)
        shared.append(category)
    coding = replace(coding, variables=tuple(variables))
    X = np.ascontiguousarray(np.hstack(blocks))
    return CodedRows(X, coding, tuple(cells), tuple(shared))


def _hints(feature_types: Mapping[Any, str] | None, names: Sequence[str]) -> dict[int, str]:
    """Return the checked ``feature_types`` by column position."""
    if feature_types is None:
        return {}
    pairs = Columns(names).mapped("feature_types", feature_types, "what they are")
    for column, kind in pairs.values():
        refuse_kind(column, kind)
    return {place: kind for place, (_, kind) in pairs.items()}


def refuse_kind(column: Any, kind: Any, said_by: str = "feature_types") -> None:
    """Raise ``ValueError`` if ``kind``, which the argument ``said_by`` gives, is none."""
    if Hint.of(kind) is None:
        raise ParameterError(
            said_by,
            kind,
            f"says that column {shown(column)} is {shown(kind)}; choose "
            f"{', '.join(HINTS[:-1])} or {HINTS[-1]}{_more(kind)}.",
        )


def _more(kind: Any) -> str:
    """Return what an order or the parts of a date look like, for a kind that begins so."""
    if isinstance(kind, str) and kind in PARTS:
        return f"; a part of a date is named as in '{DATE}: {kind}'"
    if isinstance(kind, str) and kind.startswith(DATE):
        return f", with parts as in 'date: hour, month' ({', '.join(PARTS)}, since a column)"
    if isinstance(kind, str) and kind.startswith(ORDERED):
        return ", with levels as in 'ordered: low < mid < high'"
    return ""
