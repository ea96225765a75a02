"""Derivatives of a nonlinear program as an interior-point method wants them.

Derivatives are lists of numbers for a fixed list of positions. A position may occur more than
once: its numbers are added, so that each term of a formula can be written down by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Pattern:
    """Positions of the nonzeros of a matrix, and where each listed number goes.

    Attributes
    ----------
    shape : (n_rows, n_columns)
    column_starts, row_indices : int arrays
        Compressed columns, as in scipy.sparse.csc_array.
    slots : int array
        For each listed number the nonzero it is added to.
    """

    shape: tuple[int, int]
    column_starts: IntArray
    row_indices: IntArray
    slots: IntArray

    @classmethod
    def of(cls, rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> Pattern:
        """The pattern of the listed positions, in the order of the list."""
        keys = columns.astype(np.int64) * shape[0] + rows
        distinct, slots = np.unique(keys, return_inverse=True)
        per_column = np.bincount(distinct // max(shape[0], 1), minlength=shape[1])
        starts = np.concatenate([[0], np.cumsum(per_column)])
        return cls(shape, starts, distinct % max(shape[0], 1), slots.ravel())

    @property
    def n_nonzeros(self) -> int:
        return len(self.row_indices)

    def gather(self, values: FloatArray) -> FloatArray:
        """The nonzeros, column by column, from the listed numbers."""
        summed = np.bincount(self.slots, weights=values, minlength=self.n_nonzeros)
        return summed.astype(np.float64, copy=False)


def upper_triangle(rows: IntArray, columns: IntArray) -> tuple[IntArray, IntArray]:
    """Positions mirrored into the upper triangle."""
    return np.minimum(rows, columns), np.maximum(rows, columns)


def outer_positions(rows: IntArray, columns: IntArray) -> tuple[IntArray, IntArray]:
    """Positions of a full block, row by row."""
    return np.repeat(rows, len(columns)), np.tile(columns, len(rows))
