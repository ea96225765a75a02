"""What a descent knows: arrays of the size of the coefficients, and a few counters and numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.core import types
from numba.experimental import structref
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled, compiled_uncounted, from_python

MEMORY = 10
"""Curvature pairs kept."""

MAX_VARIABLES = 300
"""Coefficients that may move in a Newton step."""

PAIRS, STALLED, DONE, NO_NEWTON, PHASE, STEPS, CALLS, CUTS, NEWTON, ENDED = range(10)
"""Counters of a descent: pairs stored, stalled iterations in a row, iterations since it began,
whether the last Newton direction failed, its phase (0 at the beginning), iterations and calls of
this slice, cuts of the present step, whether that is a Newton step, and whether the descent has
ended by itself."""

VALUE, LENGTH, GAIN, TRIED = range(4)
"""Numbers of a descent: F, length of the present step, what it promises, and F where it was last
asked for."""


class State(NamedTuple):
    """All that a descent knows; arrays of the shape of theta are (n_branches, n_features + 1)."""

    counters: NDArray[np.int64]  # see PAIRS
    numbers: FloatArray  # see VALUE
    gradient: FloatArray  # of the smooth part at theta
    fresh: FloatArray  # of the smooth part at moved
    slope: FloatArray  # minimum-norm subgradient of F at theta
    faces: NDArray[np.int8]  # which entries are fixed, free or tied
    direction: FloatArray
    moved: FloatArray  # the point that is asked for
    vector: FloatArray  # scratch
    steps: FloatArray  # (MEMORY, *theta.shape)
    changes: FloatArray  # the same
    products: FloatArray  # (MEMORY,): step . change of each pair
    active: FloatArray  # (n_classes,): multipliers of the rates at the last evaluation
    damping: FloatArray  # (1,): of the last Newton step
    inverse: FloatArray  # (n_features + 1, n_features + 1), or (0, 0): diagonal only
    diagonal: FloatArray  # (n_features + 1,)
    free: NDArray[np.bool_]  # (n_branches,)
    floor: FloatArray  # (n_features,)
    scratch: FloatArray  # (n_branches * (n_features + 1),)
    shares: FloatArray  # (MEMORY,): scratch too
    variables: NDArray[np.int64]  # the variable of each entry in a Newton step, or -1
    signs: FloatArray  # how the entry follows it
    tied: NDArray[np.int64]  # entries that it is tied with
    members: NDArray[np.int64]  # (2, n_features + 1): scratch
    system: FloatArray  # room for two matrices of MAX_VARIABLES or fewer, and two vectors


@structref.register
class StateType(types.StructRef):
    """Compiled type of a ``StateReference``."""


class StateReference(structref.StructRefProxy):
    """The fields of a ``State`` for compiled functions, which hand it on as one pointer."""


structref.define_proxy(StateReference, StateType, State._fields)


@compiled
def _state_reference(s):  # type: ignore[no-untyped-def]
    return StateReference(*s)


@compiled
def state_of(s):  # type: ignore[no-untyped-def]
    """The arrays of a ``StateReference``, for functions that do not count references."""
    return State(
        s.counters, s.numbers, s.gradient, s.fresh, s.slope, s.faces, s.direction, s.moved,
        s.vector, s.steps, s.changes, s.products, s.active, s.damping, s.inverse, s.diagonal,
        s.free, s.floor, s.scratch, s.shares, s.variables, s.signs, s.tied, s.members, s.system,
    )  # fmt: skip


def state_reference(state: State) -> StateReference:
    """What compiled functions take of a state; the arrays are the same."""
    made: StateReference = from_python(_state_reference, state)
    return made


def new_state(
    free: NDArray[np.bool_], n_classes: int, floor: FloatArray, inverse: FloatArray,
    diagonal: FloatArray,
) -> State:  # fmt: skip
    """The state of a descent over the branches of ``free``, before its first point."""
    shape = (len(free), len(diagonal))
    empty = [np.zeros(shape) for _ in range(6)]
    most = min(shape[0] * shape[1], MAX_VARIABLES)
    return State(
        counters=np.zeros(10, dtype=np.int64),
        numbers=np.zeros(4),
        gradient=empty[0],
        fresh=empty[1],
        slope=empty[2],
        faces=np.zeros(shape, dtype=np.int8),
        direction=empty[3],
        moved=empty[4],
        vector=empty[5],
        steps=np.zeros((MEMORY, *shape)),
        changes=np.zeros((MEMORY, *shape)),
        products=np.ones(MEMORY),
        active=np.zeros(n_classes),
        damping=np.zeros(1),
        inverse=np.array(inverse),
        diagonal=np.array(diagonal),
        free=free,
        floor=floor,
        scratch=np.zeros(shape[0] * shape[1]),
        shares=np.zeros(MEMORY),
        variables=np.zeros(shape, dtype=np.int64),
        signs=np.ones(shape),
        tied=np.zeros(shape, dtype=np.int64),
        members=np.zeros((2, shape[1]), dtype=np.int64),
        system=np.empty(2 * most * (most + 1)),
    )


@compiled_uncounted
def largest(values):  # type: ignore[no-untyped-def]
    """The largest of some numbers, or 0 if that is more."""
    found = 0.0
    for k in range(values.size):
        found = max(found, values[k])
    return found
