"""Perturbations: ways to leave the basin of a tree.

A perturbation changes which features or which classes a branch is about, which no descent does by
itself. It takes the run, the point, what was drawn for it and the number of its turn, and returns
another point, led in by short descents of other functions, or None if it cannot change the tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from softsplit.solvers.active_set.state import (
    EVALUATE_ONLY,
    LEAD_IN,
    ROUGH_FIRST_ORDER,
    ROUGH_NEWTON,
    DescentLimits,
)
from softsplit.solvers.basin_hopping.run import DescentRun
from softsplit.solvers.basin_hopping.stages import LogWarmUp, lead_in
from softsplit.solvers.starts.logistic import fitted_split
from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import gate_probabilities, node_reach, node_values

Point = tuple[FloatArray, FloatArray]
"""theta and leaf classes."""


def fresh_tree(run: DescentRun, seed: int) -> Point:
    """Return a greedy tree of any structure."""
    return run.greedy.fresh(np.random.default_rng(seed))


class Perturbation(Protocol):
    """A way to leave the basin of a tree."""

    def apply(self, run: DescentRun, point: Point, seed: int, turn: int) -> Point | None:
        """Return another point; ``point`` itself stays as it is."""


@dataclass(frozen=True)
class Fresh:
    """The freshly drawn tree itself."""

    def apply(self, run: DescentRun, point: Point, seed: int, turn: int) -> Point | None:
        return fresh_tree(run, seed)


@dataclass(frozen=True)
class Redraw:
    """A fresh tree, led in along weak penalties or gentle splits.

    Where a structure is right and its features are not, it has the classes on the same leaves. Led
    in by penalties of ``strengths`` times their full size, many features come in at first, and
    those that do not pay leave; led in at low ``steepness``, splits see rows that are far from
    them before they settle. ``other`` for a structure drawn anew.
    """

    strengths: tuple[float, ...] = ()
    steepness: tuple[float, ...] = ()
    other: bool = False

    def apply(self, run: DescentRun, point: Point, seed: int, turn: int) -> Point | None:
        problem, leaves = run.problem, point[1]
        if len(point[0]) == 1:
            return None
        if self.other:
            theta, leaves = fresh_tree(run, seed)
        else:
            theta, _ = run.greedy.like(leaves, np.random.default_rng(seed))
        lead_in(run, theta, leaves, self.steepness)
        run.forget(problem.steepness)
        for strength in self.strengths:
            run.descend(theta, leaves, LEAD_IN, strength=strength)
        run.descend(theta, leaves, ROUGH_FIRST_ORDER)
        return theta, leaves


@dataclass(frozen=True)
class Warmed:
    """The freshly drawn tree after a warm-up with the log-loss.

    Where all rows must be fitted closely, neither kind of start is always the better one.
    """

    warm_up: LogWarmUp = field(default_factory=lambda: LogWarmUp(rounds=1, max_iter=15))

    def apply(self, run: DescentRun, point: Point, seed: int, turn: int) -> Point | None:
        theta, leaves = fresh_tree(run, seed)
        return theta, self.warm_up.apply(run, theta, leaves)


@dataclass(frozen=True)
class Regrow:
    """A subtree is replaced by that of the freshly drawn tree, another one each turn."""

    def apply(self, run: DescentRun, point: Point, seed: int, turn: int) -> Point | None:
        if len(point[0]) == 1:
            return None
        theta, (other, _) = point[0].copy(), fresh_tree(run, seed)
        below = [turn % len(theta)]
        for branch in below:
            if branch < len(theta):
                theta[branch] = other[branch]
                below += [2 * branch + 1, 2 * branch + 2]
        return theta, point[1]


@dataclass(frozen=True)
class Relabel:
    """A leaf gets another class, and the branch above it is fitted anew to the rows that care.

    The turn says which of the ``choices`` changes that cost least as the tree stands.
    """

    choices: int = 4
    ridge: float = 1e-4
    """Of the regression; that of the sharper greedy starts."""

    rows: int = 5000
    """Most rows of the regression."""

    def apply(self, run: DescentRun, point: Point, seed: int, turn: int) -> Point | None:
        theta, leaves = point
        n_branches = len(theta)
        if n_branches == 1:
            return None
        run.descend(theta, leaves, EVALUATE_ONLY)
        costs = run.problem.loss.leaf_gradient(run.by_table)
        regret = costs - np.sum(costs * leaves, axis=0)
        # Without the leaf every class must still have one.
        movable = np.all(leaves.sum(axis=1)[:, None] - leaves >= 1, axis=0)
        movable &= run.problem.free_leaves
        choices = [
            (regret[k, leaf], k, leaf)
            for leaf in np.flatnonzero(movable)
            for k in np.flatnonzero(leaves[:, leaf] < 1)
        ]
        if not choices:
            return None
        _, k, leaf = sorted(choices)[turn % min(len(choices), self.choices)]
        labels = leaves.copy()
        labels[:, leaf] = 0.0
        labels[k, leaf] = 1.0
        above = int(n_branches + leaf - 1) // 2
        moved = theta.copy()
        refitted = refit(run, theta, labels, above, self.ridge, self.rows)
        if refitted is not None and run.problem.free_branches[above]:
            moved[above] = refitted
            moved = run.problem.bounds.project_splits(moved)
        return moved, labels


@dataclass(frozen=True)
class Reweigh:
    """A descent with random row weights, and penalties ``strength`` times as strong.

    Another view of the same data: basins that depend on a few rows give way. Weights are
    exponential random numbers to the given power.
    """

    strength: float = 1.0
    power: float = 1.0

    def apply(self, run: DescentRun, point: Point, seed: int, turn: int) -> Point | None:
        theta, leaves = point[0].copy(), point[1]
        rows = run.rows.reweighed(seed, self.power)
        run.forget(run.problem.steepness)
        run.descend(theta, leaves, ROUGH_NEWTON, strength=self.strength, rows=rows)
        return theta, leaves


@dataclass(frozen=True)
class OtherStrength:
    """A descent with penalties ``factors`` times as strong, one after the other by turns.

    Too strong ones drop features; too weak ones let others in, which then have to pay.
    """

    factors: tuple[float, ...]
    limits: DescentLimits = ROUGH_NEWTON

    def apply(self, run: DescentRun, point: Point, seed: int, turn: int) -> Point | None:
        theta, leaves = point[0].copy(), point[1]
        run.forget(run.problem.steepness)
        strength = self.factors[turn % len(self.factors)]
        run.descend(theta, leaves, self.limits, strength=strength)
        return theta, leaves


def refit(
    run: DescentRun,
    theta: FloatArray,
    leaf_values: FloatArray,
    branch: int,
    ridge: float = 1e-4,
    most_rows: int = 5000,
) -> FloatArray | None:
    """Return a new split for one branch: rows go where the rest of the tree serves them better.

    With the other branches fixed the loss of a row is affine in the gate of this one, or nearly so;
    its weight in a ridge logistic regression is what the choice of the side is worth to it. None if
    no row cares, or all want the same side.
    """
    samples = run.rows.sample(most_rows)
    scores = np.dot(np.ascontiguousarray(theta[:, :-1]) / samples.n_features, samples.features)
    scores -= theta[:, -1:]
    left, right = gate_probabilities(scores, run.problem.steepness)
    table = run.problem.loss.table(leaf_values)
    values, reach = node_values(left, right, table.T[:, samples.labels]), node_reach(left, right)
    worth = reach[branch] * samples.weights * (values[2 * branch + 2] - values[2 * branch + 1])
    weight = np.where(np.abs(worth) > 1e-6 * np.max(np.abs(worth)), np.abs(worth), 0.0)
    target = (worth > 0).astype(float)
    if not np.any(weight * target) or not np.any(weight * (1.0 - target)):
        return None
    share, steepness = weight / weight.sum(), run.problem.steepness
    return fitted_split(samples.features, target, share, ridge, steepness)
