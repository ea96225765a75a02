"""The walk through a tree: yes or no at every question, then the class of the leaf.

Question t holds, and the walk goes left, where

    sum_j c_tj x_j > b_t            ("<" where ``upwards[t]`` is false)

x in original units and c, b the decimal numbers that are printed, so that a person who follows the
printed tree arrives where ``predict`` does. A sum that equals b_t does not satisfy the question,
also if floating point misses equality by rounding: differences up to ``tie`` times
|b_t| + sum_j |c_tj x_j| count as zero. Under the quantile scaling a question on several features
speaks of ranks instead (``ranked``).

**Choosing the questions.** A soft tree predicts by a mixture over all leaves; its gates are
half-open at z_t = 0. With u_ik the value of predicting class k for training row i (the probability
of k in the mixture, or what it saves under a cost matrix), cut points d_t and leaf classes k_l are
chosen to maximise

    sum_i w_i u_i,k(leaf of row i)

by coordinate ascent: with everything else fixed, the best cut of one question is found exactly from
cumulative sums along its sorted scores, and a leaf takes the class of the rows that arrive there
(least expected cost under a cost matrix). Starting from d = 0, a cut moves only if the sum rises.
Leaf classes start as those of the rows that arrive, and, where they differ, also as those of the
leaves of the mixture; the larger sum is kept.

**Rounding.** Coefficients are divided by that of the weightiest feature and rounded to the fewest
digits, and the cut to the shortest decimal, with which at most ``changed`` of the training rows get
another class. The gate of a question is rounded with it: with the same sum s = sum_j c_tj x_j

    p_t = 1 / (1 + exp(-(s - centre_t) / width_t))       (the other way round for "<")

and so are the class probabilities of the leaves, so that probabilities can be computed from the
print-out as well. Questions on ranks keep the gates of training.

Shapes: scores (n_branches, n_rows), votes and gains (n_classes, n_rows), counts (n_classes,
n_leaves).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Topology, TreeParameters
from softsplit.tree.routing import leaf_probabilities, split_scores
from softsplit.tree.scaling import LinearScaling, Scaling


@dataclass(frozen=True)
class WalkOptions:
    """How a walk is chosen and rounded."""

    sweeps: int = 5
    """Rounds of coordinate ascent; most trees stand still after two."""

    digits: tuple[int, ...] = (2, 3, 4, 5, 6)
    """Significant digits of coefficients that are tried, the fewest first."""

    changed: float = 1e-3
    """Share of the training rows that rounding may give another class: none of a few hundred."""

    loose: float = 0.01
    """A threshold moves by at most this part of the spread of the sums (their interquartile range
    / 1.35) when rounded: beyond, new rows near it would be treated otherwise than chosen."""

    tie: float = 1e-12
    """Relative difference from the threshold that counts as equal: sums of a few decimal numbers
    are off by 1e-15."""

    width_digits: int = 3
    """Significant digits of the width of a gate."""

    centre_step: float = 0.02
    """The centre of a gate is rounded by at most this part of its width: half a per cent of
    probability."""

    share_digits: int = 3
    """Significant digits of the smaller class probabilities of a leaf; the largest is the rest."""

    few: int = 100
    """Up to so many rows the columns of a question are read together."""

    large: float = 1e250
    """Sums of larger values are made in other units, so that they do not overflow."""

    rows_at_once: int = 65_536
    """Rows whose leaves are counted together."""

    level: float = 1e-9
    """Slopes of a monotone variable that are smaller than this part of a coefficient are none."""

    alike: float = 1e-9
    """Scores that differ by less, relative to their range, belong to one value."""


OPTIONS = WalkOptions()


class Arriving(NamedTuple):
    """Training rows in scaled units, (n_features, n_rows), with their classes and weights."""

    features: FloatArray
    labels: NDArray[np.int64]
    weights: FloatArray


@dataclass(frozen=True)
class Walk:
    """The printed questions of a tree, and the training rows that arrive in its leaves.

    Attributes
    ----------
    coefficients : array of shape (n_branches, n_features)
        c; that of the weightiest feature of a question is 1. All zero: nothing is asked.
    thresholds : array of shape (n_branches,)
        b.
    upwards : array of bool, shape (n_branches,)
        Whether the question reads ">".
    ranked : array of bool, shape (n_branches,)
        Whether the question speaks of ranks (scaled units of the quantile scaling).
    counts : array of shape (n_classes, n_leaves)
        Training rows of each class that arrive, by weight; NaN where they are not known.
    classes : array of int, shape (n_leaves,)
        Position of the class that is predicted in each leaf.
    """

    coefficients: FloatArray
    thresholds: FloatArray
    upwards: NDArray[np.bool_]
    ranked: NDArray[np.bool_]
    counts: FloatArray
    classes: NDArray[np.intp]

    @property
    def topology(self) -> Topology:
        return Topology.with_branches(len(self.thresholds))

    @property
    def shares(self) -> FloatArray:
        """Class shares of the training rows that arrive in each leaf; NaN where none does."""
        with np.errstate(invalid="ignore"):
            return self.counts / self.counts.sum(axis=0)

    @property
    def right(self) -> FloatArray:
        """Training rows of each class that get it, by weight, (n_classes,)."""
        own = self.classes == np.arange(len(self.counts))[:, None]
        found: FloatArray = np.where(own, self.counts, 0.0).sum(axis=1)
        return found

    @property
    def recall(self) -> FloatArray:
        """Share of the training rows of each class that get it, (n_classes,); 1 of no rows."""
        found, totals = self.right, self.counts.sum(axis=1)
        return np.divide(found, totals, out=np.ones(len(totals)), where=totals > 0)

    def holds(
        self, branch: int, X: FloatArray, some: NDArray[np.intp] | None = None
    ) -> NDArray[np.bool_]:
        """Whether question ``branch`` holds for each row, in the units of the question.

        ``some`` are the positions of the rows that are asked; all if they are not given. Of the
        columns only those of the question are read.
        """
        used = np.flatnonzero(self.coefficients[branch])
        count = len(X) if some is None else len(some)
        if count <= OPTIONS.few:  # one call each takes less than one for each column
            block = X[:, used] if some is None else X[some[:, None], used]
            columns, largest = list(block.T), float(np.abs(block).max(initial=0.0))
        else:
            columns = [X[:, j] if some is None else X[some, j] for j in used]
            largest = max((float(np.abs(column).max()) for column in columns), default=0.0)
        # Both sides of an inequality times a power of two: sums of the largest floats are finite.
        unit = 2.0**-100 if largest > OPTIONS.large else 1.0
        threshold = unit * self.thresholds[branch]
        total, size = np.zeros(count), np.full(count, abs(threshold))
        for j, column in zip(used, columns, strict=True):
            term = unit * self.coefficients[branch, j] * column.astype(np.float64, copy=False)
            total += term
            size += np.abs(term)
        above = total - threshold
        above = above if self.upwards[branch] else -above
        return np.asarray(above > OPTIONS.tie * size)

    def __getstate__(self) -> dict[str, Any]:
        """What was worked out is left out of pickles and copies."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def _plain(self) -> list[tuple[list[tuple[int, float]], float, bool]]:
        """The terms, the threshold and the direction of each question as plain numbers."""
        return [
            (
                [(int(j), float(c[j])) for j in np.flatnonzero(c)],
                float(self.thresholds[t]),
                bool(self.upwards[t]),
            )
            for t, c in enumerate(self.coefficients)
        ]

    def _leaf_of_one(self, x: FloatArray) -> int | None:
        """The leaf of a single row, by the operations of ``holds`` on plain numbers, which take a
        tenth of the time; None where the row needs another unit."""
        node, questions = 0, self._plain
        while node < len(questions):
            terms, threshold, upwards = questions[node]
            total, size = 0.0, abs(threshold)
            for j, coefficient in terms:
                value = float(x[j])
                if abs(value) > OPTIONS.large:
                    return None
                term = coefficient * value
                total += term
                size += abs(term)
            above = total - threshold if upwards else threshold - total
            node = 2 * node + (1 if above > OPTIONS.tie * size else 2)
        return node - len(questions)

    def leaves(self, X: FloatArray, scaling: Scaling) -> NDArray[np.intp]:
        """The leaf of each row, counted from the left; ``X`` in original units."""
        if len(X) == 1 and not np.any(self.ranked):
            leaf = self._leaf_of_one(X[0])
            if leaf is not None:
                return np.array([leaf], dtype=np.intp)
        topology = self.topology
        node = np.zeros(len(X), dtype=np.intp)
        for t in range(topology.n_branches):
            there = np.flatnonzero(node == t)
            if not len(there):
                continue
            if self.ranked[t]:
                rows = X[there] if len(there) < len(X) else X
                holds = self.holds(t, scaling.transform(rows, self.coefficients[t] != 0))
            else:
                holds = self.holds(t, X, there if len(there) < len(X) else None)
            node[there] = np.where(holds, 2 * t + 1, 2 * t + 2)
        return node - topology.n_branches

    def counted(
        self,
        rows: Arriving,
        scaling: Scaling,
        gains: FloatArray | None,
        factors: FloatArray | None = None,
    ) -> Walk:
        """The walk with the training rows that arrive in its leaves, and the classes they decide.

        A leaf predicts what is worth most for its rows by ``gains``, as of ``fit_walk``; one at
        which no row arrives keeps its class, and so do all if there are no gains. ``factors`` are
        those of class weights in the weights of the rows: they decide, but are no rows.
        """
        used = np.flatnonzero(np.any(self.coefficients, axis=0))
        used = used if len(used) else np.array([0])
        few, scales = (
            replace(self, coefficients=self.coefficients[:, used]),
            scaling.of_columns(used),
        )
        counts = np.zeros(self.counts.shape)
        for begin in range(0, len(rows.labels), OPTIONS.rows_at_once):
            part = slice(begin, begin + OPTIONS.rows_at_once)
            scaled = rows.features[used, part].astype(float, copy=False)
            X = np.array([scales.restored(i, values) for i, values in enumerate(scaled)]).T
            X = X.reshape(scaled.shape[1], len(used))
            np.add.at(counts, (rows.labels[part], few.leaves(X, scales)), rows.weights[part])
        classes = self.classes
        if gains is not None:
            worth = gains.T @ counts
            own = worth[classes, np.arange(len(classes))]
            kept = own >= worth.max(axis=0) * (1.0 - 1e-12)
            classes = np.where(kept, classes, np.argmax(worth, axis=0))
        counts = counts if factors is None else counts / factors[:, None]
        return replace(self, counts=counts, classes=classes)

    def reordered(
        self, branches: Sequence[int], flips: NDArray[np.bool_], leaves: Sequence[int]
    ) -> Walk:
        """The walk with branches and leaves in another order; flipped questions swap sides."""
        kept = list(branches)
        return replace(
            self,
            coefficients=self.coefficients[kept],
            thresholds=self.thresholds[kept],
            upwards=self.upwards[kept] ^ flips,
            ranked=self.ranked[kept],
            counts=self.counts[:, list(leaves)],
            classes=self.classes[list(leaves)],
        )


# --- choosing -------------------------------------------------------------------------------------


def arrivals(holds: NDArray[np.bool_], node: int = 0) -> NDArray[np.intp]:
    """The leaf of each row, from answers (n_branches, n_rows) and the node where all start."""
    n_branches, n_rows = holds.shape
    at = np.full(n_rows, node, dtype=np.intp)
    columns = np.arange(n_rows)
    top = node
    while top < n_branches:  # all rows are on one level
        at = 2 * at + 2 - holds[at, columns]
        top = 2 * top + 1
    return at - n_branches


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
    alike = OPTIONS.alike * (falling[1] - falling[-2]) if len(order) else 0.0
    apart = np.flatnonzero(falling[:-1] - falling[1:] > alike)
    high, low, totals = falling[apart], falling[apart + 1], totals[apart]
    slack = 1e-9 * max(float(np.abs(gains).sum()), 1e-300)
    best = np.flatnonzero(totals >= totals.max() - slack)
    found = best[np.argmin(np.maximum(low[best] - wanted, wanted - high[best]).clip(min=0.0))]
    return Cut(float(low[found]), float(high[found]), float(totals[found]))


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
        found: NDArray[np.intp] = self.classes[self.leaves(scores)]
        return found


class Held(NamedTuple):
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
    held: Held | None = None,
) -> Chosen:
    """Choose cuts and leaf classes on training rows.

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
    held : Held, optional
    """
    n_branches, n_rows = scores.shape
    # Branches that look at no feature decide nothing about single rows.
    asking = [t for t in range(n_branches) if np.ptp(scores[t]) > 0] if n_rows else []
    first_cuts = np.zeros(n_branches)
    if held is not None:
        fixed = ~np.isnan(held.thresholds)
        first_cuts[fixed] = held.cuts[fixed]
        asking = [t for t in asking if not fixed[t]]
    orders = {t: np.argsort(-scores[t], kind="stable") for t in asking}
    unit = votes.max(axis=0).sum() / max(n_rows, 1)
    prior = 1e-6 * unit * leaf_votes / max(float(leaf_votes.max()), 1e-300)
    start = scores > first_cuts[:, None]

    def classes_at(holds: NDArray[np.bool_]) -> NDArray[np.intp]:
        at = arrivals(holds)
        total = [np.bincount(at, gain, n_branches + 1) for gain in gains]
        found: NDArray[np.intp] = np.argmax(np.array(total) + prior, axis=0)
        return found if held is None else held.kept(found)

    def ascend(classes: NDArray[np.intp]) -> tuple[float, Chosen]:
        """Coordinate ascent from d = 0 and these classes; the sum that it reaches."""
        cuts, holds = first_cuts.copy(), start.copy()
        for _ in range(OPTIONS.sweeps):
            before, moved = classes, False
            for t in asking:
                rows = orders[t][_reached(holds, t)[orders[t]]]
                if not len(rows):
                    continue
                some = holds[:, rows]
                left, right = (classes[arrivals(some, 2 * t + side)] for side in (1, 2))
                change = votes[left, rows] - votes[right, rows]
                if not np.any(change):
                    continue
                ordered = np.arange(len(rows))
                cut = best_cut(scores[t, rows], change, 0.0, ordered)
                if cut.gain > change[some[t]].sum() + 1e-9 * np.abs(change).sum():
                    cuts[t] = cut.nearest(0.0)
                    holds[t] = scores[t] > cuts[t]
                    moved = True
            classes = classes_at(holds)
            if not moved and np.array_equal(before, classes):
                break
        found = Chosen(cuts, classes)
        return float(votes[classes[arrivals(holds)], np.arange(n_rows)].sum()), found

    first = classes_at(start)
    total, chosen = ascend(first)
    # Under costs the rows on both sides of d = 0 may ask for one class, and no cut would move.
    own: NDArray[np.intp] = np.argmax(leaf_votes, axis=0)
    own = own if held is None else held.kept(own)
    if not np.array_equal(own, first):
        other, found = ascend(own)
        chosen = found if other > total + 1e-9 * abs(total) else chosen
    return chosen


def _reached(holds: NDArray[np.bool_], branch: int) -> NDArray[np.bool_]:
    """Which rows arrive at a branch."""
    found = np.ones(holds.shape[1], dtype=bool)
    topology = Topology.with_branches(len(holds))
    for step in topology.ancestors(branch):
        found &= holds[step.branch] == step.goes_left
    return found


# --- rounding -------------------------------------------------------------------------------------


class Question(NamedTuple):
    """One rounded question: coefficients of its features, threshold, and the gate on their sum."""

    coefficients: FloatArray
    bound: float
    centre: float
    width: float


def fit_walk(
    tree: TreeParameters,
    steepness: float,
    scaling: Scaling,
    rows: Arriving,
    gains: FloatArray,
    zero_threshold: float = 0.0,
    *,
    constrained: bool = False,
    monotone: Sequence[NDArray[np.intp]] = (),
    held: Held | None = None,
) -> tuple[TreeParameters, Walk]:
    """Choose the walk of a tree on training rows; return the rounded tree and the walk.

    The walk has no counts yet (``Walk.counted``).

    Parameters
    ----------
    tree : TreeParameters
        In scaled units; leaves hold class probabilities.
    gains : array of shape (n_classes, n_classes)
        What predicting k (column) for class y (row) is worth; the identity for equal costs.
    zero_threshold : float
        Weights up to this size are zero.
    constrained : bool
        Whether the tree was trained under class rates. The mixture meets them, so that leaves take
        the class that it predicts for most of their rows, and its gates are not rounded.
    monotone : sequence of int arrays
        Features of each monotone variable, its value and its hinges: rounding keeps the sign of
        all slopes.
    held : Held, optional
        What stays as it is.
    """
    chosen = chosen_walk(tree, steepness, rows, gains, constrained=constrained, held=held)
    scores = split_scores(tree, rows.features)
    made, walk = _rounded(
        tree, steepness, scaling, rows, scores, chosen, zero_threshold, monotone, held
    )
    return (tree if constrained else made), walk


def chosen_walk(
    tree: TreeParameters,
    steepness: float,
    rows: Arriving,
    gains: FloatArray,
    *,
    constrained: bool = False,
    held: Held | None = None,
    scores: FloatArray | None = None,
) -> Chosen:
    """Choose cuts and leaf classes of a tree on training rows; arguments as of ``fit_walk``.

    ``scores`` are the split scores of the rows, if they are known.
    """
    scores = split_scores(tree, rows.features) if scores is None else scores
    leaf_votes = gains.T @ tree.leaf_classes
    mixed = np.argmax(leaf_votes @ leaf_probabilities(scores, steepness), axis=0)
    agreement = np.zeros((len(leaf_votes), len(mixed)))
    agreement[mixed, np.arange(len(mixed))] = rows.weights
    worth = agreement if constrained else gains[rows.labels].T * rows.weights
    return choose_walk(scores, agreement, worth, leaf_votes, held)


def _rounded(
    tree: TreeParameters,
    steepness: float,
    scaling: Scaling,
    rows: Arriving,
    scores: FloatArray,
    chosen: Chosen,
    zero_threshold: float,
    monotone: Sequence[NDArray[np.intp]] = (),
    held: Held | None = None,
) -> tuple[TreeParameters, Walk]:
    """Round the questions of a tree one after the other, from the root down."""
    weights, thresholds = tree.weights.copy(), tree.thresholds.copy()
    coef, intercept = scaling.splits(tree)
    n_branches, n_features = coef.shape
    printed, bounds = np.zeros(coef.shape), np.zeros(n_branches)
    upwards, ranked = np.ones(n_branches, dtype=bool), np.zeros(n_branches, dtype=bool)
    holds = scores > chosen.cuts[:, None]
    wanted = chosen.classes[arrivals(holds)]
    for t in range(n_branches):
        size = np.where(coef[t] != 0, np.abs(tree.weights[:, t]), 0.0)
        order = np.argsort(-size, kind="stable")
        used = order[size[order] > zero_threshold]
        if not len(used):
            bounds[t] = -1.0 if intercept[t] > chosen.cuts[t] else 1.0
            continue
        fixed = np.full(len(used), np.nan) if held is None else held.coefficients[t, used]
        first = 0 if np.all(np.isnan(fixed)) else int(np.argmax(~np.isnan(fixed)))
        unit = float(coef[t, used[first]])
        unit = unit if np.isnan(fixed[first]) else unit / float(fixed[first])
        exact = coef[t, used] / unit
        centre, bound = -intercept[t] / unit, (chosen.cuts[t] - intercept[t]) / unit
        upwards[t], ranked[t] = unit > 0, not scaling.linear
        values = rows.features[used]
        if held is not None and not np.isnan(held.thresholds[t]):
            ranked[t], bound = held.ranked[t], held.thresholds[t]
        elif ranked[t] and len(used) == 1 and 0 < bound < 1:
            ranked[t], bound = False, scaling.to_original(int(used[0]), bound)
        if not ranked[t]:
            values = np.array([scaling.restored(int(j), rows.features[j]) for j in used])
        at = np.flatnonzero(_reached(holds, t))
        sides = [
            chosen.classes[arrivals(holds[:, at], 2 * t + side)] == wanted[at] for side in (1, 2)
        ]
        change = (sides[0].astype(float) - sides[1]) * rows.weights[at]
        slack = OPTIONS.changed * float(rows.weights.sum())
        sign, width = (1.0, -1.0)[unit < 0], 1.0 / (steepness * abs(unit))
        curved = [np.flatnonzero(np.isin(used, own)) for own in monotone]
        curved = [own[np.argsort(used[own])] for own in curved if len(own) > 1]
        question = _question(
            exact, bound, centre, width, sign, values, at, change, slack, fixed, curved
        )
        if held is not None and not np.isnan(held.thresholds[t]):
            question = question._replace(bound=held.thresholds[t], centre=held.centres[t])
        printed[t, used], bounds[t] = question.coefficients, question.bound
        above = sign * (question.coefficients @ values - question.bound)
        holds[t] = above > OPTIONS.tie * abs(question.bound)
        if isinstance(scaling, LinearScaling):
            slope = sign / (steepness * question.width)
            weights[:, t] = 0.0
            weights[used, t] = slope * question.coefficients * scaling.span[used] * n_features
            offset = float(question.coefficients @ scaling.low[used])
            thresholds[t] = slope * (question.centre - offset)
    shares = rounded_shares(tree.leaf_classes)
    if held is not None:
        shares = np.where(held.classes >= 0, tree.leaf_classes, shares)
    walk = Walk(printed, bounds, upwards, ranked, np.zeros(shares.shape), chosen.classes)
    return TreeParameters(weights, thresholds, shares), walk


def _question(
    exact: FloatArray,
    bound: float,
    centre: float,
    width: float,
    sign: float,
    values: FloatArray,
    at: NDArray[np.intp],
    change: FloatArray,
    slack: float,
    fixed: FloatArray,
    curved: Sequence[NDArray[np.intp]] = (),
) -> Question:
    """Round one question: the fewest digits that change the class of few rows.

    ``at`` are the rows that arrive, ``change`` what going left instead of right is worth for each,
    ``fixed`` coefficients that are not rounded, NaN for the others, ``curved`` the places of the
    value and the hinges of monotone variables.
    """
    sums = exact @ values
    best = np.maximum(change, 0.0).sum()
    for digits in OPTIONS.digits:
        coefficients = np.array([significant(c, digits) for c in exact])
        coefficients = _of_one_sign(coefficients, exact, curved)
        coefficients = np.where(np.isnan(fixed), coefficients, fixed)
        rounded = coefficients @ values
        # Where coefficients were rounded, sums have moved, and so have threshold and centre.
        near = values[:, np.argsort(np.abs(sums - bound))[: max(10, len(sums) // 10)]]
        moved = float(np.mean((coefficients - exact) @ near))
        cut = best_cut(sign * rounded[at], change, sign * (bound + moved))
        if best - cut.gain <= slack:
            break
    point = cut.nearest(sign * (bound + moved))
    low, high = np.quantile(rounded, [0.25, 0.75])
    loose = OPTIONS.loose * max(float(high - low) / 1.35, 1e-3 * float(np.ptp(rounded)))
    found = sign * shortest(point, max(cut.low, point - loose), min(cut.high, point + loose))
    step = OPTIONS.centre_step * width
    middle = centre + moved
    return Question(
        coefficients,
        found + 0.0,
        shortest(middle, middle - step, middle + step),
        significant(width, OPTIONS.width_digits),
    )


def _of_one_sign(
    coefficients: FloatArray, exact: FloatArray, columns: Sequence[NDArray[np.intp]]
) -> FloatArray:
    """Rounded coefficients of a question whose slopes keep the sign of the exact ones.

    ``columns`` are places of the value and the hinges of each monotone variable among the
    coefficients. A hinge after which the slope would have another sign makes it level instead.
    """
    found = coefficients.copy()
    for own in columns:
        sign = np.sign(np.sum(np.cumsum(exact[own])))
        total = 0.0
        for place in own:
            if sign * (total + found[place]) < OPTIONS.level * abs(found[place]):
                found[place] = float(f"{-total:.12g}") + 0.0
            total += found[place]
    return found


def significant(value: float, digits: int) -> float:
    """A number rounded to so many significant digits."""
    return float(f"{value:.{digits - 1}e}")


def shortest(near: float, low: float, high: float) -> float:
    """The shortest decimal number in [low, high), the closest to ``near`` of that length.

    ``low`` itself may be taken: a sum that equals the threshold does not exceed it.
    """
    largest = max(abs(low), abs(high), abs(near))
    if not np.isfinite(largest) or largest == 0.0:
        return near if np.isfinite(near) else 0.0
    exponent = int(np.floor(np.log10(largest))) + 1
    edge = OPTIONS.tie * largest
    for power in range(exponent, exponent - 17, -1):
        found = float(f"{round(near / 10.0**power)}e{power}")
        if low - edge <= found < high and (found != 0.0 or power < exponent - 2):
            return found
    return near


def rounded_shares(leaf_classes: FloatArray) -> FloatArray:
    """Class probabilities of leaves: the smaller ones rounded, the largest is the rest."""
    shares = np.array(
        [[significant(c, OPTIONS.share_digits) for c in column] for column in leaf_classes.T]
    ).T
    largest = np.argmax(leaf_classes, axis=0)
    columns = np.arange(shares.shape[1])
    shares[largest, columns] = 0.0
    shares[largest, columns] = np.round(1.0 - shares.sum(axis=0), 15)
    return shares
