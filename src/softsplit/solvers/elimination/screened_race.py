"""Where columns are many, a race sees those that promise more than luck.

Among hundreds of columns that say nothing some always seem to say something, and a tree that may
use them all fits the sample by them before its own structure is found. So the race is run on a
*narrow* set: the columns whose gain without a tree (promises.py), in x or in |x - mean|, exceeds
that of the luckiest of as many columns of noise, log N, by about. At the tree that wins, columns
outside are asked for their gains in its branches, and in a split of each leaf by the rows that get
there; those beyond luck join, and the race is run again with the tree among its starts, until none
joins. A column joins with all columns of its group.

Columns that say nothing alone and much together (an exclusive or) are not found like that. Up to
MOST_COLUMNS all columns race as well, and their tree is taken where, with every feature at the
price of luck, its path is the better one by more than such a price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.bounds import Bounds
from softsplit.problem.penalties import Groups
from softsplit.solvers.base import Budget
from softsplit.solvers.elimination.descent import Field
from softsplit.solvers.elimination.race import Descents
from softsplit.solvers.elimination.screening import branch_slopes, class_slopes, luck, newton_steps
from softsplit.solvers.elimination.support_tree import Draft
from softsplit.tree.routing import gate_probabilities, node_reach

MANY_COLUMNS, ROWS_OF_A_COLUMN = 80, 10
"""With fewer columns, or more rows for each of them, all columns race."""

LENIENCE = 1.0
"""A column may promise less than luck by this: to miss one that counts costs more than to look at
one of noise, which elimination takes out again."""

FEWEST = 10
"""Columns that race at least."""

NEARLY_ALL = 0.8
"""Where more than this part of the columns promise something, all of them race."""

MOST_COLUMNS = 1000
"""With more columns those that promise something race alone."""

ROUNDS = 3
"""How often columns may join."""


def narrow_race(
    descents: Descents,
    starts: Sequence[Draft],
    *,
    grow: bool,
    stem: Draft | None,
    held: NDArray[np.bool_],
) -> Draft | None:
    """The winner of a race on promising columns; None where all columns should race.

    ``held`` marks columns that take part whatever they promise; for the others see
    ``Descents.race``.
    """
    field, groups = descents.field, descents.problem.groups
    n_columns, n_rows = field.features.shape
    if n_columns < MANY_COLUMNS or n_rows > ROWS_OF_A_COLUMN * n_columns:
        return None
    unit = luck_unit(field)
    chosen = _with_groups(held | _promising(field, unit), groups)
    won: Draft | None = None
    for number in range(ROUNDS + 1):
        if np.mean(chosen) > NEARLY_ALL:
            return None
        columns = np.flatnonzero(chosen)
        narrow = descents.narrowed(columns)
        some = [draft.among(columns) for draft in starts]
        if won is not None:
            some.append(won.among(columns))
        root = None if stem is None else stem.among(columns)
        won = replace(narrow.race(some, grow=grow, stem=root), columns=columns, groups=groups)
        descents.steps = narrow.steps
        if number == ROUNDS or descents.budget.exhausted:
            break
        joining = _joining(won, field, unit, descents.budget, descents.bounds) & ~chosen
        if not np.any(joining):
            break
        chosen = _with_groups(chosen | joining, groups)
    return won


def luck_unit(field: Field) -> float:
    """What a row weighs where luck counts: gains of noise grow with sum w^2 / sum w."""
    return float(field.weights @ field.weights / field.weights.sum())


def price_of_luck(field: Field) -> float:
    """The price of a feature at which columns of noise hardly pay."""
    n_columns, n_rows = field.features.shape
    return luck_unit(field) * luck(n_rows, n_columns)


def _promising(field: Field, unit: float) -> NDArray[np.bool_]:
    """Columns that promise more than luck without a tree, and the next best of FEWEST."""
    slopes, curvatures = class_slopes(_labels(field), field.weights)
    rows = field.features
    means = rows @ field.weights / field.weights.sum()
    best = np.zeros(len(rows))
    for values in (rows, np.abs(rows - means[:, None])):
        gains = newton_steps(values, values**2, slopes, curvatures).gains.max(axis=1)
        best = np.maximum(best, gains / unit)
    chosen = best > _luck(2 * len(rows) * slopes.shape[1])
    chosen[np.argsort(-best, kind="stable")[:FEWEST]] = True
    return chosen


def _joining(
    draft: Draft, field: Field, unit: float, budget: Budget, bounds: Bounds
) -> NDArray[np.bool_]:
    """Columns that promise more than luck in a branch of a tree, or in a new split of a leaf."""
    scores = draft.splits[:, :-1] @ field.features[draft.columns] + draft.splits[:, -1:]
    left, right = gate_probabilities(scores, 1.0)
    labels, rows = _labels(field), field.features
    leaves = np.exp(draft.log_odds - draft.log_odds.max(axis=0))
    shares, squares = leaves / leaves.sum(axis=0), rows**2
    slopes = branch_slopes(left, right, shares, labels, field.weights)
    steps = newton_steps(rows, squares, *slopes)
    allowed = bounds.restrict(branches=slice(len(left))).allows_step(steps.change)
    best = np.where(allowed, steps.gains, 0.0).max(axis=1)
    for arriving in node_reach(left, right)[len(left) :]:  # one leaf at a time: classes are many
        if budget.exhausted:
            break
        slopes = class_slopes(labels, field.weights * arriving)
        np.maximum(best, newton_steps(rows, squares, *slopes).gains.max(axis=1), out=best)
    # Gains of one column here and there are much alike.
    beyond: NDArray[np.bool_] = best / unit > _luck(len(rows) * len(left))
    return beyond


def _luck(count: int) -> float:
    """The largest gain of so many that say nothing, less what is forgiven."""
    return float(np.log(count)) - LENIENCE


def _labels(field: Field) -> NDArray[np.intp]:
    return np.repeat(np.arange(len(field.pseudo)), np.diff(field.starts))


def _with_groups(chosen: NDArray[np.bool_], groups: Groups | None) -> NDArray[np.bool_]:
    return chosen if groups is None else np.isin(groups.of, groups.of[chosen])
