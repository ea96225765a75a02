"""The functions that a descent is made of, called one by one.

What ``descend`` calls is compiled before ``descend`` itself, and may be compiled by two processes:
each calls one half of the parts, with arguments of the types that ``descend`` hands to them.
"""

from __future__ import annotations

import numpy as np

from softsplit.solvers.native.descent import direction_of, keep_pair, line_search, smooth_value
from softsplit.solvers.native.faces import penalty_value, snap_near_kinks, subgradient
from softsplit.solvers.native.newton import newton_direction
from softsplit.solvers.native.run import Engine
from softsplit.solvers.native.stages import LOOK
from softsplit.support.arrays import FloatArray


def call_first_half(engine: Engine, theta: FloatArray, leaf_classes: FloatArray) -> None:
    """Everything but Newton directions."""
    smooth, sparse, work = engine.arguments(leaf_classes)
    free, floor = engine.work.free, engine.work.floor
    gradient, slope, direction, moved, fresh, vector = (np.zeros(theta.shape) for _ in range(6))
    state = np.zeros(theta.shape, dtype=np.int8)
    value = smooth_value(theta, smooth, work, gradient) + penalty_value(theta, sparse, floor)
    subgradient(theta, gradient, sparse, free, floor, slope, state)
    direction_of(theta, slope, state, work, vector, direction)
    line_search(theta, direction, slope, state, value, smooth, sparse, work, True, moved, fresh)
    keep_pair(work, theta, moved, gradient, fresh)
    snap_near_kinks(theta, sparse, free, floor, moved)


def call_second_half(engine: Engine, theta: FloatArray, leaf_classes: FloatArray) -> None:
    """Newton directions."""
    smooth, sparse, work = engine.arguments(leaf_classes)
    slope, direction = np.zeros(theta.shape), np.zeros(theta.shape)
    state = np.zeros(theta.shape, dtype=np.int8)
    engine.work.slopes[...] = 0.0  # no row counts: there is no direction, and none is needed
    newton_direction(theta, slope, state, smooth, sparse, work, direction)


def call_whole(engine: Engine, theta: FloatArray, leaf_classes: FloatArray) -> None:
    """The descent itself, when its parts are there."""
    engine.descend(theta, leaf_classes, LOOK)
