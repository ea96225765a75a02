"""Many levels as numbers: the class shares among the rows of each level, shrunken and out of fold.

A level of n rows, of which n_k are of class k, has the share (n_k + m prior_k) / (n + m). The
number m of rows that all shares are drawn towards the prior with follows from the rows: it is
within / between, the variance of a row inside a level over that of the true shares of levels, by
the method of moments. So levels that differ by chance alone all get nearly the prior.

A training row is coded by the rows of other folds: its own class must not tell. Folds follow from
what the rows hold and not from their order, so that shuffled rows give the same tree. Where rows
are divided, as by cross-validation, shares are learned from the training part alone: ``Shared``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.variables.variable import Variable


@dataclass(frozen=True)
class ClassShareOptions:
    """How levels of a large category are coded by class shares."""

    folds: int = 5
    """Folds whose shares are learned from the other folds."""

    most_prior_rows: float = 1e4
    """Largest weight of the overall shares, in rows."""


OPTIONS = ClassShareOptions()


def fold_of_rows(X: FloatArray) -> NDArray[np.int64]:
    """A fold for every row, from its content; equal rows are in the same one."""
    mixed = np.zeros(len(X), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in X.T:
            bits = np.ascontiguousarray(np.nan_to_num(column, nan=-1.5) + 0.0).view(np.uint64)
            mixed = (mixed ^ (bits + (bits >> np.uint64(29)))) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
    return (mixed % np.uint64(OPTIONS.folds)).astype(np.int64)


def level_shares(
    places: NDArray[np.intp], labels: NDArray[np.int64], weight: FloatArray, n: tuple[int, int]
) -> FloatArray:
    """Shrunken shares, (n_levels + 1, n_classes), the last line those of all rows.

    ``n`` are the numbers of levels and of classes; rows of place -1 count for the last line only.
    """
    n_levels, n_classes = n
    counts = np.zeros((n_levels, n_classes))
    known = places >= 0
    np.add.at(counts, (places[known], labels[known]), weight[known])
    prior = np.bincount(labels, weight, minlength=n_classes) / max(weight.sum(), 1e-300)
    sizes = counts.sum(axis=1)
    own = _prior_rows(counts, sizes)
    made: FloatArray = (counts + own * prior) / (sizes + own)[:, None]
    return np.vstack([made, prior])


def _prior_rows(counts: FloatArray, sizes: FloatArray) -> float:
    """m of the module's text: one-way analysis of variance of the class indicators."""
    used = sizes > 0
    counts, sizes = counts[used], sizes[used]
    total, n_levels = sizes.sum(), len(sizes)
    if n_levels < 2 or total <= n_levels:
        return OPTIONS.most_prior_rows
    shares = counts / sizes[:, None]
    means = counts.sum(axis=0) / total
    within = float(np.sum(sizes[:, None] * shares * (1 - shares))) / (total - n_levels)
    spread = float(np.sum(sizes[:, None] * (shares - means) ** 2)) / (n_levels - 1)
    between = (spread - within) / ((total - np.sum(sizes**2) / total) / (n_levels - 1))
    return (
        OPTIONS.most_prior_rows
        if between <= 0
        else min(max(within / between, 1.0), OPTIONS.most_prior_rows)
    )


def out_of_fold(
    places: NDArray[np.intp],
    labels: NDArray[np.int64],
    weight: FloatArray,
    folds: NDArray[np.int64],
    n: tuple[int, int],
) -> FloatArray:
    """The shares that each row is coded by in training, (n_rows, n_classes)."""
    made = np.empty((len(places), n[1]))
    for fold in range(OPTIONS.folds):
        out = folds == fold
        made[out] = level_shares(places[~out], labels[~out], weight[~out], n)[places[out]]
    return made


@dataclass(frozen=True)
class Shared:
    """A category that is coded by class shares, in rows: all that coding it by other rows takes.

    Attributes
    ----------
    first : int
        Its first column.
    places : array of int, shape (n_rows,)
        The level of each row, -1 where there is none.
    folds : array of int, shape (n_rows,)
    n : pair of int
        Numbers of levels and of classes.
    classes : tuple of int
        Classes whose shares are columns.
    """

    first: int
    places: NDArray[np.intp]
    folds: NDArray[np.int64]
    n: tuple[int, int]
    classes: tuple[int, ...]

    @classmethod
    def of(
        cls, numbers: FloatArray, folds: NDArray[np.int64], first: int, variable: Variable
    ) -> Shared:
        """From the places of levels, NaN where there is none, of a variable that knows classes."""
        places = np.where(np.isnan(numbers), -1, numbers).astype(np.intp)
        shown = len(variable.classes)
        classes = (1,) if shown == 1 else tuple(range(shown))
        return cls(first, places, folds, (len(variable.levels), max(2, shown)), classes)

    @property
    def columns(self) -> slice:
        """Its columns of shares."""
        return slice(self.first, self.first + len(self.classes))

    def part(self, rows: NDArray[Any]) -> Shared:
        """Some of the rows."""
        return replace(self, places=self.places[rows], folds=self.folds[rows])

    def table(self, labels: NDArray[np.int64], weight: FloatArray) -> FloatArray:
        """Shares of each level, (n_levels + 1, n_shown): what new rows are coded by."""
        return level_shares(self.places, labels, weight, self.n)[:, self.classes]

    def held_out(self, labels: NDArray[np.int64], weight: FloatArray) -> FloatArray:
        """What each row is coded by in training, (n_rows, n_shown)."""
        return out_of_fold(self.places, labels, weight, self.folds, self.n)[:, self.classes]
