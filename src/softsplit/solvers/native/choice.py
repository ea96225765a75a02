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

import numpy as np

PRIOR = 30.0
"""Hops for which the weight of a move stands."""


class Choice:
    """The order of the moves of a search."""

    def __init__(self, weights: Sequence[float]) -> None:
        self._successes = np.array(weights, dtype=float)
        self._work = np.zeros(len(self._successes))
        self._gained = np.zeros(len(self._successes))
        self._hops = 0

    @property
    def exhausted(self) -> bool:
        """Whether all moves were left out."""
        return not np.any(self._successes > 0)

    def next(self) -> int:
        """The number of the move whose turn it is."""
        mean = self._work.sum() / max(self._hops, 1) or 1.0
        rates = self._successes / (self._work + PRIOR * mean)
        self._gained += rates / rates.sum()
        chosen = int(np.argmax(self._gained))
        self._gained[chosen] -= 1.0
        return chosen

    def learn(self, move: int, improved: bool, work: int) -> None:
        """A hop with this move took ``work`` iterations."""
        self._hops += 1
        self._work[move] += work
        self._successes[move] += improved

    def leave_out(self, move: int) -> None:
        """This move does nothing on the trees of this problem."""
        self._successes[move], self._gained[move] = 0.0, -np.inf
