"""What a fitted tree was required to hold on rates, and what it holds, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MET = 1e-6
"""An expected rate that misses its bound by no more holds it."""

ACTIVE = 1e-3
"""A bound that the expected rates are further from has no cost."""


@dataclass(frozen=True)
class RateRecord:
    """A requirement on rates with the rates of the training rows.

    Attributes
    ----------
    name : str
        What is required, such as "parity of sex: rate of yes".
    of : str
        The class.
    groups : tuple of str
        Names of the groups that are compared; one without a name for a bound on a single rate.
    low, high : float
        Bounds of a single rate; of several groups ``high`` bounds the difference of the largest and
        the smallest.
    expected : tuple of float
        Expected rate of each group: the mean of ``predict_proba``.
    decided : tuple of float
        Share of the rows of each group for which ``predict`` is the class.
    weights : tuple of float
        Weight of the rows of each group.
    multiplier : float
        Increase of the training loss per unit by which the bound is tightened.
    grain : float
        The share of one row in the smallest group: decisions hold the bound to that.
    """

    name: str
    of: str
    groups: tuple[str, ...]
    low: float
    high: float
    expected: tuple[float, ...]
    decided: tuple[float, ...]
    weights: tuple[float, ...]
    multiplier: float = 0.0
    grain: float = 0.0

    @property
    def decisions_hold(self) -> bool:
        """Whether the decisions on the training rows hold the bound."""
        return self.excess(self.decided) <= self.grain + MET

    @property
    def compares(self) -> bool:
        """Whether groups are compared."""
        return len(self.groups) > 1

    def excess(self, rates: tuple[float, ...]) -> float:
        """By how much ``rates`` of the groups miss the bound; 0 if they hold it."""
        if self.compares:
            return max(0.0, max(rates) - min(rates) - self.high)
        return max(0.0, self.low - rates[0], rates[0] - self.high)

    @property
    def bound(self) -> str:
        """The bound in words."""
        if self.compares:
            return f"differ by at most {self.high:.4g}"
        sides = [f"at least {self.low:.4g}"] if np.isfinite(self.low) else []
        sides += [f"at most {self.high:.4g}"] if np.isfinite(self.high) else []
        return " and ".join(sides)

    @property
    def active(self) -> bool:
        """Whether the expected rates are at the bound; if not, it costs nothing."""
        rates = self.expected
        if self.compares:
            return max(rates) - min(rates) >= self.high - ACTIVE
        return min(abs(rates[0] - self.low), abs(rates[0] - self.high)) <= ACTIVE

    def shown(self, rates: tuple[float, ...]) -> str:
        """Rates of the groups in words, with their difference."""
        if not self.compares:
            return f"{rates[0]:.3f}"
        listed = ", ".join(f"{g} {r:.3f}" for g, r in zip(self.groups, rates, strict=True))
        return f"{listed} (difference {max(rates) - min(rates):.3f})"

    def line(self) -> str:
        """The requirement and what holds on the training rows, in one line."""
        said = f"{self.name}, {self.bound}: expected {self.shown(self.expected)}"
        said += f"; decisions {self.shown(self.decided)}"
        if not self.decisions_hold:
            said += ", which miss it"
        elif self.excess(self.decided) > MET:
            said += ", which miss it by no more than one row of the smallest group"
        if self.multiplier > 0 and self.active:
            said += f"; the bound costs {self.multiplier:.3g} of loss per unit"
        return said
