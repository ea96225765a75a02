"""Screening of columns by score statistics, and the race on the columns that pass.

**Score statistic of one column.** Put into the split of branch t with coefficient a, a column x
moves its log-odds u_it by a x_i. With s_it the derivative of the loss by u_it and c_it >= 0 its
curvature,

    gain    (sum_i s_it (x_i - m_t))^2 / (2 sum_i c_it (x_i - m_t)^2),   m_t the mean of x by c_it

is the decrease of the loss by a Newton step in a and the threshold: half a score (Rao) statistic.
At a tree,

    s_it = - weight_i d_iyt / P_iy,    c_it = weight_i sum_k d_ikt^2 / P_ik     (Fisher information)
    d_ikt = dP_ik / du_it = reach_it p_it (1 - p_it) (V_k,left - V_k,right)

with V_k the probability of class k below each node, P_ik that at the root, and y the class of the
row; without a tree, for each class k,

    s_ik = weight_i ([y_i = k] - share_k),    c_ik = weight_i share_k (1 - share_k)

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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.penalties import Groups
from softsplit.solvers.base import OutOfBudget
from softsplit.solvers.elimination.descents import RowDescents
from softsplit.solvers.elimination.objective import StandardisedRows
from softsplit.solvers.elimination.race import Entrants, race
from softsplit.solvers.elimination.support_tree import SupportTree
from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import gate_probabilities, node_reach

NO_SPREAD = 1e-10
"""A column whose variance is below this part of its mean square counts as constant."""

LEAST_PROBABILITY = 1e-300
"""Probabilities are at least this, so that divisions by them are finite."""

Labels = NDArray[np.signedinteger[Any]]


# --- score statistics -----------------------------------------------------------------------------


class ScoreStatistics(NamedTuple):
    """Newton steps in one column at a time, (n_columns, n_branches) each.

    ``gains`` are half the score statistics, ``change`` the coefficients of the steps.
    """

    gains: FloatArray
    change: FloatArray


def score_statistics(
    columns: Any, squares: Any, slopes: FloatArray, curvatures: FloatArray
) -> ScoreStatistics:
    """Return gains and coefficients of a Newton step in each column alone.

    ``columns`` and their ``squares`` are matrices (n_columns, n_rows), dense or sparse, ``slopes``
    and ``curvatures`` s and c, (n_rows, n_branches).
    """
    total = np.maximum(curvatures.sum(axis=0), LEAST_PROBABILITY)
    first, second = columns @ curvatures, squares @ curvatures
    spread = second - first**2 / total
    pull = columns @ slopes - first * (slopes.sum(axis=0) / total)
    varies = spread > NO_SPREAD * second
    change = np.divide(-pull, spread, out=np.zeros_like(pull), where=varies)
    return ScoreStatistics(-0.5 * pull * change, change)


def class_slopes(labels: Labels, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return slopes and curvatures without a tree, a column for each class; of two, for one."""
    counts = np.bincount(labels, weight)
    shares = counts / max(counts.sum(), LEAST_PROBABILITY)
    kept = np.arange(len(shares))[len(shares) == 2 :]
    own = (labels[:, None] == kept).astype(float) - shares[kept]
    return weight[:, None] * own, np.outer(weight, (shares * (1 - shares))[kept])


def branch_slopes(
    left: FloatArray, right: FloatArray, leaves: FloatArray, labels: Labels, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return slopes and curvatures at a tree, (n_rows, n_branches) each.

    Parameters
    ----------
    left, right : arrays (n_branches, n_rows)
        Gate probabilities.
    leaves : array (n_groups, n_leaves)
        Class distributions of the leaves.
    labels, weight : arrays (n_rows,)
    """
    reach, n_branches = node_reach(left, right), len(left)
    weighed = reach[:n_branches] * left * right
    slopes, curvatures = np.zeros_like(left), np.zeros_like(left)
    values = np.empty_like(reach)
    for k, shares in enumerate(leaves):
        values[n_branches:] = shares[:, None]
        for t in reversed(range(n_branches)):
            values[t] = left[t] * values[2 * t + 1] + right[t] * values[2 * t + 2]
        change = weighed * (values[1::2] - values[2::2])
        share = np.maximum(values[0], LEAST_PROBABILITY)
        slopes -= np.where(labels == k, weight, 0.0) * change / share
        curvatures += weight * change**2 / share
    return slopes.T, curvatures.T


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
    slopes, curvatures = class_slopes(_labels(rows), rows.weights)
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
                slopes = class_slopes(labels, rows.weights * arriving)
                gains = score_statistics(columns, squares, *slopes).gains.max(axis=1)
                np.maximum(best[some], gains, out=best[some])
    # Gains of one column in different leaves are much alike: they count once.
    above: NDArray[np.bool_] = best / score_unit(rows) > _null_threshold(len(best) * len(left))
    return above


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
