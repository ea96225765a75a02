"""A coded table whose hinges are computed when they are looked at.

With three knots a number has four columns (curves.py), and a copy of all of them is four times the
table. ``HingedTable`` holds the columns that are no hinges; column j of a row is

    v                     where it is a value v itself (its knot is -infinity)
    max(v - knot_j, 0)    where it is a hinge of v

with the bits of ``Coding.fill_hinges``. It supports ``table[rows]`` with a slice, a mask or
positions, and ``table[rows, columns]`` where one of both is a slice or there is a single column;
results are copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray

# Cells that are computed at a time, two megabytes: small beside any table that is large.
CHUNK_CELLS = 250_000


@dataclass(frozen=True, eq=False)
class HingedTable:
    """Rows of ``values`` (n_rows, n_values), read as rows of values and hinges.

    Attributes
    ----------
    values : array of shape (n_rows, n_values)
        The columns that are no hinges, in single or double precision.
    homes : int array of shape (n_columns,)
        The column of ``values`` that each column is made of.
    knots : array of shape (n_columns,)
        The knot of each hinge; -infinity for a value itself.
    """

    values: FloatArray
    homes: NDArray[np.intp]
    knots: FloatArray

    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.values), len(self.homes)

    @property
    def size(self) -> int:
        return len(self.values) * len(self.homes)

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def bent(self) -> NDArray[np.bool_]:
        """For each column, whether it is a hinge."""
        return self.knots > -np.inf

    def __getitem__(self, key: Any) -> FloatArray:
        """Return some rows, ``table[rows]``, or some columns of them, ``table[rows, columns]``."""
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if np.ndim(rows) == 0 and not isinstance(rows, slice):
            raise IndexError("table[rows] takes a slice, a mask or positions of rows.")
        if np.ndim(rows) == 1 and np.ndim(columns) == 1 and not isinstance(columns, slice):
            raise IndexError("table[rows, columns] takes a slice of rows, or a single column.")
        homes, knots, bent = self.homes[columns], self.knots[columns], self.bent[columns]
        if np.ndim(homes) == 0:  # a single column
            return self._single(self.values[rows, homes], knots)
        some = self.values[rows]
        made = np.take(some, homes, axis=1)
        if np.any(bent):
            hinges = made[:, bent]
            hinges -= knots[bent].astype(made.dtype)
            made[:, bent] = np.maximum(hinges, 0.0, out=hinges)
        return made

    @staticmethod
    def _single(values: FloatArray, knot: Any) -> FloatArray:
        if knot == -np.inf:
            return values.copy()
        made: FloatArray = values - knot.astype(values.dtype)
        return np.maximum(made, 0.0, out=made)

    def part(self, rows: NDArray[Any]) -> HingedTable:
        """Return some of the rows, whose hinges are still to be computed."""
        return HingedTable(self.values[rows], self.homes, self.knots)

    def pieces(self) -> Iterator[slice]:
        """Yield all rows, about ``CHUNK_CELLS`` cells at a time."""
        step = CHUNK_CELLS // max(len(self.homes), 1) + 1
        for begin in range(0, max(len(self), 1), step):
            yield slice(begin, begin + step)

    def in_use(self, rows: slice, used: NDArray[np.bool_]) -> FloatArray:
        """Return all columns of some rows; those that are not ``used`` are zero."""
        some = self[rows, used]
        made = np.zeros((len(some), len(self.homes)), dtype=self.dtype)
        made[:, used] = some
        return made

    def min(self, axis: int) -> FloatArray:
        """Return the smallest value of each column (``axis`` 0): a hinge rises with its value."""
        return self._of_ends(self.values.min(axis=axis))

    def max(self, axis: int) -> FloatArray:
        """Return the largest value of each column (``axis`` 0)."""
        return self._of_ends(self.values.max(axis=axis))

    def _of_ends(self, ends: FloatArray) -> FloatArray:
        return HingedTable(ends[None], self.homes, self.knots)[0:1][0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all rows and columns as an array."""
        if copy is False:
            raise ValueError("the hinges of a table are computed: it has no array of its own.")
        return self[:].astype(dtype or self.dtype, copy=False)
