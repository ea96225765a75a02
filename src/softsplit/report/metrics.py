"""Metrics on held-out rows, and how far each may be from the true value.

With z = 1.96 all intervals are 95 %:

share               Wilson: centre (s + z^2 / 2n) / (1 + z^2 / n),
                    half z / (1 + z^2 / n) * sqrt(s (1 - s) / n + z^2 / 4n^2)
balanced accuracy   mean over classes of the share r_k that is right,
                    -+ z sqrt(sum_k r_k (1 - r_k) / n_k) / n_classes, with one hit and one miss
                    added to each class below the root
ROC area            of one class against the rest, its variance by DeLong, DeLong and Clarke-Pearson
                    (1988): that of the placements of both groups among each other; of several
                    classes the mean, as if they moved together
PR area             average precision a, on the scale of log-odds -+ z / sqrt(n_k a (1 - a)),
                    after Boyd, Eng and Page (2013)
log-loss            mean -+ z deviation / sqrt(n)
difference          of two methods on the same rows, row by row; for balanced accuracy in classes

Rows are predicted by models that share training rows, which all forms leave out of account: the
intervals are a little too narrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score

from softsplit.selection.assessment import Judged
from softsplit.support.arrays import FloatArray, wilson

Z = 1.959963984540054
"""Quantile of the normal distribution for intervals of 95 %."""

SMALLEST = 1e-15
"""Smaller probabilities count as this one in the log-loss."""

RARE = 0.2
"""A class below this part of an even share is rare: under 10 % of two classes."""

UNEVEN = 0.5
"""Of several classes one below this part of an even share is spoken of beside accuracy: all others
together can be right without it."""

Bools = NDArray[np.bool_]
Codes = NDArray[np.int64]


class Interval(NamedTuple):
    """An estimate and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def share(hits: Bools) -> Interval:
    """Wilson's interval of a share of hits."""
    return Interval(*wilson(float(np.sum(hits)), float(len(hits))))


def mean_interval(values: FloatArray) -> Interval:
    """Mean of numbers from 0 to 1 -+ z deviation / sqrt(n)."""
    return _within_one(mean_with_interval(values))


def difference(hits: Bools, others: Bools) -> Interval:
    """By how much one method hits more often than another on the same rows."""
    return mean_with_interval(hits.astype(float) - others.astype(float))


def mean_with_interval(values: FloatArray) -> Interval:
    """A mean and its normal interval."""
    return _around(float(np.mean(values)), float(np.std(values) / np.sqrt(len(values))))


def balanced_share(hits: Bools, labels: Codes) -> Interval:
    """Mean over classes of the share that is right."""
    seen, counts = np.unique(labels, return_counts=True)
    rates = np.array([np.mean(hits[labels == k]) for k in seen])
    # One hit and one miss more, so that a class without a miss is not certain.
    near = (rates * counts + 1) / (counts + 2)
    error = np.sqrt(np.sum(near * (1 - near) / counts)) / len(seen)
    return _within_one(_around(float(rates.mean()), float(error)))


def balanced_difference(hits: Bools, others: Bools, labels: Codes) -> Interval:
    """The difference of two balanced accuracies on the same rows."""
    gaps = hits.astype(float) - others.astype(float)
    parts = [gaps[labels == k] for k in np.unique(labels)]
    error = np.sqrt(sum(np.var(part) / len(part) for part in parts)) / len(parts)
    return _around(float(np.mean([part.mean() for part in parts])), float(error))


def roc_area(proba: FloatArray, labels: Codes) -> Interval:
    """Area below the ROC curve; of several classes the mean of each against the rest."""
    areas = [_placements(proba[:, k], labels == k) for k in _asked(proba, labels)]
    means, errors = np.array(areas).T
    return _within_one(_around(float(means.mean()), float(errors.mean())))


def precision_recall_area(proba: FloatArray, labels: Codes, only: int | None = None) -> Interval:
    """Average precision of one class, or the mean over all."""
    asked = _asked(proba, labels) if only is None else [only]
    areas = [
        float(average_precision_score(labels == k, proba[:, k])) if np.any(labels == k) else 0.0
        for k in asked
    ]
    ends = []
    for k, value in zip(asked, areas, strict=True):
        a = min(max(value, 1e-6), 1 - 1e-6)
        # Of few rows and a perfect order the end is 0; without a row of the class nothing is known.
        with np.errstate(over="ignore", divide="ignore"):
            middle, half = np.log(a / (1 - a)), Z / np.sqrt(np.sum(labels == k) * a * (1 - a))
            ends.append([1 / (1 + np.exp(-(middle + side * half))) for side in (-1, 1)])
    low, high = np.mean(ends, axis=0)
    value = float(np.mean(areas))
    return Interval(value, float(min(low, value)), float(max(high, value)))


def log_loss(proba: FloatArray, labels: Codes) -> Interval:
    """Mean of minus the logarithm of the probability of the right class."""
    losses = -np.log(np.maximum(proba[np.arange(len(labels)), labels], SMALLEST))
    mean = mean_with_interval(losses)
    return mean._replace(low=max(mean.low, 0.0))


def _asked(proba: FloatArray, labels: Codes) -> list[int]:
    """Classes to ask about: of two the second, of several all that have rows."""
    seen = np.unique(labels).tolist()
    return [1] if proba.shape[1] == 2 and len(seen) == 2 else seen


def _placements(scores: FloatArray, positive: Bools) -> tuple[float, float]:
    """The ROC area of one class and its standard error."""
    n, m = int(positive.sum()), int((~positive).sum())
    if n == 0 or m == 0:
        return 0.5, 0.5
    ranks = rankdata(scores)
    above = (ranks[positive] - rankdata(scores[positive])) / m
    below = 1 - (ranks[~positive] - rankdata(scores[~positive])) / n
    parts = [np.var(part, ddof=1) / len(part) if len(part) > 1 else 0.25 for part in (above, below)]
    return float(above.mean()), float(np.sqrt(sum(parts)))


def _around(mean: float, error: float) -> Interval:
    return Interval(mean, mean - Z * error, mean + Z * error)


def _within_one(interval: Interval) -> Interval:
    return Interval(interval.value, max(interval.low, 0.0), min(interval.high, 1.0))


# --- How good one method is on held-out rows: the figures that matter, together -------------------


@dataclass(frozen=True)
class MethodMetrics:
    """Figures of one method.

    Attributes
    ----------
    accuracy, balanced : Interval
        Share of rows that are right; mean over classes of the share that is right.
    roc, precision_recall : Interval
        Areas; precision-recall of the rare class where there is one, else the mean over classes.
    log_loss : Interval
    features : float
    """

    accuracy: Interval
    balanced: Interval
    roc: Interval
    precision_recall: Interval
    log_loss: Interval
    features: float


class ClassMetrics(NamedTuple):
    """How one class fares: shares with intervals, None where there is nothing to count.

    ``found`` is the share of its rows for which it is predicted, ``alarms`` the share of other
    rows for which it is, and ``trusted`` the share of its predictions that are right.
    """

    rows: int
    found: Interval | None
    alarms: Interval | None
    trusted: Interval | None
    predicted: int


def method_metrics(labels: NDArray[np.int64], judged: Judged, rare: int | None) -> MethodMetrics:
    """All figures of a method that has predicted every row."""
    hits = judged.calls == labels
    return MethodMetrics(
        share(hits),
        balanced_share(hits, labels),
        roc_area(judged.proba, labels),
        precision_recall_area(judged.proba, labels, rare),
        log_loss(judged.proba, labels),
        judged.features,
    )


def class_metrics(labels: NDArray[np.int64], judged: Judged, k: int) -> ClassMetrics:
    """How class k fares."""
    own, predicted = labels == k, judged.calls == k

    def part(hits: NDArray[np.bool_]) -> Interval | None:
        return share(hits) if len(hits) else None

    return ClassMetrics(
        int(own.sum()),
        part(predicted[own]),
        part(predicted[~own]),
        part(own[predicted]),
        int(predicted.sum()),
    )


def rare_class(labels: NDArray[np.int64], n_classes: int) -> int | None:
    """The rarest class if it is so rare that accuracy says little of it."""
    counts = np.bincount(labels, minlength=n_classes)
    rarest = int(np.argmin(counts))
    return rarest if counts[rarest] < RARE * len(labels) / n_classes else None


def watched_class(labels: NDArray[np.int64], n_classes: int) -> int | None:
    """The class that is spoken of beside accuracy: of two the rarer one, else an uneven one."""
    if n_classes == 2:
        return positive_class(labels)
    counts = np.bincount(labels, minlength=n_classes)
    rarest = int(np.argmin(counts))
    return rarest if counts[rarest] < UNEVEN * len(labels) / n_classes else None


def positive_class(labels: NDArray[np.int64]) -> int:
    """Of two classes the rarer one, or the second: what one looks for."""
    counts = np.bincount(labels, minlength=2)
    return 0 if counts[0] < counts[1] else 1
