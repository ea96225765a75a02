"""Greedy starts: part the classes at every branch and separate the two groups.

A *plan* says for every branch which classes go left, right or both ways, and so which class each
leaf ends with. Plans that differ only by swapping the two sides of a branch are one structure:
(a, b | a, c) and (c, a | b, a) are the same tree drawn differently. The structure a descent starts
from decides which basin it ends in, so rival starts are given different ones.

The splits of a plan are ridge logistic regressions, branch by branch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.compilation import compiled
from softsplit.problem import TrainingProblem
from softsplit.samples import Samples
from softsplit.solvers.newton import solve_damped
from softsplit.tree import FloatArray, Topology, TreeParameters

RIDGES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Drawn at random: from blunt splits that trust the mean to sharp ones that fit the rows."""

NEWTON_STEPS = 6
LOGISTIC_LIMIT = 300
"""Most features for a regression, whose cost grows with their square."""

LEFT, RIGHT, BOTH = 0, 1, 2


class Plan(NamedTuple):
    """Side of every class at every branch, (n_branches, n_classes), and class of every leaf."""

    sides: NDArray[np.int64]
    leaf_labels: tuple[int, ...]


class Chosen(NamedTuple):
    """The rows a greedy start looks at: features (n_features, n), and per row its label, weight
    and price, the cost of its dearest error relative to that of the dearest class."""

    features: FloatArray
    labels: NDArray[np.int64]
    weights: FloatArray
    prices: FloatArray


def grouped_trees(
    problem: TrainingProblem, rng: np.random.Generator, count: int = 1
) -> list[TreeParameters]:
    """``count`` greedy trees, of different structures as far as there are that many."""
    chosen = _choose_rows(problem.samples)
    centres = _class_means(chosen, problem.n_classes)
    dearest = problem.loss.costs.max(axis=1)
    chosen = chosen._replace(prices=(dearest / max(dearest.max(), 1e-300))[chosen.labels])
    plans: list[Plan] = []
    spare: list[Plan] = []
    seen: set[object] = set()
    while len(plans) < count and len(spare) <= 4 * count:
        plan = draw_plan(problem.topology, centres, rng)
        key = structure(plan.leaf_labels)
        (spare if key in seen else plans).append(plan)
        seen.add(key)
    plans += spare[: count - len(plans)]
    return [_fit_plan(problem, chosen, plan, rng) for plan in plans]


def structure(labels: tuple[int, ...]) -> object:
    """The same for two leaf labellings exactly if mirroring branches turns one into the other."""
    if len(labels) == 1:
        return labels[0]
    half = len(labels) // 2
    sides = [structure(labels[:half]), structure(labels[half:])]
    return tuple(sorted(sides, key=repr))


def draw_plan(topology: Topology, centres: FloatArray, rng: np.random.Generator) -> Plan:
    """Part the classes branch by branch, so that every class ends on a leaf."""
    n_classes = len(centres)
    sides = np.full((topology.n_branches, n_classes), BOTH)
    groups = [list(range(n_classes))]
    for t in range(topology.n_branches):
        capacity = len(topology.leaves_below(2 * t + 1))
        left, right = _part(groups[t], capacity, centres, rng)
        for k in groups[t]:
            if k not in right:
                sides[t, k] = LEFT
            elif k not in left:
                sides[t, k] = RIGHT
        groups += [left, right]
    return Plan(sides, tuple(group[0] for group in groups[topology.n_branches :]))


def _part(
    classes: list[int], capacity: int, centres: FloatArray, rng: np.random.Generator
) -> tuple[list[int], list[int]]:
    """Two groups of at most ``capacity`` classes: by the nearest of two class means, or at random.

    A single class goes both ways; so may one more where there is room.
    """
    if len(classes) == 1:
        return classes, classes
    order = [classes[k] for k in rng.permutation(len(classes))]
    if len(classes) == 2:
        left, right = order[:1], order[1:]
    else:
        here = centres[order]
        near = np.sum((here - here[0]) ** 2, axis=1) - np.sum((here - here[-1]) ** 2, axis=1)
        if rng.random() < 1 / 3:
            near = rng.random(len(order)) - 0.5
        near[0], near[-1] = -np.inf, np.inf
        smallest, largest = max(1, len(order) - capacity), min(capacity, len(order) - 1)
        size = min(max(int(np.sum(near < 0)), smallest), largest)
        order = [order[k] for k in np.argsort(near, kind="stable")]
        left, right = order[:size], order[size:]
    if capacity > 1 and rng.random() < 1 / 2:
        giver, taker = (left, right) if len(left) >= len(right) else (right, left)
        if len(taker) < capacity:
            taker.append(giver[rng.integers(len(giver))])
    return left, right


def _fit_plan(
    problem: TrainingProblem, chosen: Chosen, plan: Plan, rng: np.random.Generator
) -> TreeParameters:
    """Splits for a plan; rows of a class that goes both ways follow the hyperplane."""
    topology = problem.topology
    splits = np.empty((topology.n_branches, problem.n_features + 1))
    arriving = [np.ones(len(chosen.labels), dtype=bool)]
    for t in range(topology.n_branches):
        side = plan.sides[t][chosen.labels]
        splits[t] = _separate(chosen, arriving[t], side, problem.steepness, rng)
        goes_left = splits[t, :-1] @ chosen.features > splits[t, -1] * problem.n_features
        goes_left = np.where(side == BOTH, goes_left, side == LEFT)
        arriving += [arriving[t] & goes_left, arriving[t] & ~goes_left]
    leaf_classes = np.zeros((problem.n_classes, topology.n_leaves))
    leaf_classes[list(plan.leaf_labels), np.arange(topology.n_leaves)] = 1.0
    return TreeParameters(
        np.ascontiguousarray(splits[:, :-1].T), splits[:, -1].copy(), leaf_classes
    )


def _choose_rows(samples: Samples, limit: int = 200) -> Chosen:
    """Up to ``limit`` rows of each class: their order is as good as random (see samples.py)."""
    sizes = np.minimum(np.diff(samples.starts), limit)
    pairs = zip(samples.starts[:-1], sizes, strict=True)
    rows = np.concatenate([np.arange(low, low + size) for low, size in pairs])
    labels = np.repeat(np.arange(samples.n_classes), sizes)
    features = np.ascontiguousarray(samples.features[:, rows])
    return Chosen(features, labels, samples.weights[rows], np.ones(len(rows)))


def _class_means(chosen: Chosen, n_classes: int) -> FloatArray:
    """Weighted mean of each class, (n_classes, n_features)."""
    member = (chosen.labels == np.arange(n_classes)[:, None]) * chosen.weights
    return (member @ chosen.features.T) / member.sum(axis=1, keepdims=True)


def _separate(
    chosen: Chosen,
    arriving: NDArray[np.bool_],
    side: NDArray[np.int64],
    steepness: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Weights and threshold of a ridge logistic regression between the rows of two sides.

    Rows get random weights (a Bayesian bootstrap) and the ridge is drawn too, so that every start
    is another sensible tree. Without rows on both sides: a random direction through a random row.
    """
    n_features = len(chosen.features)
    weight = chosen.weights * rng.standard_exponential(len(side)) * (arriving & (side != BOTH))
    target = (side == LEFT).astype(float)
    on_left = float(weight @ target)
    on_right = float(weight.sum()) - on_left
    if on_left <= 0 or on_right <= 0:
        direction = rng.uniform(-1, 1, n_features)
        candidates = np.flatnonzero(arriving)
        row = candidates[rng.integers(len(candidates))] if len(candidates) else 0
        return np.append(direction, direction @ chosen.features[:, row] / n_features)
    # Both sides count the same, but for what their errors cost.
    weight *= np.where(target > 0, 0.5 / on_left, 0.5 / on_right) * chosen.prices
    ridge = RIDGES[rng.integers(len(RIDGES))]
    solution: FloatArray
    if n_features > LOGISTIC_LIMIT:
        solution = _mean_difference(chosen.features, target, weight, ridge)
    else:
        solution = ridge_logistic(chosen.features, target, weight, ridge, NEWTON_STEPS)
    # Steepness times the score should be the regression's log-odds; the box may not allow it.
    scale = min(
        n_features / steepness,
        1.0 / max(float(np.max(np.abs(solution[:-1]))), 1e-12),
        n_features / max(abs(float(solution[-1])), 1e-12),
    )
    solution *= scale
    solution[-1] /= n_features
    return solution


def _mean_difference(
    features: FloatArray, target: FloatArray, weight: FloatArray, ridge: float
) -> FloatArray:
    """Diagonal discriminant between the two sides: linear in the number of features."""
    left, right = weight * target, weight * (1 - target)
    mean_left, mean_right = features @ left / left.sum(), features @ right / right.sum()
    middle = (mean_left + mean_right) / 2
    spread = (features**2) @ weight / weight.sum() - middle**2
    direction = (mean_left - mean_right) / (np.maximum(spread, 0.0) + ridge)
    direction *= 4.0 / max(abs(float(direction @ (mean_left - mean_right))), 1e-12)
    return np.append(direction, direction @ middle)


@compiled
def ridge_logistic(features, target, weight, ridge, steps):  # type: ignore[no-untyped-def]
    """Coefficients and threshold of a ridge logistic regression, by a few Newton steps.

    Minimises sum_i weight_i log(1 + exp(-+ (b . x_i - threshold))) + ridge |b|^2 / 2; rows of
    weight zero are left out. The threshold (last entry) is hardly penalised.
    """
    n_features, n_rows = features.shape
    width = n_features + 1
    count = 0
    for i in range(n_rows):
        if weight[i] > 0.0:
            count += 1
    design = np.empty((width, count))
    kept = np.empty(count, dtype=np.int64)
    k = 0
    for i in range(n_rows):
        if weight[i] > 0.0:
            kept[k] = i
            k += 1
    for j in range(n_features):
        for k in range(count):
            design[j, k] = features[j, kept[k]]
    design[n_features, :] = -1.0
    solution = np.zeros(width)
    factor, weighted = np.empty(count), np.empty((width, count))
    slope, memory = np.empty(width), np.zeros(1)
    for _ in range(steps):
        score = np.dot(solution, design)
        for k in range(count):
            p = 1.0 / (1.0 + np.exp(-min(30.0, max(-30.0, score[k]))))
            score[k] = weight[kept[k]] * (target[kept[k]] - p)
            factor[k] = weight[kept[k]] * p * (1.0 - p)
        for j in range(width):
            for k in range(count):
                weighted[j, k] = design[j, k] * factor[k]
        matrix = np.dot(weighted, design.T)
        slope = np.dot(design, score)
        for j in range(width):
            penalty = ridge if j < n_features else 1e-8
            matrix[j, j] += penalty
            slope[j] -= penalty * solution[j]
        if not solve_damped(matrix, slope, memory):
            break
        for j in range(width):
            solution[j] += slope[j]
    return solution
