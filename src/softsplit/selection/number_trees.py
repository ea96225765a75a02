"""Trees for numbers: fitted, and chosen by cross-validation, as functions of arrays.

    fit_numbers(rows, family, settings, seed) -> NumberTree

Rows are coded and imputed, with hinges as columns, in the units of the table (``Rows.X`` of an
estimator); the tree comes back in these units. It is the tree of a *walk*: a row goes left at
branch t where

    weights[:, t] . x - thresholds[t] > 0

and its leaf predicts ``family.prediction(score + offset)`` with the score of ``tree.leaves``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.solvers.expected_deviance.descent import descend
from softsplit.solvers.expected_deviance.frame import Frame, canonical
from softsplit.solvers.expected_deviance.frame import NumberRows as NumberRows  # of the interface
from softsplit.solvers.expected_deviance.path import (
    PathPoint,
    TreeLimits,
    best_point,
    elimination_path,
)
from softsplit.solvers.expected_deviance.problem import SoftTree
from softsplit.solvers.expected_deviance.starts import Starts
from softsplit.solvers.expected_deviance.walk import Walk, walk_of
from softsplit.support.arrays import FloatArray
from softsplit.tree.leaf_families import LeafFamily
from softsplit.tree.leaf_functions import LeafFunctions
from softsplit.tree.parameters import Topology
from softsplit.tree.routing import node_reach
from softsplit.tree.ways import hard_leaves


@dataclass(frozen=True)
class NumberSettings:
    """What is fitted, and how the tree is chosen; None is no limit, or chosen by cross-validation.

    Attributes
    ----------
    depth : int, optional
        Levels of questions at most; None is up to 3, as cross-validation says.
    strength : float, optional
        Price of a coefficient in units of log-likelihood; None is chosen by cross-validation. With
        depth and strength nothing is cross-validated, unless ``assess``.
    selection : {"sparse", "balanced", "best"}
        Price of columns and coefficients in the choice: triple, usual, none.
    folds : int, or list of (train, test) positions, optional
        None is 5, and 3 from FEWER_FOLDS rows on.
    max_features, max_leaves : int, optional
        Variables and leaves of the tree at most.
    max_terms, leaf_terms : int, optional
        Variables of a question, and of a leaf, at most; 0 leaf terms are constant leaves.
    min_leaf_rows : int
        Fewest rows of a leaf of the walk.
    assess : bool
        Whether residuals of the cross-validation are wanted even if there is nothing to choose.
    threads : int
        Threads of passes over many rows and of folds; results do not depend on it.
    """

    depth: int | None = None
    strength: float | None = None
    selection: str = "balanced"
    folds: int | list[tuple[NDArray[np.intp], NDArray[np.intp]]] | None = None
    max_features: int | None = None
    max_leaves: int | None = None
    max_terms: int | None = None
    leaf_terms: int | None = None
    min_leaf_rows: int = 10
    assess: bool = True
    threads: int = 1


@dataclass(frozen=True)
class NumberPoint:
    """A setting that was compared: cross-validated error of its walks and their mean sizes.

    ``error`` is the mean deviance in units of the deviance of a tree without features,
    ``criterion`` the error with the prices of columns and coefficients.
    """

    depth: int
    strength: float
    error: float
    error_se: float
    columns: float
    coefficients: float
    leaves: float
    criterion: float


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

SELECTIONS = {"sparse": 3.0, "balanced": 1.0, "best": 0.0}
"""Price of sizes in the choice, in units of the usual one."""

COLUMN_PRICE, COEFFICIENT_PRICE = 0.0025, 0.0005
"""Part of the deviance of a tree without features that a column, or a coefficient, must explain."""

STRENGTHS = tuple(0.7 * 1.45**k for k in range(11))
"""Prices of a coefficient that are compared, in units of log-likelihood."""

ROWS_OF_DEPTH = (0, 0, 120, 400)
"""Fewest rows for which trees of a depth are compared by default."""

COMPARED_ROWS, PATH_ROWS = 3_000, 6_000
"""Most rows of a cross-validation, and of the path of the tree itself."""

FEWER_FOLDS = 700
"""Rows from which on three folds are enough."""

FINAL_STEPS = 40


def fit_numbers(
    rows: NumberRows,
    family: LeafFamily,
    settings: NumberSettings | None = None,
    seed: int = 0,
    check: Callable[[], None] = lambda: None,
) -> NumberTree:
    """Return the tree; ``check`` is called now and then, and may raise.

    1. Equal rows are merged and put in canonical order: results do not depend on that of the table.
    2. Depth and strength are chosen on folds of at most COMPARED_ROWS rows.
    3. A path on at most PATH_ROWS rows; its tree descends on all rows.
    4. The walk of that tree, back in the units of the table.
    """
    # 1. Rows.
    settings = settings or NumberSettings()
    family.check(rows.targets.values)
    merged, places = canonical(rows)
    # 2. The choice.
    choice = None
    if settings.assess or settings.depth is None or settings.strength is None:
        choice = compare(merged, places, family, settings, seed, check)
    depth = settings.depth if choice is None else choice.best.depth
    strength = settings.strength if choice is None else choice.best.strength
    assert depth is not None and strength is not None
    # 3. The tree, on a sample and on all rows.
    part = merged.part(drawn(merged, PATH_ROWS, seed))
    frame = Frame.of(part, family)
    problem = frame.problem(part, settings.threads)
    starts = Starts(problem, depth, np.random.default_rng(seed))
    path = elimination_path(starts, depth, limits_of(settings), check)
    tree = best_point(path, strength).tree
    columns = np.arange(problem.n_columns)
    if part.n_rows < merged.n_rows:
        columns = tree.columns
        problem, tree = frame.problem_of_columns(merged, tree, settings.threads)
    tree = descend(problem, tree, FINAL_STEPS, 1e-3, check).tree
    # 4. The walk.
    walk = walk_of(problem, tree, settings.min_leaf_rows)
    fitted = in_units(frame, columns, walk)
    fitted = replace(fitted, family=frame.family.scaled(frame.unit), depth=depth, strength=strength)
    if choice is None:
        return fitted
    return replace(
        fitted, points=choice.points, chosen=choice.chosen, held_out=choice.held_out[places],
        relative_residuals=choice.relative[places],
    )  # fmt: skip


def limits_of(settings: NumberSettings) -> TreeLimits:
    return TreeLimits(
        settings.max_features, settings.max_leaves, settings.max_terms, settings.leaf_terms
    )


def drawn(rows: NumberRows, most: int, seed: int) -> NDArray[np.intp]:
    """Return about ``most`` rows at random, or all."""
    every = np.arange(rows.n_rows)
    if len(every) <= most:
        return every
    return np.sort(np.random.default_rng([seed, most]).choice(every, most, replace=False))


def in_units(frame: Frame, columns: NDArray[np.intp], walk: Walk) -> NumberTree:
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


# --- the choice -----------------------------------------------------------------------------------


class Choice(NamedTuple):
    """Settings that were compared, and what the folds of the best one predict of their rows."""

    points: tuple[NumberPoint, ...]
    chosen: int
    held_out: FloatArray  # of distinct rows, and a last entry of NaN
    relative: FloatArray

    @property
    def best(self) -> NumberPoint:
        return self.points[self.chosen]


class HeldOut(NamedTuple):
    """What a tree of a fold says of the rows that the fold holds out.

    ``truth`` are their targets, ``scores`` theirs with the offset, in the units of the table;
    ``size`` are numbers of columns, coefficients and leaves.
    """

    predicted: FloatArray
    relative: FloatArray
    truth: FloatArray
    scores: FloatArray
    size: tuple[int, int, int]


def compare(
    rows: NumberRows,
    places: NDArray[np.intp],
    family: LeafFamily,
    settings: NumberSettings,
    seed: int,
    check: Callable[[], None],
) -> Choice:
    """Return the choice of depth and strength by the walks of folds.

    1. In each fold, a path of a depth, and the tree of each strength on it.
    2. The error of each setting over all held-out rows, with the prices of its size.
    3. The next depth, unless two levels or more were no better than fewer.
    """
    folds = folds_of(rows, places, settings, seed)
    depths = depths_of(settings, min(len(train) for train, _ in folds))
    strengths = STRENGTHS if settings.strength is None else (settings.strength,)
    prepared = [
        _Fold(rows, family, fold, settings, max(depths), [seed, k]) for k, fold in enumerate(folds)
    ]
    scale = Scale.of(rows, family, folds, settings)
    points: list[NumberPoint] = []
    results: list[dict[tuple[int, float], HeldOut]] = [{} for _ in folds]
    for depth in depths:
        # 1. Paths.
        work = partial(_Fold.judged, depth=depth, strengths=strengths, check=check)
        for result, judged in zip(results, in_order(settings.threads, work, prepared), strict=True):
            result |= judged
        # 2. Errors.
        best = min((point.criterion for point in points), default=np.inf)
        points += [
            scale.point(depth, strength, [result[depth, strength] for result in results])
            for strength in strengths
        ]
        # 3. Deeper?
        if depth > 1 and min(point.criterion for point in points) >= best:
            break
    chosen = min(range(len(points)), key=lambda k: points[k].criterion)
    held_out, relative = np.full((2, rows.n_rows + 1), np.nan)
    for (_, test), result in zip(folds, results, strict=True):
        best_of_fold = result[points[chosen].depth, points[chosen].strength]
        held_out[test], relative[test] = best_of_fold.predicted, best_of_fold.relative
    return Choice(tuple(points), chosen, held_out, relative)


def in_order(
    threads: int, work: Callable[..., dict[tuple[int, float], HeldOut]], tasks: list[_Fold]
) -> list[dict[tuple[int, float], HeldOut]]:
    """Return the results of all tasks, some at a time."""
    if threads == 1:
        return [work(task) for task in tasks]
    with ThreadPoolExecutor(min(threads, len(tasks))) as pool:
        return list(pool.map(work, tasks))


class Scale(NamedTuple):
    """Units of a comparison.

    ``family`` is that of the units of the table, ``featureless`` the mean deviance of a tree
    without features, ``weight`` that of the held-out rows, ``price`` that of a size.
    """

    family: LeafFamily
    weight: FloatArray
    featureless: float
    price: float

    @classmethod
    def of(
        cls,
        rows: NumberRows,
        family: LeafFamily,
        folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
        settings: NumberSettings,
    ) -> Scale:
        tested = np.concatenate([test for _, test in folds])
        part = rows.part(np.unique(tested))
        frame, y, weight = Frame.of(part, family), part.targets.values, part.targets.totals
        family = frame.family.scaled(frame.unit)
        scores = part.targets.offset + family.start(y, weight, part.targets.offset)
        featureless = float(np.average(family.deviance(y, scores), weights=weight))
        n_train = float(np.mean([rows.targets.totals[train].sum() for train, _ in folds]))
        price = SELECTIONS[settings.selection] * min(1.0, 1000.0 * frame.row_unit / n_train)
        return cls(family, rows.targets.totals[tested], max(featureless, 1e-300), price)

    def point(self, depth: int, strength: float, folds: list[HeldOut]) -> NumberPoint:
        """Return what a setting has reached."""
        costs = [self.family.deviance(fold.truth, fold.scores) for fold in folds]
        deviance = np.concatenate(costs) / self.featureless
        error = float(np.average(deviance, weights=self.weight))
        columns, coefficients, leaves = np.mean([fold.size for fold in folds], axis=0).tolist()
        price = self.price * (COLUMN_PRICE * columns + COEFFICIENT_PRICE * coefficients)
        return NumberPoint(
            depth, strength, error, float(np.std(deviance)) / np.sqrt(len(deviance)), columns,
            coefficients, leaves, error + price,
        )  # fmt: skip


def depths_of(settings: NumberSettings, n_rows: int) -> list[int]:
    """Return the depths that are compared."""
    if settings.depth is not None:
        return [settings.depth]
    most = max(depth for depth, least in enumerate(ROWS_OF_DEPTH) if n_rows >= least)
    if settings.max_leaves is not None:
        most = min(most, int(np.ceil(np.log2(max(settings.max_leaves, 1)))))
    return list(range(most + 1))


def folds_of(
    rows: NumberRows, places: NDArray[np.intp], settings: NumberSettings, seed: int
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return positions of distinct rows to train and to test on.

    Folds by number are drawn within strata of the target; of many rows only some take part.
    """
    given = settings.folds
    if given is not None and not isinstance(given, int):
        pairs = ((np.unique(places[a]), np.unique(places[b])) for a, b in given)
        return [(a[a >= 0], b[b >= 0]) for a, b in pairs]
    some = drawn(rows, COMPARED_ROWS, seed)
    n_folds = min(given or (3 if len(some) >= FEWER_FOLDS else 5), len(some))
    if n_folds < 2:
        raise ValueError("a cross-validation needs at least two distinct rows.")
    generator = np.random.default_rng([seed, n_folds])
    order = some[np.argsort(rows.targets.values[some], kind="stable")]
    fold = np.concatenate([generator.permutation(n_folds) for _ in range(0, len(order), n_folds)])
    fold = fold[: len(order)]
    return [(np.sort(order[fold != k]), np.sort(order[fold == k])) for k in range(n_folds)]


class _Fold:
    """The rows of a fold: to train on, with starts, and held out."""

    def __init__(
        self,
        rows: NumberRows,
        family: LeafFamily,
        fold: tuple[NDArray[np.intp], NDArray[np.intp]],
        settings: NumberSettings,
        depth: int,
        seed: list[int],
    ) -> None:
        train, test = (rows.part(part) for part in fold)
        self.frame, self.settings = Frame.of(train, family), settings
        self.problem = self.frame.problem(train)
        self.lines, self.targets = self.frame.lines(test.X), self.frame.targets(test.targets)
        self.starts = Starts(self.problem, depth, np.random.default_rng(seed))

    def judged(
        self, depth: int, strengths: tuple[float, ...], check: Callable[[], None]
    ) -> dict[tuple[int, float], HeldOut]:
        """Return the walk of each strength on the held-out rows."""
        path = elimination_path(self.starts, depth, limits_of(self.settings), check)
        known: dict[int, HeldOut] = {}
        found = {}
        for strength in strengths:
            point = best_point(path, strength)
            if id(point) not in known:
                known[id(point)] = self._judged(point)
            found[depth, strength] = known[id(point)]
        return found

    def _judged(self, point: PathPoint) -> HeldOut:
        problem, frame = self.problem, self.frame
        walk = walk_of(problem, point.tree, self.settings.min_leaf_rows)
        scores, leaves = walk.scores(self.lines)
        scores = frame.level + frame.unit * (scores + self.targets.offset)
        predicted = frame.family.prediction(scores)
        truth = frame.level + frame.unit * self.targets.values
        relative = (truth - predicted) / np.maximum(frame.unit * walk.scale, 1e-300)[leaves]
        return HeldOut(predicted, relative, truth, scores, walk.size(problem))
