"""Working sets of a wide sparse table: which columns of it a tree is trained on.

The first columns are those of the largest score statistics (marginal screening, Fan and Lv 2008).
At the tree that training ends with, columns outside are screened again: under the count those whose
gain exceeds their price, under other penalties those at which the first-order conditions of the
whole problem fail. They join, the tree goes on from where it is and from a fresh start besides, and
so on, until none is left or ``rounds`` have been made.

A problem on a working set of p columns routes rows by steepness (x . a / p - mu), and its steepness
is in proportion to p: a weight means the same in every working set, a threshold changes with 1 / p
(``on_columns``, ``moved``). Of the columns outside only sums are needed (engines/sparse.py). Put
into the split of branch t with coefficient a, a column of scaled values x_i moves its log-odds by
unit a x_i with unit = steepness / p: with s_it the derivative of the loss by them, the derivative
by a is

    slope   g_t = unit sum_i s_it x_i

and gains are those of screening.py. Shapes: slopes and curvatures (n_rows, n_branches), g and gains
(n_columns, n_branches).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.sparse import SparseColumns, SparseRows
from softsplit.problem.penalties import Groups, Penalty
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import Budget, Screening, Solution, Solver, Start
from softsplit.solvers.score_statistics import (
    Labels,
    ScoreStatistics,
    branch_slopes,
    group_slopes,
    score_statistics,
)
from softsplit.support.arrays import FloatArray
from softsplit.support.parallel import one_blas_thread
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import gate_probabilities, split_scores
from softsplit.tree.scaling import scaled_rows

FIRST_COLUMNS, FIRST_CELLS = 150, 30_000_000
"""Columns of the first working set, by marginal screening: fewer where rows are so many that more
cells would be dense. Others join later."""

JOINING_COLUMNS = 30
"""Most columns that join in a round."""

ROUNDS = 8
"""Most rounds of training and joining."""

LEAST_GAIN = 1e-6
"""Relative decrease of the objective below which columns that joined are left out again."""

Fresh = Callable[[TrainingProblem], Solution | None]
"""Trains a tree from a start of its own; None if that ends in no feasible tree."""


# --- the first working set ------------------------------------------------------------------------


def first_columns(
    X: Any,
    labels: Labels,
    weight: FloatArray,
    groups: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Return the columns of a sparse matrix with the largest score statistics, at least one.

    With ``groups``, the group of each column, whole groups are chosen.
    """
    counted = weight > 0
    labels = np.unique(labels[counted], return_inverse=True)[1]
    X = X if np.all(counted) else X[counted]
    steps = newton_steps(SparseColumns.plain(X), *group_slopes(labels, weight[counted]))
    order = np.argsort(-steps.gains.max(axis=1), kind="stable")
    most = min(FIRST_COLUMNS, max(JOINING_COLUMNS, FIRST_CELLS // X.shape[0]))
    if groups is None:
        return np.sort(order[:most])
    first = np.sort(np.unique(groups[order], return_index=True)[1])  # of each group, by its best
    sizes = np.bincount(groups)[groups[order[first]]]
    chosen = order[first[: max(1, int(np.sum(np.cumsum(sizes) <= most)))]]
    return np.flatnonzero(np.isin(groups, groups[chosen]))


def newton_steps(
    columns: SparseColumns, slopes: FloatArray, curvatures: FloatArray
) -> ScoreStatistics:
    """Return gains and coefficients of a Newton step in each column alone."""
    return score_statistics(columns.rest.T, columns.squares.T, slopes, curvatures)


# --- problems and trees on other working sets -----------------------------------------------------


def on_columns(problem: TrainingProblem, rows: SparseRows) -> TrainingProblem:
    """Return ``problem`` on another working set of its table, with the same unit."""
    groups = None if rows.groups is None else Groups(rows.groups)
    return replace(
        problem,
        rows=rows,
        penalties=problem.penalties.of_groups(groups),
        steepness=problem.steepness / problem.n_features * rows.n_features,
    )


def moved(tree: TreeParameters, columns: NDArray[np.intp], to: NDArray[np.intp]) -> TreeParameters:
    """Return a tree on ``columns`` of the table on the columns ``to``, which hold all it uses."""
    used = np.any(tree.weights, axis=1)
    weights = np.zeros((len(to), tree.weights.shape[1]))
    weights[np.searchsorted(to, columns[used])] = tree.weights[used]
    thresholds = tree.thresholds * (len(columns) / len(to))
    return TreeParameters(weights, thresholds, tree.leaf_values)


# --- columns outside ------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutsideScores:
    """Score statistics of columns outside the working set.

    Attributes
    ----------
    columns : array of int
    worth : array
        Estimated decrease of the objective by each column with its group; under penalties other
        than the count, the violation of the first-order condition: the sum of all |slope| beyond
        that of the local penalty exceeds the slope of the global one. Zero where there is none.
    starts : array (n_columns, n_branches)
        Coefficients by a Newton step in the branch where it gains most.
    """

    columns: NDArray[np.intp]
    worth: FloatArray
    starts: FloatArray


def slopes_at(
    tree: TreeParameters, steepness: float, scaled: FloatArray, labels: Labels, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Slopes and curvatures at a tree by likelihood, for scaled rows (n_features, n_rows)."""
    gates = gate_probabilities(split_scores(tree, scaled), steepness)
    return branch_slopes(*gates, tree.leaf_values, labels, weight)


def outside_scores(
    problem: TrainingProblem, rows: SparseRows, tree: TreeParameters
) -> OutsideScores:
    """Return score statistics of the columns outside the working set of ``rows``, at a tree."""
    table, unit = rows.table, problem.steepness / problem.n_features
    outside = np.setdiff1d(np.arange(table.n_columns), rows.columns)
    scaled = scaled_rows(rows.placed.scaling, rows.dense).T
    slopes = slopes_at(tree, problem.steepness, scaled, table.labels, table.weights)
    steps = newton_steps(table.scaled, *slopes)
    gains, change = steps.gains[outside], steps.change[outside]
    each, best = np.arange(len(outside)), np.argmax(gains, axis=1)
    starts = np.zeros_like(change)
    starts[each, best] = change[each, best] / unit
    local, global_ = problem.penalties.local, problem.penalties.global_
    if problem.penalties.counts:
        amounts = np.maximum(gains[each, best] - local.strength, 0.0)
        price = global_.strength
    else:
        pulls = np.abs(unit * table.scaled.products(slopes[0])[outside])
        amounts = np.maximum(pulls - _slope_at_zero(local), 0.0).sum(axis=1)
        price = _slope_at_zero(global_)
    if table.groups is not None:
        each = np.unique(table.groups[outside], return_inverse=True)[1]
    worth = np.bincount(each, amounts, minlength=1)[each] - price
    return OutsideScores(outside, np.maximum(worth, 0.0), starts)


def _slope_at_zero(penalty: Penalty) -> float:
    """Return the slope of a penalty at zero."""
    return penalty.strength * float(penalty.surrogate.slope(np.zeros(1))[0])


# --- the loop -------------------------------------------------------------------------------------


def widened(
    problem: TrainingProblem,
    solution: Solution,
    solver: Solver,
    budget: Budget,
    fresh: Fresh,
) -> Solution:
    """Let columns from outside the working set join as long as that lowers the objective.

    ``solution`` is one of ``problem``, the result one on the columns that its ``screening`` names.
    Of rows that have no columns outside it is ``solution`` itself. Ctrl-C ends the loop with the
    best tree so far; where no time is left, nothing is screened.

    1. The columns outside are screened at the tree; the best of those that were not refused join.
    2. The tree goes on from where it is, and a fresh start is made besides.
    3. If neither lowers the objective, the columns are refused.
    """
    if not isinstance(problem.rows, SparseRows):
        return solution
    rows, tol = problem.rows, budget.tol * problem.cost_unit
    refused: set[int] = set()
    number, left = 0, np.nan
    with budget.interruptible():
        for number in range(ROUNDS + 1):
            # 1. columns that join
            left = np.nan
            if budget.exhausted:
                break
            scores = outside_scores(problem, rows, solution.parameters)
            open_ = (scores.worth > tol) & ~np.isin(scores.columns, list(refused))
            left = float(np.max(scores.worth[open_], initial=0.0))
            if left == 0.0 or number == ROUNDS:
                break
            order = np.argsort(-np.where(open_, scores.worth, 0.0), kind="stable")
            chosen = np.sort(order[: min(JOINING_COLUMNS, int(open_.sum()))])
            joining = scores.columns[chosen]
            wider = rows.with_columns(joining)
            # 2. two descents
            wide_problem = on_columns(problem, wider)
            start = moved(solution.parameters, rows.columns, wider.columns)
            added = np.isin(wider.columns, joining)
            start.weights[added] = scores.starts[chosen] / len(joining)
            with one_blas_thread():
                went_on = solver.solve(wide_problem, Start(start), budget)
            ends = [went_on, *filter(None, [fresh(wide_problem)])]
            better = min(ends, key=lambda end: (not end.status.usable, end.objective))
            # 3. what became of it
            least = LEAST_GAIN * abs(solution.objective)
            if better.status.usable and better.objective < solution.objective - least:
                rows, problem = wider, wide_problem
                solution = replace(better, search=solution.search)
            else:
                refused.update(joining.tolist())
    screening = Screening(rows.table.n_columns, rows.columns, number, left, left == 0.0)
    return replace(solution, screening=screening)
