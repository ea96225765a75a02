"""A part of a table in a file of the machine that reads it, and sums over its rows.

A table that is larger than the memory of all machines lies in parts. Each part is read once: its
rows are grouped by class and put in canonical order (samples.py), and written to a file, one line
per feature, in the precision that they came in:

    features (n_features, n_rows)    weights (n_rows,), if they are not all 1

Every pass reads PIECE rows at a time, and only the columns that a tree uses. They are scaled on the
way: what a worker holds in memory is a few megabytes, whatever the size of its parts, and the
operating system keeps as much of the files in memory as there is room for. Files are read, not
mapped: mapped pages would count as memory of the worker, which Dask ends when it has too much.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import Sums
from softsplit.engines.row_sums import PIECE, row_sums
from softsplit.engines.samples import Samples
from softsplit.support.arrays import FloatArray
from softsplit.tree.scaling import Scaling


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
    classes : array of shape (n_classes of the part,)
        Labels of its rows, in ascending order.
    starts : array of int, shape (n_classes of the part + 1,)
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
        found = np.empty((len(chosen), count), dtype=self.kind)
        weights = np.ones(count)
        with open(self.path, "rb", buffering=0) as file:
            for line, column in zip(found, chosen, strict=True):
                _fill(file, self._offset(column, begin), line)
            if self.weighted:
                _fill(file, self._offset(self.n_features, 0) + 8 * begin, weights)
        return found.astype(np.float64, copy=False), weights


def _fill(file: Any, offset: int, line: NDArray[Any]) -> None:
    """Read a line of numbers from a place of a file."""
    file.seek(offset)
    room = line.view(np.uint8).data
    while len(room):
        n_read = file.readinto(room)
        if not n_read:
            raise OSError(f"{file.name} is shorter than it was when it was written.")
        room = room[n_read:]


@dataclass(frozen=True)
class Reading:
    """How rows are read from their files, the same for all parts.

    Attributes
    ----------
    classes : array of shape (n_classes,)
        Those of the whole table.
    scaling : Scaling
        Of the columns that are read.
    columns : array of int, optional
        Those columns; all if None.
    factors : array of shape (n_classes,), optional
        Factors on the weights of each class.
    drawn : (seed, power), optional
        Weights are multiplied by exponential random numbers to that power.
    """

    classes: NDArray[Any]
    scaling: Scaling
    columns: NDArray[np.intp] | None = None
    factors: FloatArray | None = None
    drawn: tuple[int, float] | None = None

    def starts(self, part: Part) -> NDArray[np.int64]:
        """Where the classes of the table begin among the rows of a part."""
        counts = np.zeros(len(self.classes), dtype=np.int64)
        counts[np.searchsorted(self.classes, part.classes)] = np.diff(part.starts)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def pieces(self, part: Part) -> Iterator[Samples]:
        """The rows of a part in scaled units, PIECE at a time."""
        starts = self.starts(part)
        shares: FloatArray | None = None
        if self.drawn is not None:
            seed, power = self.drawn
            shares = np.random.default_rng([seed, part.number]).standard_exponential(part.n_rows)
            shares **= power
        for begin in range(0, part.n_rows, PIECE):
            rows = slice(begin, begin + PIECE)
            features, weights = part.read(rows, self.columns)
            here = np.clip(starts - begin, 0, len(weights))
            if self.factors is not None:
                weights = weights * np.repeat(self.factors, np.diff(here))
            if shares is not None:
                weights = weights * shares[rows]
            yield Samples(self.scaled(features), here, weights, np.zeros(len(self.classes)))

    def scaled(self, features: FloatArray) -> FloatArray:
        """Features (n_columns, n_rows) in scaled units."""
        made: FloatArray = np.ascontiguousarray(self.scaling.transform(features.T).T)
        made += 0.0  # -0.0 becomes 0.0
        return made

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


def added(answers: Any) -> Sums:
    """Sums of sums, in the order in which they come."""
    value, arrays = 0.0, None
    for found in answers:
        value += found.value
        new = found.splits, found.mass, found.table
        arrays = new if arrays is None else tuple(a + b for a, b in zip(arrays, new, strict=True))
    assert arrays is not None, "parts are never empty"
    return Sums(value, *arrays)


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
    found = [(np.zeros(len(values)), np.zeros(len(values))) for values in knots]
    for begin in range(0, part.n_rows, PIECE):
        features, weights = part.read(slice(begin, begin + PIECE))
        for (below, at), line, values in zip(found, features, knots, strict=True):
            order = np.argsort(line)
            line, totals = line[order], np.append(0.0, np.cumsum(weights[order]))
            first = totals[np.searchsorted(line, values, side="left")]
            below += first
            at += totals[np.searchsorted(line, values, side="right")] - first
    return found


def first_rows(part: Part, counts: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """The first so many rows of each class of a part, as they came: as good as a random draw.

    Features (n_features, n_rows) and weights, class after class.
    """
    found = [
        part.read(slice(low, low + size))
        for low, size in zip(part.starts[:-1].tolist(), counts.tolist(), strict=True)
        if size
    ]
    if not found:
        return np.zeros((part.n_features, 0)), np.zeros(0)
    features, weights = zip(*found, strict=True)
    return np.hstack(features), np.concatenate(weights)
