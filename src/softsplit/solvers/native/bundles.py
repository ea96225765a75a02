"""The arrays of a descent in two bundles, and how compiled functions hand them on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.core import types
from numba.experimental import structref
from numpy.typing import NDArray

from softsplit.engines.block_pass import Forest
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled

MEMORY = 10
"""Curvature pairs kept."""


class Smooth(NamedTuple):
    """The smooth part: data, table and rate terms; all arrays C-contiguous."""

    features: FloatArray  # (n_features, n_rows)
    starts: NDArray[np.int64]  # (n_classes + 1,)
    row_weights: FloatArray  # (n_rows,)
    class_totals: FloatArray  # (n_classes,)
    table: FloatArray  # (n_classes, n_leaves)
    leaf_classes: FloatArray  # (n_classes, n_leaves)
    minimum_rates: FloatArray  # (n_classes,)
    multipliers: FloatArray  # (n_classes,)
    rate_weight: float  # 0 turns the rate terms off
    steepness: float
    logarithmic: bool
    forest: Forest  # which branch lies below which; with bases, the free branches of a block
    proximal: float  # psi; 0 turns the proximal term off
    centre: FloatArray  # (n_branches, n_features + 1), or (0, 0) without a proximal term


class Workspace(NamedTuple):
    """Arrays reused from call to call; the curvature pairs survive in them."""

    scores: FloatArray  # (n_branches, n_rows)
    slopes: FloatArray  # (n_branches, n_rows)
    mass: FloatArray  # (n_classes, n_leaves)
    steps: FloatArray  # (MEMORY, n_branches, n_features + 1)
    changes: FloatArray  # the same
    products: FloatArray  # (MEMORY,): step . change of each pair
    counters: NDArray[np.int64]  # see PAIRS and below
    active: FloatArray  # (n_classes,): multipliers of the rates at the last evaluation
    damping: FloatArray  # (1,): of the last Newton step
    inverse: FloatArray  # (n_features + 1, n_features + 1), or (0, 0): diagonal only
    diagonal: FloatArray  # (n_features + 1,)
    free: NDArray[np.bool_]  # (n_branches,)
    floor: FloatArray  # (n_features,)


@structref.register
class SmoothType(types.StructRef):
    """Compiled type of a ``SmoothReference``."""


@structref.register
class WorkspaceType(types.StructRef):
    """Compiled type of a ``WorkspaceReference``."""


class SmoothReference(structref.StructRefProxy):
    """The fields of a ``Smooth``, for compiled functions.

    They hand it on as one pointer. A named tuple is handed on as all of its arrays, and what calls
    another function with it takes twice as long to compile.
    """


class WorkspaceReference(structref.StructRefProxy):
    """The fields of a ``Workspace``, likewise."""


structref.define_proxy(SmoothReference, SmoothType, Smooth._fields)
structref.define_proxy(WorkspaceReference, WorkspaceType, Workspace._fields)


@compiled
def smooth_reference(smooth):  # type: ignore[no-untyped-def]
    """What ``descend`` takes of a ``Smooth``."""
    return SmoothReference(
        smooth.features, smooth.starts, smooth.row_weights, smooth.class_totals,
        smooth.table, smooth.leaf_classes, smooth.minimum_rates, smooth.multipliers,
        smooth.rate_weight, smooth.steepness, smooth.logarithmic, smooth.forest,
        smooth.proximal, smooth.centre,
    )  # fmt: skip


@compiled
def workspace_reference(work):  # type: ignore[no-untyped-def]
    """What ``descend`` takes of a ``Workspace``; the arrays are the same."""
    return WorkspaceReference(
        work.scores, work.slopes, work.mass, work.steps, work.changes, work.products,
        work.counters, work.active, work.damping, work.inverse, work.diagonal, work.free,
        work.floor,
    )  # fmt: skip
