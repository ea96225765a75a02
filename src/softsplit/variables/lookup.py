"""A look-up: whole points for each value of a variable, as a person reads them off a small table.

form    points of a value x                                         printed
steps   points[i] where edges[i-1] <= x < edges[i]                  below 25: 0 | from 25: 1
levels  points[l] for the level l, the last for those not listed    red: 2 | other: 0
slopes  (slopes[0] x + sum_j (slopes[j] - slopes[j-1]) max(x - knots[j-1], 0)) / unit
                                                                    3 per 10, from 40: 1 per 10

A missing value has the points ``unknown`` where training had missing values, else those of the
value that the variable imputes. Steps of equal width and height are printed as counts: "2 for each
full 20 above 60, at most 8".
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray

# Edges that are computed from a start and a width keep so many digits.
EDGE_DIGITS = 12

# Digits that hold sums of any two floats.
EXACT = Context(prec=1200)

# Slopes are printed per 1 where none is larger.
MOST_PER_ONE = 20

# Fewer even steps are not printed as counts.
LEAST_STEPS = 3


# Digits of training values that count, relative to the largest: the others are errors of scaling.
DIGITS = 13


class Counts(NamedTuple):
    """Steps of equal width and height: ``each`` for each full ``width`` above ``start``."""

    start: float
    width: float
    each: int
    steps: int


@dataclass(frozen=True)
class Lookup:
    """Whole points for the values of one variable; see the module.

    Attributes
    ----------
    points : tuple of int
        For each step, or for each level.
    edges : tuple of float
        For steps: where each but the first begins, in ascending order.
    slopes, knots : tuple of int, tuple of float
        For slopes: points per ``unit`` before the first knot, and from each knot on.
    unit : float
    unknown : int, optional
        Points of a missing value, if training had missing values.
    """

    points: tuple[int, ...] = ()
    edges: tuple[float, ...] = ()
    slopes: tuple[int, ...] = ()
    knots: tuple[float, ...] = ()
    unit: float = 1.0
    unknown: int | None = None

    def values(self, numbers: FloatArray, missing: NDArray[np.bool_] | None = None) -> FloatArray:
        """Return the points of ``numbers``: values, or positions of levels; none is NaN."""
        if self.slopes:
            points = float(self.slopes[0]) * numbers
            for change, knot in zip(np.diff(self.slopes), self.knots, strict=True):
                if change:
                    points += change * np.maximum(numbers - knot, 0.0)
            points /= self.unit
        elif len(self.points) == 1:
            points = np.full(len(numbers), float(self.points[0]))
        elif self.edges:  # a few comparisons take less time than a search
            whole = np.full(len(numbers), self.points[0], dtype=np.int32)
            for edge, rise in zip(self.edges, np.diff(self.points).astype(np.int32), strict=True):
                whole += (numbers >= edge).view(np.int8) * rise
            points = whole.astype(float)
        else:
            points = np.array(self.points, dtype=float)[np.asarray(numbers, dtype=np.intp)]
        if self.unknown is None or missing is None:
            return points
        return np.where(missing, float(self.unknown), points)

    @property
    def counts(self) -> Counts | None:
        """Steps of equal width and height; None for others, and for few steps."""
        if len(self.edges) < LEAST_STEPS:
            return None
        width = self.edges[1] - self.edges[0]
        heights = np.diff(self.points)
        even = np.allclose(np.diff(self.edges), width, rtol=1e-9)
        if not even or np.any(heights != heights[0]) or not heights[0]:
            return None
        width = rounded(width)
        return Counts(decimal(self.edges[0], -1, width), width, int(heights[0]), len(heights))

    @property
    def changes(self) -> tuple[int, int]:
        """The largest rise of points with the value, and the deepest fall; 0 without one."""
        changes = np.array(self.slopes) if self.slopes else np.diff(self.points)
        return int(max((0, *changes))), int(min((0, *changes)))

    @property
    def direction(self) -> int:
        """Return 1 where points only grow with the value, -1 where they only fall, else 0."""
        rise, fall = self.changes
        return int(fall == 0) - int(rise == 0)


class LookupColumn(NamedTuple):
    """The look-up of a number, the column of its value, and that which says where it is missing."""

    lookup: Lookup
    value: int
    unknown: int | None


def counted_edges(start: float, width: float, steps: int) -> tuple[float, ...]:
    """Return where the full widths above ``start`` end."""
    return tuple(decimal(start, k, width) for k in range(1, steps + 1))


def decimal(start: float, steps: int, width: float) -> float:
    """Return ``start + steps * width`` of the decimal numbers as written: -0.2 + 2 x 0.1 is 0."""
    first, each = Decimal(repr(float(start))), Decimal(repr(float(width)))
    return float(EXACT.fma(each, steps, first))


def readable_slopes(slopes: tuple[int, ...], unit: float) -> tuple[tuple[int, ...], float]:
    """Return the same slopes per 1 where they are small whole numbers, else without a common factor
    if their unit stays round."""
    ones = [Fraction(n) / Fraction(repr(unit)) for n in slopes]
    if all(n.denominator == 1 and abs(n) <= MOST_PER_ONE for n in ones):
        return tuple(map(int, ones)), 1.0
    common = gcd(*slopes)
    smaller = rounded(unit / max(common, 1))
    if common > 1 and f"{smaller:.0e}"[0] in "125" and float(f"{smaller:.0e}") == smaller:
        return tuple(n // common for n in slopes), smaller
    return slopes, unit


def threshold_of(lookup: Lookup, limit: float) -> Fraction | None:
    """Return the value x beyond which slopes give more than ``limit`` points.

    x = knot + (limit - points at the knot) unit / slope on the piece that crosses the limit; None
    if points do not only grow or only fall, or never cross it.
    """
    sign, unit = lookup.direction, Fraction(repr(lookup.unit))
    if not sign or not lookup.slopes:
        return None
    goal, rates = sign * Fraction(repr(limit)), [sign * n / unit for n in lookup.slopes]
    knots = [Fraction(repr(knot)) for knot in lookup.knots]
    start = knots[0] if knots else Fraction(0)
    height = rates[0] * start
    if rates[0] > 0 and (not knots or goal < height or (goal == height and sign < 0)):
        return goal / rates[0]
    for rate, knot, end in zip(rates[1:], knots, [*knots[1:], None], strict=True):
        top = None if end is None else height + rate * (end - knot)
        inside = top is None or goal < top or (goal == top and sign < 0)
        if rate > 0 and goal >= height and inside:
            return knot + (goal - height) / rate
        height = height if top is None else top
    return None


def rounded(number: float) -> float:
    """Return the decimal number that is meant: without the errors of sums."""
    return float(f"{number:.{EDGE_DIGITS}g}")
