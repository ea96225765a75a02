"""The smallest change of two features together that changes the predicted class.

It is looked for where no single feature can do it. Each feature in use has some values within its
training range: levels, whole numbers, or GRID parts of the range; every pair of values of every
two features is tried. Of those at which the class is another, the one with the smallest parts of
both ranges together is followed back: each of the two goes as near to its own value as it can while
the other stays (the exact search of changes.py). What is found changes the class, and neither of
the two could change less by itself; a smaller change between values that were tried may be missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.reading.changes import Change, UndecidedError, change_along, in_use
from softsplit.reading.model import TreeModel
from softsplit.reading.summary import BINARY, INTEGER
from softsplit.support.arrays import FloatArray
from softsplit.variables import Cells
from softsplit.variables.variable import CATEGORY

GRID = 24
"""Parts of a range that are tried."""

MOST_FEATURES = 12
"""Features that are paired: those with the largest coefficients."""


class Moves(NamedTuple):
    """Values of one feature, or variable, that are tried: what its columns hold, and how far."""

    columns: NDArray[np.intp]
    values: FloatArray
    far: FloatArray


def joint_change(
    model: TreeModel, x: FloatArray, told: Sequence[float | str]
) -> tuple[Change, ...]:
    """Two changes that together change the class of a row; empty if none was found.

    ``told`` are the values of the row as people write them, by feature or by variable.
    """
    with np.errstate(over="ignore"):  # of a row far off, distances may be infinite
        best = _nearest_pair(model, x)
    return () if best is None else _followed_back(model, x, told, *best)


def _nearest_pair(model: TreeModel, x: FloatArray) -> tuple[FloatArray, tuple[int, int]] | None:
    """The nearest row of the grid that has another class, and the two features that it moves."""
    current = int(model.predict_index(x[None, :])[0])
    moves = {i: _moves(model, x, i) for i in _weightiest(model)}
    least, best = np.inf, None
    for pair in combinations(moves, 2):
        one, other = moves[pair[0]], moves[pair[1]]
        rows = np.repeat(x[None, :], len(one.far) * len(other.far), axis=0)
        rows[:, one.columns] = np.repeat(one.values, len(other.far), axis=0)
        rows[:, other.columns] = np.tile(other.values, (len(one.far), 1))
        far = np.add.outer(one.far, other.far).ravel()
        far[model.predict_index(rows) == current] = np.inf
        nearest = int(np.argmin(far))
        if far[nearest] < least:
            least, best = far[nearest], (rows[nearest], pair)
    return best


def _weightiest(model: TreeModel) -> list[int]:
    """Features, or variables, in use: those with the largest coefficients, in order."""
    sizes = np.abs(model.parameters.weights).max(axis=1)
    if model.coding is not None:
        largest = np.zeros(len(model.coding.variables))
        np.maximum.at(largest, model.coding.homes, sizes)
        sizes = largest
    return sorted(sorted(in_use(model), key=lambda i: (-sizes[i], i))[:MOST_FEATURES])


def _moves(model: TreeModel, x: FloatArray, i: int) -> Moves:
    columns = np.array([i]) if model.coding is None else model.coding.columns_of(i)
    variable = None if model.coding is None else model.coding.variables[i]
    if variable is not None and variable.kind == CATEGORY:
        places = np.arange(len(variable.levels) + variable.other, dtype=float)
        strange = places >= len(variable.levels)
        places[strange] = np.nan
        values = variable.coded(Cells(places, np.zeros_like(strange), strange))
        same = np.all(np.abs(values - x[columns]) < 1e-9, axis=1)
        return Moves(columns, values, np.where(same, 0.0, 1.0))
    j = int(columns[0])
    low, high = float(model.summary.low[j]), float(model.summary.high[j])
    if model.summary.kinds[j] == BINARY:
        tried = np.array([0.0, 1.0])
    elif model.summary.kinds[j] == INTEGER:
        tried = np.unique(np.rint(np.linspace(low, high, GRID + 1)))
    else:
        tried = np.linspace(low, high, GRID + 1)
    values = np.repeat(x[None, columns], len(tried), axis=0)
    values[:, 0] = tried
    values[:, 1:] = 0.0  # known
    span = high - low if high > low else 1.0
    return Moves(columns, values, np.abs(tried - float(x[j])) / span)


def _followed_back(
    model: TreeModel,
    x: FloatArray,
    told: Sequence[float | str],
    row: FloatArray,
    pair: tuple[int, int],
) -> tuple[Change, ...]:
    """The changes of two features to a row, after each has gone back as far as it can."""
    current = int(model.predict_index(x[None, :])[0])
    found: dict[int, Change] = {}
    for i in pair:
        columns = np.array([i]) if model.coding is None else model.coding.columns_of(i)
        begun = row.copy()
        begun[columns] = x[columns]  # as it was, the other one moved
        try:
            change = change_along(model, begun, i, current, told[i])
        except UndecidedError:
            return ()
        if change is None or int(model.predict_index(begun[None, :])[0]) != current:
            return ()
        found[i] = change[0]
        row = change[1]
    label = model.labels[int(model.predict_index(row[None, :])[0])]
    return tuple(replace(found[i], label=label) for i in pair)
