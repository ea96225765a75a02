"""The search around the best trees: hops from a tree to a nearby basin and down again.

Each hop moves a copy of the tree (moves.py), descends, and is kept if the objective is lower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from softsplit.solvers.base import Draw, Report, silent
from softsplit.solvers.native.descent import Limits
from softsplit.solvers.native.moves import (
    BRIEF,
    FIRST_ORDER,
    Fresh,
    Move,
    OtherStrength,
    Point,
    Regrow,
    Relabel,
    Replant,
    Reweigh,
    Warmed,
)
from softsplit.solvers.native.run import LOOK, DescentRun, OutOfBudget
from softsplit.solvers.native.stages import CLOSE, LogWarmUp, better_leaves
from softsplit.support.arrays import FloatArray

AT_ONCE = CLOSE._replace(newton_from=0)
"""The same end with Newton steps from the beginning."""


class Descents(NamedTuple):
    """The descent after which a hop may be given up, and the one to the end."""

    first: Limits
    second: Limits


WITH_NEWTON = Descents(BRIEF, AT_ONCE)
WITHOUT_AT_FIRST = Descents(FIRST_ORDER, CLOSE)

MANY = 100
"""Coefficients from which on fifty first-order steps cost less than fifteen Newton steps."""


@dataclass(frozen=True)
class Hops:
    """A round of hops, one for each draw, in a fixed cycle of moves.

    The trees hopped from take turns, a whole cycle each, and each is replaced by what it is
    improved to.
    """

    moves: tuple[Move, ...] = (
        Reweigh(),
        Replant(),
        Relabel(),
        Reweigh(strength=3.0),
        Replant(),
        Regrow(),
        Reweigh(power=2.0),
        Replant(),
        OtherStrength((4.0, 2.0, 8.0)),
        Warmed(LogWarmUp((4.0, 16.0, 64.0), max_iter=15)),
        Replant(),
        Fresh(),
        OtherStrength((0.2,)),
        Replant(),
    )
    few: Descents = WITH_NEWTON
    many: Descents = WITHOUT_AT_FIRST
    hopeless: float = 0.1
    """A hop that is still this part above its tree after the first descent is given up."""

    def improve(
        self,
        run: DescentRun,
        points: Sequence[Point],
        draws: Sequence[Draw],
        report: Report = silent,
    ) -> Point:
        """The lowest point after all hops; the first of ``points`` itself if none was lower."""
        front = list(points)
        values = [np.inf] * len(front)
        try:
            values = [run.descend(*point, LOOK) for point in front]
            for number, draw in enumerate(draws if self.moves else ()):
                report(number, min(values))
                cycle, kind = divmod(number, len(self.moves))
                turn, at = divmod(cycle, len(front))
                moved = self.moves[kind].apply(run, front[at], draw, turn)
                if moved is None:
                    continue
                value, leaves = self._descend(run, *moved, values[at])
                if value < values[at] - run.meter.budget.tol * run.problem.cost_unit:
                    values[at], front[at] = value, (moved[0], leaves)
            report(len(draws), min(values))
        except OutOfBudget:
            pass  # the best so far is what was asked for
        except KeyboardInterrupt:
            run.meter.budget.stop()
        return front[int(np.argmin(values))]

    def _descend(
        self, run: DescentRun, theta: FloatArray, leaves: FloatArray, lowest: float
    ) -> tuple[float, FloatArray]:
        run.forget(run.problem.steepness)
        leaves, _ = better_leaves(run, theta, leaves)
        descents = self.many if theta.size > MANY else self.few
        value = run.descend(theta, leaves, descents.first)
        if value > lowest + self.hopeless * abs(lowest):
            return np.inf, leaves
        leaves, _ = better_leaves(run, theta, leaves)
        return run.descend(theta, leaves, descents.second), leaves
