"""Starting trees. Each rule takes a problem and a random generator; nothing else is random.

uniform   weights and thresholds uniform in the box, as in the paper. At steepness 512 most such
          hyperplanes lie outside the data, which is why so many of the paper's runs fail.
points    random directions through random training rows: every split cuts the data.
groups    at each branch the classes that arrive are parted into two groups and a ridge logistic
          regression separates them; leaves end up with a class each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from softsplit.constraints import InfeasibleLeafStep
from softsplit.problem import TrainingProblem
from softsplit.samples import Samples
from softsplit.solvers.base import Start
from softsplit.tree import FloatArray, TreeParameters

RIDGES = (1e-2, 1e-3, 1e-4, 1e-5)
"""Drawn at random: from blunt splits that trust the mean to sharp ones that fit the rows."""

NEWTON_STEPS = 12


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
    """Greedy class grouping: part the classes at each branch, and separate the two groups."""
    topology, samples = problem.topology, problem.samples
    weights = np.zeros((problem.n_features, topology.n_branches))
    thresholds = np.zeros(topology.n_branches)
    leaf_of = np.zeros((problem.n_classes, topology.n_leaves))
    centres = _class_means(samples)
    arriving: dict[int, NDArray[np.intp]] = {0: np.arange(problem.n_classes)}
    for t in range(topology.n_branches):
        classes = arriving[t]
        capacity = len(topology.leaves_below(2 * t + 1))
        left, right = _part(classes, capacity, centres, samples.class_totals, rng)
        weights[:, t], thresholds[t] = _separate(samples, left, right, problem.steepness, rng)
        arriving[2 * t + 1], arriving[2 * t + 2] = left, right
    for leaf in range(topology.n_leaves):
        leaf_of[arriving[topology.n_branches + leaf][0], leaf] = 1.0
    return replace(with_leaves(problem, weights, thresholds), leaf_classes=leaf_of)


def _class_means(samples: Samples) -> FloatArray:
    """Weighted mean of each class, (n_classes, n_features)."""
    sums = np.add.reduceat(samples.features * samples.weights, samples.starts[:-1], axis=1)
    return (sums / samples.class_totals).T


def _part(
    classes: NDArray[np.intp],
    capacity: int,
    centres: FloatArray,
    totals: FloatArray,
    rng: np.random.Generator,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Two groups of at most ``capacity`` classes; one class alone goes both ways."""
    if len(classes) == 1:
        return classes, classes
    first, second = rng.choice(len(classes), 2, replace=False)
    here = centres[classes]
    near = np.sum((here - here[first]) ** 2, axis=1) - np.sum((here - here[second]) ** 2, axis=1)
    near = near + 1e-9 * rng.uniform(size=len(near))
    if rng.uniform() < 1 / 3:
        near = rng.uniform(-1, 1, len(classes))
        near[first], near[second] = -2.0, 2.0
    order = np.argsort(near, kind="stable")
    smallest, largest = max(1, len(classes) - capacity), min(capacity, len(classes) - 1)
    size = int(np.clip(np.sum(near < 0), smallest, largest))
    return np.sort(classes[order[:size]]), np.sort(classes[order[size:]])


def _separate(
    samples: Samples,
    left: NDArray[np.intp],
    right: NDArray[np.intp],
    steepness: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, float]:
    """Weights and threshold of a ridge logistic regression between two groups of classes.

    Rows get random weights (a Bayesian bootstrap) and the ridge is drawn too, so that every start
    is another sensible tree. A class that goes both ways is parted by a random direction through
    one of its rows.
    """
    n_features = samples.n_features
    if np.array_equal(left, right):
        weights = rng.uniform(-1, 1, n_features)
        row = rng.integers(samples.starts[left[0]], samples.starts[left[0] + 1])
        return weights, float(weights @ samples.features[:, row]) / n_features
    rows = _rows_of(samples, np.concatenate([left, right]))
    target = np.isin(samples.labels[rows], left).astype(float)
    design = np.vstack([samples.features[:, rows], -np.ones(len(rows))])
    weight = samples.weights[rows] * rng.exponential(size=len(rows))
    on_left, on_right = np.sum(weight * target), np.sum(weight * (1 - target))
    weight *= np.where(target > 0, 0.5 / on_left, 0.5 / on_right)
    solution = _ridge_logistic(design, target, weight, float(rng.choice(RIDGES)))
    # Steepness times the score should be the regression's log-odds; the box may not allow it.
    scale = min(
        n_features / steepness,
        1.0 / max(np.max(np.abs(solution[:-1])), 1e-12),
        n_features / max(abs(solution[-1]), 1e-12),
    )
    return solution[:-1] * scale, float(solution[-1] * scale / n_features)


def _rows_of(samples: Samples, classes: NDArray[np.intp], limit: int = 400) -> NDArray[np.intp]:
    """Up to ``limit`` rows of each class: their order is as good as random (see samples.py)."""
    ranges = [(samples.starts[k], samples.starts[k + 1]) for k in np.unique(classes)]
    return np.concatenate([np.arange(low, min(high, low + limit)) for low, high in ranges])


def _ridge_logistic(
    design: FloatArray, target: FloatArray, weight: FloatArray, strength: float
) -> FloatArray:
    """Newton's method; the constant term (last row of ``design``) is hardly penalised."""
    solution = np.zeros(len(design))
    ridge = np.full(len(design), strength)
    ridge[-1] = 1e-8
    for _ in range(NEWTON_STEPS):
        probability = 1.0 / (1.0 + np.exp(-np.clip(solution @ design, -30, 30)))
        slope = design @ (weight * (probability - target)) + ridge * solution
        curvature = (design * (weight * probability * (1 - probability))) @ design.T
        step = np.linalg.solve(curvature + np.diag(ridge), slope)
        solution -= step
        if np.max(np.abs(step)) < 1e-4 * (1 + np.max(np.abs(solution))):
            break
    return solution


RULES: dict[str, Callable[[TrainingProblem, np.random.Generator], TreeParameters]] = {
    "uniform": uniform_start,
    "points": points_start,
    "groups": groups_start,
}
