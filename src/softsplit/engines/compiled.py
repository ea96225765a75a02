"""The engines of rows in memory: ``CompiledRows``, the default, and ``ThreadedRows``.

``CompiledRows`` computes the sums of base.py, a chunk of rows at a time. Compiled descents do not
call ``evaluate``: they take the arrays (``Passes``) and call the compiled pass themselves, since on
a small problem a call from Python costs more than the pass.

``ThreadedRows`` shares the passes over many rows among threads (row_sums.py). Compiled descents
hold arrays of branches x rows and run on one thread; on many rows a descent in Python over these
sums is faster and needs no memory beyond the rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import Sums
from softsplit.engines.gram import Metric
from softsplit.engines.outer import IDENTITY
from softsplit.engines.row_sums import row_sums
from softsplit.engines.samples import OfSamples, Samples, TargetRows
from softsplit.engines.target_pass import target_pass
from softsplit.engines.tree_pass import tree_pass
from softsplit.support.arrays import FloatArray
from softsplit.support.row_budgets import ROWS as BUDGETS
from softsplit.tree.routing import TILE

CHUNK = 256
"""Rows summed at a time in a Hessian; a compile-time constant of curvature.py."""


@dataclass(frozen=True)
class PassOptions:
    """Memory of passes over rows in memory."""

    chunk_rows: int = 16_384
    """Rows that ``evaluate`` processes at a time, to avoid an array of branches x all rows."""

    kept_gates: int = 65_536
    """Largest rows x branches for which gates of all rows are kept for a second pass: 1 MB."""


OPTIONS = PassOptions()

NOTHING = np.zeros(0)
NO_ROWS = np.zeros((0, 0))
NO_GATES = np.zeros((0, 0, 0))


class TreeRows(NamedTuple):
    """The arguments of the compiled pass over the whole tree."""

    features: FloatArray  # (n_features, n_rows)
    starts: NDArray[np.int64]  # (n_groups + 1,)
    weights: FloatArray  # (n_rows,)
    group_totals: FloatArray  # (n_groups,)
    parents: NDArray[np.int64]  # (n_branches,): the branch above, or -1
    on_left: NDArray[np.bool_]  # (n_branches,): on which side of it


class Passes(NamedTuple):
    """Arguments, results and work arrays of the compiled passes over rows in memory."""

    rows: Any  # TreeRows, or BlockRows of block_pass.py
    table: FloatArray  # (n_groups, n_leaves)
    leaf_values: FloatArray  # (n_groups, n_leaves): the table of the rates
    steepness: float
    outer: int
    scores: FloatArray  # (n_branches, n_rows)
    slopes: FloatArray  # (n_branches, n_rows): d value / d score
    rate_slopes: FloatArray  # the same for the rates; (0, 0) under the identity
    outer_curvature: FloatArray  # (n_rows,): see tree_pass; (0,) under the identity
    mass: FloatArray  # (n_groups, n_leaves): d value / d table
    correct_mass: FloatArray  # (n_groups,): correctly classified mass
    price: FloatArray  # (n_groups,): price of a unit of that mass
    priced: FloatArray  # (n_groups, n_leaves): the table less these prices
    gates: FloatArray  # (2, n_branches, n_rows or TILE): see pass_tiles
    room: FloatArray  # (2 n_branches + 1, TILE): the same
    chosen: NDArray[np.uint64]  # (CHUNK,) or fewer: see curvature.py, like the next two
    lines: FloatArray  # (2, n_features + 1, CHUNK)
    chunk: FloatArray  # (4, CHUNK)


class InMemory(ABC):
    """The further interface of engines on which compiled descents run: their arrays."""

    branches: NDArray[np.int64] | None
    """The free branches; None if all."""

    @abstractmethod
    def passes(self, n_branches: int, n_leaves: int, outer: int, nonlinear: bool = False) -> Passes:
        """Return arrays for passes; if ``nonlinear``, also those that rates and Newton steps under
        another outer function than the identity need."""

    @abstractmethod
    def with_table(
        self, passes: Passes, table: FloatArray, leaf_values: FloatArray, steepness: float
    ) -> Passes:
        """Return ``passes`` with this table and, for the rates, these leaf values.

        It may be ``passes`` itself, with its arrays overwritten.
        """

    @abstractmethod
    def mass(self, passes: Passes) -> FloatArray:
        """Return d value / d table at the last evaluation, shape (n_groups, n_leaves)."""


def room_for_curvature(n_rows: int, n_features: int) -> dict[str, Any]:
    """Return the last three fields of ``Passes``."""
    size = min(n_rows, CHUNK)
    return {
        "chosen": np.empty(size, dtype=np.uint64),
        "lines": np.empty((2, n_features + 1, size)),
        "chunk": np.empty((4, size)),
    }


@cache
def tree_shape(n_branches: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the parent of each branch of a whole tree, and whether it is the left child."""
    branches = np.arange(n_branches, dtype=np.int64)
    return (branches + 1) // 2 - 1, branches % 2 == 1


@dataclass(frozen=True)
class CompiledRows(OfSamples, InMemory):
    """Rows in the memory of this process."""

    samples: Samples
    options: PassOptions = OPTIONS
    branches: None = field(default=None, init=False, repr=False)

    @classmethod
    def from_arrays(cls, *arrays: Any, **options: Any) -> CompiledRows:
        """Return the rows that ``Samples.from_arrays`` makes of these arguments."""
        return cls(Samples.from_arrays(*arrays, **options))

    @property
    def n_features(self) -> int:
        return self.samples.n_features

    def metric(self) -> Metric:
        return self.samples.gram.metric

    def sample(self, limit: int | None = None) -> Samples:
        return self.samples if limit is None else self.samples.stratified(limit)

    def sample_in_place(self, limit: int) -> Samples:
        """Return the same sample without a copy of its features."""
        return self.samples.drawn(limit)

    def of_columns(self, columns: NDArray[np.intp]) -> ThreadedRows:
        """Return the same rows with a subset of their columns, not copied."""
        return ThreadedRows(self.samples, columns=columns)

    def in_threads(self, threads: int) -> ThreadedRows:
        """Return the same rows with passes shared by ``threads`` threads."""
        return ThreadedRows(self.samples, threads)

    def evaluate(self, splits: FloatArray, table: FloatArray, outer: int, steepness: float) -> Sums:
        if self.n_rows > BUDGETS.row_sums:
            return ThreadedRows(self.samples).evaluate(splits, table, outer, steepness)
        table = np.ascontiguousarray(table)
        if self.samples.distinct is not None:
            return self._target_sums(self.samples.distinct, splits, table, outer, steepness)
        sums = self._pass(splits, table, outer, steepness)
        if outer == IDENTITY:
            return sums
        plain = self._pass(splits, table, IDENTITY, steepness)
        return Sums(sums.value, sums.splits, plain.mass, sums.mass)

    def _pass(self, splits: FloatArray, table: FloatArray, outer: int, steepness: float) -> Sums:
        """Return the sums by two matrix products with the features and one pass, by chunks."""
        samples, n_features = self.samples, self.n_features
        value, mass = 0.0, np.zeros_like(table)
        # Fortran order gives the same bits as a product with an array (n_features, n_branches).
        scaled = np.asfortranarray(splits[:, :-1]) / n_features
        slopes = np.zeros((n_features + 1, len(splits)))
        chunk = self.options.chunk_rows
        for begin in range(0, samples.n_rows, chunk):
            # 1. Scores of a chunk.
            rows, starts = slice(begin, begin + chunk), samples.starts
            features = samples.features[:, rows]
            if samples.n_rows > chunk:
                starts = np.clip(starts - begin, 0, features.shape[1])
            # matmul takes lines of some rows as they are, where dot would copy them
            scores, part = np.matmul(scaled, features), np.empty_like(table)
            scores -= splits[:, -1:]
            # 2. The pass, which writes slopes over the scores, and the derivative by the splits.
            value += tree_pass(
                scores, scores, starts, samples.weights[rows], table, float(steepness), outer, part,
                NOTHING,
            )  # fmt: skip
            mass += part
            slopes[:-1] += np.matmul(features, scores.T) / n_features
            slopes[-1] -= scores.sum(axis=1)
        return Sums(float(value), slopes.T, mass, mass)

    def _target_sums(
        self, rows: TargetRows, splits: FloatArray, table: FloatArray, outer: int, steepness: float
    ) -> Sums:
        """Return the sums of rows with probabilities of groups as targets, by chunks."""
        value, masses = 0.0, np.zeros((2, *table.shape))
        slopes, chunk = np.zeros_like(splits), self.options.chunk_rows
        for begin in range(0, rows.features.shape[1], chunk):
            features = rows.features[:, begin : begin + chunk]
            targets = np.ascontiguousarray(rows.targets[:, begin : begin + chunk])
            scores = splits[:, :-1] @ features / self.n_features - splits[:, -1:]
            by_score, part = np.empty_like(scores), np.empty_like(table)
            if outer != IDENTITY:
                target_pass(scores, by_score, targets, table, float(steepness), IDENTITY, part)
                masses[0] += part
            value += target_pass(scores, by_score, targets, table, float(steepness), outer, part)
            masses[1] += part
            slopes[:, :-1] += by_score @ features.T / self.n_features
            slopes[:, -1] -= by_score.sum(axis=1)
        mass = masses[1] if outer == IDENTITY else masses[0]
        return Sums(float(value), slopes, mass, masses[1])

    def passes(self, n_branches: int, n_leaves: int, outer: int, nonlinear: bool = False) -> Passes:
        samples = self.samples
        each = (n_branches, self.n_rows)
        shape = (self.n_groups, n_leaves)
        kept = n_branches * self.n_rows <= self.options.kept_gates
        return Passes(
            rows=TreeRows(
                np.asarray(samples.features), samples.starts, samples.weights, samples.group_totals,
                *tree_shape(n_branches),
            ),
            table=np.zeros(shape),
            leaf_values=np.zeros(shape),
            steepness=1.0,
            outer=outer,
            scores=np.empty(each),
            slopes=np.empty(each),
            rate_slopes=np.zeros(each) if nonlinear else NO_ROWS,  # zeros: no price is subtracted
            outer_curvature=np.empty(self.n_rows) if nonlinear else NOTHING,
            mass=np.empty(shape),
            correct_mass=np.empty(self.n_groups),
            price=np.zeros(self.n_groups),
            priced=np.empty(shape),
            gates=np.empty((2, n_branches, self.n_rows if kept else TILE)),
            room=np.empty((2 * n_branches + 1, TILE)),
            **room_for_curvature(self.n_rows, self.n_features),
        )  # fmt: skip

    def with_table(
        self, passes: Passes, table: FloatArray, leaf_values: FloatArray, steepness: float
    ) -> Passes:
        passes.table[...] = table
        passes.leaf_values[...] = leaf_values
        rows = passes.rows
        if rows.weights is not self.samples.weights:
            rows = rows._replace(weights=self.samples.weights)
        elif passes.steepness == steepness:
            return passes
        return passes._replace(rows=rows, steepness=steepness)

    def mass(self, passes: Passes) -> FloatArray:
        return passes.mass


@dataclass(frozen=True)
class ThreadedRows(OfSamples):
    """Rows in memory with passes shared by threads; ``columns`` selects a subset, not copied."""

    samples: Samples
    threads: int = 1
    columns: NDArray[np.intp] | None = None

    @property
    def n_features(self) -> int:
        return self.samples.n_features if self.columns is None else len(self.columns)

    def evaluate(self, splits: FloatArray, table: FloatArray, outer: int, steepness: float) -> Sums:
        columns = np.arange(self.samples.n_features) if self.columns is None else self.columns
        return row_sums(self.samples, columns, splits, table, outer, steepness, self.threads)

    def metric(self) -> Metric:
        return self.samples.gram.metric

    def sample(self, limit: int | None = None) -> Samples:
        if limit is None and self.columns is None:
            return self.samples
        return self.samples.stratified(limit or self.n_rows, columns=self.columns)

    def sample_in_place(self, limit: int) -> Samples:
        """Return the same sample without a copy of its features, if it has all columns."""
        return self.samples.drawn(limit) if self.columns is None else self.sample(limit)

    def of_columns(self, columns: NDArray[np.intp]) -> ThreadedRows:
        """Return the same rows with a subset of their columns."""
        return replace(self, columns=columns)

    def in_threads(self, threads: int) -> ThreadedRows:
        """Return the same rows with passes shared by ``threads`` threads."""
        return replace(self, threads=threads)
