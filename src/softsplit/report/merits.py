"""How good one method is on rows left out: the figures that matter, together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.report.intervals import (
    Interval,
    balanced_share,
    log_loss,
    precision_recall_area,
    roc_area,
    share,
)
from softsplit.selection.assessment import Judged

RARE = 0.2
"""Below this part of an even share a class is rare: under 10 % of two classes."""


@dataclass(frozen=True)
class Merits:
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


class ClassMerits(NamedTuple):
    """How one class fares: shares with intervals, None where there is nothing to count.

    ``found`` is the share of its rows that are called so, ``alarms`` the share of other rows that
    are, and ``trusted`` the share of such calls that are right.
    """

    rows: int
    found: Interval | None
    alarms: Interval | None
    trusted: Interval | None
    called: int


def merits(labels: NDArray[np.int64], judged: Judged, rare: int | None) -> Merits:
    """All figures of a method that has predicted every row."""
    hits = judged.calls == labels
    return Merits(
        share(hits),
        balanced_share(hits, labels),
        roc_area(judged.proba, labels),
        precision_recall_area(judged.proba, labels, rare),
        log_loss(judged.proba, labels),
        judged.features,
    )


def class_merits(labels: NDArray[np.int64], judged: Judged, k: int) -> ClassMerits:
    """How class k fares."""
    own, called = labels == k, judged.calls == k

    def part(hits: NDArray[np.bool_]) -> Interval | None:
        return share(hits) if len(hits) else None

    return ClassMerits(
        int(own.sum()), part(called[own]), part(called[~own]), part(own[called]), int(called.sum())
    )


def rare_class(labels: NDArray[np.int64], n_classes: int) -> int | None:
    """The rarest class if it is so rare that accuracy says little of it."""
    counts = np.bincount(labels, minlength=n_classes)
    rarest = int(np.argmin(counts))
    return rarest if counts[rarest] < RARE * len(labels) / n_classes else None


def positive_class(labels: NDArray[np.int64]) -> int:
    """Of two classes the rarer one, or the second: what one looks for."""
    counts = np.bincount(labels, minlength=2)
    return 0 if counts[0] < counts[1] else 1
