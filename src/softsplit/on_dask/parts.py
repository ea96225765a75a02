"""A part of a table in a file of the machine that reads it, and sums over its rows.

A table that is larger than the memory of all machines lies in parts. Each part is read once: its
rows are grouped by class and put in canonical order (``engines/samples.py``), and written to a
file, one line per feature, in the precision that they came in:

    features (n_features, n_rows)    weights (n_rows,), if they are not all 1

Every pass reads PIECE rows at a time, and only the columns that a tree uses. They are scaled on the
way: what a worker holds in memory is a few megabytes, whatever the size of its parts, and the
operating system keeps as much of the files in memory as there is room for. Files are read, not
mapped: mapped pages would count as memory of the worker, which Dask ends when it has too much.

``Moments`` are what is known of a table without its rows: classes, weights, ranges, means and
deviations. Each part gives its own, and two add up to those of both. For a class with weight w,
mean m and sum of squared deviations s, in one part and in another,

    w = w1 + w2      m = m1 + (m2 - m1) w2 / w      s = s1 + s2 + (m2 - m1)^2 w1 w2 / w

(Chan, Golub and LeVeque), which loses no digits where means are large beside deviations. The
classes of a table, with their weights, means and squares, add up to those of all rows in the same
way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import Sums
from softsplit.engines.row_sums import PIECE, row_sums
from softsplit.engines.samples import Samples
from softsplit.support.arrays import FloatArray
from softsplit.tree.scaling import DEVIATIONS, SMALLEST_SPAN, LinearScaling, Scaling

# Weight, means and squares of a class.
Moment = tuple[float, FloatArray, FloatArray]


@dataclass(frozen=True)
class Moments:
    """Of rows that are grouped by class.

    Attributes
    ----------
    classes : array of shape (n_groups,)
    counts : array of int, shape (n_groups,)
        Rows, equal ones of a part counted once.
    totals : array of shape (n_groups,)
        Sums of weights.
    low, high : arrays of shape (n_features,)
    whole : array of bool, shape (n_features,)
        Whether all values are integers.
    means, squares : arrays of shape (n_groups, n_features)
    """

    classes: NDArray[Any]
    counts: NDArray[np.int64]
    totals: FloatArray
    low: FloatArray
    high: FloatArray
    whole: NDArray[np.bool_]
    means: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, samples: Samples, classes: NDArray[Any]) -> Moments:
        """Those of the rows of a part, every class of which has rows."""
        means, squares = np.empty((2, len(classes), samples.n_features))
        whole = np.array([bool(np.all(line == np.rint(line))) for line in samples.features])
        for k in range(len(classes)):
            one = samples.of_group(k)
            shares = one.weights / one.weights.sum()
            means[k] = one.features @ shares
            for j, line in enumerate(one.features):  # no copy of all of them
                squares[k, j] = one.weights @ (line - means[k, j]) ** 2
        return cls(
            classes, np.diff(samples.starts), samples.group_totals,
            samples.features.min(axis=1), samples.features.max(axis=1), whole, means, squares,
        )  # fmt: skip

    @classmethod
    def added(cls, parts: Sequence[Moments]) -> Moments:
        """Those of several parts together, in this order."""
        classes = np.concatenate([part.classes for part in parts])
        every, labels = np.unique(classes, return_inverse=True)
        stacked = cls(
            classes,
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.totals for part in parts]),
            np.min([part.low for part in parts], axis=0),
            np.max([part.high for part in parts], axis=0),
            np.all([part.whole for part in parts], axis=0),
            np.concatenate([part.means for part in parts]),
            np.concatenate([part.squares for part in parts]),
        )
        return stacked.joined(labels, every)

    def joined(self, labels: NDArray[np.intp], classes: NDArray[Any]) -> Moments:
        """Those of the same rows by ``classes``, of which ``labels`` are those of these ones."""
        counts = np.bincount(labels, self.counts).astype(np.int64)
        totals, shape = np.empty(len(classes)), (len(classes), len(self.low))
        means, squares = np.empty(shape), np.empty(shape)
        for k in range(len(classes)):
            own = np.flatnonzero(labels == k)
            each = zip(self.totals[own], self.means[own], self.squares[own], strict=True)
            totals[k], means[k], squares[k] = reduce(_together, each)
        return replace(
            self, classes=classes, counts=counts, totals=totals, means=means, squares=squares
        )

    def mean(self, factors: FloatArray | None = None) -> FloatArray:
        """Mean of each feature, with factors on the weights of the classes."""
        weights = self.totals if factors is None else self.totals * factors
        return np.asarray(weights @ self.means / weights.sum())

    @property
    def deviations(self) -> FloatArray:
        """Standard deviation of each feature."""
        each = zip(self.totals, self.means, self.squares, strict=True)
        total, _, squares = reduce(_together, each)
        return np.sqrt(squares / total)

    def minmax(self) -> LinearScaling:
        """As ``LinearScaling.minmax`` of all rows."""
        return LinearScaling.between(self.low, self.high)

    def standard(self) -> LinearScaling:
        """As ``LinearScaling.standard`` of all rows, but for the last digits."""
        varies = np.isfinite(self.minmax().span)
        deviations = np.where(varies, self.deviations, 0.0)
        low = np.where(varies, self.mean() - 0.5 * DEVIATIONS * deviations, self.low)
        span = DEVIATIONS * deviations
        return LinearScaling(low, np.where(span > SMALLEST_SPAN, span, np.inf), "standard")


def _together(one: Moment, two: Moment) -> Moment:
    """The formulas above."""
    (w1, m1, s1), (w2, m2, s2) = one, two
    w, apart = w1 + w2, m2 - m1
    return w, m1 + apart * (w2 / w), s1 + s2 + apart**2 * (w1 * (w2 / w))


@dataclass(frozen=True)
class Part:
    """Where the rows of a part are, and what they are.

    Attributes
    ----------
    number : int
        Its place in the table.
    home : str
        Name of the worker that has the file.
    path : str
    n_rows, n_features : int
    kind : str
        "f4" or "f8".
    classes : array of shape (n_groups of the part,)
        Labels of its rows, in ascending order; under requirements on rates the numbers of their
        cells (cells.py), which are classes that are smaller.
    starts : array of int, shape (n_groups of the part + 1,)
        As of ``Samples``.
    weighted : bool
        Whether the file has weights.
    """

    number: int
    home: str
    path: str
    n_rows: int
    n_features: int
    kind: str
    classes: NDArray[Any]
    starts: NDArray[np.int64]
    weighted: bool

    @classmethod
    def write(
        cls,
        samples: Samples,
        classes: NDArray[Any],
        kind: str,
        number: int,
        home: str,
        folder: Path,
    ) -> Part:
        """Write the rows to a new file; it has its name when it is complete."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{number}.rows"
        weighted = bool(np.any(samples.weights != 1.0))
        with open(f"{path}.new", "wb") as file:
            for line in samples.features:
                line.astype(kind).tofile(file)
            if weighted:
                samples.weights.tofile(file)
        os.replace(f"{path}.new", path)
        shape = samples.n_rows, samples.n_features
        return cls(number, home, str(path), *shape, kind, classes, samples.starts, weighted)

    @property
    def there(self) -> bool:
        """Whether the file is on this machine, all of it."""
        try:
            return os.path.getsize(self.path) == self._offset(self.n_features, 0) + (
                8 * self.n_rows if self.weighted else 0
            )
        except OSError:
            return False

    def _offset(self, column: int, row: int) -> int:
        return (column * self.n_rows + row) * np.dtype(self.kind).itemsize

    def read(
        self, rows: slice, columns: NDArray[np.intp] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Features (n_columns, n_rows) and weights of some rows in a row."""
        begin, count = rows.start, min(rows.stop, self.n_rows) - rows.start
        chosen = range(self.n_features) if columns is None else columns.tolist()
        weights = np.ones(count)
        with open(self.path, "rb") as file:
            lines = []
            for column in chosen:
                file.seek(self._offset(column, begin))
                lines.append(np.fromfile(file, self.kind, count))
            if self.weighted:
                file.seek(self._offset(self.n_features, 0) + 8 * begin)
                weights = np.fromfile(file, float, count)
        features = np.reshape(lines, (len(lines), count))
        return features.astype(np.float64, copy=False), weights


@dataclass(frozen=True)
class Reading:
    """How rows are read from their files, the same for all parts.

    Attributes
    ----------
    classes : array of shape (n_groups,)
        Those of the whole table.
    scaling : Scaling
        Of the columns that are read.
    columns : array of int, optional
        Those columns; all if None.
    factors : array of shape (n_groups,), optional
        Factors on the weights of each class.
    drawn : (seed, power), optional
        Weights are multiplied by exponential random numbers to that power.
    joined : array of int, shape (n_groups of the files,), optional
        Where the parts are grouped by cells, the class of each, which ascends: cells of a class are
        read as that class, and ``factors`` are of these.
    """

    classes: NDArray[Any]
    scaling: Scaling
    columns: NDArray[np.intp] | None = None
    factors: FloatArray | None = None
    drawn: tuple[int, float] | None = None
    joined: NDArray[np.intp] | None = None

    @property
    def n_groups(self) -> int:
        """Classes as which rows are read."""
        return len(self.classes) if self.joined is None else int(self.joined[-1]) + 1

    def starts(self, part: Part) -> NDArray[np.int64]:
        """Where the classes of the table begin among the rows of a part."""
        counts = np.zeros(self.n_groups, dtype=np.int64)
        at = np.searchsorted(self.classes, part.classes)
        np.add.at(counts, at if self.joined is None else self.joined[at], np.diff(part.starts))
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def pieces(self, part: Part) -> Iterator[Samples]:
        """The rows of a part in scaled units, PIECE at a time."""
        # 1. Factors on the weights of all rows of the part, whatever the pieces.
        starts = self.starts(part)
        shares: FloatArray | None = None
        if self.drawn is not None:
            seed, power = self.drawn
            shares = np.random.default_rng([seed, part.number]).standard_exponential(part.n_rows)
            shares **= power
        # 2. Piece by piece: read, weighed, scaled.
        for begin in range(0, part.n_rows, PIECE):
            rows = slice(begin, begin + PIECE)
            features, weights = part.read(rows, self.columns)
            here = np.clip(starts - begin, 0, len(weights))
            if self.factors is not None:
                weights = weights * np.repeat(self.factors, np.diff(here))
            if shares is not None:
                weights = weights * shares[rows]
            yield Samples(self.scaled(features), here, weights, np.zeros(self.n_groups))

    def scaled(self, features: FloatArray) -> FloatArray:
        """Features (n_columns, n_rows) in scaled units."""
        scaled: FloatArray = np.ascontiguousarray(self.scaling.transform(features.T).T)
        scaled += 0.0  # -0.0 becomes 0.0
        return scaled

    def of_columns(self, columns: NDArray[np.intp]) -> Reading:
        """The same with some of the columns that are read now."""
        kept = columns if self.columns is None else self.columns[columns]
        return replace(self, columns=kept, scaling=self.scaling.of_columns(columns))


# --- questions to a part --------------------------------------------------------------------------


def part_sums(
    part: Part,
    reading: Reading,
    splits: FloatArray,
    table: FloatArray,
    outer: int,
    steepness: float,
) -> Sums:
    """``evaluate`` of base.py over the rows of a part."""
    columns = np.arange(splits.shape[1] - 1)
    return added(
        row_sums(piece, columns, splits, table, outer, steepness, 1)
        for piece in reading.pieces(part)
    )


def added(answers: Iterable[Sums]) -> Sums:
    """Sums of sums, in the order in which they come."""

    def plus(one: Sums, two: Sums) -> Sums:
        return Sums(
            one.value + two.value,
            one.splits + two.splits,
            one.mass + two.mass,
            one.table + two.table,
        )

    return reduce(plus, answers)


def part_summed(part: Part, reading: Reading, work: Callable[[Samples], FloatArray]) -> FloatArray:
    """``summed`` of base.py over the rows of a part."""
    return reduce(np.add, (work(piece) for piece in reading.pieces(part)))


def part_gram(part: Part, reading: Reading) -> FloatArray:
    """G of gram.py over the rows of a part."""
    total: FloatArray | float = 0.0
    for piece in reading.pieces(part):
        moves = np.vstack([piece.features / piece.n_features, np.full(piece.n_rows, -1.0)])
        total = total + (moves * piece.weights) @ moves.T
    return np.asarray(total)


def part_below(part: Part, knots: Sequence[FloatArray]) -> list[tuple[FloatArray, FloatArray]]:
    """For each column the weight of the values below each of its knots, and at it.

    Together they are the exact ranks of the knots among all values.
    """
    sums = [(np.zeros(len(values)), np.zeros(len(values))) for values in knots]
    for begin in range(0, part.n_rows, PIECE):
        features, weights = part.read(slice(begin, begin + PIECE))
        for (below, at), line, values in zip(sums, features, knots, strict=True):
            order = np.argsort(line)
            line, totals = line[order], np.append(0.0, np.cumsum(weights[order]))
            first = totals[np.searchsorted(line, values, side="left")]
            below += first
            at += totals[np.searchsorted(line, values, side="right")] - first
    return sums


def first_rows(part: Part, counts: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """The first so many rows of each class of a part, as they came: as good as a random draw.

    Features (n_features, n_rows) and weights, class after class.
    """
    empty = np.zeros((part.n_features, 0)), np.zeros(0)
    groups = [
        part.read(slice(low, low + size)) if size else empty
        for low, size in zip(part.starts[:-1].tolist(), counts.tolist(), strict=True)
    ]
    features, weights = zip(*groups, strict=True)
    return np.hstack(features), np.concatenate(weights)
