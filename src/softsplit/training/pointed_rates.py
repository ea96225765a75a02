"""Trees in whole points under requirements on rates, which were trained for with weights.

1. Leaves change as little as lets expected rates hold (``leaves_within``).
2. Whole thresholds and classes of leaves change until decisions hold them too (``rated_walk``).
3. Where one of both cannot be, or the decisions are right less often than those of the weights that
   were trained (``right_as_often``), these stay. So they do where look-ups are known of a sample
   alone: a rate that is required holds on all training rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from softsplit.engines.compiled import CompiledRows
from softsplit.fitted.monotone import in_order, order_directions, walk_order
from softsplit.fitted.walk import Arriving, Walk
from softsplit.problem.rates import RateLimits
from softsplit.support.arrays import FloatArray
from softsplit.support.row_budgets import ROWS
from softsplit.training.decisions import decided_cells, leaves_within, rated_walk, worst
from softsplit.training.pointed_parts import PointedParts
from softsplit.training.preparation import Prepared
from softsplit.tree.parameters import TreeParameters

KEPT = 0.98
"""Part of the rows on which the walk of weights is right that points must be right on."""


def within_rates(
    prepared: Prepared, parts: PointedParts, tree: TreeParameters, walk: Walk, gains: FloatArray
) -> tuple[Prepared, TreeParameters, Walk] | None:
    """Return a tree on look-ups and its walk within the requirements; None if they miss them.

    Monotone effects hold as before. The first result has the requirements on the look-ups, minimum
    rates of classes among them: the tree keeps its expected rates, and lowers no probability.
    """
    limits, steepness = _limits(prepared, parts), prepared.problem.steepness
    # 1. Expected rates.
    rated = leaves_within(limits, tree, steepness) if limits is not None else None
    if limits is None or rated is None:
        return None
    effects = parts.monotone
    if effects is not None:
        left = order_directions(effects, rated.weights.T)
        if not in_order(effects.at_least(rated.leaf_values), left, 1, 1e-9):
            return None
    # 2. Decisions.
    if worst(limits, decided_cells(walk, limits, parts.scaling, len(gains))) > 0.0:
        levels = None if effects is None else np.array(effects.levels, dtype=float)
        sides = None if effects is None else walk_order(walk, effects)
        walk = rated_walk(
            walk, rated, steepness, parts.scaling, limits, gains,
            lambda k: levels is None or sides is None or in_order(levels[k][None], sides, 1),
        )  # fmt: skip
        walk = replace(walk, thresholds=np.floor(walk.thresholds))
        if worst(limits, decided_cells(walk, limits, parts.scaling, len(gains))) > 0.0:
            return None
    problem = replace(prepared.problem, rate_limits=limits)
    return replace(prepared, scaling=parts.scaling, problem=problem), rated, walk


def right_as_often(pointed: Walk | None, weighted: Walk | None) -> bool:
    """Whether a walk in points is right on about as many training rows as one of weights."""
    if pointed is None or weighted is None:
        return False
    return bool(pointed.right.sum() >= KEPT * weighted.right.sum())


def _limits(prepared: Prepared, parts: PointedParts) -> RateLimits | None:
    """The requirements on rates, minimum rates of classes too, on rows with points as features.

    None where not all training rows are at hand.
    """
    problem = prepared.problem
    classes = np.arange(problem.n_groups)
    limits = problem.rate_limits or RateLimits(problem.rows, classes, (), len(classes))
    few = limits.asked.with_minimum(problem.minimum_rates).on_sample(ROWS.walk)[1]
    if few.rows.n_rows < limits.rows.n_rows:
        return None
    samples, used = few.rows.sample(), np.isin(parts.trained.homes, [i for i, _ in parts.lookups])
    rows = Arriving(samples.lines_in_use(used), samples.labels, samples.weights)
    features = np.ascontiguousarray(parts.values(prepared.scaling, rows).features)
    return replace(few, rows=CompiledRows(replace(samples, features=features)))
