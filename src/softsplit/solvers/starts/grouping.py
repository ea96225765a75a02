"""Greedy starts: part the classes at every branch and separate the two groups.

A *plan* says for every branch which classes go left, right or both ways, and so which class each
leaf ends with. Plans that differ only by swapping the two sides of a branch are one structure:
(a, b | a, c) and (c, a | b, a) are the same tree drawn differently. The structure a descent starts
from decides which basin it ends in, so rival starts are given different ones.

The splits of a plan are ridge logistic regressions, branch by branch. A class that goes both ways
is parted by two of its rows, drawn at random: each of its other rows goes with the nearer one. So
several hyperplanes may cut one class, which a regression between other classes hardly does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.starts.logistic import fitted_split
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.tree.parameters import Topology, TreeParameters

RIDGES = np.array([1e-2, 1e-3, 1e-4, 1e-5, 1e-6])
"""Drawn at random: from blunt splits that trust the mean to sharp ones that fit the rows."""

LEFT, RIGHT, BOTH = 0, 1, 2

DRAWS = 2
"""Plans of a structure already there that are drawn for each tree before one is done without."""

Distances = list[list[float]]


class Plan(NamedTuple):
    """Side of every class at every branch, (n_branches, n_classes), and class of every leaf."""

    sides: NDArray[np.int64]
    leaf_labels: tuple[int, ...]


class Chosen(NamedTuple):
    """The rows a greedy start looks at: features (n_features, n), and per row its label, weight
    and price, the cost of its worst error relative to that of the class with the worst."""

    features: FloatArray
    labels: NDArray[np.int64]
    weights: FloatArray
    prices: FloatArray


def grouped_trees(
    problem: TrainingProblem, rng: np.random.Generator, count: int = 1
) -> list[TreeParameters]:
    """Up to ``count`` greedy trees of different structures."""
    greedy, plans = GreedyTrees(problem), draw_plans(problem, rng, count)
    return [TreeParameters.from_splits(*greedy.fitted(plan, rng)) for plan in plans]


class GreedyTrees:
    """Greedy trees of one problem, as pairs of splits and leaf classes; each is drawn anew."""

    def __init__(self, problem: TrainingProblem) -> None:
        self.problem = problem
        self._chosen = _choose_rows(problem)
        self._apart = _distances(problem)

    def fresh(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """One of any structure; what the problem holds fixed is as it is."""
        plan = draw_plan(self.problem.topology, self._apart, rng)
        return self._pinned(*self.fitted(plan, rng))

    def like(
        self, leaf_classes: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """One with the classes on the same leaves."""
        plan = plan_of(tuple(np.argmax(leaf_classes, axis=0).tolist()), self.problem.n_classes)
        return self._pinned(*self.fitted(plan, rng))

    def fitted(self, plan: Plan, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Splits and leaves for a plan, other sensible splits every time.

        Rows get random weights (a Bayesian bootstrap), and the ridge of every split is drawn too.
        """
        problem, chosen = self.problem, self._chosen
        n_branches = problem.topology.n_branches
        splits: FloatArray = fit_splits(
            chosen.features,
            chosen.labels,
            chosen.weights,
            chosen.prices,
            plan.sides,
            rng.standard_exponential((n_branches, len(chosen.labels))),
            RIDGES[rng.integers(len(RIDGES), size=n_branches)],
            rng.uniform(-1, 1, (n_branches, problem.n_features)),
            rng.random(n_branches),
            rng.random((n_branches, problem.n_classes, 2)),
            problem.steepness,
        )
        leaf_classes = np.zeros((problem.n_classes, n_branches + 1))
        leaf_classes[plan.leaf_labels, range(n_branches + 1)] = 1.0
        return splits, leaf_classes

    def _pinned(
        self, splits: FloatArray, leaf_classes: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        if self.problem.anchor is None:
            return splits, leaf_classes
        tree = self.problem.pin(TreeParameters.from_splits(splits, leaf_classes))
        return tree.splits, tree.leaf_classes


def plan_of(leaf_labels: tuple[int, ...], n_classes: int) -> Plan:
    """The plan that leads to these leaves: a class goes wherever one of its leaves lies."""
    n_branches = len(leaf_labels) - 1
    below: list[set[int]] = [set() for _ in range(n_branches)] + [{k} for k in leaf_labels]
    sides = np.full((n_branches, n_classes), BOTH)
    for t in range(n_branches - 1, -1, -1):
        left, right = below[2 * t + 1], below[2 * t + 2]
        below[t] = left | right
        sides[t, sorted(left - right)] = LEFT
        sides[t, sorted(right - left)] = RIGHT
    return Plan(sides, leaf_labels)


def structure(labels: tuple[int, ...]) -> object:
    """The same for two leaf labellings exactly if mirroring branches turns one into the other."""
    if len(labels) == 1:
        return labels[0]
    half = len(labels) // 2
    sides = [structure(labels[:half]), structure(labels[half:])]
    return tuple(sorted(sides, key=repr))


def draw_plans(
    problem: TrainingProblem, rng: np.random.Generator, count: int, repeat: bool = False
) -> list[Plan]:
    """Up to ``count`` plans of different structures; ``repeat`` fills up with equal ones."""
    apart = _distances(problem)
    plans: list[Plan] = []
    spare: list[Plan] = []
    seen: set[object] = set()
    while len(plans) < count and len(spare) <= DRAWS * count:
        plan = draw_plan(problem.topology, apart, rng)
        key = structure(plan.leaf_labels)
        (spare if key in seen else plans).append(plan)
        seen.add(key)
    return plans + spare[: count - len(plans)] if repeat else plans


def draw_plan(topology: Topology, apart: Distances, rng: np.random.Generator) -> Plan:
    """Part the classes branch by branch, so that every class ends on a leaf."""
    n_classes, n_branches = len(apart), topology.n_branches
    sides = [[BOTH] * n_classes for _ in range(n_branches)]
    groups = [list(range(n_classes))]
    for t in range(n_branches):
        capacity = topology.n_leaves >> (t + 1).bit_length()
        left, right = _part(groups[t], capacity, apart, rng)
        for k in groups[t]:
            if k not in right:
                sides[t][k] = LEFT
            elif k not in left:
                sides[t][k] = RIGHT
        groups += [left, right]
    return Plan(np.array(sides), tuple(group[0] for group in groups[n_branches:]))


def _part(
    classes: list[int], capacity: int, apart: Distances, rng: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Two groups of at most ``capacity`` classes: by the nearest of two class means, or at random.

    A single class goes both ways; so may one more where there is room.
    """
    if len(classes) == 1:
        return classes, classes
    order = [classes[k] for k in rng.permutation(len(classes)).tolist()]
    if len(classes) == 2:
        left, right = order[:1], order[1:]
    else:
        first, last = order[0], order[-1]
        near = {k: apart[k][first] - apart[k][last] for k in order}
        if rng.random() < 1 / 3:
            near = dict(zip(order, rng.random(len(order)) - 0.5, strict=True))
        near[first], near[last] = -np.inf, np.inf
        smallest, largest = max(1, len(order) - capacity), min(capacity, len(order) - 1)
        size = min(max(sum(near[k] < 0 for k in order), smallest), largest)
        order.sort(key=lambda k: near[k])
        left, right = order[:size], order[size:]
    if capacity > 1 and rng.random() < 1 / 2:
        giver, taker = (left, right) if len(left) >= len(right) else (right, left)
        if len(taker) < capacity:
            taker.append(giver[rng.integers(len(giver))])
    return left, right


def _choose_rows(problem: TrainingProblem) -> Chosen:
    samples = problem.rows.few
    worst = problem.loss.call_costs(problem.n_classes).max(axis=1)
    prices = (worst / max(worst.max(), 1e-300))[samples.labels]
    return Chosen(samples.features, samples.labels, samples.weights, prices)


def _distances(problem: TrainingProblem) -> Distances:
    """Squared distances between the class means; lists, as they are looked at one by one."""
    means = problem.rows.few.class_means
    square = np.sum(means**2, axis=1)
    found: Distances = (square[:, None] + square - 2.0 * means @ means.T).tolist()
    return found


@compiled
def fit_splits(  # type: ignore[no-untyped-def]
    features, labels, weights, prices, sides, shares, ridges, directions, lots, pairs, steepness
):
    """A ridge logistic regression for every branch between the rows of its two sides.

    Both sides count the same, but for what their errors cost (``prices``). A class that goes both
    ways is parted by ``pairs``, two lots for every branch and class, and below the branch its rows
    are where the hyperplane has sent them. Without rows on both sides: a given direction through
    one of the rows that arrive, by lot. Result: (n_branches, n_features + 1).
    """
    n_branches, n_rows = shares.shape
    n_features = features.shape[0]
    splits = np.empty((n_branches, n_features + 1))
    node = np.zeros(n_rows, dtype=np.int64)
    weight, target = np.empty(n_rows), np.empty(n_rows)
    wanted = np.empty(n_rows, dtype=np.int64)
    for t in range(n_branches):
        total, arrived = np.zeros(2), 0
        _part_rows(features, labels, weights, node, t, sides[t], pairs[t], wanted)
        for i in range(n_rows):
            side = wanted[i]
            arrived += node[i] == t
            target[i] = 1.0 if side == LEFT else 0.0
            weight[i] = weights[i] * shares[t, i] if node[i] == t and side != BOTH else 0.0
            total[int(target[i])] += weight[i]
        if total[0] > 0.0 and total[1] > 0.0:
            for i in range(n_rows):
                weight[i] *= 0.5 / total[int(target[i])] * prices[i]
            split = fitted_split(features, target, weight, ridges[t], steepness)
            for j in range(n_features + 1):
                splits[t, j] = split[j]
        else:
            row = _row_by_lot(node, t, int(lots[t] * arrived))
            splits[t, n_features] = 0.0
            for j in range(n_features):
                splits[t, j] = directions[t, j]
                splits[t, n_features] += directions[t, j] * features[j, row] / n_features
            beyond = abs(splits[t, n_features])
            if beyond > 1.0:  # unscaled features: the same hyperplane, within the box
                for j in range(n_features + 1):
                    splits[t, j] /= beyond
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
def _part_rows(features, labels, weights, node, t, sides, pairs, wanted):  # type: ignore[no-untyped-def]
    """The side that each row is meant for at branch t to ``wanted``; BOTH where none is.

    Of the two rows that part a class the left one is relatively nearer to the mean of what goes
    left. A class is not parted where it is alone, or has fewer than two rows.
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
        count = 0
        for i in range(n_rows):
            count += node[i] == t and labels[i] == k
        if sides[k] != BOTH or count < 2:
            continue
        one = _row_of_class(node, labels, t, k, int(pairs[k, 0] * count))
        two = _row_of_class(node, labels, t, k, int(pairs[k, 1] * count))
        nearer = 0.0  # to the left mean is the first row, by so much
        for j in range(n_features):
            apart = means[LEFT, j] / total[LEFT] - means[RIGHT, j] / total[RIGHT]
            nearer += apart * (features[j, one] - features[j, two])
        left, right = (one, two) if nearer >= 0.0 else (two, one)
        for i in range(n_rows):
            if node[i] == t and labels[i] == k:
                gap = 0.0
                for j in range(n_features):
                    to_left = features[j, i] - features[j, left]
                    to_right = features[j, i] - features[j, right]
                    gap += to_right * to_right - to_left * to_left
                wanted[i] = LEFT if gap > 0.0 else RIGHT


@compiled
def _row_of_class(node, labels, t, k, lot):  # type: ignore[no-untyped-def]
    """The ``lot``-th of the rows of class k that arrive at branch t, which are more than that."""
    for i in range(node.size):
        if node[i] == t and labels[i] == k:
            if lot == 0:
                return i
            lot -= 1
    return 0


@compiled
def _row_by_lot(node, t, lot):  # type: ignore[no-untyped-def]
    """The ``lot``-th of the rows that arrive at branch t; the first row of all if none does."""
    for i in range(node.size):
        if node[i] == t:
            if lot == 0:
                return i
            lot -= 1
    return 0
