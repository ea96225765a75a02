"""Rows of a wide sparse matrix: a working set of columns, and sparse products for all others.

``SparseRows`` is an engine for a working set of columns: a dense block of them behind another
engine, on this machine or on a device, which computes the sums of base.py. Of all other columns it
knows sums by sparse products (``SparseTable``); no array has all rows times all columns. A working
set that grows makes a new engine (``with_columns``).

Scaled values of a sparse column are one number, what 0 becomes, plus a sparse rest:

    x_ij = base_j + rest_ij,    sum_i s_it x_ij = (rest' s)_jt + base_j sum_i s_it
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import RowEngine
from softsplit.support.arrays import FloatArray
from softsplit.tree.scaling import DEVIATIONS, SMALLEST_SPAN, Scaling, rank_curve


@dataclass(frozen=True)
class SparseColumns:
    """Columns as base + rest.

    Attributes
    ----------
    rest : sparse matrix (n_rows, n_columns)
    base : array (n_columns,)
    """

    rest: Any
    base: FloatArray

    @classmethod
    def plain(cls, X: Any) -> SparseColumns:
        """Columns as they are."""
        return cls(X, np.zeros(X.shape[1]))

    @classmethod
    def scaled(cls, kind: str, X: Any, weight: FloatArray) -> SparseColumns:
        """Columns in scaled units (tree/scaling.py); rows of weight zero do not count."""
        if kind == "identity":
            return cls.plain(X)
        if kind == "quantile":
            return cls._ranked(X, weight)
        counted = X[weight > 0]
        low = counted.min(axis=0).toarray().ravel()
        span = counted.max(axis=0).toarray().ravel() - low
        varies = span > SMALLEST_SPAN
        if kind == "standard":
            total = weight.sum()
            mean = X.T @ weight / total
            square = _squares(X).T @ weight / total
            deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
            low, span = mean - 0.5 * DEVIATIONS * deviation, DEVIATIONS * deviation
        inverse = np.zeros(len(span))
        np.divide(1.0, span, out=inverse, where=varies & (span > SMALLEST_SPAN))
        return cls(_with_data(X, X.data * inverse[X.indices]), -low * inverse)

    @classmethod
    def _ranked(cls, X: Any, weight: FloatArray) -> SparseColumns:
        columns, base = X.tocsc(copy=True), np.zeros(X.shape[1])
        total = weight.sum()
        for j in range(X.shape[1]):
            # 1. The stored values, and 0 with the weight of all other rows.
            span = slice(columns.indptr[j], columns.indptr[j + 1])
            values, of = columns.data[span], weight[columns.indices[span]]
            counted = np.append(values[of > 0], 0.0)
            distinct, place = np.unique(counted, return_inverse=True)
            rest = total - of.sum()
            held = np.bincount(place, np.append(of[of > 0], rest)).astype(float)
            if held[place[-1]] <= 0:  # no row is zero here
                distinct, held = np.delete(distinct, place[-1]), np.delete(held, place[-1])
            # 2. Their ranks; that of 0 is the base.
            curve = rank_curve(distinct, held)
            base[j] = np.interp(0.0, *curve)
            columns.data[span] = np.interp(values, *curve) - base[j]
        return cls(columns.tocsr(), base)

    @cached_property
    def squares(self) -> Any:
        """The squares of ``rest``."""
        return _squares(self.rest)

    def products(self, slopes: FloatArray) -> FloatArray:
        """Return sum_i s_it x_ij for ``slopes`` s (n_rows, n_branches): (n_columns, n_branches)."""
        return self.rest.T @ slopes + np.outer(self.base, slopes.sum(axis=0))


def _squares(X: Any) -> Any:
    return _with_data(X, X.data**2)


def _with_data(X: Any, data: FloatArray) -> Any:
    """Return the matrix with other numbers in the same places."""
    return type(X)((data, X.indices, X.indptr), shape=X.shape)


class Placement(Protocol):
    """Scaled columns behind an engine."""

    @property
    def scaling(self) -> Scaling:
        """The scaling of the columns."""

    @property
    def engine(self) -> RowEngine:
        """The engine of the scaled rows."""


@dataclass(frozen=True, eq=False)
class SparseTable:
    """All rows and columns of a sparse matrix.

    Attributes
    ----------
    X : sparse matrix (n_rows, n_columns) of compressed rows
    labels : array of int, shape (n_rows,)
    counts, weights : arrays (n_rows,)
        Weights by which columns are scaled, and those of the sums, with factors on groups.
    kind : str
        The scaling.
    groups : array of int, shape (n_columns,), optional
        The group of every column; columns of a group are in the working set together.
    place : callable
        Returns the ``Placement`` of some columns, in ascending order, as dense rows.
    """

    X: Any
    labels: NDArray[np.int64]
    counts: FloatArray
    weights: FloatArray
    kind: str
    groups: NDArray[np.intp] | None
    place: Callable[[NDArray[np.intp]], Placement]

    @property
    def n_columns(self) -> int:
        return int(self.X.shape[1])

    @cached_property
    def scaled(self) -> SparseColumns:
        """All columns in scaled units."""
        return SparseColumns.scaled(self.kind, self.X, self.counts)

    def rows(self, columns: NDArray[np.intp]) -> SparseRows:
        """Return the engine of a working set: ``columns`` with those of their groups."""
        columns = with_groups(columns, self.groups)
        return SparseRows(self, columns, self.place(columns))


def _of_block(name: str) -> Any:
    """Return a property of a working set that its block has."""
    return property(lambda rows: getattr(rows.block, name))


@dataclass(frozen=True, eq=False)
class SparseRows:
    """The engine of a working set: a dense block of ``columns``, with the table they are from.

    All sums are those of the engine of the block, whose optional members it has too.
    """

    table: SparseTable
    columns: NDArray[np.intp]
    placed: Placement

    @property
    def block(self) -> RowEngine:
        """The engine of the dense block."""
        return self.placed.engine

    @property
    def dense(self) -> FloatArray:
        """The working set in original units, rows in the order of the table."""
        return dense_block(self.table.X, self.columns)

    @property
    def groups(self) -> NDArray[np.intp] | None:
        """The groups of the working set, numbered anew."""
        return groups_among(self.table.groups, self.columns)

    def with_columns(self, columns: NDArray[np.intp]) -> SparseRows:
        """Return the engine with more columns in its working set."""
        wider = with_groups(np.union1d(self.columns, columns), self.table.groups)
        return self if len(wider) == len(self.columns) else self.table.rows(wider)

    def of_working_set(self, columns: NDArray[np.intp]) -> SparseRows:
        """Return the engine with these columns as its working set."""
        return self if np.array_equal(columns, self.columns) else self.table.rows(columns)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "placed":  # not there yet while it is unpickled
            raise AttributeError(name)
        return getattr(self.placed.engine, name)

    # As of RowEngine: written out for whoever asks the class.
    n_rows = _of_block("n_rows")
    n_features = _of_block("n_features")
    n_groups = _of_block("n_groups")
    group_totals = _of_block("group_totals")
    mean_weight = _of_block("mean_weight")
    group_samples = _of_block("group_samples")
    evaluate = _of_block("evaluate")
    metric = _of_block("metric")
    sample = _of_block("sample")
    reweighed = _of_block("reweighed")
    of_group = _of_block("of_group")


def dense_block(X: Any, columns: NDArray[np.intp]) -> FloatArray:
    """Return some columns of a sparse matrix as dense rows."""
    return np.ascontiguousarray(X[:, columns].toarray(), dtype=float)


def with_groups(columns: NDArray[np.intp], groups: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """Return ``columns`` with all others of their groups, in ascending order."""
    if groups is None:
        return np.unique(columns)
    return np.flatnonzero(np.isin(groups, groups[columns]))


def groups_among(
    groups: NDArray[np.intp] | None, columns: NDArray[np.intp]
) -> NDArray[np.intp] | None:
    """Return the groups of some columns, numbered anew."""
    return None if groups is None else np.unique(groups[columns], return_inverse=True)[1]
