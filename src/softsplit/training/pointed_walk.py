"""The walk of a tree in whole points, without questions and terms that decide nothing.

Points are features of weight 1, each of one question: sums of points decide alike in every order.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from softsplit.fitted.walk import TIE, Arriving, Walk, arrivals
from softsplit.fitted.walk_choice import classes_below, reached
from softsplit.fitted.walk_rounding import whole_walk
from softsplit.support.arrays import FloatArray
from softsplit.training.pointed_parts import PointedParts
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import gate_probabilities, node_reach, node_values

# A question whose smaller side has less than these parts of the rows that reach it, and of the rows
# of every class, divides hardly anybody.
LEAST_SIDE, LEAST_OF_CLASS = 0.01, 0.1


# A term goes whose removal changes the class of so few rows, and the likelihood by so small a part
# of that without features.
CHANGED, WORTH = 0.01, 0.005

# Of more terms several go at a time: each time the tree gets another walk.
MANY_TERMS = 24


def decisive_walk(
    parts: PointedParts, rows: Arriving, steepness: float, gains: FloatArray
) -> tuple[TreeParameters, Walk]:
    """Return the tree and its walk without questions that decide nothing, on the look-ups.

    1. The walk of the tree, with whole thresholds.
    2. The lowest question whose sides predict one class, or that divides hardly anybody; without
       one, or where it is the only question, the walk is complete.
    3. The question becomes the same for all rows: its leaves are mixed, or all go to one side.

    An only question is kept for its probabilities; see ``_dividing``.
    """
    tree = parts.parameters
    while True:
        # 1. the walk
        rounded, walk = whole_walk(tree, steepness, rows, gains)
        if parts.monotone is not None:
            walk = walk.counted(rows, parts.scaling, gains)
            rounded, walk = parts.in_order(rounded, walk, gains)
        # 2. a question that decides nothing
        dead = _undecided(walk, rows)
        if dead is None:
            return rounded, _dividing(walk, rows)
        # 3. the same for all rows
        branch, share = dead
        weights, thresholds = tree.weights.copy(), tree.thresholds.copy()
        weights[:, branch] = 0.0
        share = float(np.clip(share, 1e-9, 1.0 - 1e-9))
        thresholds[branch] = -np.log(share / (1.0 - share)) / steepness
        tree = TreeParameters(weights, thresholds, tree.leaf_values)


def shorter_tree(
    tree: TreeParameters, walk: Walk, rows: Arriving, steepness: float, most: float = np.inf
) -> TreeParameters | None:
    """The tree without the term that is missed least; None where every term decides something.

    In place of a term its mean in the rows is added. It decides nothing where fewer than
    ``CHANGED`` of the rows get another class, and the log-loss rises by less than ``WORTH`` of what
    it is where nothing is known. Of a tree of more than ``MANY_TERMS`` the term of each question
    goes that is missed least there, as long as the log-loss is at ``most`` this: many terms that
    are worth little by themselves are worth much together.

    1. Whether questions hold, the class on either side, and what the leaves give a row's label.
    2. Of a question: rows that get another class by another answer, and with gate p the
       probability of the label, V_root + (p' - p) reach (V_left - V_right), if it becomes p'.
    3. Of its terms: the sums without them; the term that is missed least.
    4. The tree without the terms that go.
    """
    total, labels = rows.weights.sum(), rows.labels
    worth = worth_of_terms(rows)
    # 1. all questions
    sums, holds = _sums(tree.weights.T, rows), _answers(walk, rows)
    ends = classes_below(holds, walk.classes)
    scores = sums * (tree.weights.max(axis=0) / tree.n_features)[:, None] - tree.thresholds[:, None]
    left, right = gate_probabilities(scores, steepness)
    reach, values = node_reach(left, right), node_values(left, right, tree.leaf_values[labels].T)
    means = rows.features @ rows.weights / total

    known, least = log_loss(rows, values[0]), list[tuple[float, int, int]]()
    many = np.count_nonzero(tree.weights) > MANY_TERMS
    worth = min(worth, most - known) if many else worth
    for t in np.flatnonzero(np.count_nonzero(tree.weights, axis=0) > 1).tolist():
        # 2. one question
        moving = reached(holds, t) & (ends[2 * t + 1] != ends[2 * t + 2])
        moves = rows.weights * moving * np.any(walk.coefficients[t])
        gain, lost = reach[t] * (values[2 * t + 1] - values[2 * t + 2]), {}
        for j in np.flatnonzero(tree.weights[:, t]).tolist():
            # 3. one term
            missed = rows.features[j] - means[j]
            if moves @ ((sums[t] - missed > walk.thresholds[t]) != holds[t]) >= CHANGED * total:
                continue
            weight = tree.weights[j, t] / tree.n_features
            moved = gate_probabilities(scores[t] - weight * missed, steepness)[0]
            lost[j] = log_loss(rows, values[0] + (moved - left[t]) * gain) - known
        least += sorted((value, j, t) for j, value in lost.items() if value < worth)[:1]
    # 4. the tree without them
    if not least:
        return None
    weights, thresholds = tree.weights.copy(), tree.thresholds.copy()
    for value, j, t in sorted(least)[: None if many else 1]:
        worth -= value
        if worth < 0.0:
            break
        thresholds[t] -= weights[j, t] * means[j] / tree.n_features
        weights[j, t] = 0.0
    return TreeParameters(weights, thresholds, tree.leaf_values)


def worth_of_terms(rows: Arriving) -> float:
    """``WORTH`` of the log-loss where nothing is known."""
    counts = np.bincount(rows.labels, rows.weights)
    return -WORTH * float(xlogy(counts, counts / rows.weights.sum()).sum())


def log_loss(rows: Arriving, likely: FloatArray) -> float:
    """The log-loss of rows, of whose classes the probabilities are given."""
    return -float(rows.weights @ np.log(np.maximum(likely, 1e-12)))


def _sums(used: FloatArray, rows: Arriving) -> FloatArray:
    """The points of each question, (n_branches, n_rows), ``used`` (n_branches, n_lookups) there."""
    return np.array([rows.features[line != 0].sum(axis=0) for line in used])


def _answers(walk: Walk, rows: Arriving) -> NDArray[np.bool_]:
    """Whether each question holds, (n_branches, n_rows); see ``Walk.holds``."""
    sums, thresholds = _sums(walk.coefficients, rows), walk.thresholds[:, None]
    sizes = np.array([np.abs(rows.features[line != 0]).sum(axis=0) for line in walk.coefficients])
    return np.asarray(sums - thresholds > TIE * (np.abs(thresholds) + sizes))


def _undecided(walk: Walk, rows: Arriving) -> tuple[int, float] | None:
    """The lowest question that decides nothing, and which share of rows is to go left there."""
    n_branches = len(walk.thresholds)
    asked = np.flatnonzero(np.any(walk.coefficients, axis=1))
    if len(asked) == 1:
        return None
    nodes = _node_rows(_answers(walk, rows), rows, len(walk.counts))
    sizes = nodes.sum(axis=1)
    for t in asked[::-1].tolist():
        left, right = sizes[2 * t + 1], sizes[2 * t + 2]
        leaves = list(walk.topology.leaves_below(t))
        arrived = [leaf for leaf in leaves if sizes[n_branches + leaf] > 0]
        smaller = nodes[2 * t + 1 + int(right < left)]
        of_classes = np.divide(smaller, nodes[0], out=np.zeros(len(smaller)), where=nodes[0] > 0)
        if min(left, right) <= LEAST_SIDE * (left + right) and of_classes.max() < LEAST_OF_CLASS:
            return t, float(left > right)
        if len(set(walk.classes[arrived].tolist())) == 1:
            return t, left / (left + right)
    return None


def _dividing(walk: Walk, rows: Arriving) -> Walk:
    """Return a walk whose only question has rows on both sides.

    Where one class is the most probable at all sums of points, any threshold decides alike: that
    whose sides tell most about the classes is kept (the cut of largest information gain, Quinlan
    1986).
    """
    asked = np.flatnonzero(np.any(walk.coefficients, axis=1))
    if len(asked) != 1:
        return walk
    sums = walk.coefficients[asked[0]] @ rows.features
    above = sums > walk.thresholds[asked[0]]
    if np.any(above) and not np.all(above):
        return walk
    totals = np.bincount(rows.labels, rows.weights, len(walk.counts))

    def likelihood(cut: float) -> float:
        part = np.bincount(rows.labels, rows.weights * (sums > cut), len(totals))
        sides = np.array([part, np.maximum(totals - part, 0.0)])
        sizes = np.maximum(sides.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        return float(xlogy(sides, sides / sizes).sum())

    cuts = np.unique(np.floor(sums))[:-1]
    if not len(cuts):
        return walk
    thresholds = walk.thresholds.copy()
    thresholds[asked[0]] = max(cuts.tolist(), key=likelihood)
    return replace(walk, thresholds=thresholds)


def _node_rows(holds: NDArray[np.bool_], rows: Arriving, n_classes: int) -> FloatArray:
    """Weight of the rows of each class that get to each node by answers, (n_nodes, n_classes)."""
    n_branches = len(holds)
    mass = np.zeros((2 * n_branches + 1, n_classes))
    np.add.at(mass, (n_branches + arrivals(holds), rows.labels), rows.weights)
    for t in range(n_branches - 1, -1, -1):
        mass[t] = mass[2 * t + 1] + mass[2 * t + 2]
    return mass
