"""Partial dependence: mean class probabilities over the rows with one or two columns set to values.

    f(v)    = 1/n sum_i P(class | row i with column a at v)
    f(u, v) = the same with columns a at u and b at v

as ``sklearn.inspection.partial_dependence`` by brute force, which calls ``predict_proba`` for each
point of the grid. Here rows are read once, and many points of the grid are answered in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from softsplit.reading.model import TreeModel
from softsplit.support.arrays import FloatArray


@dataclass(frozen=True)
class PartialDependenceOptions:
    """How a grid is made and answered."""

    ends: tuple[float, float] = (0.05, 0.95)
    """Quantiles between which values of a number are spread, as in scikit-learn."""

    cells: int = 4_000_000
    """Numbers of the rows that are asked in one call: 32 megabytes."""


OPTIONS = PartialDependenceOptions()


@dataclass(frozen=True)
class SetColumn:
    """A column of the table that is set to values.

    Attributes
    ----------
    places : array of int
        Its features of the tree.
    values : array of shape (n_values, n_places)
        These features at each value.
    """

    places: NDArray[np.intp]
    values: FloatArray


def mean_probabilities(
    model: TreeModel, rows: FloatArray, columns: Sequence[SetColumn]
) -> FloatArray:
    """Return the mean probability of each class, (n_classes, n_values of each column)."""
    used = np.flatnonzero(model.columns_in_use)
    shape = tuple(len(column.values) for column in columns)
    points = list(product(*map(range, shape)))
    at_once = max(1, OPTIONS.cells // max(rows.size, 1))
    found = np.empty((len(points), len(model.classes)))
    for begin in range(0, len(points), at_once):
        some = points[begin : begin + at_once]
        # A column of the array lies in one piece: those that are not in use are left at zero.
        block = np.zeros((rows.shape[1], len(some) * len(rows))).T
        for j in used:
            block[:, j] = np.tile(rows[:, j], len(some))
        for number, column in enumerate(columns):
            values = column.values[[point[number] for point in some]]
            for place, j in enumerate(column.places):
                block[:, j] = np.repeat(values[:, place], len(rows))
        proba = model.predict_proba(block)
        found[begin : begin + len(some)] = proba.reshape(len(some), len(rows), -1).mean(axis=1)
    return found.T.reshape(len(model.classes), *shape)


def spread_values(numbers: FloatArray, count: int) -> FloatArray:
    """Return values of a number to ask for: all of them if they are few, else even steps."""
    known = np.unique(numbers[~np.isnan(numbers)])
    if len(known) <= count:
        return known
    from scipy.stats.mstats import mquantiles  # as in scikit-learn

    low, high = mquantiles(numbers[~np.isnan(numbers)], OPTIONS.ends)
    return np.linspace(low, high, count)
