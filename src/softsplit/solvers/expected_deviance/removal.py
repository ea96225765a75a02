"""Deletion costs: how much the objective rises when parts of a tree are removed.

    gate coefficients    exact, all else kept: E' = E + sum_i v_i R_it (p' - p)(V_left - V_right)
    branch, to a side    the same with p' = 1 or 0
    leaf coefficients S  1/2 th_S' [(H^-1)_SS]^-1 th_S, the leaf refitted (exact for squares)
    a branch above two   both fitted by one function of the columns of either (exact for squares)
    leaves, to one leaf
    a variable           its gates together, plus each of its leaves

with H the Hessian of a leaf at the gates as they are (descent.py). A change of E costs
power n log(E'/E), less the ridge saved. A round removes the cheapest parts for their size, some
at a time; in a leaf, theta and H^-1 follow every removal by the same blocks, so that the next one
is priced as if the leaf had been refitted:

    th <- th - B th_S,    H^-1 <- H^-1 - B H^-1[S, :],    B = H^-1[:, S] [(H^-1)_SS]^-1
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.solvers.expected_deviance.descent import gram, leaf_hessian
from softsplit.solvers.expected_deviance.problem import (
    BRANCH_SIZE,
    VARIABLE_SIZE,
    NumberProblem,
    Routed,
    SoftTree,
    routed,
)
from softsplit.support.arrays import FloatArray

CHEAP = 0.3
"""Units of log-likelihood for a coefficient that a round may always spend: less than any strength
that is compared."""


@dataclass
class LeafBlock:
    """Coefficients of a leaf, the constant last, with their inverse Hessian."""

    columns: NDArray[np.intp]
    theta: FloatArray
    hessian: FloatArray
    inverse: NDArray[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.inverse = np.linalg.inv(self.hessian)

    def single_costs(self) -> FloatArray:
        """Return the cost of each coefficient but the constant."""
        return np.asarray(0.5 * self.theta[:-1] ** 2 / np.diag(self.inverse)[:-1])

    def cost(self, out: NDArray[np.intp]) -> float:
        """Return the cost of removing the coefficients at some places together."""
        if len(out) == 1:
            return float(0.5 * self.theta[out[0]] ** 2 / self.inverse[out[0], out[0]])
        if len(out) == 2:  # the inverse of two by two, which most numbers with a hinge need
            i, j = out
            a, b, c = self.inverse[i, i], self.inverse[i, j], self.inverse[j, j]
            u, v = self.theta[i], self.theta[j]
            return float(0.5 * (c * u * u - 2.0 * b * u * v + a * v * v) / (a * c - b * b))
        some = self.theta[out]
        return 0.5 * float(some @ np.linalg.solve(self.inverse[np.ix_(out, out)], some))

    def remove(self, out: NDArray[np.intp]) -> None:
        """Remove coefficients and refit the others."""
        if len(out) == 1:
            gain = self.inverse[out] / self.inverse[out[0], out[0]]
        else:
            gain = np.linalg.solve(self.inverse[np.ix_(out, out)], self.inverse[out])
        self.theta = self.theta - self.theta[out] @ gain
        self.inverse = self.inverse - self.inverse[:, out] @ gain
        kept = np.ones(len(self.theta), dtype=bool)
        kept[out] = False
        self.columns, self.hessian = self.columns[kept[:-1]], self.hessian[kept][:, kept]
        self.theta, self.inverse = self.theta[kept], self.inverse[kept][:, kept]


class Removal(NamedTuple):
    """A part that can be removed: coefficients, or a branch for one of its children.

    ``by`` is 0 for coefficients, -1 or 1 for the right or left child, 2 for both leaves as one.
    """

    per_size: float
    cost: float
    gates: tuple[tuple[int, tuple[int, ...]], ...] = ()
    leaves: tuple[tuple[int, tuple[int, ...]], ...] = ()
    branch: int = -1
    by: int = 0


class Pruning:
    """The removals that a tree offers, and the tree after the cheapest of them."""

    def __init__(self, problem: NumberProblem, tree: SoftTree) -> None:
        self.problem, self.tree = problem, tree
        self.lines = problem.lines[tree.columns]
        self.route: Routed = routed(problem, tree, self.lines)
        self.groups = problem.groups[tree.columns]
        n, free = tree.n_branches, tree.free
        self.blocks = {
            leaf: LeafBlock(
                np.flatnonzero(free[n + leaf, :-1]),
                tree.matrix[n + leaf, free[n + leaf]],
                leaf_hessian(problem, tree, self.route, leaf, self.lines),
            )
            for leaf in np.flatnonzero(tree.alive).tolist()
        }
        self.gains = {
            t: problem.targets.totals
            * self.route.reach[t]
            * (self.route.values[2 * t + 1] - self.route.values[2 * t + 2])
            for t in np.flatnonzero(tree.open).tolist()
        }

    # --- costs ----------------------------------------------------------------------------------

    def increase(self, change: FloatArray | float) -> FloatArray | float:
        """Return the cost of changes of E."""
        expected = self.route.expected
        floor = 1e-6 * self.problem.featureless * self.problem.total
        ratio = (expected + floor + change) / (expected + floor)
        power = self.problem.power * self.problem.total
        return np.asarray(power * np.log(np.maximum(ratio, 1e-12)))

    def gate_changes(self, t: int, out: list[NDArray[np.intp]]) -> FloatArray:
        """Return the change of E by removing each of some sets of columns from a gate."""
        weights, scores = self.tree.matrix[t], self.route.scores[t]
        shifts = np.stack([weights[some] @ self.lines[some] for some in out])
        with np.errstate(over="ignore"):
            gates = 1.0 / (1.0 + np.exp(shifts - scores))
        return np.asarray((gates - self.route.gates[t]) @ self.gains[t])

    def saved_ridge(self, t: int, out: NDArray[np.intp]) -> float:
        weights = self.tree.matrix[t, out]
        return 0.5 * self.problem.ridges.gates * float(weights @ weights)

    def removals(self) -> list[Removal]:
        """Return all removals, the cheapest for their size first."""
        places = self._places()
        found = [*self._variables(places), *self._branches(places), *self._coefficients(places)]
        return sorted(found, key=lambda step: step.per_size)

    def _places(self) -> dict[int, int]:
        """Number of coefficients of each variable."""
        counts = self.tree.support.sum(axis=0)
        totals = np.bincount(self.groups, counts).astype(int)
        return {int(v): int(totals[v]) for v in np.unique(self.groups[counts > 0])}

    def _price(self, variable: int) -> float:
        return VARIABLE_SIZE * float(self.problem.prices[variable])

    def _coefficients(self, places: dict[int, int]) -> Iterator[Removal]:
        """Removals of single coefficients, and of all columns of a variable from a gate or leaf."""
        for t in self.gains:
            columns = np.flatnonzero(self.tree.free[t, :-1])
            sets = [np.array([j]) for j in columns]
            for v in np.unique(self.groups[columns]):
                of_variable = columns[self.groups[columns] == v]
                if len(of_variable) > 1:
                    sets.append(of_variable)
            sets = [some for some in sets if len(some) < len(columns)]
            if not sets:
                continue
            costs = self.increase(self.gate_changes(t, sets))
            for some, cost in zip(sets, np.atleast_1d(costs).tolist(), strict=True):
                cost -= self.saved_ridge(t, some)
                v = int(self.groups[some[0]])
                saved = len(some) + self._price(v) * (places[v] == len(some))
                yield Removal(cost / saved, cost, gates=((t, tuple(some.tolist())),))
        for leaf, block in self.blocks.items():
            groups = self.groups[block.columns]
            for j, cost in zip(block.columns.tolist(), block.single_costs().tolist(), strict=True):
                v = int(self.groups[j])
                saved = 1.0 + self._price(v) * (places[v] == 1)
                yield Removal(cost / saved, cost, leaves=((leaf, (j,)),))
            for v, count in zip(*np.unique(groups, return_counts=True), strict=True):
                if count > 1:
                    out = np.flatnonzero(groups == v)
                    cost = block.cost(out)
                    saved = count + self._price(int(v)) * (places[int(v)] == count)
                    held = tuple(block.columns[out].tolist())
                    yield Removal(cost / saved, cost, leaves=((leaf, held),))

    def _variables(self, places: dict[int, int]) -> Iterator[Removal]:
        """Removals of all coefficients of a variable that stands in several gates and leaves."""
        for v, count in places.items():
            cost, change = 0.0, 0.0
            gates, leaves = [], []
            for t in self.gains:
                out = np.flatnonzero(self.tree.free[t, :-1] & (self.groups == v))
                if len(out):
                    change += float(self.gate_changes(t, [out])[0])
                    cost -= self.saved_ridge(t, out)
                    gates.append((t, tuple(out.tolist())))
            for leaf, block in self.blocks.items():
                out = np.flatnonzero(self.groups[block.columns] == v)
                if len(out):
                    cost += block.cost(out)
                    leaves.append((leaf, tuple(block.columns[out].tolist())))
            if len(gates) + len(leaves) > 1:
                cost += float(self.increase(change))
                saved = count + self._price(v)
                yield Removal(cost / saved, cost, tuple(gates), tuple(leaves))

    def _branches(self, places: dict[int, int]) -> Iterator[Removal]:
        """Removals of branches."""
        tree = self.tree
        for t, gain in self.gains.items():
            gate, children = self.route.gates[t], (2 * t + 1, 2 * t + 2)
            for by, side in ((1, 1.0), (-1, 0.0)):
                kept = tree.replaced(t, by > 0)
                saved = max(tree.size(self.problem) - kept.size(self.problem), 1.0)
                cost = float(self.increase(float((side - gate) @ gain)))
                cost -= self.saved_ridge(t, np.flatnonzero(tree.free[t, :-1]))
                yield Removal(cost / saved, cost, branch=t, by=by)
            ends = [tree.only_leaf(child) for child in children]
            if None not in ends:
                a, b = (leaf for leaf in ends if leaf is not None)
                cost, line, _ = self.as_one(a, b)
                support = tree.support[tree.n_branches :]
                held = int(support[a].sum() + support[b].sum()) - (len(line) - 1)
                saved = BRANCH_SIZE + float(tree.free[t, :-1].sum()) + held
                gone = tree.free[t, :-1]
                for v in np.unique(self.groups[gone]).tolist():
                    rest = places[v] - int((self.groups[gone] == v).sum())
                    saved += self._price(v) * (rest == 0)
                yield Removal(cost / saved, cost, branch=t, by=2)

    def as_one(self, a: int, b: int) -> tuple[float, FloatArray, NDArray[np.bool_]]:
        """Return the cost of one function in place of two leaves, the function, and its columns."""
        tree, n = self.tree, self.tree.n_branches
        free: NDArray[np.bool_] = tree.free[n + a] | tree.free[n + b]
        ridge = np.full(int(free.sum()), self.problem.ridges.leaves)
        ridge[-1] = 1e-6
        slope = self.problem.slope(self.route.expected)
        hessian, pull, cost = np.zeros((len(ridge),) * 2), np.zeros(len(ridge)), 0.0
        for leaf in (a, b):
            here = tree.matrix[n + leaf, free]
            weight = slope * self.problem.targets.totals * self.route.reach[n + leaf]
            bends = gram(self.lines, weight * self.route.terms.curvature[leaf], free)
            by_score = weight * self.route.terms.slope[leaf]
            slopes = np.append(self.lines[free[:-1]] @ by_score, by_score.sum())
            # the model s (th - th_l) + 1/2 (th - th_l) H (th - th_l) of what the leaf costs
            hessian += bends
            pull += bends @ here - slopes
            cost += 0.5 * float(here @ bends @ here) - float(slopes @ here)
            cost -= 0.5 * float(ridge @ here**2)
        theta: NDArray[Any] = np.linalg.solve(hessian + np.diag(ridge), pull)
        return cost - 0.5 * float(theta @ pull), theta, free

    # --- removing -------------------------------------------------------------------------------

    def pruned(self, wanted: float) -> SoftTree:
        """Return the tree after removals of about the size ``wanted``.

        1. Slopes of leaves that have the wrong sign.
        2. The cheapest removals: a branch alone, or coefficients for as long as they are CHEAP or
           cost little more than the first.
        3. Branches that are left without coefficients.
        """
        # 1. Signs.
        free, matrix = self.tree.free.copy(), self.tree.matrix.copy()
        n = self.tree.n_branches
        gone = sum(self._right_signs(leaf, block, free) for leaf, block in self.blocks.items())
        # 2. The cheapest removals.
        steps = self.removals()
        most = max(CHEAP, 2.0 * steps[0].per_size) if steps else 0.0
        out_of: dict[int, list[int]] = {}
        for step in steps:
            if gone and (gone >= wanted or step.per_size > most):
                break
            if step.branch >= 0:
                if gone == 0.0:
                    return self._without_branch(step)
                continue
            size = step.cost / step.per_size if step.per_size else 1.0
            if gone and not self._cost_after(step, free, out_of) <= most * size:
                continue
            for t, out in step.gates:
                free[t, list(out)] = False
                out_of.setdefault(t, []).extend(out)
            for leaf, out in step.leaves:
                block = self.blocks[leaf]
                block.remove(np.searchsorted(block.columns, out))
                free[n + leaf, list(out)] = False
                self._right_signs(leaf, block, free)
            gone += size
        # 3. What is left.
        for leaf, block in self.blocks.items():
            matrix[n + leaf, free[n + leaf]] = block.theta
        return without_idle(SoftTree(self.tree.columns, matrix, free).with_free(free))

    def _cost_after(
        self, step: Removal, free: NDArray[np.bool_], out_of: dict[int, list[int]]
    ) -> float:
        """Return the cost of a removal after those ``out_of`` gates, and of leaves; infinite if a
        part of it is gone already or a gate would lose its last coefficient."""
        n, cost = self.tree.n_branches, 0.0
        for t, out in step.gates:
            if not free[t, list(out)].all() or free[t, :-1].sum() == len(out):
                return np.inf
            before = out_of.get(t, [])
            both = [np.array(some, dtype=np.intp) for some in ([*before, *out], before)]
            changes = self.increase(self.gate_changes(t, both))
            cost += float(np.diff(np.atleast_1d(changes)[::-1])[0])
            cost -= self.saved_ridge(t, np.array(out))
        for leaf, out in step.leaves:
            if not free[n + leaf, list(out)].all():
                return np.inf
            block = self.blocks[leaf]
            cost += block.cost(np.searchsorted(block.columns, out))
        return cost

    def _right_signs(self, leaf: int, block: LeafBlock, free: NDArray[np.bool_]) -> float:
        """Remove slopes of the wrong sign from a leaf, one after the other; return how many."""
        removed, n = 0.0, self.tree.n_branches
        signs = self.problem.signs[self.tree.columns]
        while True:
            wrong = np.flatnonzero(signs[block.columns] * block.theta[:-1] < 0.0)
            if not len(wrong):
                return removed
            out = wrong[[int(np.argmin(block.single_costs()[wrong]))]]
            free[n + leaf, block.columns[out]] = False
            block.remove(out)
            removed += 1.0

    def _without_branch(self, step: Removal) -> SoftTree:
        if step.by < 2:
            return without_idle(self.tree.replaced(step.branch, step.by > 0))
        tree, n = self.tree, self.tree.n_branches
        ends = [tree.only_leaf(2 * step.branch + 1 + side) for side in (0, 1)]
        a, b = (leaf for leaf in ends if leaf is not None)
        matrix, free = tree.matrix.copy(), tree.free.copy()
        _, theta, free[n + a] = self.as_one(a, b)
        matrix[n + a] = 0.0
        matrix[n + a, free[n + a]] = theta
        return without_idle(SoftTree(tree.columns, matrix, free).replaced(step.branch, True))


def without_idle(tree: SoftTree) -> SoftTree:
    """Return the tree without branches that have no coefficients.

    Such a branch over two leaves becomes their mean by its constant gate; another becomes the child
    to which it sends more.
    """
    n = tree.n_branches
    idle = np.flatnonzero(tree.open & ~tree.free[:n, :-1].any(axis=1))
    if not len(idle):
        return tree.compact()
    t = int(idle[-1])
    share = 1.0 / (1.0 + np.exp(-tree.matrix[t, -1]))
    left, right = (tree.only_leaf(2 * t + 1 + side) for side in (0, 1))
    if left is not None and right is not None:
        matrix, free = tree.matrix.copy(), tree.free.copy()
        matrix[n + left] = share * matrix[n + left] + (1.0 - share) * matrix[n + right]
        free[n + left] |= free[n + right]
        return without_idle(SoftTree(tree.columns, matrix, free).replaced(t, True))
    return without_idle(tree.replaced(t, bool(share > 0.5)))
