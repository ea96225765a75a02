"""The functions that a descent is made of, called one by one.

What ``follow`` calls is compiled before ``follow`` itself, and may be compiled by two processes:
each calls one half of the parts, with arguments of the types that ``follow`` hands to them.
"""

from __future__ import annotations

from softsplit.solvers.native.descent import propose, receive, receive_direction
from softsplit.solvers.native.newton import newton_direction
from softsplit.solvers.native.objective import smooth_value
from softsplit.solvers.native.program import LOOK
from softsplit.solvers.native.run import DescentRun
from softsplit.support.arrays import FloatArray


def call_first_half(run: DescentRun, theta: FloatArray, leaf_classes: FloatArray) -> None:
    """Everything but Newton directions."""
    passes, terms, sparse, state = run.arguments(leaf_classes)
    own = run.state
    smooth_value(own.moved, passes, terms, own.free, own.active, own.fresh)
    propose(theta, state, sparse, LOOK)
    receive(theta, state, sparse, LOOK, 0.0)
    receive_direction(theta, state, sparse, False)


def call_second_half(run: DescentRun, theta: FloatArray, leaf_classes: FloatArray) -> None:
    """Newton directions."""
    passes, terms, sparse, state = run.arguments(leaf_classes)
    run.state.faces[...] = 0  # no coefficient is free: there is no direction, and none is needed
    newton_direction(theta, passes, terms, sparse, state)


def call_whole(run: DescentRun, theta: FloatArray, leaf_classes: FloatArray) -> None:
    """The descent itself, when its parts are there."""
    run.descend(theta, leaf_classes, LOOK)
