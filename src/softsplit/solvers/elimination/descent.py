"""L-BFGS on the smooth log-loss: splits and leaves move together, what is not free stays.

A descent keeps all that it knows in its memory, so that one cut into slices, between which a clock
is looked at, takes the same steps as a whole one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.solvers.elimination.objective import Field, Smoothing, value_and_gradient
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.support.linear_algebra import sum_of_products

PAIRS = 8
"""Curvature pairs kept."""

FIRST_MOVE = 0.2
"""Largest change of a number while no curvature is known."""

SUFFICIENT, MAX_CUTS = 1e-4, 20
STALLS = 2
"""Steps in a row that lower the function by too little, after which a descent ends."""

BEGUN, STORED, STALLED, ENDED, STEPS = range(5)
"""Counters: whether the first point is evaluated, pairs ever stored, stalled steps in a row,
whether the descent ended by itself, and steps so far."""


class Memory(NamedTuple):
    """What a descent knows."""

    gradient: FloatArray  # (n,)
    steps: FloatArray  # (PAIRS, n)
    changes: FloatArray  # (PAIRS, n)
    inverses: FloatArray  # (PAIRS,): 1 / (step . change)
    value: FloatArray  # (1,)
    inverse: FloatArray  # (n_free, n_free): where estimates begin; (0, 0) for a multiple of one
    places: NDArray[np.int64]  # (n_free,): the free numbers
    counters: NDArray[np.int64]  # see BEGUN


NO_INVERSE = np.zeros((0, 0))


def new_memory(free: NDArray[np.bool_], inverse: FloatArray = NO_INVERSE) -> Memory:
    """The memory of a descent of the free numbers, before its first point."""
    size = len(free)
    return Memory(
        np.zeros(size), np.zeros((PAIRS, size)), np.zeros((PAIRS, size)), np.zeros(PAIRS),
        np.zeros(1), inverse, np.flatnonzero(free), np.zeros(5, dtype=np.int64),
    )  # fmt: skip


@compiled
def descend(x, field, smoothing, free, shape, memory, max_iter, decrease, tol):  # type: ignore[no-untyped-def]
    """Up to ``max_iter`` steps from ``x``, in place; the value at the end.

    A descent ends by itself where two steps in a row lower the value by less than ``decrease`` of
    it, or where no derivative is larger than ``tol``. ``shape`` is (n_branches, n_classes).
    """
    n_branches, n_classes = shape
    size, counters = x.size, memory.counters
    scores = np.empty((n_branches, field.features.shape[1]))
    mass = np.empty((n_classes, n_branches + 1))
    least = 0.0  # values below the weight of all rows, or 1, are as good as none
    for i in range(field.weights.size):
        least += field.weights[i]
    least = min(1.0, least)
    moved, fresh, direction = np.empty(size), np.empty(size), np.empty(size)
    if counters[BEGUN] == 0:
        counters[BEGUN] = 1
        memory.value[0] = value_and_gradient(
            x, field, smoothing, free, memory.gradient, scores, mass
        )
    for _ in range(max_iter):
        if counters[ENDED] > 0 or largest(memory.gradient) <= tol:
            counters[ENDED] = 1
            break
        fall = aim(memory, direction)
        if not fall < 0.0:
            counters[STORED] = 0
            fall = aim(memory, direction)
        length = 1.0
        if counters[STORED] == 0 and memory.inverse.size == 0:
            length = min(1.0, FIRST_MOVE / max(largest(direction), 1e-300))
        value, found = memory.value[0], False
        for _ in range(MAX_CUTS):
            for i in range(size):
                moved[i] = x[i] + length * direction[i]
            new = value_and_gradient(moved, field, smoothing, free, fresh, scores, mass)
            if new <= value + SUFFICIENT * length * fall:
                found = True
                break
            length *= shorter(value, new, length * fall)
        counters[STEPS] += 1
        if not found:
            # No step leads down: once more without the pairs, then it is the end.
            if counters[STORED] == 0:
                counters[ENDED] = 1
            counters[STORED] = 0
            continue
        keep(x, moved, fresh, memory)
        small = value - new <= decrease * max(abs(new), least)
        counters[STALLED] = counters[STALLED] + 1 if small else 0
        if counters[STALLED] >= STALLS:
            counters[ENDED] = 1
        memory.value[0] = new
    return memory.value[0]


def evaluation(
    x: FloatArray, field: Field, smoothing: Smoothing, free: NDArray[np.bool_],
    shape: tuple[int, int],
) -> tuple[float, FloatArray]:  # fmt: skip
    """The function at ``x`` and its derivative: a descent of no steps, whose code there is."""
    memory = new_memory(free)
    value = descend(x, field, smoothing, free, shape, memory, 0, 0.0, 0.0)
    return float(value), memory.gradient


@compiled
def shorter(value, new, fall):  # type: ignore[no-untyped-def]
    """Minimum of the parabola through both values and the slope, kept within sight."""
    if not new < np.inf:
        return 0.1
    return min(0.5, max(0.1, 0.5 * fall / (fall + value - new)))


@compiled
def largest(vector):  # type: ignore[no-untyped-def]
    """The largest size of a number."""
    found = 0.0
    for i in range(vector.size):
        found = max(found, abs(vector[i]))
    return found


@compiled
def aim(memory, direction):  # type: ignore[no-untyped-def]
    """Minus the inverse Hessian estimate times the gradient; the slope along it."""
    gradient, steps, changes = memory.gradient, memory.steps, memory.changes
    inverses, stored = memory.inverses, memory.counters[STORED]
    size, used = gradient.size, min(stored, PAIRS)
    shares = np.empty(PAIRS)
    for i in range(size):
        direction[i] = -gradient[i]
    for back in range(used):
        k = (stored - 1 - back) % PAIRS
        shares[k] = sum_of_products(steps[k], direction) * inverses[k]
        for i in range(size):
            direction[i] -= shares[k] * changes[k, i]
    scale = 1.0
    if used > 0:
        last = (stored - 1) % PAIRS
        scratch = changes[last].copy()
        _precondition(memory, scratch)
        scale = 1.0 / (inverses[last] * max(sum_of_products(changes[last], scratch), 1e-300))
    _precondition(memory, direction)
    for i in range(size):
        direction[i] *= scale
    for back in range(used):
        k = (stored - used + back) % PAIRS
        share = shares[k] - sum_of_products(changes[k], direction) * inverses[k]
        for i in range(size):
            direction[i] += share * steps[k, i]
    return sum_of_products(gradient, direction)


@compiled
def _precondition(memory, vector):  # type: ignore[no-untyped-def]
    """vector = inverse vector over the free numbers; nothing where there is no inverse."""
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
    """Go to ``moved``; keep the pair if it shows positive curvature."""
    k = memory.counters[STORED] % PAIRS
    step, change = memory.steps[k], memory.changes[k]
    for i in range(x.size):
        step[i] = moved[i] - x[i]
        change[i] = fresh[i] - memory.gradient[i]
        x[i] = moved[i]
        memory.gradient[i] = fresh[i]
    curvature = sum_of_products(step, change)
    if curvature > 1e-10 * np.sqrt(sum_of_products(step, step) * sum_of_products(change, change)):
        memory.inverses[k] = 1.0 / curvature
        memory.counters[STORED] += 1


def steps_of(memory: Memory) -> int:
    """Steps that a descent has made."""
    return int(memory.counters[STEPS])


def ended(memory: Memory) -> bool:
    """Whether a descent has ended by itself."""
    return bool(memory.counters[ENDED])


__all__ = [
    "Field", "Memory", "Smoothing", "aim", "descend", "ended", "evaluation", "keep", "largest",
    "new_memory", "shorter", "steps_of",
]  # fmt: skip
