"""What a descent is given and what it knows: limits, what is added to the loss, and its state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.solvers.active_set.faces import Sparse
from softsplit.solvers.active_set.objective import AddedTerms
from softsplit.support.arrays import FloatArray

NEVER = 1_000_000_000
"""For ``DescentLimits.newton_from``: first-order steps only."""


class DescentLimits(NamedTuple):
    """When a descent ends."""

    max_iter: int
    tol: float  # largest entry of the subgradient, in cost units of the problem
    decrease: float  # relative decrease of F below which an iteration counts as stalled
    patience: int  # stalled iterations in a row before giving up
    newton_from: int  # first iteration that tries a Newton direction
    least: float = 1e-8  # absolute decrease, in cost units, below which it counts as stalled

    def parted(self, steps: int) -> tuple[DescentLimits, DescentLimits]:
        """Limits of the first so many iterations, and of the rest."""
        first = min(steps, self.max_iter)
        rest = self._replace(
            max_iter=self.max_iter - first,
            newton_from=NEVER if self.newton_from == NEVER else max(0, self.newton_from - first),
        )
        return self._replace(max_iter=first), rest

    def in_units(self, unit: float) -> DescentLimits:
        """The same for a problem of this cost unit."""
        return self._replace(tol=self.tol * unit, least=self.least * unit)


EVALUATE_ONLY = DescentLimits(0, 0.0, 0.0, 1, NEVER)
"""No step: evaluate where a tree is."""

ROUGH = DescentLimits(20, 1e-4, 1e-3, 2, NEVER)
"""A short first-order descent: enough to tell which of several points leads further."""

SCREEN = ROUGH._replace(max_iter=8)
"""Enough to see a start that leads nowhere."""

LEAD_IN = ROUGH._replace(max_iter=15)
"""The descent at each of the strengths or steepnesses that lead a tree in."""

ROUGH_NEWTON = ROUGH._replace(max_iter=15, newton_from=0)
"""With Newton steps, enough to tell where a descent will end."""

ROUGH_FIRST_ORDER = ROUGH._replace(max_iter=50, decrease=1e-4)
"""The same without Newton steps."""

POLISH = DescentLimits(60, 1e-5, 1e-5, 3, 20)
"""Down to where the objective hardly falls any more: enough to compare trees."""

POLISH_NEWTON = POLISH._replace(newton_from=0)
"""The same end with Newton steps from the beginning."""


class Added(NamedTuple):
    """What is added to the loss of the rows."""

    terms: AddedTerms
    sparse: Sparse


BEGIN, TURN, TRIAL, BACK, SNAP, LEAVE = range(6)
"""Phases: at the first point, between two steps, on a step, back from one that failed, on the kinks
beside a stuck point, and back from there for good."""

MAX_VARIABLES = 300
"""Coefficients that may move in a Newton step."""

MEMORY = 10
"""Curvature pairs kept."""

PAIRS, STALLED, DONE, NO_NEWTON, PHASE, STEPS, CALLS, CUTS, NEWTON, ENDED = range(10)
"""Counters of a descent: pairs stored, stalled iterations in a row, iterations since it began,
whether the last Newton direction failed, its phase (0 at the beginning), iterations and calls of
this slice, cuts of the present step, whether that is a Newton step, and whether the descent has
ended by itself."""

VALUE, LENGTH, GAIN, TRIED, CHOSEN = range(5)
"""Numbers of a descent: F, length of the present step, what it promises, F where it was last
asked for, and F with the leaves that were chosen."""


class DescentState(NamedTuple):
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
    active: FloatArray  # (n_groups,): multipliers of the rates at the last evaluation
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


def new_state(
    free: NDArray[np.bool_], n_groups: int, floor: FloatArray, inverse: FloatArray,
    diagonal: FloatArray,
) -> DescentState:  # fmt: skip
    """The state of a descent over the branches of ``free``, before its first point."""
    shape = (len(free), len(diagonal))
    empty = [np.zeros(shape) for _ in range(6)]
    most = min(shape[0] * shape[1], MAX_VARIABLES)
    return DescentState(
        counters=np.zeros(10, dtype=np.int64),
        numbers=np.zeros(5),
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
        active=np.zeros(n_groups),
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
