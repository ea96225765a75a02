"""Basin hopping (Wales and Doye, 1997): perturb a tree, descend, accept it if it is lower.

Each hop perturbs a copy of a tree (perturbations.py), descends, and is accepted if the objective is
lower than that of the tree; a hop that will not lead lower is rejected before its descent has
ended. The search stops when a further hop is unlikely to lead lower (solvers/stopping.py).

Perturbations that have improved trees of this problem come more often. One that improved s trees in
hops of W iterations altogether is credited with the rate

    (s + weight) / (W + prior x mean)

where the mean is the number of iterations of a hop so far: before the first hop the rates are in
the ratio of the weights, which served well on other problems. Every turn each perturbation gains a
part of one turn in proportion to its rate, and the one that has gained most has it. This needs no
random numbers, and leaves none out for good.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from softsplit.solvers.active_set.state import (
    EVALUATE_ONLY,
    POLISH,
    POLISH_NEWTON,
    ROUGH_FIRST_ORDER,
    ROUGH_NEWTON,
    DescentLimits,
)
from softsplit.solvers.base import OutOfBudget, Report, silent
from softsplit.solvers.basin_hopping.perturbations import (
    Fresh,
    OtherStrength,
    Perturbation,
    Point,
    Redraw,
    Regrow,
    Relabel,
    Reweigh,
    Warmed,
)
from softsplit.solvers.basin_hopping.run import DescentRun
from softsplit.solvers.basin_hopping.stages import LogWarmUp
from softsplit.solvers.stopping import GIVEN_UP, EndPoints, Stop


class DescentPair(NamedTuple):
    """The descent after which a hop may be rejected, and the one to the end."""

    first: DescentLimits
    second: DescentLimits


WITH_NEWTON = DescentPair(ROUGH_NEWTON, POLISH_NEWTON)
FIRST_ORDER_FIRST = DescentPair(ROUGH_FIRST_ORDER, POLISH)


class PerturbationSchedule:
    """The order of the perturbations of a search, from their ``weights``.

    ``prior`` is the number of hops for which a weight stands.
    """

    def __init__(self, weights: Sequence[float], prior: float = 30.0) -> None:
        self._successes = [float(weight) for weight in weights]
        self._work = [0.0] * len(self._successes)
        self._gained = [0.0] * len(self._successes)
        self._hops, self._prior = 0, prior

    @property
    def is_empty(self) -> bool:
        """Whether all perturbations were left out."""
        return max(self._successes) <= 0

    def next(self) -> int:
        """Return the number of the perturbation whose turn it is."""
        added = self._prior * (sum(self._work) / max(self._hops, 1) or 1.0)
        pairs = zip(self._successes, self._work, strict=True)
        rates = [successes / (work + added) for successes, work in pairs]
        whole = sum(rates)
        for number, rate in enumerate(rates):
            self._gained[number] += rate / whole
        chosen = self._gained.index(max(self._gained))
        self._gained[chosen] -= 1.0
        return chosen

    def learn(self, number: int, improved: bool, work: int) -> None:
        """Record that a hop with this perturbation took ``work`` iterations."""
        self._hops += 1
        self._work[number] += work
        self._successes[number] += improved

    def leave_out(self, number: int) -> None:
        """Leave out a perturbation that does nothing on the trees of this problem."""
        self._successes[number], self._gained[number] = 0.0, -inf


@dataclass(frozen=True)
class BasinHopping:
    """Hops from one of several trees, each by the perturbation whose turn it is.

    Every other hop is from the best tree; the others take turns. A tree is replaced by what it is
    improved to, and left out when that is as good as the best: it would be the best once more.
    """

    perturbations: tuple[Perturbation, ...] = (
        Redraw(steepness=(128.0, 256.0)),
        Reweigh(),
        Redraw(steepness=(128.0, 256.0), other=True),
        Relabel(),
        Reweigh(strength=3.0),
        Redraw(strengths=(0.05, 0.25)),
        Regrow(),
        Redraw(steepness=(128.0, 256.0)),
        Reweigh(power=2.0),
        OtherStrength((4.0, 2.0, 8.0)),
        Redraw(steepness=(128.0, 256.0), other=True),
        OtherStrength((0.2,)),
        Fresh(),
        Warmed(LogWarmUp((4.0, 16.0, 64.0), max_iter=15)),
    )
    """The weight of a perturbation is how often it stands here."""

    few: DescentPair = WITH_NEWTON
    many: DescentPair = FIRST_ORDER_FIRST
    many_coefficients: int = 100
    """Trees with more coefficients take ``many``: fifty first-order steps then cost less than
    fifteen Newton steps."""

    hopeless: float = 0.1
    """A hop that is still this part above its tree after the first descent is rejected."""

    slow: float = 3.0
    """So is one that has so many times as far to go as it came in the first steps of the second."""

    slow_steps: int = 15
    """Those first steps."""

    prior: float = 30.0
    """Hops for which the weight of a perturbation stands."""

    def improve(
        self,
        run: DescentRun,
        points: Sequence[Point],
        seeds: Iterator[int],
        ends: EndPoints,
        report: Report = silent,
    ) -> Point:
        """Return the lowest point when a better one has become unlikely, or the budget ends.

        It is the first of ``points`` itself if none was lower.
        """
        front = list(points)
        values = [np.inf] * len(front)
        every = self.perturbations
        kinds = [kind_ for n, kind_ in enumerate(every) if kind_ not in every[:n]]
        schedule = PerturbationSchedule([every.count(kind_) for kind_ in kinds], self.prior)
        turns = [0] * len(kinds)
        lowest = 0
        ends.stop = Stop.INTERRUPTED
        try:
            with run.work.budget.interruptible():
                values = [run.descend(*point, EVALUATE_ONLY) for point in front]
                lowest = int(np.argmin(values))
                while not ends.unlikely and not schedule.is_empty:
                    # 1. Perturb a copy of a tree.
                    report(ends.n_hops, values[lowest])
                    at, kind = _origin(ends.n_hops, lowest, len(front)), schedule.next()
                    before, seed = run.work.iterations, next(seeds)
                    perturbed = kinds[kind].apply(run, front[at], seed, turns[kind])
                    turns[kind] += 1
                    if perturbed is None:
                        schedule.leave_out(kind)
                        continue
                    # 2. Descend, and accept the end if it is lower.
                    value, point = self.descend(run, perturbed, values[at])
                    accepted = value < values[at] - run.work.budget.tol * run.problem.cost_unit
                    # 3. Record it: for the stopping rule, and for the order of perturbations.
                    ends.hop_ended(value)
                    schedule.learn(kind, accepted, run.work.iterations - before)
                    if accepted:
                        values[at], front[at] = value, point
                        lowest = _without_twin(at, front, values, ends)
                report(ends.n_hops, values[lowest])
                ends.stop = Stop.UNLIKELY if ends.unlikely else Stop.NO_MOVE
        except OutOfBudget:  # the best so far is what was asked for
            ends.stop = Stop[run.work.budget.verdict.name]
        return front[lowest]

    def descend(self, run: DescentRun, point: Point, aim: float) -> tuple[float, Point]:
        """Where a point leads, theta in place; it is given up if that will not be below ``aim``."""
        theta, leaves = point[0], np.array(point[1], dtype=float, order="C")
        first, second = self.many if theta.size > self.many_coefficients else self.few
        begin, rest = second.parted(self.slow_steps)
        # 1. A rough descent tells whether the tree is near the aim.
        run.forget(run.problem.steepness)
        value = run.descend(theta, leaves, first, choose=True)
        if value > aim + self.hopeless * abs(aim):
            return GIVEN_UP, (theta, leaves)
        # 2. The first steps of the second descent tell how fast it comes nearer.
        value = run.descend(theta, leaves, begin, seen=True, choose=True)
        if rest.max_iter == 0 or run.ended:
            return value, (theta, leaves)
        if value - aim > self.slow * (run.chosen_value - value):
            return GIVEN_UP, (theta, leaves)
        # 3. All others.
        return run.descend(theta, leaves, rest, seen=True), (theta, leaves)


def _origin(number: int, lowest: int, count: int) -> int:
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
