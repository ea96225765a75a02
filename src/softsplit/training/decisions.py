"""The walk of a tree under requirements on rates: cuts and leaf classes that meet them.

A tree meets its requirements by expected rates; its decisions are those of the walk. With s_ti the
sum of question t for row i, cuts b_t and leaf classes k_l are chosen to maximise

    sum_i w_i p_i,k(leaf of row i)  -  price x largest violation by the decisions

with p_ik the probability of class k (or what predicting k saves), by coordinate ascent: for each
question in turn all leaf classes and a grid of cuts along its sorted sums are compared, where the
weights of cells in leaves come from cumulative sums. The price rises from round to round; the best
walk that meets the requirements is kept, and if there is none, the one nearest to it. Under
monotone effects only leaf classes in their order are compared.

Where no walk of a tree holds the requirements, or only at a loss of accuracy, ``decided`` of run.py
trains the tree again under tighter bounds (``MARGINS``).

Decisions are counted where the rows are; cuts and leaf classes are searched on those in this
process, which are a sample where the others are on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from softsplit.engines.base import summed
from softsplit.engines.samples import Samples
from softsplit.fitted.walk import Arriving, Walk, arrivals
from softsplit.fitted.walk_rounding import shortest
from softsplit.problem.leaves import RATE_SLACK
from softsplit.problem.rates import RateLimits
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import leaf_probabilities, split_scores
from softsplit.tree.scaling import Scaling

PRICES = (0.3, 1.0, 3.0, 10.0, 1e3)
"""Price of a unit of violation, in shares of all rows; the last one hardly lets any through."""

SWEEPS = 6
"""Rounds over all questions at one price; most walks stand still after three."""

CUTS = 300
"""Cuts of a question that are compared, evenly along its rows."""

LABELLINGS = 64
"""Up to so many ways to put classes on leaves all are compared; else one leaf changes."""

MARGINS = (0.25, 0.5, 0.75)
"""Parts of a bound by which training tightens it where the decisions of the tree miss it or are met
by a walk that gives up much: the rates of decisions differ more than expected ones."""

SINGLE_MARGIN = 0.1
"""What a bound of a single rate is tightened by at most."""

ALIKE = 0.995
"""A walk that is right on this part of the rows on which the mixture is gives up little."""

LEAST_WEIGHT = 1e-3
"""Weight of leaves at which no rows arrive, as a part of all rows."""

SEARCHES = 3
"""Times that a walk is searched on a sample of rows that are elsewhere: the error of a rate on
100,000 rows is 0.2 points, and the second walk mostly holds on all rows."""


def decided_cells(walk: Walk, limits: RateLimits, scaling: Scaling, n_classes: int) -> FloatArray:
    """Weight of each cell for which the walk predicts each class, (n_cells, n_classes)."""
    empty = replace(walk, counts=np.zeros((len(limits.labels), len(walk.classes))))
    counts = summed(limits.rows, partial(arriving, empty, scaling))
    return counts @ np.eye(n_classes)[walk.classes]


def arriving(walk: Walk, scaling: Scaling, samples: Samples) -> FloatArray:
    """Weight of each group of rows that arrives in each leaf, (n_groups, n_leaves)."""
    return walk.arriving(Arriving(samples.features, samples.labels, samples.weights), scaling)


def decided_by_mixture(
    tree: TreeParameters, steepness: float, limits: RateLimits, gains: FloatArray
) -> FloatArray:
    """The same where the class is that of the mixture."""
    votes = gains.T @ tree.leaf_values
    return summed(limits.rows, partial(_mixed, tree, steepness, votes))


def _mixed(
    tree: TreeParameters, steepness: float, votes: FloatArray, samples: Samples
) -> FloatArray:
    """Weight of each cell for which each class has the most votes, (n_cells, n_classes)."""
    shares = leaf_probabilities(split_scores(tree, samples.features), steepness)
    decided = np.zeros((samples.n_groups, len(votes)))
    np.add.at(decided, (samples.labels, np.argmax(votes @ shares, axis=0)), samples.weights)
    return decided


def worst(limits: RateLimits, decided: FloatArray) -> float:
    """Largest violation of the limits by decisions, beyond one row of the smallest group."""
    return float(np.max(limits.shortfalls(decided) - limits.line_grains, initial=0.0))


def leaves_within(
    limits: RateLimits, tree: TreeParameters, steepness: float
) -> TreeParameters | None:
    """Return a tree whose expected rates are within the limits, by the least change of its leaves.

    Changes are squared and weighed by the rows of a leaf. None if no leaves are within.
    """
    mass, start = limits.mass(tree, steepness), tree.leaf_values.ravel()
    lines = limits.on_leaves(mass).reshape(len(limits), -1)
    if np.all(lines @ start >= limits.least - RATE_SLACK):
        return tree
    weights = np.tile(mass.sum(axis=0) / mass.sum(), len(tree.leaf_values)) + LEAST_WEIGHT
    sums = np.tile(np.eye(tree.leaf_values.shape[1]), len(tree.leaf_values))
    end = minimize(
        lambda x: (weights @ (x - start) ** 2, 2.0 * weights * (x - start)), start, jac=True,
        method="SLSQP", bounds=[(0.0, 1.0)] * len(start),
        constraints=[
            {"type": "ineq", "fun": lambda x: lines @ x - limits.least, "jac": lambda x: lines},
            {"type": "eq", "fun": lambda x: sums @ x - 1.0, "jac": lambda x: sums},
        ],
    )  # fmt: skip
    leaves = np.clip(end.x, 0.0, 1.0).reshape(tree.leaf_values.shape)
    leaves /= leaves.sum(axis=0)
    within = np.all(lines @ leaves.ravel() >= limits.least - 10 * RATE_SLACK)
    return replace(tree, leaf_values=leaves) if within else None


def rated_walk(
    walk: Walk,
    tree: TreeParameters,
    steepness: float,
    scaling: Scaling,
    limits: RateLimits,
    gains: FloatArray,
    allowed: Callable[[NDArray[np.intp]], bool],
) -> Walk:
    """Return the walk that ``RatedWalk`` finds, judged on all rows.

    Where it has searched on a sample, what its decisions miss on all rows is added to the margins
    of the bounds, and it searches again; the walk is kept that comes nearest.
    """

    def search(tighter: RateLimits) -> Walk:
        return RatedWalk(walk, tree, steepness, scaling, tighter, gains, allowed).search()

    best, least, margin = search(limits), np.inf, 0.0
    if limits.rows.sample().n_rows >= limits.rows.n_rows:
        return best
    candidate = best
    for left in reversed(range(SEARCHES)):
        missed = worst(limits, decided_cells(candidate, limits, scaling, len(gains)))
        if missed < least:
            best, least = candidate, missed
        if missed == 0.0 or not left:
            break
        margin += missed
        candidate = search(limits.with_margin(margin))
    return best


class RatedWalk:
    """Search for cuts and leaf classes of ``walk`` that meet the limits on the training rows.

    ``allowed`` says which classes of all leaves may be taken; those of ``walk`` may.
    """

    def __init__(
        self,
        walk: Walk,
        tree: TreeParameters,
        steepness: float,
        scaling: Scaling,
        limits: RateLimits,
        gains: FloatArray,
        allowed: Callable[[NDArray[np.intp]], bool] = lambda classes: True,
    ) -> None:
        self.walk, self.limits, self.allowed = walk, limits, allowed
        samples = limits.rows.sample()
        self.cells, self.weights = samples.labels, samples.weights
        self.n_classes, self.n_leaves = len(gains), len(walk.classes)
        shares = leaf_probabilities(split_scores(tree, samples.features), steepness)
        self.votes = (gains.T @ tree.leaf_values @ shares * self.weights).T
        self.votes /= self.weights.sum()
        self.sums = np.zeros((len(walk.thresholds), len(self.cells)))
        for t, coefficients in enumerate(walk.coefficients):
            for j in np.flatnonzero(coefficients):
                values = samples.features[j].astype(float, copy=False)
                if not walk.ranked[t]:
                    values = scaling.restored(int(j), values)
                self.sums[t] += coefficients[j] * values
        self.signs = np.where(walk.upwards, 1.0, -1.0)
        self.sums *= self.signs[:, None]
        self.asking = [t for t in range(len(self.sums)) if np.ptp(self.sums[t]) > 0]
        self.best: tuple[bool, float, float] = (False, -np.inf, -np.inf)
        self.best_walk = walk

    def search(self) -> Walk:
        """Return the best walk that was found."""
        bounds = self.signs * self.walk.thresholds
        classes = self.walk.classes.copy()
        for price in PRICES:
            reached = -np.inf
            for _ in range(SWEEPS):
                before = reached
                for t in self.asking:
                    reached, bounds, classes = self._improved(t, bounds, classes, price)
                if reached <= before + 1e-12:
                    break
        return self.best_walk

    def _improved(
        self, t: int, bounds: FloatArray, classes: NDArray[np.intp], price: float
    ) -> tuple[float, FloatArray, NDArray[np.intp]]:
        """Return the best score over the cuts of question ``t`` and leaf classes, with both.

        1. The rows that get to the question, and the leaf of each for either answer.
        2. For every cut the weight of each cell in each leaf, and what classes gain there.
        3. For every cut and labelling of the leaves the largest violation and the gain.
        """
        # 1. answers
        holds = self.sums > bounds[:, None]
        at, node = np.ones(self.sums.shape[1], dtype=bool), t
        while node:
            above = (node - 1) // 2
            at &= holds[above] == (node % 2 == 1)
            node = above
        sides = []
        for goes_left in (True, False):
            holds[t] = goes_left
            sides.append(arrivals(holds))
        # 2. sums by cuts: rows with sums above cut c go left, those of bins c, c + 1, ... counted
        # from above; where none does, all rows go right
        cuts = self._cuts(self.sums[t, at], bounds[t])
        bins = np.searchsorted(-cuts, -self.sums[t], side="right")
        shape = (len(cuts) + 1, len(self.limits.labels), self.n_leaves)
        mass, worth = np.zeros(shape), np.zeros((len(cuts) + 1, self.n_leaves, self.n_classes))
        for side, sign in zip(sides, (1.0, -1.0), strict=True):
            np.add.at(mass, (bins[at], self.cells[at], side[at]), sign * self.weights[at])
            np.add.at(worth, (bins[at], side[at]), sign * self.votes[at])
        mass, worth = np.cumsum(mass, axis=0)[:-1], np.cumsum(worth, axis=0)[:-1]
        all_right, worth_right = np.zeros(shape[1:]), np.zeros(worth.shape[1:])
        np.add.at(all_right, (self.cells, sides[1]), self.weights)
        np.add.at(worth_right, sides[1], self.votes)
        mass, worth = mass + all_right, worth + worth_right
        # 3. violation and gain
        labellings = self._labellings(classes)
        chosen = np.eye(self.n_classes)[labellings]
        by_leaf = np.einsum("qgk,cgl->cqlk", self.limits.coefficients, mass, optimize=True)
        short = self.limits.least - np.einsum("cqlk,slk->csq", by_leaf, chosen, optimize=True)
        violated = np.maximum((short - self.limits.line_grains).max(axis=2), 0.0)
        value = np.einsum("clk,slk->cs", worth, chosen, optimize=True)
        self._keep(t, bounds, cuts, labellings, violated, value)
        score = value - price * violated
        cut, labelling = np.unravel_index(int(np.argmax(score)), score.shape)
        moved = bounds.copy()
        moved[t] = cuts[cut]
        return float(score[cut, labelling]), moved, labellings[labelling]

    def _cuts(self, sums: FloatArray, current: float) -> FloatArray:
        """Cuts to compare, from the highest down: the current one and decimals between sums."""
        falling = np.unique(sums)[::-1]
        places = np.unique(np.linspace(0, len(falling) - 1, CUTS).astype(int))
        places = places[places < len(falling) - 1]
        between = [
            shortest(0.5 * (high + low), low + 0.01 * (high - low), high)
            for high, low in zip(falling[places], falling[places + 1], strict=True)
        ]
        return np.unique([*between, current])[::-1]

    def _labellings(self, classes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Classes of all leaves, one line for each way that is compared."""
        if self.n_classes**self.n_leaves <= LABELLINGS:
            lines = [
                np.array(line) for line in product(range(self.n_classes), repeat=self.n_leaves)
            ]
        else:
            lines = [classes]
            for leaf, k in product(range(self.n_leaves), range(self.n_classes)):
                if k != classes[leaf]:
                    lines.append(np.where(np.arange(self.n_leaves) == leaf, k, classes))
        return np.array([line for line in lines if self.allowed(line)], dtype=np.intp)

    def _keep(
        self,
        t: int,
        bounds: FloatArray,
        cuts: FloatArray,
        labellings: NDArray[np.intp],
        violated: FloatArray,
        value: FloatArray,
    ) -> None:
        """Remember the best walk so far: one that meets the limits, or comes nearest to them."""
        met = violated == 0.0
        if np.any(met):
            place = np.unravel_index(int(np.argmax(np.where(met, value, -np.inf))), value.shape)
            rank = (True, float(value[place]), 0.0)
        else:
            place = np.unravel_index(int(np.argmin(violated)), value.shape)
            rank = (False, -float(violated[place]), float(value[place]))
        if rank > self.best:
            thresholds = bounds.copy()
            thresholds[t] = cuts[place[0]]
            self.best = rank
            self.best_walk = replace(
                self.walk,
                thresholds=self.signs * thresholds + 0.0,
                classes=labellings[place[1]],
            )
