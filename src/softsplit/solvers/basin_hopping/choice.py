"""Which move comes next: moves that have improved trees of this problem come more often.

A move that improved s trees in hops of W iterations altogether is credited with the rate

    (s + weight) / (W + PRIOR mean)

where the mean is the number of iterations of a hop so far: before the first hop moves stand to one
another as their weights, which are those that served well on other problems. Every turn each move
gains a part of one turn in proportion to its rate, and the one that has gained most has it. No
random numbers are needed, and none is left out for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

PRIOR = 30.0
"""Hops for which the weight of a move stands."""


class Choice:
    """The order of the moves of a search."""

    def __init__(self, weights: Sequence[float]) -> None:
        self._successes = [float(weight) for weight in weights]
        self._work = [0.0] * len(self._successes)
        self._gained = [0.0] * len(self._successes)
        self._hops = 0

    @property
    def exhausted(self) -> bool:
        """Whether all moves were left out."""
        return max(self._successes) <= 0

    def next(self) -> int:
        """The number of the move whose turn it is."""
        added = PRIOR * (sum(self._work) / max(self._hops, 1) or 1.0)
        pairs = zip(self._successes, self._work, strict=True)
        rates = [successes / (work + added) for successes, work in pairs]
        whole = sum(rates)
        for move, rate in enumerate(rates):
            self._gained[move] += rate / whole
        chosen = self._gained.index(max(self._gained))
        self._gained[chosen] -= 1.0
        return chosen

    def learn(self, move: int, improved: bool, work: int) -> None:
        """A hop with this move took ``work`` iterations."""
        self._hops += 1
        self._work[move] += work
        self._successes[move] += improved

    def leave_out(self, move: int) -> None:
        """This move does nothing on the trees of this problem."""
        self._successes[move], self._gained[move] = 0.0, -inf
