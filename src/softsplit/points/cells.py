"""The values of a variable in cells: all tables of points that are tried are constant on them.

A number has a cell between any two neighbours among its readable cuts and the edges of its counted
steps; a variable with levels has one for each. Missing values have the last cell, where training
has some.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from softsplit.points.readable import readable_counts, readable_cuts
from softsplit.support.arrays import FloatArray
from softsplit.variables.lookup import DIGITS, counted_edges
from softsplit.variables.variable import CATEGORY, Cells, Variable

# Cells of a category of many levels, of about as many rows each.
GROUPS = 8


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
    edges : array of shape (n_cells - 1,)
        Of a number: where each cell but the first begins.
    segments : array of shape (n_cells,)
        The range between readable cuts in which each cell lies; each level has its own.
    counts : array of shape (n_widths, n_cells)
        Of a number: full widths below each cell, for each width of counted steps.
    groups : array of int, optional
        Of a category that is coded by class shares: the cell of each level.
    """

    variable: Variable
    numbers: FloatArray
    missing: NDArray[np.bool_]
    codes: NDArray[np.intp]
    edges: FloatArray
    segments: NDArray[np.intp]
    counts: NDArray[np.int64]
    groups: NDArray[np.intp] | None = None

    @property
    def n_cells(self) -> int:
        """Number of cells but that of missing values."""
        return len(self.segments)

    @property
    def has_levels(self) -> bool:
        return self.variable.kind == CATEGORY

    @property
    def has_missing(self) -> bool:
        """Whether missing values have points of their own."""
        return self.variable.has_missing

    @cached_property
    def sizes(self) -> FloatArray:
        """Rows of each cell, (n_cells + 1,)."""
        return self.sums(np.ones(len(self.codes)))

    def sums(self, rows: FloatArray) -> FloatArray:
        """Return the sums of a number per row over the rows of each cell, (n_cells + 1,)."""
        return np.bincount(self.codes, rows, self.n_cells + 1).astype(float)

    def means(self, rows: FloatArray) -> FloatArray:
        """Return the means over the rows of each cell, 0 where there are none, (n_cells + 1,)."""
        return self.sums(rows) / np.maximum(self.sizes, 1.0)

    @cached_property
    def centres(self) -> FloatArray:
        """The mean number of the rows of each cell, (n_cells + 1,)."""
        return self.means(self.numbers)


def cells_of(variable: Variable, cells: Cells) -> CellColumn:
    """Cut the values of a variable into cells."""
    numbers, missing = known_numbers(variable, cells)
    if variable.kind == CATEGORY:
        groups, places = None, numbers.astype(np.intp)
        n_cells = len(variable.levels) + int(variable.places_others)
        if variable.shares:
            groups = _level_groups(variable, places, n_cells)
            places, n_cells = groups[places], int(groups.max()) + 1
        codes = np.where(missing, n_cells, places)
        return CellColumn(
            variable, numbers, missing, codes, np.zeros(0), np.arange(n_cells),
            np.zeros((0, n_cells), dtype=np.int64), groups,
        )  # fmt: skip
    ordered = np.sort(numbers[~missing])
    # 1. Cells between readable cuts and the edges of all counts.
    cuts = readable_cuts(ordered) if len(ordered) else []
    steps = [counted_edges(*c) for c in readable_counts(ordered)] if len(ordered) else []
    edges = np.array(sorted({*cuts, *chain.from_iterable(steps)}))
    codes = np.where(missing, len(edges) + 1, np.searchsorted(edges, numbers, side="right"))
    # 2. Ranges between cuts, and how many full widths end below each cell.
    begins = np.append(-np.inf, edges)
    segments = np.searchsorted(np.array(cuts), begins, side="right")
    counts = np.zeros((len(steps), len(begins)), dtype=np.int64)
    for line, ends in zip(counts, steps, strict=True):
        line[:] = np.searchsorted(ends, begins, side="right")
    return CellColumn(variable, numbers, missing, codes, edges, segments, counts)


def known_numbers(variable: Variable, cells: Cells) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return numbers or positions of levels, imputed where they are missing, and where they are."""
    numbers = variable.imputed(cells)
    if variable.kind != CATEGORY:
        numbers = _without_errors(numbers)
    return numbers, cells.missing & variable.has_missing


def _level_groups(variable: Variable, places: NDArray[np.intp], n_levels: int) -> NDArray[np.intp]:
    """The cell of each level of a category that is coded by class shares.

    The shares of training rows are those of other rows, and so tell levels apart no better than
    cells of levels with alike shares do; points of each level would be fitted to single rows.
    """
    shares = np.array(variable.shares)[:n_levels]
    centred = shares - shares.mean(axis=0)
    scores = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    edges = np.unique(np.quantile(scores[places], np.arange(1, GROUPS) / GROUPS))
    return np.unique(np.searchsorted(edges, scores, side="right"), return_inverse=True)[1]


def _without_errors(numbers: FloatArray) -> FloatArray:
    """Return numbers without the errors of a scaling that was undone: 3 for 3.0000000000000004."""
    largest = float(np.max(np.abs(numbers), initial=0.0))
    if not 1e-99 < largest < 1e99:
        return numbers
    rounded: FloatArray = np.round(numbers, DIGITS - 1 - int(np.floor(np.log10(largest))))
    return rounded + 0.0
