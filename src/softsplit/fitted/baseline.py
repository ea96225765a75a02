"""The cumulative hazard over time that the leaves of a survival tree share.

A row of hazard h is free of events at time t with probability S(t) = exp(-h H(t)). From event times
t_i with weights v_i and hazards h_j of the rows that are still at risk (Breslow),

    H(t) = sum_{events t_i <= t} v_i / sum_{j: t_j >= t_i} v_j h_j,

a step function; with h = 1 it is the estimate of Nelson and Aalen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softsplit.support.arrays import FloatArray

MOST_STEPS = 500
"""Steps that are kept; of more, those nearest to as many equal parts of the hazard."""


@dataclass(frozen=True, eq=False)
class Baseline:
    """Event times in ascending order, and the cumulative hazard H from each of them on."""

    times: FloatArray
    hazards: FloatArray

    @classmethod
    def of(
        cls, times: FloatArray, events: FloatArray, weight: FloatArray, risk: FloatArray
    ) -> Baseline:
        """Return the estimate of Breslow from rows, arrays (n_rows,)."""
        own, place = np.unique(times, return_inverse=True)
        died = np.bincount(place, weight * events)
        at_risk = np.cumsum(np.bincount(place, weight * risk)[::-1])[::-1]
        steps = np.flatnonzero(died > 0)
        return cls(own[steps], np.cumsum(died[steps] / at_risk[steps]))

    def short(self) -> Baseline:
        """Return the baseline with at most MOST_STEPS steps, the first and last of them."""
        if len(self.times) <= MOST_STEPS:
            return self
        levels = np.linspace(self.hazards[0], self.hazards[-1], MOST_STEPS)
        some = np.unique(np.searchsorted(self.hazards, levels * (1 - 1e-12)))
        return Baseline(self.times[some], self.hazards[some])

    def at(self, times: FloatArray) -> FloatArray:
        """Return H at some times."""
        place = np.searchsorted(self.times, times, side="right")
        return np.append(0.0, self.hazards)[place]

    def free(self, risk: FloatArray, times: FloatArray) -> FloatArray:
        """Return the shares without event of hazards at times, (n_rows, n_times)."""
        return np.exp(-np.multiply.outer(risk, self.at(times)))

    def medians(self, risk: FloatArray) -> FloatArray:
        """Return the first times at which half have had the event; infinite where that is never."""
        with np.errstate(divide="ignore"):
            level = np.log(2.0) / risk
        place = np.searchsorted(self.hazards, level * (1 - 1e-12))
        return np.append(self.times, np.inf)[place]
