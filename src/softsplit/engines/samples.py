"""Training rows in canonical form, as the compiled pass takes them.

Rows are grouped by target, so that sums linear in the leaf probabilities need a small table
``[group, leaf]`` and no gather. Within a group they are sorted by a hash of their content, and
equal rows are merged, their weights added. So the bits of a result depend neither on the order of
the caller's rows nor on whether a row is repeated or weighted, and the first rows of a group are as
good as a random sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, Self, cast
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.gram import Gram
from softsplit.engines.hinged import HingedLines
from softsplit.support.arrays import FloatArray
from softsplit.support.bent_rows import by_pieces, fixed, hashes
from softsplit.support.compiling import compiled
from softsplit.support.hinged_table import CHUNK_CELLS, HingedTable
from softsplit.support.row_budgets import ROWS
from softsplit.tree.scaling import LinearScaling

BLOCK_LINES = 16
"""Lines whose hinges are computed at a time. OpenBLAS multiplies four lines at a time, so that
blocks of 16 have the bits of one product."""

CHUNK = 16_384
"""Rows processed at a time where a copy of all rows would take too much memory."""


@dataclass(frozen=True)
class TargetRows:
    """Rows with their weight in every group, each row once.

    Attributes
    ----------
    features : array of shape (n_features, n_rows)
    targets : array of shape (n_groups, n_rows)
        Weight of a row times its probability of the group.
    """

    features: FloatArray
    targets: FloatArray


class HeldSamples(WeakValueDictionary[int, "Samples"]):
    """Samples by their sizes, for as long as somebody has them; copies begin anew."""

    def __reduce__(self) -> tuple[Any, ...]:
        return HeldSamples, ()


@dataclass(frozen=True)
class Samples:
    """Grouped, merged, weighted training rows.

    Attributes
    ----------
    features : array of shape (n_features, n_rows), C order
        One contiguous line per feature; in single precision only if ``stay_single`` was given.
        Of many rows that bend they may be ``HingedLines``, which are read like such an array.
    starts : int array of shape (n_groups + 1,)
        Rows ``starts[k] .. starts[k + 1] - 1`` belong to group ``k``.
    weights : array of shape (n_rows,)
        Total sample weight of each distinct row.
    group_totals : array of shape (n_groups,)
        Sum of the weights of each group.
    per_row : float
        Mean number of entries of a caller's row: more than one where rows have probabilities of
        groups as targets, and stand in each group with that part of their weight.
    """

    features: FloatArray
    starts: NDArray[np.int64]
    weights: FloatArray
    group_totals: FloatArray
    per_row: float = 1.0

    @property
    def n_features(self) -> int:
        return int(self.features.shape[0])

    @property
    def n_rows(self) -> int:
        return int(self.features.shape[1])

    @property
    def n_groups(self) -> int:
        return len(self.starts) - 1

    @property
    def labels(self) -> NDArray[np.int64]:
        """Group of each row, shape (n_rows,)."""
        return np.repeat(np.arange(self.n_groups), np.diff(self.starts))

    @cached_property
    def group_means(self) -> FloatArray:
        """Weighted mean of each group, shape (n_groups, n_features)."""
        sums = np.add.reduceat(self.features * self.weights, self.starts[:-1], axis=1)
        return np.ascontiguousarray(sums.T / self.group_totals[:, None])

    @property
    def mean(self) -> FloatArray:
        """Weighted mean of each feature, shape (n_features,)."""
        shares = self.weights / self.weights.sum()
        if isinstance(self.features, HingedLines):
            # a block of one line would be multiplied by another routine, with other last bits
            ends = [*range(BLOCK_LINES, self.n_features - 1, BLOCK_LINES), self.n_features]
            blocks = zip([0, *ends], ends, strict=False)
            return np.concatenate([self._means(slice(low, high), shares) for low, high in blocks])
        return self._means(slice(None), shares)

    def _means(self, lines: slice, shares: FloatArray) -> FloatArray:
        features = self.features[lines]
        if features.dtype == np.float64:
            return features @ shares
        pieces = range(0, self.n_rows, CHUNK)
        parts = [features[:, i : i + CHUNK] @ shares[i : i + CHUNK] for i in pieces]
        return np.asarray(sum(parts))

    @cached_property
    def gram(self) -> Gram:
        """The Gram matrix of the rows, the metric of descents."""
        return Gram(self.features, self.weights)

    @cached_property
    def group_samples(self) -> Samples:
        """The first ROWS.group_centre rows of each group, or all of them if they are fewer."""
        if np.all(np.diff(self.starts) <= ROWS.group_centre):
            return self
        some = self.first(np.minimum(np.diff(self.starts), ROWS.group_centre))
        return replace(some, group_totals=np.add.reduceat(some.weights, some.starts[:-1]))

    @cached_property
    def distinct(self) -> TargetRows | None:
        """Each row once, where targets are probabilities of groups; None where they are not.

        Rows with the same likeliest group and the same groups of positive probability stand side
        by side, so that a pass over some of them meets few groups.
        """
        if self.per_row <= 1.0:
            return None
        # 1. Equal rows by their hashes.
        pieces = [slice(low, low + CHUNK) for low in range(0, self.n_rows, CHUNK)]
        keys = np.concatenate([hashes(self.features[:, some].T) for some in pieces])
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        same = (
            np.array_equal(self.features[:, some], self.features[:, first[place[some]]])
            for some in pieces
        )
        if not all(same):  # two rows of one hash, which is not to be expected
            return None
        # 2. Their weight in each group.
        ends = zip(self.starts, self.starts[1:], strict=False)
        targets = np.array(
            [np.bincount(place[a:b], self.weights[a:b], len(first)) for a, b in ends]
        )
        # 3. Side by side by the groups in which they have weight.
        order = np.lexsort((*(targets > 0), targets.argmax(axis=0)))
        parts = self.features[:, first[order]], targets[:, order]
        return TargetRows(*map(np.ascontiguousarray, parts))

    def lines(self, columns: slice | NDArray[np.intp]) -> FloatArray:
        """Return the features of some columns, (n_columns, n_rows); they may be a view."""
        return self.features[columns]

    def lines_in_use(self, used: NDArray[np.bool_]) -> FloatArray:
        """Return the features of all columns; those that are not ``used`` may be zero."""
        lines: Any = self.features
        return cast(Any, lines.only(used) if isinstance(lines, HingedLines) else lines)

    def drawn(self, limit: int) -> Samples:
        """Return the sample of ``stratified`` without a copy of its features."""
        if self.n_rows <= limit or self.per_row > 1.0:
            return self.stratified(limit)
        counts = np.diff(self.starts)
        rows = _first_of_each(self.starts[:-1], stratified_counts(counts, limit))
        drawn = DrawnRows(self, rows, self.weights[rows], self.group_totals)
        return drawn.with_totals(self.group_totals)

    def stratified(self, limit: int, columns: NDArray[np.intp] | None = None) -> Samples:
        """Return the first rows of each group, about ``limit`` of all (``stratified_counts``).

        They are as good as random. Weights are scaled to the same group totals. With ``columns``,
        the sample has these columns only. A sample of all columns that somebody still has is not
        copied once more.
        """
        counts = np.diff(self.starts)
        if self.n_rows <= limit:
            return self if columns is None else self.first(counts, columns)
        sample = self._held.get(limit) if columns is None else None
        if sample is None:
            rows = self.first(stratified_counts(counts, limit), columns)
            sample = rows.with_totals(self.group_totals)
            if columns is None:
                self._held[limit] = sample
        return sample

    @cached_property
    def _held(self) -> HeldSamples:
        return HeldSamples()

    def first(self, counts: NDArray[np.int64], columns: NDArray[np.intp] | None = None) -> Samples:
        """Return the first ``counts[k]`` rows of each group k, of all or of some ``columns``."""
        return self.part(_first_of_each(self.starts[:-1], counts), columns)

    def part(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None = None) -> Samples:
        """Return ``rows``, which ascend, in double precision; ``group_totals`` is unchanged."""
        starts = np.searchsorted(rows, self.starts).astype(np.int64)
        chosen = self.features[:, rows] if columns is None else self.features[np.ix_(columns, rows)]
        features = np.ascontiguousarray(chosen, dtype=float)
        return Samples(features, starts, self.weights[rows], self.group_totals, self.per_row)

    def with_weights(self, weights: FloatArray) -> Samples:
        """Return the same rows with other weights; ``group_totals`` is unchanged."""
        return self.weighed(weights, self.group_totals)

    def with_totals(self, totals: FloatArray) -> Samples:
        """Return the same rows with the weights of each group scaled to its entry of ``totals``."""
        held = np.add.reduceat(self.weights, self.starts[:-1])
        if np.allclose(held, totals, rtol=1e-9):
            return self
        weights = self.weights * np.repeat(totals / held, np.diff(self.starts))
        return self.weighed(weights, totals)

    def weighed(self, weights: FloatArray, totals: FloatArray) -> Samples:
        """Return the same rows with other weights, whose totals by group are given."""
        return replace(self, weights=weights, group_totals=totals)

    def of_group(self, k: int) -> Samples:
        """Return the rows of group ``k`` as views; the other groups are empty."""
        return self.between(int(self.starts[k]), int(self.starts[k + 1]))

    def between(self, low: int, high: int) -> Samples:
        """Return rows ``low`` .. ``high`` - 1 as views; ``group_totals`` is unchanged."""
        lines = self.features
        return Samples(
            lines.between(low, high) if isinstance(lines, HingedLines) else lines[:, low:high],
            np.clip(self.starts - low, 0, high - low),
            self.weights[low:high],
            self.group_totals,
            self.per_row,
        )

    @classmethod
    def from_arrays(
        cls,
        X: NDArray[np.floating],
        y: NDArray[np.integer],
        n_groups: int,
        sample_weight: FloatArray | None = None,
        transform: Callable[[FloatArray], FloatArray] | None = None,
        stay_single: bool = False,
    ) -> Samples:
        """Group the rows of ``X`` by ``y`` (integers below ``n_groups``).

        Rows of zero weight are dropped. ``transform`` is applied to rows as they are copied, so
        that no scaled copy of X is needed. The bits of the result are the same for numbers given in
        single and in double precision, unless ``stay_single`` is true and more than
        ROWS.double_precision rows are given in single precision.
        """
        single = np.asarray(X).dtype == np.float32
        values: NDArray[np.floating] = np.ascontiguousarray(
            X, dtype=np.float32 if single else np.float64
        )
        groups = np.asarray(y, dtype=np.int64)
        weight = np.ones(len(groups)) if sample_weight is None else np.asarray(sample_weight, float)
        if np.any(groups < 0) or np.any(groups >= n_groups):
            raise ValueError(f"groups must lie between 0 and {n_groups - 1}.")
        if not np.all(weight >= 0):
            raise ValueError("sample weights must be numbers >= 0.")
        stay_single = stay_single and single and len(values) > ROWS.double_precision

        def copied(rows: NDArray[np.intp]) -> FloatArray:
            return _copy_rows(values, rows, transform, stay_single)

        return cls._grouped(values, values, groups, n_groups, weight, copied)

    @classmethod
    def from_hinged(
        cls,
        table: HingedTable,
        y: NDArray[np.int64],
        n_groups: int,
        weight: FloatArray,
        scaling: LinearScaling,
    ) -> Samples:
        """Group the rows of a table that bends: as ``from_arrays`` of its array, without hinges.

        Rows that are given in single precision stay so.
        """

        def copied(rows: NDArray[np.intp]) -> Any:
            lines = HingedLines.of(table, rows, scaling)
            return np.asarray(lines) if ROWS.holds_hinges(len(rows), len(lines)) else lines

        return cls._grouped(table, table.values, y, n_groups, weight, copied)

    @classmethod
    def _grouped(
        cls,
        X: NDArray[np.floating] | HingedTable,
        values: NDArray[np.floating],
        groups: NDArray[np.int64],
        n_groups: int,
        weight: FloatArray,
        copied: Callable[[NDArray[np.intp]], FloatArray],
    ) -> Samples:
        """Group rows in the order of ``X``; those of equal ``values`` are merged, the first of
        them ``copied``."""
        # 1. Order by group and hash; the first of equal rows stands for all of them.
        order = _canonical_order(X, groups, weight)
        first = _first_of_equal(values, groups, order)
        features = copied(order[first])
        labels = groups[order[first]]
        # 2. Their weights. Integers add exactly in floats, so that weight 3 equals three rows.
        merged = np.add.reduceat(weight[order], np.flatnonzero(first)) if len(order) else weight
        counts = np.bincount(labels, minlength=n_groups)
        if len(order) == 0 or np.any(counts == 0):
            missing = np.flatnonzero(counts == 0)
            raise ValueError(f"groups {missing.tolist()} have no sample of positive weight.")
        # 3. Where each group begins.
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        totals = np.add.reduceat(merged, starts[:-1])
        return cls(features, starts, merged, totals)


class DrawnRows(Samples):
    """A sample whose features are those of its source: columns are copied on access.

    Attributes
    ----------
    source : Samples
    rows : int array of shape (n_rows,)
        Positions in ``source``, ascending.
    """

    source: Samples
    rows: NDArray[np.intp]

    def __init__(
        self, source: Samples, rows: NDArray[np.intp], weights: FloatArray, totals: FloatArray
    ) -> None:
        starts = np.searchsorted(rows, source.starts).astype(np.int64)
        vars(self).update(
            source=source, rows=rows, starts=starts, weights=weights, group_totals=totals
        )

    def weighed(self, weights: FloatArray, totals: FloatArray) -> DrawnRows:
        """Return the same rows with other weights, whose totals by group are given."""
        return DrawnRows(self.source, self.rows, weights, totals)

    @cached_property
    def features(self) -> FloatArray:
        """All of them, copied."""
        return self.lines(slice(None))

    @property
    def n_features(self) -> int:
        return self.source.n_features

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def lines(self, columns: slice | NDArray[np.intp]) -> FloatArray:
        """Return the features of some columns, (n_columns, n_rows), in double precision."""
        chosen = np.arange(self.n_features)[columns]
        lines = self.source.features[np.ix_(chosen, self.rows)]
        return np.ascontiguousarray(lines, dtype=float)

    def lines_in_use(self, used: NDArray[np.bool_]) -> FloatArray:
        """As of ``Samples``."""
        held = self.source.features
        if isinstance(held, HingedLines):
            return cast(Any, held.at(self.rows).only(used))
        return self.lines(slice(None))


def centred(samples: Samples, unit: float, columns: NDArray[np.intp] | None = None) -> FloatArray:
    """Return unit (x - 1/2) of all or some columns, (n_columns, n_rows); copied in chunks."""
    if columns is None:
        columns = np.arange(samples.n_features)
    lines = np.empty((len(columns), samples.n_rows))
    step = CHUNK_CELLS // max(samples.n_rows, 1) + 1
    for low in range(0, len(columns), step):
        some = slice(low, low + step)
        np.subtract(samples.lines(columns[some]), 0.5, out=lines[some], dtype=float)
    lines *= unit
    return lines


def stratified_counts(
    counts: NDArray[np.int64], limit: int, smallest: int = 30
) -> NDArray[np.int64]:
    """Return how many rows of each group a sample of about ``limit`` has: its share of them, but
    at least ``smallest``, if there are so many."""
    share = np.maximum(smallest, counts * limit // max(int(counts.sum()), 1))
    return np.asarray(np.minimum(counts, share), dtype=np.int64)


def _first_of_each(begins: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return ``counts[k]`` positions from ``begins[k]`` on, group after group."""
    pairs = zip(begins, counts, strict=True)
    return np.concatenate([np.arange(low, low + size) for low, size in pairs])


def first_rows(
    X: NDArray[np.floating] | HingedTable,
    y: NDArray[np.integer],
    weight: FloatArray,
    limit: int,
) -> NDArray[np.intp]:
    """Return the ascending positions of a stratified sample of about ``limit`` rows.

    It consists of the first rows of each group in canonical order, at least ROWS.smallest_group.
    """
    order = _canonical_order(X, y, weight)
    counts = np.bincount(y[order])
    take = stratified_counts(counts, limit, ROWS.smallest_group)
    return np.sort(order[_first_of_each(np.cumsum(counts) - counts, take)])


def _copy_rows(
    X: NDArray[np.floating],
    rows: NDArray[np.intp],
    transform: Callable[[FloatArray], FloatArray] | None,
    single: bool,
) -> FloatArray:
    """Return transformed rows, one line per feature; copied in chunks."""
    features: Any = np.empty((X.shape[1], len(rows)), dtype=np.float32 if single else np.float64)
    step = min(CHUNK, CHUNK_CELLS // max(X.shape[1], 1) + 1)
    for low in range(0, len(rows), step):
        block = X[rows[low : low + step]].astype(np.float64, copy=False)
        if transform is not None:
            block = transform(block)
        features[:, low : low + step] = block.T
    features += 0.0  # -0.0 becomes 0.0
    return features


def _canonical_order(
    X: NDArray[np.floating] | HingedTable, y: NDArray[np.integer], weight: FloatArray
) -> NDArray[np.intp]:
    keep = np.flatnonzero(weight > 0)
    keys = hashes(X)[keep]
    # Weights of equal rows are added in ascending order: the bits of the sum depend on the order.
    return keep[np.lexsort((weight[keep], keys, y[keep]))]


def _first_of_equal(
    X: NDArray[np.floating], y: NDArray[np.integer], order: NDArray[np.intp]
) -> NDArray[np.bool_]:
    first = np.ones(len(order), dtype=bool)
    _mark_repeats(fixed(X), fixed(y), order, first)
    return first


@compiled
def _mark_repeats(X, y, order, first):  # type: ignore[no-untyped-def]
    """Clear ``first[r]`` where the r-th row of the order equals the row before it."""
    for r in range(1, len(order)):
        i, previous = order[r], order[r - 1]
        if y[i] != y[previous]:
            continue
        same = True
        for j in range(X.shape[1]):
            if X[i, j] != X[previous, j]:
                same = False
                break
        if same:
            first[r] = False


class OfSamples:
    """Mixin of engines that have ``samples``: the members that need no pass."""

    samples: Samples

    def with_samples(self, samples: Samples) -> Self:
        """Return the engine of other samples of the same shape."""
        return cast(Self, replace(cast(Any, self), samples=samples))

    def reweighed(self, seed: int, power: float) -> Self:
        shares = np.random.default_rng(seed).standard_exponential(self.n_rows)
        return self.with_samples(self.samples.with_weights(self.samples.weights * shares**power))

    def of_group(self, k: int) -> Self:
        return self.with_samples(self.samples.of_group(k))

    def summed(self, work: Callable[[Samples], FloatArray]) -> FloatArray:
        """The sum of ``work`` over pieces of the rows, which threads share, in their order."""
        samples = self.samples
        sums = {0: np.zeros(0)}

        def add(some: slice) -> None:
            sums[some.start] = work(samples.between(some.start, some.stop))

        by_pieces(samples.n_rows, add)
        return reduce(np.add, [sums[begin] for begin in sorted(sums)])

    @property
    def n_rows(self) -> int:
        return self.samples.n_rows

    @property
    def n_groups(self) -> int:
        return self.samples.n_groups

    @property
    def group_totals(self) -> FloatArray:
        return self.samples.group_totals

    @cached_property
    def mean_weight(self) -> float:
        return float(self.samples.weights.mean()) * self.samples.per_row

    @property
    def group_samples(self) -> Samples:
        return self.samples.group_samples
