"""The training rows as the compiled pass wants them.

Rows are grouped by class, so that everything linear in the leaf probabilities is a small
table ``[class, leaf]`` and the pass needs no gather. Inside a class they are ordered by a
hash of their content, and equal rows are merged with their weights added. The order of the
rows in the caller's array, and whether a row is repeated or weighted, can then not change a
single bit of the result; and the first rows of a class are as good as a random draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.gram import Gram
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.support.row_budgets import ROWS

CHUNK = 16_384
"""Rows handled at a time where a copy of all of them would take too much memory."""


@dataclass(frozen=True)
class Samples:
    """Grouped, merged, weighted training rows.

    Attributes
    ----------
    features : array of shape (n_features, n_rows), C order
        One contiguous line per feature; in single precision only where they were to stay so.
    starts : int array of shape (n_classes + 1,)
        Rows ``starts[k] .. starts[k + 1] - 1`` belong to class ``k``.
    weights : array of shape (n_rows,)
        Total sample weight of each distinct row.
    class_totals : array of shape (n_classes,)
        Sum of the weights of each class.
    """

    features: FloatArray
    starts: NDArray[np.int64]
    weights: FloatArray
    class_totals: FloatArray

    @property
    def n_features(self) -> int:
        return int(self.features.shape[0])

    @property
    def n_rows(self) -> int:
        return int(self.features.shape[1])

    @property
    def n_classes(self) -> int:
        return len(self.starts) - 1

    @property
    def labels(self) -> NDArray[np.int64]:
        """Class index of every row, shape (n_rows,)."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.starts))

    @cached_property
    def class_means(self) -> FloatArray:
        """Weighted mean of each class, (n_classes, n_features)."""
        sums = np.add.reduceat(self.features * self.weights, self.starts[:-1], axis=1)
        return np.ascontiguousarray(sums.T / self.class_totals[:, None])

    @property
    def mean(self) -> FloatArray:
        """Weighted mean of every feature, (n_features,)."""
        shares = self.weights / self.weights.sum()
        if self.features.dtype == np.float64:
            mean: FloatArray = self.features @ shares
            return mean
        pieces = range(0, self.n_rows, CHUNK)
        return sum(self.features[:, i : i + CHUNK] @ shares[i : i + CHUNK] for i in pieces)

    @cached_property
    def gram(self) -> Gram:
        """The Gram matrix of the rows, which every descent on them needs."""
        return Gram(self.features, self.weights)

    @cached_property
    def few(self) -> Samples:
        """At most ROWS.class_centre rows of each class, the first ones."""
        if np.all(np.diff(self.starts) <= ROWS.class_centre):
            return self
        found = self.first(np.minimum(np.diff(self.starts), ROWS.class_centre))
        return replace(found, class_totals=np.add.reduceat(found.weights, found.starts[:-1]))

    def stratified(
        self, limit: int, smallest: int = 30, columns: NDArray[np.intp] | None = None
    ) -> Samples:
        """At most about ``limit`` rows, each class by its share but at least ``smallest`` rows.

        The first rows of a class are as good as random. Weights are scaled so that the class
        totals stay as they are. With ``columns``, they have no others.
        """
        counts = np.diff(self.starts)
        if self.n_rows <= limit:
            return self if columns is None else self.first(counts, columns)
        take = np.minimum(counts, np.maximum(smallest, counts * limit // self.n_rows))
        found = self.first(take, columns)
        totals = np.add.reduceat(found.weights, found.starts[:-1])
        return found.with_weights(found.weights * np.repeat(self.class_totals / totals, take))

    def first(self, counts: NDArray[np.int64], columns: NDArray[np.intp] | None = None) -> Samples:
        """The first so many rows of each class; with ``columns``, only these of them."""
        pairs = zip(self.starts[:-1], counts, strict=True)
        rows = np.concatenate([np.arange(low, low + size) for low, size in pairs])
        return self.part(rows, columns)

    def part(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None = None) -> Samples:
        """Chosen rows, in ascending order, in double precision; the class totals stay."""
        starts = np.searchsorted(rows, self.starts).astype(np.int64)
        chosen = self.features[:, rows] if columns is None else self.features[np.ix_(columns, rows)]
        features = np.ascontiguousarray(chosen, dtype=float)
        return Samples(features, starts, self.weights[rows], self.class_totals)

    def with_weights(self, weights: FloatArray) -> Samples:
        """The same rows with other weights; the class totals stay as they are."""
        return replace(self, weights=weights)

    def with_totals(self, totals: FloatArray) -> Samples:
        """The same rows with the weights of each class scaled to a total."""
        held = np.add.reduceat(self.weights, self.starts[:-1])
        if np.allclose(held, totals, rtol=1e-9):
            return self
        weights = self.weights * np.repeat(totals / held, np.diff(self.starts))
        return Samples(self.features, self.starts, weights, totals)

    def of_class(self, k: int) -> Samples:
        """The rows of class ``k``, without copies; no other class has any."""
        low, high = self.starts[k], self.starts[k + 1]
        return Samples(
            self.features[:, low:high],
            np.clip(self.starts - low, 0, high - low),
            self.weights[low:high],
            self.class_totals,
        )

    @classmethod
    def from_arrays(
        cls,
        X: NDArray[np.floating],
        y: NDArray[np.integer],
        n_classes: int,
        sample_weight: FloatArray | None = None,
        transform: Callable[[FloatArray], FloatArray] | None = None,
        stay_single: bool = False,
    ) -> Samples:
        """Group the rows of ``X`` by ``y`` (integers below ``n_classes``).

        Rows of zero weight are dropped: they are no different from absent rows. ``transform`` is
        applied to the rows as they are copied, so that no scaled copy of X is needed besides. The
        result is the same, to the bit, for numbers given in single or in double precision, unless
        rows of single precision that are more than ROWS.double_precision are to ``stay_single``.
        """
        single = np.asarray(X).dtype == np.float32
        values: NDArray[np.floating] = np.ascontiguousarray(
            X, dtype=np.float32 if single else np.float64
        )
        classes = np.asarray(y, dtype=np.int64)
        weight = (
            np.ones(len(classes)) if sample_weight is None else np.asarray(sample_weight, float)
        )
        if np.any(classes < 0) or np.any(classes >= n_classes):
            raise ValueError(f"class indices must lie between 0 and {n_classes - 1}.")
        if not np.all(weight >= 0):
            raise ValueError("sample weights must be numbers >= 0.")
        order = _canonical_order(values, classes, weight)
        first = _first_of_equal(values, classes, order)
        stay_single = stay_single and single and len(values) > ROWS.double_precision
        features = _copy_rows(values, order[first], transform, stay_single)
        labels = classes[order[first]]
        # An exact sum (integers add exactly in floats) makes weight 3 equal to three rows.
        merged = np.add.reduceat(weight[order], np.flatnonzero(first)) if len(order) else weight
        counts = np.bincount(labels, minlength=n_classes)
        if len(order) == 0 or np.any(counts == 0):
            missing = np.flatnonzero(counts == 0)
            raise ValueError(f"class indices {missing.tolist()} have no sample of positive weight.")
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        totals = np.add.reduceat(merged, starts[:-1])
        return cls(features, starts, merged, totals)


def first_rows(
    X: NDArray[np.floating], y: NDArray[np.integer], weight: FloatArray, limit: int
) -> NDArray[np.intp]:
    """Positions of about ``limit`` rows, the first of each class in canonical order, ascending.

    Each class by its share, but not less than ROWS.smallest_class rows of it.
    """
    order = _canonical_order(X, y, weight)
    counts = np.bincount(y[order])
    take = np.minimum(counts, np.maximum(ROWS.smallest_class, counts * limit // len(order)))
    begins = np.cumsum(counts) - counts
    pairs = zip(begins, take, strict=True)
    return np.sort(np.concatenate([order[low : low + size] for low, size in pairs]))


def _copy_rows(
    X: NDArray[np.floating],
    rows: NDArray[np.intp],
    transform: Callable[[FloatArray], FloatArray] | None,
    single: bool,
) -> FloatArray:
    """Chosen rows, transformed, one line per feature; copied in chunks."""
    features: Any = np.empty((X.shape[1], len(rows)), dtype=np.float32 if single else np.float64)
    for low in range(0, len(rows), CHUNK):
        block = X[rows[low : low + CHUNK]].astype(np.float64, copy=False)
        if transform is not None:
            block = transform(block)
        features[:, low : low + CHUNK] = block.T
    features += 0.0  # -0.0 becomes 0.0
    return features


def _canonical_order(
    X: NDArray[np.floating], y: NDArray[np.integer], weight: FloatArray
) -> NDArray[np.intp]:
    keep = np.flatnonzero(weight > 0)
    pieces = range(0, max(len(X), 1), CHUNK)
    keys = np.concatenate([_row_hashes(_fixed(X[low : low + CHUNK])) for low in pieces])[keep]
    # Equal rows are added up in the order of their weights: sums of fractions depend on it.
    return keep[np.lexsort((weight[keep], keys, y[keep]))]


def _first_of_equal(
    X: NDArray[np.floating], y: NDArray[np.integer], order: NDArray[np.intp]
) -> NDArray[np.bool_]:
    first = np.ones(len(order), dtype=bool)
    _mark_repeats(_fixed(X), _fixed(y), order, first)
    return first


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    """The array, not to be written: arrays of both kinds come here, and each would be compiled."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


@compiled
def _row_hashes(X):  # type: ignore[no-untyped-def]
    """64-bit hash of every row (multiply and xor-shift over the bits of its numbers)."""
    n_rows, n_features = X.shape
    hashes = np.empty(n_rows, dtype=np.uint64)
    cell = np.empty(1)
    bits = cell.view(np.uint64)
    for i in range(n_rows):
        state = np.uint64(0x9E3779B97F4A7C15)
        for j in range(n_features):
            cell[0] = X[i, j]
            if bits[0] == np.uint64(0x8000000000000000):
                bits[0] = np.uint64(0)  # -0.0 and 0.0 are the same number
            state = (state ^ bits[0]) * np.uint64(0xBF58476D1CE4E5B9)
            state ^= state >> np.uint64(29)
        hashes[i] = state
    return hashes


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
    """What engines know of rows that they have as ``samples``: facts that need no pass."""

    samples: Samples

    @property
    def n_rows(self) -> int:
        return self.samples.n_rows

    @property
    def n_classes(self) -> int:
        return self.samples.n_classes

    @property
    def class_totals(self) -> FloatArray:
        return self.samples.class_totals

    @cached_property
    def mean_weight(self) -> float:
        return float(self.samples.weights.mean())

    @property
    def few(self) -> Samples:
        return self.samples.few
