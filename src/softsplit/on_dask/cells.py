"""Requirements on rates of a table on a cluster: which cell each of its rows belongs to.

A requirement speaks of columns by their values, or by the sides of a cut (formulations/rates.py). A
first pass over the source tells which *combinations* of class and values there are, with their
weights: ``seen_part`` of each partition, joined by ``cell_rows``. There a combination stands for
all of its rows, so that requirements are stated and checked as on rows in memory. The second pass,
which stores the table, looks up the cell of every row (``PartitionCells.of``) and groups rows by
cells. Cells are in the order of their classes: a class is a run of cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.estimators.sensitive import find_column
from softsplit.formulations.rates import Grouped, RatedRows, RatedTable, Requirement, rated_rows
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown

# Columns, with where they are cut; as of ``asked_columns``.
Asked = Mapping[Any, tuple[float, ...] | None]

# A class, and the value of each column: None where it is missing, else a flag and the value. The
# flag keeps True apart from 1, which Python calls equal.
Combination = tuple[Any, ...]

# Values of a column in a partition of which each is told apart.
MOST_VALUES = 1_000


@dataclass(frozen=True)
class PartitionCells:
    """What finds the cell of a row.

    Attributes
    ----------
    asked : mapping
    classes : array of shape (n_groups,)
    cells : dict
        The cell of each combination.
    rated : RatedRows
        The cells, and the requirements.
    """

    asked: Asked
    classes: NDArray[Any]
    cells: dict[Combination, int]
    rated: RatedRows

    def of(self, X: Any, sensitive: Any, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Return the cell of each row of a partition.

        Rows of weight zero may have a combination that was not counted; they get any cell.
        """
        places, combinations = _combined(self.asked, X, sensitive, labels)
        cells = [self.cells.get(combination, 0) for combination in combinations]
        return np.array(cells, dtype=np.int64)[places]


def seen_part(
    asked: Asked, X: Any, sensitive: Any, labels: NDArray[Any], weights: FloatArray
) -> dict[Combination, float]:
    """Return the weight of each combination of a partition; those without any are left out."""
    places, combinations = _combined(asked, X, sensitive, labels)
    totals = np.bincount(places, weights, len(combinations)).tolist()
    return {one: total for one, total in zip(combinations, totals, strict=True) if total > 0}


def _combined(
    asked: Asked, X: Any, sensitive: Any, labels: NDArray[Any]
) -> tuple[NDArray[np.intp], list[Combination]]:
    """Return the combinations of a partition, and which of them each row has."""
    columns = _columns(asked, X, sensitive, len(labels))
    classes, at = np.unique(labels, return_inverse=True)
    lines = np.column_stack([at, *(column.codes for column in columns)])
    distinct, places = np.unique(lines, axis=0, return_inverse=True)
    keys = [classes.tolist()]
    for column in columns:
        flagged = [(isinstance(value, bool | np.bool_ | str), value) for value in column.values]
        keys.append([*flagged, None])  # code -1: missing
    combinations = [
        tuple(own[code] for own, code in zip(keys, line, strict=True)) for line in distinct.tolist()
    ]
    return places.ravel(), combinations


def _columns(asked: Asked, X: Any, sensitive: Any, n_rows: int) -> list[Grouped]:
    """Return the columns of a partition; values between two cuts are all the upper one of these."""
    find, columns = find_column(X, sensitive, n_rows), []
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
        columns.append(Grouped(codes, values))
    return columns


def check_columns(asked: Asked, X: Any, sensitive: Any) -> None:
    """Raise ValueError, in one sentence, for a column that X and ``sensitive`` do not have.

    Both are empty tables like the partitions.
    """
    find = find_column(X, sensitive, 0)
    for name in asked:
        find(name)


def cell_rows(
    asked: Asked,
    parts: Sequence[Mapping[Combination, float]],
    requirements: Sequence[Requirement],
    classes: NDArray[Any],
    minimum: FloatArray,
) -> PartitionCells:
    """Return what finds the cells of all rows; ``minimum`` are the minimum rates of the classes.

    Raises ValueError, in one sentence, for what cannot be required of the table.
    """
    # 1. All combinations, with the weights of their rows in all partitions.
    weights: dict[Combination, float] = {}
    for part in parts:
        for combination, weight in part.items():
            weights[combination] = weights.get(combination, 0.0) + weight
    # 2. Requirements on a table with one row for each combination.
    labels = np.searchsorted(classes, np.array([one[0] for one in weights], dtype=classes.dtype))
    columns = {name: _grouped([one[n] for one in weights]) for n, name in enumerate(asked, start=1)}
    totals = np.array(list(weights.values()))
    table = RatedTable(labels.astype(np.int64), classes, totals, columns.__getitem__)
    rated = rated_rows(requirements, table, minimum)
    assert rated is not None
    return PartitionCells(
        asked, classes, dict(zip(weights, rated.cells.tolist(), strict=True)), rated
    )


def _grouped(keys: Sequence[Any]) -> Grouped:
    """Return a column by its values in their order; texts and numbers together in that of texts."""
    held = {key for key in keys if key is not None}
    try:
        order = sorted(held, key=lambda key: key[1])
    except TypeError:
        order = sorted(held, key=lambda key: str(key[1]))
    places = {key: place for place, key in enumerate(order)}
    codes = np.array([places.get(key, -1) for key in keys], dtype=np.intp)
    return Grouped(codes, [value for _, value in order])


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
