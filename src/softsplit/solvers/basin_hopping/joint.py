"""Branches and leaves moved together, where requirements on rates bind.

The stages alternate: they move the branches with the leaves fixed, then the leaves with the routing
fixed. Where a rate binds, alternating can end at a point that is not a KKT point of the whole
problem. Sequential quadratic programs (SLSQP: Kraft 1988) then continue over

    x = (weights, thresholds, leaf classes) of the free branches and leaves

    minimise    objective(x)
    subject to  rates >= minimum,  sum_k c_kl = 1,  sum_l c_kl >= 1,  bounds

Under a penalty zeros stay zero, weights keep their sign, and weights of a feature that have the
largest size in several branches keep one common size, so that both penalties are smooth near x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from softsplit.problem.leaves import RATE_SLACK
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.base import OutOfBudget
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters


@dataclass(frozen=True)
class JointPrograms:
    """Sequential quadratic programs over branches and leaves.

    Attributes
    ----------
    most : int
        Variables beyond which nothing is tried: a step takes their number cubed.
    rounds : int
        Most runs, each from the end of the one before, while these lower the objective.
    steps : int
        Most quadratic programs of a run.
    decrease : float
        Relative decrease of the objective that ends them.
    margin : float
        By how much rates aim above their minimum, so that the end is feasible.
    tied : float
        Weights that differ by less in size have a common one.
    """

    most: int = 200
    rounds: int = 3
    steps: int = 100
    decrease: float = 1e-12
    margin: float = 1e-8
    tied: float = 1e-9

    def apply(
        self, problem: TrainingProblem, tree: TreeParameters, check: Callable[[], None]
    ) -> TreeParameters:
        """Return a better feasible tree near ``tree``, or ``tree`` itself."""
        for _ in range(self.rounds):
            before, tree = tree, self._run(problem, tree, check)
            if tree is before:
                break
        return tree

    def _run(
        self, problem: TrainingProblem, tree: TreeParameters, check: Callable[[], None]
    ) -> TreeParameters:
        """Return the end of one run of SLSQP, or ``tree`` if that is no better."""
        # 1. The coordinates in which both penalties are smooth near the tree.
        space = _space_of(problem, tree, self.tied)
        if not 0 < len(space.begun) <= self.most:
            return tree
        total, n_leaves = float(problem.rows.group_totals.sum()), problem.topology.n_leaves
        n_lines = 0 if problem.rate_limits is None else len(problem.rate_limits)
        rated = [*np.flatnonzero(problem.minimum_rates), *(problem.n_groups + np.arange(n_lines))]

        # 2. Objective and constraints in these coordinates, with their slopes.
        def objective(x: FloatArray) -> tuple[float, FloatArray]:
            check()
            here = space.tree(x)
            slope = space.gathered(problem.gradient(here)) / total
            return problem.objective(here) / total, slope

        def rates(x: FloatArray) -> FloatArray:
            return -problem.shortfalls(space.tree(x))[rated] - self.margin

        def rate_slopes(x: FloatArray) -> FloatArray:
            here = space.tree(x)
            slopes = [problem.rate_gradient(here, int(k)) for k in rated]
            return np.array(
                [
                    space.gathered(TreeParameters(one.weights, one.thresholds, one.leaf_values))
                    for one in slopes
                ]
            )

        required: list[dict[str, Any]] = [{"type": "ineq", "fun": rates, "jac": rate_slopes}]
        if np.any(problem.free_leaves):
            of_leaves = np.kron(np.ones((1, problem.n_groups)), np.eye(n_leaves))
            of_classes = np.kron(np.eye(problem.n_groups), np.ones((1, n_leaves)))
            required += [space.sums(of_leaves, "eq"), space.sums(of_classes, "ineq")]
        # 3. The run; its end counts only if it is feasible and lower.
        try:
            with np.errstate(all="ignore"):
                end = minimize(
                    objective, space.begun, jac=True, method="SLSQP", bounds=space.box,
                    constraints=required,
                    options={"maxiter": self.steps, "ftol": self.decrease},
                ).x  # fmt: skip
        except OutOfBudget:
            return tree
        if not np.all(np.isfinite(end)):
            return tree
        moved = space.tree(np.clip(end, *space.box.T))
        held = problem.violation(moved).largest <= RATE_SLACK
        worse = problem.objective(moved) >= problem.objective(tree)
        return (
            tree if not held or (worse and problem.violation(tree).largest <= RATE_SLACK) else moved
        )


@dataclass(frozen=True)
class _Space:
    """Coordinates x within a box: entry i of a tree is ``signs[i] x[of[i]]``, or fixed (of -1).

    Entries are the weights, the thresholds and the leaf classes, one after the other.
    """

    origin: TreeParameters
    of: NDArray[np.intp]
    signs: FloatArray
    begun: FloatArray
    box: FloatArray

    def tree(self, x: FloatArray) -> TreeParameters:
        """The tree at ``x``."""
        moving, origin = self.of >= 0, self.origin
        entries = _entries(origin)
        entries[moving] = (self.signs * x[self.of])[moving]
        ends = np.cumsum([origin.weights.size, origin.thresholds.size])
        weights, thresholds, leaves = np.split(entries, ends)
        return TreeParameters(
            weights.reshape(origin.weights.shape), thresholds,
            leaves.reshape(origin.leaf_values.shape),
        )  # fmt: skip

    def gathered(self, slope: TreeParameters) -> FloatArray:
        """The derivative by x, from that by the entries of a tree."""
        moving = self.of >= 0
        by_entries = (self.signs * _entries(slope))[moving]
        return np.bincount(self.of[moving], by_entries, len(self.begun)).astype(float)

    def sums(self, matrix: NDArray[Any], kind: str) -> dict[str, Any]:
        """The constraint ``matrix`` . leaf classes >= 1, or = 1, in x."""
        size = self.origin.leaf_values.size
        places = self.of[-size:]
        lines = np.zeros((len(matrix), len(self.begun)))
        np.add.at(lines.T, places[places >= 0], matrix.T[places >= 0])
        rest = matrix @ np.where(places < 0, self.origin.leaf_values.ravel(), 0.0) - 1.0
        return {"type": kind, "fun": lambda x: lines @ x + rest, "jac": lambda x: lines}


def _entries(tree: TreeParameters) -> FloatArray:
    return np.concatenate([tree.weights.ravel(), tree.thresholds, tree.leaf_values.ravel()])


def _space_of(problem: TrainingProblem, tree: TreeParameters, tied: float) -> _Space:
    """The coordinates of trees with the support of ``tree``."""
    bounds, sizes = problem.bounds, np.abs(tree.weights)
    paying = problem.penalties.local.strength + problem.penalties.global_.strength > 0
    # Equal largest sizes of a row of the global penalty are one coordinate.
    top = np.zeros(sizes.shape, dtype=bool)
    rows = np.zeros(sizes.shape)
    if problem.penalties.global_.strength > 0:
        paid = problem.penalties.global_
        own = paid.rows(sizes)
        largest = np.max(own, axis=1, keepdims=True)
        top = paid.from_rows((own >= largest - tied) & (largest > 0)) > 0
        rows = paid.from_rows(np.broadcast_to(np.arange(float(len(own)))[:, None], own.shape))
    moving = np.concatenate([
        (((sizes > 0) | (not paying)) & problem.free_branches).ravel(),
        problem.free_branches & (bounds.threshold_low < bounds.threshold_high),
        np.broadcast_to(problem.free_leaves, tree.leaf_values.shape).ravel(),
    ])  # fmt: skip
    ties = np.where(top, rows, -1.0).astype(np.intp).ravel()
    names = -1 - np.arange(len(moving))  # a coordinate of its own, but for ties
    names[: ties.size] = np.where(ties >= 0, ties, names[: ties.size])
    of = np.full(len(moving), -1, dtype=np.intp)
    first, of[moving] = np.unique(names[moving], return_index=True, return_inverse=True)[1:]
    signs = np.ones(len(moving))
    signs[: sizes.size] = np.where(tree.weights < 0, -1.0, 1.0).ravel()
    most = np.where(tree.weights < 0, -bounds.low, bounds.high)
    least = np.where(tree.weights < 0, -bounds.high, bounds.low) * (not paying)
    n_shares = tree.leaf_values.size
    low = np.concatenate([least.ravel(), bounds.threshold_low, np.zeros(n_shares)])
    high = np.concatenate([most.ravel(), bounds.threshold_high, np.ones(n_shares)])
    begun = (signs * _entries(tree))[moving][first]
    box = np.column_stack([low, high])[moving][first]
    return _Space(tree, of, signs, begun, box)
