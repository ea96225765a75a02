"""Programs: short descents that follow one another on one tree, run by compiled code as a whole.

A hop of basin hopping, or a start in a race, is a sequence of descents with little to decide in
between: whether other leaves are cheaper, and whether it is worth going on. A *program* says what
is to happen:

    Forget    drop the curvature pairs, and precondition for gates of a steepness
    Leaves    take the cheapest leaves if they lower the objective
    Descend   a descent within limits, at a steepness and strengths of its own; or on the log-loss
              alone, with leaves that hold distributions
    Soften    leaves with a little of every class, for the log-loss
    Expect    leaves by an expectation step of the log-loss
    Far       give up if the objective is this part above the aim
    Slow      the program ends if the descent has; give up if it has this many times as far to go
              as it has come since the last Leaves

``encoded`` makes it an array with a line for each evaluation or descent, and ``follow`` runs these
over rows in memory: from Python there is one call for a whole program, and as many steps are made
as if descents were called one by one. There is one loop over the steps of a descent for all kinds
of lines, so that it is compiled once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from softsplit.engines.compiled import passes_of
from softsplit.engines.outer import IDENTITY, LOGARITHM
from softsplit.problem.leaves import SMOOTHING, TINY_SHARE, cheapest_labels
from softsplit.solvers.active_set.descent import (
    CALLS,
    CURVATURE,
    END,
    ENDED,
    EVALUATE_ONLY,
    PAIRS,
    PHASE,
    STEPS,
    TURN,
    VALUE,
    DescentLimits,
    propose,
    receive,
    receive_direction,
    state_of,
    taken,
)
from softsplit.solvers.active_set.faces import Sparse
from softsplit.solvers.active_set.newton import newton_direction
from softsplit.solvers.active_set.objective import Terms, smooth_derivative, smooth_value
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled, compiled_uncounted


@dataclass(frozen=True)
class Forget:
    """Drop the curvature pairs; ``steepness`` is that of the problem if not given."""

    steepness: float | None = None


@dataclass(frozen=True)
class Leaves:
    """Take the cheapest leaves if they lower the objective with its rate terms."""


@dataclass(frozen=True)
class Soften:
    """Mix a little of every class into every leaf, so that no row has probability zero."""


@dataclass(frozen=True)
class Expect:
    """c_kl in proportion to the responsibility of leaf l for the rows of class k."""


@dataclass(frozen=True)
class Descend:
    """A descent; ``reweighed`` with the row weights that are handed over with the program.

    ``log`` on the log-loss, without the class rates.
    """

    limits: DescentLimits
    steepness: float | None = None
    strength: float = 1.0
    reweighed: bool = False
    log: bool = False


@dataclass(frozen=True)
class Far:
    """Give up if F > aim + part |aim|."""

    part: float


@dataclass(frozen=True)
class Slow:
    """End if the descent has; give up if F - aim > times (F after the last Leaves - F)."""

    times: float


ProgramStep = Forget | Leaves | Soften | Expect | Descend | Far | Slow

MOST_KEPT = 100
"""Encoded forms of a program that are kept."""


class Lines(NamedTuple):
    """An encoded program, and the iterations that it may take, of which so many Newton steps."""

    array: FloatArray
    iterations: int
    newton: int


class Program:
    """Steps one after the other; two programs are the same only if they are one object.

    So that what is known of it is found at once: programs are made once and used for many hops.
    """

    def __init__(self, *steps: ProgramStep) -> None:
        self.steps = steps
        self._lines: dict[tuple[float, float], Lines] = {}

    def lines(self, steepness: float, unit: float) -> Lines:
        """Its lines on a problem of this steepness and cost unit."""
        found = self._lines.get((steepness, unit))
        if found is None:
            array = encoded(self.steps, steepness, unit)
            newton = np.maximum(array[:, MAX_ITER] - array[:, NEWTON_FROM], 0.0)
            found = Lines(array, int(array[:, MAX_ITER].sum()), int(newton.sum()))
            if len(self._lines) >= MOST_KEPT:
                self._lines.clear()
            self._lines[steepness, unit] = found
        return found


@cache
def joined(*programs: Program) -> Program:
    """One program after the other."""
    return Program(*(step for program in programs for step in program.steps))


ANEW, FORGETS, SOFTENS, REWEIGHED, OUTER, RATED, STEEPNESS, STRENGTH, AFTER, FACTOR = range(10)
MAX_ITER, TOL, DECREASE, PATIENCE, NEWTON_FROM, LEAST = range(10, 16)
WIDTH = 16
"""Columns of a line: whether the descent begins or goes on, the steepness for which curvature is
forgotten (0: it is not), whether leaves are softened, whether with other row weights, the outer
function, whether with the class rates, steepness, strength, what happens after the descent, and a
number for that; then its limits."""

NOTHING, COMPARE, CHOOSE, EXPECT, FAR, SLOW = range(6)
"""What happens after the descent of a line."""

OBJECTIVE, GIVEN_UP, ITERATIONS, EVALUATIONS = range(4)
"""The result of a program: F at its end, whether it was given up, and what it took."""


def line_of(
    limits: DescentLimits, steepness: float, strength: float = 1.0, outer: int = IDENTITY
) -> list[float]:
    """The line of one descent that begins."""
    return [1.0, 0.0, 0.0, 0.0, outer, 1.0, steepness, strength, NOTHING, 0.0, *limits]


def encoded(program: tuple[ProgramStep, ...], steepness: float, unit: float) -> FloatArray:
    """The lines of a program on a problem of this steepness and cost unit."""
    lines: list[list[float]] = []
    forgets = softens = 0.0
    for step in program:
        if isinstance(step, Forget):
            forgets = step.steepness or steepness
        elif isinstance(step, Soften):
            softens = 1.0
        elif isinstance(step, Expect):
            lines[-1][AFTER] = EXPECT
        elif isinstance(step, Far):
            lines[-1][AFTER], lines[-1][FACTOR] = FAR, step.part
        elif isinstance(step, Slow):
            lines[-1][AFTER], lines[-1][FACTOR] = SLOW, step.times
        else:
            added = _leaf_lines(steepness)
            if isinstance(step, Descend):
                limits = step.limits.in_units(unit)
                added = [line_of(limits, step.steepness or steepness, step.strength)]
                added[0][REWEIGHED] = step.reweighed
                added[0][OUTER] = LOGARITHM if step.log else IDENTITY
                added[0][RATED] = not step.log
            added[0][FORGETS], added[0][SOFTENS] = forgets, softens
            forgets = softens = 0.0
            lines += added
    return np.array(lines).reshape(-1, WIDTH)


def _leaf_lines(steepness: float) -> list[list[float]]:
    """A look at the leaves as they are, and one at the cheapest."""
    lines = [line_of(EVALUATE_ONLY, steepness), line_of(EVALUATE_ONLY, steepness)]
    lines[0][AFTER], lines[1][AFTER] = COMPARE, CHOOSE
    return lines


@compiled
def follow(  # type: ignore[no-untyped-def]
    program, theta, leaves, aim, costs, metric, passes, others, terms, sparse, state, result
):
    """Run a program from ``theta`` and ``leaves``, in place, over rows in memory.

    ``passes`` must hold the leaves; ``others`` are the same with other row weights. ``costs`` are
    those of the expected cost, for Leaves. The result goes to ``result``.
    """
    own = state_of(state)
    counters, numbers = own.counters, own.numbers
    cheapest = np.empty(leaves.shape)
    before, known, line, last = np.inf, False, 0, 0
    result[:] = 0.0
    while line < program.shape[0]:
        now = program[line]
        asked = others if now[REWEIGHED] > 0.0 else passes
        asked.steepness = now[STEEPNESS]
        asked.outer = int(now[OUTER])
        arrays = passes_of(asked)
        if now[FORGETS] > 0.0:
            forget(state, metric, now[FORGETS])
        if now[SOFTENS] > 0.0:
            soften(leaves)
        if now[SOFTENS] > 0.0 or now[OUTER] != program[last, OUTER]:
            _ask_for(costs, leaves, asked)
        known = known and _alike(now, program[last])
        limits = _limits_of(now)
        part = _at_strength(sparse, now[STRENGTH])
        rates = _rate_terms(terms, now[RATED])
        _begin(counters, now, known)
        _descend(theta, own, part, limits, arrays, rates)
        if limits.max_iter > 0:
            result[ITERATIONS] += counters[STEPS]
            result[EVALUATIONS] += counters[CALLS]
        value, known, last, line = numbers[VALUE], True, line, line + 1
        after = int(now[AFTER])
        if after == COMPARE:
            before = value
            if _other_leaves(costs, asked.mass, leaves, cheapest):
                _ask_for(costs, cheapest, asked)
                known = False
            else:
                line += 1  # there is nothing to choose between
        elif after == CHOOSE:
            if value <= before:
                before = value
                leaves[:, :] = cheapest
            else:
                value, known = before, False
                _ask_for(costs, leaves, asked)
        elif after == EXPECT:
            expect(asked.mass, leaves)
            _ask_for(costs, leaves, asked)
            known = False
        elif after == FAR:
            if value > aim + now[FACTOR] * abs(aim):
                result[GIVEN_UP] = 1.0
                line = program.shape[0]
        elif after == SLOW:
            if counters[ENDED] > 0:
                line = program.shape[0]
            elif value - aim > now[FACTOR] * (before - value):
                result[GIVEN_UP] = 1.0
                line = program.shape[0]
        result[OBJECTIVE] = value


@compiled_uncounted
def _descend(theta, state, sparse, limits, passes, terms):  # type: ignore[no-untyped-def]
    """The steps of a descent over rows in memory, until it ends or its limits do."""
    while True:
        wanted = propose(theta, state, sparse, limits)
        if wanted == END:
            return
        if wanted == CURVATURE:
            found = newton_direction(theta, passes, terms, sparse, state)
            receive_direction(theta, state, sparse, found)
            continue
        smooth = smooth_value(state.moved, passes, terms, state.free, state.active, state.fresh)
        if taken(state, sparse, smooth):
            smooth_derivative(state.moved, passes, terms, state.free, state.active, state.fresh)
        receive(theta, state, sparse, limits)


@compiled
def forget(state, metric, steepness):  # type: ignore[no-untyped-def]
    """Drop the curvature pairs; set the preconditioner for gates of this steepness.

    The curvature of a gate is of the order of its squared steepness.
    """
    state.counters[PAIRS] = 0
    state.damping[0] = 0.0
    scale = 16.0 / (steepness * steepness)
    for i in range(state.inverse.shape[0]):
        for j in range(state.inverse.shape[1]):
            state.inverse[i, j] = metric.inverse[i, j] * scale
    for j in range(state.diagonal.size):
        state.diagonal[j] = metric.diagonal[j] * scale


@compiled
def _limits_of(line):  # type: ignore[no-untyped-def]
    return DescentLimits(
        int(line[MAX_ITER]), line[TOL], line[DECREASE], int(line[PATIENCE]),
        int(line[NEWTON_FROM]), line[LEAST],
    )  # fmt: skip


@compiled
def _at_strength(sparse, strength):  # type: ignore[no-untyped-def]
    """Both penalties at a part of their strengths."""
    return Sparse(
        sparse.local_kind, sparse.local_first, sparse.local_second,
        strength * sparse.local_strength, sparse.global_kind, sparse.global_first,
        sparse.global_second, strength * sparse.global_strength, sparse.low, sparse.high,
        sparse.begins, sparse.places, sparse.prices,
    )  # fmt: skip


@compiled
def _rate_terms(terms, rated):  # type: ignore[no-untyped-def]
    """The terms, or the same without class rates."""
    weight = terms.rate_weight if rated > 0.0 else 0.0
    return Terms(
        terms.group_totals, terms.minimum_rates, terms.multipliers, weight, terms.proximal,
        terms.centre, terms.ridge,
    )  # fmt: skip


@compiled
def _alike(line, last):  # type: ignore[no-untyped-def]
    """Whether two lines lower the same function."""
    return (
        line[STEEPNESS] == last[STEEPNESS]
        and line[OUTER] == last[OUTER]
        and line[STRENGTH] == last[STRENGTH]
        and line[REWEIGHED] == last[REWEIGHED]
    )


@compiled
def _begin(counters, line, known):  # type: ignore[no-untyped-def]
    """Begin the descent of a line; where F is ``known`` at theta it is not evaluated again."""
    if line[ANEW] > 0.0:
        for c in range(PAIRS + 1, counters.size):
            counters[c] = 0
        if known:
            counters[PHASE] = TURN
    counters[STEPS] = 0
    counters[CALLS] = 0


@compiled
def _other_leaves(costs, mass, leaves, cheapest):  # type: ignore[no-untyped-def]
    """The cheapest leaves for these masses to ``cheapest``; whether they differ from ``leaves``."""
    n_groups, n_leaves = mass.shape
    prices = np.zeros((n_groups, n_leaves))
    for k in range(n_groups):
        for y in range(n_groups):
            for leaf in range(n_leaves):
                prices[k, leaf] += costs[y, k] * mass[y, leaf]
    labels = cheapest_labels(prices)
    differ = False
    for leaf in range(n_leaves):
        for k in range(n_groups):
            cheapest[k, leaf] = 1.0 if labels[leaf] == k else 0.0
            differ = differ or cheapest[k, leaf] != leaves[k, leaf]
    return differ


@compiled
def _ask_for(costs, leaves, passes):  # type: ignore[no-untyped-def]
    """Put the table of these leaves into ``passes``: of the expected cost, or of the log-loss."""
    table = passes.table
    for y in range(table.shape[0]):
        for leaf in range(table.shape[1]):
            passes.leaf_values[y, leaf] = table[y, leaf] = leaves[y, leaf]
            if passes.outer == IDENTITY:
                table[y, leaf] = 0.0
                for k in range(leaves.shape[0]):
                    table[y, leaf] += costs[y, k] * leaves[k, leaf]


@compiled
def soften(leaves):  # type: ignore[no-untyped-def]
    """Mix a little of every class into every leaf, in place.

    c_kl <- (1 - s) c_kl + s / n_groups, with a small share s.
    """
    n_groups = leaves.shape[0]
    for k in range(n_groups):
        for leaf in range(leaves.shape[1]):
            leaves[k, leaf] = (1.0 - SMOOTHING) * leaves[k, leaf] + SMOOTHING / n_groups


@compiled
def expect(by_table, leaves):  # type: ignore[no-untyped-def]
    """An expectation step for the leaves, in place, from the derivative of the log-loss by them.

    c_kl becomes proportional to c_kl times the responsibility of leaf l for the rows of class k,
    which is minus the derivative of the log-loss by c_kl; then it is softened.
    """
    for leaf in range(leaves.shape[1]):
        total = 0.0
        for k in range(leaves.shape[0]):
            leaves[k, leaf] *= -by_table[k, leaf]
            total += leaves[k, leaf]
        for k in range(leaves.shape[0]):
            leaves[k, leaf] /= max(total, TINY_SHARE)
    soften(leaves)
