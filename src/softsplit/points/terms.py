"""Terms of a question: the best look-ups of a variable under a quadratic model of the likelihood.

With first and second derivatives g, h of the rows at the current scores, and the points T of a
variable in place of T0, f changes by

    sum_rows g d + h d^2 / 2,    d = slope (T - T0)
  = sum_cells W/2 (T - target)^2 + constant

    W = slope^2 sum h,    target = T0 - sum g / (slope sum h)

so that the best table is a weighted fit of whole numbers and of a base line between them, which the
centre of the gate takes up, plus prices:

steps, levels   dynamic programming over ranges, or levels by their targets (``fit_steps``)
counts          n min(max(k - a, 0), m) in closed form for every width, a and m (``fit_counts``)
slopes          the slopes of the soft tree in units 1, 2 or 5 times 10^k, rounded (``slope_term``)

The points of tables may be asked to grow with the value, or to fall (``direction`` 1 or -1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from softsplit.points.cells import CellColumn
from softsplit.points.fits import fit_counts, fit_steps
from softsplit.support.arrays import FloatArray
from softsplit.variables.lookup import LEAST_STEPS, Lookup, rounded

# Look-ups of a question that are read at a glance.
READABLE = 4


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
        Most points of a step or level, of each counted step, or per unit of a slope.
    most_blocks, most_terms : int
        Most steps of a table, and look-ups of a question.
    beyond : float
        Of each look-up of a question beyond the first ``READABLE``.
    """

    look_up: float = 0.25
    block: float = 0.25
    counted: float = 0.25
    slope: float = 4.0
    segment: float = 1.0
    unknown: float = 0.3
    point: float = 0.05
    most_points: int = 10
    most_blocks: int = 4
    most_terms: int = 8
    beyond: float = 1.0

    def times(self, factor: float) -> Prices:
        """Return all prices times a factor; numbers of points, blocks and terms stay."""
        kept = ("most_points", "most_blocks", "most_terms")
        return Prices(**{n: v if n in kept else factor * v for n, v in self._asdict().items()})

    def of_length(self, n_terms: int) -> float:
        """Return the price of so many look-ups in one question, beside their own."""
        return self.beyond * max(0, n_terms - READABLE)


@dataclass(frozen=True)
class Term:
    """A look-up in a question: points of each cell (those of slopes in the mean), and its price.

    ``slopes`` is the look-up itself where it has slopes.
    """

    column: CellColumn
    cells: FloatArray
    price: float
    slopes: Lookup | None = None

    @cached_property
    def points(self) -> FloatArray:
        """Points of every row, (n_rows,)."""
        if self.slopes is not None:
            return self.slopes.values(self.column.numbers, self.column.missing)
        return self.cells[self.column.codes]

    @cached_property
    def variance(self) -> float:
        """The variance of the points of the rows."""
        return float(np.var(self.points))

    @cached_property
    def lookup(self) -> Lookup:
        """The look-up; neighbouring cells of equal points are one step."""
        if self.slopes is not None:
            return self.slopes
        *known, last = (int(p) for p in self.cells)
        unknown = last if self.column.has_missing else None
        if self.column.has_levels:
            groups = range(len(known)) if self.column.groups is None else self.column.groups
            return Lookup(points=tuple(known[group] for group in groups), unknown=unknown)
        begins = [j for j in range(1, len(known)) if known[j] != known[j - 1]]
        edges = tuple(float(self.column.edges[j - 1]) for j in begins)
        return Lookup((known[0], *(known[j] for j in begins)), edges, unknown=unknown)

    @property
    def varies(self) -> bool:
        """Whether not all rows have the same points."""
        return bool(np.ptp(self.cells[self.column.sizes > 0]) > 0)


class Target(NamedTuple):
    """The quadratic model of a variable: target and weight W of each cell, (n_cells + 1,)."""

    points: FloatArray
    weight: FloatArray

    def cost(self, cells: FloatArray) -> float:
        """What f loses by these points, with the best base line, against the targets."""
        errors = self.points - cells
        mean = float(errors @ self.weight) / float(self.weight.sum())
        return 0.5 * float(self.weight @ (errors - mean) ** 2)


# Slopes have at least so many points per unit where they are steepest; a larger unit, in which
# whole numbers are finer, must bring so much likelihood.
FEWEST_POINTS = 0.6
FINER = 0.5

LEAST_WEIGHT = 1e-12


def target_of(first: FloatArray, second: FloatArray, cells: FloatArray, slope: float) -> Target:
    """Return the model from sums of derivatives by cell and the points that the cells have now."""
    second = np.maximum(second, LEAST_WEIGHT)
    return Target(cells - first / (second * slope), second * (slope * slope))


def table_terms(
    column: CellColumn, target: Target, prices: Prices, direction: int = 0
) -> list[Term]:
    """Return the best table of each form; their lowest points, but of missing values, are 0."""
    n, most = column.n_cells, prices.most_points
    points, weight = target.points[:n], target.weight[:n]
    price = prices.look_up + prices.unknown * column.has_missing
    # 1. Steps over values, or levels by their targets.
    order = np.argsort(points, kind="stable") if column.has_levels else slice(None)
    steps, blocks = fit_steps(
        points[order], weight[order], column.segments, prices.most_blocks, prices.block, most,
        0 if column.has_levels else direction,
    )  # fmt: skip
    cells = np.empty(n)
    cells[order] = steps
    forms = prices.block * (blocks - 0.5 * column.has_levels)
    tables = [(cells, min(0.0, steps.max() - most), forms)]
    # 2. Counts.
    width, skipped, steps, each = fit_counts(
        column.counts, points, weight, most, prices.point, prices.counted, direction,
        LEAST_STEPS,
    )  # fmt: skip
    if each:
        cells = each * np.clip(column.counts[width] - float(skipped), 0.0, steps)
        cells -= cells.min()
        tables.append((cells, 0.0, 2 * prices.block + prices.counted * (abs(each) > 1)))
    # 3. Points of missing values, and prices of points.
    terms = []
    for cells, lowest, forms in tables:
        base, unknown = float((points - cells) @ weight) / float(weight.sum()), 0.0
        if column.has_missing:
            unknown = np.clip(np.round(target.points[n] - base), lowest, max(cells.max(), most))
        cells = np.append(cells, unknown)
        terms.append(Term(column, cells, price + forms + prices.point * float(np.ptp(cells))))
    return terms


def slope_term(
    column: CellColumn, knots: Sequence[float], coefficients: FloatArray, unknown: float,
    slope: float, second: FloatArray, prices: Prices, direction: int = 0,
) -> Term | None:  # fmt: skip
    """Return the effect of a number in a soft tree with whole slopes; None if none is near.

    The effect is coefficients[0] x + sum_j coefficients[j] max(x - knots[j-1], 0), and ``unknown``
    more than at the imputed value where x is missing; ``second`` (n_cells + 1,) weighs its errors.
    """
    exact = np.cumsum(coefficients) / slope
    steepest = float(np.max(np.abs(exact)))
    if steepest == 0.0:
        return None
    if direction:
        exact = direction * np.maximum(direction * exact, 0.0)
    centres, weight = column.centres[:-1], second[:-1] + LEAST_WEIGHT
    bends = np.array([centres, *(np.maximum(centres - knot, 0.0) for knot in knots)])
    least, best = np.inf, -1
    units = round_units(int(np.floor(np.log10(prices.most_points / steepest))) - 2)
    largest = steepest * units
    units = units[(largest >= FEWEST_POINTS) & (largest <= prices.most_points + 0.5)]
    whole = np.round(np.outer(units, exact))
    errors = np.diff(whole / units[:, None] - exact, prepend=0.0, axis=1) @ bends
    errors -= (errors @ weight / weight.sum())[:, None]
    lost = np.where(np.any(whole, axis=1), 0.5 * slope * slope * (errors**2 @ weight), np.inf)
    for n, loss in enumerate(lost.tolist()):
        if loss < least - FINER:
            least, best = loss, n
    if best < 0:
        return None
    points = tuple(int(s) for s in whole[best])
    lookup = Lookup((), (), points, tuple(knots), float(units[best]))
    if column.has_missing:
        imputed = lookup.values(np.array([column.variable.middle]), np.zeros(1, dtype=bool))[0]
        lookup = replace(lookup, unknown=int(np.round(imputed + unknown / slope)))
    price = prices.look_up + prices.unknown * column.has_missing + prices.slope
    price += prices.segment * np.count_nonzero(np.diff(lookup.slopes))
    cells = column.means(lookup.values(column.numbers, column.missing))
    return Term(column, cells, price, lookup)


@lru_cache(maxsize=64)
def round_units(power: int) -> FloatArray:
    """Return 1, 2 and 5 times four powers of ten from 10**power on."""
    return np.array([rounded(m * 10.0**e) for e in range(power, power + 4) for m in (1, 2, 5)])
