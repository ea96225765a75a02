"""Rows for score cards: cells of a table, drawn or moved rows, and their coded columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softsplit.fitted.model import TreeModel
from softsplit.fitted.summary import NUMBER as FRACTIONS
from softsplit.support.arrays import FloatArray
from softsplit.variables import Cells, CodedRows


@dataclass(frozen=True)
class CardRowsOptions:
    """Rows that points are searched on."""

    shaken: int = 4_000
    """Of fewer given rows, copies with values moved a little are added up to about so many: the
    class of the tree is known everywhere, and a card that is right for few rows alone is not for
    new ones."""

    copies: int = 20
    """But no more copies of a row than this."""

    few_values: int = 12
    """Numbers with at most so many values are not moved, only swapped."""

    jitter: float = 0.03
    """Standard deviation of moves, as a share of the ranks of a number."""

    swapped: float = 0.05
    """Share of cells that are replaced by those of another row."""

    drawn: int = 2_000
    """Rows that are drawn over the training ranges where none are given."""

    missing: float = 0.1
    """Share of missing values among them, of variables that had some in training."""


OPTIONS = CardRowsOptions()


def cells_of(model: TreeModel, X: Any) -> tuple[Cells, ...]:
    """The cells of a table, or of rows that are coded already, for all variables."""
    if isinstance(X, CodedRows) and X.cells:
        return X.cells
    X = X.X if isinstance(X, CodedRows) else X
    coding = model.table_coding
    coded = isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == len(model.feature_names)
    if model.coding is not None and coded and np.issubdtype(X.dtype, np.number):
        columns = np.split(np.arange(X.shape[1]), np.flatnonzero(np.diff(coding.homes)) + 1)
        used = set(model.selected_variables.tolist())
        return tuple(
            variable.decoded(np.asarray(X[:, own], dtype=float)) if i in used else _nothing(len(X))
            for i, (variable, own) in enumerate(zip(coding.variables, columns, strict=True))
        )
    if model.coding is None:  # names count where both sides have them
        known = set(map(str, getattr(X, "columns", ()))) & set(model.feature_names)
        coding = replace(coding, named=bool(known))
    if not hasattr(X, "shape") and not hasattr(X, "columns"):
        X = np.asarray(X)
    return coding.code(X, model.selected_variables.tolist()).cells


def _nothing(n_rows: int) -> Cells:
    return Cells(np.full(n_rows, np.nan), np.ones(n_rows, dtype=bool), np.zeros(n_rows, dtype=bool))


def drawn_rows(model: TreeModel) -> tuple[Cells, ...]:
    """Rows drawn evenly over the ranges and levels of training."""
    rng, n = np.random.default_rng(0), OPTIONS.drawn
    coding = model.table_coding
    cells = []
    for i, variable in enumerate(coding.variables):
        first = int(coding.columns_of(i)[0])
        none = np.zeros(n, dtype=bool)
        if variable.levels:
            numbers = rng.integers(0, len(variable.levels), n).astype(float)
        else:
            low, high = float(model.summary.low[first]), float(model.summary.high[first])
            numbers = low + (high - low) * rng.random(n)
            if model.summary.kinds[first] != FRACTIONS:
                numbers = np.rint(numbers)
        missing = rng.random(n) < OPTIONS.missing if variable.has_missing else none
        cells.append(Cells(np.where(missing, np.nan, numbers), missing, none))
    return tuple(cells)


def shaken_rows(model: TreeModel, cells: Sequence[Cells]) -> tuple[Cells, ...]:
    """The rows, and copies of them whose values are moved a little."""
    rng, n = np.random.default_rng(0), len(cells[0].numbers)
    copies = min(OPTIONS.shaken // max(n, 1), OPTIONS.copies)
    if copies <= 1:
        return tuple(cells)
    used = set(model.selected_variables.tolist())
    shaken = []
    for i, column in enumerate(cells):
        rows = np.tile(np.arange(n), copies)
        if i not in used:
            shaken.append(column.part(rows))
            continue
        swapped = rng.random(len(rows)) < OPTIONS.swapped
        swapped[:n] = False
        moved = column.part(np.where(swapped, rng.integers(n, size=len(rows)), rows))
        values = np.sort(column.numbers[~np.isnan(column.numbers)])
        many = len(np.unique(values)) > OPTIONS.few_values
        if many and not model.table_coding.variables[i].levels:
            ranks = np.searchsorted(values, moved.numbers) + rng.random(len(rows))
            ranks = ranks + OPTIONS.jitter * len(values) * rng.normal(size=len(rows))
            ranks = np.clip(ranks, 0, len(values) - 1)
            shifted = np.interp(ranks, np.arange(len(values)), values)
            if whole_numbers(model, i):
                shifted = np.rint(shifted)
            shifted[:n] = column.numbers
            moved = replace(moved, numbers=np.where(np.isnan(moved.numbers), np.nan, shifted))
        shaken.append(moved)
    return tuple(shaken)


def coded_rows(model: TreeModel, cells: Sequence[Cells]) -> FloatArray:
    """The matrix that the tree takes; columns that it does not use are 0."""
    coding = model.table_coding
    X = np.zeros((len(cells[0].numbers), len(model.feature_names)))
    for i in model.selected_variables:
        X[:, coding.columns_of(int(i))] = coding.variables[int(i)].coded(cells[int(i)])
    return X


def whole_numbers(model: TreeModel, home: int) -> bool:
    """Whether all training values of a variable are whole numbers."""
    first = int(model.table_coding.columns_of(home)[0])
    return bool(model.summary.kinds[first] != FRACTIONS)
