"""Scalings of features: from original units to the units of training, and back.

A scaling maps each feature by a nondecreasing function to scaled units, in which typical values lie
in [0, 1]. Weights and thresholds bounded by [-1, 1], and the steepness, refer to scaled units. A
constant column becomes 0.

minmax     (x - min) / (max - min), as in the paper. An outlier compresses all other values.
standard   1/2 + (x - mean) / (6 deviations): linear too, but determined by all values. Values
           further than three standard deviations from the mean lie outside [0, 1].
quantile   the rank among the training values, from 0 for the smallest to 1 for the largest, linear
           in between. Values outside the training range are mapped to its ends.
identity   x unchanged.

All but the quantile scaling are linear, so that a split a . scaled / p - mu in scaled units is
x . coef + intercept in original units:

    scaled_j = (x_j - low_j) / span_j
    coef_j = a_j / (p span_j)        intercept = - mu - sum_j a_j low_j / (p span_j)

Under the quantile scaling it is sum_j coef_j rank_j(x_j) + intercept with coef = a / p.

A scaling consists of its kind and a few arrays, so that it can be written to a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.bent_rows import exact_means
from softsplit.support.row_budgets import ROWS
from softsplit.tree.parameters import TreeParameters

SMALLEST_SPAN = 1e-250
"""A column of a smaller range is constant: its coefficients would overflow in original units."""

DEVIATIONS = 6.0
"""Standard deviations per scaled unit: three on each side of the mean."""

FAR = 1e100
"""Scaled values are clipped here: so far outside the training data only the side matters."""


LARGEST_VALUE = 1e150
"""Larger unscaled values overflow when they are multiplied with one another."""

LARGEST_END = 1e307
"""Larger ends of a range overflow when subtracted, or when three deviations are added."""

MOST_KNOTS = 500
"""Knots per feature of the quantile scaling; with fewer distinct values each is a knot."""

EXACT_BITS = 52.0
"""Integers up to 2^52 add up exactly in double precision."""


class Scaling(Protocol):
    """The interface of all scalings."""

    @property
    def kind(self) -> str:
        """One of KINDS."""

    @property
    def linear(self) -> bool:
        """Whether splits are linear in the features themselves."""

    @property
    def n_features(self) -> int:
        """Number of columns."""

    def transform(self, X: FloatArray, used: NDArray[np.bool_] | None = None) -> FloatArray:
        """Return the scaled features; columns that are not ``used`` may be left at 0."""

    def to_original(self, feature: int, scaled: float) -> float:
        """Return the value of a feature whose scaled value is ``scaled``, or closest to it."""

    def restored(self, feature: int, scaled: FloatArray) -> FloatArray:
        """Return the values of a feature from its scaled values."""

    def of_columns(self, columns: NDArray[np.intp]) -> Scaling:
        """Return the scaling of some of the columns."""

    def splits(self, parameters: TreeParameters) -> tuple[FloatArray, FloatArray]:
        """Return coef (n_branches, n_features) and intercept (n_branches,) in original units."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which ``scaling_from`` rebuilds the scaling."""


@dataclass(frozen=True)
class LinearScaling:
    """(x - low) / span, column by column; a constant column has span infinity."""

    low: FloatArray
    span: FloatArray
    kind: str = "minmax"
    linear: bool = True

    @classmethod
    def minmax(cls, X: FloatArray, weight: FloatArray | None = None) -> LinearScaling:
        """Return the minmax scaling of the columns of ``X``."""
        return cls.between(X.min(axis=0).astype(float), X.max(axis=0).astype(float))

    @classmethod
    def between(cls, low: FloatArray, high: FloatArray) -> LinearScaling:
        """Return the minmax scaling with the smallest and largest value of each column."""
        _check_ends(low, high)
        span = high - low
        return cls(low, np.where(span > SMALLEST_SPAN, span, np.inf))

    def standardised(self, means: FloatArray, deviations: FloatArray) -> LinearScaling:
        """Return the standard scaling from ``means`` and ``deviations`` in units of this one."""
        varies = np.isfinite(self.span)
        low, span = self.low.copy(), self.span.copy()
        low[varies] += ((means - 0.5 * DEVIATIONS * deviations)[varies]) * span[varies]
        span[varies] *= DEVIATIONS * deviations[varies]
        return LinearScaling(low, np.where(span > SMALLEST_SPAN, span, np.inf), "standard")

    @classmethod
    def standard(cls, X: FloatArray, weight: FloatArray | None = None) -> LinearScaling:
        """Return the standard scaling of ``X``; moments are taken of minmax-scaled values."""
        frame = cls.minmax(X)
        if len(X) > ROWS.unsorted_means:
            return _standard_of_many(frame, X, weight)
        low, span = frame.low.copy(), frame.span.copy()
        for j in np.flatnonzero(np.isfinite(frame.span)):
            values, totals = _distinct(X[:, j], weight)
            unit, shares = (values - frame.low[j]) / frame.span[j], totals / totals.sum()
            mean = float(shares @ unit)
            deviation = float(np.sqrt(shares @ (unit - mean) ** 2))
            low[j] += (mean - 0.5 * DEVIATIONS * deviation) * frame.span[j]
            span[j] *= DEVIATIONS * deviation
        return cls(low, np.where(span > SMALLEST_SPAN, span, np.inf), "standard")

    @classmethod
    def identity(cls, X: FloatArray, weight: FloatArray | None = None) -> LinearScaling:
        """Return the identity; raise ``ValueError`` if values of ``X`` are too large."""
        largest = float(np.max(np.abs(X)))
        if largest > LARGEST_VALUE:
            raise ValueError(
                f"X holds values up to {largest:.3g}, too large to train on with scale=False; "
                "use scale=True or rescale X."
            )
        return cls(np.zeros(X.shape[1]), np.ones(X.shape[1]), "identity")

    @property
    def n_features(self) -> int:
        return len(self.low)

    def transform(self, X: FloatArray, used: NDArray[np.bool_] | None = None) -> FloatArray:
        scaled: FloatArray = X - self.low
        scaled /= self.span
        return scaled

    def to_original(self, feature: int, scaled: float) -> float:
        return float(self.restored(feature, np.array(scaled, dtype=float)))

    def restored(self, feature: int, scaled: FloatArray) -> FloatArray:
        if not np.isfinite(self.span[feature]):
            return np.full(scaled.shape, self.low[feature])
        return np.asarray(self.low[feature] + scaled * self.span[feature])

    def splits(self, parameters: TreeParameters) -> tuple[FloatArray, FloatArray]:
        coef = (parameters.weights / self.span[:, None]).T / parameters.n_features
        return coef, -parameters.thresholds - coef @ self.low

    def of_columns(self, columns: NDArray[np.intp]) -> LinearScaling:
        return LinearScaling(self.low[columns], self.span[columns], self.kind)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"low": self.low, "span": self.span}


@dataclass(frozen=True)
class QuantileScaling:
    """The rank of a value among the training values, piecewise linear between knots.

    The knots of feature j are ``knots[starts[j] : starts[j + 1]]``, strictly increasing, and
    ``ranks`` are the scaled values there. The rank of a value is the training weight below it plus
    half of the weight at it, mapped linearly to [0, 1].
    """

    knots: FloatArray
    ranks: FloatArray
    starts: NDArray[np.int64]
    kind: str = "quantile"
    linear: bool = False

    @classmethod
    def fit(cls, X: FloatArray, weight: FloatArray | None = None) -> QuantileScaling:
        """Return the scaling with knots at training values about evenly spaced in rank."""
        _check_ends(X.min(axis=0).astype(float), X.max(axis=0).astype(float))
        return cls.joined([rank_curve(*_distinct(X[:, j], weight)) for j in range(X.shape[1])])

    @classmethod
    def joined(cls, curves: Sequence[tuple[FloatArray, FloatArray]]) -> QuantileScaling:
        """Return the scaling with the knots and ranks of each feature."""
        lengths = [len(knots) for knots, _ in curves]
        return cls(
            np.concatenate([knots for knots, _ in curves]),
            np.concatenate([ranks for _, ranks in curves]),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        )

    def counted(self, totals: Sequence[tuple[FloatArray, FloatArray]]) -> QuantileScaling:
        """Return the same knots with ranks from the weights below and at each knot."""
        curves = []
        for j, (below, at) in enumerate(totals):
            middle = below + 0.5 * at
            width = middle[-1] - middle[0]
            ranks = (middle - middle[0]) / width if width > 0 else np.zeros(len(middle))
            curves.append((self.curve(j)[0], ranks))
        return self.joined(curves)

    @property
    def n_features(self) -> int:
        return len(self.starts) - 1

    def thinned(self, used: NDArray[np.bool_]) -> QuantileScaling:
        """Return the scaling with all knots of ``used`` features and the end knots of others."""
        kept = np.repeat(used, np.diff(self.starts))
        kept[self.starts[:-1]] = kept[self.starts[1:] - 1] = True
        counts = np.add.reduceat(kept.astype(np.int64), self.starts[:-1])
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return QuantileScaling(self.knots[kept], self.ranks[kept], starts)

    def curve(self, feature: int) -> tuple[FloatArray, FloatArray]:
        """Return the knots and ranks of one feature."""
        span = slice(self.starts[feature], self.starts[feature + 1])
        return self.knots[span], self.ranks[span]

    def transform(self, X: FloatArray, used: NDArray[np.bool_] | None = None) -> FloatArray:
        scaled = np.zeros(X.shape)
        for j in range(self.n_features) if used is None else np.flatnonzero(used):
            scaled[:, j] = np.interp(X[:, j], *self.curve(int(j)))
        return scaled

    def to_original(self, feature: int, scaled: float) -> float:
        return float(self.restored(feature, np.array(scaled, dtype=float)))

    def restored(self, feature: int, scaled: FloatArray) -> FloatArray:
        knots, ranks = self.curve(feature)
        return np.asarray(np.interp(scaled, ranks, knots))

    def splits(self, parameters: TreeParameters) -> tuple[FloatArray, FloatArray]:
        varies = np.diff(self.starts) > 1
        coef = np.where(varies, parameters.weights.T / parameters.n_features, 0.0)
        return coef, -parameters.thresholds

    def of_columns(self, columns: NDArray[np.intp]) -> QuantileScaling:
        return self.joined([self.curve(int(j)) for j in columns])

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"knots": self.knots, "ranks": self.ranks, "starts": self.starts}


Fit = Callable[[FloatArray, FloatArray | None], Scaling]
FITS: dict[str, Fit] = {
    "minmax": LinearScaling.minmax,
    "quantile": QuantileScaling.fit,
    "standard": LinearScaling.standard,
    "identity": LinearScaling.identity,
}
KINDS = tuple(FITS)


def fit_scaling(kind: str, X: FloatArray, weight: FloatArray | None = None) -> Scaling:
    """Fit a scaling to the rows of ``X``; a row of weight 3 counts as three rows."""
    return FITS[kind](X, weight)


def scaled_rows(
    scaling: Scaling, X: FloatArray, used: NDArray[np.bool_] | None = None
) -> FloatArray:
    """Return arbitrary rows in scaled units, clipped to [-FAR, FAR]."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = scaling.transform(X, used)
    scaled[np.isnan(scaled)] = 0.0  # infinity / infinity: a constant column is 0 throughout
    return np.clip(scaled, -FAR, FAR, out=scaled)


def scaling_from(kind: str, arrays: Mapping[str, Any]) -> Scaling:
    """Return the scaling with these arrays; check them, since they may come from a file."""
    if kind not in KINDS:
        raise ValueError(f"scaling {kind!r} is unknown; choose one of {', '.join(KINDS)}.")
    names = ("knots", "ranks", "starts") if kind == "quantile" else ("low", "span")
    if sorted(arrays) != sorted(names):
        raise ValueError(f"a {kind} scaling needs the arrays {', '.join(names)}.")
    values = [np.asarray(arrays[name], dtype=float) for name in names]
    if any(value.ndim != 1 or np.any(np.isnan(value)) for value in values):
        raise ValueError(f"the arrays of a {kind} scaling must be lists of numbers.")
    if kind == "quantile":
        return _checked_quantile(*values)
    low, span = values
    if len(low) != len(span) or not np.all(np.isfinite(low)) or not np.all(span > 0):
        raise ValueError(f"a {kind} scaling needs a finite low and a span > 0 per feature.")
    return LinearScaling(low, span, kind)


def _checked_quantile(knots: FloatArray, ranks: FloatArray, starts: FloatArray) -> QuantileScaling:
    # Checked before the cast to integers, which is undefined for large floats.
    within = np.all((starts >= 0) & (starts <= len(knots)))
    whole = starts.astype(np.int64) if within else np.empty(0, np.int64)
    good = len(whole) > 1 and np.array_equal(whole, starts) and np.all(np.diff(whole) > 0)
    if not good or whole[0] != 0 or not whole[-1] == len(knots) == len(ranks):
        raise ValueError("the starts of a quantile scaling must divide its knots into features.")
    scaling = QuantileScaling(knots, ranks, whole)
    for j in range(scaling.n_features):
        at, rank = scaling.curve(j)
        if not np.all(np.isfinite(at)) or np.any(np.diff(at) <= 0) or np.any(np.diff(rank) < 0):
            raise ValueError(f"the knots and ranks of feature {j} do not increase.")
    if np.any(ranks < 0) or np.any(ranks > 1):
        raise ValueError("the ranks of a quantile scaling must lie in [0, 1].")
    return scaling


def _check_ends(low: FloatArray, high: FloatArray) -> None:
    """Raise ``ValueError`` for columns whose range overflows."""
    beyond = np.maximum(np.abs(low), np.abs(high)) > LARGEST_END
    if np.any(beyond):
        column = int(np.argmax(beyond))
        raise ValueError(
            f"column {column} of X ranges from {low[column]:.3g} to {high[column]:.3g}, more "
            "than a float can hold; divide it by a constant first."
        )


def exact_unit(total: float) -> float:
    """Return a power of two u: ``total`` multiples of 1 / u, each below 1, add up exactly."""
    return 2.0 ** math.floor(EXACT_BITS - math.log2(total))


def _distinct(column: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the distinct values in ascending order and their total weights.

    The bits do not depend on the order of the rows. One column is converted to double precision at
    a time, so that X itself may be large and in single precision.
    """
    values = column.astype(np.float64) + 0.0  # -0.0 becomes 0.0
    if weight is None or np.all(weight == 1.0):
        distinct, counts = np.unique(values, return_counts=True)
        return distinct, counts.astype(float)
    # Weights of equal values are added in ascending order: the bits of the sum depend on the order.
    order = np.lexsort((weight, values))
    values = values[order]
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    return values[first], np.add.reduceat(weight[order], first)


def _standard_of_many(
    frame: LinearScaling, X: FloatArray, weight: FloatArray | None
) -> LinearScaling:
    """Return the standard scaling of many rows, in pieces, without sorting columns.

    The terms are rounded to multiples of a power of two that makes all sums exact: the result does
    not depend on the order of the rows nor, for integer weights, on whether rows are repeated.
    """
    weight = np.ones(len(X)) if weight is None else weight
    total = math.fsum(weight)
    known = weight, exact_unit(total), total
    ends = frame.low, frame.span
    means = exact_means(X, ends, np.zeros(frame.n_features), *known, squared=False)
    return frame.standardised(means, np.sqrt(exact_means(X, ends, means, *known, squared=True)))


def rank_curve(values: FloatArray, totals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return knots and ranks of one feature from its distinct values and their weights."""
    if len(values) == 1:
        return values, np.zeros(1)
    middle = np.cumsum(totals) - 0.5 * totals
    ranks = (middle - middle[0]) / (middle[-1] - middle[0])
    if len(values) > MOST_KNOTS:
        # The values at or above evenly spaced ranks, always with the first and the last one.
        chosen = np.unique(np.searchsorted(ranks, np.linspace(0.0, 1.0, MOST_KNOTS)))
        values, ranks = values[chosen], ranks[chosen]
    return values, ranks
