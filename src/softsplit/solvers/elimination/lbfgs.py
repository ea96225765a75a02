"""L-BFGS on the smooth log-loss (Nocedal 1980): splits and leaves move together.

A descent keeps its whole state in a ``Memory``, so that one cut into slices, between which Python
looks at the clock, takes the same steps as an uncut one. The inverse Hessian estimate starts from a
multiple of the identity, or from the inverse Fisher information (second_order.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.solvers.elimination.objective import (
    Shrinkage,
    SoftTargetRows,
    StandardisedRows,
    value_and_gradient,
)
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.support.linear_algebra import sum_of_products


class LBFGSConstants(NamedTuple):
    """Constants that compiled code knows at compile time."""

    pairs: int = 8  # curvature pairs kept
    first_move: float = 0.2  # largest change of a parameter while no curvature is known
    sufficient: float = 1e-4  # factor of the sufficient decrease (Armijo)
    max_cuts: int = 20  # most reductions of a step length
    stalls: int = 2  # steps in a row with too small a decrease that end a descent
    positive: float = 1e-10  # least cosine between step and gradient change of a pair that is kept


LBFGS = LBFGSConstants()

BEGUN, STORED, STALLED, ENDED, STEPS = range(5)
"""Places in ``Memory.counters``: whether the first point is evaluated, pairs ever stored, stalled
steps in a row, whether the descent ended by itself, and steps so far."""


class Memory(NamedTuple):
    """State of a descent of n parameters, of which n_free are free."""

    gradient: FloatArray  # (n,)
    steps: FloatArray  # (pairs, n)
    changes: FloatArray  # (pairs, n)
    inverses: FloatArray  # (pairs,): 1 / (step . change)
    value: FloatArray  # (1,)
    inverse: FloatArray  # (n_free, n_free): initial estimate; (0, 0): a multiple of the identity
    places: NDArray[np.int64]  # (n_free,): the free parameters
    counters: NDArray[np.int64]  # see BEGUN


NO_INVERSE = np.zeros((0, 0))


def new_memory(free: NDArray[np.bool_], inverse: FloatArray = NO_INVERSE) -> Memory:
    """Return the state of a descent of the free parameters before its first evaluation."""
    size, pairs = len(free), LBFGS.pairs
    return Memory(
        np.zeros(size), np.zeros((pairs, size)), np.zeros((pairs, size)), np.zeros(pairs),
        np.zeros(1), inverse, np.flatnonzero(free), np.zeros(5, dtype=np.int64),
    )  # fmt: skip


@compiled
def descend(x, rows, shrinkage, free, shape, memory, max_iter, decrease, tol):  # type: ignore[no-untyped-def]
    """Take up to ``max_iter`` steps from ``x``, in place; return the value at the end.

    A descent ends by itself when two steps in a row lower the value by less than ``decrease`` of
    it, or when no derivative is larger than ``tol``. ``shape`` is (n_branches, n_groups).
    """
    n_branches, n_groups = shape
    size, counters = x.size, memory.counters
    scores = np.empty((n_branches, rows.features.shape[1]))
    mass = np.empty((n_groups, n_branches + 1))
    # ``decrease`` is a part of the value, or of min(1, total weight) where the value is smaller.
    least = 0.0
    for i in range(rows.weights.size):
        least += rows.weights[i]
    least = min(1.0, least)
    moved, fresh, direction = np.empty(size), np.empty(size), np.empty(size)
    if counters[BEGUN] == 0:
        counters[BEGUN] = 1
        memory.value[0] = value_and_gradient(
            x, rows, shrinkage, free, memory.gradient, scores, mass
        )
    for _ in range(max_iter):
        # 1. The end: a gradient within the tolerance.
        if counters[ENDED] > 0 or largest(memory.gradient) <= tol:
            counters[ENDED] = 1
            break
        # 2. A direction of descent; without one the pairs are dropped.
        fall = aim(memory, direction)
        if not fall < 0.0:
            counters[STORED] = 0
            fall = aim(memory, direction)
        length = 1.0
        if counters[STORED] == 0 and memory.inverse.size == 0:
            length = min(1.0, LBFGS.first_move / max(largest(direction), 1e-300))
        # 3. Backtracking line search until the decrease is sufficient (Armijo).
        value, falls = memory.value[0], False
        for _ in range(LBFGS.max_cuts):
            for i in range(size):
                moved[i] = x[i] + length * direction[i]
            new = value_and_gradient(moved, rows, shrinkage, free, fresh, scores, mass)
            if new <= value + LBFGS.sufficient * length * fall:
                falls = True
                break
            length *= shorter(value, new, length * fall)
        counters[STEPS] += 1
        # 4. Without a step of lower value the pairs are dropped, once.
        if not falls:
            if counters[STORED] == 0:
                counters[ENDED] = 1
            counters[STORED] = 0
            continue
        # 5. The step becomes a pair; steps that gain little end the descent.
        keep(x, moved, fresh, memory)
        small = value - new <= decrease * max(abs(new), least)
        counters[STALLED] = counters[STALLED] + 1 if small else 0
        if counters[STALLED] >= LBFGS.stalls:
            counters[ENDED] = 1
        memory.value[0] = new
    return memory.value[0]


def evaluation(
    x: FloatArray, rows: StandardisedRows | SoftTargetRows, shrinkage: Shrinkage,
    free: NDArray[np.bool_], shape: tuple[int, int],
) -> tuple[float, FloatArray]:  # fmt: skip
    """Return value and gradient at ``x``.

    They come from a descent of no steps, whose machine code exists already.
    """
    memory = new_memory(free)
    value = descend(x, rows, shrinkage, free, shape, memory, 0, 0.0, 0.0)
    return float(value), memory.gradient


@compiled
def shorter(value, new, fall):  # type: ignore[no-untyped-def]
    """Factor of the next step length: the minimum of the parabola through both values and the
    slope ``fall``, limited to [0.1, 0.5]."""
    if not new < np.inf:
        return 0.1
    return min(0.5, max(0.1, 0.5 * fall / (fall + value - new)))


@compiled
def largest(vector):  # type: ignore[no-untyped-def]
    """Largest absolute value."""
    size = 0.0
    for i in range(vector.size):
        size = max(size, abs(vector[i]))
    return size


@compiled
def aim(memory, direction):  # type: ignore[no-untyped-def]
    """Write minus the inverse Hessian estimate times the gradient to ``direction``; return the
    slope along it. This is the two-loop recursion (Nocedal and Wright, algorithm 7.4)."""
    gradient, steps, changes = memory.gradient, memory.steps, memory.changes
    inverses, stored = memory.inverses, memory.counters[STORED]
    size, used = gradient.size, min(stored, LBFGS.pairs)
    shares = np.empty(LBFGS.pairs)
    for i in range(size):
        direction[i] = -gradient[i]
    for back in range(used):
        k = (stored - 1 - back) % LBFGS.pairs
        shares[k] = sum_of_products(steps[k], direction) * inverses[k]
        for i in range(size):
            direction[i] -= shares[k] * changes[k, i]
    # initial estimate, scaled by s.y / (y . inverse y) of the last pair
    scale = 1.0
    if used > 0:
        last = (stored - 1) % LBFGS.pairs
        scratch = changes[last].copy()
        _precondition(memory, scratch)
        scale = 1.0 / (inverses[last] * max(sum_of_products(changes[last], scratch), 1e-300))
    _precondition(memory, direction)
    for i in range(size):
        direction[i] *= scale
    for back in range(used):
        k = (stored - used + back) % LBFGS.pairs
        share = shares[k] - sum_of_products(changes[k], direction) * inverses[k]
        for i in range(size):
            direction[i] += share * steps[k, i]
    return sum_of_products(gradient, direction)


@compiled
def _precondition(memory, vector):  # type: ignore[no-untyped-def]
    """Replace ``vector`` by inverse times vector, over the free parameters; nothing without one."""
    inverse, places = memory.inverse, memory.places
    if inverse.size == 0:
        return
    count = places.size
    result = np.zeros(count)
    for a in range(count):  # symmetric: columns are rows
        part, row = vector[places[a]], inverse[a]
        for b in range(count):
            result[b] += part * row[b]
    for a in range(count):
        vector[places[a]] = result[a]


@compiled
def keep(x, moved, fresh, memory):  # type: ignore[no-untyped-def]
    """Move ``x`` to ``moved``; keep the pair of step and gradient change if its curvature is
    positive."""
    k = memory.counters[STORED] % LBFGS.pairs
    step, change = memory.steps[k], memory.changes[k]
    for i in range(x.size):
        step[i] = moved[i] - x[i]
        change[i] = fresh[i] - memory.gradient[i]
        x[i] = moved[i]
        memory.gradient[i] = fresh[i]
    curvature = sum_of_products(step, change)
    if curvature > LBFGS.positive * np.sqrt(
        sum_of_products(step, step) * sum_of_products(change, change)
    ):
        memory.inverses[k] = 1.0 / curvature
        memory.counters[STORED] += 1


def steps_of(memory: Memory) -> int:
    """Steps taken so far."""
    return int(memory.counters[STEPS])


def ended(memory: Memory) -> bool:
    """Whether the descent has ended by itself."""
    return bool(memory.counters[ENDED])
