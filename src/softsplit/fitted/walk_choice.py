"""Choose the cut points and leaf classes of a walk (walk.py) on training rows.

A soft tree predicts by a mixture over all leaves; its gates are half-open at z_t = 0. With u_ik the
value of predicting class k for training row i (the probability of k in the mixture, or what it
saves under a cost matrix), cut points d_t and leaf classes k_l are chosen to maximise

    sum_i w_i u_i,k(leaf of row i)

by coordinate ascent: with everything else fixed, the best cut of one question is found exactly from
cumulative sums along its sorted scores, and a leaf takes the class of the rows that arrive there
(least expected cost under a cost matrix). Starting from d = 0, a cut moves only if the sum rises.
Leaf classes start as those of the rows that arrive, and, where they differ, also as those of the
leaves of the mixture; the larger sum is kept.

Shapes: scores (n_branches, n_rows), votes and gains (n_classes, n_rows).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.walk import ALIKE, SWEEPS, Arriving, arrivals
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Topology, TreeParameters
from softsplit.tree.routing import leaf_probabilities, split_scores


class Cut(NamedTuple):
    """A cut point of sorted scores: rows above ``high`` go left, those below ``low`` right."""

    low: float
    high: float
    gain: float

    def nearest(self, wanted: float) -> float:
        """The point of the gap that is closest to ``wanted``, away from its ends."""
        if np.isinf(self.low) and np.isinf(self.high):
            return wanted
        if np.isinf(self.low) or np.isinf(self.high):
            end, side = (self.high, -1.0) if np.isinf(self.low) else (self.low, 1.0)
            return wanted if (wanted - end) * side > 0 else end + side * max(abs(end), 1.0) * 1e-3
        inset = 0.25 * (self.high - self.low)
        return min(max(wanted, self.low + inset), self.high - inset)


def best_cut(
    scores: FloatArray, gains: FloatArray, wanted: float, order: NDArray[np.intp] | None = None
) -> Cut:
    """The cut of ``scores`` that maximises the sum of ``gains`` of the rows above it.

    Of equal ones it is the gap nearest to ``wanted``. ``order`` are the rows from the highest score
    down, if they are known.
    """
    order = np.argsort(-scores, kind="stable") if order is None else order
    falling = np.concatenate([[np.inf], scores[order], [-np.inf]])
    totals = np.concatenate([[0.0], np.cumsum(gains[order])])
    alike = ALIKE * (falling[1] - falling[-2]) if len(order) else 0.0
    apart = np.flatnonzero(falling[:-1] - falling[1:] > alike)
    high, low, totals = falling[apart], falling[apart + 1], totals[apart]
    slack = 1e-9 * max(float(np.abs(gains).sum()), 1e-300)
    best = np.flatnonzero(totals >= totals.max() - slack)
    nearest = best[np.argmin(np.maximum(low[best] - wanted, wanted - high[best]).clip(min=0.0))]
    return Cut(float(low[nearest]), float(high[nearest]), float(totals[nearest]))


@dataclass(frozen=True)
class Chosen:
    """Cut points d_t in units of scores, and the class of every leaf."""

    cuts: FloatArray
    classes: NDArray[np.intp]

    def leaves(self, scores: FloatArray) -> NDArray[np.intp]:
        """The leaf of each row with ``scores`` (n_branches, n_rows)."""
        return arrivals(scores > self.cuts[:, None])

    def predicted(self, scores: FloatArray) -> NDArray[np.intp]:
        """Position of the class of each row."""
        return self.classes[self.leaves(scores)]


class FixedParts(NamedTuple):
    """What a walk is to keep of questions and leaves; NaN, or -1 for classes, where it is free.

    Attributes
    ----------
    coefficients : array of shape (n_branches, n_features)
    thresholds : array of shape (n_branches,)
    centres, cuts : arrays of shape (n_branches,)
        Of the questions with a threshold: the centre of the gate in the units of the sum, and the
        threshold in units of scores.
    ranked : array of bool, shape (n_branches,)
        Whether those questions speak of ranks.
    classes : array of int, shape (n_leaves,)
        Those of leaves that are kept, with their shares.
    """

    coefficients: FloatArray
    thresholds: FloatArray
    centres: FloatArray
    cuts: FloatArray
    ranked: NDArray[np.bool_]
    classes: NDArray[np.intp]

    def kept(self, classes: NDArray[np.intp]) -> NDArray[np.intp]:
        """The classes of all leaves, those that are kept in their places."""
        return np.where(self.classes >= 0, self.classes, classes)


def choose_walk(
    scores: FloatArray,
    votes: FloatArray,
    gains: FloatArray,
    leaf_votes: FloatArray,
    fixed: FixedParts | None = None,
) -> Chosen:
    """Choose cuts and leaf classes on training rows.

    1. Start from the cuts of the mixture, d = 0, and sort the rows of each question by score.
    2. Coordinate ascent: the best cut of one question after the other, then the classes of leaves,
       until nothing moves.
    3. Once more from the classes of the mixture's votes; the better of both is taken.

    Parameters
    ----------
    scores : array of shape (n_branches, n_rows)
    votes : array of shape (n_classes, n_rows)
        w_i u_ik: weighted value of predicting each class, by the mixture.
    gains : array of shape (n_classes, n_rows)
        What decides the classes of leaves, usually by the true class of the row: a leaf takes the
        class with the largest sum.
    leaf_votes : array of shape (n_classes, n_leaves)
        Votes of the leaves of the mixture, for leaves at which no row arrives.
    fixed : FixedParts, optional
    """
    n_branches, n_rows = scores.shape
    # 1. Start. Branches that look at no feature decide nothing about single rows.
    asking = [t for t in range(n_branches) if np.any(scores[t] != scores[t, :1])]
    first_cuts = np.zeros(n_branches)
    if fixed is not None:
        given = ~np.isnan(fixed.thresholds)
        first_cuts[given] = fixed.cuts[given]
        asking = [t for t in asking if not given[t]]
    orders = {t: np.argsort(-scores[t], kind="stable") for t in asking}
    unit = votes.max(axis=0).sum() / max(n_rows, 1)
    prior = 1e-6 * unit * leaf_votes / max(float(leaf_votes.max()), 1e-300)
    start = scores > first_cuts[:, None]

    def classes_at(holds: NDArray[np.bool_]) -> NDArray[np.intp]:
        at = arrivals(holds)
        total = [np.bincount(at, gain, n_branches + 1) for gain in gains]
        classes: NDArray[np.intp] = np.argmax(np.array(total) + prior, axis=0)
        return classes if fixed is None else fixed.kept(classes)

    # 2. Coordinate ascent.
    def ascend(classes: NDArray[np.intp]) -> tuple[float, Chosen]:
        """Coordinate ascent from d = 0 and these classes; the sum that it reaches."""
        cuts, holds = first_cuts.copy(), start.copy()
        for _ in range(SWEEPS):
            before, moved = classes, False
            ends = classes_below(holds, classes)  # branches below t are asked after t
            arrived = np.ones((n_branches, n_rows), dtype=bool)
            for t in range(n_branches):
                # Rows that arrive at t, by falling score.
                if t:
                    parent, is_left = (t - 1) // 2, t % 2 == 1
                    np.logical_and(arrived[parent], holds[parent] == is_left, out=arrived[t])
                if t not in orders:
                    continue
                rows = orders[t][arrived[t][orders[t]]]
                if not len(rows):
                    continue
                # What going left instead of right is worth for each of them.
                left, right = ends[2 * t + 1, rows], ends[2 * t + 2, rows]
                change = votes[left, rows] - votes[right, rows]
                if not np.any(change):
                    continue
                ordered = np.arange(len(rows))
                cut = best_cut(scores[t, rows], change, 0.0, ordered)
                # A cut is moved only if it gains more than rounding errors.
                if cut.gain > change[holds[t, rows]].sum() + 1e-9 * np.abs(change).sum():
                    cuts[t] = cut.nearest(0.0)
                    holds[t] = scores[t] > cuts[t]
                    moved = True
            classes = classes_at(holds)
            if not moved and np.array_equal(before, classes):
                break
        worth = float(votes[classes[arrivals(holds)], np.arange(n_rows)].sum())
        return worth, Chosen(cuts, classes)

    first = classes_at(start)
    total, chosen = ascend(first)
    # 3. Under costs the rows on both sides of d = 0 may ask for one class, and no cut would move.
    own: NDArray[np.intp] = np.argmax(leaf_votes, axis=0)
    own = own if fixed is None else fixed.kept(own)
    if not np.array_equal(own, first):
        other, choice = ascend(own)
        chosen = choice if other > total + 1e-9 * abs(total) else chosen
    return chosen


def reached(holds: NDArray[np.bool_], branch: int) -> NDArray[np.bool_]:
    """Which rows arrive at a branch."""
    kept = np.ones(holds.shape[1], dtype=bool)
    topology = Topology.with_branches(len(holds))
    for step in topology.ancestors(branch):
        kept &= holds[step.branch] == step.goes_left
    return kept


def classes_below(holds: NDArray[np.bool_], classes: NDArray[np.intp]) -> NDArray[np.intp]:
    """The class at which each row ends from each node on, (n_nodes, n_rows)."""
    n_branches, n_rows = holds.shape
    ends = np.empty((2 * n_branches + 1, n_rows), dtype=np.intp)
    ends[n_branches:] = classes[:, None]
    for t in range(n_branches - 1, -1, -1):
        ends[t] = np.where(holds[t], ends[2 * t + 1], ends[2 * t + 2])
    return ends


def chosen_walk(
    tree: TreeParameters,
    steepness: float,
    rows: Arriving,
    gains: FloatArray,
    *,
    constrained: bool = False,
    fixed: FixedParts | None = None,
    scores: FloatArray | None = None,
) -> Chosen:
    """Choose cuts and leaf classes of a tree on training rows; arguments as of ``fit_walk``.

    ``scores`` are the split scores of the rows, if they are known.
    """
    scores = split_scores(tree, rows.features) if scores is None else scores
    leaf_votes = gains.T @ tree.leaf_values
    mixed = np.argmax(leaf_votes @ leaf_probabilities(scores, steepness), axis=0)
    agreement = np.zeros((len(leaf_votes), len(mixed)))
    agreement[mixed, np.arange(len(mixed))] = rows.weights
    worth = agreement if constrained else gains[rows.labels].T * rows.weights
    return choose_walk(scores, agreement, worth, leaf_votes, fixed)
