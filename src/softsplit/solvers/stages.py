"""The stages a run of the native solver is made of.

Each stage takes the engine and a point (theta, leaf classes), moves theta in place and returns
the leaf classes it ends with. A recipe is a sequence of stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from softsplit.problem import TrainingProblem
from softsplit.solvers.descent import NEVER, Limits
from softsplit.solvers.engine import Engine, pack, stratified, unpack
from softsplit.tree import FloatArray, TreeParameters


class Stage(Protocol):
    """One step of a recipe."""

    def apply(self, engine: Engine, theta: FloatArray, leaf_classes: FloatArray) -> FloatArray:
        """Move ``theta`` in place; the leaf classes at the end."""


def pure_leaves(
    problem: TrainingProblem, theta: FloatArray, leaf_classes: FloatArray
) -> FloatArray:
    """Cheapest leaf classes with every class covered; the rates are left to the rate terms."""
    relaxed = replace(problem, minimum_rates=np.zeros(problem.n_classes))
    return relaxed.best_leaves(unpack(theta, leaf_classes)).leaf_classes


def soften(leaf_classes: FloatArray, share: float = 0.02) -> FloatArray:
    """Mix in a little of every class, so that no sample gets probability zero."""
    return (1 - share) * leaf_classes + share / len(leaf_classes)


@dataclass(frozen=True)
class LogWarmUp:
    """Log-loss with soft leaves at growing steepness, on a subset of the rows.

    Far from a solution the expected cost at full steepness is flat; the log-loss is not. Leaf
    classes follow by expectation steps: c_kl in proportion to the responsibility of leaf l for
    the samples of class k.
    """

    steepness: tuple[float, ...] = (4.0, 16.0, 64.0, 256.0)
    rounds: int = 3
    max_iter: int = 5
    rows: int = 1000

    def apply(self, engine: Engine, theta: FloatArray, leaf_classes: FloatArray) -> FloatArray:
        few = stratified(engine.samples, self.rows)
        small = engine if few is engine.samples else Engine(engine.problem, engine.meter, few)
        leaves = soften(leaf_classes)
        for steepness in self.steepness:
            if steepness > engine.problem.steepness:
                break
            small.forget(steepness)
            for _ in range(self.rounds):
                limits = Limits(self.max_iter, 1e-3, 1e-4, 2, NEVER)
                small.descend_log(theta, leaves, limits, steepness, few.weights)
                leaves = self._expectation(small, theta, leaves, steepness)
        return leaves

    def _expectation(
        self, engine: Engine, theta: FloatArray, leaves: FloatArray, steepness: float
    ) -> FloatArray:
        engine.descend_log(
            theta, leaves, Limits(0, 0.0, 0.0, 1, NEVER), steepness, engine.samples.weights
        )
        responsibility = -leaves * engine.work.mass
        return soften(responsibility / np.maximum(responsibility.sum(axis=0), 1e-300))


@dataclass(frozen=True)
class Race:
    """Short descents from several trees; the one with the lowest objective wins."""

    max_iter: int = 20

    def winner(
        self, engine: Engine, trees: Sequence[TreeParameters]
    ) -> tuple[FloatArray, FloatArray]:
        """theta and leaf classes of the tree that got furthest."""
        limits = Limits(self.max_iter, 1e-4, 1e-3, 2, NEVER)
        runs: list[tuple[float, FloatArray, FloatArray]] = []
        for tree in trees:
            theta = pack(tree)
            leaves = pure_leaves(engine.problem, theta, tree.leaf_classes)
            engine.forget(engine.problem.steepness)
            runs.append((engine.descend(theta, leaves, limits), theta, leaves))
        _, theta, leaves = min(runs, key=lambda run: run[0])
        return theta, leaves


@dataclass(frozen=True)
class StrengthPath:
    """Expected cost at full steepness while the penalties grow to their strength."""

    fractions: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0)
    max_iter: int = 20

    def apply(self, engine: Engine, theta: FloatArray, leaf_classes: FloatArray) -> FloatArray:
        leaves = leaf_classes
        engine.forget(engine.problem.steepness)
        for fraction in self.fractions:
            leaves = pure_leaves(engine.problem, theta, leaves)
            limits = Limits(self.max_iter, 1e-4, 1e-3, 2, NEVER)
            engine.descend(theta, leaves, limits, strength=fraction)
        return leaves


@dataclass(frozen=True)
class Polish:
    """Tight descents, with multiplier rounds until the class rates hold and leaves agree.

    The rates aim a hair above their minimum, so that the end point is feasible and not only
    nearly so.
    """

    max_iter: int = 300
    rounds: int = 12
    newton_from: int = 40
    margin: float = 1e-7

    def apply(self, engine: Engine, theta: FloatArray, leaf_classes: FloatArray) -> FloatArray:
        problem, leaves = engine.problem, leaf_classes
        target = np.minimum(problem.minimum_rates + self.margin, 1.0)
        multipliers = np.zeros(problem.n_classes)
        weight, last_shortfall = engine.rate_weight, np.inf
        limits = Limits(self.max_iter, engine.meter.budget.tol, 1e-11, 8, self.newton_from)
        look = limits._replace(max_iter=0)
        for _ in range(self.rounds):
            value = engine.descend(
                theta, leaves, limits, multipliers=multipliers, rate_weight=weight
            )
            if not engine.ended:
                continue
            rates = problem.rates(unpack(theta, leaves))
            # Other leaves only if they are better with the rate terms too: the cheapest leaves
            # may starve a class, and the next round would change them back.
            better = pure_leaves(problem, theta, leaves)
            if not np.array_equal(better, leaves):
                other = engine.descend(
                    theta, better, look, multipliers=multipliers, rate_weight=weight
                )
                if other < value:
                    leaves = better
                    continue
            if np.all(rates >= problem.minimum_rates):
                break
            multipliers = np.maximum(0.0, multipliers + weight * (target - rates))
            shortfall = float(np.max(target - rates))
            if shortfall > 0.1 * last_shortfall:
                weight *= 10.0
            last_shortfall = shortfall
        return leaves


@dataclass(frozen=True)
class FixedLeaves:
    """A tight descent with the leaf classes as they are, mixed or not."""

    max_iter: int = 100

    def apply(self, engine: Engine, theta: FloatArray, leaf_classes: FloatArray) -> FloatArray:
        limits = Limits(self.max_iter, engine.meter.budget.tol, 1e-11, 8, 0)
        weight = 100.0 * engine.rate_weight
        engine.descend(theta, leaf_classes, limits, rate_weight=weight)
        return leaf_classes
