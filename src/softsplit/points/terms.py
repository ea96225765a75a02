"""Terms of a question: the best look-ups of a variable under a quadratic model of the likelihood.

With first and second derivatives g, h of the rows at the current scores, and the points T of a
variable in place of T0, f changes by

    sum_rows g d + h d^2 / 2,    d = slope (T - T0)
  = sum_cells W/2 (T - target)^2 + constant

    W = slope^2 sum h,    target = T0 - sum g / (slope sum h)

so that the best table is a weighted fit of whole numbers, plus prices:

steps, levels   dynamic programming over cells in the order of values, of targets (``fit_blocks``)
counts          n min(k, m) + constant in closed form for every grid and every m (``fit_counts``)
slopes          the slopes of the soft tree in units 1, 2 or 5 times 10^k, rounded (``slope_term``)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.points.cells import CellColumn
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled_plainly
from softsplit.variables.lookup import LEAST_STEPS, Lookup, counted_edges, rounded


class Prices(NamedTuple):
    """What must be gained, in units of log-likelihood, for what a reader has to read.

    Attributes
    ----------
    look_up : float
        Of any look-up.
    block : float
        Of each step, or of each group of levels with equal points, of which the first costs half.
        Counts cost as much as two.
    counted : float
        Of counts of more than one point each.
    slope, segment : float
        Of slopes, and of each further one.
    unknown : float
        Of points of their own for missing values.
    point : float
        Of each point between the lowest and the highest; slopes have none.
    most_points : int
        Largest size of the points of a step, before the lowest become 0, or per unit of a slope.
    most_blocks, most_terms : int
        Most steps of a table, and look-ups of a question.
    """

    look_up: float = 0.5
    block: float = 0.5
    counted: float = 0.5
    slope: float = 2.0
    segment: float = 0.5
    unknown: float = 0.3
    point: float = 0.05
    most_points: int = 10
    most_blocks: int = 4
    most_terms: int = 8


class Term(NamedTuple):
    """A look-up in a question: its points for each row and (in the mean) each cell, its price."""

    lookup: Lookup
    points: FloatArray
    cells: FloatArray
    price: float


# Base lines between whole points that a table may have: the centre of the gate takes them up.
OFFSETS = (0.0, 0.25, 0.5, 0.75)

# Slopes have at least so many points per unit where they are steepest; a larger unit, in which
# whole numbers are finer, must bring so much likelihood.
FEWEST_POINTS = 0.6
FINER = 0.5

LEAST_WEIGHT = 1e-12


def table_terms(
    column: CellColumn, first: FloatArray, second: FloatArray, cells: FloatArray, slope: float,
    prices: Prices,
) -> list[tuple[float, Term]]:  # fmt: skip
    """Return the best table of each form with f + prices under the quadratic model, best first.

    ``first`` and ``second`` (n_cells + 1,) are sums of derivatives, ``cells`` the current points.
    """
    n = column.n_cells
    weight = np.maximum(second * slope * slope, LEAST_WEIGHT)
    target = cells - np.where(
        second > LEAST_WEIGHT, first / (np.maximum(second, LEAST_WEIGHT) * slope), 0.0
    )
    # 1. Steps over values, or levels by their targets.
    order = np.argsort(target[:n], kind="stable") if column.has_levels else np.arange(n)
    fits = [
        fit_blocks(
            target[order], weight[order], column.cuts, prices.most_blocks, prices.block, offset,
            prices.most_points,
        )
        for offset in OFFSETS
    ]  # fmt: skip
    best = int(np.argmin([cost for cost, _ in fits]))
    cost, points = fits[best][0], np.empty(n)
    points[order] = fits[best][1]
    tables = [(cost, _steps(column, points), OFFSETS[best])]
    # 2. Counts.
    grid, steps, each, cost = fit_counts(column.counts, target[:n], weight[:n], prices.most_points)
    if grid >= 0:
        start, width = column.grids[grid]
        edges = counted_edges(start, width, steps)
        lookup = Lookup(points=tuple(each * k for k in range(steps + 1)), edges=edges)
        line = each * np.minimum(column.counts[grid], steps)
        offset = float(np.average(target[:n] - line, weights=weight[:n]))
        tables.append((cost, lookup, offset))
    # 3. Points of missing values, and prices.
    terms = []
    for cost, lookup, offset in tables:
        if column.has_missing:
            most = prices.most_points
            unknown = int(np.clip(np.round(target[n] - offset), -most, most))
            cost += 0.5 * weight[n] * (unknown + offset - target[n]) ** 2
            lookup = replace(lookup, unknown=unknown)
        term = term_of(column, lookup, prices)
        terms.append((cost + term.price, term))
    return sorted(terms, key=lambda pair: pair[0])


def _steps(column: CellColumn, points: FloatArray) -> Lookup:
    """The look-up of a table over cells; cells of equal points are one step."""
    whole = tuple(int(p) for p in points)
    if column.has_levels:
        return Lookup(points=whole)
    begins = [j for j in range(1, len(whole)) if whole[j] != whole[j - 1]]
    edges = tuple(float(column.edges[j - 1]) for j in begins)
    return Lookup(points=(whole[0], *(whole[j] for j in begins)), edges=edges)


def term_of(column: CellColumn, lookup: Lookup, prices: Prices) -> Term:
    """Return the term of a look-up with its price."""
    points = lookup.values(column.numbers, column.missing)
    counts = np.bincount(column.codes, minlength=column.n_cells + 1)
    cells = column.sums(points) / np.maximum(counts, 1)
    if not lookup.slopes:  # cells without rows have points as well
        begins = np.concatenate([[-np.inf], column.edges])
        places = np.arange(column.n_cells, dtype=float) if column.has_levels else begins
        cells[:-1] = replace(lookup, unknown=None).values(places, np.zeros(len(places), dtype=bool))
    if lookup.unknown is not None:
        cells[-1] = lookup.unknown
    return Term(lookup, points, cells, _price(column, lookup, prices))


def _price(column: CellColumn, lookup: Lookup, prices: Prices) -> float:
    """What a look-up costs a reader."""
    price = prices.look_up + prices.unknown * (lookup.unknown is not None)
    if lookup.slopes:
        return price + prices.slope + prices.segment * np.count_nonzero(np.diff(lookup.slopes))
    price += prices.point * float(np.ptp(lookup.all_points))
    counts = lookup.counts
    if counts is not None:
        return price + 2 * prices.block + (abs(counts.each) > 1) * prices.counted
    blocks = len(set(lookup.points)) if column.has_levels else len(lookup.edges) + 1
    return price + prices.block * (blocks - 0.5 * column.has_levels)


def slope_term(
    column: CellColumn, knots: Sequence[float], coefficients: FloatArray, unknown: float,
    slope: float, second: FloatArray, prices: Prices,
) -> Term | None:  # fmt: skip
    """Return the effect of a number in a soft tree with whole slopes; None if none is near.

    The effect is coefficients[0] x + sum_j coefficients[j] max(x - knots[j-1], 0), and ``unknown``
    more than at the imputed value where x is missing; ``second`` (n_rows,) weighs its errors.
    """
    exact = np.cumsum(coefficients) / slope
    steepest = float(np.max(np.abs(exact)))
    if steepest == 0.0:
        return None
    effect = Lookup(slopes=tuple(exact), knots=tuple(knots)).values(column.numbers, column.missing)
    least, best = np.inf, None
    power = int(np.floor(np.log10(prices.most_points / steepest))) - 2
    units = [rounded(m * 10.0**e) for e in range(power, power + 4) for m in (1, 2, 5)]
    for unit in units:
        if not FEWEST_POINTS <= steepest * unit <= prices.most_points + 0.5:
            continue
        whole = tuple(int(s) for s in np.round(exact * unit))
        lookup = Lookup(slopes=whole, knots=tuple(knots), unit=unit)
        errors = np.where(
            column.missing, 0.0, lookup.values(column.numbers, column.missing) - effect
        )
        errors -= np.average(errors, weights=second + LEAST_WEIGHT)
        lost = 0.5 * slope * slope * float(second @ errors**2)
        if lost < least - FINER:
            least, best = lost, lookup
    if best is None or not any(best.slopes):
        return None
    if column.has_missing:
        imputed = best.values(np.array([column.variable.middle]), np.zeros(1, dtype=bool))[0]
        best = replace(best, unknown=int(np.round(imputed + unknown / slope)))
    return term_of(column, best, prices)


@compiled_plainly
def fit_blocks(
    target: FloatArray,
    weight: FloatArray,
    cuts: NDArray[np.bool_],
    most_blocks: int,
    price: float,
    offset: float,
    most_points: int,
) -> tuple[float, FloatArray]:
    """Return the least cost and whole points of ordered cells: equal within at most so many blocks.

    cost_mj = min over i < j of cost_(m-1)i + loss of a block over the cells i .. j-1, whose points
    are the mean target less ``offset``, rounded; cell i > 0 begins a block only where ``cuts[i]``.
    """
    n = len(target)
    w, wt, wtt = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    for j in range(n):
        w[j + 1] = w[j] + weight[j]
        wt[j + 1] = wt[j] + weight[j] * target[j]
        wtt[j + 1] = wtt[j] + weight[j] * target[j] * target[j]
    cost = np.full((most_blocks + 1, n + 1), np.inf)
    begin = np.zeros((most_blocks + 1, n + 1), np.int64)
    height = np.zeros((most_blocks + 1, n + 1))
    cost[0, 0] = 0.0
    for m in range(1, most_blocks + 1):
        for j in range(1, n + 1):
            if j < n and not cuts[j]:
                continue
            for i in range(j):
                if not np.isfinite(cost[m - 1, i]):
                    continue
                points = np.round((wt[j] - wt[i]) / (w[j] - w[i]) - offset)
                points = min(float(most_points), max(-float(most_points), points))
                value = points + offset
                loss = 0.5 * (wtt[j] - wtt[i]) - value * (wt[j] - wt[i])
                loss += 0.5 * value * value * (w[j] - w[i])
                total = cost[m - 1, i] + loss + (price if m > 1 else 0.0)
                if total < cost[m, j]:
                    cost[m, j], begin[m, j], height[m, j] = total, i, points
    blocks = 1
    for m in range(2, most_blocks + 1):
        if cost[m, n] < cost[blocks, n]:
            blocks = m
    # The price of blocks is that of a term, which is counted there.
    least, points_of = cost[blocks, n] - (blocks - 1) * price, np.zeros(n)
    j = n
    for m in range(blocks, 0, -1):
        points_of[begin[m, j] : j] = height[m, j]
        j = begin[m, j]
    return least, points_of


@compiled_plainly
def fit_counts(
    counts: NDArray[np.int64], target: FloatArray, weight: FloatArray, most_points: int
) -> tuple[int, int, int, float]:
    """Return grid, steps m, points n per step and the cost of the best n min(k, m) + constant.

    n = cov(k, target) / var(k), rounded; the grid is -1 where no n differs from 0.
    """
    best_grid, best_steps, best_each, least = -1, 0, 0, np.inf
    total = weight.sum()
    mean = (weight * target).sum() / total
    whole = 0.5 * (weight * (target - mean) ** 2).sum()
    for grid in range(counts.shape[0]):
        steps = counts[grid].max()
        while steps >= LEAST_STEPS:
            wk, wkk, wkt = 0.0, 0.0, 0.0
            for j in range(counts.shape[1]):
                k = min(counts[grid, j], steps)
                wk += weight[j] * k
                wkk += weight[j] * k * k
                wkt += weight[j] * k * (target[j] - mean)
            spread = wkk - wk * wk / total
            if spread > 1e-12:
                each = min(float(most_points), max(-float(most_points), np.round(wkt / spread)))
                cost = whole - each * wkt + 0.5 * each * each * spread
                if each != 0.0 and cost < least:
                    best_grid, best_steps, best_each, least = grid, steps, int(each), cost
            steps = steps - 1 if steps <= 12 else int(steps * 0.8)
    return best_grid, best_steps, best_each, least
