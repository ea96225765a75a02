"""Whether probabilities mean what they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softsplit.report.plots.canvas import PALE, axes, class_colours, plain
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown

MARKERS = "osD^vP*X"
CLASSES_SHOWN = 8
WITH_INTERVALS = 3
"""Intervals of more curves than this could not be told apart."""


@dataclass(frozen=True)
class ReliabilityCurve:
    """Mean predicted probability and observed share in each bin that holds rows.

    ``error`` is the expected calibration error: the mean of |predicted - observed| over all rows.
    """

    label: str
    predicted: FloatArray
    observed: FloatArray
    rows: FloatArray

    @classmethod
    def of(cls, label: str, probability: FloatArray, hit: Any, n_bins: int) -> ReliabilityCurve:
        """Bins of equal width over [0, 1]."""
        bins = np.minimum((probability * n_bins).astype(int), n_bins - 1)
        rows = np.bincount(bins, minlength=n_bins).astype(float)
        kept = rows > 0
        predicted = np.bincount(bins, probability, n_bins)[kept] / rows[kept]
        observed = np.bincount(bins, np.asarray(hit, float), n_bins)[kept] / rows[kept]
        return cls(label, predicted, observed, rows[kept])

    @property
    def error(self) -> float:
        share = self.rows / self.rows.sum()
        return float(share @ np.abs(self.predicted - self.observed))

    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Wilson's 95 % interval of the observed shares."""
        z, n, p = 1.959964, self.rows, self.observed
        middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        return np.minimum(middle - half, p), np.maximum(middle + half, p)


class ReliabilityDisplay:
    """Reliability diagram: how often what was predicted with probability p came true.

    One curve per class, against all others; with more than eight classes a single curve for the
    predicted class of each row.

    Parameters
    ----------
    curves : list of ReliabilityCurve

    Attributes
    ----------
    ax_, figure_
    """

    def __init__(self, curves: list[ReliabilityCurve]) -> None:
        self.curves = curves

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int = 10,
        kind: str = "auto",
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Draw the diagram of any fitted classifier on rows it was not trained on.

        Parameters
        ----------
        estimator : fitted classifier with ``predict_proba``
        X, y : rows and their classes
        n_bins : int, default=10
        kind : {"auto", "classes", "confidence"}
            A curve per class, or one for the predicted classes.
        ax : matplotlib axes, optional
        """
        if kind not in ("auto", "classes", "confidence"):
            raise ValueError(f"kind must be 'auto', 'classes' or 'confidence', got {shown(kind)}.")
        if not isinstance(n_bins, int) or n_bins < 1:
            raise ValueError(f"n_bins must be an integer >= 1, got {shown(n_bins)}.")
        proba, classes, y = estimator.predict_proba(X), estimator.classes_, np.asarray(y)
        if y.shape != (len(proba),):
            raise ValueError(f"y must hold {len(proba)} labels, one per row of X.")
        if kind == "auto":
            kind = "classes" if len(classes) <= CLASSES_SHOWN else "confidence"
        if kind == "confidence":
            called = proba.argmax(axis=1)
            best = proba[np.arange(len(proba)), called]
            hits = classes[called] == y
            return cls([ReliabilityCurve.of("predicted class", best, hits, n_bins)]).plot(ax)
        # Of two classes one curve says all: that of the second, as scikit-learn has it.
        drawn = [1] if len(classes) == 2 else range(len(classes))
        labels = classes.tolist()
        curves = [
            ReliabilityCurve.of(str(labels[k]), proba[:, k], y == classes[k], n_bins) for k in drawn
        ]
        return cls(curves).plot(ax)

    def plot(self, ax: Any = None) -> ReliabilityDisplay:
        """Draw on ``ax`` or on a new figure."""
        ax = axes(ax, (7.4, 4.6))
        self.ax_, self.figure_ = ax, ax.figure
        ax.plot([0, 1], [0, 1], color=PALE, ls=":", lw=1, zorder=1)
        most = max(curve.rows.max() for curve in self.curves)
        handles, labels = [], []
        for i, curve in enumerate(self.curves):
            colour = class_colours(max(2, len(self.curves)))[i]
            ax.plot(curve.predicted, curve.observed, color=colour, lw=1, alpha=0.8, zorder=2)
            if len(self.curves) <= WITH_INTERVALS:
                low, high = curve.interval()
                ax.vlines(curve.predicted, low, high, color=colour, lw=0.8, alpha=0.8, zorder=2)
            handles.append(
                ax.scatter(
                    curve.predicted, curve.observed, 14 + 110 * curve.rows / most, color=colour,
                    marker=MARKERS[i % len(MARKERS)], edgecolor="white", linewidth=0.6, zorder=3,
                )
            )  # fmt: skip
            labels.append(f"{plain(curve.label, 28)} (error {100 * curve.error:.1f} %)")
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
        ax.set(xlabel="predicted probability", ylabel="observed share")
        bars = "; bars: 95 % interval" if len(self.curves) <= WITH_INTERVALS else ""
        ax.set_title(f"size: rows in the bin{bars}", fontsize="small", color=PALE)
        legend = ax.legend(
            handles, labels, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0),
            frameon=False,
        )  # fmt: skip
        for handle in legend.legend_handles:
            handle.set_sizes([36])
        return self
