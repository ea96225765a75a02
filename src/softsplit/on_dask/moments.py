"""What is known of a table without its rows: classes, weights, ranges, means and deviations.

Each part gives its own, and two add up to those of both. For a class with weight w, mean m and sum
of squared deviations s, in one part and in another,

    w = w1 + w2      m = m1 + (m2 - m1) w2 / w      s = s1 + s2 + (m2 - m1)^2 w1 w2 / w

which loses no digits where means are large beside deviations. The classes of a table, with
their weights, means and squares, add up to those of all rows in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.samples import Samples
from softsplit.support.arrays import FloatArray
from softsplit.tree.scaling import DEVIATIONS, SMALLEST_SPAN, LinearScaling

Moment = tuple[FloatArray, FloatArray, FloatArray]
"""Weight, mean and squares, which broadcast against one another."""


@dataclass(frozen=True)
class Moments:
    """Of rows that are grouped by class.

    Attributes
    ----------
    classes : array of shape (n_classes,)
    counts : array of int, shape (n_classes,)
        Rows, equal ones of a part counted once.
    totals : array of shape (n_classes,)
        Sums of weights.
    low, high : arrays of shape (n_features,)
    whole : array of bool, shape (n_features,)
        Whether all values are integers.
    means, squares : arrays of shape (n_classes, n_features)
    """

    classes: NDArray[Any]
    counts: NDArray[np.int64]
    totals: FloatArray
    low: FloatArray
    high: FloatArray
    whole: NDArray[np.bool_]
    means: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, samples: Samples, classes: NDArray[Any]) -> Moments:
        """Those of the rows of a part, every class of which has rows."""
        means, squares = np.empty((2, len(classes), samples.n_features))
        whole = np.array([bool(np.all(line == np.rint(line))) for line in samples.features])
        for k in range(len(classes)):
            one = samples.of_class(k)
            shares = one.weights / one.weights.sum()
            means[k] = one.features @ shares
            for j, line in enumerate(one.features):  # no copy of all of them
                squares[k, j] = one.weights @ (line - means[k, j]) ** 2
        return cls(
            classes, np.diff(samples.starts), samples.class_totals,
            samples.features.min(axis=1), samples.features.max(axis=1), whole, means, squares,
        )  # fmt: skip

    @classmethod
    def added(cls, parts: Iterable[Moments]) -> Moments:
        """Those of several parts together, in this order."""
        return reduce(cls._plus, parts)

    def _plus(self, other: Moments) -> Moments:
        classes = np.unique(np.concatenate([self.classes, other.classes]))
        one, two = self.spread(classes), other.spread(classes)
        totals, means, squares = _together(one, two)
        counts = np.zeros(len(classes), dtype=np.int64)
        for part in (self, other):
            counts[np.searchsorted(classes, part.classes)] += part.counts
        return Moments(
            classes, counts, totals[:, 0], np.minimum(self.low, other.low),
            np.maximum(self.high, other.high), self.whole & other.whole, means, squares,
        )  # fmt: skip

    def spread(self, classes: NDArray[Any]) -> Moment:
        """Weights, means and squares by the classes of a larger table."""
        at, shape = np.searchsorted(classes, self.classes), (len(classes), len(self.low))
        totals, means, squares = np.zeros((len(classes), 1)), np.zeros(shape), np.zeros(shape)
        totals[at, 0], means[at], squares[at] = self.totals, self.means, self.squares
        return totals, means, squares

    def mean(self, factors: FloatArray | None = None) -> FloatArray:
        """Mean of each feature, with factors on the weights of the classes."""
        weights = self.totals if factors is None else self.totals * factors
        return np.asarray(weights @ self.means / weights.sum())

    @property
    def deviations(self) -> FloatArray:
        """Standard deviation of each feature."""
        each = zip(self.totals, self.means, self.squares, strict=True)
        total, _, squares = reduce(_together, each)
        return np.sqrt(squares / total)

    def minmax(self) -> LinearScaling:
        """As ``LinearScaling.minmax`` of all rows."""
        span = self.high - self.low
        return LinearScaling(self.low, np.where(span > SMALLEST_SPAN, span, np.inf))

    def standard(self) -> LinearScaling:
        """As ``LinearScaling.standard`` of all rows, but for the last digits."""
        varies = np.isfinite(self.minmax().span)
        deviations = np.where(varies, self.deviations, 0.0)
        low = np.where(varies, self.mean() - 0.5 * DEVIATIONS * deviations, self.low)
        span = DEVIATIONS * deviations
        return LinearScaling(low, np.where(span > SMALLEST_SPAN, span, np.inf), "standard")


def _together(one: Moment, two: Moment) -> Moment:
    """The formulas above; of two weights one may be zero."""
    (w1, m1, s1), (w2, m2, s2) = one, two
    w = np.where(w1 + w2 > 0, w1 + w2, 1.0)
    apart = m2 - m1
    mean = np.where(w1 > 0, m1 + apart * (w2 / w), m2)
    both = (w1 > 0) & (w2 > 0)
    return w1 + w2, mean, s1 + s2 + np.where(both, apart**2 * (w1 * (w2 / w)), 0.0)
