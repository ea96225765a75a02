"""Class probabilities of rows as they are given, tile by tile and without large arrays.

With f the features that the tree uses:

    x_f     = (raw_f - low_f) * inverse_f, cut at FAR           scaled units, a line per feature
    z_t     = sum_f weight_tf x_f - mu_t                        over the weights that are not zero
    p_t     = F(steepness z_t)
    reach   = product of the gates above                        leaves from left to right
    answer  = sum_l reach_l table_lk / sum_lk reach_l table_lk  a line per column k

The bits of an answer depend on nothing but its row. Each number is made by the same operations in
the same order wherever the row stands: a tile always has TILE rows, the last one being filled up,
so that no loop has a remainder that is computed in another way; and every operation is rounded by
itself. ``pass_in_numpy`` therefore gives the same bits. It answers few rows, for a new process
spends a third of a second before its first compiled function runs, and seconds to compile it.

``RowPlan`` holds the arrays of a tree for the pass. It reads only columns that the tree uses, from
X where it lies in memory if that is possible, else from copies of a few rows. X and the answers may
be of double or single precision. All that lies between them is of double precision, so that numbers
of single precision have the answers of their doubles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from threading import Event
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import can_compile, compiled_plainly, in_python
from softsplit.support.parallel import in_threads, n_threads, n_workers
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import (
    SATURATION,
    TILE,
    exponential_parts,
    node_reach,
    tile_gates,
)
from softsplit.tree.scaling import FAR, SMALLEST_SPAN, LinearScaling, Scaling, scaled_rows

TOGETHER = 4
"""Features added to a score at a time, so that it is loaded and stored less often. A constant of
the compiled code."""


@dataclass(frozen=True)
class RowPassOptions:
    """How rows are cut into calls; answers are the same for any values.

    Attributes
    ----------
    few : int
        Numbers (rows times used columns and branches) up to which numpy answers, which takes
        milliseconds.
    chunk : int
        Numbers of X in one compiled call: between calls an interruption is noticed, and copies of
        a chunk stay in the cache.
    per_worker : int
        Numbers (as for ``few``) for each thread: fewer do not pay for starting one.
    """

    few: int = 131_072
    chunk: int = 131_072
    per_worker: int = 4_000_000


OPTIONS = RowPassOptions()


@compiled_plainly
def row_pass(  # type: ignore[no-untyped-def]
    values, first, row_step, places, low, inverse, split_starts, split_lines, split_weights,
    steepness, leaf_starts, leaf_columns, leaf_shares, scores, answers, lines, routes, mixed, bits,
):  # fmt: skip
    """Overwrite ``answers``, and ``scores`` where somebody asks for them.

    Work arrays are handed in: to allocate them here would double the time of compiling.

    Parameters
    ----------
    values : array (n_numbers,)
        Feature f of row i is ``values[first + i * row_step + places[f]]``, for whole tiles.
    low, inverse : array (n_used,)
        Of the scaling.
    split_starts, split_lines, split_weights : arrays
        Terms of z_t: entries ``split_starts[t] .. split_starts[t + 1] - 1``, a multiple of
        TOGETHER. The threshold is the weight of line n_used, which is -1 throughout.
    steepness : float
    leaf_starts, leaf_columns, leaf_shares : arrays
        What a leaf adds to an answer; column n_columns is the sum of the others.
    scores : array (n_rows, n_branches) or (0, n_branches)
    answers : array (n_rows, n_columns)
    lines : array (n_used + 1, TILE)
    routes : array (3 depth + 3, TILE)
        Reach by level, score, powers, and the gates left and right by level.
    mixed : array (n_columns + 1, TILE)
    bits : integer array (TILE,)
        The powers, seen as integers.
    """
    n_leaves, depth = len(leaf_starts) - 1, len(routes) // 3 - 1
    reach, score, powers = routes[: depth + 1], routes[depth + 1], routes[depth + 2]
    left, right = routes[depth + 3 : 2 * depth + 3], routes[2 * depth + 3 :]
    n_columns = answers.shape[1]
    for i in range(TILE):
        reach[0, i] = 1.0
        lines[len(places), i] = -1.0
    for begin in range(0, len(answers), TILE):
        size = min(TILE, len(answers) - begin)
        # 1. A tile of scaled rows.
        _read(values, first + begin * row_step, row_step, places, low, inverse, lines)
        for k in range(n_columns + 1):
            for i in range(TILE):
                mixed[k, i] = 0.0
        for leaf in range(n_leaves):
            # 2. Its reach: its way leaves that of the leaf before at level ``turn``, to the right.
            turn = 0
            if leaf > 0:
                turn = depth - 1
                while (leaf >> (depth - 1 - turn)) & 1 == 0:
                    turn -= 1
            for level in range(turn, depth):
                if level > turn or leaf == 0:
                    t = (1 << level) - 1 + (leaf >> (depth - level))
                    _split(
                        lines, split_lines, split_weights, split_starts[t], split_starts[t + 1],
                        score,
                    )  # fmt: skip
                    if len(scores) > 0:
                        for i in range(size):
                            scores[begin + i, t] = score[i]
                    _gates(score, steepness, left[level], right[level], powers, bits)
                side = right[level] if (leaf >> (depth - 1 - level)) & 1 else left[level]
                above, below = reach[level], reach[level + 1]
                for i in range(TILE):
                    below[i] = above[i] * side[i]
            # 3. What the leaf adds to each column of the answers.
            arriving = reach[depth]
            for entry in range(leaf_starts[leaf], leaf_starts[leaf + 1]):
                line, share = mixed[leaf_columns[entry]], leaf_shares[entry]
                for i in range(TILE):
                    line[i] += share * arriving[i]
        # 4. Shares of what has arrived.
        total = mixed[n_columns]
        for k in range(n_columns):
            line = mixed[k]
            for i in range(size):
                answers[begin + i, k] = line[i] / total[i]


@compiled_plainly
def _read(values, first, row_step, places, low, inverse, lines):  # type: ignore[no-untyped-def]
    """A tile in scaled units, one line per feature; read in the order in which X lies in memory.

    Four rows at a time where rows lie together. There, values are looked at again, to be cut, only
    if their sizes add up to FAR: this can not change a value that is not cut.
    """
    sizes = FAR
    if row_step == 1:
        for f in range(len(places)):
            line, at, start, factor = lines[f], first + places[f], low[f], inverse[f]
            for i in range(TILE):
                line[i] = (values[at + i] - start) * factor
    else:
        sizes = 0.0
        for i in range(0, TILE, 4):
            row = first + i * row_step
            in_a = in_b = in_c = in_d = 0.0
            for f in range(len(places)):
                line, at, start, factor = lines[f], row + places[f], low[f], inverse[f]
                a = (values[at] - start) * factor
                b = (values[at + row_step] - start) * factor
                c = (values[at + 2 * row_step] - start) * factor
                d = (values[at + 3 * row_step] - start) * factor
                line[i], line[i + 1], line[i + 2], line[i + 3] = a, b, c, d
                in_a += abs(a)
                in_b += abs(b)
                in_c += abs(c)
                in_d += abs(d)
            sizes += (in_a + in_b) + (in_c + in_d)
    if not sizes < FAR:
        for f in range(len(places)):
            line = lines[f]
            for i in range(TILE):
                line[i] = min(max(line[i], -FAR), FAR)


@compiled_plainly
def _split(lines, entries, weights, begin, end, score):  # type: ignore[no-untyped-def]
    """Scores of one branch."""
    for i in range(TILE):
        score[i] = 0.0
    for e in range(begin, end, TOGETHER):
        a, b, c, d = (
            lines[entries[e]], lines[entries[e + 1]], lines[entries[e + 2]], lines[entries[e + 3]],
        )  # fmt: skip
        on_a, on_b, on_c, on_d = weights[e], weights[e + 1], weights[e + 2], weights[e + 3]
        for i in range(TILE):
            total = score[i] + on_a * a[i]
            total = total + on_b * b[i]
            total = total + on_c * c[i]
            score[i] = total + on_d * d[i]


@compiled_plainly
def _gates(score, steepness, left, right, powers, bits):  # type: ignore[no-untyped-def]
    tile_gates(score, 0, TILE, steepness, left, right, powers, bits)


def pass_in_numpy(
    rows: FloatArray,
    low: FloatArray,
    inverse: FloatArray,
    weights: FloatArray,
    thresholds: FloatArray,
    steepness: float,
    leaves: tuple[NDArray[np.int64], NDArray[np.int64], FloatArray],
    scores: FloatArray,
    answers: FloatArray,
) -> None:
    """The same for the used columns of ``rows``, (n_rows, n_used); weights (n_branches, n_used)."""
    with np.errstate(over="ignore"):
        lines = np.clip((rows - low) * inverse, -FAR, FAR).T
    z = np.zeros((len(thresholds), len(rows)))
    for f in range(len(lines)):
        z += weights[:, f, None] * lines[f]
    z -= thresholds[:, None]
    if len(scores):
        scores[:] = z.T
    reach = node_reach(*_gates_in_numpy(z, steepness))
    starts, columns, shares = leaves
    mixed = np.zeros((answers.shape[1] + 1, len(rows)))
    for leaf in range(len(z) + 1):
        for e in range(starts[leaf], starts[leaf + 1]):
            mixed[columns[e]] += shares[e] * reach[len(z) + leaf]
    answers[:] = (mixed[:-1] / mixed[-1]).T


def _gates_in_numpy(scores: FloatArray, steepness: float) -> tuple[FloatArray, FloatArray]:
    with np.errstate(over="ignore"):
        decay, powers = in_python(exponential_parts)(
            np.minimum(np.abs(steepness * scores), SATURATION)
        )
    decay *= ((1023 - (powers.view(np.int64) & 0xFFFF)) << 52).view(np.float64)
    large = 1.0 / (1.0 + decay)
    small = decay * large
    positive = scores >= 0.0
    return np.where(positive, large, small), np.where(positive, small, large)


# --- a tree, ready for the pass ----------------------------------------------------------------


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
        self, X: FloatArray, leaf_values: FloatArray, dtype: DTypeLike = np.float64
    ) -> FloatArray:
        """Probability of each class, (n_rows, n_classes)."""
        answers = np.empty((len(X), len(leaf_values)), dtype=dtype)
        self._run(X, Entries.of_leaves(leaf_values.T), answers)
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
        width = len(self.used) + self.n_branches
        if len(X) * width <= OPTIONS.few or not can_compile():
            for low in range(0, len(X), max(1, OPTIONS.few // width)):
                rows = slice(low, low + max(1, OPTIONS.few // width))
                pass_in_numpy(
                    self._block(X[rows]), self.low, self.inverse, self.weights, self.thresholds,
                    self.steepness, leaves, scores[rows], answers[rows],
                )  # fmt: skip
            return
        whole = self._readable(X)
        size = max(TILE, OPTIONS.chunk // max(1, X.shape[1]) // TILE * TILE)
        starts = [*range(0, whole, size), *range(whole, len(X), size)]
        ends = [min(low + size, whole if low < whole else len(X)) for low in starts]
        slices = list(map(slice, starts, ends))
        workers = n_workers(n_threads(None), len(X) * width // OPTIONS.per_worker)
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
