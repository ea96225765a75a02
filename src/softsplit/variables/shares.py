"""Target encoding of categories of many levels: shrunken, out-of-fold class shares of each level.

A level of n rows, of which n_k are of class k, is encoded by (n_k + m prior_k) / (n + m), the
empirical-Bayes estimate of Micci-Barreca (2001). The prior weight m = within / between, the
variance of a row inside a level over the variance of the true shares between levels, is estimated
by the method of moments (one-way analysis of variance). So levels that differ by chance alone are
all encoded by nearly the prior.

A training row is encoded by the rows of the other folds, so that its own class does not leak into
its features. Folds are hashes of the content of rows, so that shuffled rows give the same tree.
Where rows are split, as in cross-validation, ``Shared`` learns the shares from the training part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.variables.variable import Variable

# Number of folds; the rows of each are encoded by shares learned from the others.
FOLDS = 5

# Largest prior weight m, in rows.
MOST_PRIOR_ROWS = 1e4


def fold_of_rows(X: FloatArray) -> NDArray[np.int64]:
    """Return the fold of each row, a hash of its content: equal rows are in the same fold."""
    mixed = np.zeros(len(X), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in X.T:
            bits = np.ascontiguousarray(np.nan_to_num(column, nan=-1.5) + 0.0).view(np.uint64)
            mixed = (mixed ^ (bits + (bits >> np.uint64(29)))) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
    return (mixed % np.uint64(FOLDS)).astype(np.int64)


def level_shares(
    places: NDArray[np.intp], labels: NDArray[np.int64], weight: FloatArray, n: tuple[int, int]
) -> FloatArray:
    """Return the shrunken shares, shape (n_levels + 1, n_classes); the last line is the prior.

    ``n`` are the numbers of levels and of classes; rows with level -1 in ``places`` count for the
    prior only.
    """
    n_levels, n_classes = n
    counts = np.zeros((n_levels, n_classes))
    known = places >= 0
    np.add.at(counts, (places[known], labels[known]), weight[known])
    prior = np.bincount(labels, weight, minlength=n_classes) / max(weight.sum(), 1e-300)
    sizes = counts.sum(axis=1)
    own = _prior_rows(counts, sizes)
    coded: FloatArray = (counts + own * prior) / (sizes + own)[:, None]
    return np.vstack([coded, prior])


def _prior_rows(counts: FloatArray, sizes: FloatArray) -> float:
    """Return the prior weight m = within / between, by one-way ANOVA of the class indicators."""
    # Method of moments: variance within levels, and what is left between them.
    used = sizes > 0
    counts, sizes = counts[used], sizes[used]
    total, n_levels = sizes.sum(), len(sizes)
    if n_levels < 2 or total <= n_levels:
        return MOST_PRIOR_ROWS
    shares = counts / sizes[:, None]
    means = counts.sum(axis=0) / total
    within = float(np.sum(sizes[:, None] * shares * (1 - shares))) / (total - n_levels)
    spread = float(np.sum(sizes[:, None] * (shares - means) ** 2)) / (n_levels - 1)
    between = (spread - within) / ((total - np.sum(sizes**2) / total) / (n_levels - 1))
    return MOST_PRIOR_ROWS if between <= 0 else min(max(within / between, 1.0), MOST_PRIOR_ROWS)


def out_of_fold(
    places: NDArray[np.intp],
    labels: NDArray[np.int64],
    weight: FloatArray,
    folds: NDArray[np.int64],
    n: tuple[int, int],
) -> FloatArray:
    """Return the out-of-fold shares of each training row, shape (n_rows, n_classes)."""
    coded = np.empty((len(places), n[1]))
    for fold in range(FOLDS):
        out = folds == fold
        coded[out] = level_shares(places[~out], labels[~out], weight[~out], n)[places[out]]
    return coded


@dataclass(frozen=True)
class Shared:
    """A target-encoded category and its rows, from which it can be encoded anew by other labels.

    Attributes
    ----------
    first : int
        Index of its first column.
    places : array of int, shape (n_rows,)
        The level of each row, -1 for a missing value or an unlisted level.
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
        """Return the rows of ``variable``, which has ``classes``; ``numbers`` are its levels."""
        places = np.where(np.isnan(numbers), -1, numbers).astype(np.intp)
        shown = len(variable.classes)
        classes = (1,) if shown == 1 else tuple(range(shown))
        return cls(first, places, folds, (len(variable.levels), max(2, shown)), classes)

    @property
    def columns(self) -> slice:
        """Its columns of class shares."""
        return slice(self.first, self.first + len(self.classes))

    def part(self, rows: NDArray[Any]) -> Shared:
        """Return the category restricted to ``rows``."""
        return replace(self, places=self.places[rows], folds=self.folds[rows])

    def table(self, labels: NDArray[np.int64], weight: FloatArray) -> FloatArray:
        """Return the shares of each level, shape (n_levels + 1, n_shown), which encode new rows."""
        return level_shares(self.places, labels, weight, self.n)[:, self.classes]

    def held_out(self, labels: NDArray[np.int64], weight: FloatArray) -> FloatArray:
        """Return the out-of-fold shares of each training row, shape (n_rows, n_shown)."""
        return out_of_fold(self.places, labels, weight, self.folds, self.n)[:, self.classes]
