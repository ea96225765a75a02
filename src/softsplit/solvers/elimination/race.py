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
from dataclasses import replace
from typing import NamedTuple

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
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.solvers.starts.logistic import ridge_logistic
from softsplit.support.arrays import FloatArray

STRENGTH = 0.0075
"""Strength of the smooth sparsity terms, as a part of the total weight: a middle one. It holds up
to 4 leaves; deeper trees get less, as a coefficient there serves fewer rows."""

RIDGE = 0.1
"""Ridge of the race, in row weights."""

NOISY_ROWS = 8_000
"""Rows from which on a promoted start needs less than the strength: it fits less noise."""

FIRST_DECREASE, LATER_DECREASE = 1e-4, 3e-5
"""Decreases that end descents of the first rung, and of later ones."""


class Entrants(NamedTuple):
    """What takes part in a race.

    With ``grow`` a grown tree does. One that is grown from ``shallower``, a fitted tree of fewer
    levels, has a head start and would win the first rung against better ones: it joins the
    finalists. With ``grown_only`` no start takes part; the first is returned only if the budget
    ends before a tree is grown. A start that is ``promoted`` has won on fewer rows, and has no
    rivals.
    """

    starts: Sequence[SupportTree]
    grow: bool = False
    shallower: SupportTree | None = None
    grown_only: bool = False
    promoted: bool = False

    def on_columns(self, columns: NDArray[np.intp]) -> Entrants:
        """The same trees on some columns."""
        shallower = None if self.shallower is None else self.shallower.on_columns(columns)
        starts = [tree.on_columns(columns) for tree in self.starts]
        return self._replace(starts=starts, shallower=shallower)


def race(descents: RowDescents, entrants: Entrants) -> SupportTree:
    """Return the candidate that leads furthest.

    1. All candidates take a few steps; every other start first does so with fixed leaves, since
       some settle for the same answer on both sides of a split where leaves are free at once.
    2. The best two take more steps.
    3. The winner descends with weak sparsity terms, to keep more features than a tree will need:
       elimination chooses among them.
    """
    starts, n_branches = entrants.starts, len(entrants.starts[0].splits)
    from_shallower = entrants.shallower is not None
    strength = race_strength(descents, n_branches)
    shrinkage = _shrinkage(descents, strength)
    part = 0.5 if descents.compared else 1.0
    weak = _shrinkage(descents, 0.2 * strength)
    if entrants.promoted:
        tree = replace(starts[0], support=np.ones_like(starts[0].support))
        some = _shrinkage(descents, strength * min(1.0, max(0.2, NOISY_ROWS / descents.n_rows)))
        for terms, steps in ((some, 80), (weak, 40)):
            tree = descents.descend(tree, terms, int(part * steps), LATER_DECREASE)[0]
        return tree
    # 1. the first rung
    first: list[tuple[float, SupportTree]] = []
    with suppress(OutOfBudget):
        trees = [] if entrants.grown_only else list(enumerate(starts))
        if entrants.grow or (entrants.grown_only and not from_shallower):
            trees.insert(0, (0, grown_to(descents, single_leaf(descents.rows), n_branches)))
        for number, tree in trees:
            if number % 2 == 1:
                tree = descents.descend(tree, shrinkage, 5, FIRST_DECREASE, leaves=False)[0]
            tree, value, _ = descents.descend(tree, shrinkage, 12, FIRST_DECREASE)
            first.append((value, tree))
    if not first and not (entrants.grown_only and from_shallower):
        return starts[0]
    # 2. the finalists
    first.sort(key=lambda candidate: candidate[0])
    second: list[tuple[float, SupportTree]] = []
    with suppress(OutOfBudget):
        finalists = [tree for _, tree in first[:2]]
        if entrants.shallower is not None:
            finalists.append(grown_to(descents, entrants.shallower, n_branches))
        for tree in finalists:
            tree, value, _ = descents.descend(tree, shrinkage, int(part * 80), LATER_DECREASE)
            second.append((value, tree))
    if not second and not first:
        return starts[0]
    _, winner = min(second or first[:1], key=lambda candidate: candidate[0])
    # 3. the winner, under a fifth of the strength
    with suppress(OutOfBudget):
        winner = descents.descend(winner, weak, int(part * 40), LATER_DECREASE)[0]
    return winner


def race_strength(descents: RowDescents, n_branches: int) -> float:
    """Strength of the sparsity terms, weaker for trees with many leaves."""
    return STRENGTH * descents.total * min(1.0, 4 / (n_branches + 1))


def _shrinkage(descents: RowDescents, strength: float) -> Shrinkage:
    """The terms of a race: half of the strength for coefficients, half for features."""
    return Shrinkage(RIDGE * descents.unit, strength / 2, strength / 2)


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
    tree = descents.turned(grown(shallower, descents.rows, descents.budget.check))
    while len(tree.splits) < n_branches:
        shrinkage = _shrinkage(descents, race_strength(descents, len(tree.splits)))
        tree = descents.descend(tree, shrinkage, 10, FIRST_DECREASE)[0]
        tree = descents.turned(grown(tree, descents.rows, descents.budget.check))
    return tree


def grown(
    tree: SupportTree, rows: StandardisedRows, check: Callable[[], None] = lambda: None
) -> SupportTree:
    """Return ``tree``, which has all columns, with a split in place of each leaf.

    ``check`` is called before each leaf, and may raise.
    """
    n_branches, n_groups = tree.shape
    reach = np.ones((1, len(rows.weights)))
    if n_branches:
        reach = routed(tree.vector, rows, tree.shape)[5]
    labels = np.repeat(np.arange(n_groups), np.diff(rows.starts))
    splits = np.zeros((len(reach), tree.splits.shape[1]))
    leaves = np.empty((n_groups, 2 * len(reach)))
    for leaf, arriving in enumerate(reach):
        check()
        splits[leaf] = _new_split(rows, labels, arriving)
        left = _gate(splits[leaf], rows.features)
        for side, part in enumerate((left, 1.0 - left)):
            mass = np.bincount(labels, arriving * rows.weights * part, n_groups) + rows.pseudo
            leaves[:, 2 * leaf + side] = np.log(mass / mass.sum())
    whole = np.vstack([tree.splits, splits])
    support = np.ones((len(whole), tree.support.shape[1]), dtype=bool)
    return SupportTree(whole, leaves, tree.columns, support, np.zeros(len(whole), dtype=bool))


def _gate(split: FloatArray, features: FloatArray) -> FloatArray:
    scores = split[:-1] @ features + split[-1]
    return 1.0 / (1.0 + np.exp(-np.clip(scores, -500.0, 500.0)))


MOST_COLUMNS = 150
"""With more columns the regression of a new split uses those whose class means differ most."""

LARGEST_WEIGHT = 4.0
"""Largest coefficient of a new split, so that its gates stay open."""


def _new_split(
    rows: StandardisedRows, labels: NDArray[np.intp], arriving: FloatArray
) -> FloatArray:
    """Return weights and intercept of a split that separates the classes of a leaf.

    ``arriving`` are the probabilities of the rows to reach the leaf. A leaf of less than the weight
    of 4 mean rows is not split, and classes with a share of less than 1e-3 are not separated.
    """
    n_groups, weight = len(rows.pseudo), arriving * rows.weights
    split = np.zeros(len(rows.features) + 1)
    mass = np.bincount(labels, weight, n_groups)
    present = mass > 1e-3 * mass.sum()
    if mass.sum() < 4.0 * rows.weights.mean() or present.sum() < 2:
        return split
    sums = np.vstack(
        [
            np.add.reduceat(rows.features[some] * weight, rows.starts[:-1], axis=1)
            for some in column_blocks(*rows.features.shape)  # no copy of all columns
        ]
    )
    means = (sums[:, present] / mass[present]).T
    left = np.zeros(n_groups, dtype=bool)
    left[np.flatnonzero(present)] = _left_group(means, mass[present])
    columns, features = np.arange(len(rows.features)), rows.features
    if len(columns) > MOST_COLUMNS:
        apart = np.average((means - means.mean(axis=0)) ** 2, axis=0, weights=mass[present])
        columns = np.sort(np.argsort(-apart, kind="stable")[:MOST_COLUMNS])
        features = features[columns]
    # rows that hardly reach the leaf would only take time; 4 Newton steps are enough for a start
    solution = ridge_logistic(
        np.ascontiguousarray(features),
        left[labels].astype(float),
        np.where(arriving > 1e-2, weight, 0.0),
        3.0 * float(rows.weights.mean()),
        4,
    )
    solution *= min(1.0, LARGEST_WEIGHT / float(np.max(np.abs(solution[:-1]), initial=1e-300)))
    split[columns], split[-1] = solution[:-1], -solution[-1]  # a threshold is minus an intercept
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
