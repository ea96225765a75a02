"""The walk through a tree: yes or no at every question, then the class of the leaf.

Question t holds, and the walk goes left, where

    sum_j c_tj x_j > b_t            ("<" where ``upwards[t]`` is false)

x in original units and c, b the decimal numbers that are printed, so that a person who follows the
printed tree arrives where ``predict`` does. A sum that equals b_t does not satisfy the question,
also if floating point misses equality by rounding: differences up to ``tie`` times
|b_t| + sum_j |c_tj x_j| count as zero. Under the quantile scaling a question on several features
speaks of ranks instead (``ranked``).

The questions are chosen on training rows (walk_choice.py) and rounded (walk_rounding.py).

Shapes: scores (n_branches, n_rows), counts (n_classes, n_leaves).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.walk_pass import walk_lines
from softsplit.support.arrays import FloatArray
from softsplit.support.bent_rows import AT_ONCE, by_pieces
from softsplit.support.compiling import can_compile
from softsplit.tree.parameters import Topology
from softsplit.tree.scaling import Scaling

SWEEPS = 5
"""Rounds of coordinate ascent; most trees stand still after two."""

DIGITS_TRIED = (2, 3, 4, 5, 6)
"""Significant digits of coefficients that are tried, the fewest first."""

MOST_CHANGED = 1e-3
"""Share of the training rows that rounding may give another class: none of a few hundred."""

MOST_MOVED = 0.01
"""A threshold moves by at most this part of the spread of the sums (their interquartile range /
1.35) when rounded: beyond, new rows near it would be treated otherwise than chosen."""

TIE = 1e-12
"""Relative difference from the threshold that counts as equal: sums of a few decimal numbers are
off by 1e-15."""

WIDTH_DIGITS = 3
"""Significant digits of the width of a gate."""

CENTRE_STEP = 0.02
"""The centre of a gate is rounded by at most this part of its width: half a per cent of
probability."""

SHARE_DIGITS = 3
"""Significant digits of the smaller class probabilities of a leaf; the largest is the rest."""

LARGE_VALUE = 1e250
"""Sums of larger values are made in other units, so that they do not overflow."""

FEW_CELLS = 131_072
"""Rows times columns of questions up to which numpy answers: in a new process the first compiled
call takes a third of a second."""

LEVEL_SLOPE = 1e-9
"""Slopes of a monotone variable that are smaller than this part of a coefficient are none."""

ALIKE = 1e-9
"""Scores that differ by less, relative to their range, belong to one value."""


class Arriving(NamedTuple):
    """Training rows in scaled units, (n_features, n_rows), with their classes and weights."""

    features: FloatArray
    labels: NDArray[np.int64]
    weights: FloatArray


@dataclass(frozen=True)
class Walk:
    """The printed questions of a tree, and the training rows that arrive in its leaves.

    Attributes
    ----------
    coefficients : array of shape (n_branches, n_features)
        c; that of the weightiest feature of a question is 1. All zero: nothing is asked.
    thresholds : array of shape (n_branches,)
        b.
    upwards : array of bool, shape (n_branches,)
        Whether the question reads ">".
    ranked : array of bool, shape (n_branches,)
        Whether the question speaks of ranks (scaled units of the quantile scaling).
    counts : array of shape (n_classes, n_leaves)
        Training rows of each class that arrive, by weight; NaN where they are not known.
    classes : array of int, shape (n_leaves,)
        Position of the class that is predicted in each leaf.
    """

    coefficients: FloatArray
    thresholds: FloatArray
    upwards: NDArray[np.bool_]
    ranked: NDArray[np.bool_]
    counts: FloatArray
    classes: NDArray[np.intp]

    @property
    def topology(self) -> Topology:
        return Topology.with_branches(len(self.thresholds))

    @property
    def shares(self) -> FloatArray:
        """Class shares of the training rows that arrive in each leaf; NaN where none does."""
        with np.errstate(invalid="ignore"):
            return self.counts / self.counts.sum(axis=0)

    @property
    def right(self) -> FloatArray:
        """Training rows of each class that get it, by weight, (n_classes,)."""
        own = self.classes == np.arange(len(self.counts))[:, None]
        return np.where(own, self.counts, 0.0).sum(axis=1)

    @property
    def recall(self) -> FloatArray:
        """Share of the training rows of each class that get it, (n_classes,); 1 of no rows."""
        right, totals = self.right, self.counts.sum(axis=1)
        return np.divide(right, totals, out=np.ones(len(totals)), where=totals > 0)

    def holds(
        self, branch: int, X: FloatArray, some: NDArray[np.intp] | None = None
    ) -> NDArray[np.bool_]:
        """Whether question ``branch`` holds for each row, in the units of the question.

        ``some`` are the positions of the rows that are asked; all if they are not given. Of the
        columns only those of the question are read.
        """
        used = np.flatnonzero(self.coefficients[branch])
        values = X[:, used] if some is None else X[some[:, None], used]
        values = values.astype(np.float64, copy=False)
        # Both sides of an inequality times a power of two: sums of the largest floats are finite.
        unit = 2.0**-100 if np.abs(values).max(initial=0.0) > LARGE_VALUE else 1.0
        threshold = unit * self.thresholds[branch]
        # Term by term: a product of matrices adds in an order that depends on the number of rows.
        total, size = np.zeros(len(values)), np.full(len(values), abs(threshold))
        for j, column in zip(used.tolist(), values.T, strict=True):
            term = unit * self.coefficients[branch, j] * column
            total += term
            size += np.abs(term)
        above = total - threshold
        above = above if self.upwards[branch] else -above
        return np.asarray(above > TIE * size)

    def leaves(self, X: FloatArray, scaling: Scaling) -> NDArray[np.intp]:
        """The leaf of each row, counted from the left; ``X`` in original units."""
        leaves = np.zeros(len(X), dtype=np.intp)
        used = np.flatnonzero(np.any(self.coefficients, axis=0))
        if np.any(self.ranked) or len(X) * len(used) <= FEW_CELLS:
            for begin in range(0, len(X), AT_ONCE):
                some = slice(begin, begin + AT_ONCE)
                leaves[some] = self.asked(X[some], scaling)
            return leaves

        def walk(some: slice) -> None:
            lines = np.ascontiguousarray(X[some][:, used].T, dtype=float)
            leaves[some] = self._passed(lines, used, scaling)

        by_pieces(len(X), walk)
        return leaves

    def asked(self, X: FloatArray, scaling: Scaling) -> NDArray[np.intp]:
        """As ``leaves``, question by question."""
        n_branches = len(self.thresholds)
        node = np.zeros(len(X), dtype=np.intp)
        for t in range(n_branches):
            there = np.flatnonzero(node == t)
            if not len(there):
                continue
            some = there if len(there) < len(X) else None
            if self.ranked[t]:
                asked = X if some is None else X[some]
                holds = self.holds(t, scaling.transform(asked, self.coefficients[t] != 0))
            else:
                holds = self.holds(t, X, some)
            node[there] = 2 * t + 2 - holds
        return node - n_branches

    def _passed(
        self, lines: FloatArray, used: NDArray[np.intp], scaling: Scaling
    ) -> NDArray[np.intp]:
        """As ``leaves`` of the ``used`` columns, (n_used, n_rows), in compiled code where it can.

        Sums of the largest values, questions on ranks and few rows are left to numpy.
        """
        questions = self.coefficients[:, used]
        if (
            np.any(self.ranked) or lines.size <= FEW_CELLS or not can_compile()
            or np.abs(lines).max() > LARGE_VALUE
        ):  # fmt: skip
            few = replace(self, coefficients=questions)
            return few.asked(lines.T, scaling.of_columns(used))
        branches, columns = np.nonzero(questions)
        leaves = np.empty(lines.shape[1], dtype=np.intp)
        walk_lines(
            lines, np.searchsorted(branches, np.arange(len(questions) + 1)),
            np.ascontiguousarray(columns), questions[branches, columns], self.thresholds,
            self.upwards, TIE, leaves,
        )  # fmt: skip
        return leaves

    def arriving(self, rows: Arriving, scaling: Scaling) -> FloatArray:
        """Weight of each class of training rows that arrives in each leaf, (n_classes, n_leaves).

        Of the rows only the columns of questions are read, some rows at a time.
        """
        used = np.flatnonzero(np.any(self.coefficients, axis=0))
        used = used if len(used) else np.array([0])
        shape = self.counts.shape
        counts, cells = np.zeros(shape), shape[0] * shape[1]
        for begin in range(0, len(rows.labels), AT_ONCE):
            part = slice(begin, begin + AT_ONCE)
            scaled = rows.features[used, part].astype(float, copy=False)
            lines = np.empty(scaled.shape)
            for line, j, values in zip(lines, used.tolist(), scaled, strict=True):
                line[:] = scaling.restored(j, values)
            places = shape[1] * rows.labels[part] + self._passed(lines, used, scaling)
            counts += np.bincount(places, rows.weights[part], cells).reshape(shape)
        return counts

    def counted(
        self,
        rows: Arriving,
        scaling: Scaling,
        gains: FloatArray | None,
        factors: FloatArray | None = None,
    ) -> Walk:
        """The walk with the training rows that arrive in its leaves; see ``with_counts``."""
        return self.with_counts(self.arriving(rows, scaling), gains, factors)

    def with_counts(
        self, counts: FloatArray, gains: FloatArray | None, factors: FloatArray | None = None
    ) -> Walk:
        """The walk with counts of ``arriving``, and the classes they decide.

        A leaf predicts what is worth most for its rows by ``gains``, as of ``fit_walk``; one at
        which no row arrives keeps its class, and so do all if there are no gains. ``factors`` are
        those of class weights in the weights of the rows: they decide, but are no rows.
        """
        classes = self.classes
        if gains is not None:
            worth = gains.T @ counts
            own = worth[classes, np.arange(len(classes))]
            kept = own >= worth.max(axis=0) * (1.0 - 1e-12)
            classes = np.where(kept, classes, np.argmax(worth, axis=0))
        counts = counts if factors is None else counts / factors[:, None]
        return replace(self, counts=counts, classes=classes)


def arrivals(holds: NDArray[np.bool_], node: int = 0) -> NDArray[np.intp]:
    """The leaf of each row, from answers (n_branches, n_rows) and the node where all start."""
    n_branches, n_rows = holds.shape
    at = np.full(n_rows, node, dtype=np.intp)
    columns = np.arange(n_rows)
    top = node
    while top < n_branches:  # all rows are on one level
        at = 2 * at + 2 - holds[at, columns]
        top = 2 * top + 1
    return at - n_branches
