"""Whether probabilities mean what they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softsplit.fitted.model import TreeHolder, holder_of
from softsplit.plots.canvas import PALE, axes, class_colours, plain
from softsplit.support.arrays import FloatArray, wilson
from softsplit.support.messages import unfit

MARKERS = "osD^vP*X"


CLASSES_SHOWN = 8
"""With more classes one curve of the confidence stands for all."""

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
        hits = self.observed * self.rows
        ends = [wilson(*both)[1:] for both in zip(hits, self.rows, strict=True)]
        low, high = np.array(ends).T
        return np.minimum(low, self.observed), np.maximum(high, self.observed)


@dataclass(repr=False, eq=False)
class ReliabilityDisplay:
    """Reliability diagram: how often what was predicted with probability p came true.

    One curve per class, against all others; with more than eight classes a single curve for the
    most probable class of each row. ``from_folds`` judges a classifier on the rows that its
    training left out, ``from_estimator`` a fitted one on rows it has not seen.

    Parameters
    ----------
    curves : list of ReliabilityCurve

    Attributes
    ----------
    ax_, figure_
    """

    curves: list[ReliabilityCurve]

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
            A curve per class, or one for the most probable class of each row.
        ax : matplotlib axes, optional
        """
        if isinstance(estimator, TreeHolder):
            holder_of(estimator)
        return cls.from_predictions(
            y, estimator.predict_proba(X), estimator.classes_, n_bins=n_bins, kind=kind, ax=ax
        )

    @classmethod
    def from_folds(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        cv: Any = 5,
        n_jobs: int | None = None,
        n_bins: int = 10,
        kind: str = "auto",
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Draw the diagram of a classifier where there are no rows to spare.

        It is trained once for each fold, on the others, and judged on the held-out rows; all rows
        of X are judged once. The classifier itself need not be fitted and is not changed.

        Parameters
        ----------
        estimator : classifier with ``predict_proba``
        X, y : rows and their classes
        cv : int, splitter of scikit-learn or iterable, default=5
            Folds; a number means stratified ones.
        n_jobs : int, optional
            Folds trained side by side.
        n_bins, kind, ax
            As in ``from_estimator``.
        """
        from sklearn.model_selection import cross_val_predict

        labels = np.asarray(y)
        proba = cross_val_predict(
            estimator, X, labels, cv=cv, n_jobs=n_jobs, method="predict_proba"
        )
        return cls.from_predictions(
            labels, proba, np.unique(labels), n_bins=n_bins, kind=kind, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        probabilities: Any,
        classes: Any,
        *,
        n_bins: int = 10,
        kind: str = "auto",
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Draw the diagram of probabilities, wherever they come from.

        Parameters
        ----------
        y : array of shape (n_rows,)
            The classes of the rows.
        probabilities : array of shape (n_rows, n_classes)
        classes : array of shape (n_classes,)
            Which class each column is.
        n_bins, kind, ax
            As in ``from_estimator``.
        """
        if kind not in ("auto", "classes", "confidence"):
            raise unfit("kind", kind, "must be 'auto', 'classes' or 'confidence'")
        if not isinstance(n_bins, int) or n_bins < 1:
            raise unfit("n_bins", n_bins, "must be an integer >= 1")
        proba, y = np.asarray(probabilities, dtype=float), np.asarray(y)
        labels = np.asarray(classes).tolist()
        if proba.shape != (len(y), len(labels)) or y.ndim != 1:
            raise ValueError(
                f"y must hold {len(proba)} labels, one per row, and probabilities {len(labels)} "
                "columns, one per class."
            )
        if kind == "confidence" or (kind == "auto" and len(labels) > CLASSES_SHOWN):
            hits = np.asarray(classes)[proba.argmax(axis=1)] == y
            name = "most probable class"
            return cls([ReliabilityCurve.of(name, proba.max(axis=1), hits, n_bins)]).plot(ax)
        # Of two classes one curve says all: that of the second, as scikit-learn has it.
        drawn = [1] if len(labels) == 2 else range(len(labels))
        curves = [
            ReliabilityCurve.of(str(labels[k]), proba[:, k], y == labels[k], n_bins) for k in drawn
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
