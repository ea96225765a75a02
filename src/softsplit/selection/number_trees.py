"""Trees for numbers: fitted, and chosen by cross-validation, as functions of arrays.

    fit_numbers(rows, family, settings, seed) -> NumberTree

Rows are coded and imputed, with hinges as columns, in the units of the table (``Rows.X`` of an
estimator); the tree comes back in these units. It is the tree of a *walk*: a row goes left at
branch t where

    weights[:, t] . x - thresholds[t] > 0

and its leaf predicts ``family.prediction(score + offset)`` with the score of ``tree.leaves``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from softsplit.selection.number_choice import (
    NumberPoint,
    NumberSettings,
    compare,
    depths_of,
    drawn,
    limits_of,
    usual_price,
)
from softsplit.solvers.base import Budget
from softsplit.solvers.expected_deviance.descent import descend
from softsplit.solvers.expected_deviance.frame import Frame, canonical
from softsplit.solvers.expected_deviance.frame import NumberRows as NumberRows  # of the interface
from softsplit.solvers.expected_deviance.path import best_point, elimination_path
from softsplit.solvers.expected_deviance.problem import SoftTree
from softsplit.solvers.expected_deviance.starts import Starts
from softsplit.solvers.expected_deviance.walk import WalkedTree, walk_of
from softsplit.support.arrays import FloatArray
from softsplit.tree.leaf_families import LeafFamily
from softsplit.tree.leaf_functions import LeafFunctions
from softsplit.tree.parameters import Topology
from softsplit.tree.routing import node_reach
from softsplit.tree.ways import hard_leaves


@dataclass(frozen=True, eq=False)
class NumberTree:
    """A fitted tree in the units of the table.

    Attributes
    ----------
    family : LeafFamily
    weights : array (n_features, n_branches)
    thresholds : array (n_branches,)
        A branch without weights sends all rows left (threshold below 0) or right. A tree without
        questions has one branch of this kind.
    leaves : LeafFunctions
        Of the walk, refitted on its rows.
    mixed_leaves : LeafFunctions
        Of the mixture, in which gates are the logistic function of weights . x - threshold.
    leaf_rows, leaf_deviance : arrays (n_leaves,)
        Weight of the training rows of each leaf of the walk, and their mean deviance.
    depth, strength : int, float
        As chosen, or as given.
    points : tuple of NumberPoint
        The settings that were compared; empty without a cross-validation.
    chosen : int
        Place of the chosen one among them; -1 without.
    held_out : array (n_rows,)
        Prediction of each row by the walk of the fold that held it out; NaN for rows that none did.
    relative_residuals : array (n_rows,)
        (y - held_out) / root mean squared residual of the training rows of the leaf that made it.
    leaf_scale : array (n_leaves,)
        Root mean squared residual of the training rows of each leaf.
    """

    family: LeafFamily
    weights: FloatArray
    thresholds: FloatArray
    leaves: LeafFunctions
    mixed_leaves: LeafFunctions
    leaf_rows: FloatArray
    leaf_deviance: FloatArray
    leaf_scale: FloatArray
    depth: int
    strength: float
    points: tuple[NumberPoint, ...] = ()
    chosen: int = -1
    held_out: FloatArray | None = None
    relative_residuals: FloatArray | None = None

    @property
    def topology(self) -> Topology:
        return Topology.with_branches(len(self.thresholds))

    def split_scores(self, X: FloatArray) -> FloatArray:
        """Return weights . x - threshold, (n_branches, n_rows); bits do not depend on the rows."""
        scores = np.repeat(-self.thresholds[:, None], len(X), axis=1)
        for j in np.flatnonzero(self.weights.any(axis=1)):
            column = np.asarray(X[:, j], dtype=float)
            for t in np.flatnonzero(self.weights[j]):
                scores[t] += self.weights[j, t] * column
        return scores

    def apply(self, X: FloatArray) -> NDArray[np.intp]:
        """Return the leaf of each row."""
        return hard_leaves(self.split_scores(X))

    def predict(self, X: FloatArray, offset: FloatArray | float = 0.0) -> FloatArray:
        """Return the prediction of the walk for each row."""
        scores = self.leaves.scores(X)[self.apply(X), np.arange(len(X))]
        return self.family.prediction(scores + offset)

    def predict_mixture(self, X: FloatArray, offset: FloatArray | float = 0.0) -> FloatArray:
        """Return the mean prediction of the leaves by the soft gates."""
        with np.errstate(over="ignore"):
            left = 1.0 / (1.0 + np.exp(-self.split_scores(X)))
        shares = node_reach(left, 1.0 - left)[len(self.thresholds) :]
        predicted = self.family.prediction(self.mixed_leaves.scores(X) + offset)
        return np.asarray(np.sum(shares * predicted, axis=0))

    def half_widths(self, level: float) -> FloatArray | None:
        """Return the half-width of each leaf's interval, (n_leaves,); None without folds.

        It is ``leaf_scale`` times the quantile of |y - held_out| / held_out_scale that (n + 1)
        level of n held-out rows are within.
        """
        if self.relative_residuals is None:
            return None
        sizes = np.sort(np.abs(self.relative_residuals[np.isfinite(self.relative_residuals)]))
        place = min(int(np.ceil((len(sizes) + 1) * level)), len(sizes)) - 1
        return np.asarray(self.leaf_scale * sizes[place])


# --- fitting --------------------------------------------------------------------------------------

PATH_ROWS = 6_000
"""Most rows of the path of the tree itself."""

FINAL_STEPS = 40


def fit_numbers(
    rows: NumberRows,
    family: LeafFamily,
    settings: NumberSettings | None = None,
    seed: int = 0,
    budget: Budget | None = None,
) -> NumberTree:
    """Return the tree; at the end of the budget the best so far.

    1. Equal rows are merged and put in canonical order: results do not depend on that of the table.
    2. Depth and strength are chosen on folds of at most COMPARED_ROWS rows. Where time is up before
       one depth is compared, usual ones are taken.
    3. A path on at most PATH_ROWS rows; its tree descends on all rows.
    4. The walk of that tree, back in the units of the table.
    """
    # 1. Rows.
    settings, budget = settings or NumberSettings(), budget or Budget()
    family.check(rows.targets.values)
    merged, places = canonical(rows)
    # 2. The choice.
    choice = None
    if settings.assess or settings.depth is None or settings.strength is None:
        choice = compare(merged, places, family, settings, seed, budget)
    if choice is None:
        usual = usual_price(merged.targets.totals.sum())
        strength = usual if settings.strength is None else settings.strength
        depth = depths_of(settings, merged.n_rows)[:2][-1]
        depth = depth if settings.depth is None else settings.depth
    else:
        depth, strength = choice.best.depth, choice.best.strength
    # 3. and 4. The tree and its walk.
    train = partial(_trained, merged, family, settings, depth, strength, seed, budget)
    fitted = budget.insist(train)
    if choice is None:
        return fitted
    fitted = shrunk(fitted, merged, choice.best.share)
    return replace(
        fitted, points=choice.points, chosen=choice.chosen, held_out=choice.held_out[places],
        relative_residuals=choice.relative[places],
    )  # fmt: skip


def _trained(
    rows: NumberRows,
    family: LeafFamily,
    settings: NumberSettings,
    depth: int,
    strength: float,
    seed: int,
    budget: Budget,
) -> NumberTree:
    """Return the tree of a depth and a strength: a path on a sample, a descent on all rows."""
    part = rows.part(drawn(rows, PATH_ROWS, seed))
    frame = Frame.of(part, family)
    problem = frame.problem(part, settings.threads, settings.mixture)
    starts = Starts(problem, np.random.default_rng(seed), settings.leaf_terms == 0)
    path = elimination_path(starts, depth, limits_of(settings), budget)
    tree = best_point(path, strength).tree
    columns = np.arange(problem.n_columns)
    if part.n_rows < rows.n_rows:
        columns = tree.columns
        problem, tree = frame.problem_of_columns(rows, tree, settings.threads, settings.mixture)
    tree = descend(problem, tree, FINAL_STEPS, 1e-3, budget).tree
    fitted = in_units(frame, columns, walk_of(problem, tree, settings.min_leaf_rows))
    return replace(fitted, family=frame.family.scaled(frame.unit), depth=depth, strength=strength)


def shrunk(tree: NumberTree, rows: NumberRows, share: float) -> NumberTree:
    """Return the tree with a share of its effects on the log of a mean; the total is kept."""
    if share == 1.0:
        return tree
    y, weight, offset = rows.targets.values, rows.targets.totals, rows.targets.offset
    centre = tree.family.start(y, weight, offset)
    leaves, mixed = (part.towards(centre, share) for part in (tree.leaves, tree.mixed_leaves))
    scores = leaves.scores(rows.X)[tree.apply(rows.X), np.arange(rows.n_rows)]
    shift = tree.family.start(y, weight, offset + scores)
    return replace(tree, leaves=leaves.raised(shift), mixed_leaves=mixed.raised(shift))


def in_units(frame: Frame, columns: NDArray[np.intp], walk: WalkedTree) -> NumberTree:
    """Return a walk and its soft tree in the units of the table."""
    hard, n = walk.tree, walk.tree.n_branches
    held = columns[hard.columns]
    weights, constants = frame.in_units(hard.matrix[:n], held)
    leaves = _functions(frame, hard, held, (walk.low, walk.high))
    mixed = _functions(frame, walk.mixed, columns[walk.mixed.columns], walk.mixed_bounds)
    return NumberTree(
        frame.family, weights, -constants, leaves, mixed, walk.rows * frame.row_unit,
        walk.deviance, walk.scale * frame.unit, 0, 0.0,
    )  # fmt: skip


def _functions(
    frame: Frame, tree: SoftTree, held: NDArray[np.intp], bounds: tuple[FloatArray, FloatArray]
) -> LeafFunctions:
    slopes, constants = frame.in_units(tree.matrix[tree.n_branches :], held)
    low, high = (frame.level + frame.unit * bound for bound in bounds)
    return LeafFunctions(frame.level + frame.unit * constants, frame.unit * slopes, low, high)
