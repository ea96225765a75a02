"""Compiled descent on the branches of a tree, leaf classes held fixed: a state that asks.

Minimises over theta = (weights, thresholds), one row of n_features + 1 numbers per branch,

    F(theta) = smooth part (objective.py) + local penalty + global penalty,   low <= theta <= high

with L-BFGS steps (Nocedal, 1980) on the face of the non-smooth part that the point lies on, as
OWL-QN does for an l1 penalty (Andrew and Gao, 2007); fixed entries are the active set:

- the minimum-norm subgradient (faces.py) decides which coefficients are fixed, free or tied;
- the direction is - P H P subgradient, where P keeps fixed entries fixed and ties tied and H is
  the inverse Hessian estimate, preconditioned with the Gram matrix of the features, or a Newton
  direction (directions.py);
- a trial point is clipped to the orthant, to the row's new maximum and to the bounds, so that zeros
  are exact; a sufficient decrease accepts it.

Curvature pairs come from the smooth part alone, so that they survive a change of the strengths.

A descent does not know where the rows are. ``propose`` says what it wants next, the smooth part
at ``state.moved`` or a Newton direction at theta; ``taken`` and ``receive`` or
``receive_direction`` take the answer. The loop around them stands twice: compiled, for rows in
memory (``descend_in_memory``), and in Python for rows elsewhere (``descend_elsewhere``). All
that a descent knows is coefficient-sized and lies in its state: one cut into slices takes the same
steps as a whole one.

Loops are written out where numpy expressions would do: they compile several times faster.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softsplit.problem.leaves import cheapest_labels
from softsplit.solvers.active_set.directions import (
    copy,
    direction_from,
    direction_of,
    dot,
    keep_pair,
    newton_direction,
)
from softsplit.solvers.active_set.faces import (
    FIXED,
    Sparse,
    clip_trial,
    penalty_value,
    snap_near_kinks,
    subgradient,
)
from softsplit.solvers.active_set.objective import RemoteObjective, smooth_derivative, smooth_value
from softsplit.solvers.active_set.state import (
    BACK,
    BEGIN,
    CALLS,
    CHOSEN,
    CUTS,
    DONE,
    ENDED,
    GAIN,
    LEAVE,
    LENGTH,
    MAX_VARIABLES,
    NEVER,
    NEWTON,
    NO_NEWTON,
    PAIRS,
    PHASE,
    SNAP,
    STALLED,
    STEPS,
    TRIAL,
    TRIED,
    TURN,
    VALUE,
    DescentLimits,
    DescentState,
)
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import (
    compiled,
    compiled_uncounted,
)

END, EVALUATE, CURVATURE = range(3)
"""What a descent asks for."""

SUFFICIENT = 1e-4
MAX_CUTS = 20
INVISIBLE = 1e-15
"""A step that promises less than this part of F cannot be told from rounding: none is shorter."""

ROUNDING = 1e-9
"""F may rise by this part of itself when a stuck point is put on the kinks beside it."""

LEAST_RAISED, MOST_DAMPING = 1e-4, 1e3
"""Range of the damping of Newton steps after one had to be shortened."""

FIRST_MOVE = 0.1
"""Largest change of a coefficient while no curvature is known: do not cross the data at once."""


@compiled_uncounted
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
        residual = subgradient(
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


@compiled_uncounted
def receive_direction(theta, state, sparse, downwards):  # type: ignore[no-untyped-def]
    """Go on after CURVATURE: ``state.direction`` is a Newton direction if ``downwards``."""
    if downwards and dot(state.slope, state.direction) < 0.0:
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


@compiled_uncounted
def taken(state, sparse, smooth):  # type: ignore[no-untyped-def]
    """Whether the derivative at ``state.moved`` is needed, where this is the smooth part: a trial
    point whose F is too large is left without."""
    numbers = state.numbers
    numbers[TRIED] = smooth + penalty_value(state.moved, sparse, state.floor)
    return state.counters[PHASE] != TRIAL or _lowers_enough(numbers)


@compiled_uncounted
def _lowers_enough(numbers):  # type: ignore[no-untyped-def]
    # Armijo's condition along the clipped step: F(moved) <= F + 1e-4 slope . (moved - theta).
    new, value = numbers[TRIED], numbers[VALUE]
    return new < value and new <= value + SUFFICIENT * min(numbers[GAIN], 0.0)


@compiled_uncounted
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


@compiled
def descend_in_memory(  # type: ignore[no-untyped-def]
    theta, leaves, costs, passes, added, state, limits, choose
):
    """Descend from ``theta``, in place, over rows in memory, until the descent or its limits end.

    ``passes``, ``added`` and ``state`` are bundles; ``passes`` must hold the leaves. With
    ``choose`` it begins with ``_choose_leaves``.
    """
    terms, sparse = added.content.terms, added.content.sparse
    if choose:
        _choose_leaves(theta, leaves, costs, state.content, sparse, passes.content, terms)
    _descend(theta, state.content, sparse, limits, passes.content, terms)


@compiled
def _choose_leaves(theta, leaves, costs, state, sparse, passes, terms):  # type: ignore[no-untyped-def]
    """Take the cheapest leaves, in place, if they lower F with its rate terms.

    ``costs`` are those of the expected cost, (n_groups, n_groups).
    """
    counters, numbers, mass = state.counters, state.numbers, passes.mass
    look = DescentLimits(0, 0.0, 0.0, 1, NEVER, 0.0)
    _descend(theta, state, sparse, look, passes, terms)
    numbers[CHOSEN] = numbers[VALUE]
    prices, cheapest = np.zeros(mass.shape), np.zeros(leaves.shape)
    for k in range(costs.shape[1]):
        for y in range(costs.shape[0]):
            for leaf in range(mass.shape[1]):
                prices[k, leaf] += costs[y, k] * mass[y, leaf]
    labels = cheapest_labels(prices)
    differ = False
    for leaf in range(leaves.shape[1]):
        cheapest[labels[leaf], leaf] = 1.0
        differ = differ or leaves[labels[leaf], leaf] != 1.0
    if differ:
        _put_leaves(cheapest, costs, passes)
        counters[PHASE] = BEGIN
        _descend(theta, state, sparse, look, passes, terms)
        if numbers[VALUE] <= numbers[CHOSEN]:
            leaves[:, :] = cheapest
            numbers[CHOSEN] = numbers[VALUE]
        else:
            _put_leaves(leaves, costs, passes)
            counters[PHASE] = BEGIN
    counters[CALLS] = 0


@compiled_uncounted
def _put_leaves(leaves, costs, passes):  # type: ignore[no-untyped-def]
    """Put these leaves, and the table of their expected costs, into ``passes``."""
    table = passes.table
    for y in range(table.shape[0]):
        for leaf in range(table.shape[1]):
            passes.leaf_values[y, leaf] = leaves[y, leaf]
            table[y, leaf] = 0.0
            for k in range(leaves.shape[0]):
                table[y, leaf] += costs[y, k] * leaves[k, leaf]


@compiled_uncounted
def _descend(theta, state, sparse, limits, passes, terms):  # type: ignore[no-untyped-def]
    while True:
        wanted = propose(theta, state, sparse, limits)
        if wanted == END:
            return
        if wanted == CURVATURE:
            downwards = newton_direction(theta, passes, terms, sparse, state)
            receive_direction(theta, state, sparse, downwards)
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
    own = state.content
    own.counters[PAIRS] = 0
    own.damping[0] = 0.0
    scale = 16.0 / (steepness * steepness)
    for i in range(own.inverse.shape[0]):
        for j in range(own.inverse.shape[1]):
            own.inverse[i, j] = metric.inverse[i, j] * scale
    for j in range(own.diagonal.size):
        own.diagonal[j] = metric.diagonal[j] * scale


def descend_elsewhere(
    theta: FloatArray,
    value_at: RemoteObjective,
    sparse: Sparse,
    limits: DescentLimits,
    state: DescentState,
    exhausted: Callable[[], bool],
) -> None:
    """Descend from ``theta``, in place, over rows elsewhere: ``value_at`` asks their engine.

    Newton steps are made if the engine has ``curvature``. An evaluation may take long there: the
    budget is looked at after each.
    """
    if not hasattr(value_at.rows, "curvature"):
        limits = limits._replace(newton_from=NEVER)
    while (wanted := propose(theta, state, sparse, limits)) != END:
        if wanted == CURVATURE:
            few = np.sum(state.faces != FIXED) <= MAX_VARIABLES
            downwards = few and direction_from(
                theta, value_at.hessian(theta, state.active), sparse, state
            )
            receive_direction(theta, state, sparse, bool(downwards))
        else:
            smooth = value_at(state.moved, state.fresh, state.active)
            taken(state, sparse, smooth)
            receive(theta, state, sparse, limits)
        if exhausted():
            return
