"""The path of trees from a large one down to a leaf without features.

Each round refits the tree, keeps it as a point, and removes the cheapest part of its size
(removal.py). One path has the best trees of all strengths: of ``points`` the one with the least
value + strength * size, within limits of the size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softsplit.solvers.base import Budget
from softsplit.solvers.expected_deviance.descent import descend
from softsplit.solvers.expected_deviance.problem import NumberProblem, SoftTree
from softsplit.solvers.expected_deviance.removal import Pruning
from softsplit.solvers.expected_deviance.starts import Starts

REFIT_STEPS = 12
"""Steps of the descent after each round."""

REFIT_DECREASE = 0.05
"""A refit ends when a step lowers the objective by less: a coefficient costs some units."""

PATHS = 2
"""Starts from which trees are pruned: the best of a race need not give the best small tree."""


@dataclass(frozen=True)
class TreeLimits:
    """Largest numbers of variables, leaves, variables of a question, variables of a leaf."""

    features: int | None = None
    leaves: int | None = None
    terms: int | None = None
    leaf_terms: int | None = None

    def allow(self, problem: NumberProblem, tree: SoftTree) -> bool:
        groups = problem.groups[tree.columns]
        used = [len(np.unique(groups[line])) for line in tree.support]
        gates, leaves = used[: tree.n_branches], used[tree.n_branches :]
        pairs = (
            (self.features, len(np.unique(groups[tree.support.any(axis=0)]))),
            (self.leaves, int(tree.alive.sum())),
            (self.terms, max(gates)),
            (self.leaf_terms, max(leaves)),
        )
        return all(limit is None or number <= limit for limit, number in pairs)


@dataclass(frozen=True)
class RemovalPoint:
    """A tree of a path, its objective without the price of its size, and its size."""

    tree: SoftTree
    value: float
    size: float
    allowed: bool


def elimination_path(
    starts: Starts,
    depth: int,
    limits: TreeLimits | None = None,
    budget: Budget | None = None,
) -> list[RemovalPoint]:
    """Return the points of the paths from the best starts with ``depth`` levels.

    After Ctrl-C or the end of the time the path goes on to its end without descents, in large
    steps: the trees that it has until then are points of it.
    """
    limits, problem, budget = limits or TreeLimits(), starts.problem, budget or Budget()
    points: list[RemovalPoint] = []
    for start in starts.race(depth, budget)[: 1 if budget.exhausted else PATHS]:
        tree, left = start.tree, True
        while left:
            with budget.interruptible():
                # 1. Refit, and keep the point.
                tree, value = descend(problem, tree, REFIT_STEPS, REFIT_DECREASE, budget)
                size = tree.size(problem)
                points.append(RemovalPoint(tree, value, size, limits.allow(problem, tree)))
                # 2. Remove the cheapest parts.
                left = bool(tree.support.any())
                if left:
                    share = 0.5 if budget.exhausted else _share(size)
                    tree = Pruning(problem, tree).pruned(max(1.0, share * size))
    return points


def _share(size: float) -> float:
    """Part of the size that a round removes."""
    if size > 400:
        return 0.5
    return 0.25 if size > 90 else 0.13


def best_point(points: Sequence[RemovalPoint], strength: float) -> RemovalPoint:
    """Return the allowed point of least value with the price of its size."""
    allowed = [point for point in points if point.allowed] or [points[-1]]
    return min(allowed, key=lambda point: point.value + strength * point.size)
