"""Leaf families: what a leaf predicts of a number, and what an error costs.

The score of a row in a leaf is eta = a + u . x, plus the row's offset. A family says by a
*deviance* d(y, eta) >= 0, zero where eta is as good as any score can be, how far that is from the
target y:

    squared     (y - eta)^2                                              eta is a mean
    Huber       u^2 within the width c, 2 c |u| - c^2 outside, u = y - eta
    quantile    u (tau - 1[u < 0]), quadratic within a band h of u = 0   eta is a quantile
    Poisson     2 (y log(y / mu) - y + mu)                               mu = exp(eta), a mean
    Gamma       2 ((y - mu) / mu - log(y / mu))
    Tweedie q   2 (y^(2-q) / ((1-q)(2-q)) - y mu^(1-q) / (1-q) + mu^(2-q) / (2-q)),  1 < q < 2
    survival    the Poisson deviance of the event (0 or 1), with the log of the time as offset

A tree minimises ``power`` n log(E / n) of the expected deviance E, which profiles the scale out:
power is 1/2 where the scale is a variance and 1 where it is a mean absolute error. To add a
family, write a class with ``terms``, ``start``, ``check`` and its words, and a line in FAMILIES.
Shapes: y (n_rows,), eta (n_leaves, n_rows) or (n_rows,); results as eta.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray

LARGEST_LOG = 30.0
"""Logarithms of means are kept within this of zero."""

LARGEST_ERROR = 0.5
"""Largest typical error of the log of a mean: rare counts are about means that are known better."""

FLATTEST = 1e-3
"""Least second derivative, as part of that at the centre, of deviances that are straight."""


class Terms(NamedTuple):
    """A deviance and its first and second derivative by the score."""

    value: FloatArray
    slope: FloatArray
    curvature: FloatArray


@dataclass(frozen=True)
class LeafFamily:
    """Base of the families: those whose score is the prediction.

    Attributes
    ----------
    name : str
        As users write it.
    predicted : str
        What a leaf predicts, in words: "mean", "median".
    error : str
        What ``typical_error`` is, in words.
    power : float
        The objective is ``power`` n log(E / n).
    log_link : bool
        Whether a prediction is the exponential of a score, and slopes are factors.
    """

    name: ClassVar[str] = "squared"
    predicted: ClassVar[str] = "mean"
    error: ClassVar[str] = "root mean squared error"
    power: ClassVar[float] = 0.5
    log_link: ClassVar[bool] = False

    def terms(self, y: FloatArray, eta: FloatArray) -> Terms:
        """Return the deviance and its derivatives by the score."""
        away = eta - y
        return Terms(away * away, 2.0 * away, np.full_like(away, 2.0))

    def deviance(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        return self.terms(y, eta).value

    def start(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> float:
        """Return the score of the best leaf without terms, roughly."""
        return float(np.average(y - offset, weights=weight))

    def units(self, y: FloatArray, weight: FloatArray) -> tuple[float, float]:
        """Return centre and unit in which targets and scores are about 0 and 1."""
        centre = float(np.average(y, weights=weight))
        unit = float(np.sqrt(np.average((y - centre) ** 2, weights=weight)))
        return centre, unit if unit > 0.0 else 1.0

    def working(self, y: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return responses and weights of a least-squares problem like this one, near ``eta``."""
        return y, np.ones_like(y)

    def scale_known(self, deviance: float) -> float:
        """Return the factor of ``power`` that a known scale asks for, from the mean deviance of a
        tree without features; with the factor ``deviance`` the objective falls as E / 2 does."""
        return 1.0

    def informative(self, y: FloatArray) -> float:
        """Return how many of these rows say something of what the leaves predict."""
        return float(len(y))

    def tuned(self, residuals: FloatArray) -> Self:
        """Return the family with widths that suit residuals y - eta of a first fit."""
        return self

    def scaled(self, unit: float) -> Self:
        """Return the family for targets that are ``unit`` times larger."""
        return self

    def prediction(self, eta: FloatArray) -> FloatArray:
        """Return what a leaf predicts with a score."""
        return eta

    def score(self, predicted: FloatArray) -> FloatArray:
        """Return the scores with which leaves predict this."""
        return predicted

    def score_errors(self, errors: FloatArray, means: FloatArray) -> FloatArray:
        """Return typical errors of scores, from those of targets around their means."""
        return errors

    def typical_error(self, deviance: float) -> float:
        """Return a typical error, in the units of y, from the mean deviance."""
        return float(deviance ** (1.0 / (2.0 * self.power)))

    def check(self, y: FloatArray) -> None:
        """Raise ValueError, in one sentence, for targets that the family does not take."""
        _check_finite(y)


class Squared(LeafFamily):
    """Squared error: a leaf predicts a mean."""


@dataclass(frozen=True)
class Huber(LeafFamily):
    """Squared error up to ``width``, in units of the targets, and absolute error beyond it."""

    name: ClassVar[str] = "huber"
    predicted: ClassVar[str] = "typical value"
    width: float = 1.345

    def terms(self, y: FloatArray, eta: FloatArray) -> Terms:
        away, c = eta - y, self.width
        near = np.clip(away, -c, c)
        inside = np.abs(away) <= c
        return Terms(near * (2.0 * away - near), 2.0 * near, np.where(inside, 2.0, 2.0 * FLATTEST))

    def start(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> float:
        return weighted_quantile(y - offset, weight, 0.5)

    def tuned(self, residuals: FloatArray) -> Self:
        return replace(self, width=1.345 * _spread(residuals))

    def scaled(self, unit: float) -> Self:
        return replace(self, width=unit * self.width)


@dataclass(frozen=True)
class Quantile(LeafFamily):
    """Quantile loss; ``band`` is the half-width, in units of the targets, where it is smooth."""

    name: ClassVar[str] = "quantile"
    predicted: ClassVar[str] = "quantile"
    error: ClassVar[str] = "mean quantile loss"
    power: ClassVar[float] = 1.0
    level: float = 0.5
    band: float = 0.1

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"the level of a quantile must be between 0 and 1, got {self.level}.")

    def terms(self, y: FloatArray, eta: FloatArray) -> Terms:
        away, h = eta - y, self.band  # (tau - 1/2) (y - eta) + |y - eta| / 2, smoothed
        near = np.clip(away / h, -1.0, 1.0)
        value = (0.5 - self.level) * away + 0.25 * (2.0 * near * away - h * near * near + h)
        slope = 0.5 - self.level + 0.5 * near
        return Terms(value, slope, np.where(np.abs(near) < 1.0, 0.5 / h, 0.5 * FLATTEST / h))

    def start(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> float:
        return weighted_quantile(y - offset, weight, self.level)

    def tuned(self, residuals: FloatArray) -> Self:
        return replace(self, band=0.25 * _spread(residuals))

    def scaled(self, unit: float) -> Self:
        return replace(self, band=unit * self.band)


class Absolute(Quantile):
    """Absolute error: a leaf predicts a median."""

    name: ClassVar[str] = "absolute"
    predicted: ClassVar[str] = "median"
    error: ClassVar[str] = "mean absolute error"

    def typical_error(self, deviance: float) -> float:
        return 2.0 * deviance  # |u| is twice the loss of the quantile 1/2


class LogLink(LeafFamily):
    """Base of families whose prediction is the exponential of a score."""

    predicted: ClassVar[str] = "mean"
    error: ClassVar[str] = "mean deviance"
    log_link: ClassVar[bool] = True

    def start(self, y: FloatArray, weight: FloatArray, offset: FloatArray) -> float:
        total = max(float(weight @ y), 0.5 * float(weight.mean()))
        return float(np.log(total / (weight @ np.exp(offset))))

    def units(self, y: FloatArray, weight: FloatArray) -> tuple[float, float]:
        return 0.0, 1.0

    def working(self, y: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        terms = self.terms(y, eta)
        step = np.clip(-terms.slope / np.maximum(terms.curvature, 1e-12), -3.0, 3.0)
        return eta + step, 0.5 * terms.curvature

    def prediction(self, eta: FloatArray) -> FloatArray:
        return np.exp(_bounded(eta))

    def score(self, predicted: FloatArray) -> FloatArray:
        return np.log(np.clip(predicted, np.exp(-LARGEST_LOG), np.exp(LARGEST_LOG)))

    def score_errors(self, errors: FloatArray, means: FloatArray) -> FloatArray:
        return np.minimum(errors / np.maximum(means, 1e-300), LARGEST_ERROR)

    def typical_error(self, deviance: float) -> float:
        return deviance


class Poisson(LogLink):
    """Counts: a leaf predicts a rate; exposure enters as the offset log t."""

    name: ClassVar[str] = "poisson"

    def terms(self, y: FloatArray, eta: FloatArray) -> Terms:
        mean = np.exp(_bounded(eta))
        value = 2.0 * (y * np.log(np.where(y > 0.0, y, 1.0)) - y * _bounded(eta) - y + mean)
        return Terms(value, 2.0 * (mean - y), 2.0 * mean)

    def scale_known(self, deviance: float) -> float:
        return min(1.0, deviance)  # counts may vary more than Poisson's, and hardly less

    def informative(self, y: FloatArray) -> float:
        return min(float(len(y)), float(y.sum()))  # events

    def check(self, y: FloatArray) -> None:
        _check_finite(y)
        _check_bound(y >= 0, "counts must not be negative")


class Gamma(LogLink):
    """Positive amounts whose deviation grows with the mean."""

    name: ClassVar[str] = "gamma"

    def terms(self, y: FloatArray, eta: FloatArray) -> Terms:
        ratio = y * np.exp(-_bounded(eta))
        value = 2.0 * (ratio - 1.0 - np.log(y) + _bounded(eta))
        return Terms(value, 2.0 * (1.0 - ratio), 2.0 * ratio)

    def check(self, y: FloatArray) -> None:
        _check_finite(y)
        _check_bound(y > 0, "amounts of the family gamma must be positive (tweedie takes zeros)")


@dataclass(frozen=True)
class Tweedie(LogLink):
    """Amounts with zeros, whose variance is a power of the mean between 1 and 2."""

    name: ClassVar[str] = "tweedie"
    exponent: float = 1.5

    def __post_init__(self) -> None:
        if not 1.0 < self.exponent < 2.0:
            raise ValueError(f"the power of tweedie must be between 1 and 2, got {self.exponent}.")

    def terms(self, y: FloatArray, eta: FloatArray) -> Terms:
        a, b, eta = 1.0 - self.exponent, 2.0 - self.exponent, _bounded(eta)
        claim, mean = y * np.exp(a * eta), np.exp(b * eta)
        value = 2.0 * (y**b / (a * b) - claim / a + mean / b)
        return Terms(value, 2.0 * (mean - claim), 2.0 * (b * mean - a * claim))

    def check(self, y: FloatArray) -> None:
        _check_finite(y)
        _check_bound(y >= 0, "amounts must not be negative")


class Survival(Poisson):
    """Exponential survival: y is 1 for an event and 0 if censored, the offset the log of time."""

    name: ClassVar[str] = "survival"
    predicted: ClassVar[str] = "hazard"

    def scale_known(self, deviance: float) -> float:
        return deviance

    def check(self, y: FloatArray) -> None:
        _check_finite(y)
        _check_bound((y == 0) | (y == 1), "events must be 0 or 1")
        if not np.any(y == 1):
            raise ValueError("no row has an event: hazards cannot be told from zero.")


FAMILIES: dict[str, type[LeafFamily]] = {
    kind.name: kind
    for kind in (Squared, Huber, Absolute, Quantile, Poisson, Gamma, Tweedie, Survival)
}


def weighted_quantile(values: FloatArray, weight: FloatArray, level: float) -> float:
    """Return the smallest value up to which a share ``level`` of the weight lies."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    place = np.searchsorted(total, level * total[-1] * (1.0 - 1e-12))
    return float(values[order[min(place, len(order) - 1)]])


def _bounded(eta: FloatArray) -> FloatArray:
    return np.clip(eta, -LARGEST_LOG, LARGEST_LOG)


def _spread(residuals: FloatArray) -> float:
    """Deviation of residuals by their median size; not zero."""
    sizes = np.abs(residuals)
    return max(1.4826 * float(np.median(sizes)), 0.1 * float(sizes.mean()), 1e-6)


def _check_finite(y: FloatArray) -> None:
    if not np.all(np.isfinite(y)):
        raise ValueError(
            f"{np.count_nonzero(~np.isfinite(y))} targets are missing or infinite; leave their "
            "rows out."
        )
    if np.max(np.abs(y), initial=0.0) > 1e150:
        raise ValueError("targets are larger than 1e150; use a larger unit.")


def _check_bound(valid: NDArray[np.bool_], rule: str) -> None:
    if not np.all(valid):
        raise ValueError(f"{rule}, but {np.count_nonzero(~valid)} targets break this.")
