"""Exact Shapley values of the columns that a tree uses, for its class probabilities f.

With v(S) the mean of f over background rows b whose columns S are those of the row x,

    v(S)  = mean_b f(x on S, b elsewhere)
    phi_j = sum over S without j of |S|! (m - |S| - 1)! / m! (v(S + j) - v(S)),

m the number of columns in use. All 2^m sums are made, so that nothing is sampled or estimated and
phi_1 + ... + phi_m = f(x) - mean_b f(b) up to rounding. A column of a table stands for all features
that are made of it (levels, hinges, parts of a date, the indicator of a missing value).
"""

from __future__ import annotations

from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.support.arrays import FloatArray

MOST_COLUMNS = 16
"""Columns in use at most: 2^16 background tables per row take seconds, and each further column
doubles them."""

CELLS_AT_ONCE = 4_000_000
"""Cells of the rows that are asked about at once (32 MB)."""


class ShapleyValues(NamedTuple):
    """Exact Shapley values.

    Attributes
    ----------
    values : array of shape (n_rows, n_columns, n_answers)
        What each column of X adds to the probability of each class, or to the number.
    base : array of shape (n_answers,)
        Mean probabilities, or the mean number, of the background rows.
    """

    values: FloatArray
    base: FloatArray


def shapley_values(model: TreeModel, X: FloatArray, background: FloatArray) -> ShapleyValues:
    """The values of rows, from coded rows (n_rows, n_features) and coded background rows."""
    if not len(background):
        raise ValueError("background has no rows; give some rows of the training table.")
    columns = model.selected_columns
    m = len(columns)
    if m > MOST_COLUMNS:
        raise ValueError(
            f"the tree uses {m} columns, and exact Shapley values take 2^{m} sums; "
            f"{MOST_COLUMNS} columns are the most: fit a tree with max_features="
            f"{MOST_COLUMNS} or fewer."
        )
    homes = _homes(model)
    others, counts = _distinct(background, np.isin(homes, columns))
    values = np.zeros((len(X), len(model.column_names), len(model.answers)))
    weights = _weights(m)
    for i, row in enumerate(X):
        worth = _worth(model, row, others, counts, homes, columns)
        for place, column in enumerate(columns):
            with_it = (np.arange(2**m) >> place) & 1 == 1
            sizes = _sizes(m)[~with_it]
            values[i, column] = weights[sizes] @ (worth[with_it] - worth[~with_it])
    return ShapleyValues(values, counts @ model.surface(others) / counts.sum())


def _homes(model: TreeModel) -> NDArray[np.intp]:
    """The column of the table of each feature."""
    if model.coding is None:
        return np.arange(model.parameters.n_features)
    return np.array(model.coding.places, dtype=np.intp)[model.coding.homes]


def _distinct(rows: FloatArray, used: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Rows that differ in what the tree looks at, and how many of each there are."""
    rows = np.asarray(rows, dtype=float)
    _, first, counts = np.unique(rows[:, used], axis=0, return_index=True, return_counts=True)
    return rows[first], counts.astype(float)


def _sizes(m: int) -> NDArray[np.intp]:
    """Number of columns in each set of columns, which are the bits of 0, ..., 2^m - 1."""
    bits = (np.arange(2**m)[:, None] >> np.arange(m)) & 1
    return bits.sum(axis=1)


def _weights(m: int) -> FloatArray:
    """|S|! (m - |S| - 1)! / m! by |S|."""
    sizes = range(m)
    return np.array([factorial(s) * factorial(m - s - 1) / factorial(m) for s in sizes])


def _worth(
    model: TreeModel,
    row: FloatArray,
    others: FloatArray,
    counts: FloatArray,
    homes: NDArray[np.intp],
    columns: NDArray[np.intp],
) -> FloatArray:
    """v of all sets of columns, (2^m, n_answers)."""
    n_sets, n_others = 2 ** len(columns), len(others)
    known = [np.flatnonzero(homes == column) for column in columns]
    at_once = max(1, CELLS_AT_ONCE // max(1, others.size))
    answers = np.empty((n_sets, len(model.answers)))
    for begin in range(0, n_sets, at_once):
        sets = range(begin, min(begin + at_once, n_sets))
        asked = np.tile(others, (len(sets), 1))
        for n, chosen in enumerate(sets):
            block = asked[n * n_others : (n + 1) * n_others]
            for place, features in enumerate(known):
                if chosen >> place & 1:
                    block[:, features] = row[features]
        said = model.surface(asked).reshape(len(sets), n_others, -1)
        answers[sets.start : sets.stop] = np.einsum("sbk,b->sk", said, counts) / counts.sum()
    return answers
