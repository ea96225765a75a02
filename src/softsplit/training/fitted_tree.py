"""From the solution of a prepared problem to the fitted tree: its walk, its leaves, its rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import drawn_from, summed
from softsplit.engines.outer import IDENTITY, LOGARITHM
from softsplit.engines.sparse import SparseRows
from softsplit.fitted.importance import feature_importances
from softsplit.fitted.leaf_shares import EXPECTATION_STEPS, decision_gains, smoothed_shares
from softsplit.fitted.model import TreeModel, used_shares
from softsplit.fitted.monotone import (
    in_order,
    order_directions,
    ordered_leaves,
    ordered_walk,
    walk_order,
)
from softsplit.fitted.pruning import oriented, simplified
from softsplit.fitted.rates import RateRecord
from softsplit.fitted.walk import Walk
from softsplit.fitted.walk_choice import FixedParts
from softsplit.fitted.walk_rounding import fit_walk, rounded_shares, whole_walk
from softsplit.formulations import formulation_of
from softsplit.points.tree import ROUNDS
from softsplit.solvers.base import Solution
from softsplit.support.arrays import FloatArray
from softsplit.support.row_budgets import ROWS
from softsplit.training import points
from softsplit.training.decisions import (
    arriving,
    decided_by_mixture,
    decided_cells,
    rated_walk,
    worst,
)
from softsplit.training.pointed_parts import PointedParts, identity
from softsplit.training.pointed_rates import right_as_often, within_rates
from softsplit.training.pointed_walk import decisive_walk
from softsplit.training.preparation import Prepared
from softsplit.tree.parameters import TreeParameters
from softsplit.variables import MonotoneEffects

RAISES = 16
"""Times that a class which a walk finds too rarely is made worth more, by a half each."""

IDLE = 1e-12
"""Branches without which no class probability changes by more are left out."""

ROUNDED_IDLE = 1e-5
"""The same for a tree whose gates and leaves are rounded (``decision="walk"``): a side that
hardly any row takes would be printed as a question that everybody answers alike."""


def fitted_tree(
    prepared: Prepared,
    solution: Solution,
    zero_threshold: float,
    stop: Callable[[], bool] = lambda: False,
) -> TreeModel:
    """Return the fitted tree of a solution; its points are searched until ``stop`` says so.

    Where leaves hold one class each, the class shares of the rows that reach them are computed
    as well. Where leaves hold distributions, the cost matrix decides at prediction. Where the
    formulation prunes, branches without effect are removed, and the tree may be shallower. A
    solution on another working set makes a tree on that one. Earlier classes stand on the left
    of every branch. With ``decision="walk"`` the tree is rounded and gets the walk that decides
    its classes.
    """
    rows = prepared.problem.rows
    if solution.screening is not None and isinstance(rows, SparseRows):
        here = prepared.on(rows.of_working_set(solution.screening.columns))
        if here is not prepared:
            return fitted_tree(here, solution, zero_threshold, stop)
    problem, steepness = prepared.problem, prepared.problem.steepness
    simpler, mass = _with_mass(prepared, solution.parameters)
    parameters = oriented(simpler, mass)
    assigned = prepared.assigned
    costs = None if assigned else prepared.settings.cost_matrix
    costs = None if costs is None else np.array(costs, dtype=float)
    parts = pointed = None
    if points.wanted(prepared):
        parts = points.in_points(prepared, _turned(simpler, mass), stop=stop)
    if parts is not None:
        pointed = _pointed_tree(prepared, solution, parts, costs, zero_threshold)
        if pointed is not None and not problem.rated:
            return pointed
    walk = None
    if prepared.settings.decision == "walk" and not assigned:
        parameters, walk, costs = fitted_walk(prepared, parameters, costs, zero_threshold)
        if pointed is not None and right_as_often(pointed.walk, walk):
            return pointed
    shares = leaf_shares(prepared, parameters) if assigned else None
    weights = mass.sum(axis=0)
    parameters, shares = ordered_tree(prepared, parameters, shares, weights, walk is not None)
    drawn = drawn_from(problem.rows, ROWS.walk)
    lines = drawn.lines_in_use(np.any(parameters.weights, axis=1))
    measured = feature_importances(parameters, steepness, lines, drawn.weights)
    return TreeModel(
        parameters=parameters,
        steepness=steepness,
        scaling=prepared.scaling,
        classes=prepared.classes,
        feature_names=prepared.feature_names,
        summary=prepared.summary,
        zero_threshold=float(zero_threshold),
        importances=used_shares(measured, parameters.weights),
        objective=solution.objective,
        n_iter=max(1, solution.n_iter),
        distributions=shares,
        call_costs=costs,
        coding=prepared.coding,
        target=prepared.target,
        walk=walk,
        column_costs=None if prepared.rules is None else prepared.rules.costs,
        monotone=prepared.monotone,
        rates=_rates(prepared, parameters, solution, walk, costs),
    )


def _simplified(prepared: Prepared, tree: TreeParameters) -> TreeParameters:
    """Return a tree without branches that have no effect, where the formulation prunes."""
    if not formulation_of(prepared.settings.loss).prunes:
        return tree
    # rates of any rows hold to less than what a rounded tree may change
    rounded = prepared.settings.decision == "walk" and prepared.problem.rate_limits is None
    idle = ROUNDED_IDLE if rounded else IDLE
    smaller = simplified(tree, prepared.problem.steepness, idle)
    kept = prepared.problem.binding_rules
    return smaller if kept is None or kept.allow(smaller.weights != 0) else tree


def pointed_parts(
    prepared: Prepared,
    tree: TreeParameters,
    rounds: int = ROUNDS,
    stop: Callable[[], bool] = lambda: False,
) -> PointedParts | None:
    """Return a trained tree in whole points; None where it asks no question in points.

    ``rounds`` and ``stop`` are those of ``points.in_points``.
    """
    return points.in_points(prepared, _turned(*_with_mass(prepared, tree)), rounds, stop)


def _with_mass(prepared: Prepared, tree: TreeParameters) -> tuple[TreeParameters, FloatArray]:
    """Return a tree without branches that have no effect, and the mass of classes in its leaves."""
    tree, problem = _simplified(prepared, tree), prepared.problem
    sums = problem.rows.evaluate(tree.splits, tree.leaf_values, IDENTITY, problem.steepness)
    return tree, sums.mass


def _turned(tree: TreeParameters, mass: FloatArray) -> TreeParameters:
    """Return a tree as it is put into points: those of two classes speak for the second, as points
    of risk scores do."""
    return oriented(tree, mass[::-1] if len(mass) == 2 else mass)


def _pointed_tree(
    prepared: Prepared,
    solution: Solution,
    parts: PointedParts,
    costs: FloatArray | None,
    zero_threshold: float,
) -> TreeModel | None:
    """Return the fitted tree in whole points; None where it misses a requirement.

    1. The walk on some rows, without questions that decide nothing; then counts of all rows.
    2. Leaves and walk within requirements on rates.
    3. Importances and summary from the same rows, all on the columns of a coding with look-ups.
    """
    steepness = prepared.problem.steepness
    used = np.isin(parts.trained.homes, [i for i, _ in parts.lookups])
    few = parts.values(prepared.scaling, prepared.arriving(ROWS.walk, used))
    gains = np.eye(len(prepared.classes)) if costs is None else decision_gains(costs)
    # 1. The walk.
    tree, walk = decisive_walk(parts, few, steepness, gains)
    walk = _counted_in_points(prepared, parts, walk, gains)
    tree, walk = parts.in_order(tree, walk, gains)
    if not points.allowed(prepared, parts, tree):
        return None  # a question that decides nothing had a required variable
    # 2. Rates.
    rates: tuple[RateRecord, ...] = ()
    if prepared.problem.rated:
        rated = within_rates(prepared, parts, tree, walk, gains)
        if rated is None:
            return None
        here, tree, walk = rated
        walk = _counted_in_points(prepared, parts, walk, None)
        rates = _rates(here, tree, solution, walk, costs)
    # 3. What else is known of the rows.
    measured = feature_importances(tree, steepness, few.features, few.weights)
    parameters, walk = parts.on_all_columns(tree, walk)
    shares = np.zeros(len(parameters.weights))
    shares[parts.columns] = measured
    n_columns = len(shares)
    return TreeModel(
        parameters=parameters,
        steepness=steepness,
        scaling=identity(n_columns),
        classes=prepared.classes,
        feature_names=parts.coding.column_names,
        summary=parts.summary(prepared, few),
        zero_threshold=float(zero_threshold),
        importances=used_shares(shares, parameters.weights),
        objective=solution.objective,
        n_iter=max(1, solution.n_iter),
        call_costs=costs,
        coding=parts.coding,
        target=prepared.target,
        walk=walk,
        column_costs=None if prepared.rules is None else prepared.rules.costs,
        monotone=None if prepared.monotone is None else prepared.monotone.on(parts.coding),
        rates=rates,
    )


def _counted_in_points(
    prepared: Prepared, parts: PointedParts, walk: Walk, gains: FloatArray | None
) -> Walk:
    """Return a walk in points with the training rows that arrive in its leaves."""
    work, here = partial(parts.arriving, prepared.scaling, walk), prepared.labelled
    rows, scaling, lookups = prepared.problem.rows, prepared.scaling, parts.of_numbers
    there: Callable[..., FloatArray] | None = getattr(rows, "arriving", None)
    if here is not None:
        counts = work(here)
    elif there is not None and lookups is not None and scaling.linear:
        counts = there(walk, scaling, lookups)
    else:
        counts = summed(rows, work)
    return walk.with_counts(counts, gains, prepared.class_factors)


def _rates(
    prepared: Prepared,
    tree: TreeParameters,
    solution: Solution,
    walk: Walk | None,
    costs: FloatArray | None,
) -> tuple[RateRecord, ...]:
    """What was required of rates, and what the tree holds on the training rows."""
    limits = prepared.problem.rate_limits
    if limits is None:
        return ()
    steepness, n_classes = prepared.problem.steepness, len(prepared.classes)
    expected = limits.mass(tree, steepness) @ tree.leaf_values.T
    gains = np.eye(n_classes) if costs is None else decision_gains(costs)
    if walk is None:
        decided = decided_by_mixture(tree, steepness, limits, gains)
    else:
        decided = decided_cells(walk, limits, prepared.scaling, n_classes)
    prices, totals = np.zeros(len(limits)), limits.rows.group_totals
    priced = solution.kkt.multipliers[n_classes:]
    prices[: len(priced)] = priced  # minimum rates of classes, which come last, have none here
    costs_of = limits.per_requirement(prices)
    return tuple(
        RateRecord(
            requirement.name,
            str(prepared.classes[requirement.of]),
            tuple(group.name for group in requirement.groups),
            requirement.low,
            requirement.high,
            tuple(limits.group_rates(n, expected).tolist()),
            tuple(limits.group_rates(n, decided).tolist()),
            tuple(float(totals[list(group.cells)].sum()) for group in requirement.groups),
            float(costs_of[n]),
            float(limits.grains[n]),
        )
        for n, requirement in enumerate(limits.requirements)
    )


def ordered_tree(
    prepared: Prepared,
    tree: TreeParameters,
    shares: FloatArray | None,
    mass: FloatArray,
    rounded: bool,
) -> tuple[TreeParameters, FloatArray | None]:
    """Return the tree with its leaves in the order that monotone effects require.

    ``shares`` (n_classes, n_leaves) are those of a tree whose leaves have one class each, which
    are put in order instead; ``mass`` (n_leaves,) is what each leaf counts in a mean; means
    are ``rounded`` as those of a walk.
    """
    if prepared.monotone is None:
        return tree, shares
    direction = order_directions(prepared.monotone, prepared.scaling.splits(tree)[0])
    if shares is not None:
        return tree, ordered_leaves(shares, mass, direction, prepared.monotone)
    again = rounded_shares if rounded else (lambda shares: shares)
    leaves = ordered_leaves(tree.leaf_values, mass, direction, prepared.monotone, again)
    return replace(tree, leaf_values=leaves), None


def fitted_walk(
    prepared: Prepared,
    tree: TreeParameters,
    costs: FloatArray | None,
    zero_threshold: float,
    fixed: FixedParts | None = None,
) -> tuple[TreeParameters, Walk, FloatArray | None]:
    """Return the rounded tree, its walk with the training rows that arrive, and the costs.

    ``fixed`` parts of the walk stay as they are.

    Under minimum class rates, errors of classes that the walk finds too rarely cost more and
    more, until it meets the rates on the training rows, or ``RAISES`` times. Under other
    requirements on rates cuts and classes of leaves move where the decisions miss them
    (decisions.py).

    1. The walk is fitted to some rows and counted on all of them, in the order of the effects.
    2. The walk that misses least of the minimum rates is kept.
    3. Errors of classes that it finds too rarely cost half as much again.
    4. Cuts and classes of leaves move where other requirements are missed.
    """
    rates = prepared.problem.minimum_rates
    limits = prepared.problem.rate_limits
    constrained = prepared.problem.rated
    few = prepared.arriving(ROWS.walk, np.any(tree.weights, axis=1))
    best, least = None, np.inf
    for _ in range(RAISES):
        # 1. the walk
        gains = np.eye(len(prepared.classes)) if costs is None else decision_gains(costs)
        if prepared.coding is not None and prepared.coding.pointed:
            rounded, walk = whole_walk(
                tree, prepared.problem.steepness, few, gains, constrained=constrained, fixed=fixed
            )
        else:
            rounded, walk = fit_walk(
                tree, prepared.problem.steepness, prepared.scaling, few, gains, zero_threshold,
                constrained=constrained, monotone=_bent_columns(prepared.monotone), fixed=fixed,
            )  # fmt: skip
        decided = None if constrained else gains
        walk = counted_walk(prepared, walk, decided)
        walk = walk if fixed is None else replace(walk, classes=fixed.kept(walk.classes))
        if prepared.monotone is not None:
            votes = gains.T @ rounded.leaf_values
            walk = ordered_walk(walk, prepared.monotone, gains, votes)
        # 2. the best so far
        missed = np.maximum(rates - walk.recall, 0.0)
        if missed.sum() < least:
            best, least = (rounded, walk, costs), float(missed.sum())
        if not np.any(missed > 1e-9):
            break
        # 3. dearer errors
        costs = 1.0 - np.eye(len(prepared.classes)) if costs is None else costs
        costs = np.where(missed > 1e-9, 1.5, 1.0)[:, None] * costs
    assert best is not None
    rounded, walk, costs = best
    if limits is None:
        return best
    # 4. other requirements
    limits = limits.asked.with_minimum(rates)
    missed_by = worst(limits, decided_cells(walk, limits, prepared.scaling, len(rates)))
    if missed_by > 0.0:
        gains = np.eye(len(rates)) if costs is None else decision_gains(costs)
        in_order_of = _order_of(prepared.monotone, walk)
        walk = rated_walk(
            walk, rounded, prepared.problem.steepness, prepared.scaling, limits, gains, in_order_of
        )
        walk = counted_walk(prepared, walk, None)
    return rounded, walk, costs


def counted_walk(prepared: Prepared, walk: Walk, gains: FloatArray | None) -> Walk:
    """Return the walk with the training rows that arrive in its leaves; see ``Walk.counted``."""
    rows, scaling = prepared.problem.rows, prepared.scaling
    there: Callable[..., FloatArray] | None = getattr(rows, "arriving", None)
    if prepared.labelled is not None:
        counts = arriving(walk, scaling, prepared.labelled)
    elif there is not None and scaling.linear:
        counts = there(walk, scaling)
    else:
        counts = summed(rows, partial(arriving, walk, scaling))
    return walk.with_counts(counts, gains, prepared.class_factors)


def _order_of(monotone: MonotoneEffects | None, walk: Walk) -> Callable[[NDArray[np.intp]], bool]:
    """Whether classes of all leaves of ``walk`` are in the order of monotone effects."""
    if monotone is None:
        return lambda classes: True
    direction, levels = walk_order(walk, monotone), np.array(monotone.levels, float)
    return lambda classes: in_order(levels[classes][None], direction, 1)


def _bent_columns(monotone: MonotoneEffects | None) -> list[NDArray[np.intp]]:
    """Features of each monotone variable."""
    columns = () if monotone is None else monotone.columns
    return [np.array(own, dtype=np.intp) for own in columns]


def leaf_shares(prepared: Prepared, tree: TreeParameters) -> FloatArray:
    """Class shares of the rows that reach each leaf, (n_classes, n_leaves)."""
    rows, steepness = prepared.problem.rows, prepared.problem.steepness
    splits, classes = tree.splits, tree.leaf_values
    known = classes, rows.group_totals, rows.mean_weight
    mass = rows.evaluate(splits, classes, IDENTITY, steepness).mass
    shares = smoothed_shares(mass, *known)
    for _ in range(EXPECTATION_STEPS):
        slope = rows.evaluate(splits, shares, LOGARITHM, steepness).table
        shares = smoothed_shares(-shares * slope, *known)
    return shares
