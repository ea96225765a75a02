"""Many levels as numbers: the class shares among the rows of each level, shrunken and out of fold.

A level of n rows, of which n_k are of class k, has the share (n_k + m prior_k) / (n + m). The
number m of rows that all shares are drawn towards the prior with follows from the rows: it is
within / between, the variance of a row inside a level over that of the true shares of levels, by
the method of moments. So levels that differ by chance alone all get nearly the prior.

A training row is coded by the rows of other folds: its own class must not tell. Folds follow from
what the rows hold and not from their order, so that shuffled rows give the same tree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray

FOLDS = 5
MOST_PRIOR_ROWS = 1e4


def fold_of_rows(X: FloatArray) -> NDArray[np.int64]:
    """A fold for every row, from its content; equal rows are in the same one."""
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
    """The shares that each row is coded by in training, (n_rows, n_classes)."""
    made = np.empty((len(places), n[1]))
    for fold in range(FOLDS):
        out = folds == fold
        made[out] = level_shares(places[~out], labels[~out], weight[~out], n)[places[out]]
    return made
