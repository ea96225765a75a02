"""Survival trees: hazards in the leaves, times that may be censored.

1. Times become operational times H(t), by the estimate of Nelson and Aalen over all rows.
2. A quick tree of counts: the event, 0 or 1, with the exposure H(t) (family "survival"); its
   likelihood is that of proportional hazards with the baseline H. From its hazards the baseline is
   estimated anew (Breslow): without them it bends towards the rows that are left. ROUNDS times.
3. The tree in the same way, and the baseline that its leaves share, from the printed hazards.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.estimators.base import all_or_nothing
from softsplit.estimators.leaf_tree import ChosenTree, LeafTree, SingleTree
from softsplit.estimators.row_reading import checked_rows
from softsplit.estimators.training_rows import checked_weights
from softsplit.fitted.baseline import Baseline
from softsplit.settings.parameter import documented
from softsplit.settings.regression import (
    SURVIVAL,
    SURVIVAL_SEARCH,
    TAKEN,
    NumberChoiceParameters,
)
from softsplit.support.arrays import FloatArray
from softsplit.support.inputs import refuse_lengths
from softsplit.tree.leaf_families import LeafFamily, Survival

LEAST_TIME = 1e-9
"""Operational times are at least this part of the largest one."""

ROUNDS = 2
"""Quick trees before the tree: hazard ratios change by some per cent in the second one."""

CHUNK = 512
"""Events that are compared with all rows at a time."""


@dataclass(frozen=True, eq=False)
class Times:
    """Whether each row had the event, 0 or 1, the time of it or of the last sight, and names."""

    events: FloatArray
    times: FloatArray
    event: str = "event"
    unit: str | None = None

    @classmethod
    def of(cls, y: Any) -> Self:
        """Return the targets of a structured array (event, time), or of columns (time, event)."""
        array = y if isinstance(y, np.ndarray) else None
        if array is not None and array.dtype.names is not None:
            if len(array.dtype.names) != 2:
                raise ValueError(f"y has the fields {array.dtype.names}; give (event, time).")
            names: list[Any] = list(array.dtype.names)[::-1]
            columns = [array[name] for name in names]
        else:
            frame = pd.DataFrame(y)
            if frame.shape[1] != 2:
                raise ValueError(
                    f"y has {frame.shape[1]} columns; give two, the time and whether the event "
                    "came (1) or the row was last seen without it (0); entry times, and columns "
                    "that change with time, are not modelled."
                )
            names, columns = list(frame.columns), [frame.iloc[:, k] for k in (0, 1)]
        try:
            times, events = (np.asarray(column, dtype=float) for column in columns)
        except (TypeError, ValueError):
            raise ValueError("y holds text; give times, and events as 0 and 1.") from None
        wrong = np.flatnonzero(~(np.isfinite(times) & (times >= 0)))
        if len(wrong):
            raise ValueError(
                f"the time of row {wrong[0]} is {times[wrong[0]]:g}; times must be finite and not "
                "negative."
            )
        if not np.all((events == 0) | (events == 1)):
            raise ValueError(
                "events must be 0 or 1; give the time first and the event second (of competing "
                "risks one event: they are not modelled together)."
            )
        event, unit = (n if isinstance(n, str) and n else None for n in names[::-1])
        return cls(events, times, event or "event", unit)

    def counted(self, baseline: Baseline) -> tuple[pd.Series, pd.Series]:
        """Return events and their exposure, the operational times."""
        clock = np.maximum(baseline.at(self.times), LEAST_TIME * baseline.hazards[-1])
        return pd.Series(self.events, name=self.event), pd.Series(clock, name=self.unit)

    def check(self, weight: FloatArray) -> None:
        """Raise a ValueError where there is nothing to learn from."""
        count = int(np.sum((self.events == 1) & (weight > 0)))
        if count < 2:
            raise ValueError(
                f"{'one row has' if count else 'no row has'} an event; a survival tree needs two."
            )


class SurvivalBase(LeafTree):
    """What both survival trees have in common."""

    def _family(self, given: dict[str, Any]) -> LeafFamily:
        return Survival()

    def _survive(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Self:
        """Train on operational times, and fit the baseline to the printed hazards."""
        refuse_lengths(X, y)
        known = Times.of(y)
        weight = checked_weights(sample_weight, known.times)
        known.check(weight)
        baseline = Baseline.of(known.times, known.events, weight, np.ones(len(weight)))
        quick = _QuickTree(**{name: getattr(self, name) for name in _QuickTree().get_params()})
        with all_or_nothing(self):
            for _ in range(ROUNDS):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    quick.fit(X, *known.counted(baseline), sample_weight)
                    risk = quick.predict(X)
                baseline = Baseline.of(known.times, known.events, weight, risk)
            events, clock = known.counted(baseline)
            self._train(X, events, sample_weight, groups, clock)
            rows = checked_rows(self, X)
            risk = self.tree_.calls(rows)
            baseline = Baseline.of(known.times, known.events, weight, risk)
            tree, numbers, baseline = self.tree_, self._numbers, baseline.short()
            parts = known.events, baseline.at(known.times)
            leaves, n_leaves = tree.arrive(rows), numbers.functions.n_leaves
            events_of, totals = (
                np.bincount(leaves, weight * part, n_leaves).astype(float) for part in parts
            )
            means = np.where(totals > 0, events_of / np.where(totals > 0, totals, 1.0), 1.0)
            numbers = replace(numbers, baseline=baseline, means=means, totals=totals)
            self.tree_ = replace(tree, numbers=numbers)
            held_out = getattr(self, "held_out_predictions_", None)
            if held_out is not None:  # expected events until the time
                self.held_out_predictions_ = held_out / clock.to_numpy()
            if hasattr(self, "best_estimator_"):
                self.best_estimator_.tree_ = self.tree_
        return self

    def predict(self, X: Any) -> FloatArray:
        """The hazard of each sample relative to the baseline: the larger, the earlier the event."""
        return self._said(X)[1]

    def predict_survival_function(self, X: Any, times: Any = None) -> FloatArray:
        """Probabilities that samples are free of the event at times, (n_samples, n_times).

        Without ``times`` they are those of ``baseline_times_``. After the last event of the
        training samples nothing is known, and the curves stay level.
        """
        risk, baseline = self.predict(X), self._baseline
        at = baseline.times if times is None else np.atleast_1d(np.asarray(times, dtype=float))
        return baseline.free(risk, at)

    def predict_median_time(self, X: Any) -> FloatArray:
        """Times at which half of the samples like these have had the event; infinite if never."""
        return self._baseline.medians(self.predict(X))

    @property
    def baseline_times_(self) -> FloatArray:
        """Times at which the curves step."""
        return self._baseline.times

    @property
    def _baseline(self) -> Baseline:
        baseline = self._numbers.baseline
        assert baseline is not None
        return baseline

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the concordance of Harrell: of pairs whose order is known, the share in which the
        sample with the earlier event has the larger hazard; equal hazards count one half."""
        refuse_lengths(X, y)
        known = Times.of(y)
        weight = checked_weights(sample_weight, known.times)
        return concordance(known.times, known.events, self.predict(X), weight)


class _QuickTree(SurvivalBase, SingleTree):
    """A tree with usual settings, from whose hazards the baseline follows."""

    def fit(self, X: Any, events: Any, exposure: Any, sample_weight: Any) -> Self:
        return self._train(X, events, sample_weight, exposure=exposure)


def concordance(
    times: FloatArray, events: FloatArray, risk: FloatArray, weight: FloatArray
) -> float:
    """Return the concordance of Harrell; NaN where no pair can be compared.

    A pair is known where one row has the event before the other, or at the time at which the other
    is last seen without it.
    """
    pairs = agreed = 0.0
    died: NDArray[np.intp] = np.flatnonzero(events == 1)
    for begin in range(0, len(died), CHUNK):
        own = died[begin : begin + CHUNK, None]
        later = (times > times[own]) | ((times == times[own]) & (events == 0))
        counts = later * weight * weight[own]
        order = np.sign(risk[own] - risk)
        pairs += float(counts.sum())
        agreed += float((counts * (0.5 + 0.5 * order)).sum())
    return agreed / pairs if pairs else float("nan")


@documented(*SURVIVAL, also=TAKEN)
@dataclass(kw_only=True, eq=False, repr=False)
class SoftTreeSurvival(SurvivalBase, SingleTree):
    """Sparse soft tree for times until an event, which censoring may hide.

    A few questions lead to a leaf, whose formula is a hazard: a product of factors. All leaves
    share one baseline curve over time. Truncation, columns that change with time and competing
    risks are not modelled.

    Parameters
    ----------
    **parameters
        Those of ``softsplit.settings.table``.

    Attributes
    ----------
    tree_ : TreeModel
        And the other attributes of a fitted ``SoftTreeRegressor``.
    baseline_times_ : array
        Times at which the curves of ``predict_survival_function`` step.

    Examples
    --------
    >>> import numpy as np
    >>> from softsplit import SoftTreeSurvival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> times = rng.exponential(np.exp(-X[:, 0])).round(2)
    >>> tree = SoftTreeSurvival(random_state=0).fit(X, np.column_stack([times, times < 2]))
    >>> bool(tree.score(X, np.column_stack([times, times < 2])) > 0.65)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on X (n_samples, n_features) and y, times and whether the event came.

        y is a structured array (event, time) as scikit-survival's, or has two columns: the time,
        and 1 for the event or 0 for the last sight without it. X is as for ``SoftTreeRegressor``.
        """
        return self._survive(X, y, sample_weight)


@documented(*SURVIVAL_SEARCH, also=TAKEN)
@dataclass(kw_only=True, eq=False, repr=False)
class SoftTreeSurvivalCV(NumberChoiceParameters, SurvivalBase, ChosenTree):
    """Soft survival tree whose depth and strength are chosen by cross-validated deviance.

    Parameters
    ----------
    **parameters
        Those of ``softsplit.settings.table``.

    Attributes
    ----------
    tree_ : TreeModel
        And all other attributes of a fitted ``SoftTreeSurvival``.
    best_params_, best_estimator_, best_score_, held_out_predictions_, cv_results_
        As of ``SoftTreeRegressorCV``; predictions are hazards.
    """

    _single = SoftTreeSurvival

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Compare settings on the folds, and train the chosen one on all rows; y as above."""
        return self._survive(X, y, sample_weight, groups)
