"""The smallest change of two features that changes the predicted class, where none does alone.

Every pair of ``PAIR_VALUES`` values of every two features is tried. Of those at which the class is
another, the one with the smallest parts of both ranges together is followed back: each of the two
goes as near to its own value as it can while the other stays. The result changes the class, and
neither of the two could change less by itself; a smaller change between values that were tried may
be missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from softsplit.advice.changes import Change, change_to, class_of, nearest_value
from softsplit.advice.limits import Room, decoded_row
from softsplit.advice.movers import Mover, moved_with, moving
from softsplit.fitted.model import TreeModel
from softsplit.support.arrays import FloatArray
from softsplit.variables import Cells

PAIR_VALUES = 25
"""Values of each feature that are tried for two together."""


MOST_FEATURES = 12
"""Features that are paired: those with the largest coefficients."""


def joint_change(
    model: TreeModel,
    x: FloatArray,
    written: Sequence[float | str],
    room: Room | None = None,
    cells: Sequence[Cells] = (),
) -> tuple[Change, ...]:
    """Two changes that together change the class of a row; empty if none was found.

    ``written`` are the values of the row as people write them, by feature or by variable, ``room``
    is where values may move, ``cells`` are those of the row.
    """
    room, cells = room or Room.of_training(model), cells or decoded_row(model, x)
    nearest = _nearest_pair(model, x, room, cells)
    return () if nearest is None else _followed_back(model, x, written, *nearest, room, cells)


def _nearest_pair(
    model: TreeModel, x: FloatArray, room: Room, cells: Sequence[Cells]
) -> tuple[FloatArray, tuple[int, int]] | None:
    """The nearest pair of values that has another class: its row, and the two features."""
    # 1. Values of each feature that are tried, as rows of their own.
    current, tried = class_of(model, x), {}
    for i in _weightiest(model, room):
        mover = Mover(model, x, i, room, cells)
        values = mover.spread(PAIR_VALUES)
        rows = mover.rows(values)
        allowed = mover.allowed(values)
        tried[i] = mover.columns, rows[allowed], mover.distances(values)[allowed]
    # 2. Every pair of values of every two features.
    least, nearest = np.inf, None
    for pair in combinations(tried, 2):
        (columns, rows, far), (other_columns, other_rows, other_far) = (tried[i] for i in pair)
        if np.intersect1d(columns, other_columns).size or not len(far) or not len(other_far):
            continue  # two dates, and the time between them; or limits leave no value
        both = np.repeat(rows, len(other_far), axis=0)
        both[:, other_columns] = np.tile(other_rows[:, other_columns], (len(far), 1))
        with np.errstate(over="ignore"):  # of a row that is far away
            distances = np.add.outer(far, other_far).ravel()
        distances[model.predict_index(both) == current] = np.inf
        place = int(np.argmin(distances))
        if distances[place] < least:
            least, nearest = distances[place], (both[place], pair)
    return nearest


def _weightiest(model: TreeModel, room: Room) -> list[int]:
    """Features, or variables, in use: those with the largest coefficients, in order."""
    sizes = np.abs(model.parameters.weights).max(axis=1)
    largest = np.zeros(len(model.table_coding.variables))
    np.maximum.at(largest, model.table_coding.homes, sizes)
    movers = moving(model, room)
    movers.sort(key=lambda i: -max(largest[n] for n in moved_with(model, i)))
    return sorted(movers[:MOST_FEATURES])


def _followed_back(
    model: TreeModel,
    x: FloatArray,
    written: Sequence[float | str],
    row: FloatArray,
    pair: tuple[int, int],
    room: Room,
    cells: Sequence[Cells],
) -> tuple[Change, ...]:
    """The changes of two features to a row, after each has gone back as far as it can."""
    current, changes = class_of(model, x), []
    for i in pair:
        columns = Mover(model, x, i, room, cells).columns
        row = row.copy()
        row[columns] = x[columns]  # as it was, the other one moved
        mover = Mover(model, row, i, room, cells)
        value = nearest_value(mover, current)
        if value is None or class_of(model, row) != current:
            return ()
        changes.append(change_to(mover, value, written[i]))
        row = mover.rows(np.array([value]))[0]
    label = model.labels[class_of(model, row)]
    return tuple(replace(change, label=label) for change in changes)
