"""Wide sparse tables: a tree sees a working set of columns, and all others by sparse products.

The first columns are those of the largest score statistics (marginal screening). After training,
columns outside are screened again, at the tree: under the count those whose gain
exceeds their price, under other penalties those at which the first-order conditions of the whole
problem fail. They join, the tree goes on from where it is and from a fresh start besides, and so
on, until none is left or ``rounds`` have been made. No array has all rows times all columns.

Folds choose their columns by their own training rows, so that left-out rows have no say.

Scaled values of a sparse column are one number, what 0 becomes, plus a sparse rest. Put into the
split of branch t with coefficient a, a column of scaled values x_i moves its log-odds by
unit a x_i: with s_it the derivative of the loss by them, the derivative by a is

    slope   g_t = unit sum_i s_it x_i

and gains are those of solvers/elimination/screening.py. Shapes: slopes and curvatures (n_rows,
n_branches), g and gains (n_columns, n_branches).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.formulations.model_settings import ModelSettings
from softsplit.formulations.settings import weighted_rows
from softsplit.problem.penalties import Penalty
from softsplit.solvers.base import Solution, Start
from softsplit.solvers.elimination.screening import (
    Labels,
    ScoreStatistics,
    branch_slopes,
    class_slopes,
    score_statistics,
)
from softsplit.support.arrays import FloatArray
from softsplit.support.parallel import one_blas_thread
from softsplit.training.multistart import NoFeasibleTreeError
from softsplit.training.preparation import (
    Placed,
    Prepared,
    Rows,
    TrainingRows,
    Within,
    prepare,
)
from softsplit.training.run import Run, train
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import gate_probabilities, split_scores
from softsplit.tree.scaling import DEVIATIONS, SMALLEST_SPAN, rank_curve, scaled_rows
from softsplit.variables import Coding


@dataclass(frozen=True)
class SparseColumns:
    """Columns as base + rest.

    Attributes
    ----------
    rest : sparse matrix (n_rows, n_columns)
    base : array (n_columns,)
    """

    rest: Any
    base: FloatArray

    @classmethod
    def plain(cls, X: Any) -> SparseColumns:
        """Columns as they are."""
        return cls(X, np.zeros(X.shape[1]))

    @classmethod
    def scaled(cls, kind: str, X: Any, weight: FloatArray) -> SparseColumns:
        """Columns in scaled units (tree/scaling.py); rows of weight zero do not count."""
        if kind == "identity":
            return cls.plain(X)
        if kind == "quantile":
            return cls._ranked(X, weight)
        counted = X[weight > 0]
        low = counted.min(axis=0).toarray().ravel()
        span = counted.max(axis=0).toarray().ravel() - low
        varies = span > SMALLEST_SPAN
        if kind == "standard":
            total = weight.sum()
            mean = X.T @ weight / total
            square = _squares(X).T @ weight / total
            deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
            low, span = mean - 0.5 * DEVIATIONS * deviation, DEVIATIONS * deviation
        inverse = np.zeros(len(span))
        np.divide(1.0, span, out=inverse, where=varies & (span > SMALLEST_SPAN))
        return cls(_with_data(X, X.data * inverse[X.indices]), -low * inverse)

    @classmethod
    def _ranked(cls, X: Any, weight: FloatArray) -> SparseColumns:
        columns, base = X.tocsc(copy=True), np.zeros(X.shape[1])
        total = weight.sum()
        for j in range(X.shape[1]):
            span = slice(columns.indptr[j], columns.indptr[j + 1])
            values, of = columns.data[span], weight[columns.indices[span]]
            known = np.append(values[of > 0], 0.0)
            found, place = np.unique(known, return_inverse=True)
            rest = total - of.sum()
            held = np.bincount(place, np.append(of[of > 0], rest)).astype(float)
            if held[place[-1]] <= 0:  # no row is zero here
                found, held = np.delete(found, place[-1]), np.delete(held, place[-1])
            curve = rank_curve(found, held)
            base[j] = np.interp(0.0, *curve)
            columns.data[span] = np.interp(values, *curve) - base[j]
        return cls(columns.tocsr(), base)

    @cached_property
    def _squared(self) -> Any:
        return _squares(self.rest)

    def products(self, slopes: FloatArray) -> FloatArray:
        """sum_i s_it x_ij, (n_columns, n_branches)."""
        sums: FloatArray = self.rest.T @ slopes + np.outer(self.base, slopes.sum(axis=0))
        return sums

    def steps(self, slopes: FloatArray, curvatures: FloatArray) -> ScoreStatistics:
        """What a Newton step in each column alone gains, and how far it goes."""
        return score_statistics(self.rest.T, self._squared.T, slopes, curvatures)


def slopes_at(
    tree: TreeParameters, steepness: float, scaled: FloatArray, labels: Labels, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Slopes and curvatures at a tree by likelihood, for scaled rows (n_features, n_rows)."""
    gates = gate_probabilities(split_scores(tree, scaled), steepness)
    return branch_slopes(*gates, tree.leaf_classes, labels, weight)


def _squares(X: Any) -> Any:
    return _with_data(X, X.data**2)


def _with_data(X: Any, data: FloatArray) -> Any:
    """Return the matrix with other numbers in the same places."""
    return type(X)((data, X.indices, X.indptr), shape=X.shape)


@dataclass(frozen=True)
class WorkingSetOptions:
    """Columns of a wide sparse table that a tree is trained on."""

    first_columns: int = 150
    """Columns of the first working set, by marginal screening."""

    joining_columns: int = 30
    """Most columns that join in a round."""

    rounds: int = 8
    """Most rounds of training and joining."""

    least_gain: float = 1e-6
    """Relative decrease of the objective below which no further round is made."""


OPTIONS = WorkingSetOptions()


@dataclass(frozen=True)
class WideRows:
    """Training rows in a sparse matrix, with the working set of columns.

    Attributes
    ----------
    X : sparse matrix (n_rows, n_columns) of compressed rows
    labels, weight, classes, weighted, target
        As of ``Rows``.
    table_names : array of str, optional
        Names of all columns.
    table_groups : array of int, optional
        The group of every column.
    columns : array of int
        The working set, ascending.
    """

    X: Any
    labels: NDArray[np.int64]
    weight: FloatArray
    classes: NDArray[Any]
    table_names: NDArray[Any] | None = None
    weighted: bool = False
    target: str | None = None
    table_groups: NDArray[np.intp] | None = None
    columns: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    # --- as training rows -------------------------------------------------------------------------

    @cached_property
    def block(self) -> Rows:
        """The working set as dense rows."""
        X = np.ascontiguousarray(self.X[:, self.columns].toarray(), dtype=float)
        groups = None
        if self.table_groups is not None:
            _, groups = np.unique(self.table_groups[self.columns], return_inverse=True)
        all_ = self.table_names
        if all_ is None:
            all_ = np.array([f"x{j}" for j in range(self.X.shape[1])], dtype=object)
        coding = Coding.of_numbers(
            all_.tolist(), np.median(X, axis=0), self.table_names is not None, self.columns.tolist()
        )
        return Rows(
            X, self.labels, self.weight, self.classes, all_[self.columns], self.weighted, coding,
            self.target, groups, within=Within(self.columns, self.X.shape[1]),
        )  # fmt: skip

    @property
    def names(self) -> NDArray[Any] | None:
        return self.block.names

    @property
    def coding(self) -> Coding | None:
        return self.block.coding

    @property
    def groups(self) -> NDArray[np.intp] | None:
        return self.block.groups

    @property
    def within(self) -> Within | None:
        return self.block.within

    def placed(self, kind: str, settings: ModelSettings) -> Placed:
        """As of ``TrainingRows``."""
        return self.block.placed(kind, settings)

    # --- as rows that are divided into folds ------------------------------------------------------

    @property
    def y(self) -> NDArray[Any]:
        """As of ``Rows``, and so is all that follows."""
        named: NDArray[Any] = self.classes[self.labels]
        return named

    def part(self, rows: NDArray[Any]) -> WideRows:
        return replace(self, X=self.X[rows], labels=self.labels[rows], weight=self.weight[rows])

    def counted(self) -> WideRows:
        counted = self.weight > 0
        return self if np.all(counted) else self.part(counted)

    def fold(self, train: NDArray[Any], test: NDArray[Any]) -> tuple[Rows, Rows]:
        own = self.part(train).screened()
        other = replace(self.part(test), columns=own.columns)
        return own.block.nameless(), other.block.nameless()

    def nameless(self) -> WideRows:
        return self  # its folds are

    @cached_property
    def content(self) -> FloatArray:
        made: FloatArray = self.X @ np.sin(1.0 + np.arange(self.X.shape[1]))
        return made[:, None]

    @property
    def two_valued(self) -> bool:
        X = self.X.tocsc()
        low, high = (ends.toarray().ravel() for ends in (X.min(axis=0), X.max(axis=0)))
        homes = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
        stored = (X.data == low[homes]) | (X.data == high[homes])
        zeros = (np.diff(X.indptr) == X.shape[0]) | (low == 0) | (high == 0)
        return bool(np.all(stored) and np.all(zeros))

    # --- the working set --------------------------------------------------------------------------

    def screened(self) -> WideRows:
        """Return the rows with the columns of largest score statistics as their working set."""
        counted = self.weight > 0
        labels = np.unique(self.labels[counted], return_inverse=True)[1]
        X = self.X if np.all(counted) else self.X[counted]
        steps = SparseColumns.plain(X).steps(*class_slopes(labels, self.weight[counted]))
        return self.joined(self._best(steps.gains.max(axis=1), OPTIONS.first_columns), alone=True)

    def joined(self, columns: Iterable[int], *, alone: bool = False) -> WideRows:
        """Return the rows with more columns and those of their groups, or with these ``alone``."""
        chosen = np.zeros(self.X.shape[1], dtype=bool)
        chosen[self.columns] = not alone
        chosen[np.fromiter(columns, dtype=np.intp)] = True
        if self.table_groups is not None:
            chosen = np.isin(self.table_groups, self.table_groups[chosen])
        return replace(self, columns=np.flatnonzero(chosen))

    def _best(self, worth: FloatArray, limit: int) -> NDArray[np.intp]:
        """Return the columns of largest score with their groups, up to ``limit``; at least one."""
        order = np.argsort(-worth, kind="stable")
        if self.table_groups is None:
            return order[:limit]
        groups = self.table_groups[order]
        first = np.sort(np.unique(groups, return_index=True)[1])  # of each group, by worth
        sizes = np.bincount(self.table_groups)[groups[first]]
        return order[first[: max(1, int(np.sum(np.cumsum(sizes) <= limit)))]]

    def outside_scores(self, prepared: Prepared, tree: TreeParameters) -> OutsideScores:
        """Return score statistics of the columns outside the working set, at a tree."""
        outside = np.setdiff1d(np.arange(self.X.shape[1]), self.columns)
        weight, given = self.weight, prepared.settings.class_weight
        if given is not None:
            weight = weighted_rows(given, weight, self.labels, self.classes)
        problem = prepared.problem
        scaled = scaled_rows(prepared.scaling, self.block.X).T
        slopes = slopes_at(tree, problem.steepness, scaled, self.labels, weight)
        columns = SparseColumns.scaled(prepared.scaling.kind, self.X[:, outside], self.weight)
        steps, unit = columns.steps(*slopes), problem.steepness / problem.n_features
        best = np.argmax(steps.gains, axis=1)
        starts = np.zeros_like(steps.change)
        each = np.arange(len(outside))
        starts[each, best] = steps.change[each, best] / unit
        local, global_ = problem.penalties.local, problem.penalties.global_
        if problem.penalties.counts:
            amounts = np.maximum(steps.gains[each, best] - local.strength, 0.0)
            price = global_.strength
        else:
            pulls = np.abs(unit * columns.products(slopes[0]))
            amounts = np.maximum(pulls - _slope_at_zero(local), 0.0).sum(axis=1)
            price = _slope_at_zero(global_)
        if self.table_groups is not None:
            each = np.unique(self.table_groups[outside], return_inverse=True)[1]
        worth = np.bincount(each, amounts, minlength=1)[each] - price
        return OutsideScores(outside, np.maximum(worth, 0.0), starts)


def _slope_at_zero(penalty: Penalty) -> float:
    """Return the slope of a penalty at zero."""
    return penalty.strength * float(penalty.surrogate.slope(np.zeros(1))[0])


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


@dataclass(frozen=True)
class Screening:
    """How the columns of a wide sparse matrix were screened.

    Attributes
    ----------
    n_columns : int
        Columns of the matrix.
    columns : array of int
        The working set of the tree; all other columns entered sparse products only.
    rounds : int
        Rounds in which columns joined the first working set.
    left : float
        Largest score of a column that never joined: under the count an estimated decrease of the
        objective, under other penalties the violation of its first-order condition.
    complete : bool
        Whether that is zero, to the tolerance of the fit.
    """

    n_columns: int
    columns: NDArray[np.intp]
    rounds: int
    left: float
    complete: bool


AnyRows = Rows | WideRows


def moved(tree: TreeParameters, columns: NDArray[np.intp], to: NDArray[np.intp]) -> TreeParameters:
    """Return a tree of the log-loss on other columns of the table, which hold all that it uses."""
    used = np.any(tree.weights, axis=1)
    weights = np.zeros((len(to), tree.weights.shape[1]))
    weights[np.searchsorted(to, columns[used])] = tree.weights[used]
    # log-odds are steepness (x . a / p - mu), with a steepness in proportion to p
    thresholds = tree.thresholds * (len(columns) / len(to))
    return TreeParameters(weights, thresholds, tree.leaf_classes)


def widened(
    rows: TrainingRows, prepared: Prepared, found: Solution, run: Run
) -> tuple[Prepared, Solution, Screening | None]:
    """Let columns from outside the working set join as long as that lowers the objective."""
    if not isinstance(rows, WideRows):
        return prepared, found, None
    tol = run.budget.tol * prepared.problem.cost_unit
    refused: set[int] = set()
    for number in range(OPTIONS.rounds + 1):
        scores = rows.outside_scores(prepared, found.parameters)
        open_ = (scores.worth > tol) & ~np.isin(scores.columns, list(refused))
        left = float(np.max(scores.worth[open_], initial=0.0))
        if left == 0.0 or number == OPTIONS.rounds or run.budget.exhausted:
            break
        order = np.argsort(-np.where(open_, scores.worth, 0.0), kind="stable")
        joining = order[: min(OPTIONS.joining_columns, int(open_.sum()))]
        wider = rows.joined(scores.columns[joining])
        again = prepare(prepared.settings, wider)
        start = moved(found.parameters, rows.columns, wider.columns)
        added = np.isin(wider.columns, scores.columns[joining])
        start.weights[added] = scores.starts[np.sort(joining)] / len(joining)
        with one_blas_thread():
            ends = [run.solver.solve(again.problem, Start(start), run.budget)]
        with suppress(NoFeasibleTreeError):
            ends.append(train(again, replace(run, n_starts=1)).best)
        better = min(ends, key=lambda end: (not end.status.usable, end.objective))
        least = OPTIONS.least_gain * abs(found.objective)
        if better.status.usable and better.objective < found.objective - least:
            rows, prepared = wider, again
            found = replace(better, search=found.search)
        else:
            refused.update(scores.columns[joining].tolist())
    screening = Screening(rows.X.shape[1], rows.columns, number, left, left == 0.0)
    return prepared, found, screening
