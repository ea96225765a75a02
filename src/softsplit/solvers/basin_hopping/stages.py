"""Stages of a run: warm-up on the log-loss, race of starts, approach, polish.

A stage takes a run and a point (theta, leaf classes), moves theta in place and returns the leaf
classes it ends with. A recipe is a sequence of stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from softsplit.problem.leaves import RATE_SLACK
from softsplit.problem.loss import LogLoss
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.active_set.objective import expect, soften
from softsplit.solvers.active_set.state import (
    LEAD_IN,
    NEVER,
    POLISH,
    SCREEN,
    DescentLimits,
)
from softsplit.solvers.base import OutOfBudget
from softsplit.solvers.basin_hopping.run import DescentRun
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters

LOG_LOSS = LogLoss()


class RecipeStage(Protocol):
    """One step of a recipe."""

    def apply(self, run: DescentRun, theta: FloatArray, leaf_values: FloatArray) -> FloatArray:
        """Move ``theta`` in place; return the leaf classes at the end."""


def lead_in(
    run: DescentRun, theta: FloatArray, leaf_values: FloatArray, steepness: tuple[float, ...]
) -> None:
    """Short descents at growing steepness: splits see rows far from them before they settle."""
    for gentle in steepness:
        if gentle < run.problem.steepness:
            run.forget(gentle)
            run.descend(theta, leaf_values, LEAD_IN, steepness=gentle)


def restore_rates(
    problem: TrainingProblem, tree: TreeParameters, steps: int = 40, repairable: float = 1e-2
) -> TreeParameters:
    """Return the tree moved as little as need be for its class rates to meet their minimum.

    Repairs small remaining violations after the multiplier rounds, by least-norm Newton steps on
    the rates that fall short, over thresholds and nonzero weights. A tree that falls short by more
    than ``repairable``, or still does after so many ``steps``, is returned unchanged.
    """
    moved = tree
    for _ in range(steps):
        # 1. What the rates lack; nothing to do, or too much.
        shortfall = problem.shortfalls(moved)
        if np.max(shortfall) <= RATE_SLACK:
            return moved
        if np.max(shortfall) > repairable:
            return tree
        # 2. The slope of every rate that falls short, by nonzero weights and thresholds.
        short = np.flatnonzero(shortfall > 0)
        base, used = problem.evaluate_cost(moved), moved.weights != 0
        rows = []
        for k in short.tolist():
            if k < problem.n_groups:
                slope = problem.evaluate_cost(moved, np.eye(problem.n_groups)[k])
                by_weight, by_threshold = (
                    base.weights - slope.weights, base.thresholds - slope.thresholds,
                )  # fmt: skip
            else:
                slope = problem.rate_gradient(moved, k)
                by_weight, by_threshold = slope.weights, slope.thresholds
            rows.append(np.append(by_weight[used], by_threshold))
        # 3. The shortest step that makes up for it, to first order, back into the box.
        step = np.linalg.lstsq(np.array(rows), shortfall[short] + 1e-9, rcond=None)[0]
        weights = moved.weights.copy()
        weights[used] += step[: np.sum(used)]
        thresholds = moved.thresholds + step[np.sum(used) :]
        moved = problem.bounds.project_tree(replace(moved, weights=weights, thresholds=thresholds))
    return tree


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

    def apply(self, run: DescentRun, theta: FloatArray, leaf_values: FloatArray) -> FloatArray:
        small, leaves = run.on_few_rows(self.rows), np.array(leaf_values, dtype=float)
        limits = DescentLimits(self.max_iter, 1e-3, 1e-4, 2, NEVER)
        soften(leaves)
        for steepness in self.steepness:
            if steepness > run.problem.steepness:
                break
            small.forget(steepness)
            for _ in range(self.rounds):
                # The log-loss alone: neither penalties nor class rates.
                small.descend(
                    theta, leaves, limits, steepness=steepness, strength=0.0, loss=LOG_LOSS,
                    rate_weight=0.0,
                )  # fmt: skip
                expect(small.by_table, leaves)
        return np.where(run.problem.free_leaves, leaves, leaf_values)


@dataclass(frozen=True)
class Race:
    """Short descents from several trees; the one with the lowest objective wins.

    With ``steepness`` a tree of several branches runs twice, as it is and led in at each of them.
    """

    limits: DescentLimits = SCREEN
    steepness: tuple[float, ...] = ()

    def winner(
        self, run: DescentRun, trees: Sequence[TreeParameters]
    ) -> tuple[FloatArray, FloatArray]:
        """theta and leaf classes of the tree that got furthest, within the budget."""
        runs: list[tuple[float, FloatArray, FloatArray]] = []
        ways: list[tuple[float, ...]] = [()]
        if self.steepness and run.problem.topology.depth > 1:
            ways.append(self.steepness)
        with suppress(OutOfBudget):
            for steepness in ways:
                for tree in trees:
                    theta, leaves = tree.splits, np.array(tree.leaf_values, dtype=float, order="C")
                    runs.append((np.inf, theta, leaves))  # it stays if the budget ends in it
                    lead_in(run, theta, leaves, steepness)
                    run.forget(run.problem.steepness)
                    value = run.descend(theta, leaves, self.limits, choose=True)
                    runs[-1] = (value, theta, leaves)
        _, theta, leaves = min(runs, key=lambda run: run[0])
        return theta, leaves


@dataclass(frozen=True)
class Approach:
    """A rough descent at full steepness and full strength: first-order, then Newton steps."""

    limits: DescentLimits = POLISH

    def apply(self, run: DescentRun, theta: FloatArray, leaf_values: FloatArray) -> FloatArray:
        leaves = np.array(leaf_values, dtype=float, order="C")
        run.forget(run.problem.steepness)
        run.descend(theta, leaves, self.limits, choose=True)
        return leaves


@dataclass(frozen=True)
class Polish:
    """Tight descents, with multiplier rounds until the class rates hold and leaves agree.

    The rates aim a little above their minimum, more so in every round that fails, so that the end
    point is feasible and not only nearly so.
    """

    max_iter: int = 300
    rounds: int = 12
    newton_from: int = 0
    margin: float = 1e-7
    most_margin: float = 1e-4
    most_weight: float = 1e4
    """Weight of the rate terms, as a multiple of the usual one, beyond which descents crawl along
    the constraint."""

    def apply(self, run: DescentRun, theta: FloatArray, leaf_values: FloatArray) -> FloatArray:
        problem, leaves = run.problem, leaf_values
        margin = self.margin
        multipliers = run.multipliers
        weight, last_shortfall = run.rate_weight, np.inf
        limits = DescentLimits(self.max_iter, run.work.budget.tol, 1e-11, 8, self.newton_from)
        look = limits._replace(max_iter=0)
        for _ in range(self.rounds):
            # 1. A tight descent; one that has reached its limit goes on in the next round.
            value = run.descend(theta, leaves, limits, multipliers=multipliers, rate_weight=weight)
            if not run.ended:
                continue
            met, lack = run.rates_hold(leaves), run.lacking(leaves, margin)
            # 2. Other leaves only if they are better with the rate terms too: the cheapest leaves
            # may starve a class, and the next round would change them back.
            better = run.cheapest_leaves(leaves)
            if not np.array_equal(better, leaves):
                other = run.descend(
                    theta, better, look, multipliers=multipliers, rate_weight=weight
                )
                if other < value:
                    leaves = better
                    continue
            if met:
                return leaves
            # 3. The multiplier step; the weight grows where the shortfall hardly falls.
            multipliers = np.maximum(0.0, multipliers + weight * lack)
            shortfall = float(np.max(lack))
            if shortfall > 0.1 * last_shortfall:
                weight = min(10.0 * weight, self.most_weight * run.rate_weight)
            last_shortfall, margin = shortfall, min(4.0 * margin, self.most_margin)
        # 4. What is left of the shortfall is repaired by itself.
        theta[:] = restore_rates(problem, TreeParameters.from_splits(theta, leaves)).splits
        return leaves


@dataclass(frozen=True)
class FixedLeaves:
    """A tight descent with the leaf classes as they are, mixed or not."""

    max_iter: int = 100

    def apply(self, run: DescentRun, theta: FloatArray, leaf_values: FloatArray) -> FloatArray:
        limits = DescentLimits(self.max_iter, run.work.budget.tol, 1e-11, 8, 0)
        weight = 100.0 * run.rate_weight
        run.descend(theta, leaf_values, limits, rate_weight=weight)
        return leaf_values
