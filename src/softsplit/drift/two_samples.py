"""Tests on counts that two samples have one distribution, and their adjustment for many tests.

Counts a (n_cells,) are of n training rows, counts b (n_cells,) of m new rows. drift.py says which
test serves which comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, chi2, norm

from softsplit.support.arrays import FloatArray


@dataclass(frozen=True)
class TwoSampleOptions:
    """Where approximations hold, and how long exact sums may take."""

    fewest: float = 5.0
    """Smallest expected count of a cell of chi-squared; smaller cells are merged with others."""

    negligible: float = 1e-15
    """Chances below this are left out of sums: p-values are read to four digits after the point."""

    steps: int = 50_000_000
    """Most additions of an exact distribution, some tenths of a second."""

    each: int = 500
    """Additions that take as long as it takes to begin with an array."""


OPTIONS = TwoSampleOptions()


def shares_differ(a: FloatArray, b: FloatArray, *, ordered: bool = False) -> float:
    """p-value of chi-squared that counts a and b (n_cells,) have the same shares."""
    a, b = _merged(a, b, ordered)
    if len(a) < 2:
        return 1.0
    both = a + b
    total, n, m = both.sum(), a.sum(), b.sum()
    statistic = np.sum((a - n * both / total) ** 2 / (n * both / total))
    statistic += np.sum((b - m * both / total) ** 2 / (m * both / total))
    return float(chi2.sf(statistic, len(a) - 1))


def _merged(a: FloatArray, b: FloatArray, ordered: bool) -> tuple[FloatArray, FloatArray]:
    """Counts in cells whose expected counts are large enough in both samples."""
    n, m = float(a.sum()), float(b.sum())
    if min(n, m) <= 0:
        return a[:0], b[:0]
    needed = OPTIONS.fewest * (n + m) / min(n, m)
    kept = a + b > 0
    a, b = a[kept], b[kept]
    if not ordered:  # the smallest first, so that small levels are merged with each other
        order = np.argsort(a + b, kind="stable")
        a, b = a[order], b[order]
    cells: list[list[float]] = []
    for pair in zip(a, b, strict=True):
        if cells and sum(cells[-1]) < needed:
            cells[-1] = [cells[-1][0] + pair[0], cells[-1][1] + pair[1]]
        else:
            cells.append(list(pair))
    if len(cells) > 1 and sum(cells[-1]) < needed:
        last = cells.pop()
        cells[-1] = [cells[-1][0] + last[0], cells[-1][1] + last[1]]
    merged = np.array(cells).T
    return merged[0], merged[1]


def location_differs(a: FloatArray, b: FloatArray, *, larger: bool = False) -> float:
    """p-value of the rank sum test on counts a and b in ordered bins; ``larger``: of b alone."""
    n, m = float(a.sum()), float(b.sum())
    both = a + b
    total = n + m
    if min(n, m) <= 0:
        return 1.0
    ranks = np.cumsum(both) - both / 2
    spread = np.sum(both * (ranks - total / 2) ** 2) / (total - 1) if total > 1 else 0.0
    if spread <= 0:
        return 1.0
    z = float((b @ ranks / m - total / 2) / np.sqrt(spread * n / (m * total)))
    return float(norm.sf(z) if larger else 2 * norm.sf(abs(z)))


def all_new(k: int, m: int, n: float) -> float:
    """Probability that the k topmost of n training and m new rows are all new ones."""
    if k == 0:
        return 1.0
    i = np.arange(k)
    return float(np.exp(np.sum(np.log(m - i) - np.log(n + m - i))))


def all_of_levels_new(
    rows: int, totals: FloatArray, m: int, n: float, options: TwoSampleOptions = OPTIONS
) -> float:
    """Probability that levels with at least ``rows`` rows together have new rows alone.

    ``totals`` (n_levels,) are rows of each level in both samples. A level of t rows has new ones
    alone with q_t = prod_{i < t} (m - i) / (n + m - i). Levels count as independent: of c_t levels
    with t rows a binomial number k_t has new rows alone, and the distribution of sum_t t k_t is
    made size by size. Where that takes more than ``options.steps`` it is the bound of Cantelli.
    """
    if rows == 0:
        return 1.0
    sizes, many = np.unique(np.asarray(totals, dtype=int), return_counts=True)
    chances = np.array([all_new(int(t), m, n) if t <= m else 0.0 for t in sizes])
    kept = many * chances > options.negligible
    sizes, many, chances = sizes[kept], many[kept], chances[kept]
    most = np.minimum(many, (rows - 1) // sizes)  # more of them reach ``rows`` by themselves
    laws = [binom.pmf(np.arange(k + 1), c, q) for k, c, q in zip(most, many, chances, strict=True)]
    counts = [np.flatnonzero(law > options.negligible) for law in laws]
    if sum(map(len, counts)) * (rows + options.each) > options.steps:
        return _bound_of_cantelli(rows, sizes, many, chances)
    below, reached, missing = np.zeros(rows), 0.0, np.arange(rows, 0, -1)
    below[0] = 1.0
    for t, k, law, listed, c, q in zip(sizes, most, laws, counts, many, chances, strict=True):
        more = np.append(np.cumsum(law[::-1])[::-1], 0.0) + binom.sf(k, c, q)  # at least so many
        reached += float(below @ more[np.minimum(-(-missing // t), k + 1)])
        added = np.zeros(rows)
        for count in listed:
            added[count * t :] += law[count] * below[: rows - count * t]
        below = added
    return min(float(reached), 1.0)


def _bound_of_cantelli(
    rows: int, sizes: FloatArray, many: FloatArray, chances: FloatArray
) -> float:
    mean = float(np.sum(many * sizes * chances))
    variance = float(np.sum(many * sizes**2 * chances * (1 - chances)))
    return 1.0 if rows <= mean else variance / (variance + (rows - mean) ** 2)


def holm(p_values: Sequence[float], weights: Sequence[float] | None = None) -> FloatArray:
    """Adjusted p-values of Holm (1979): max_{j <= i} p_j / w_j sum_{l >= j} w_l, by p / w."""
    p = np.asarray(p_values, dtype=float)
    w = np.ones(len(p)) if weights is None else np.asarray(weights, dtype=float)
    order = np.argsort(p / w, kind="stable")
    remaining = np.cumsum(w[order][::-1])[::-1]
    stepped = np.maximum.accumulate((p / w)[order] * remaining)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
