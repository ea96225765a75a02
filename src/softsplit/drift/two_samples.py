"""Tests on counts that two samples have one distribution, and their adjustment for many tests.

Counts a (n_cells,) are of n training rows, counts b (n_cells,) of m new rows. table_check.py says
which test serves which comparison.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import binom, chi2_contingency, norm

from softsplit.support.arrays import FloatArray
from softsplit.variables.levels import fewest_rows

FEWEST_EXPECTED = 5.0
"""Smallest expected count of a cell of chi-squared; smaller cells are merged with others."""

SCORE_BINS = 20
"""Bins of the scores of answers, by quantiles of held-out rows."""

UNLISTED = 1e-4
"""A level has a cell of its own if the chance that it has too few training rows to be listed, given
its rows in both samples, is at most this; the others share one."""


def p_value_shares(a: FloatArray, b: FloatArray, *, ordered: bool = False) -> float:
    """p-value of chi-squared that counts a and b (n_cells,) have the same shares."""
    n, m = float(a.sum()), float(b.sum())
    if min(n, m) <= 0:
        return 1.0
    # Neighbours are merged; of cells without an order small ones come first, with each other.
    both = a + b
    order = np.arange(len(both)) if ordered else np.argsort(both, kind="stable")
    needed, cells = FEWEST_EXPECTED * (n + m) / min(n, m), [np.zeros(2)]
    for k in order[both[order] > 0]:
        if cells[-1].sum() >= needed:
            cells.append(np.zeros(2))
        cells[-1] += a[k], b[k]
    if len(cells) > 1 and cells[-1].sum() < needed:
        cells[-2] += cells.pop()
    return float(chi2_contingency(np.array(cells), correction=False).pvalue)


def p_value_location(a: FloatArray, b: FloatArray, *, larger: bool = False) -> float:
    """p-value of the rank sum test on counts a and b in ordered bins; ``larger``: of b alone.

    It is ``scipy.stats.mannwhitneyu`` of the rows behind the counts, which may be parts of rows.
    """
    n, m = float(a.sum()), float(b.sum())
    both, total = a + b, n + m
    if min(n, m) <= 0 or total <= 1:
        return 1.0
    ranks = np.cumsum(both) - both / 2
    spread = np.sum(both * (ranks - total / 2) ** 2) / (total - 1)
    if spread <= 0:
        return 1.0
    z = float((b @ ranks / m - total / 2) / np.sqrt(spread * n / (m * total)))
    return float(norm.sf(z) if larger else 2 * norm.sf(abs(z)))


def p_value_all_unseen(k: int, m: int, n: float) -> float:
    """Probability that the k topmost of n training and m new rows are all new ones."""
    i = np.arange(k)
    return float(np.prod((m - i) / (n + m - i)))


def p_value_levels_unseen(rows: int, totals: FloatArray, m: int, n: float) -> float:
    """Bound on the probability that levels with ``rows`` rows together have new rows alone.

    ``totals`` (n_levels,) are rows of each level in both samples. A level of t rows has new ones
    alone with q_t = prod_{i < t} (m - i) / (n + m - i). Levels count as independent; then, by
    Chernoff,

        P(rows of them >= rows) <= min_{s > 0} e^{-s rows} prod_levels (1 - q_t + q_t e^{s t})

    which is q_t itself for a single level.
    """
    sizes, many = np.unique(np.asarray(totals, dtype=int), return_counts=True)
    chances = np.array([p_value_all_unseen(int(t), m, n) if t <= m else 0.0 for t in sizes])
    sizes, many, chances = (part[chances > 0] for part in (sizes, many, chances))
    if rows <= float(many @ (sizes * chances)):
        return 1.0
    stays, leaves = np.log1p(-chances), np.log(chances)

    def log_bound(s: float) -> float:
        return float(many @ np.logaddexp(stays, leaves + s * sizes) - s * rows)

    # The bound is convex in s; e^-50 is beyond every p-value that is printed.
    return float(min(1.0, np.exp(minimize_scalar(log_bound, bounds=(0, 50), method="bounded").fun)))


def holm(p_values: Sequence[float], weights: Sequence[float] | None = None) -> FloatArray:
    """Adjusted p-values of Holm (1979): max_{j <= i} p_j / w_j sum_{l >= j} w_l, by p / w."""
    p = np.asarray(p_values, dtype=float)
    w = np.ones(len(p)) if weights is None else np.asarray(weights, dtype=float)
    order = np.argsort(p / w, kind="stable")
    remaining = np.cumsum(w[order][::-1])[::-1]
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate((p / w)[order] * remaining), 1.0)
    return adjusted


def frequent(before: FloatArray, now: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Counts of levels, with those in one cell that are rare in both samples together.

    Which levels are listed depends on their training rows, and such a choice looks like a shift.
    Of a frequent level, the training rows are almost never so few that it is not listed.
    """
    share = before.sum() / max(before.sum() + now.sum(), 1.0)
    few = binom.cdf(fewest_rows(before.sum()) - 1, before + now, share) > UNLISTED
    few[-1] = True
    return np.append(before[~few], before[few].sum()), np.append(now[~few], now[few].sum())


def stability(a: FloatArray, b: FloatArray) -> float:
    """Population stability index, with half a row added to every cell."""
    if a.sum() <= 0 or b.sum() <= 0:
        return float("nan")
    p, q = (a + 0.5) / (a + 0.5).sum(), (b + 0.5) / (b + 0.5).sum()
    return float(np.sum((q - p) * np.log(q / p)))


def p_value_worse(scores: FloatArray, weight: FloatArray, own: FloatArray) -> float:
    """Whether scores of new rows are larger than those of held-out rows, which have weights."""
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, SCORE_BINS + 1)[1:-1]))
    before = np.bincount(np.searchsorted(edges, scores), weight, len(edges) + 1)
    now = np.bincount(np.searchsorted(edges, own), minlength=len(edges) + 1)
    return p_value_location(before.astype(float), now.astype(float), larger=True)
