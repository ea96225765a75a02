"""A summary of the training table, small enough for a model file: how its columns are distributed.

A number or date has up to ``bins`` - 1 edges e_1 < e_2 < ..., values of the training rows at even
quantiles, and the rows in ]-inf, e_1], ]e_1, e_2], ..., ]e_m, inf[. A variable with levels has the
rows of each level, and last of all others. Both have the rows without a value. Rows are counted as
weights are, in units of the mean weight where that is below 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.variables import Cells, Coding, Shared, Variable
from softsplit.variables.variable import BOOLEAN, CATEGORY

BINS = 10
"""Of a number: ten tell a shift, a spread and a tail apart, and take a line of a file."""

MOST_VARIABLES = 1000
"""Variables that have a summary; of a wider table those that the tree uses come first."""


@dataclass(frozen=True)
class ColumnProfile:
    """The distribution of one variable in the training rows.

    Attributes
    ----------
    counts : array of shape (n_bins,) or (n_levels + 1,)
        Rows in each bin, or of each level and of all others.
    missing : float
        Rows without a value.
    edges : array of shape (n_bins - 1,)
        Of a number; empty for a variable with levels.
    """

    counts: FloatArray
    missing: float = 0.0
    edges: FloatArray | None = None

    @property
    def missing_share(self) -> float:
        """Share of the rows without a value."""
        return self.missing / max(float(self.counts.sum()) + self.missing, 1e-300)

    @classmethod
    def learned(cls, variable: Variable, cells: Cells, rows: FloatArray) -> ColumnProfile:
        """The profile of training cells, of which ``rows`` (n_rows,) says how many each counts."""
        edges = None
        if not has_levels(variable):
            known = ~cells.missing
            edges = _edges(cells.numbers[known], rows[known])
        counts, missing = counted_cells(variable, cells, rows, edges)
        return cls(counts, missing, edges)


@dataclass(frozen=True)
class TableProfile:
    """The distribution of the training rows over columns, classes and leaves.

    Attributes
    ----------
    columns : tuple of ColumnProfile or None
        Of each variable; None where there is none.
    classes : array of shape (n_classes,)
        Training rows of each class.
    leaves : array of shape (n_leaves,), optional
        Training rows that arrive at each leaf. None: the tree was changed after its training.
    """

    columns: tuple[ColumnProfile | None, ...]
    classes: FloatArray
    leaves: FloatArray | None = None

    @property
    def rows(self) -> float:
        return float(self.classes.sum())

    def of_another_tree(self) -> TableProfile:
        """The same rows, of which it is not known where they arrive."""
        return replace(self, leaves=None)

    def with_classes(self, order: Sequence[int]) -> TableProfile:
        """The same rows with classes in another order."""
        return replace(self, classes=self.classes[list(order)])

    @classmethod
    def of(
        cls,
        coding: Coding,
        used: NDArray[np.intp],
        X: FloatArray,
        shared: Sequence[Shared],
        rows: FloatArray,
        classes: FloatArray,
        leaves: FloatArray,
    ) -> TableProfile:
        """The profile of training rows.

        Parameters
        ----------
        coding : Coding
        used : array of int
            Variables that the tree looks at.
        X : array of shape (n_rows, n_features)
            Coded rows of positive weight.
        shared : sequence of Shared
            Categories that are coded by class shares.
        rows : array of shape (n_rows,)
            How many rows each counts.
        classes : array of shape (n_classes,)
        leaves : array of shape (n_leaves,)
        """
        n = len(coding.variables)
        asked = sorted(range(n), key=lambda i: i not in used)[:MOST_VARIABLES]
        places = {levels.first: levels.places for levels in shared}
        columns: list[ColumnProfile | None] = [None] * n
        for i in asked:
            columns_of = coding.columns_of(i)
            if coding.variables[i].kind != CATEGORY:  # hinges say nothing more
                columns_of = columns_of[[0, -1]]
            own = X[:, columns_of]
            cells = _cells(coding.variables[i], own, places.get(coding.firsts[i]))
            if cells is not None:
                columns[i] = ColumnProfile.learned(coding.variables[i], cells, rows)
        return cls(tuple(columns), classes, leaves)


def has_levels(variable: Variable) -> bool:
    """Whether the values of a variable are counted one by one."""
    return bool(variable.levels) or variable.kind == BOOLEAN


def n_cells(variable: Variable, edges: FloatArray | None) -> int:
    """Bins of a number, or levels and one cell for all others."""
    if edges is not None:
        return len(edges) + 1
    return (2 if variable.kind == BOOLEAN else len(variable.levels)) + 1


def counted_cells(
    variable: Variable,
    cells: Cells,
    rows: FloatArray | None = None,
    edges: FloatArray | None = None,
) -> tuple[FloatArray, float]:
    """Rows in each bin or of each level, and rows without a value."""
    rows = np.ones(len(cells.numbers)) if rows is None else rows
    known, n = ~cells.missing, n_cells(variable, edges)
    if edges is not None:
        places = np.searchsorted(edges, cells.numbers[known], side="left")
    else:
        places = np.where(cells.unlisted, n - 1, np.nan_to_num(cells.numbers))[known].astype(int)
    return np.bincount(places, rows[known], n).astype(float), float(rows[cells.missing].sum())


def _edges(values: FloatArray, rows: FloatArray) -> FloatArray:
    """Distinct training values at even quantiles, the largest of all left out."""
    if not len(values):
        return np.zeros(0)
    if np.all(rows == 1.0):
        values, reached = np.sort(values), np.arange(1.0, len(values) + 1.0)
    else:
        order = np.argsort(values, kind="stable")
        values, reached = values[order], np.cumsum(rows[order])
    levels = reached[-1] * np.arange(1, BINS) / BINS
    at = np.searchsorted(reached, levels - 1e-9 * reached[-1])
    edges = np.unique(values[at].astype(float) + 0.0)
    return edges[edges < values[-1]]


def _cells(variable: Variable, coded: FloatArray, places: NDArray[np.intp] | None) -> Cells | None:
    """The cells that coded training rows were made of; ``places`` are levels coded by shares."""
    none = np.zeros(len(coded), dtype=bool)
    missing = coded[:, -1] == 1.0 if variable.has_missing else none
    if variable.kind != CATEGORY:
        return Cells(coded[:, 0], missing, none)
    if variable.shares:
        if places is None:
            return None
        return Cells(np.where(places < 0, np.nan, places), missing, (places < 0) & ~missing)
    indicators = coded[:, : len(variable.shown_levels)]
    levels = np.argmax(indicators, axis=1) + (0 if variable.whole else 1)
    seen = np.any(indicators == 1.0, axis=1)
    other = coded[:, len(variable.shown_levels)] == 1.0 if variable.other else none
    if not variable.whole:
        levels = np.where(seen, levels, 0)
        seen = ~other
    return Cells(np.where(seen, levels, np.nan), missing, ~seen & ~missing)
