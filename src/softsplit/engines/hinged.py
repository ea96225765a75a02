"""Scaled lines of many rows whose hinges are computed when they are looked at.

A table of n rows with h knots at each number takes (1 + h) times its values as an array of lines.
``HingedLines`` holds the values alone, one line each, in the units of the table, and makes line j
from its value v as

    (x - low_j) / span_j,      x = v, or max(v - knot_j, 0) where it is a hinge

by the same operations, in the same precision, as rows that are coded and scaled first: the bits are
the same. It is indexed as the array (n_features, n_rows) is, ``lines[columns]``,
``lines[:, rows]``, ``lines[columns, rows]`` with a slice of rows and ``lines[np.ix_(columns,
rows)]``, and what is asked for comes as an array of its own. Passes over all rows make the lines of
one tile at a time (row_sums.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.bent_rows import Recipe, make_line
from softsplit.support.hinged_table import CHUNK_CELLS, HingedTable
from softsplit.tree.scaling import LinearScaling


@dataclass(frozen=True, eq=False)
class HingedLines(NDArrayOperatorsMixin):
    """Lines of values, read as scaled lines of values and hinges.

    Attributes
    ----------
    values : array of shape (n_values, n_rows), C order
        In single or double precision, and so are the lines.
    homes : int array of shape (n_features,)
        The line of ``values`` that each line is made of; -1 for a line that is zero.
    knots : array of shape (n_features,)
        As of ``HingedTable``, rounded to the precision of the values.
    low, span : arrays of shape (n_features,)
        Of a ``LinearScaling``.
    """

    values: FloatArray
    homes: NDArray[np.intp]
    knots: FloatArray
    low: FloatArray
    span: FloatArray

    ndim = 2

    @classmethod
    def of(cls, table: HingedTable, rows: NDArray[np.intp], scaling: LinearScaling) -> HingedLines:
        """Return some rows of a table, scaled."""
        values = np.empty((table.values.shape[1], len(rows)), dtype=table.dtype)
        step = CHUNK_CELLS // max(len(values), 1) + 1
        for begin in range(0, len(rows), step):
            values[:, begin : begin + step] = table.values[rows[begin : begin + step]].T
        return cls.scaled(values, table.homes, table.knots, scaling)

    @classmethod
    def scaled(
        cls,
        values: FloatArray,
        homes: NDArray[np.intp],
        knots: FloatArray,
        scaling: LinearScaling,
    ) -> HingedLines:
        """Return scaled lines of ``values`` (n_values, n_rows); homes and knots as of a table."""
        knots = knots.astype(values.dtype).astype(float)
        return cls(values, homes, knots, scaling.low, scaling.span)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.homes), self.values.shape[1]

    @property
    def size(self) -> int:
        return len(self.homes) * self.values.shape[1]

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.homes)

    def only(self, used: NDArray[np.bool_]) -> HingedLines:
        """Return the lines with those that are not ``used`` at zero: they take no time."""
        return replace(self, homes=np.where(used, self.homes, -1))

    def at(self, rows: NDArray[np.intp]) -> HingedLines:
        """Return some rows, whose lines are still to be computed."""
        return replace(self, values=np.ascontiguousarray(self.values[:, rows]))

    def between(self, low: int, high: int) -> HingedLines:
        """Return rows ``low`` .. ``high`` - 1, whose lines are still to be computed."""
        return replace(self, values=self.values[:, low:high])

    def own_values(self, line: int) -> FloatArray:
        """Return the values that a line is made of, in the units of the table."""
        return self.values[self.homes[line]].astype(float, copy=False)

    def __getitem__(self, key: Any) -> FloatArray:
        columns, rows = key if isinstance(key, tuple) else (key, slice(None))
        if np.ndim(columns) == 2 and np.ndim(rows) == 2:  # np.ix_
            columns, rows = np.ravel(columns), np.ravel(rows)
        elif np.ndim(columns) == 1 and np.ndim(rows) == 1 and not isinstance(rows, slice):
            raise IndexError("lines[columns, rows] takes a slice of rows, or np.ix_.")
        chosen = np.arange(len(self))[columns]
        if chosen.ndim == 0:
            return self._lines(chosen[None], rows)[0]
        return self._lines(chosen, rows)

    def _lines(self, columns: NDArray[np.intp], rows: Any) -> FloatArray:
        at = np.arange(self.values.shape[1])[rows]
        lines = np.zeros((len(columns), at.size), dtype=self.dtype)
        recipe = Recipe.of(self.homes[columns], self.knots[columns], self.dtype)
        ends = self.low[columns], self.span[columns]
        for line, home, *made in zip(lines, *recipe, *ends, strict=True):
            if home >= 0:
                make_line(self.values[home], at.ravel(), *made, line)
        return lines.reshape(len(columns), *at.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all lines as an array."""
        if copy is False:
            raise ValueError("hinged lines are computed: they have no array of their own.")
        return self[:].astype(dtype or self.dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Operators see the array of all lines."""
        arrays = [np.asarray(one) if isinstance(one, HingedLines) else one for one in inputs]
        return getattr(ufunc, method)(*arrays, **options)
