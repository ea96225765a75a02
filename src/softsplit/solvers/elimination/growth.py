"""A tree one level deeper: every leaf becomes a split that parts its classes.

The classes of a leaf, each with the weight of its rows that get there, are put into two groups by
their means: along the direction in which the means differ most, cut where the groups are furthest
apart. A ridge logistic regression of the rows, weighted by their probability to reach the leaf,
makes the split; its leaves get the class shares of the rows that reach them. A leaf that nearly all
rows of one class reach alone gets a split without weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.solvers.elimination.deletion_costs import routed
from softsplit.solvers.elimination.descent import Field
from softsplit.solvers.elimination.support_tree import Draft
from softsplit.solvers.starts.logistic import ridge_logistic
from softsplit.support.arrays import FloatArray

RIDGE, NEWTON_STEPS = 3.0, 4
FEWEST = 4.0
"""Weight of rows below which a leaf is not split, in mean row weights."""

LEAST_REACH = 1e-2
"""Rows that reach a leaf with a smaller probability are left out of its regression."""

MOST_COLUMNS = 150
"""With more columns the regression is made on those whose class means differ most."""

LONGEST = 4.0
"""Largest coefficient of a new split."""


def featureless_draft(field: Field) -> Draft:
    """The tree of one leaf."""
    totals = np.add.reduceat(field.weights, field.starts[:-1])
    none = np.zeros((0, len(field.features)), dtype=bool)
    return Draft(
        np.zeros((0, len(field.features) + 1)),
        np.log(totals / totals.sum())[:, None],
        np.arange(len(field.features)),
        none,
        np.zeros(0, dtype=bool),
    )


def grown(draft: Draft, field: Field) -> Draft:
    """The draft, which has all columns, with a split in the place of each leaf."""
    n_branches, n_classes = draft.shape
    reach = np.ones((1, len(field.weights)))
    if n_branches:
        reach = routed(draft.vector, field, draft.shape)[5]
    labels = np.repeat(np.arange(n_classes), np.diff(field.starts))
    splits = np.zeros((len(reach), draft.splits.shape[1]))
    leaves = np.empty((n_classes, 2 * len(reach)))
    for leaf, arriving in enumerate(reach):
        weight = arriving * field.weights
        splits[leaf] = _split(field, labels, weight, arriving)
        left = _gate(splits[leaf], field.features)
        for side, part in enumerate((left, 1.0 - left)):
            mass = np.bincount(labels, weight * part, n_classes) + field.pseudo
            leaves[:, 2 * leaf + side] = np.log(mass / mass.sum())
    whole = np.vstack([draft.splits, splits])
    kept = np.ones((len(whole), draft.kept.shape[1]), dtype=bool)
    return Draft(whole, leaves, draft.columns, kept, np.ones(len(whole), dtype=bool))


def _gate(split: FloatArray, features: FloatArray) -> FloatArray:
    scores = split[:-1] @ features + split[-1]
    gate: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(scores, -500.0, 500.0)))
    return gate


def _split(
    field: Field, labels: NDArray[np.intp], weight: FloatArray, arriving: FloatArray
) -> FloatArray:
    """Coefficients and intercept of a split that parts the classes of a leaf."""
    n_classes = len(field.pseudo)
    split = np.zeros(len(field.features) + 1)
    mass = np.bincount(labels, weight, n_classes)
    present = mass > 1e-3 * mass.sum()
    if mass.sum() < FEWEST * field.weights.mean() or present.sum() < 2:
        return split
    sums = np.add.reduceat(field.features * weight, field.starts[:-1], axis=1)
    means = (sums[:, present] / mass[present]).T
    left = np.zeros(n_classes, dtype=bool)
    left[np.flatnonzero(present)] = _grouped(means, mass[present])
    columns = np.arange(len(field.features))
    if len(columns) > MOST_COLUMNS:
        apart = np.average((means - means.mean(axis=0)) ** 2, axis=0, weights=mass[present])
        columns = np.sort(np.argsort(-apart, kind="stable")[:MOST_COLUMNS])
    used = np.where(arriving > LEAST_REACH, weight, 0.0)
    found = ridge_logistic(
        np.ascontiguousarray(field.features[columns]),
        left[labels].astype(float),
        used,
        RIDGE * float(field.weights.mean()),
        NEWTON_STEPS,
    )
    longest = float(np.max(np.abs(found[:-1]), initial=1e-300))
    found = found * min(1.0, LONGEST / longest)
    split[columns], split[-1] = found[:-1], -found[-1]  # a threshold is an intercept with a minus
    return split


def _grouped(means: FloatArray, mass: FloatArray) -> NDArray[np.bool_]:
    """Which classes go left: two groups along the direction in which their means differ most."""
    centred = means - np.average(means, axis=0, weights=mass)
    _, _, directions = np.linalg.svd(np.sqrt(mass)[:, None] * centred, full_matrices=False)
    along = centred @ directions[0]
    order = np.argsort(along, kind="stable")
    sums, totals = np.cumsum((mass * along)[order])[:-1], np.cumsum(mass[order])[:-1]
    between = sums**2 / (totals * (mass.sum() - totals))
    left = np.zeros(len(mass), dtype=bool)
    left[order[: int(np.argmax(between)) + 1]] = True
    return left
