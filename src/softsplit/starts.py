"""Starting trees. Each rule takes a problem and a random generator; nothing else is random.

uniform   weights and thresholds uniform in the box, as in the paper. At steepness 512 most such
          hyperplanes lie outside the data, which is why so many of the paper's runs fail.
points    random directions through random training rows: every split cuts the data.
groups    at each branch the classes that arrive are parted into two groups and a ridge logistic
          regression separates them; leaves end up with a class each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softsplit.constraints import InfeasibleLeafStep
from softsplit.problem import TrainingProblem
from softsplit.samples import Samples
from softsplit.solvers.base import Start
from softsplit.tree import FloatArray, TreeParameters

RIDGES = (1e-2, 1e-3, 1e-4, 1e-5)
"""Drawn at random: from blunt splits that trust the mean to sharp ones that fit the rows."""

NEWTON_STEPS = 5


def draw_start(rule: str, problem: TrainingProblem, rng: np.random.Generator) -> Start:
    """A start by the named rule; variables outside the problem's block keep their anchor."""
    if rule not in RULES:
        raise ValueError(f"unknown start rule {rule!r}; choose one of {sorted(RULES)}.")
    return Start(problem.pin(RULES[rule](problem, rng)), rule)


def uniform_start(problem: TrainingProblem, rng: np.random.Generator) -> TreeParameters:
    """Weights and thresholds uniform in [-1, 1], leaf classes uniform and normalised."""
    shape = (problem.n_features, problem.topology.n_branches)
    leaves = rng.uniform(size=(problem.n_classes, problem.topology.n_leaves))
    return TreeParameters(
        rng.uniform(-1, 1, shape), rng.uniform(-1, 1, shape[1]), leaves / leaves.sum(axis=0)
    )


def points_start(problem: TrainingProblem, rng: np.random.Generator) -> TreeParameters:
    """Random directions, each through a random training row; the best leaves for them."""
    samples = problem.samples
    weights = rng.uniform(-1, 1, (problem.n_features, problem.topology.n_branches))
    share = np.cumsum(samples.weights)
    rows = np.searchsorted(share, rng.uniform(size=weights.shape[1]) * share[-1], side="right")
    rows = np.minimum(rows, samples.n_rows - 1)
    through = samples.features[:, rows]
    thresholds = np.sum(weights * through, axis=0) / problem.n_features
    return with_leaves(problem, weights, np.clip(thresholds, -1, 1))


def with_leaves(
    problem: TrainingProblem, weights: FloatArray, thresholds: FloatArray
) -> TreeParameters:
    """The splits with their best leaf classes, or with even ones where no choice is feasible."""
    even = np.full((problem.n_classes, problem.topology.n_leaves), 1.0 / problem.n_classes)
    splits = TreeParameters(weights, thresholds, even)
    try:
        return problem.best_leaves(splits)
    except InfeasibleLeafStep:
        return splits


def groups_start(problem: TrainingProblem, rng: np.random.Generator) -> TreeParameters:
    """Greedy class grouping: part the classes at each branch, and separate the two groups.

    Where there are more leaves than classes, a class may go both ways: it takes no part in the
    split, and its rows follow whichever side of the hyperplane they fall on.
    """
    topology, samples = problem.topology, problem.samples
    weights = np.zeros((problem.n_features, topology.n_branches))
    thresholds = np.zeros(topology.n_branches)
    centres = _class_means(samples)
    labels = samples.labels
    classes: dict[int, NDArray[np.intp]] = {0: np.arange(problem.n_classes)}
    rows: dict[int, NDArray[np.intp]] = {0: _rows_of_each_class(samples)}
    for t in range(topology.n_branches):
        capacity = len(topology.leaves_below(2 * t + 1))
        left, right = _part(classes[t], capacity, centres, rng)
        weights[:, t], thresholds[t] = _separate(
            samples, rows[t], labels, (left, right), problem.steepness, rng
        )
        goes_left = weights[:, t] @ samples.features[:, rows[t]] > thresholds[t] * len(weights)
        here = labels[rows[t]]
        only_left, only_right = ~np.isin(here, right), ~np.isin(here, left)
        rows[2 * t + 1] = rows[t][(goes_left | only_left) & ~only_right]
        rows[2 * t + 2] = rows[t][(~goes_left | only_right) & ~only_left]
        classes[2 * t + 1], classes[2 * t + 2] = left, right
    leaf_classes = np.zeros((problem.n_classes, topology.n_leaves))
    for leaf in range(topology.n_leaves):
        leaf_classes[classes[topology.n_branches + leaf][0], leaf] = 1.0
    return TreeParameters(weights, thresholds, leaf_classes)


def _class_means(samples: Samples) -> FloatArray:
    """Weighted mean of each class, (n_classes, n_features)."""
    sums = np.add.reduceat(samples.features * samples.weights, samples.starts[:-1], axis=1)
    return (sums / samples.class_totals).T


def _rows_of_each_class(samples: Samples, limit: int = 200) -> NDArray[np.intp]:
    """Up to ``limit`` rows of each class: their order is as good as random (see samples.py)."""
    ends = np.minimum(samples.starts[1:], samples.starts[:-1] + limit)
    pairs = zip(samples.starts[:-1], ends, strict=True)
    return np.concatenate([np.arange(low, high) for low, high in pairs])


def _part(
    classes: NDArray[np.intp], capacity: int, centres: FloatArray, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Two groups of at most ``capacity`` classes: by the nearest of two class means, or at random.

    A single class goes both ways; so may one more where there is room.
    """
    if len(classes) == 1:
        return classes, classes
    first, second = rng.choice(len(classes), 2, replace=False)
    here = centres[classes]
    near = np.sum((here - here[first]) ** 2, axis=1) - np.sum((here - here[second]) ** 2, axis=1)
    if rng.uniform() < 1 / 3:
        near = rng.uniform(-1, 1, len(classes))
    near[first], near[second] = -np.inf, np.inf
    order = np.argsort(near, kind="stable")
    smallest, largest = max(1, len(classes) - capacity), min(capacity, len(classes) - 1)
    size = int(np.clip(np.sum(near < 0), smallest, largest))
    left, right = classes[order[:size]], classes[order[size:]]
    if len(classes) > 2 and rng.uniform() < 1 / 2:
        if len(right) < capacity and len(left) > 1:
            right = np.append(right, rng.choice(left))
        elif len(left) < capacity and len(right) > 1:
            left = np.append(left, rng.choice(right))
    return np.sort(left), np.sort(right)


def _separate(
    samples: Samples,
    rows: NDArray[np.intp],
    labels: NDArray[np.int64],
    groups: tuple[NDArray[np.intp], NDArray[np.intp]],
    steepness: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, float]:
    """Weights and threshold of a ridge logistic regression between two groups of classes.

    Rows get random weights (a Bayesian bootstrap) and the ridge is drawn too, so that every start
    is another sensible tree. Without rows on both sides: a random direction through a random row.
    """
    n_features = samples.n_features
    here = labels[rows]
    on_left, on_right = ~np.isin(here, groups[1]), ~np.isin(here, groups[0])
    if not np.any(on_left) or not np.any(on_right):
        weights = rng.uniform(-1, 1, n_features)
        row = rng.choice(rows) if len(rows) else rng.integers(samples.n_rows)
        return weights, float(weights @ samples.features[:, row]) / n_features
    rows = rows[on_left | on_right]
    target = on_left[on_left | on_right].astype(float)
    design = np.vstack([samples.features[:, rows], -np.ones(len(rows))])
    weight = samples.weights[rows] * rng.exponential(size=len(rows))
    weight *= np.where(
        target > 0, 0.5 / np.sum(weight * target), 0.5 / np.sum(weight * (1 - target))
    )
    solution = _ridge_logistic(design, target, weight, float(rng.choice(RIDGES)))
    # Steepness times the score should be the regression's log-odds; the box may not allow it.
    scale = min(
        n_features / steepness,
        1.0 / max(np.max(np.abs(solution[:-1])), 1e-12),
        n_features / max(abs(solution[-1]), 1e-12),
    )
    return solution[:-1] * scale, float(solution[-1] * scale / n_features)


def _ridge_logistic(
    design: FloatArray, target: FloatArray, weight: FloatArray, strength: float
) -> FloatArray:
    """A few steps of Newton's method: a start need not be exact.

    The constant term (last row of ``design``) is hardly penalised.
    """
    solution = np.zeros(len(design))
    ridge = np.full(len(design), strength)
    ridge[-1] = 1e-8
    for _ in range(NEWTON_STEPS):
        probability = 1.0 / (1.0 + np.exp(-np.clip(solution @ design, -30, 30)))
        slope = design @ (weight * (probability - target)) + ridge * solution
        curvature = (design * (weight * probability * (1 - probability))) @ design.T
        curvature[np.diag_indices_from(curvature)] += ridge
        solution -= np.linalg.solve(curvature, slope)
    return solution


RULES: dict[str, Callable[[TrainingProblem, np.random.Generator], TreeParameters]] = {
    "uniform": uniform_start,
    "points": points_start,
    "groups": groups_start,
}
