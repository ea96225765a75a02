"""Compiled descent on the branches of a tree, leaf classes held fixed: a state that asks.

Minimises over theta = (weights, thresholds), one row of n_features + 1 numbers per branch,

    F(theta) = smooth part (objective.py) + local penalty + global penalty,   low <= theta <= high

with L-BFGS steps on the face of the non-smooth part that the point lies on:

- the minimum-norm subgradient (faces.py) decides which coefficients are fixed, free or tied;
- the direction is - P H P subgradient, where P keeps fixed entries fixed and ties tied and H is
  the inverse Hessian estimate, preconditioned with the Gram matrix of the features, or a Newton
  direction (newton.py);
- a trial point is clipped to the orthant, to the row's new maximum and to the bounds, so that zeros
  are exact; a sufficient decrease accepts it.

Curvature pairs come from the smooth part alone, so that they survive a change of the strengths.

A descent does not know where the rows are. ``propose`` says what it wants next, the smooth part
at ``state.moved`` or a Newton direction at theta; ``taken`` and ``receive`` or
``receive_direction`` take the answer. The loop around them stands twice: compiled, for rows in
memory (``follow`` of program.py), and in Python for rows elsewhere (``descend_elsewhere``). All
that a descent knows is coefficient-sized and lies in its state: one cut into slices takes the same
steps as a whole one.

Loops are written out where numpy expressions would do: they compile several times faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from softsplit.solvers.active_set.faces import (
    FIXED,
    Sparse,
    clip_trial,
    penalty_value,
    snap_near_kinks,
    subgradient_in,
)
from softsplit.solvers.active_set.lbfgs import copy, direction_of, dot, keep_pair
from softsplit.solvers.active_set.newton import direction_from
from softsplit.solvers.active_set.objective import RemoteObjective
from softsplit.solvers.active_set.state import (
    CALLS,
    CUTS,
    DONE,
    ENDED,
    GAIN,
    LENGTH,
    MAX_VARIABLES,
    NEWTON,
    NO_NEWTON,
    PAIRS,
    PHASE,
    STALLED,
    STEPS,
    TRIED,
    VALUE,
    State,
)
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled_uncounted, shared_uncounted

BEGIN, TURN, TRIAL, BACK, SNAP, LEAVE = range(6)
"""Phases: at the first point, between two steps, on a step, back from one that failed, on the kinks
beside a stuck point, and back from there for good."""

END, EVALUATE, CURVATURE = range(3)
"""What a descent asks for."""

SUFFICIENT = 1e-4
MAX_CUTS = 20
INVISIBLE = 1e-15
"""A step that promises less than this part of F cannot be told from rounding: none is shorter."""

ROUNDING = 1e-9
"""F may rise by this part of itself when a stuck point is put on the kinks beside it."""

NEVER = 1_000_000_000
"""For ``Limits.newton_from``: first-order steps only."""
LEAST_RAISED, MOST_DAMPING = 1e-4, 1e3
"""Range of the damping of Newton steps after one had to be shortened."""

FIRST_MOVE = 0.1
"""Largest change of a coefficient while no curvature is known: do not cross the data at once."""


class Limits(NamedTuple):
    """When a descent ends."""

    max_iter: int
    tol: float  # largest entry of the subgradient, in cost units of the problem
    decrease: float  # relative decrease of F below which an iteration counts as stalled
    patience: int  # stalled iterations in a row before giving up
    newton_from: int  # first iteration that tries a Newton direction
    least: float = 1e-8  # absolute decrease, in cost units, below which it counts as stalled

    def parted(self, steps: int) -> tuple[Limits, Limits]:
        """Limits of the first so many iterations, and of the rest."""
        first = min(steps, self.max_iter)
        rest = self._replace(
            max_iter=self.max_iter - first,
            newton_from=NEVER if self.newton_from == NEVER else max(0, self.newton_from - first),
        )
        return self._replace(max_iter=first), rest

    def in_units(self, unit: float) -> Limits:
        """The same for a problem of this cost unit."""
        return self._replace(tol=self.tol * unit, least=self.least * unit)


@shared_uncounted
def propose(theta, state, sparse, limits):  # type: ignore[no-untyped-def]
    """What the descent wants next: END, EVALUATE (at ``state.moved``) or CURVATURE."""
    counters = state.counters
    if counters[ENDED] > 0:
        return END
    phase = counters[PHASE]
    if phase in (BEGIN, BACK, LEAVE):
        copy(theta, state.moved)
    elif phase == TURN:
        if counters[STEPS] >= limits.max_iter:
            return END
        residual = subgradient_in(
            theta, state.gradient, sparse, state.free, state.floor, state.slope, state.faces,
            state.scratch,
        )  # fmt: skip
        if residual <= limits.tol:
            counters[ENDED] = 1
            return END
        if counters[NO_NEWTON] == 0 and counters[DONE] >= limits.newton_from:
            return CURVATURE
        _first_order(theta, state, sparse)
    return EVALUATE


@shared_uncounted
def receive_direction(theta, state, sparse, found):  # type: ignore[no-untyped-def]
    """Go on after CURVATURE: ``state.direction`` is a Newton direction if ``found``."""
    if found and dot(state.slope, state.direction) < 0.0:
        _begin_step(theta, state, sparse, True)
    else:
        _first_order(theta, state, sparse)


@compiled_uncounted
def _first_order(theta, state, sparse):  # type: ignore[no-untyped-def]
    """Begin a step along an L-BFGS direction; one that does not lead down drops the pairs."""
    if not direction_of(theta, sparse, state) < 0.0:
        state.counters[PAIRS] = 0
        direction_of(theta, sparse, state)
    _begin_step(theta, state, sparse, False)


@compiled_uncounted
def _begin_step(theta, state, sparse, newton):  # type: ignore[no-untyped-def]
    """Set the length of a step along ``state.direction``, and its first trial point."""
    counters, direction = state.counters, state.direction
    length = 1.0
    if not newton and counters[PAIRS] == 0:
        largest = 0.0
        for t in range(theta.shape[0]):
            for j in range(theta.shape[1]):
                largest = max(largest, abs(direction[t, j]))
        length = min(1.0, FIRST_MOVE / max(largest, 1e-300))
    counters[NEWTON] = 1 if newton else 0
    counters[CUTS] = 0
    counters[PHASE] = TRIAL
    state.numbers[LENGTH] = length
    _trial_point(theta, state, sparse)


@compiled_uncounted
def _trial_point(theta, state, sparse):  # type: ignore[no-untyped-def]
    moved, slope = state.moved, state.slope
    clip_trial(
        theta, state.direction, slope, state.faces, sparse, state.free, state.floor,
        state.numbers[LENGTH], moved,
    )  # fmt: skip
    gain = 0.0
    for t in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            gain += slope[t, j] * (moved[t, j] - theta[t, j])
    state.numbers[GAIN] = gain


@shared_uncounted
def taken(state, sparse, smooth):  # type: ignore[no-untyped-def]
    """Whether the derivative at ``state.moved`` is needed, where this is the smooth part: a trial
    point whose F is too large is left without."""
    numbers = state.numbers
    numbers[TRIED] = smooth + penalty_value(state.moved, sparse, state.floor)
    return state.counters[PHASE] != TRIAL or _lowers_enough(numbers)


@compiled_uncounted
def _lowers_enough(numbers):  # type: ignore[no-untyped-def]
    new, value = numbers[TRIED], numbers[VALUE]
    return new < value and new <= value + SUFFICIENT * min(numbers[GAIN], 0.0)


@shared_uncounted
def receive(theta, state, sparse, limits):  # type: ignore[no-untyped-def]
    """Go on after ``taken``; if it said so, the derivative is in ``state.fresh``."""
    counters, numbers = state.counters, state.numbers
    counters[CALLS] += 1
    phase, value, new = counters[PHASE], numbers[VALUE], numbers[TRIED]
    if phase == TRIAL:
        _judge_trial(theta, state, sparse, limits)
    elif phase == SNAP:
        if new <= value + ROUNDING * abs(value):
            copy(state.moved, theta)
            copy(state.fresh, state.gradient)
            numbers[VALUE] = new
            counters[NO_NEWTON] = 0
            counters[PHASE] = TURN
        else:
            counters[PHASE] = LEAVE
    else:
        copy(state.fresh, state.gradient)
        counters[PHASE] = TURN
        if phase == BEGIN:
            numbers[VALUE] = new
        elif phase == LEAVE:
            counters[ENDED] = 1
        else:
            _after_failure(theta, state, sparse)


@compiled_uncounted
def _after_failure(theta, state, sparse):  # type: ignore[no-untyped-def]
    """No step along the direction lowers F: try another kind, the kinks nearby, or end."""
    counters = state.counters
    if counters[NEWTON] > 0:
        counters[NO_NEWTON] = 1
    elif counters[PAIRS] > 0:
        counters[PAIRS] = 0
    elif snap_near_kinks(theta, sparse, state.free, state.floor, state.moved):
        counters[PHASE] = SNAP
    else:
        counters[ENDED] = 1


@compiled_uncounted
def _judge_trial(theta, state, sparse, limits):  # type: ignore[no-untyped-def]
    """Take the trial point, shorten the step, or give it up."""
    counters, numbers = state.counters, state.numbers
    value, gain, new = numbers[VALUE], numbers[GAIN], numbers[TRIED]
    counters[CUTS] += 1
    if _lowers_enough(numbers):
        _count_step(counters, state.damping)
        keep_pair(state, theta)
        small = value - new <= max(limits.decrease * abs(new), limits.least)
        counters[STALLED] = counters[STALLED] + 1 if small else 0
        copy(state.moved, theta)
        copy(state.fresh, state.gradient)
        numbers[VALUE] = new
        counters[PHASE] = TURN
        counters[NO_NEWTON] = 0
        if counters[STALLED] >= limits.patience:
            counters[ENDED] = 1
    elif abs(gain) <= INVISIBLE * abs(value) or counters[CUTS] >= MAX_CUTS:
        _count_step(counters, state.damping)
        counters[PHASE] = BACK  # the engine is to hold the slopes of theta again
    else:
        # Minimum of the parabola through both values and the slope, kept within sight.
        fall = value - new
        shrink = 0.1
        if gain < 0.0 and fall <= 0.0 and new < np.inf:
            shrink = min(0.5, max(0.1, 0.5 * gain / (gain + fall)))
        numbers[LENGTH] *= shrink
        _trial_point(theta, state, sparse)


@compiled_uncounted
def _count_step(counters, damping):  # type: ignore[no-untyped-def]
    counters[STEPS] += 1
    counters[DONE] += 1
    if counters[NEWTON] > 0 and counters[CUTS] > 1:
        # A step that had to be shortened: the model holds less far than it was trusted.
        raised = max(damping[0], LEAST_RAISED) * 10.0 ** min(counters[CUTS], 3)
        damping[0] = min(raised, MOST_DAMPING)


def descend_elsewhere(
    theta: FloatArray, value_at: RemoteObjective, sparse: Sparse, limits: Limits, state: State,
    exhausted: Callable[[], bool],
) -> None:  # fmt: skip
    """Descend from ``theta``, in place, over rows elsewhere: ``value_at`` asks their engine.

    Newton steps are made if the engine has ``curvature``. An evaluation may take long there: the
    budget is looked at after each.
    """
    if not hasattr(value_at.rows, "curvature"):
        limits = limits._replace(newton_from=NEVER)
    while (wanted := propose(theta, state, sparse, limits)) != END:
        if wanted == CURVATURE:
            few = np.sum(state.faces != FIXED) <= MAX_VARIABLES
            found = few and direction_from(
                theta, value_at.hessian(theta, state.active), sparse, state
            )
            receive_direction(theta, state, sparse, bool(found))
        else:
            smooth = value_at(state.moved, state.fresh, state.active)
            taken(state, sparse, smooth)
            receive(theta, state, sparse, limits)
        if exhausted():
            return
