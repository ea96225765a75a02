"""Values far outside of the training range, where the answers of a tree are extrapolated.

far outside     x < low - w (high - low)  or  x > high + w (high - low)

``low`` and ``high`` are the smallest and the largest training value of a column of numbers or dates
that the tree uses, and w is ``FAR_WIDTHS``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown, visible
from softsplit.support.numbers import finite, number

FAR_WIDTHS = 1.0
"""How many widths of the training range beyond its ends. Held-out rows of 36 data sets (five folds,
all columns of numbers) have such a value in 3 sets, in at most 0.15 % of the rows; with half a
width in 6 sets and up to 1.9 %, with none in 28 sets and up to 38 %."""

NAMED_COLUMNS = 5
"""Columns that a warning names."""


@dataclass(frozen=True)
class FarColumn:
    """A column with values far outside of its training range.

    Attributes
    ----------
    name : str
    rows : array of bool, shape (n_rows,)
    low, high : str
        The training range, as shown to users.
    """

    name: str
    rows: NDArray[np.bool_]
    low: str
    high: str

    @property
    def training(self) -> str:
        return f"far outside the training range ({self.low} to {self.high})"


class FarOutsideWarning(UserWarning):
    """Warns that rows have values far outside of the training range.

    Attributes
    ----------
    columns : tuple of (str, int, str)
        Name of each column, its number of such rows, and its training range.
    """

    def __init__(self, columns: Sequence[tuple[str, int, str]]) -> None:
        super().__init__(columns)
        self.columns = tuple(columns)

    def __str__(self) -> str:
        listed = [
            f"{shown(name, 40)} ({count:,} row{'s' if count > 1 else ''}, training {ends})"
            for name, count, ends in self.columns[:NAMED_COLUMNS]
        ]
        more = len(self.columns) - NAMED_COLUMNS
        text = ", ".join(listed) + (f" and {more} columns more" if more > 0 else "")
        return f"values far outside the training range, where the tree extrapolates: {text}."


def far_limits(model: TreeModel, feature: int) -> tuple[float, float]:
    """Return the limits beyond which values of a feature are far outside."""
    low, high = float(model.summary.low[feature]), float(model.summary.high[feature])
    with np.errstate(over="ignore"):
        beyond = FAR_WIDTHS * (high - low)
    return finite(low - beyond), finite(high + beyond)


def far_columns(model: TreeModel, X: FloatArray) -> list[FarColumn]:
    """Return the columns in use that have values far outside in ``X``, rows of the tree's features.

    Missing values are inside.
    """
    columns: list[FarColumn] = []
    coding, used = model.coding, model.features_of_values
    if not len(X) or not len(used):
        return columns
    lowest, highest = X[:, used].min(axis=0), X[:, used].max(axis=0)
    inside = (lowest >= model.summary.low[used]) & (highest <= model.summary.high[used])
    if np.all(inside):  # as nearly always
        return columns
    for j, smallest, largest in zip(used.tolist(), lowest, highest, strict=True):
        least, most = far_limits(model, j)
        values = X[:, j]
        if not (smallest < least or largest > most):
            continue
        variable = None if coding is None else coding.variables[coding.homes[j]]
        ends = [float(model.summary.low[j]), float(model.summary.high[j])]
        low, high = (end if variable is None else variable.display(end) for end in ends)
        columns.append(
            FarColumn(
                model.feature_names[j] if variable is None else variable.name,
                (values < least) | (values > most),
                low if isinstance(low, str) else number(low),
                high if isinstance(high, str) else number(high),
            )
        )
    return columns


def far_warning(model: TreeModel, X: FloatArray) -> FarOutsideWarning | None:
    """Return the warning about ``X``, or None if no value is far outside."""
    columns = far_columns(model, X)
    if not columns:
        return None
    return FarOutsideWarning([(c.name, int(c.rows.sum()), f"{c.low} to {c.high}") for c in columns])


def far_remarks(model: TreeModel, x: FloatArray) -> list[str]:
    """Return a sentence for each value of one row that is far outside."""
    return [f"{visible(one.name)} is {one.training}" for one in far_columns(model, x[None, :])]
