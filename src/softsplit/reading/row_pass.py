"""From rows as they are given to scores and answers, in one compiled pass without large arrays.

For a tile of rows, with f the features that the tree uses:

    x_f     = (raw_f - low_f) * inverse_f, cut at FAR           scaled units, a line per feature
    z_t     = sum_f weight_tf x_f - mu_t                        over the weights that are not zero
    p_t     = F(steepness z_t)
    reach   = product of the gates above                        leaves from left to right
    answer  = sum_l reach_l table_kl                            a line per column of the answer

Only the columns of X that the tree uses are read. The arithmetic of a row is the same in the same
order wherever it stands: a tile always has TILE rows (the last one is filled up by repeating a
row), so that no loop has a rest that is computed in another way. The bits of an answer then do not
depend on the other rows, on the order of X in memory or on how many rows are asked for at once.
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

CHUNK = 262_144
"""Numbers of X in one call: an interruption is noticed, and copies stay in the cache."""


@compiled
def row_pass(  # type: ignore[no-untyped-def]
    values, first, n_rows, row_step, places, low, inverse,
    split_starts, split_features, split_weights, thresholds, steepness,
    leaf_starts, leaf_columns, leaf_shares, normalised, scores, answers,
):  # fmt: skip
    """Overwrite ``scores`` and ``answers`` of ``n_rows`` rows.

    Parameters
    ----------
    values : array (n_numbers,)
        The memory of X; feature f of row i is ``values[first + i * row_step + places[f]]``.
    low, inverse : array (n_used,)
        Of the scaling.
    split_starts, split_features, split_weights : arrays
        Weights of branch t: entries ``split_starts[t] .. split_starts[t + 1] - 1``.
    thresholds : array (n_branches,)
    steepness : float
    leaf_starts, leaf_columns, leaf_shares : arrays
        What a leaf adds to the columns of an answer, in the same form.
    normalised : bool
        Divide each answer by its sum.
    scores : array (n_rows, n_branches), or without rows where nobody asks for them
    answers : array (n_rows, n_columns)
    """
    n_leaves = len(thresholds) + 1
    depth = 0
    while 2**depth < n_leaves:
        depth += 1
    lines = np.empty((len(places), TILE))
    score = np.empty(TILE)
    left = np.empty((depth, TILE))
    right = np.empty((depth, TILE))
    reach = np.ones((depth + 1, TILE))
    mixed = np.empty((answers.shape[1], TILE))
    powers = np.empty(TILE)
    bits = powers.view(np.int64)
    for begin in range(0, n_rows, TILE):
        size = min(TILE, n_rows - begin)
        _read(values, first + begin * row_step, size, row_step, places, lines)
        _scale(lines, low, inverse, score)
        mixed[:, :] = 0.0
        for leaf in range(n_leaves):
            # The way to this leaf leaves that to the one before at level ``turn``, to the right.
            turn = 0
            if leaf > 0:
                turn = depth - 1
                while (leaf >> (depth - 1 - turn)) & 1 == 0:
                    turn -= 1
            for level in range(turn, depth):
                if level > turn or leaf == 0:
                    t = 2**level - 1 + (leaf >> (depth - level))
                    _split(
                        lines, split_features, split_weights, split_starts[t],
                        split_starts[t + 1], thresholds[t], score,
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
        if normalised:
            _normalise(mixed, score)
        for k in range(len(mixed)):
            line = mixed[k]
            for i in range(size):
                answers[begin + i, k] = line[i]


@compiled
def _read(values, first, size, row_step, places, lines):  # type: ignore[no-untyped-def]
    """Copy a tile, one line per feature, in the order in which X lies in memory."""
    if row_step == 1:
        for f in range(len(places)):
            line, at = lines[f], first + places[f]
            for i in range(size):
                line[i] = values[at + i]
            for i in range(size, TILE):
                line[i] = values[at + size - 1]
        return
    for i in range(0, TILE, 4):
        a = first + min(i, size - 1) * row_step
        b = first + min(i + 1, size - 1) * row_step
        c = first + min(i + 2, size - 1) * row_step
        d = first + min(i + 3, size - 1) * row_step
        for f in range(len(places)):
            line, place = lines[f], places[f]
            line[i] = values[a + place]
            line[i + 1] = values[b + place]
            line[i + 2] = values[c + place]
            line[i + 3] = values[d + place]


@compiled
def _scale(lines, low, inverse, sizes):  # type: ignore[no-untyped-def]
    """Scaled units. Values are cut only where their sizes add up to FAR: a second look is rare."""
    for i in range(TILE):
        sizes[i] = 0.0
    for f in range(len(lines)):
        line, start, factor = lines[f], low[f], inverse[f]
        for i in range(TILE):
            scaled = (line[i] - start) * factor
            line[i] = scaled
            sizes[i] += abs(scaled)
    total = 0.0
    for i in range(TILE):
        total += sizes[i]
    if not total < FAR:
        for f in range(len(lines)):
            line = lines[f]
            for i in range(TILE):
                line[i] = min(max(line[i], -FAR), FAR)


@compiled
def _split(lines, features, weights, begin, end, threshold, score):  # type: ignore[no-untyped-def]
    """Scores of one branch, four features at a time: a sum is loaded and stored less often."""
    for i in range(TILE):
        score[i] = 0.0
    entry = begin
    while entry + 4 <= end:
        a, b = lines[features[entry]], lines[features[entry + 1]]
        c, d = lines[features[entry + 2]], lines[features[entry + 3]]
        on_a, on_b = weights[entry], weights[entry + 1]
        on_c, on_d = weights[entry + 2], weights[entry + 3]
        for i in range(TILE):
            total = score[i] + on_a * a[i]
            total = total + on_b * b[i]
            total = total + on_c * c[i]
            score[i] = total + on_d * d[i]
        entry += 4
    while entry < end:
        a, on_a = lines[features[entry]], weights[entry]
        for i in range(TILE):
            score[i] = score[i] + on_a * a[i]
        entry += 1
    for i in range(TILE):
        score[i] = score[i] - threshold


@compiled
def _normalise(mixed, total):  # type: ignore[no-untyped-def]
    for i in range(TILE):
        total[i] = 0.0
    for k in range(len(mixed)):
        line = mixed[k]
        for i in range(TILE):
            total[i] += line[i]
    for k in range(len(mixed)):
        line = mixed[k]
        for i in range(TILE):
            line[i] = line[i] / total[i]


class Entries(NamedTuple):
    """The entries of a matrix that are not zero, row by row."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray) -> Entries:
        rows, columns = np.nonzero(matrix)
        starts = np.searchsorted(rows, np.arange(len(matrix) + 1))
        return cls(starts.astype(np.int64), columns.astype(np.int64), matrix[rows, columns])

    @classmethod
    def identity(cls, size: int) -> Entries:
        return cls(np.arange(size + 1), np.arange(size), np.ones(size))


class Memory(NamedTuple):
    """Numbers of rows one after the other, and the steps to the next row and column."""

    values: FloatArray
    row_step: int
    column_step: int

    @classmethod
    def of(cls, X: NDArray[np.floating]) -> Memory | None:
        """X itself, without a copy, if the compiled pass can read it.

        An array that is read only would be compiled for once more.
        """
        if X.dtype != np.float64:
            return None
        if X.flags.carray:
            return cls(X.reshape(-1), X.shape[1], 1)
        return cls(X.T.reshape(-1), 1, len(X)) if X.flags.farray else None


@dataclass(frozen=True)
class RowPass:
    """The arrays of one tree for the compiled pass.

    Attributes
    ----------
    used : int array (n_used,)
        Columns that bear on the scores.
    low, inverse : array (n_used,)
        Scaled is (x - low) * inverse, if ``direct``.
    direct : bool
        Whether the pass scales; other scalings hand it scaled rows.
    scaling : Scaling
    splits : Entries
        (n_branches, n_used): weights divided by the number of features.
    thresholds : array (n_branches,)
    steepness : float
    """

    used: NDArray[np.int64]
    low: FloatArray
    inverse: FloatArray
    direct: bool
    scaling: Scaling
    splits: Entries
    thresholds: FloatArray
    steepness: float

    @classmethod
    def of(cls, parameters: TreeParameters, steepness: float, scaling: Scaling) -> RowPass:
        used = np.any(parameters.weights, axis=1)
        direct = isinstance(scaling, LinearScaling) and not np.any(
            scaling.span[used] <= SMALLEST_SPAN
        )
        if isinstance(scaling, LinearScaling) and direct:
            used &= np.isfinite(scaling.span)  # a constant column is 0 throughout
            low, inverse = scaling.low[used], 1.0 / scaling.span[used]
        else:
            low, inverse = np.zeros(used.sum()), np.ones(used.sum())
        return cls(
            np.flatnonzero(used).astype(np.int64),
            low,
            inverse,
            direct,
            scaling,
            Entries.of(parameters.weights[used].T / parameters.n_features),
            np.array(parameters.thresholds, dtype=np.float64),
            float(steepness),
        )

    def scores(self, X: NDArray[np.floating]) -> FloatArray:
        """z_t of every row, (n_rows, n_branches)."""
        scores = np.empty((len(X), len(self.thresholds)))
        nothing = Entries.of(np.zeros((len(self.thresholds) + 1, 0)))
        self._run(X, nothing, False, scores, np.empty((len(X), 0)))
        return scores

    def leaf_proba(self, X: NDArray[np.floating]) -> FloatArray:
        """Probability of ending in each leaf, (n_rows, n_leaves)."""
        n_leaves = len(self.thresholds) + 1
        answers = np.empty((len(X), n_leaves))
        self._run(X, Entries.identity(n_leaves), False, self._no_scores, answers)
        return answers

    def class_proba(self, X: NDArray[np.floating], leaf_classes: FloatArray) -> FloatArray:
        """Probability of each class, (n_rows, n_classes)."""
        answers = np.empty((len(X), len(leaf_classes)))
        self._run(X, Entries.of(leaf_classes.T), True, self._no_scores, answers)
        return answers

    @property
    def _no_scores(self) -> FloatArray:
        return np.empty((0, len(self.thresholds)))

    def _run(
        self,
        X: NDArray[np.floating],
        leaves: Entries,
        normalised: bool,
        scores: FloatArray,
        answers: FloatArray,
    ) -> None:
        for rows, memory, first, places in self._pieces(X):
            row_pass(
                memory.values, first, rows.stop - rows.start, memory.row_step, places,
                self.low, self.inverse, *self.splits, self.thresholds, self.steepness,
                *leaves, normalised, scores[rows], answers[rows],
            )  # fmt: skip

    def _pieces(
        self, X: NDArray[np.floating]
    ) -> Iterator[tuple[slice, Memory, int, NDArray[np.int64]]]:
        """Rows to handle in one call, their memory, where it begins, and the place of each feature."""
        whole = Memory.of(X) if self.direct else None
        size = max(TILE, CHUNK // max(1, X.shape[1]) // TILE * TILE)
        for low in range(0, len(X), size):
            rows = slice(low, min(low + size, len(X)))
            if whole is not None:
                yield rows, whole, low * whole.row_step, self.used * whole.column_step
            else:
                block = self._block(X[rows])
                memory = Memory(block.reshape(-1), block.shape[1], 1)
                yield rows, memory, 0, np.arange(block.shape[1])

    def _block(self, X: NDArray[np.floating]) -> FloatArray:
        """The used columns of a few rows in double precision, scaled unless the pass does it."""
        if self.direct:
            return np.ascontiguousarray(X[:, self.used], dtype=np.float64)
        used = np.zeros(X.shape[1], dtype=bool)
        used[self.used] = True
        return np.ascontiguousarray(scaled_rows(self.scaling, X, used)[:, self.used])
