"""From the solved tree of a number to the fitted one: rounded questions, printed leaves, errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.importance import feature_movements
from softsplit.fitted.leaf_numbers import LeafNumbers
from softsplit.fitted.leaf_rounding import LEAST, printed_functions
from softsplit.fitted.model import TreeModel
from softsplit.fitted.summary import FeatureSummary
from softsplit.fitted.walk import Arriving, Walk
from softsplit.fitted.walk_choice import Chosen
from softsplit.fitted.walk_rounding import rounded_walk
from softsplit.selection.number_trees import NumberTree
from softsplit.support.arrays import FloatArray
from softsplit.support.hinged_table import HingedTable
from softsplit.support.row_budgets import ROWS
from softsplit.training.rows import Rows
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import leaf_probabilities, split_scores
from softsplit.tree.scaling import Scaling, fit_scaling, scaled_rows
from softsplit.variables import Coding, MonotoneEffects


@dataclass(frozen=True)
class TargetTable:
    """Training rows of a number: coded X, targets and weights, and what the columns are.

    ``exposure`` (n_rows,) is what targets are proportional to, and ``per`` its name;
    ``groups`` (n_features,) is the variable of each column, ``prices`` (n_variables,) what a
    variable costs, and ``costs`` (n_columns,) what a column of the table does.
    """

    X: Any
    y: FloatArray
    weight: FloatArray
    names: tuple[str, ...]
    named: bool
    groups: NDArray[np.intp]
    coding: Coding | None = None
    target: str | None = None
    prices: FloatArray | None = None
    costs: FloatArray | None = None
    monotone: MonotoneEffects | None = None
    exposure: FloatArray | None = None
    per: str | None = None

    @property
    def offset(self) -> FloatArray | None:
        """Logs of exposures, which are added to scores."""
        return None if self.exposure is None else np.log(self.exposure)

    @property
    def n_rows(self) -> float:
        """Rows, each as often as its weight says; weights below 1 on average are shares."""
        return counted_rows(self.weight)

    @property
    def labelled(self) -> Rows:
        """The rows as those of one class, the target, for readers of their columns."""
        return Rows(
            X=self.X,
            labels=np.zeros(len(self.y), dtype=np.int64),
            weight=self.weight,
            classes=np.array([self.target or "y"], dtype=object),
            names=np.array(self.names, dtype=object) if self.named else None,
            coding=self.coding,
            target=self.target,
        )

    def pieces(self, used: NDArray[np.bool_]) -> Iterator[tuple[slice, FloatArray]]:
        """Yield all rows, some at a time; columns that are not ``used`` may be zero."""
        if isinstance(self.X, HingedTable):
            yield from ((piece, self.X.in_use(piece, used)) for piece in self.X.pieces())
        else:
            yield slice(None), self.X


def counted_rows(weight: FloatArray) -> float:
    """How many rows weights stand for."""
    return float(weight.sum()) / min(1.0, float(weight[weight > 0].mean()))


def fitted_numbers(solved: NumberTree, rows: TargetTable, decision: str) -> TreeModel:
    """Return the fitted tree that predicts as it is printed.

    1. Questions in scaled units, rounded on some rows so that these stay in their leaves.
    2. Leaf functions, rounded on the same rows: those of the walk, or of the mixture.
    3. Means and errors of the leaves, from all rows, and what held-out rows say.
    """
    # 1. Questions.
    counted = np.flatnonzero(rows.weight > 0)
    few = counted[:: -(-len(counted) // ROWS.walk)]
    X, weight = np.asarray(rows.X[few], dtype=float), rows.weight[few]
    scaling = fit_scaling("standard", rows.X[counted], rows.weight[counted])
    tree, walk = _questions(solved, scaling, X, weight)
    scaled = scaled_rows(scaling, X).T
    # 2. Leaves.
    mixed = decision == "mixture"
    if mixed:
        shares = leaf_probabilities(split_scores(tree, scaled), 1.0)
    else:
        shares = (walk.leaves(X, scaling) == np.arange(solved.leaves.n_leaves)[:, None]).astype(
            float
        )
    arrived = np.maximum(shares @ weight, 1e-300)
    means = shares @ (weight * rows.y[few]) / arrived
    centre = np.average(rows.y, weights=rows.weight)
    deviation = float(np.sqrt(np.average((rows.y - centre) ** 2, weights=rows.weight)))
    errors = np.maximum(solved.leaf_scale, LEAST * deviation)
    allowed = solved.family.score_errors(errors, means)
    functions = solved.mixed_leaves if mixed else solved.leaves
    curved = [] if rows.monotone is None else [own for _, own, _ in rows.monotone.features]
    known = X, shares * weight, allowed, rows.coding, curved
    printed = printed_functions(functions, *known, log_link=solved.family.log_link)
    totals = None if rows.exposure is None else np.zeros(len(errors))
    numbers = LeafNumbers(printed, solved.family, errors, errors, totals=totals, per=rows.per)
    shell = TreeModel(
        parameters=tree,
        steepness=1.0,
        scaling=scaling,
        classes=np.zeros(0),
        feature_names=rows.names,
        summary=FeatureSummary.of(rows.X, rows.weight, np.average(scaled, axis=1, weights=weight)),
        coding=rows.coding,
        target=rows.target,
        walk=None if mixed else walk,
        monotone=rows.monotone,
        column_costs=rows.costs,
        numbers=numbers,
    )
    # 3. What is known of all rows.
    return _measured(shell, solved, rows, scaled, weight)


def _questions(
    solved: NumberTree, scaling: Scaling, X: FloatArray, weight: FloatArray
) -> tuple[TreeParameters, Walk]:
    """Return the rounded gates in scaled units, and the walk; leaves are not counted yet."""
    n_features, n_leaves = solved.weights.shape[0], solved.leaves.n_leaves
    low, span = (scaling.arrays()[name] for name in ("low", "span"))
    weights = np.where(solved.weights != 0, solved.weights * span[:, None] * n_features, 0.0)
    thresholds = solved.thresholds - solved.weights.T @ low
    exact = TreeParameters(weights, thresholds, np.ones((1, n_leaves)))
    rows = Arriving(scaled_rows(scaling, X).T, np.zeros(len(X), dtype=np.int64), weight)
    kept = Chosen(np.zeros(len(thresholds)), np.arange(n_leaves))
    # Scores as the solver has them: in scaled units a row at the threshold might change sides.
    tree, walk = rounded_walk(exact, 1.0, scaling, rows, solved.split_scores(X), kept, 0.0)
    return tree, replace(walk, classes=np.zeros(n_leaves, dtype=np.intp))


def _measured(
    model: TreeModel,
    solved: NumberTree,
    rows: TargetTable,
    scaled: FloatArray,
    weight: FloatArray,
) -> TreeModel:
    """Return the model with rows, means and errors of its leaves, importances and intervals."""
    numbers = model.numbers
    assert numbers is not None
    n_leaves, used = numbers.functions.n_leaves, model.columns_in_use
    exposure = np.ones(len(rows.y)) if rows.exposure is None else rows.exposure
    sums = np.zeros((4, n_leaves))
    for piece, X in rows.pieces(used):
        leaves, y, counts = model.arrive(X), rows.y[piece], rows.weight[piece]
        units = exposure[piece]
        parts = 1.0, y, (y - units * model.calls(X)) ** 2, units
        sums += [np.bincount(leaves, counts * part, n_leaves) for part in parts]
    some = np.where(sums[0] > 0, sums[0], 1.0)
    overall = float(rows.weight @ rows.y) / float(rows.weight @ exposure)
    means = np.where(sums[3] > 0, sums[1] / np.where(sums[3] > 0, sums[3], 1.0), overall)
    errors = np.where(sums[0] > 0, np.sqrt(sums[2] / some), numbers.errors)
    numbers = replace(numbers, means=means, errors=np.maximum(errors, 1e-4 * numbers.errors))
    if numbers.totals is not None:
        numbers = replace(numbers, totals=sums[3])
    if solved.relative_residuals is not None and numbers.totals is None:
        known = np.flatnonzero(np.isfinite(solved.relative_residuals) & (rows.weight > 0))
        sizes = np.abs(solved.relative_residuals[known])
        numbers = numbers.with_held_out(sizes, rows.weight[known])
    walk, tree = model.walk, replace(model.parameters, leaf_values=means[None])
    return replace(
        model,
        parameters=tree,
        numbers=numbers,
        walk=None if walk is None else replace(walk, counts=sums[:1]),
        importances=_importances(tree, numbers, model, scaled, weight),
    )


def _importances(
    tree: TreeParameters,
    numbers: LeafNumbers,
    model: TreeModel,
    scaled: FloatArray,
    weight: FloatArray,
) -> FloatArray:
    """How much each column moves the predictions, as shares of one: by questions and by leaves.

    Questions move them between the means of the leaves (``fitted.importance``, twice the total
    variation); a leaf by |slope| times the mean distance of the column from its mean there. Under
    a log link all of these are logs.
    """
    tree = replace(tree, leaf_values=numbers.family.score(numbers.means)[None])
    moved = 2.0 * feature_movements(tree, model.steepness, scaled, weight)
    shares = leaf_probabilities(split_scores(tree, scaled), model.steepness) * weight
    for j in numbers.features.tolist():
        column, sizes = model.scaling.restored(j, scaled[j]), shares.sum(axis=1)
        means = (shares @ column) / np.where(sizes > 0, sizes, 1.0)
        away = np.sum(shares * np.abs(column - means[:, None]), axis=1)
        moved[j] += float(np.abs(numbers.functions.slopes[j]) @ away) / float(weight.sum())
    return moved / moved.sum() if moved.sum() > 0 else moved
