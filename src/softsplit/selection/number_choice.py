"""Depth and strength of a tree for numbers, chosen by the walks of folds.

1. In each fold a path of a depth, and on it the tree of each strength (``_Fold.judged``).
2. The error of a setting over all held-out rows, plus prices of its size (``Scale.judged``).

Targets under a log link, counts and times, often say little beside their noise. For them

- the error is that of the share of the effects, at most 1, which fits held-out rows best: weak
  effects are too large in a fit, though their order is right (van Houwelingen and le Cessie 1990);
- prices near that of Akaike are compared, and a stronger price or a deeper tree must be better than
  the best tree of these by a standard error of the difference: else noise chooses, which on few
  rows prefers no columns at all. So it is for any target of fewer than LOW_ROWS rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.solvers.base import Budget
from softsplit.solvers.expected_deviance.frame import Frame, NumberRows
from softsplit.solvers.expected_deviance.path import (
    RemovalPoint,
    TreeLimits,
    best_point,
    elimination_path,
)
from softsplit.solvers.expected_deviance.starts import Starts
from softsplit.solvers.expected_deviance.walk import walk_of
from softsplit.support.arrays import FloatArray
from softsplit.tree.leaf_families import LeafFamily

SELECTIONS = {"sparse": 3.0, "balanced": 1.0, "best": 0.0}
"""Price of sizes in the choice, in units of the usual one."""

COLUMN_PRICE, COEFFICIENT_PRICE = 0.0025, 0.0005
"""Part of the deviance of a tree without features that a column, or a coefficient, must explain."""

STRENGTHS = tuple(0.7 * 1.45**k for k in range(11))
"""Prices of a coefficient that are compared, in units of log-likelihood."""

WEAK_STRENGTHS = (0.16, 0.23, 0.33, 0.48)
"""Further ones under a log link. A variable with one slope costs five times as much, so that 0.2
is the information criterion of Akaike."""

LOW_ROWS, LOW_STRENGTHS, LOW_ROUNDS = 200, (0.05, 0.1, 0.2, 0.35, 0.5), 3
"""Fewer rows than this have further prices, as with their strong ridge many small slopes may be
best, and are cut into folds so many times, as one error has much noise."""

USUAL_STRENGTH = 0.002
"""Of informative rows: a price up to this many times their number, and at least 0.25, is no
stronger than the prices of columns ask for."""

ROWS_OF_DEPTH, ROWS_OF_RATES = (0, 0, 120, 400), (0, 60, 120, 400)
"""Fewest informative rows for which trees of a depth are compared by default; under a log link."""

SHARE_STEPS = 8
"""Newton steps to the share of the effects that fits held-out rows best."""

COMPARED_ROWS = 3_000
"""Most rows of a cross-validation."""

FEWER_FOLDS = 700
"""Rows from which on three folds are enough."""


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
    mixture : bool
        Whether the mean over the leaves is trained and judged, not the walk; for squared errors.
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
    mixture: bool = False


@dataclass(frozen=True)
class NumberPoint:
    """A setting that was compared: cross-validated error of its walks and their mean sizes.

    ``error`` is the mean deviance in units of the deviance of a tree without features,
    ``criterion`` the error with the prices of columns and coefficients, and of its noise beside the
    usual tree; ``share`` is the part of the effects that is kept.
    """

    depth: int
    strength: float
    error: float
    error_se: float
    columns: float
    coefficients: float
    leaves: float
    criterion: float
    share: float


def usual_price(n_rows: float) -> float:
    """Half the logarithm of the number of rows: the Bayesian information criterion."""
    return 0.5 * float(np.log(max(n_rows, 2.0)))


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


class Choice(NamedTuple):
    """Settings that were compared, and what the folds of the best one predict of their rows."""

    points: tuple[NumberPoint, ...]
    chosen: int
    held_out: FloatArray  # of distinct rows, and a last entry of NaN
    relative: FloatArray

    @property
    def best(self) -> NumberPoint:
        return self.points[self.chosen]

    @classmethod
    def of(
        cls,
        points: list[NumberPoint],
        folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
        results: list[dict[tuple[int, float], HeldOut]],
        family: LeafFamily,
        n_rows: int,
    ) -> Choice:
        """Return the choice of the least criterion."""
        chosen = min(range(len(points)), key=lambda k: points[k].criterion)
        held_out, relative = np.full((2, n_rows + 1), np.nan)
        for (_, test), result in zip(folds, results, strict=True):
            best = result[points[chosen].depth, points[chosen].strength]
            scores = best.constant + points[chosen].share * best.effects
            held_out[test] = family.prediction(scores)
            relative[test] = (best.truth - held_out[test]) / best.spread
        return cls(tuple(points), chosen, held_out, relative)


class HeldOut(NamedTuple):
    """What a tree of a fold says of the rows that the fold holds out.

    ``truth`` are their targets, ``constant`` the scores of a tree without features and ``effects``
    what is added to these, in the units of the table, and ``spread`` the root mean squared
    residual of the training rows of the leaf; ``size`` are numbers of columns, coefficients and
    leaves.
    """

    truth: FloatArray
    constant: FloatArray
    effects: FloatArray
    spread: FloatArray
    size: tuple[int, int, int]


def compare(
    rows: NumberRows,
    places: NDArray[np.intp],
    family: LeafFamily,
    settings: NumberSettings,
    seed: int,
    budget: Budget,
) -> Choice | None:
    """Return the choice of depth and strength by the walks of folds.

    1. In each fold, a path of a depth, and the tree of each strength on it. After Ctrl-C or the
       end of the time the choice is among the depths whose folds are done; None without any.
    2. The error of each setting over all held-out rows, with the prices of its size.
    3. The next depth, unless two levels or more were no better than fewer.
    """
    folds = folds_of(rows, places, settings, seed)
    informative = min(family.informative(rows.targets.values[train]) for train, _ in folds)
    least = ROWS_OF_RATES if family.log_link else ROWS_OF_DEPTH
    depths = depths_of(settings, informative, least)
    strengths = strengths_of(settings, family, rows.n_rows)
    prepared = [
        _Fold(rows, family, fold, settings, max(depths), [seed, k]) for k, fold in enumerate(folds)
    ]
    scale = Scale.of(rows, family, folds, settings)
    usual, base = max(0.25, USUAL_STRENGTH * informative), None
    points: list[NumberPoint] = []
    results: list[dict[tuple[int, float], HeldOut]] = [{} for _ in folds]

    def judge(depth: int, k: int) -> None:
        results[k] |= prepared[k].judged(depth, strengths, budget)

    for depth in depths:
        # 1. Paths.
        with budget.interruptible():
            workers = min(settings.threads, len(folds))
            budget.in_threads(partial(judge, depth), range(len(folds)), workers)
        if not all((depth, strengths[-1]) in result for result in results):
            break
        # 2. Errors.
        lowest = min((point.criterion for point in points), default=np.inf)
        compared = [
            scale.judged(depth, strength, [result[depth, strength] for result in results])
            for strength in strengths
        ]
        if base is None and (family.log_link or rows.n_rows < LOW_ROWS):
            some = [judged for judged in compared if judged.point.strength <= usual]
            base = min(some or compared, key=lambda judged: judged.point.criterion)
        points += [judged.beside(base, usual) for judged in compared]
        # 3. Deeper?
        if depth > 1 and min(point.criterion for point in points) >= lowest:
            break
    return Choice.of(points, folds, results, family, rows.n_rows) if points else None


class JudgedSetting(NamedTuple):
    """A setting that was compared, and its deviance of each held-out row."""

    point: NumberPoint
    deviance: FloatArray

    def beside(self, base: JudgedSetting | None, usual: float) -> NumberPoint:
        """Return the point with the noise of its difference from ``base``, unless its price is
        usual and it is as deep."""
        point = self.point
        if base is None or (point.depth == base.point.depth and point.strength <= usual):
            return point
        noise = float(np.std(self.deviance - base.deviance)) / np.sqrt(len(self.deviance))
        return replace(point, criterion=point.criterion + noise)


class Scale(NamedTuple):
    """Units of a comparison.

    ``family`` is that of the units of the table, ``featureless`` the mean deviance of a tree
    without features, ``weight`` that of the held-out rows, ``places`` which row each of these is,
    and ``price`` that of a size.
    """

    family: LeafFamily
    weight: FloatArray
    places: NDArray[np.intp]
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
        distinct, places = np.unique(tested, return_inverse=True)
        part = rows.part(distinct)
        frame, y, weight = Frame.of(part, family), part.targets.values, part.targets.totals
        family = frame.family.scaled(frame.unit)
        scores = part.targets.offset + family.start(y, weight, part.targets.offset)
        featureless = float(np.average(family.deviance(y, scores), weights=weight))
        n_train = float(np.mean([rows.targets.totals[train].sum() for train, _ in folds]))
        price = SELECTIONS[settings.selection] * min(1.0, 1000.0 * frame.row_unit / n_train)
        featureless = max(featureless, 1e-300)
        return cls(family, rows.targets.totals[tested], places, featureless, price)

    def judged(self, depth: int, strength: float, folds: list[HeldOut]) -> JudgedSetting:
        """Return what a setting has reached."""
        truth, constant, effects = (
            np.concatenate([fold[part] for fold in folds]) for part in range(3)
        )
        share = self.share(truth, constant, effects)
        deviance = self.family.deviance(truth, constant + share * effects) / self.featureless
        error = float(np.average(deviance, weights=self.weight))
        of_rows = np.bincount(self.places, deviance) / np.bincount(self.places)
        columns, coefficients, leaves = np.mean([fold.size for fold in folds], axis=0).tolist()
        price = self.price * (COLUMN_PRICE * columns + COEFFICIENT_PRICE * coefficients)
        point = NumberPoint(
            depth, strength, error, float(np.std(of_rows)) / np.sqrt(len(of_rows)), columns,
            coefficients, leaves, error + price, share,
        )  # fmt: skip
        return JudgedSetting(point, of_rows)

    def share(self, truth: FloatArray, constant: FloatArray, effects: FloatArray) -> float:
        """Return the share of effects on the log of a mean that fits rows best; else 1."""
        share = 1.0
        for _ in range(SHARE_STEPS if self.family.log_link else 0):
            terms = self.family.terms(truth, constant + share * effects)
            bend = float(self.weight @ (terms.curvature * effects**2))
            if bend <= 0.0:  # no effects
                break
            share -= float(self.weight @ (terms.slope * effects)) / bend
            share = min(max(share, 0.0), 1.0)
        return share


def strengths_of(settings: NumberSettings, family: LeafFamily, n_rows: int) -> tuple[float, ...]:
    """Return the prices of a coefficient that are compared."""
    if settings.strength is not None:
        return (settings.strength,)
    if family.log_link:
        return WEAK_STRENGTHS + STRENGTHS
    return LOW_STRENGTHS + STRENGTHS if n_rows < LOW_ROWS else STRENGTHS


def depths_of(
    settings: NumberSettings, n_rows: float, rows_of_depth: tuple[int, ...] = ROWS_OF_DEPTH
) -> list[int]:
    """Return the depths that are compared."""
    if settings.depth is not None:
        return [settings.depth]
    most = max(depth for depth, least in enumerate(rows_of_depth) if n_rows >= least)
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
    order, folds = some[np.argsort(rows.targets.values[some], kind="stable")], []
    for _ in range(LOW_ROUNDS if len(some) < LOW_ROWS else 1):
        strata = range(0, len(order), n_folds)
        fold = np.concatenate([generator.permutation(n_folds) for _ in strata])[: len(order)]
        folds += [(np.sort(order[fold != k]), np.sort(order[fold == k])) for k in range(n_folds)]
    return folds


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
        self.problem = self.frame.problem(train, mixture=settings.mixture)
        self.lines, self.targets = self.frame.lines(test.X), self.frame.targets(test.targets)
        self.seed = seed

    @cached_property
    def starts(self) -> Starts:
        constant = self.settings.leaf_terms == 0
        return Starts(self.problem, np.random.default_rng(self.seed), constant)

    def judged(
        self, depth: int, strengths: tuple[float, ...], budget: Budget
    ) -> dict[tuple[int, float], HeldOut]:
        """Return the walk of each strength on the held-out rows; nothing after the budget."""
        path = elimination_path(self.starts, depth, limits_of(self.settings), budget)
        if budget.exhausted:
            return {}
        known: dict[int, HeldOut] = {}
        judged = {}
        for strength in strengths:
            point = best_point(path, strength)
            if id(point) not in known:
                known[id(point)] = self._judged(point)
            judged[depth, strength] = known[id(point)]
        return judged

    def _judged(self, point: RemovalPoint) -> HeldOut:
        problem, frame = self.problem, self.frame
        walk = walk_of(problem, point.tree, self.settings.min_leaf_rows)
        scores, leaves = walk.scores(self.lines)
        if problem.mixture:
            scores = walk.mixture(self.lines)
        constant = frame.level + frame.unit * (problem.start + self.targets.offset)
        truth = frame.level + frame.unit * self.targets.values
        spread = np.maximum(frame.unit * walk.scale, 1e-300)[leaves]
        effects = frame.unit * (scores - problem.start)
        return HeldOut(truth, constant, effects, spread, walk.size(problem))
