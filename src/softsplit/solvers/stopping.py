"""Where the descents of a fit have ended, and what more of them may find.

A descent, from a start or after a hop, ends in one of few or many trees. If n of them have ended in
w different trees, and all numbers of trees and all shares of the descents that lead to each were
equally likely beforehand, then (Boender and Rinnooy Kan, 1987, "Bayesian stopping rules for
multistart global optimization methods")

    unseen = w (w + 1) / (n (n - 1))     share of the descents that lead to trees not seen yet
    total  = w (n - 1) / (n - w - 2)     expected number of trees, seen or not; no end if n <= w + 2

A tree not seen yet is as likely to come first as in any other of the w + 1 places among those seen,
in the order of their objectives. So the next descent ends below the best with

    chance = unseen / (w + 1) = w / (n (n - 1))

which is 1 / (n - 1) if no two descents have ended alike, the chance of a record, and less the more
often they did. Descents that were given up have no end, and as large a part of the next ones will
have none: where so many were made altogether,

    chance = n / made x w / (n (n - 1)) = w / (made (n - 1))

and no more than 1 / (made - 1), that of a record. Starts that follow another count as no descents,
only the trees that they end in. The formula takes descents for independent draws,
and hops are not: this says when more of the same is hardly worth its time, and proves nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from enum import Enum
from typing import Any

GIVEN_UP = float("inf")
"""The objective of a descent that was given up, high above the best tree."""


class Stop(Enum):
    """Why no more trees were looked for."""

    UNLIKELY = "a further descent would hardly lead lower"
    NO_MOVE = "no tree could be moved any further"
    NO_SEARCH = "the solver does not search around the trees of its starts"
    TIME_LIMIT = "the time limit was reached"
    MAX_ITER = "the iterations of the search were used up"
    INTERRUPTED = "it was interrupted"


@dataclass(frozen=True)
class SearchSummary:
    """What the descents of a fit have found, as counts of trees of different objective.

    Attributes
    ----------
    n_starts, n_hops : int
        Descents from starts, and from trees that were moved.
    n_ends : int
        Different trees in which they ended.
    n_given_up : int
        Descents that were given up, since they would not have led low enough.
    n_best : int
        How many of them ended in the best.
    chance : float
        Estimated chance that a further descent would have ended lower.
    unseen : float
        Estimated share of descents that would have ended in a tree not seen yet.
    stop : Stop
        Why there were no more.
    """

    n_starts: int
    n_hops: int
    n_ends: int
    n_given_up: int
    n_best: int
    chance: float
    unseen: float
    stop: Stop

    def __getstate__(self) -> dict[str, Any]:
        """Why it stopped by its name: skops knows no enums."""
        return {**vars(self), "stop": self.stop.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({**state, "stop": Stop[state["stop"]]})

    def __str__(self) -> str:
        if self.stop is Stop.NO_SEARCH and self.n_best == self.n_starts > 1:
            return f"all {self.n_starts} starts ended in the same tree"
        hops = f" and {self.n_hops} hops" if self.n_hops else ""
        ends = "one tree" if self.n_ends == 1 else f"{self.n_ends} different trees"
        given_up = f"; {self.n_given_up} were abandoned" if self.n_given_up else ""
        if self.stop is Stop.NO_SEARCH and self.n_starts > 1:
            best = f"the best of {self.n_ends} different trees" if self.n_ends > 1 else "one tree"
            return f"{self.n_best} of {self.n_starts} starts ended in {best}{given_up}"
        return (
            f"{self.n_starts} start{'s' * (self.n_starts != 1)}{hops} ended in {ends}, "
            f"{self.n_best} of them in the best{given_up}; {self.stop.value}{self._chance}"
        )

    @property
    def _chance(self) -> str:
        """Of an estimate that takes descents for independent draws."""
        if self.stop is Stop.NO_SEARCH:
            return ""
        return f" (estimated chance {_percent(self.chance)})"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


class EndPoints:
    """The ends of descents so far.

    Parameters
    ----------
    least : float
        The chance of a better tree below which a further descent is not worth its time.
    resolution : float
        Objectives this close to one another count as equal, however small they are.
    same : float
        So do those that differ by no more than this part.
    """

    def __init__(self, least: float = 0.0, resolution: float = 0.0, same: float = 1e-4) -> None:
        self.least, self.resolution, self.same = least, resolution, same
        self.n_starts = self.n_hops = self.n_given_up = self.n_following = 0
        self.stop = Stop.NO_SEARCH
        self._objectives: list[float] = []  # in ascending order, those of different trees
        self._counts: list[int] = []

    def start_ended(self, objective: float) -> None:
        """A start has led to a tree of this objective; GIVEN_UP if to none."""
        self.n_starts += 1
        self._count(objective)

    def follower_ended(self, objective: float) -> None:
        """The same of a start that was made like another: no independent draw."""
        self.n_starts += 1
        self.n_following += 1
        if objective != GIVEN_UP:
            self._count(objective)

    def hop_ended(self, objective: float) -> None:
        """The same of a hop."""
        self.n_hops += 1
        self._count(objective)

    def _count(self, objective: float) -> None:
        if objective == GIVEN_UP:
            self.n_given_up += 1
            return
        # It is one of its neighbours in the order of objectives, or a new tree between them.
        at = bisect_left(self._objectives, objective)
        for near in (at, at - 1):
            if 0 <= near < len(self._counts) and self.alike(self._objectives[near], objective):
                self._counts[near] += 1
                return
        self._objectives.insert(at, objective)
        self._counts.insert(at, 1)

    def alike(self, one: float, other: float) -> bool:
        """Whether trees of these objectives count as one."""
        return one == other or abs(one - other) <= self.same * abs(one) + self.resolution

    @property
    def unseen(self) -> float:
        """Share of the descents that end in trees not seen yet."""
        return min(1.0, self.chance * (len(self._counts) + 1))

    @property
    def chance(self) -> float:
        """Chance that the next descent ends below the best."""
        descents = self.n_starts + self.n_hops - self.n_following
        n, w = descents - self.n_given_up, len(self._counts)
        record = 1.0 / (descents - 1) if descents > 1 else 1.0
        return min(record, w / (descents * (n - 1))) if n > 1 else record

    @property
    def unlikely(self) -> bool:
        """Whether a better tree is too unlikely for a further descent."""
        return self.chance < self.least

    def summary(self) -> SearchSummary:
        """Return all of this in numbers."""
        return SearchSummary(
            self.n_starts,
            self.n_hops,
            len(self._counts),
            self.n_given_up,
            self._counts[0] if self._counts else 0,
            self.chance,
            self.unseen,
            self.stop,
        )
