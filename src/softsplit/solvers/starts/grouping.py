"""Greedy starts: each branch separates two groups of classes by a ridge logistic regression.

Groups come from a plan (plans.py). A class that goes both ways is divided by two of its rows, drawn
at random: each of its other rows goes with the nearer one. So several hyperplanes may cut one
class, which a regression between other classes hardly does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.starts.logistic import fitted_split
from softsplit.solvers.starts.plans import (
    BOTH,
    LEFT,
    RIGHT,
    draw_plan,
    draw_plans,
    group_distances,
    sides_of,
)
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.tree.parameters import TreeParameters

RIDGES = np.array([1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
"""One is drawn for each split: from blunt ones near the class means to sharp ones that fit rows."""


ANY = -1
"""In place of a class: rows of all of them."""


class StartRows(NamedTuple):
    """The rows that greedy starts are fitted to: features (n_features, n), and for each row its
    label, weight and price: the cost of its worst error, relative to the largest of any class."""

    features: FloatArray
    labels: NDArray[np.int64]
    weights: FloatArray
    prices: FloatArray


def grouped_trees(
    problem: TrainingProblem, rng: np.random.Generator, count: int = 1
) -> list[TreeParameters]:
    """Return up to ``count`` greedy trees of different structures."""
    greedy, plans = GreedyTrees(problem), draw_plans(problem, rng, count)
    trees = (greedy.planted(greedy.leaves(plan.leaf_labels), rng) for plan in plans)
    return [TreeParameters.from_splits(*tree) for tree in trees]


class GreedyTrees:
    """Random greedy trees of one problem, as pairs of splits and leaf classes."""

    def __init__(self, problem: TrainingProblem) -> None:
        self.problem = problem
        self._chosen = _choose_rows(problem)
        self._apart = group_distances(problem)
        self._classes = np.eye(problem.n_groups)

    def fresh(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw a tree of any structure; what the problem holds fixed keeps its value."""
        plan = draw_plan(self.problem.topology, self._apart, rng)
        return self._pinned(*self.planted(self.leaves(plan.leaf_labels), rng))

    def like(
        self, leaf_values: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Draw a tree with the same class on each leaf; of a mixed leaf the largest, first one."""
        return self._pinned(*self.planted(leaf_values.copy(), rng))

    def leaves(self, labels: tuple[int, ...]) -> FloatArray:
        """Return the leaf classes of ``labels``, (n_groups, n_leaves)."""
        return np.ascontiguousarray(self._classes[:, labels])

    def planted(
        self, leaf_values: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Fit splits that lead to these leaves, whose classes are rounded to one each, in place.

        Rows get random weights (a Bayesian bootstrap, Rubin 1981), and the ridge of every split is
        drawn too.
        """
        problem, chosen = self.problem, self._chosen
        n_branches, n_groups = problem.topology.n_branches, problem.n_groups
        splits: FloatArray = plant(
            chosen,
            leaf_values,
            rng.standard_exponential((n_branches, len(chosen.labels))),
            RIDGES[rng.integers(len(RIDGES), size=n_branches)],
            rng.uniform(-1, 1, (n_branches, problem.n_features)),
            rng.random(n_branches),
            rng.random((n_branches, n_groups, 2)),
            problem.steepness,
        )
        return problem.bounds.project_splits(splits), leaf_values

    def _pinned(self, splits: FloatArray, leaf_values: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.problem.anchor is None:
            return splits, leaf_values
        tree = self.problem.pin(TreeParameters.from_splits(splits, leaf_values))
        return tree.splits, tree.leaf_values


def _choose_rows(problem: TrainingProblem) -> StartRows:
    samples = problem.rows.group_samples
    worst = problem.loss.prediction_costs(problem.n_groups).max(axis=1)
    prices = (worst / max(worst.max(), 1e-300))[samples.labels]
    return StartRows(samples.features, samples.labels, samples.weights, prices)


@compiled
def plant(chosen, leaf_values, shares, ridges, directions, lots, pairs, steepness):  # type: ignore[no-untyped-def]
    """Round ``leaf_values`` to one class for each leaf; return ``fit_splits`` of their plan."""
    n_groups, n_leaves = leaf_values.shape
    labels = np.empty(n_leaves, dtype=np.int64)
    sides = np.empty((n_leaves - 1, n_groups), dtype=np.int64)
    for leaf in range(n_leaves):
        labels[leaf] = 0
        for k in range(1, n_groups):
            if leaf_values[k, leaf] > leaf_values[labels[leaf], leaf]:
                labels[leaf] = k
        for k in range(n_groups):
            leaf_values[k, leaf] = 1.0 if k == labels[leaf] else 0.0
    sides_of(labels, sides)
    return fit_splits(
        chosen.features, chosen.labels, chosen.weights, chosen.prices, sides, shares, ridges,
        directions, lots, pairs, steepness,
    )  # fmt: skip


@compiled
def fit_splits(  # type: ignore[no-untyped-def]
    features, labels, weights, prices, sides, shares, ridges, directions, lots, pairs, steepness
):
    """Fit a ridge logistic regression at every branch between the rows of its two sides.

    Both sides have the same total weight, but for what their errors cost (``prices``). A class that
    goes both ways is divided by ``pairs``, two random numbers for every branch and class, and below
    the branch its rows are where the hyperplane has sent them. Without rows on both sides the split
    is a given direction through one of the rows that arrive, by ``lots``. Returns the splits,
    (n_branches, n_features + 1).
    """
    n_branches, n_rows = shares.shape
    n_features = features.shape[0]
    splits = np.empty((n_branches, n_features + 1))
    node = np.zeros(n_rows, dtype=np.int64)
    weight, target = np.empty(n_rows), np.empty(n_rows)
    wanted = np.empty(n_rows, dtype=np.int64)
    for t in range(n_branches):
        # 1. The rows that arrive and the side that each should take.
        total, arrived = np.zeros(2), 0
        _assign_sides(features, labels, weights, node, t, sides[t], pairs[t], wanted)
        for i in range(n_rows):
            side = wanted[i]
            arrived += node[i] == t
            target[i] = 1.0 if side == LEFT else 0.0
            weight[i] = weights[i] * shares[t, i] if node[i] == t and side != BOTH else 0.0
            total[int(target[i])] += weight[i]
        # 2. The split: a regression, or a direction through a row.
        if total[0] > 0.0 and total[1] > 0.0:
            # both sides get half of the weight, times the price of their errors
            for i in range(n_rows):
                weight[i] *= 0.5 / total[int(target[i])] * prices[i]
            split = fitted_split(features, target, weight, ridges[t], steepness)
            for j in range(n_features + 1):
                splits[t, j] = split[j]
        else:
            row = _row_by_lot(node, labels, t, ANY, int(lots[t] * arrived))
            splits[t, n_features] = 0.0
            for j in range(n_features):
                splits[t, j] = directions[t, j]
                splits[t, n_features] += directions[t, j] * features[j, row] / n_features
            beyond = abs(splits[t, n_features])
            if beyond > 1.0:  # unscaled features: the same hyperplane, within the box
                for j in range(n_features + 1):
                    splits[t, j] /= beyond
        # 3. Rows go on below: by their class, or where the split sends them.
        for i in range(n_rows):
            if node[i] == t:
                side = sides[t, labels[i]]
                if side == BOTH:
                    score = -splits[t, n_features] * n_features
                    for j in range(n_features):
                        score += splits[t, j] * features[j, i]
                    side = LEFT if score > 0.0 else RIGHT
                node[i] = 2 * t + 1 + side
    return splits


@compiled
def _assign_sides(features, labels, weights, node, t, sides, pairs, wanted):  # type: ignore[no-untyped-def]
    """Write the side that each row should take at branch t to ``wanted``; BOTH where none is.

    Of the two rows that divide a class the left one is relatively nearer to the mean of what goes
    left. A class is not divided where it is alone, or has fewer than two rows.
    """
    n_features, n_rows = features.shape
    means, total = np.zeros((2, n_features)), np.zeros(2)
    for i in range(n_rows):
        wanted[i] = sides[labels[i]]
        if node[i] == t and wanted[i] != BOTH:
            total[wanted[i]] += weights[i]
            for j in range(n_features):
                means[wanted[i], j] += weights[i] * features[j, i]
    if total[LEFT] == 0.0 or total[RIGHT] == 0.0:
        return
    for k in range(len(pairs)):
        # 1. Only a class that goes both ways is divided.
        count = 0
        for i in range(n_rows):
            count += node[i] == t and labels[i] == k
        if sides[k] != BOTH or count < 2:
            continue
        # 2. Two of its rows, the one that is nearer to the left mean on the left.
        first = _row_by_lot(node, labels, t, k, int(pairs[k, 0] * count))
        second = _row_by_lot(node, labels, t, k, int(pairs[k, 1] * count))
        nearer = 0.0  # to the left mean is the first row, by so much
        for j in range(n_features):
            apart = means[LEFT, j] / total[LEFT] - means[RIGHT, j] / total[RIGHT]
            nearer += apart * (features[j, first] - features[j, second])
        left, right = (first, second) if nearer >= 0.0 else (second, first)
        # 3. Each row goes with the nearer of them.
        for i in range(n_rows):
            if node[i] == t and labels[i] == k:
                gap = 0.0
                for j in range(n_features):
                    to_left = features[j, i] - features[j, left]
                    to_right = features[j, i] - features[j, right]
                    gap += to_right * to_right - to_left * to_left
                wanted[i] = LEFT if gap > 0.0 else RIGHT


@compiled
def _row_by_lot(node, labels, t, k, lot):  # type: ignore[no-untyped-def]
    """Return the ``lot``-th row of class k, or of ANY, that arrives at branch t; 0 if none does."""
    for i in range(node.size):
        if node[i] == t and (k == ANY or labels[i] == k):
            if lot == 0:
                return i
            lot -= 1
    return 0
