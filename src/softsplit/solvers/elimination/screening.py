"""Screening of columns by score statistics, and the race on the columns that pass.

**Null threshold.** For a column that is independent of the classes twice the gain is chi-squared
with one degree of freedom; the largest of N such gains is about log N.

**Screening.** Among hundreds of uninformative columns some always seem informative, and a tree that
may use all of them fits the sample by these before its own structure is found. So the race is run
on the columns whose gain without a tree, in x or in |x - mean|, exceeds the null threshold
(marginal screening, Fan and Lv 2008). At the tree that wins, the gains of all other columns are
computed in its branches and in a split of each of its leaves; those above the threshold join, and
the race is run again with the tree among its candidates, until none joins (as in iterative
screening). A column joins with all columns of its group.

Columns that are informative only together (an exclusive or) do not pass. Up to 1,000 columns a race
on all of them is run as well; solver.py chooses between the two winners.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.penalties import Groups
from softsplit.solvers.base import OutOfBudget
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.objective import StandardisedRows
from softsplit.solvers.elimination.race import Entrants, race
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.solvers.score_statistics import branch_slopes, group_slopes, score_statistics
from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import gate_probabilities, node_reach

# --- thresholds -----------------------------------------------------------------------------------


def noise_threshold(n_rows: float, n_columns: int) -> float:
    """log p + log(n) / 2: about the decrease of the log-loss of n rows by the best of p columns of
    noise, plus the price of a parameter by the Bayesian information criterion (Schwarz 1978)."""
    return float(np.log(n_columns) + 0.5 * np.log(max(n_rows, 1.0)))


def feature_noise_threshold(rows: StandardisedRows) -> float:
    """The price of a feature at which columns of noise hardly enter a tree of these rows."""
    n_columns, n_rows = rows.features.shape
    return score_unit(rows) * noise_threshold(n_rows, n_columns)


def score_unit(rows: StandardisedRows) -> float:
    """Scale of the gains of weighted rows: for noise they grow with sum w^2 / sum w."""
    return float(rows.weights @ rows.weights / rows.weights.sum())


SLACK = 1.0
"""A column passes with a score statistic this far below the null threshold: to miss an informative
column costs more than to admit one of noise, which elimination removes again."""


def _null_threshold(count: int) -> float:
    """About the largest of ``count`` gains of noise, less the slack."""
    return float(np.log(count)) - SLACK


# --- the race on screened columns -----------------------------------------------------------------

ROUNDS = 3
"""How often columns may join after a race."""


def screened_race(
    descents: RowDescents, entrants: Entrants, always: NDArray[np.bool_]
) -> SupportTree | None:
    """Return the winner of a race on the columns that pass; None where all columns should race.

    ``always`` marks columns that take part whatever their score.

    1. Columns that say something alone pass.
    2. A race is run on them, with the last winner among its candidates.
    3. Columns that say something at the winner join, and 2 is repeated.
    """
    options, groups = descents.options, descents.problem.feature_groups
    n_columns, n_rows = descents.frame.features.shape
    # with few columns, or with ten rows for each, all of them race
    if n_columns < options.screened_columns or n_rows > 10 * n_columns:
        return None
    # 1. marginal screening
    alone = marginal_screening(descents.frame, options.fewest_screened, descents.blocks())
    chosen = _with_groups(always | alone, groups)
    winner: SupportTree | None = None
    for number in range(ROUNDS + 1):
        if np.mean(chosen) > 0.8:  # nearly all: the race on the rest would save nothing
            return None
        # 2. the race
        columns = np.flatnonzero(chosen)
        restricted = descents.restricted(columns)
        candidates = entrants.on_columns(columns)
        if winner is not None:
            starts = [*candidates.starts, winner.on_columns(columns)]
            candidates = candidates._replace(starts=starts)
        winner = replace(race(restricted, candidates), columns=columns, groups=groups)
        descents.steps = restricted.steps
        # 3. columns that join
        if number == ROUNDS or descents.budget.exhausted:
            break
        joining = conditional_screening(winner, descents) & ~chosen
        if not np.any(joining):
            break
        chosen = _with_groups(chosen | joining, groups)
    return winner


def marginal_screening(
    rows: StandardisedRows,
    fewest: int,
    blocks: Iterable[tuple[slice, FloatArray]] | None = None,
) -> NDArray[np.bool_]:
    """Return the columns above the null threshold without a tree, and the best ``fewest``.

    ``blocks`` are the columns, some at a time, where ``rows`` are without them.
    """
    slopes, curvatures = group_slopes(_labels(rows), rows.weights)
    unit, total = score_unit(rows), rows.weights.sum()
    best = np.zeros(len(rows.features))
    for some, columns in blocks or [(slice(None), rows.features)]:
        means = columns @ rows.weights / total
        for values in (columns, np.abs(columns - means[:, None])):
            gains = score_statistics(values, values**2, slopes, curvatures).gains.max(axis=1)
            best[some] = np.maximum(best[some], gains / unit)
    chosen = best > _null_threshold(2 * len(best) * slopes.shape[1])
    chosen[np.argsort(-best, kind="stable")[:fewest]] = True
    return chosen


def conditional_screening(tree: SupportTree, descents: RowDescents) -> NDArray[np.bool_]:
    """Return the columns above the null threshold in a branch of ``tree``, or in a new split of a
    leaf; in a branch they count only where bounds allow the step."""
    rows = descents.frame
    left, right = _gates(tree, descents)
    labels = _labels(rows)
    best = branch_gains(tree, descents).max(axis=1)
    reach = node_reach(left, right)[len(left) :]
    with suppress(OutOfBudget):  # columns that were not reached have the gains in branches
        for some, columns in descents.blocks():
            squares = columns**2
            for arriving in reach:  # one leaf at a time: classes are many
                descents.budget.check()
                slopes = group_slopes(labels, rows.weights * arriving)
                gains = score_statistics(columns, squares, *slopes).gains.max(axis=1)
                np.maximum(best[some], gains, out=best[some])
    # Gains of one column in different leaves are much alike: they count once.
    return best / score_unit(rows) > _null_threshold(len(best) * len(left))


def branch_gains(tree: SupportTree, descents: RowDescents) -> FloatArray:
    """Return the gain of each column in each branch of ``tree``, (n_columns, n_branches).

    It is zero where bounds do not allow the step.
    """
    rows, (left, right) = descents.frame, _gates(tree, descents)
    leaves = np.exp(tree.log_odds - tree.log_odds.max(axis=0))
    slopes = branch_slopes(left, right, leaves / leaves.sum(axis=0), _labels(rows), rows.weights)
    gains, change = (np.empty((len(rows.features), len(left))) for _ in range(2))
    for some, columns in descents.blocks():
        gains[some], change[some] = score_statistics(columns, columns**2, *slopes)
    allowed = descents.bounds.restrict(branches=slice(len(left))).allows_step(change)
    return np.where(allowed, gains, 0.0)


def _gates(tree: SupportTree, descents: RowDescents) -> tuple[FloatArray, FloatArray]:
    columns = descents.standardised(tree.columns)
    scores = tree.splits[:, :-1] @ columns + tree.splits[:, -1:]
    return gate_probabilities(scores, 1.0)


def _labels(rows: StandardisedRows) -> NDArray[np.intp]:
    return np.repeat(np.arange(len(rows.pseudo)), np.diff(rows.starts))


def _with_groups(chosen: NDArray[np.bool_], groups: Groups | None) -> NDArray[np.bool_]:
    return chosen if groups is None else np.isin(groups.of, groups.of[chosen])
