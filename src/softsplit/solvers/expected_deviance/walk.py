"""The walk of a soft tree: rows take the likelier side, and leaves are refitted on their rows.

1. A branch that leaves too few rows on a side is replaced by the other side.
2. Each leaf is fitted anew, by Newton steps, on the rows that walk into it:

       minimise   c sum_i v_i d(y_i, a + u . z_i) + 1/2 leaf_ridge |u|^2,     c = power n / E

   and slopes of the wrong sign are removed, one after the other.
3. Scores are bounded by those of the leaf's rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsplit.solvers.expected_deviance.descent import gram
from softsplit.solvers.expected_deviance.problem import NumberProblem, SoftTree, scores_of
from softsplit.solvers.expected_deviance.removal import LeafBlock
from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import node_reach
from softsplit.tree.ways import hard_leaves

NEWTON_STEPS = 8


@dataclass(frozen=True, eq=False)
class WalkedTree:
    """A tree whose rows take one way each.

    ``low`` and ``high`` bound the scores of each leaf, ``rows`` is the weight of its rows,
    ``deviance`` their mean deviance and ``scale`` the root of the mean squared difference of target
    and prediction; arrays (n_leaves,). ``mixed`` is the soft tree with the same branches, and
    ``mixed_bounds`` are bounds of its scores.
    """

    tree: SoftTree
    low: FloatArray
    high: FloatArray
    rows: FloatArray
    deviance: FloatArray
    scale: FloatArray
    mixed: SoftTree
    mixed_bounds: tuple[FloatArray, FloatArray]

    def size(self, problem: NumberProblem) -> tuple[int, int, int]:
        """Return numbers of variables, coefficients and leaves."""
        tree = self.tree
        used = np.unique(problem.groups[tree.columns[tree.support.any(axis=0)]])
        return len(used), int(tree.support.sum()), int(tree.alive.sum())

    def scores(self, lines: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return the score of each row, and its leaf; ``lines`` are all columns of a problem."""
        tree, n = self.tree, self.tree.n_branches
        held = lines[tree.columns]
        leaves = hard_leaves(scores_of(tree.matrix[:n], held))
        scores = scores_of(tree.matrix[n:], held)[leaves, np.arange(len(leaves))]
        return np.clip(scores, self.low[leaves], self.high[leaves]), leaves

    def mixture(self, lines: FloatArray) -> FloatArray:
        """Return the mean score of each row over the leaves of the soft tree."""
        tree, n, (low, high) = self.mixed, self.mixed.n_branches, self.mixed_bounds
        scores = scores_of(tree.matrix, lines[tree.columns])
        with np.errstate(over="ignore"):
            gates = 1.0 / (1.0 + np.exp(-scores[:n]))
        shares = node_reach(gates, 1.0 - gates)[n:]
        return np.asarray(np.sum(shares * np.clip(scores[n:], low[:, None], high[:, None]), axis=0))


def walk_of(problem: NumberProblem, tree: SoftTree, least_rows: float) -> WalkedTree:
    """Return the walk of a soft tree."""
    if not problem.mixture:
        tree = with_enough_rows(problem, tree, least_rows)
    n, targets = tree.n_branches, problem.targets
    lines = problem.lines[tree.columns]
    leaves = hard_leaves(scores_of(tree.matrix[:n], lines))
    scores = scores_of(tree.matrix[n:], lines)[leaves, np.arange(len(leaves))]
    costs = problem.family.deviance(targets.values, scores + targets.offset)
    slope = problem.slope(float(targets.totals @ costs))
    matrix, free = tree.matrix.copy(), tree.free.copy()
    low, high, rows, deviance, scale = np.zeros((5, tree.n_leaves))
    for leaf in np.flatnonzero(tree.alive).tolist():
        some = np.flatnonzero(leaves == leaf)
        if not len(some):  # of a tree that predicts by the mixture
            continue
        part = _LeafRows(problem, lines[:, some], some, slope)
        line, kept = part.fitted(matrix[n + leaf], free[n + leaf], problem.signs[tree.columns])
        matrix[n + leaf], free[n + leaf] = line, kept
        scores = line[:-1] @ part.lines + line[-1]
        low[leaf], high[leaf] = scores.min(), scores.max()
        rows[leaf] = part.weight.sum()
        costs = problem.family.deviance(part.y, scores + part.offset)
        deviance[leaf] = part.weight @ costs / rows[leaf]
        away = part.y - problem.family.prediction(scores + part.offset)
        scale[leaf] = np.sqrt(part.weight @ away**2 / rows[leaf])
    hard = SoftTree(tree.columns, matrix, free)
    return WalkedTree(hard, low, high, rows, deviance, scale, tree, _bounds(problem, tree))


def _bounds(problem: NumberProblem, tree: SoftTree) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest score of the rows that walk into each leaf; of all rows for
    leaves that none walks into, and where the mixture is trained."""
    n = tree.n_branches
    scores = scores_of(tree.matrix, problem.lines[tree.columns])
    if problem.mixture:
        return scores[n:].min(axis=1), scores[n:].max(axis=1)
    leaves = hard_leaves(scores[:n])
    own = scores[n:][leaves, np.arange(len(leaves))]
    low, high = np.full(n + 1, np.inf), np.full(n + 1, -np.inf)
    np.minimum.at(low, leaves, own)
    np.maximum.at(high, leaves, own)
    empty = low > high
    return np.where(empty, own.min(), low), np.where(empty, own.max(), high)


def with_enough_rows(problem: NumberProblem, tree: SoftTree, least: float) -> SoftTree:
    """Return the tree without branches that leave less than ``least`` rows on a side."""
    while tree.open.any():
        n = tree.n_branches
        leaves = hard_leaves(scores_of(tree.matrix[:n], problem.lines[tree.columns]))
        counts = np.zeros(len(tree.matrix))
        counts[n:] = np.bincount(leaves, problem.targets.totals, n + 1)
        for t in range(n - 1, -1, -1):
            counts[t] = counts[2 * t + 1] + counts[2 * t + 2]
        small = [
            t
            for t in np.flatnonzero(tree.open).tolist()
            if min(counts[2 * t + 1], counts[2 * t + 2]) < least
        ]
        if not small:
            return tree
        t = small[-1]
        tree = tree.replaced(t, bool(counts[2 * t + 1] >= counts[2 * t + 2]))
    return tree


class _LeafRows:
    """The rows of a leaf."""

    def __init__(
        self, problem: NumberProblem, lines: FloatArray, some: NDArray[np.intp], slope: float
    ) -> None:
        self.problem, self.lines, self.slope = problem, lines, slope
        self.y = problem.targets.values[some]
        self.weight = problem.targets.totals[some]
        self.offset = problem.targets.offset[some]

    def objective(self, line: FloatArray) -> float:
        scores = line[:-1] @ self.lines + line[-1] + self.offset
        costs = self.problem.family.deviance(self.y, scores)
        ridge = 0.5 * self.problem.ridges.leaves * float(line[:-1] @ line[:-1])
        return self.slope * float(self.weight @ costs) + ridge

    def fitted(
        self, line: FloatArray, free: NDArray[np.bool_], signs: FloatArray
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the fitted function, and which of its coefficients are left."""
        free = free.copy()
        while True:
            line, hessian = self._newton(line, free)
            wrong = np.flatnonzero(signs * line[:-1] < 0.0)
            if not len(wrong):
                return line, free
            block = LeafBlock(np.flatnonzero(free[:-1]), line[free], hessian)
            costs = np.full(len(line) - 1, np.inf)
            costs[block.columns] = block.single_costs()
            out = wrong[int(np.argmin(costs[wrong]))]
            free[out], line[out] = False, 0.0

    def _newton(self, line: FloatArray, free: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        """Return the function after Newton steps, each halved until it descends, and a Hessian."""
        ridge = np.full(int(free.sum()), self.problem.ridges.leaves)
        ridge[-1] = 1e-6
        held, value = self.lines[free[:-1]], self.objective(line)
        for _ in range(NEWTON_STEPS):
            scores = line[:-1] @ self.lines + line[-1] + self.offset
            _, by_score, curvature = self.problem.family.terms(self.y, scores)
            weight = self.weight * curvature
            hessian = self.slope * gram(self.lines, weight, free) + np.diag(ridge)
            pull = self.slope * self.weight * by_score
            gradient = np.append(held @ pull, pull.sum()) + ridge * line[free]
            step, length = np.linalg.solve(hessian, gradient), 1.0
            while length > 1e-4:
                there = line.copy()
                there[free] -= length * step
                lower = self.objective(there)
                if lower <= value:
                    break
                length *= 0.5
            else:
                break
            gain, line, value = value - lower, there, lower
            if gain < 1e-8 * max(1.0, abs(value)):
                break
        return line, hessian
