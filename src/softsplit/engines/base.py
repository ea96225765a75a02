"""The protocol of row engines: the sums over training rows that solvers need.

Solvers need sums over rows rather than the rows themselves. With the splits theta (n_features
weights and a threshold for each branch), a table ``W[group, leaf]`` and the outer function f of a
loss, an engine returns

    value        sum_i weight_i f(V_i),   V_i = sum_l P_il W[group(i), l]
    splits       d value / d theta,                             (n_branches, n_features + 1)
    mass         sum of weight_i P_il over the rows of a group, (n_groups, n_leaves)
    table        d value / d W: the same with weight_i f'(V_i), (n_groups, n_leaves)

``compiled.py`` is the engine of rows in memory, ``block.py`` that of a restricted problem, in which
a part of the tree is fixed. An engine must add its sums in an order that does not depend on the
number of workers, so that the same call returns the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.gram import Metric
from softsplit.engines.samples import Samples
from softsplit.support.arrays import FloatArray


@dataclass(frozen=True)
class Sums:
    """The sums of the module at one tree; under the identity ``table`` equals ``mass``."""

    value: float
    splits: FloatArray
    mass: FloatArray
    table: FloatArray


class RowEngine(Protocol):
    """Training rows and the sums over them.

    Six properties and five methods are required. Optional members:

    curvature(splits, table, outer, steepness)
        The Hessian of the value in the splits, square, entries in the order of the lines of
        ``splits``; solvers then make Newton steps.
    samples
        The rows as arrays, if they are in this process. An engine that compiled descents can run on
        is also an ``InMemory`` (compiled.py).
    of_columns(columns)
        The same rows with a subset of their columns, so that a sparse tree reads no others.
    rounding
        Relative accuracy of the value, if it is not 1e-12.
    quick
        True if an evaluation takes less time than one over a large sample in this process.
    in_threads(n)
        The same rows with passes shared by n threads, for ``n_jobs``.
    summed(work)
        The sum of ``work(samples)`` over all rows, which come as ``Samples`` of some of them at a
        time, where they are; ``work`` can be pickled. See ``summed``.
    """

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""

    @property
    def n_features(self) -> int:
        """Number of columns."""

    @property
    def n_groups(self) -> int:
        """Number of target groups: a row has one target of finitely many."""

    @property
    def group_totals(self) -> FloatArray:
        """Sum of the weights of each group, (n_groups,)."""

    @property
    def mean_weight(self) -> float:
        """Mean weight of a distinct row."""

    @property
    def group_samples(self) -> Samples:
        """A small sample of each group in this process, from which their centres are computed."""

    def evaluate(self, splits: FloatArray, table: FloatArray, outer: int, steepness: float) -> Sums:
        """Return the sums at the tree with these splits."""

    def metric(self) -> Metric:
        """Return the inverse of the Gram matrix of the rows, which preconditions descents."""

    def sample(self, limit: int | None = None) -> Samples:
        """Return a stratified sample of about ``limit`` rows in this process; None: all that fit.

        The weights of each group add up to its total weight over all rows.
        """

    def reweighed(self, seed: int, power: float) -> RowEngine:
        """Return the same rows, weights multiplied by exponential variates to the ``power``."""

    def of_group(self, k: int) -> RowEngine:
        """Return the rows of group ``k`` alone."""


class SomeColumns(Protocol):
    """The interface of rows with a subset of their columns."""

    @property
    def n_features(self) -> int:
        """Number of columns."""

    def evaluate(self, splits: FloatArray, table: FloatArray, outer: int, steepness: float) -> Sums:
        """Return the sums at the tree with these splits."""

    def sample(self, limit: int | None = None) -> Samples:
        """Return about ``limit`` rows in this process."""


def with_columns(
    rows: RowEngine, columns: NDArray[np.intp]
) -> tuple[SomeColumns, NDArray[np.intp]]:
    """Return rows with at least ``columns``, and the positions of ``columns`` in them.

    An engine without ``of_columns`` is returned itself, with all of its columns.
    """
    of_columns = getattr(rows, "of_columns", None)
    if of_columns is None or len(columns) in (0, rows.n_features):
        return rows, columns
    return of_columns(columns), np.arange(len(columns))


def drawn_from(rows: RowEngine, limit: int) -> Samples:
    """Return a sample as of ``sample``; of rows in this process without a copy of its features."""
    draw: Callable[[int], Samples] = getattr(rows, "sample_in_place", rows.sample)
    return draw(limit)


def columns_drawn_from(
    rows: RowEngine, columns: NDArray[np.intp], limit: int
) -> tuple[Samples, NDArray[np.intp]]:
    """Return a sample with at least ``columns``, and their positions in it.

    Of rows in this process nothing is copied; elsewhere only these columns travel.
    """
    if hasattr(rows, "sample_in_place"):
        return drawn_from(rows, limit), columns
    some, places = with_columns(rows, columns)
    return some.sample(limit), places


def summed(rows: RowEngine, work: Callable[[Samples], FloatArray]) -> FloatArray:
    """Return the sum of ``work`` over all rows; over a large sample where an engine has no way."""
    own: Callable[..., FloatArray] | None = getattr(rows, "summed", None)
    return work(rows.sample()) if own is None else own(work)


class RowsElsewhere(ValueError):
    """Raised if a method needs the rows as arrays in this process and the engine has none."""


def samples_of(rows: RowEngine) -> Samples:
    """Return the rows as arrays of this process.

    Raises
    ------
    RowsElsewhere
        If the engine keeps its rows elsewhere.
    """
    samples: Samples | None = getattr(rows, "samples", None)
    if samples is None:
        raise RowsElsewhere(
            f"the rows of {type(rows).__name__} are not in the memory of this process, which this "
            "method needs; use solver='native'."
        )
    return samples
