"""The values of a variable in cells: all tables of points that are tried are constant on them.

A number has a cell between any two neighbours among its readable cuts and the edges of its counted
steps; a variable with levels has one for each. Missing values have the last cell, where training
has some.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from softsplit.points.readable import readable_counts, readable_cuts
from softsplit.support.arrays import FloatArray
from softsplit.variables.lookup import counted_edges
from softsplit.variables.variable import CATEGORY, Cells, Variable


@dataclass(frozen=True)
class CellColumn:
    """One variable of the training rows, cell by cell.

    Attributes
    ----------
    variable : Variable
    numbers : array of shape (n_rows,)
        Values, or positions of levels; what is missing is imputed.
    missing : array of bool
    codes : array of shape (n_rows,)
        The cell of each row; that of a missing value is ``n_cells``.
    n_cells : int
    edges : array of shape (n_cells - 1,)
        Of a number: where each cell but the first begins.
    cuts : array of bool, shape (n_cells,)
        Where a step may begin: of a number at readable cuts, of levels everywhere.
    grids : tuple of (start, width)
        Of a number: the counts that are tried.
    counts : array of shape (n_grids, n_cells)
        Full widths of each of these above its start, at the values of each cell.
    """

    variable: Variable
    numbers: FloatArray
    missing: NDArray[np.bool_]
    codes: NDArray[np.intp]
    n_cells: int
    edges: FloatArray
    cuts: NDArray[np.bool_]
    grids: tuple[tuple[float, float], ...]
    counts: NDArray[np.int64]

    @property
    def has_levels(self) -> bool:
        return self.variable.kind == CATEGORY

    @property
    def has_missing(self) -> bool:
        """Whether missing values have points of their own."""
        return self.variable.has_missing

    def sums(self, rows: FloatArray) -> FloatArray:
        """Return the sums of a number per row over the rows of each cell, (n_cells + 1,)."""
        sums: FloatArray = np.bincount(self.codes, rows, self.n_cells + 1).astype(float)
        return sums


def cells_of(variable: Variable, cells: Cells) -> CellColumn:
    """Cut the values of a variable into cells."""
    missing = cells.missing & variable.has_missing
    if variable.kind == CATEGORY:
        return _levels(variable, cells, missing)
    numbers = variable.imputed(cells)
    known = numbers[~missing]
    # 1. Readable cuts, and the edges of all counts.
    cuts = readable_cuts(known) if len(known) else []
    grids = readable_counts(known) if len(known) else []
    steps = [counted_edges(*grid) for grid in grids]
    edges = np.unique([*cuts, *chain.from_iterable(steps)])
    # 2. Cells between all edges, and how many full widths end below each.
    codes = np.where(missing, len(edges) + 1, np.searchsorted(edges, numbers, side="right"))
    counts = np.zeros((len(grids), len(edges) + 1), dtype=np.int64)
    for line, ends in zip(counts, steps, strict=True):
        line[1:] = np.searchsorted(ends, edges, side="right")
    begins = np.concatenate([[False], np.isin(edges, cuts)])
    starts = tuple((start, width) for start, width, _ in grids)
    return CellColumn(
        variable, numbers, missing, codes, len(edges) + 1, edges, begins, starts, counts
    )


def _levels(variable: Variable, cells: Cells, missing: NDArray[np.bool_]) -> CellColumn:
    """The cells of a category: its levels, and what is not listed."""
    numbers = variable.imputed(cells)
    n_cells = len(variable.levels) + int(variable.places_others)
    codes = np.where(missing, n_cells, numbers).astype(np.intp)
    none = np.zeros(0)
    return CellColumn(
        variable, numbers, missing, codes, n_cells, none, np.ones(n_cells, dtype=bool), (),
        np.zeros((0, n_cells), dtype=np.int64),
    )  # fmt: skip
