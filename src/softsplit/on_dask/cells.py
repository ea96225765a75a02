"""Requirements on rates of a table on a cluster: which cell each of its rows belongs to.

A requirement speaks of columns by their values, or by the sides of a cut (formulations/rates.py). A
first pass over the source tells which *combinations* of class and values there are, with their
weights: ``seen_part`` of each partition, joined by ``cell_rows``. There a combination stands for
all of its rows, so that requirements are stated and checked as on rows in memory. The second pass,
which stores the table, looks up the cell of every row (``CellRows.of``) and groups rows by cells.
Cells are in the order of their classes: a class is a run of cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.estimators.sensitive import find_column
from softsplit.formulations.rates import Grouped, RatedRows, RatedTable, Requirement, rated_rows
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown

Asked = Mapping[Any, tuple[float, ...] | None]
"""Columns, with where they are cut; as of ``asked_columns``."""

MOST_VALUES = 1_000
"""Values of a column in a partition of which each is told apart."""


class Seen(NamedTuple):
    """Combinations of class and values in a partition, with the weights of their rows.

    ``codes`` (n_combinations, n_columns) are positions in the ``values`` of each column, -1 where
    they are missing.
    """

    labels: NDArray[Any]
    codes: NDArray[np.intp]
    values: list[list[Any]]
    weights: FloatArray


@dataclass(frozen=True)
class CellRows:
    """What finds the cell of a row.

    Attributes
    ----------
    asked : mapping
    classes : array of shape (n_groups,)
    places : list of dict
        Position of each value of each column.
    keys : array of int, shape (n_combinations,)
        Combinations as numbers, in ascending order.
    rated : RatedRows
        Their cells, and the requirements.
    """

    asked: Asked
    classes: NDArray[Any]
    places: list[dict[Any, int]]
    keys: NDArray[np.int64]
    rated: RatedRows

    def of(self, X: Any, sensitive: Any, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Return the cell of each row of a partition.

        Rows of weight zero may have a combination that was not counted; they get any cell.
        """
        codes = np.empty((len(labels), len(self.asked)), dtype=np.intp)
        for n, column in enumerate(_columns(self.asked, X, sensitive, len(labels))):
            known = [self.places[n].get(_key(value), -1) for value in column.values]
            codes[:, n] = np.array([*known, -1], dtype=np.intp)[column.codes]
        at = np.searchsorted(self.classes, labels).clip(max=len(self.classes) - 1)
        keys = _numbers(at, codes, self.places)
        found = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        return self.rated.cells[found].astype(np.int64)


def seen_part(
    asked: Asked, X: Any, sensitive: Any, labels: NDArray[Any], weights: FloatArray
) -> Seen:
    """The combinations of a partition that have rows of positive weight."""
    columns = _columns(asked, X, sensitive, len(labels))
    counted = weights > 0
    classes, at = np.unique(labels[counted], return_inverse=True)
    lines = np.column_stack([at, *(column.codes[counted] for column in columns)]).astype(np.intp)
    if not len(lines):
        return Seen(labels[:0], lines[:, 1:], [[] for _ in columns], weights[:0])
    found, place = np.unique(lines, axis=0, return_inverse=True)
    totals = np.bincount(place.ravel(), weights[counted], len(found)).astype(float)
    values = [list(column.values) for column in columns]
    return Seen(classes[found[:, 0]], found[:, 1:], values, totals)


def _columns(asked: Asked, X: Any, sensitive: Any, n_rows: int) -> list[Grouped]:
    """The columns of a partition; values between two cuts are all the upper one of these."""
    find, found = find_column(X, sensitive, n_rows), []
    for name, cuts in asked.items():
        codes, values = find(name)
        if cuts is not None and all(_is_number(value) for value in values):
            ends = np.unique([*cuts, np.inf])
            sides = np.searchsorted(ends, np.array(values, dtype=float))
            codes = np.append(sides, -1)[codes] if len(codes) else codes
            values = ends.tolist()
        elif len(values) > MOST_VALUES:
            raise ValueError(
                f"column {shown(name)} has {len(values)} values in one partition, too many to tell "
                "apart; give a cut, or name a column of fewer values."
            )
        found.append(Grouped(codes, values))
    return found


def check_columns(asked: Asked, X: Any, sensitive: Any) -> None:
    """Raise ValueError, in one sentence, for a column that X and ``sensitive`` do not have.

    Both are empty tables like the partitions.
    """
    find = find_column(X, sensitive, 0)
    for name in asked:
        find(name)


def cell_rows(
    asked: Asked,
    parts: Sequence[Seen],
    requirements: Sequence[Requirement],
    classes: NDArray[Any],
    minimum: FloatArray,
) -> CellRows:
    """Return what finds the cells of all rows; ``minimum`` are the minimum rates of the classes.

    Raises ValueError, in one sentence, for what cannot be required of the table.
    """
    values: list[list[Any]] = []
    for n in range(len(asked)):
        each = [part.values[n][code] for part in parts for code in np.unique(part.codes[:, n])
                if code >= 0]  # fmt: skip
        values.append(_in_order({_key(value): value for value in each}))
    places = [{_key(value): at for at, value in enumerate(own)} for own in values]
    keys, weights = [], []
    for part in parts:
        codes = np.empty_like(part.codes)
        for n, own in enumerate(part.values):
            known = [places[n].get(_key(value), -1) for value in own]
            codes[:, n] = np.array([*known, -1], dtype=np.intp)[part.codes[:, n]]
        keys.append(_numbers(np.searchsorted(classes, part.labels), codes, places))
        weights.append(part.weights)
    every, place = np.unique(np.concatenate(keys), return_inverse=True)
    totals = np.bincount(place, np.concatenate(weights), len(every)).astype(float)
    rest, columns = every, {}
    for name, own in reversed(list(zip(asked, values, strict=True))):
        rest, code = np.divmod(rest, len(own) + 1)
        columns[name] = Grouped((code - 1).astype(np.intp), own)
    table = RatedTable(rest.astype(np.int64), classes, totals, columns.__getitem__)
    rated = rated_rows(requirements, table, minimum)
    assert rated is not None
    return CellRows(asked, classes, places, every, rated)


def _numbers(
    labels: NDArray[np.intp], codes: NDArray[np.intp], places: Sequence[Mapping[Any, int]]
) -> NDArray[np.int64]:
    """Combinations as numbers: class first, then the values of each column, 0 where missing."""
    found = np.asarray(labels, dtype=np.int64)
    for n, own in enumerate(places):
        found = found * (len(own) + 1) + codes[:, n] + 1
    return found


def _key(value: Any) -> tuple[bool, Any]:
    """A value as a key; the flag keeps True apart from 1, which Python calls equal."""
    return isinstance(value, bool | np.bool_ | str), value


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _in_order(values: Mapping[Any, Any]) -> list[Any]:
    """The values in their order; texts and numbers together in that of their texts."""
    try:
        return sorted(values.values())
    except TypeError:
        return sorted(values.values(), key=str)
