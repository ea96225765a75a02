"""What training asks of its rows, wherever they live.

A solver hardly ever needs the rows themselves: it needs sums over rows. With the splits theta (one
line of n_features weights and a threshold per branch), a table ``W[class, leaf]`` and the outer
function f of a loss,

    value        sum_i weight_i f(V_i),   V_i = sum_l P_il W[class(i), l]
    splits       its derivative by theta,                       (n_branches, n_features + 1)
    mass         sum of weight_i P_il over the rows of a class, (n_classes, n_leaves)
    table        its derivative by the table: the same with weight_i f'(V_i)

An engine answers such questions. ``compiled.py`` holds rows in memory, ``block.py`` a part of the
tree whose other part is fixed. Sums must be added in an order that does not depend on the number of
workers, so that the same question gets the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.gram import Metric
from softsplit.engines.samples import Samples
from softsplit.support.arrays import FloatArray


@dataclass(frozen=True)
class Sums:
    """Sums over rows at one tree; for the identity ``table`` is ``mass`` itself."""

    value: float
    splits: FloatArray
    mass: FloatArray
    table: FloatArray


class RowEngine(Protocol):
    """Rows, and the sums over them that training needs.

    Six facts, and five questions. An engine may have ``curvature`` besides, with the arguments of
    ``evaluate``: all second derivatives of the value by the splits, square, entries in the order of
    the splits' lines; Newton steps are then made. One whose rows are arrays in this process has
    them as ``samples``, and one that compiled descents can run on is ``InMemory`` (compiled.py).
    With ``of_columns(columns)``, the same rows with some of their columns, a sparse tree reads no
    others; ``rounding`` says how exact the value is, relative to it, where that is not 1e-12;
    ``quick`` that an evaluation takes less time than one over a large sample in this process;
    ``in_threads(n)``, the same rows whose passes n threads share, lets it use ``n_jobs``.
    """

    @property
    def n_rows(self) -> int:
        """Distinct rows."""

    @property
    def n_features(self) -> int:
        """Columns of a row."""

    @property
    def n_classes(self) -> int:
        """Classes that have rows."""

    @property
    def class_totals(self) -> FloatArray:
        """Sum of the weights of each class, (n_classes,)."""

    @property
    def mean_weight(self) -> float:
        """Mean weight of a distinct row."""

    @property
    def few(self) -> Samples:
        """A small number of rows of each class, in this process: enough to tell where it lies."""

    def evaluate(self, splits: FloatArray, table: FloatArray, outer: int, steepness: float) -> Sums:
        """The sums at the tree with these splits."""

    def metric(self) -> Metric:
        """The Gram matrix of the rows, inverted: how far a step in each direction leads."""

    def sample(self, limit: int | None = None) -> Samples:
        """About ``limit`` rows in this process, each class by its share; all that fit if None.

        Their weights add up to those of all rows, class by class.
        """

    def reweighed(self, seed: int, power: float) -> RowEngine:
        """The same rows with weights multiplied by exponential random numbers to that power."""

    def of_class(self, k: int) -> RowEngine:
        """The rows of one class alone."""


class SomeColumns(Protocol):
    """What is asked of rows with some of their columns."""

    @property
    def n_features(self) -> int:
        """Columns of a row."""

    def evaluate(self, splits: FloatArray, table: FloatArray, outer: int, steepness: float) -> Sums:
        """The sums at the tree with these splits."""

    def sample(self, limit: int | None = None) -> Samples:
        """About ``limit`` rows in this process."""


def with_columns(
    rows: RowEngine, columns: NDArray[np.intp]
) -> tuple[SomeColumns, NDArray[np.intp]]:
    """Rows that have these columns, and where they are in them.

    An engine may have ``of_columns(columns)``, the same rows with some of their columns; one that
    has not is asked with all of them.
    """
    of_columns = getattr(rows, "of_columns", None)
    if of_columns is None or len(columns) in (0, rows.n_features):
        return rows, columns
    return of_columns(columns), np.arange(len(columns))


class RowsElsewhere(ValueError):
    """Something needs the rows as arrays in this process, and they are not there."""


def samples_of(rows: RowEngine) -> Samples:
    """The rows as arrays of this process.

    Raises
    ------
    RowsElsewhere
        If the engine keeps them somewhere else.
    """
    found: Samples | None = getattr(rows, "samples", None)
    if found is None:
        raise RowsElsewhere(
            f"the rows of {type(rows).__name__} are not in the memory of this process, which this "
            "method needs; use solver='native'."
        )
    return found
