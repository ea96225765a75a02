"""From rows as they are given to scores and answers, in one compiled pass without large arrays.

For a tile of rows, with f the features that the tree uses:

    x_f     = (raw_f - low_f) * inverse_f, cut at FAR           scaled units, a line per feature
    z_t     = sum_f weight_tf x_f - mu_t                        over the weights that are not zero
    p_t     = F(steepness z_t)
    reach   = product of the gates above                        leaves from left to right
    answer  = sum_l reach_l table_lk / sum_lk reach_l table_lk  a line per column k

Only the columns of X that the tree uses are read. The arithmetic of a row is the same in the same
order wherever it stands: a tile always has TILE rows, the last one being filled up, so that no loop
has a rest that is computed in another way. The bits of an answer then do not depend on the other
rows, on the order of X in memory or on how many rows are asked for at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.compilation import compiled
from softsplit.routing import TILE, open_gates
from softsplit.scaling import FAR, SMALLEST_SPAN, LinearScaling, Scaling, scaled_rows
from softsplit.tree import FloatArray, TreeParameters

CHUNK = 131_072
"""Numbers of X in one call: an interruption is noticed, and copies stay in the cache."""

TOGETHER = 4
"""Features added to a score at a time, so that it is loaded and stored less often."""


@compiled
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
        _read(values, first + begin * row_step, row_step, places, low, inverse, lines)
        for k in range(n_columns + 1):
            for i in range(TILE):
                mixed[k, i] = 0.0
        for leaf in range(n_leaves):
            # The way to this leaf leaves that to the one before at level ``turn``, to the right.
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
                    open_gates(score, 0, TILE, steepness, left[level], right[level], powers, bits)
                side = right[level] if (leaf >> (depth - 1 - level)) & 1 else left[level]
                above, below = reach[level], reach[level + 1]
                for i in range(TILE):
                    below[i] = above[i] * side[i]
            arriving = reach[depth]
            for entry in range(leaf_starts[leaf], leaf_starts[leaf + 1]):
                line, share = mixed[leaf_columns[entry]], leaf_shares[entry]
                for i in range(TILE):
                    line[i] += share * arriving[i]
        total = mixed[n_columns]
        for k in range(n_columns):
            line = mixed[k]
            for i in range(size):
                answers[begin + i, k] = line[i] / total[i]


@compiled
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


@compiled
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
        table = np.column_stack([shares, shares.sum(axis=1)])
        rows, columns = np.nonzero(table)
        return cls(np.searchsorted(rows, np.arange(len(table) + 1)), columns, table[rows, columns])

    @classmethod
    def identity(cls, size: int) -> Entries:
        """``of_leaves`` of the matrix with ones on its diagonal."""
        columns = np.column_stack([np.arange(size), np.full(size, size)]).ravel()
        return cls(np.arange(0, 2 * size + 1, 2), columns, np.ones(2 * size))


class Piece(NamedTuple):
    """Rows for one call: their numbers in memory, for whole tiles."""

    rows: slice
    values: FloatArray
    first: int
    row_step: int
    places: NDArray[np.int64]


@dataclass(frozen=True)
class RowPass:
    """The arrays of one tree for the compiled pass; X may be of double or single precision.

    Attributes
    ----------
    used : int array (n_used,)
        Columns that bear on the scores.
    low, inverse : array (n_used,)
    direct : bool
        Whether the pass scales; where not, it is handed scaled rows.
    scaling : Scaling
    splits : Entries
        Weights divided by the number of features, and thresholds.
    n_branches : int
    steepness : float
    """

    used: NDArray[np.int64]
    low: FloatArray
    inverse: FloatArray
    direct: bool
    scaling: Scaling
    splits: Entries
    n_branches: int
    steepness: float

    @classmethod
    def of(cls, parameters: TreeParameters, steepness: float, scaling: Scaling) -> RowPass:
        used = np.any(parameters.weights, axis=1)
        direct = False
        low, inverse = np.zeros(len(used)), np.ones(len(used))
        if isinstance(scaling, LinearScaling):
            used &= np.isfinite(scaling.span)  # a constant column is 0 throughout
            direct = bool(np.all(scaling.span[used] > SMALLEST_SPAN))
        if isinstance(scaling, LinearScaling) and direct:
            low[used], inverse[used] = scaling.low[used], 1.0 / scaling.span[used]
        weights = parameters.weights[used].T / parameters.n_features
        return cls(
            used=np.flatnonzero(used),
            low=low[used],
            inverse=inverse[used],
            direct=direct,
            scaling=scaling,
            splits=Entries.of_splits(weights, parameters.thresholds),
            n_branches=len(weights),
            steepness=float(steepness),
        )

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

    def class_proba(self, X: FloatArray, leaf_classes: FloatArray) -> FloatArray:
        """Probability of each class, (n_rows, n_classes)."""
        answers = np.empty((len(X), len(leaf_classes)))
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
        depth = self.n_branches.bit_length()
        lines, routes = np.empty((len(self.used) + 1, TILE)), np.empty((3 * depth + 3, TILE))
        mixed, bits = np.empty((answers.shape[1] + 1, TILE)), routes[depth + 2].view(np.int64)
        for piece in self._pieces(X):
            row_pass(
                piece.values, piece.first, piece.row_step, piece.places, self.low, self.inverse,
                *self.splits, self.steepness, *leaves, scores[piece.rows], answers[piece.rows],
                lines, routes, mixed, bits,
            )  # fmt: skip

    def _pieces(self, X: FloatArray) -> Iterator[Piece]:
        """X as it lies in memory where the pass can read it there, and copies of a few rows."""
        size = max(TILE, CHUNK // max(1, X.shape[1]) // TILE * TILE)
        by_rows, by_columns = X.flags.carray, X.flags.farray
        # An array of another kind, even one that is read only, would be compiled for once more.
        plain = self.direct and X.dtype == np.float64 and (by_rows or by_columns)
        whole = len(X) // TILE * TILE if plain else 0
        if whole:
            values = X.reshape(-1) if by_rows else X.T.reshape(-1)
            row_step, step = (X.shape[1], 1) if by_rows else (1, len(X))
            for low in range(0, whole, size):
                rows = slice(low, min(low + size, whole))
                yield Piece(rows, values, low * row_step, row_step, self.used * step)
        for low in range(whole, len(X), size):
            rows = slice(low, min(low + size, len(X)))
            block = self._block(X[rows])
            yield Piece(rows, block.reshape(-1), 0, block.shape[1], np.arange(block.shape[1]))

    def _block(self, X: FloatArray) -> FloatArray:
        """The used columns of a few rows in double precision, filled up to whole tiles."""
        block = np.zeros((-(-len(X) // TILE) * TILE, len(self.used)))
        if self.direct:
            block[: len(X)] = X[:, self.used]
        else:
            used = np.zeros(X.shape[1], dtype=bool)
            used[self.used] = True
            block[: len(X)] = scaled_rows(self.scaling, X, used)[:, self.used]
        return block
