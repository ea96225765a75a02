"""The search around the best trees: hops from a tree to a nearby basin and down again.

Each hop moves a copy of the tree (moves.py), descends, and is kept if the objective is lower. The
search stops by itself when a further hop is unlikely to lead lower (solvers/stopping.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from softsplit.solvers.active_set.descent import Limits
from softsplit.solvers.active_set.program import (
    LOOK,
    Descend,
    Far,
    Forget,
    Leaves,
    Program,
    Slow,
    joined,
)
from softsplit.solvers.base import Draw, Report, silent
from softsplit.solvers.basin_hopping.choice import Choice
from softsplit.solvers.basin_hopping.meter import OutOfBudget
from softsplit.solvers.basin_hopping.perturbations import (
    BRIEF,
    FIRST_ORDER,
    Fresh,
    Move,
    Moved,
    OtherStrength,
    Point,
    Regrow,
    Relabel,
    Replant,
    Reweigh,
    Warmed,
)
from softsplit.solvers.basin_hopping.run import DescentRun
from softsplit.solvers.basin_hopping.stages import CLOSE, LogWarmUp, carry_out
from softsplit.solvers.stopping import GIVEN_UP, EndPoints, Stop

AT_ONCE = CLOSE._replace(newton_from=0)
"""The same end with Newton steps from the beginning."""


class Descents(NamedTuple):
    """The descent after which a hop may be given up, and the one to the end."""

    first: Limits
    second: Limits


WITH_NEWTON = Descents(BRIEF, AT_ONCE)
WITHOUT_AT_FIRST = Descents(FIRST_ORDER, CLOSE)

GLIMPSE = 15
"""Steps of the second descent after which it may be given up."""

MANY = 100
"""Coefficients from which on fifty first-order steps cost less than fifteen Newton steps."""


@dataclass(frozen=True)
class Hops:
    """Hops from one of several trees, each by the move whose turn it is (choice.py).

    Every other hop is from the best tree; the others take turns. A tree is replaced by what it is
    improved to, and left out when that is as good as the best: it would be the best once more.
    """

    moves: tuple[Move, ...] = (
        Replant(steepness=(128.0, 256.0)),
        Reweigh(),
        Replant(steepness=(128.0, 256.0), other=True),
        Relabel(),
        Reweigh(strength=3.0),
        Replant(strengths=(0.05, 0.25)),
        Regrow(),
        Replant(steepness=(128.0, 256.0)),
        Reweigh(power=2.0),
        OtherStrength((4.0, 2.0, 8.0)),
        Replant(steepness=(128.0, 256.0), other=True),
        OtherStrength((0.2,)),
        Fresh(),
        Warmed(LogWarmUp((4.0, 16.0, 64.0), max_iter=15)),
    )
    """One that stands here twice comes twice as often, as long as no move has proved better."""

    few: Descents = WITH_NEWTON
    many: Descents = WITHOUT_AT_FIRST
    hopeless: float = 0.1
    """A hop that is still this part above its tree after the first descent is given up."""

    slow: float = 3.0
    """So is one that has so many times as far to go as it came in the first steps of the second."""

    def improve(
        self,
        run: DescentRun,
        points: Sequence[Point],
        draws: Iterator[Draw],
        ends: EndPoints,
        report: Report = silent,
    ) -> Point:
        """The lowest point when a better one has become unlikely, or the budget ends.

        It is the first of ``points`` itself if none was lower.
        """
        front = list(points)
        values = [np.inf] * len(front)
        moves = [move for n, move in enumerate(self.moves) if move not in self.moves[:n]]
        choice, turns = Choice([self.moves.count(move) for move in moves]), [0] * len(moves)
        lowest = 0
        try:
            values = [run.descend(*point, LOOK) for point in front]
            lowest = int(np.argmin(values))
            while not ends.unlikely and not choice.exhausted:
                report(ends.n_hops, values[lowest])
                at, kind = _whence(ends.n_hops, lowest, len(front)), choice.next()
                made, draw = run.meter.iterations, next(draws)
                moved = moves[kind].apply(run, front[at], draw, turns[kind])
                turns[kind] += 1
                if moved is None:
                    choice.leave_out(kind)
                    continue
                value, point = self.descend(run, moved, values[at])
                better = value < values[at] - run.meter.budget.tol * run.problem.cost_unit
                ends.hop_ended(value)
                choice.learn(kind, better, run.meter.iterations - made)
                if better:
                    values[at], front[at] = value, point
                    lowest = _without_twin(at, front, values, ends)
            report(ends.n_hops, values[lowest])
            ends.stop = Stop.UNLIKELY if ends.unlikely else Stop.NO_MOVE
        except OutOfBudget:  # the best so far is what was asked for
            ends.stop = Stop[run.meter.budget.verdict.name]
        except KeyboardInterrupt:
            run.meter.budget.stop()
            ends.stop = Stop.INTERRUPTED
        return front[lowest]

    def descend(self, run: DescentRun, moved: Moved, aim: float) -> tuple[float, Point]:
        """Where ``moved`` leads; it is given up if that will not come near ``aim``."""
        descents = self.many if moved.theta.size > MANY else self.few
        onward = _onward(descents, self.hopeless, self.slow)
        program = joined(moved.lead, onward)
        end = carry_out(run, program, moved.theta, moved.leaf_classes, aim, moved.rows)
        return GIVEN_UP if end.given_up else end.value, (moved.theta, end.leaf_classes)


@cache
def _onward(descents: Descents, hopeless: float, slow: float) -> Program:
    """From where a move has led to the end, or until it is given up."""
    begin, rest = descents.second.parted(GLIMPSE)
    near = (Forget(), Leaves(), Descend(descents.first), Far(hopeless), Leaves())
    if rest.max_iter == 0:
        return Program(*near, Descend(begin))
    return Program(*near, Descend(begin), Slow(slow), Descend(rest))


def _whence(number: int, lowest: int, count: int) -> int:
    """The tree of a hop: every other time the best, else the others in turn."""
    turn, other = divmod(number, 2)
    if not other or count == 1:
        return lowest
    at = turn % (count - 1)
    return at if at < lowest else at + 1


def _without_twin(improved: int, front: list[Point], values: list[float], ends: EndPoints) -> int:
    """Leave out a tree that has become as good as another; the number of the best one."""
    for other, value in enumerate(values):
        if other != improved and ends.alike(value, values[improved]):
            worse = other if value > values[improved] else improved
            del front[worse], values[worse]
            break
    return int(np.argmin(values))
