"""Coding of a table with a target: coded rows and their classes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.data.files import Table, refuse_fractions, require_columns, with_decimal_points
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.variables import CodedRows, Coding
from softsplit.variables import learn as learn_coding
from softsplit.variables.contents import distinct, number_of, read, text_of
from softsplit.variables.dates import NotDates


@dataclass(frozen=True)
class LabelledRows:
    """Coded rows of a table and their classes.

    Attributes
    ----------
    rows : CodedRows
    y : array of shape (n_rows,)
    target : str
        The column with the classes.
    dropped_rows : int
        Number of rows dropped because they have no class.
    """

    rows: CodedRows
    y: NDArray[Any]
    target: str
    dropped_rows: int = 0

    @property
    def matrix(self) -> FloatArray:
        """The coded features, shape (n_rows, n_columns)."""
        return self.rows.X

    @property
    def coding(self) -> Coding:
        return self.rows.coding

    def coded_as(self, coding: Coding | None) -> LabelledRows:
        """Return the rows with the knots of the ``coding`` of a tree that was trained on them."""
        return replace(self, rows=self.rows.coded_as(coding))

    def part(self, chosen: NDArray[Any] | None = None) -> tuple[Any, pd.Series]:
        """Return features and labels of all or of the ``chosen`` rows, as ``fit`` takes them."""
        rows = self.rows if chosen is None else self.rows.part(chosen)
        labels = pd.Series(self.y if chosen is None else self.y[chosen], name=self.target)
        if rows.apart is not None:
            return rows, labels
        if self.coding.plain and self.coding.named:
            return pd.DataFrame(rows.X, columns=list(self.coding.names)), labels
        return rows.X if self.coding.plain else rows, labels


def learn(
    table: Table,
    target: str,
    feature_types: Mapping[str, str] | None = None,
    apart: Collection[str] = (),
) -> LabelledRows:
    """Learn the coding of a training table, as ``SoftTreeClassifier.fit`` does; return its rows.

    Parameters
    ----------
    table : Table
    target : str
        The column with the classes; rows without a class are dropped.
    feature_types : mapping, optional
        Kinds of columns, see ``SoftTreeClassifier``. Unusable columns are dropped with the warning
        ``ColumnsLeftOut``.
    apart : collection of str
        Columns that are also kept as they are (``CodedRows.apart``).
    """
    feature_types = feature_types or {}
    frame, labels, kept = _labelled(table, target, feature_types)
    if target in feature_types:
        raise ValueError(f"target {shown(target)} cannot be a feature or be left out.")
    y = _checked_labels(frame[target][kept], labels[kept], target)
    features = frame.drop(columns=target)[kept]
    if features.shape[1] == 0:
        raise ValueError(f"there is no column beside the target {shown(target)}.")
    classes, places = np.unique(y, return_inverse=True)
    try:
        rows = learn_coding(features, places, classes, np.ones(len(y)), feature_types or None)
    except NotDates as error:  # counted with the rows that have no class
        raise error.numbered(np.flatnonzero(kept) + 1) from None
    rows = replace(rows, apart=_apart(frame, apart, kept))
    return LabelledRows(rows, y, target, int((~kept).sum()))


def _labelled(
    table: Table, target: str, columns: Collection[str] = ()
) -> tuple[pd.DataFrame, NDArray[Any], NDArray[np.bool_]]:
    """Return a table that has a target and other ``columns``, its classes, and which are known."""
    require_columns(table.frame, [target], "target")
    require_columns(table.frame, columns)
    if len(table.frame) == 0:
        raise ValueError("the table has no rows.")
    frame = with_decimal_points(table)
    labels = class_texts(frame[target])
    return frame, labels, np.array([label is not None for label in labels])


def _apart(
    frame: pd.DataFrame, names: Collection[str], kept: NDArray[np.bool_]
) -> pd.DataFrame | None:
    """The columns ``names`` of the rows ``kept``, numbers as such; None if none is named."""
    require_columns(frame, names)
    if not names:
        return None
    columns = frame[list(names)][kept].reset_index(drop=True)
    numbers = {name: read(columns[name], number_of) for name in columns}
    known = {name: values for name, values in numbers.items() if values is not None}
    return columns.assign(**known)


def class_texts(column: pd.Series) -> NDArray[Any]:
    """Return the classes of a column as text, None for missing values."""
    codes, values = distinct(column)
    return np.array([*map(text_of, values), None], dtype=object)[codes]


def _checked_labels(
    column: pd.Series, labels: NDArray[Any], target: str, most_classes: int = 100
) -> NDArray[Any]:
    numbers = None if column.dtype == bool else read(column, number_of)
    if numbers is not None and len(numbers):
        refuse_fractions(target, numbers)
    if len(labels) == 0:
        raise ValueError(f"target {shown(target)} holds no class.")
    y = labels.astype(str)
    count = len(np.unique(y))
    if count < 2:
        raise ValueError(
            f"target {shown(target)} has only one class, {shown(str(y[0]))}; a classifier needs at "
            "least two."
        )
    if count > most_classes:
        raise ValueError(
            f"target {shown(target)} holds {count} different values; softsplit trains classifiers "
            f"of at most {most_classes} classes."
        )
    return y


def label(
    table: Table,
    coding: Coding,
    classes: NDArray[Any],
    target: str,
    apart: Collection[str] = (),
) -> LabelledRows:
    """Code a table with a target by the ``coding`` of a trained tree.

    Parameters
    ----------
    table : Table
    coding : Coding
    classes : array of shape (n_classes,)
        The classes of the tree; any other class raises ``ValueError``.
    target : str
    apart : collection of str
        As of ``learn``.
    """
    frame, labels, kept = _labelled(table, target)
    known = {text_of(value): i for i, value in enumerate(classes.tolist())}
    other = next((v for v in labels if v is not None and v not in known), None)
    if other is not None:
        raise ValueError(
            f"class {shown(other)} in column {shown(target)} is not a class of the model."
        )
    y = classes[[known[value] for value in labels[kept]]]
    rows = coding.code(features_of(frame, target)[kept])
    rows = replace(rows, apart=_apart(frame, apart, kept))
    return LabelledRows(rows, y, target, int((~kept).sum()))


def features_of(frame: pd.DataFrame, target: str | None) -> pd.DataFrame:
    """Return the columns of ``frame`` without ``target``."""
    return frame.drop(columns=target) if target in frame.columns else frame


def split_names(listed: Collection[str], names: Collection[str]) -> list[str]:
    """Split comma-separated lists of column names; an entry that is itself a name is kept whole."""
    parts: list[str] = []
    for entry in listed:
        parts += [entry] if entry in names else [part.strip() for part in entry.split(",")]
    return [name for name in dict.fromkeys(parts) if name]
