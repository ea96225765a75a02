"""The arrays of a tree for ``row_pass``, and X in the form in which it is read.

Only columns that the tree uses are read, from X as it lies in memory if that can be done, else from
copies of a few rows. X may be of double or single precision, and so may answers; what is in between
is of double precision, so that numbers of single precision have the answers of their doubles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from threading import Event
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softsplit.reading.row_pass import TOGETHER, pass_in_numpy, row_pass
from softsplit.support.arrays import FloatArray
from softsplit.support.parallel import in_threads, n_workers
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import TILE
from softsplit.tree.scaling import SMALLEST_SPAN, LinearScaling, Scaling, scaled_rows

CHUNK = 131_072
"""Numbers of X in one call: an interruption is noticed, and copies stay in the cache."""

PER_WORKER = 4_000_000
"""Such numbers for each thread: rows are independent, and answers the same for any number."""

FEW = 131_072
"""Numbers (rows times used columns and branches) up to which numpy answers, within milliseconds."""


class Entries(NamedTuple):
    """The entries of a matrix that are not zero, row by row."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: FloatArray

    @classmethod
    def of_splits(cls, weights: FloatArray, thresholds: FloatArray) -> Entries:
        """Terms of the scores, the threshold last; filled up with zeros. (n_branches, n_used)."""
        rows, columns = np.nonzero(weights)
        counts = np.bincount(rows, minlength=len(weights))
        lengths = (counts // TOGETHER + 1) * TOGETHER  # one more at least: the threshold
        starts = np.concatenate([[0], np.cumsum(lengths)])
        lines, values = np.full(starts[-1], weights.shape[1]), np.zeros(starts[-1])
        places = np.arange(len(rows)) + np.repeat(starts[:-1] - np.cumsum(counts) + counts, counts)
        lines[places], values[places] = columns, weights[rows, columns]
        values[starts[:-1] + counts] = thresholds
        return cls(starts, lines, values)

    @classmethod
    def of_leaves(cls, shares: FloatArray) -> Entries:
        """What leaves add to the columns and, in one more column, to their sum; by leaf."""
        shares = np.ascontiguousarray(shares)  # a sum depends on the order in memory
        table = np.column_stack([shares, shares.sum(axis=1)])
        rows, columns = np.nonzero(table)
        starts = np.searchsorted(rows, np.arange(len(table) + 1))
        # In one piece, as those of ``identity``: another layout would be compiled once more.
        return cls(starts, np.ascontiguousarray(columns), table[rows, columns])

    @classmethod
    def identity(cls, size: int) -> Entries:
        """``of_leaves`` of the matrix with ones on its diagonal."""
        columns = np.column_stack([np.arange(size), np.full(size, size)]).ravel()
        return cls(np.arange(0, 2 * size + 1, 2), columns, np.ones(2 * size))


class Piece(NamedTuple):
    """Rows for one call: their numbers in memory, for whole tiles."""

    values: FloatArray
    first: int
    row_step: int
    places: NDArray[np.int64]


@dataclass(frozen=True)
class RowPlan:
    """One tree, ready to be asked about rows.

    Attributes
    ----------
    used : int array (n_used,)
        Columns that bear on the scores.
    low, inverse : array (n_used,)
    direct : bool
        Whether the pass scales; where not, it is handed scaled rows.
    scaling : Scaling
    weights : array (n_branches, n_used)
        Divided by the number of features.
    thresholds : array (n_branches,)
    steepness : float
    """

    used: NDArray[np.int64]
    low: FloatArray
    inverse: FloatArray
    direct: bool
    scaling: Scaling
    weights: FloatArray
    thresholds: FloatArray
    steepness: float

    @classmethod
    def of(cls, parameters: TreeParameters, steepness: float, scaling: Scaling) -> RowPlan:
        used = np.any(parameters.weights, axis=1)
        direct = False
        low, inverse = np.zeros(len(used)), np.ones(len(used))
        if isinstance(scaling, LinearScaling):
            used &= np.isfinite(scaling.span)  # a constant column is 0 throughout
            direct = bool(np.all(scaling.span[used] > SMALLEST_SPAN))
        if isinstance(scaling, LinearScaling) and direct:
            low[used], inverse[used] = scaling.low[used], 1.0 / scaling.span[used]
        return cls(
            used=np.flatnonzero(used),
            low=low[used],
            inverse=inverse[used],
            direct=direct,
            scaling=scaling,
            weights=parameters.weights[used].T / parameters.n_features,
            thresholds=parameters.thresholds,
            steepness=float(steepness),
        )

    @property
    def n_branches(self) -> int:
        return len(self.thresholds)

    @cached_property
    def _splits(self) -> Entries:
        return Entries.of_splits(self.weights, self.thresholds)

    def scores(self, X: FloatArray) -> FloatArray:
        """z_t of every row, (n_rows, n_branches)."""
        scores = np.empty((len(X), self.n_branches))
        nothing = Entries.of_leaves(np.zeros((self.n_branches + 1, 0)))
        self._run(X, nothing, np.empty((len(X), 0)), scores)
        return scores

    def leaf_proba(self, X: FloatArray) -> FloatArray:
        """Probability of ending in each leaf, (n_rows, n_leaves)."""
        answers = np.empty((len(X), self.n_branches + 1))
        self._run(X, Entries.identity(answers.shape[1]), answers)
        return answers

    def class_proba(
        self, X: FloatArray, leaf_classes: FloatArray, dtype: DTypeLike = np.float64
    ) -> FloatArray:
        """Probability of each class, (n_rows, n_classes)."""
        answers = np.empty((len(X), len(leaf_classes)), dtype=dtype)
        self._run(X, Entries.of_leaves(leaf_classes.T), answers)
        return answers

    def _run(
        self,
        X: FloatArray,
        leaves: Entries,
        answers: FloatArray,
        scores: FloatArray | None = None,
    ) -> None:
        if scores is None:
            scores = np.empty((0, self.n_branches))
        if len(X) * (len(self.used) + self.n_branches) <= FEW:
            pass_in_numpy(
                self._block(X), self.low, self.inverse, self.weights, self.thresholds,
                self.steepness, leaves, scores, answers,
            )  # fmt: skip
            return
        whole = self._readable(X)
        size = max(TILE, CHUNK // max(1, X.shape[1]) // TILE * TILE)
        starts = [*range(0, whole, size), *range(whole, len(X), size)]
        ends = [min(low + size, whole if low < whole else len(X)) for low in starts]
        slices = list(map(slice, starts, ends))
        workers = n_workers(-1, len(X) * (len(self.used) + self.n_branches) // PER_WORKER)
        bounds = [len(slices) * k // workers for k in range(workers + 1)]
        shares = [slices[low:high] for low, high in pairwise(bounds)]
        stopped, double = Event(), answers.dtype == np.float64

        def answer(share: list[slice]) -> None:
            depth = self.n_branches.bit_length()
            lines, routes = np.empty((len(self.used) + 1, TILE)), np.empty((3 * depth + 3, TILE))
            mixed, bits = np.empty((answers.shape[1] + 1, TILE)), routes[depth + 2].view(np.int64)
            for rows in share:
                if stopped.is_set():
                    return
                piece, found = self._piece(X, rows, rows.start < whole), answers[rows]
                if not double:
                    found = np.empty(found.shape)
                row_pass(
                    piece.values, piece.first, piece.row_step, piece.places, self.low,
                    self.inverse, *self._splits, self.steepness, *leaves, scores[rows], found,
                    lines, routes, mixed, bits,
                )  # fmt: skip
                if not double:
                    answers[rows] = found

        in_threads(answer, shares, workers, stopped.set)

    def _readable(self, X: FloatArray) -> int:
        """Rows that the pass can read from X as it lies in memory.

        An array of another kind, even one that is read only, would be compiled for once more.
        """
        known = X.dtype in (np.float64, np.float32)
        plain = self.direct and known and (X.flags.carray or X.flags.farray)
        return len(X) // TILE * TILE if plain else 0

    def _piece(self, X: FloatArray, rows: slice, readable: bool) -> Piece:
        """Some rows of X where they lie, or a copy of them."""
        if readable:
            by_rows = X.flags.carray
            values = X.reshape(-1) if by_rows else X.T.reshape(-1)
            row_step, step = (X.shape[1], 1) if by_rows else (1, len(X))
            return Piece(values, rows.start * row_step, row_step, self.used * step)
        count = rows.stop - rows.start
        block = np.zeros((-(-count // TILE) * TILE, len(self.used)))
        block[:count] = self._block(X[rows])
        return Piece(block.reshape(-1), 0, block.shape[1], np.arange(block.shape[1]))

    def _block(self, X: FloatArray) -> FloatArray:
        """The used columns of a few rows in double precision, scaled unless the pass does it."""
        if self.direct:
            return X[:, self.used].astype(np.float64, copy=False)
        used = np.zeros(X.shape[1], dtype=bool)
        used[self.used] = True
        return scaled_rows(self.scaling, X, used)[:, self.used]
