"""Successive halving among the candidates of a start (Jamieson and Talwalkar 2016).

Every candidate takes a few L-BFGS steps on the smooth log-loss with sparsity terms; the best few
take more, and the best of those is the winner, from which elimination begins. Candidates are the
start, its candidates and, if asked for, a tree grown level by level:

Growing a tree by one level replaces every leaf by a split that separates its classes. The classes
of a leaf, each with the weight of its rows that get there, are put into two groups by their means:
along the first principal direction of the means, cut where the groups are furthest apart. A ridge
logistic regression of the rows, weighted by their probability to reach the leaf, makes the split;
the new leaves get the class shares of the rows that reach them. A leaf that only rows of one class
reach gets a split without weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from softsplit.solvers.base import OutOfBudget
from softsplit.solvers.elimination.deletion_costs import routed
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.objective import (
    Shrinkage,
    StandardisedRows,
    column_blocks,
)
from softsplit.solvers.elimination.options import DEFAULTS, GrowthOptions
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.solvers.starts.logistic import ridge_logistic
from softsplit.support.arrays import FloatArray


def race(
    descents: RowDescents,
    starts: Sequence[SupportTree],
    *,
    grow: bool = False,
    shallower: SupportTree | None = None,
    grown_only: bool = False,
) -> SupportTree:
    """Return the candidate that leads furthest.

    Every other start first descends with fixed leaves. With ``grow`` a grown tree takes part. One
    that is grown from ``shallower``, a fitted tree of fewer levels, has a head start and would win
    the first rung against better ones: it joins the finalists. With ``grown_only`` no other start
    takes part; the first start is returned only if the budget ends before a tree is grown.
    """
    options, n_branches = descents.options.race, len(starts[0].splits)
    strength = race_strength(descents, n_branches)
    shrinkage = _shrinkage(descents, strength)
    first: list[tuple[float, SupportTree]] = []
    with suppress(OutOfBudget):
        if grow or (grown_only and shallower is None):
            tree = grown_to(descents, single_leaf(descents.rows), n_branches)
            tree, value, _ = descents.descend(tree, shrinkage, options.steps, options.decrease)
            first.append((value, tree))
        for number, start in enumerate(() if grown_only else starts):
            if number % 2 == 1:
                start, _, _ = descents.descend(
                    start, shrinkage, options.split_steps, options.decrease, leaves=False
                )
            tree, value, _ = descents.descend(start, shrinkage, options.steps, options.decrease)
            first.append((value, tree))
    if not first and not (grown_only and shallower is not None):
        return starts[0]
    first.sort(key=lambda candidate: candidate[0])
    part = options.compared_part if descents.compared else 1.0
    second: list[tuple[float, SupportTree]] = []
    with suppress(OutOfBudget):
        finalists = [tree for _, tree in first[: options.finalists]]
        if shallower is not None:
            finalists.append(grown_to(descents, shallower, n_branches))
        for tree in finalists:
            steps = int(part * options.final_steps)
            tree, value, _ = descents.descend(tree, shrinkage, steps, options.final_decrease)
            second.append((value, tree))
    if not second and not first:
        return starts[0]
    _, winner = min(second or first[:1], key=lambda candidate: candidate[0])
    with suppress(OutOfBudget):
        shrinkage = _shrinkage(descents, options.weak_part * strength)
        steps = int(part * options.weak_steps)
        winner, _, _ = descents.descend(winner, shrinkage, steps, options.final_decrease)
    return winner


def race_strength(descents: RowDescents, n_branches: int) -> float:
    """Strength of the sparsity terms, weaker for trees with many leaves."""
    options = descents.options.race
    depth_factor = min(1.0, options.full_strength_leaves / (n_branches + 1))
    return options.strength * descents.total * depth_factor


def _shrinkage(descents: RowDescents, strength: float) -> Shrinkage:
    """The terms of a race: half of the strength for coefficients, half for features."""
    return Shrinkage(descents.options.race.ridge * descents.unit, strength / 2, strength / 2)


# --- growing trees --------------------------------------------------------------------------------


def single_leaf(rows: StandardisedRows) -> SupportTree:
    """The tree of one leaf, with the class shares of ``rows``."""
    totals = np.add.reduceat(rows.weights, rows.starts[:-1])
    none = np.zeros((0, len(rows.features)), dtype=bool)
    return SupportTree(
        np.zeros((0, len(rows.features) + 1)),
        np.log(totals / totals.sum())[:, None],
        np.arange(len(rows.features)),
        none,
        np.zeros(0, dtype=bool),
    )


def grown_to(descents: RowDescents, shallower: SupportTree, n_branches: int) -> SupportTree:
    """Grow ``shallower`` level by level to ``n_branches``, with short descents in between."""
    options, decrease = descents.options.growth, descents.options.race.decrease
    tree = descents.turned(grown(shallower, descents.rows, options, descents.check))
    while len(tree.splits) < n_branches:
        shrinkage = _shrinkage(descents, race_strength(descents, len(tree.splits)))
        tree, _, _ = descents.descend(tree, shrinkage, options.descent_steps, decrease)
        tree = descents.turned(grown(tree, descents.rows, options, descents.check))
    return tree


def grown(
    tree: SupportTree,
    rows: StandardisedRows,
    options: GrowthOptions = DEFAULTS.growth,
    check: Callable[[], None] = lambda: None,
) -> SupportTree:
    """Return ``tree``, which has all columns, with a split in place of each leaf.

    ``check`` is called before each leaf, and may raise.
    """
    n_branches, n_classes = tree.shape
    reach = np.ones((1, len(rows.weights)))
    if n_branches:
        reach = routed(tree.vector, rows, tree.shape)[5]
    labels = np.repeat(np.arange(n_classes), np.diff(rows.starts))
    splits = np.zeros((len(reach), tree.splits.shape[1]))
    leaves = np.empty((n_classes, 2 * len(reach)))
    for leaf, arriving in enumerate(reach):
        check()
        weight = arriving * rows.weights
        splits[leaf] = _new_split(rows, labels, weight, arriving, options)
        left = _gate(splits[leaf], rows.features)
        for side, part in enumerate((left, 1.0 - left)):
            mass = np.bincount(labels, weight * part, n_classes) + rows.pseudo
            leaves[:, 2 * leaf + side] = np.log(mass / mass.sum())
    whole = np.vstack([tree.splits, splits])
    support = np.ones((len(whole), tree.support.shape[1]), dtype=bool)
    return SupportTree(whole, leaves, tree.columns, support, np.zeros(len(whole), dtype=bool))


def _gate(split: FloatArray, features: FloatArray) -> FloatArray:
    scores = split[:-1] @ features + split[-1]
    gate: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(scores, -500.0, 500.0)))
    return gate


def _new_split(
    rows: StandardisedRows,
    labels: NDArray[np.intp],
    weight: FloatArray,
    arriving: FloatArray,
    options: GrowthOptions,
) -> FloatArray:
    """Return weights and intercept of a split that separates the classes of a leaf.

    ``arriving`` are the probabilities of the rows to reach the leaf, ``weight`` the same times
    their weights.
    """
    n_classes = len(rows.pseudo)
    split = np.zeros(len(rows.features) + 1)
    mass = np.bincount(labels, weight, n_classes)
    present = mass > options.least_share * mass.sum()
    if mass.sum() < options.fewest_rows * rows.weights.mean() or present.sum() < 2:
        return split
    sums = np.vstack(
        [
            np.add.reduceat(rows.features[some] * weight, rows.starts[:-1], axis=1)
            for some in column_blocks(*rows.features.shape)  # no copy of all columns
        ]
    )
    means = (sums[:, present] / mass[present]).T
    left = np.zeros(n_classes, dtype=bool)
    left[np.flatnonzero(present)] = _left_group(means, mass[present])
    columns, features = np.arange(len(rows.features)), rows.features
    if len(columns) > options.most_columns:
        apart = np.average((means - means.mean(axis=0)) ** 2, axis=0, weights=mass[present])
        columns = np.sort(np.argsort(-apart, kind="stable")[: options.most_columns])
        features = features[columns]
    used = np.where(arriving > options.least_reach, weight, 0.0)
    found = ridge_logistic(
        np.ascontiguousarray(features),
        left[labels].astype(float),
        used,
        options.ridge * float(rows.weights.mean()),
        options.newton_steps,
    )
    largest = float(np.max(np.abs(found[:-1]), initial=1e-300))
    found = found * min(1.0, options.largest_weight / largest)
    split[columns], split[-1] = found[:-1], -found[-1]  # a threshold is minus an intercept
    return split


def _left_group(means: FloatArray, mass: FloatArray) -> NDArray[np.bool_]:
    """Return which classes go left: two groups along the first principal direction of ``means``.

    The cut maximises the variance between the groups.
    """
    centred = means - np.average(means, axis=0, weights=mass)
    _, _, directions = np.linalg.svd(np.sqrt(mass)[:, None] * centred, full_matrices=False)
    along = centred @ directions[0]
    order = np.argsort(along, kind="stable")
    sums, totals = np.cumsum((mass * along)[order])[:-1], np.cumsum(mass[order])[:-1]
    between = sums**2 / (totals * (mass.sum() - totals))
    left = np.zeros(len(mass), dtype=bool)
    left[order[: int(np.argmax(between)) + 1]] = True
    return left
