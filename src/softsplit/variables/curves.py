"""Knots at which the effect of a number may bend.

A number x with the knots k_1 < ... < k_m has 1 + m columns, its value and one hinge per knot,

    x,   max(x - k_1, 0), ..., max(x - k_m, 0),

so that a split sees any function of x that is continuous and linear between knots: the slope before
all knots is the coefficient of x, and at each knot the slope changes by the coefficient of its
hinge. One coefficient is enough for an effect that is straight, or that begins at a knot; there is
no second basis such as min(x, k) = x - max(x - k, 0), since elimination removes single
coefficients and keeps all of several dependent ones. The columns of a variable are selected
together (``column_groups``), and each hinge costs a coefficient.

Knots are quantiles of the training values, rounded to as few digits as leave nearly all rows on
their side, so that a hinge can be computed by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import NamedTuple

import numpy as np

from softsplit.support.arrays import FloatArray

# A number with fewer distinct values has no knots: they would tell single values apart.
FEWEST_VALUES = 6

# A smallest or largest value with more than this share of the rows, such as a zero that means
# "none", is left out of the quantiles: a knot there would be none.
ATOM = 0.25

# Largest share of the rows that rounding may put on the other side of a knot.
MOVED_SHARE = 0.03

# Digits of a knot at most: doubles have no more.
DIGITS = 15


class Ordered(NamedTuple):
    """Values in ascending order, and the weight of each with all before it."""

    values: FloatArray
    below: FloatArray

    @classmethod
    def of(cls, numbers: FloatArray, weight: FloatArray) -> Ordered:
        """Order ``numbers``; those of weight zero do not count."""
        if np.all(weight == 1.0):
            values = np.sort(numbers)
            return cls(values, np.arange(1.0, len(values) + 1.0))
        order = np.argsort(numbers, kind="stable")
        order = order[weight[order] > 0]
        return cls(numbers[order], np.cumsum(weight[order]))

    def quantile(self, share: float) -> float:
        """Return the weighted quantile: a row of weight two counts as two rows."""
        at = share * self.below[-1]
        lower = self.values[np.searchsorted(self.below, at * (1 - 1e-12))]
        upper = self.values[np.searchsorted(self.below, at * (1 + 1e-12))]
        return float(lower / 2 + upper / 2)

    def between(self, one: float, other: float) -> float:
        """Return the share of the weight strictly between two values."""
        ends = (
            self.values.searchsorted(min(one, other), "right"),
            self.values.searchsorted(max(one, other)),
        )
        before = [self.below[end - 1] if end else 0.0 for end in ends]
        return max(0.0, float(before[1] - before[0])) / float(self.below[-1])

    def without_atoms(self) -> Ordered:
        """Return the values without a smallest and a largest one that hold many rows."""
        values, below = self.values, self.below
        total = below[-1]
        first = int(values.searchsorted(values[0], "right"))
        last = int(values.searchsorted(values[-1]))
        start = first if below[first - 1] > ATOM * total else 0
        end = last if last and total - below[last - 1] > ATOM * total else len(values)
        if start >= end:
            return Ordered(values[:0], below[:0])
        return Ordered(values[start:end], below[start:end] - (below[start - 1] if start else 0.0))

    @property
    def n_distinct(self) -> int:
        changes = self.values[1:] != self.values[:-1]
        return int(np.count_nonzero(changes)) + 1 if len(self.values) else 0


def median(numbers: FloatArray, weight: FloatArray) -> float:
    """Return the weighted median: a row of weight two counts as two rows."""
    return Ordered.of(numbers, weight).quantile(0.5)


def learn_knots(numbers: FloatArray, weight: FloatArray, n_knots: int) -> tuple[float, ...]:
    """Return at most ``n_knots`` knots of a number, in ascending order.

    ``numbers`` are its known values in the training rows and ``weight`` the weights of these.
    """
    return knots_of(Ordered.of(numbers, weight), n_knots)


def knots_of(column: Ordered, n_knots: int) -> tuple[float, ...]:
    """Return at most ``n_knots`` knots of a column."""
    if n_knots < 1 or column.n_distinct < FEWEST_VALUES:
        return ()
    # Quantiles of what is left without a value such as "none" that many rows share.
    inner = column.without_atoms()
    if inner.n_distinct < FEWEST_VALUES:
        return ()
    low, high = float(column.values[0]), float(column.values[-1])
    shares = (np.arange(n_knots) + 1.0) / (n_knots + 1.0)
    knots = {_readable(inner, inner.quantile(share), high - low) for share in shares}
    return tuple(sorted(knot for knot in knots if low < knot < high))


def _readable(column: Ordered, value: float, span: float) -> float:
    """Return ``value`` with the fewest digits that leave nearly all rows on their side."""
    place = floor(log10(span)) if 0 < span < np.inf else 0
    for digits in range(DIGITS):
        rounded = round(value, digits - place)
        if np.isfinite(rounded) and column.between(value, rounded) <= MOVED_SHARE:
            return rounded + 0.0  # no negative zero
    return value


def knot_text(knot: float) -> str:
    """Return a knot as text, with all its digits."""
    return repr(knot).removesuffix(".0")


def hinge_names(name: str, knots: Sequence[float]) -> tuple[str, ...]:
    """Return the names of the hinges of a number, as shown to users."""
    signs = ["-" if knot > 0 else "+" for knot in knots]
    return tuple(
        f"max({name} {sign} {knot_text(abs(knot))}, 0)" if knot else f"max({name}, 0)"
        for knot, sign in zip(knots, signs, strict=True)
    )


def hinges(values: FloatArray, knots: Sequence[float]) -> FloatArray:
    """Return max(x - knot, 0) for all knots, shape (n_values, n_knots)."""
    at = np.array(knots, dtype=values.dtype)
    excess: FloatArray = np.subtract(values[:, None], at)
    return np.maximum(excess, 0.0, out=excess)


def slopes(coefficients: FloatArray) -> FloatArray:
    """Return the slope before the first knot, between knots, and after the last one.

    ``coefficients`` are those of the value and of its hinges, shape (1 + n_knots, ...).
    """
    return np.cumsum(coefficients, axis=0)
