"""The functions that a descent is made of, called one by one.

What ``descend`` calls is compiled before ``descend`` itself, and may be compiled by two processes:
each calls one half of the parts, with arguments of the types that ``descend`` hands to them.
"""

from __future__ import annotations

from softsplit.solvers.native.descent import receive
from softsplit.solvers.native.faces import subgradient
from softsplit.solvers.native.lbfgs import direction_of
from softsplit.solvers.native.newton import newton_direction
from softsplit.solvers.native.objective import smooth_value
from softsplit.solvers.native.run import LOOK, DescentRun
from softsplit.support.arrays import FloatArray


def call_first_half(run: DescentRun, theta: FloatArray, leaf_classes: FloatArray) -> None:
    """The smooth part, and what is done with it."""
    passes, terms, sparse, state = run.arguments(leaf_classes)
    own = run.state
    smooth_value(own.moved, passes, terms, own.free, own.active, own.fresh)
    receive(theta, state, sparse, LOOK, 0.0)


def call_second_half(run: DescentRun, theta: FloatArray, leaf_classes: FloatArray) -> None:
    """Directions of both kinds."""
    passes, terms, sparse, state = run.arguments(leaf_classes)
    own = run.state
    own.faces[...] = 0  # no coefficient is free: there is no direction, and none is needed
    newton_direction(theta, passes, terms, sparse, state)
    subgradient(theta, own.gradient, sparse, own.free, own.floor, own.slope, own.faces)
    direction_of(theta, state)


def call_whole(run: DescentRun, theta: FloatArray, leaf_classes: FloatArray) -> None:
    """The descent itself, when its parts are there."""
    run.descend(theta, leaf_classes, LOOK)
