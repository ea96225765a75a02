"""What the leaves of a tree predict where the target is a number: functions, errors, intervals.

score           a_l + u_l . x within bounds (``LeafFunctions``)
prediction      that of the family for the score of the leaf at which the walk arrives, or without
                a walk the mean over all leaves, sum_l P_l(x) prediction_l(x)
interval        prediction -+ q s_l, with s_l the typical error of the leaf, and q the
                ceil((n + 1) level)-th smallest |residual| / s_l of n rows that trees of the same
                settings were not trained on (Lei and others 2018)

Coefficients are the printed numbers (``leaf_rounding``): ``predict`` computes from no others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.baseline import Baseline
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import AdvisedError, counted
from softsplit.tree.leaf_families import LeafFamily
from softsplit.tree.leaf_functions import LeafFunctions

MOST_SCORES = 1000
"""Scores that are kept; of more, as many quantiles, rounded up."""


class NoResidualsError(AdvisedError):
    """A tree is asked for an interval and knows no held-out rows."""


@dataclass(frozen=True)
class LeafNumbers:
    """The leaves of a tree that predicts numbers.

    Attributes
    ----------
    functions : LeafFunctions
        With the printed coefficients.
    family : LeafFamily
        What a score predicts.
    means, errors : arrays of shape (n_leaves,)
        Mean of the target, and root of the mean squared residual, of the training rows that arrive.
    scores : array, optional
        |residual| / error of held-out rows in ascending order, each for the same part of ``rows``.
    rows : float
        Held-out rows.
    totals : array of shape (n_leaves,), optional
        Exposure of the training rows that arrive, where predictions are rates per unit of it;
        ``means`` are then sums of targets over sums of exposures, and ``per`` is its name.
    baseline : Baseline, optional
        Of a survival tree, whose predictions are hazards relative to it; ``totals`` are then
        cumulative hazards, ``means`` events over these, and ``per`` is the unit of time.
    """

    functions: LeafFunctions
    family: LeafFamily
    means: FloatArray
    errors: FloatArray
    scores: FloatArray | None = None
    rows: float = 0.0
    totals: FloatArray | None = None
    per: str | None = None
    baseline: Baseline | None = None

    @property
    def features(self) -> NDArray[np.intp]:
        """Columns of the problem that some leaf weighs."""
        return np.flatnonzero(np.any(self.functions.slopes, axis=1))

    def values(self, X: FloatArray) -> FloatArray:
        """What each leaf predicts for each row, (n_leaves, n_rows)."""
        return self.family.prediction(self.functions.scores(X))

    def refuse_rates(self) -> None:
        """Raise for intervals of rates, which no row shows."""
        if self.totals is not None:
            raise NoResidualsError(
                "the tree predicts a rate, and no row shows one",
                "ask for intervals of trees that were trained without exposure",
            )

    def with_held_out(self, scores: FloatArray, weight: FloatArray) -> LeafNumbers:
        """The same leaves with |residual| / error of the leaf of held-out rows, (n_rows,)."""
        self.refuse_rates()
        order = np.argsort(scores, kind="stable")
        order = order[weight[order] > 0]
        rows, number = float(weight[order].sum()), min(MOST_SCORES, len(order))
        levels = rows * np.arange(1, number + 1) / max(number, 1)
        at = np.searchsorted(np.cumsum(weight[order]), levels - 1e-9 * rows)
        return replace(self, scores=scores[order][np.minimum(at, len(order) - 1)], rows=rows)

    def bounds(
        self, predicted: FloatArray, leaves: NDArray[np.intp], level: float
    ) -> tuple[FloatArray, FloatArray]:
        """Between which the target lies in a share ``level`` of cases; under a log link from 0."""
        half = self.half_widths(level)[leaves]
        low = predicted - half
        return np.maximum(low, 0.0) if self.family.log_link else low, predicted + half

    def half_widths(self, level: float) -> FloatArray:
        """By how much the target may lie beside the prediction in each leaf, (n_leaves,)."""
        self.refuse_rates()
        if self.scores is None:
            raise NoResidualsError(
                "the tree knows no held-out rows, from which intervals follow",
                "choose it with SoftTreeRegressorCV, or give it rows with calibrate(X, y)",
            )
        rank = np.ceil((self.rows + 1.0) * level - 1e-9)
        if rank > self.rows:
            raise NoResidualsError(
                f"{counted(int(self.rows), 'held-out row')} say nothing at confidence {level:g}",
                f"ask for at most {self.rows / (self.rows + 1.0):.3g}, or give more rows",
            )
        place = int(np.ceil(rank / self.rows * len(self.scores) - 1e-9)) - 1
        return self.errors * self.scores[min(place, len(self.scores) - 1)]
