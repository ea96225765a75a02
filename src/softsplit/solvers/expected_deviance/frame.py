"""Rows of a table as a standardised problem, and trees back in the units of the table.

Columns of a problem are the features, but for those of a monotone variable: its value v and hinges
h_1, ..., h_m become the segments v - h_1, h_1 - h_2, ..., h_m, whose coefficients are the slopes
between the knots, so that the sign of the effect is that of each coefficient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.targets import Numbers
from softsplit.solvers.expected_deviance.problem import NumberProblem, Ridges, SoftTree
from softsplit.support.arrays import FloatArray
from softsplit.support.bent_rows import hashes
from softsplit.tree.leaf_families import LeafFamily


@dataclass(frozen=True, eq=False)
class NumberRows:
    """Training rows.

    Attributes
    ----------
    X : array (n_rows, n_features), or HingedTable
        Coded and imputed: numbers, indicators, hinges. No missing values.
    targets : Numbers
        ``Numbers.of(y, weight, offset)``; rows of weight zero are allowed.
    groups : int array (n_features,), optional
        Variable of each feature; each is its own if it is left out. A variable counts once.
    prices : array (n_variables,), optional
        Price of each variable; 1 is the usual one.
    monotone : tuple of (int array, sign)
        Features of a monotone variable, its value and then its hinges by ascending knots, with 1 or
        -1: predictions never fall, or never rise, with it.
    """

    X: Any
    targets: Numbers
    groups: NDArray[np.intp] | None = None
    prices: FloatArray | None = None
    monotone: tuple[tuple[NDArray[np.intp], int], ...] = ()

    def part(self, rows: NDArray[np.intp]) -> NumberRows:
        """Return some of the rows."""
        return replace(self, X=self.X[rows], targets=self.targets.part(rows))

    @property
    def n_rows(self) -> int:
        return len(self.targets.values)


def canonical(rows: NumberRows) -> tuple[NumberRows, NDArray[np.intp]]:
    """Return distinct rows of positive weight, ordered by a hash, and the place of each row.

    The place of a row of weight zero is -1.
    """
    targets = rows.targets
    counted = np.flatnonzero(targets.totals > 0.0)
    if not len(counted):
        raise ValueError("no row has a positive weight.")
    pairs = np.column_stack([targets.values, targets.offset])
    with np.errstate(over="ignore"):
        keys = hashes(rows.X) * np.uint64(0x9E3779B97F4A7C15) + hashes(pairs)
    _, first, inverse = np.unique(keys[counted], return_index=True, return_inverse=True)
    totals = np.bincount(inverse, targets.totals[counted]).astype(float)
    places = np.full(rows.n_rows, -1)
    places[counted] = inverse
    kept = counted[first]
    merged = rows.part(kept)
    return replace(merged, targets=replace(merged.targets, totals=totals)), places


@dataclass(frozen=True, eq=False)
class Frame:
    """Units of a problem.

    Attributes
    ----------
    features : array (n_columns,)
        First feature of each column; ``less`` is a feature that is subtracted from it, or -1.
    centre, span : arrays (n_columns,)
    groups, signs : arrays (n_columns,)
    prices : array (n_variables,)
    family : LeafFamily
        In the units of the problem.
    level, unit : float
        Targets are (y - level) / unit.
    row_unit : float
        Weight of a row.
    n_features : int
    """

    features: NDArray[np.intp]
    less: NDArray[np.intp]
    centre: FloatArray
    span: FloatArray
    groups: NDArray[np.intp]
    signs: FloatArray
    prices: FloatArray
    family: LeafFamily
    level: float
    unit: float
    row_unit: float
    n_features: int

    @classmethod
    def of(cls, rows: NumberRows, family: LeafFamily, tuned: bool = False) -> Frame:
        """Return units in which columns and targets of some rows are about 0 and 1.

        ``tuned`` says that the widths of the family are those of such units already.
        """
        n_features = rows.X.shape[1]
        features, less, signs = np.arange(n_features), np.full(n_features, -1), np.zeros(n_features)
        for columns, sign in rows.monotone:
            less[columns[:-1]] = columns[1:]
            signs[columns] = sign
        groups = np.arange(n_features) if rows.groups is None else np.asarray(rows.groups)
        prices = np.ones(int(groups.max(initial=-1)) + 1) if rows.prices is None else rows.prices
        weight, y = rows.targets.totals, rows.targets.values
        level, unit = family.units(y, weight)
        frame = cls(
            features, less, np.zeros(n_features), np.ones(n_features), groups, signs, prices,
            family, level, unit, min(1.0, float(weight.mean())), n_features,
        )  # fmt: skip
        lines = frame.lines(rows.X)
        share = weight / weight.sum()
        centre = lines @ share
        span = np.sqrt(np.maximum(((lines - centre[:, None]) ** 2) @ share, 0.0))
        kept = span > 1e-9 * np.maximum(np.abs(centre), 1e-300)
        frame = replace(
            frame, features=features[kept], less=less[kept], centre=centre[kept], span=span[kept],
            groups=groups[kept], signs=signs[kept],
        )  # fmt: skip
        return frame if tuned else replace(frame, family=frame.tuned_family(rows))

    def tuned_family(self, rows: NumberRows) -> LeafFamily:
        """Return the family with widths by the residuals of a ridge regression."""
        lines, targets = self.lines(rows.X), self.targets(rows.targets)
        design = np.concatenate([lines, np.ones((1, lines.shape[1]))])
        y = targets.values - targets.offset
        square = (design * targets.totals) @ design.T + np.eye(len(design))
        fit = np.linalg.solve(square, design @ (targets.totals * y)) @ design
        return self.family.tuned(y - fit)

    def lines(self, X: Any, columns: NDArray[np.intp] | None = None) -> FloatArray:
        """Return standardised columns of rows, (n_columns, n_rows)."""
        some = np.arange(len(self.features)) if columns is None else columns
        first, less = self.features[some], self.less[some]
        lines = np.ascontiguousarray(np.asarray(X[:, first], dtype=float).T)
        both = np.flatnonzero(less >= 0)
        if len(both):
            lines[both] -= np.asarray(X[:, less[both]], dtype=float).T
        lines -= self.centre[some, None]
        lines /= self.span[some, None]
        return lines

    def targets(self, targets: Numbers) -> Numbers:
        """Return targets, weights and offsets in the units of the problem."""
        values = (targets.values - self.level) / self.unit
        return Numbers(values, targets.totals / self.row_unit, targets.offset / self.unit)

    def problem(self, rows: NumberRows, threads: int = 1, mixture: bool = False) -> NumberProblem:
        """Return the problem of some rows."""
        targets = self.targets(rows.targets)
        ridges = Ridges() if self.family.log_link else Ridges.of(targets.totals.sum())
        return NumberProblem(
            self.lines(rows.X), targets, self.family, self.groups, self.prices, self.signs, ridges,
            threads, mixture,
        )  # fmt: skip

    def problem_of_columns(
        self, rows: NumberRows, tree: SoftTree, threads: int, mixture: bool = False
    ) -> tuple[NumberProblem, SoftTree]:
        """Return the problem of all rows with the columns of a tree alone, and the tree on them."""
        some = tree.columns
        problem = NumberProblem(
            self.lines(rows.X, some), self.targets(rows.targets), self.family, self.groups[some],
            self.prices, self.signs[some], threads=threads, mixture=mixture,
        )  # fmt: skip
        return problem, replace(tree, columns=np.arange(len(some)))

    def in_units(
        self, matrix: FloatArray, columns: NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray]:
        """Return coefficients (n_features, n_lines) and constants (n_lines,) of scores."""
        slopes = matrix[:, :-1] / self.span[columns]
        constants = matrix[:, -1] - slopes @ self.centre[columns]
        found = np.zeros((self.n_features, len(matrix)))
        np.add.at(found, self.features[columns], slopes.T)
        less = self.less[columns]
        np.subtract.at(found, less[less >= 0], slopes.T[less >= 0])
        return found, constants
