"""The deviance expected over the leaves, as a function of gates and leaves.

With standardised columns z, gates p_t = F(w_t . z - m_t), leaf probabilities P_l and leaf scores
eta_l = a_l + u_l . z plus the offset of the row,

    E = sum_i v_i sum_l P_il d(y_i, eta_il)
    minimise   power n log(E / n) + 1/2 gate_ridge |w|^2 + 1/2 leaf_ridge |u|^2,     n = sum_i v_i

    dE/dz_t    = slope of the pass (engines/tree_pass.py)      dE/deta_l = v P_l d'(y, eta_l)

With ``mixture`` it is the squared error of the mean over all leaves instead, as in other soft
regression trees,

    E = sum_i v_i (sum_l P_il eta_il - y_i)^2

while removals are still priced by the deviance expected over the leaves.

A tree is a matrix (n_branches + n_leaves, n_columns + 1): the gates (w_t, -m_t) and then the leaves
(u_l, a_l), with a mask of what is free. A gate that sends all rows to one side is free of nothing
and has the constant +-SHUT; leaves that nothing reaches are free of nothing.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.tree_pass import expected_pass
from softsplit.problem.targets import Numbers
from softsplit.support.arrays import FloatArray
from softsplit.tree.leaf_families import LeafFamily, Terms
from softsplit.tree.parameters import Topology
from softsplit.tree.routing import node_reach

SHUT = 40.0
"""Score of a branch that sends all rows to one side."""

PIECE = 16_384
"""Rows that a thread takes at a time; the bits of sums over more rows depend on it."""

LEAST = 1e-6
"""Of the deviance of a tree without features: less than this is a perfect fit."""

BRANCH_SIZE, VARIABLE_SIZE = 2.0, 4.0
"""Sizes of a branch and of a variable, in units of a coefficient."""


FEW_ROWS = 110
"""Fewer rows than this have a stronger ridge of leaf slopes, by the square of what is missing."""


@dataclass(frozen=True)
class Ridges:
    """Ridges of gates and of leaf slopes, for standardised columns and log-likelihoods."""

    gates: float = 0.3
    leaves: float = 2.0

    @classmethod
    def of(cls, n_rows: float) -> Self:
        """Return the ridges for so many rows."""
        return cls(leaves=cls.leaves * max(1.0, FEW_ROWS / n_rows) ** 2)


@dataclass(frozen=True, eq=False)
class NumberProblem:
    """Standardised rows.

    Attributes
    ----------
    lines : array (n_columns, n_rows)
    targets : Numbers
        In the units of the family, weights about 1.
    family : LeafFamily
    groups : int array (n_columns,)
        Variable of each column.
    prices : array (n_variables,)
    signs : array (n_columns,)
        Sign that leaf slopes must have, 0 for any; columns with a sign are in no gate.
    ridges : Ridges
    threads : int
    mixture : bool
        Whether the error is that of the mean over the leaves.
    """

    lines: FloatArray
    targets: Numbers
    family: LeafFamily
    groups: NDArray[np.intp]
    prices: FloatArray
    signs: FloatArray
    ridges: Ridges = Ridges()
    threads: int = 1
    mixture: bool = False

    @property
    def n_columns(self) -> int:
        return len(self.lines)

    @cached_property
    def total(self) -> float:
        return float(self.targets.totals.sum())

    @cached_property
    def start(self) -> float:
        """Score of the tree without features."""
        targets = self.targets
        return self.family.start(targets.values, targets.totals, targets.offset)

    @cached_property
    def featureless(self) -> float:
        """Mean deviance of the tree without features."""
        scores = self.targets.offset + self.start
        costs = self.family.deviance(self.targets.values, scores)
        return max(float(self.targets.totals @ costs) / self.total, 1e-9)

    @cached_property
    def power(self) -> float:
        """The power of the family, corrected where its scale is known."""
        return self.family.power * self.family.scale_known(self.featureless)

    def part(self, rows: NDArray[np.intp]) -> NumberProblem:
        """Return the problem on some rows, in the same units."""
        lines = np.ascontiguousarray(self.lines[:, rows])
        return replace(self, lines=lines, targets=self.targets.part(rows))

    def terms(self, scores: FloatArray) -> Terms:
        """Return deviances and derivatives of leaf scores without offset, (n_leaves, n_rows)."""
        return self.family.terms(self.targets.values, scores + self.targets.offset)

    def value(self, expected: float) -> float:
        """Return power n log(E / n), where E is ``expected``; and the slope by E from ``slope``."""
        return self.power * self.total * float(np.log(self._floored(expected)))

    def slope(self, expected: float) -> float:
        return self.power / self._floored(expected)

    def _floored(self, expected: float) -> float:
        return expected / self.total + LEAST * self.featureless


@dataclass(frozen=True, eq=False)
class SoftTree:
    """A tree on some columns of a problem.

    Attributes
    ----------
    columns : int array (n_used,)
    matrix : array (n_branches + n_leaves, n_used + 1)
    free : bool array, as ``matrix``
    """

    columns: NDArray[np.intp]
    matrix: FloatArray
    free: NDArray[np.bool_]

    @classmethod
    def leaf(cls, problem: NumberProblem) -> SoftTree:
        """Return a tree without questions whose leaf may use all columns."""
        k = problem.n_columns
        matrix, free = np.zeros((3, k + 1)), np.zeros((3, k + 1), dtype=bool)
        matrix[0, -1], matrix[1:, -1] = SHUT, problem.start
        free[1] = True
        return cls(np.arange(k), matrix, free)

    @property
    def n_branches(self) -> int:
        return len(self.matrix) // 2

    @property
    def n_leaves(self) -> int:
        return self.n_branches + 1

    @property
    def depth(self) -> int:
        """Levels of questions; 0 for a tree that asks nothing."""
        return int(self.open.any()) and Topology.with_branches(self.n_branches).depth

    @property
    def open(self) -> NDArray[np.bool_]:
        """Branches that ask something."""
        return self.free[: self.n_branches, -1]

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Leaves that rows may reach."""
        return self.free[self.n_branches :, -1]

    @property
    def support(self) -> NDArray[np.bool_]:
        """Free coefficients, without constants."""
        return self.free[:, :-1]

    def size(self, problem: NumberProblem) -> float:
        """Return coefficients, branches and priced variables, in units of a coefficient."""
        used = np.unique(problem.groups[self.columns[self.support.any(axis=0)]])
        prices = VARIABLE_SIZE * float(problem.prices[used].sum())
        return float(self.support.sum()) + BRANCH_SIZE * float(self.open.sum()) + prices

    def only_leaf(self, node: int) -> int | None:
        """Return the leaf to which all rows of a node go, or None where something is asked."""
        while node < self.n_branches:
            if self.open[node]:
                return None
            node = 2 * node + 1 + int(self.matrix[node, -1] < 0)
        return node - self.n_branches

    def compact(self) -> SoftTree:
        """Return the tree on the columns it uses."""
        kept = self.support.any(axis=0)
        if kept.all():
            return self
        held = np.append(kept, True)
        return SoftTree(self.columns[kept], self.matrix[:, held], self.free[:, held])

    def with_free(self, free: NDArray[np.bool_]) -> SoftTree:
        """Return the tree with fewer coefficients; those that are not free are zero."""
        matrix = np.where(free, self.matrix, 0.0)
        matrix[:, -1] = self.matrix[:, -1]
        return replace(self, matrix=matrix, free=free)

    def with_constants(self) -> SoftTree:
        """Return the tree with constant leaves."""
        free = self.free.copy()
        free[self.n_branches :, :-1] = False
        return self.with_free(free)

    def replaced(self, branch: int, by_left: bool) -> SoftTree:
        """Return the tree in which a child stands in the place of a branch."""
        matrix, free = np.zeros_like(self.matrix), np.zeros_like(self.free)
        matrix[: self.n_branches, -1] = SHUT

        def copy(source: int, place: int) -> None:
            if source == branch:
                source = 2 * branch + 1 + (not by_left)
            if place < self.n_branches and source >= self.n_branches:
                copy(source, 2 * place + 1)  # a leaf that moves up: below it a shut branch
                return
            if place < self.n_branches and not self.open[source]:
                side = 2 * source + 1 + (self.matrix[source, -1] < 0)
                if side < len(self.matrix):
                    copy(side, 2 * place + 1)
                return
            matrix[place], free[place] = self.matrix[source], self.free[source]
            if place < self.n_branches:
                copy(2 * source + 1, 2 * place + 1)
                copy(2 * source + 2, 2 * place + 2)

        copy(0, 0)
        return SoftTree(self.columns, matrix, free).shallow()

    def shallow(self) -> SoftTree:
        """Return the tree without the lowest level if no branch there asks anything."""
        n = self.n_branches
        if n == 1 or self.open[n // 2 :].any():
            return self
        kept = np.append(np.arange(n // 2), n + 2 * np.arange(n // 2 + 1))
        return SoftTree(self.columns, self.matrix[kept], self.free[kept]).shallow()


class Routed(NamedTuple):
    """Rows on their way through a tree; shapes (.., n_rows).

    ``reach`` are the probabilities of all nodes, ``values`` the expected deviance below each,
    ``terms`` those of the leaves.
    """

    scores: FloatArray
    gates: FloatArray
    reach: FloatArray
    values: FloatArray
    terms: Terms
    expected: float


def scores_of(matrix: FloatArray, lines: FloatArray) -> FloatArray:
    scores: FloatArray = matrix[:, :-1] @ lines
    scores += matrix[:, -1:]
    return scores


def routed(problem: NumberProblem, tree: SoftTree, lines: FloatArray | None = None) -> Routed:
    """Route the rows; ``lines`` are those of the tree's columns if the caller has them."""
    n = tree.n_branches
    scores = scores_of(tree.matrix, problem.lines[tree.columns] if lines is None else lines)
    with np.errstate(over="ignore"):
        gates = 1.0 / (1.0 + np.exp(-scores[:n]))
    terms = problem.terms(scores[n:])
    values = np.concatenate([np.empty_like(gates), terms.value])
    for t in range(n - 1, -1, -1):
        values[t] = gates[t] * values[2 * t + 1] + (1.0 - gates[t]) * values[2 * t + 2]
    expected = float(problem.targets.totals @ values[0])
    return Routed(scores[:n], gates, node_reach(gates, 1.0 - gates), values, terms, expected)


class Objective:
    """The objective of a tree's free coefficients, with its gradient."""

    def __init__(self, problem: NumberProblem, tree: SoftTree) -> None:
        self.problem, self.tree = problem, tree
        self.lines = problem.lines[tree.columns]
        ridge = np.zeros_like(tree.matrix)
        ridge[: tree.n_branches, :-1] = problem.ridges.gates
        ridge[tree.n_branches :, :-1] = problem.ridges.leaves
        self.ridge = ridge[tree.free]

    def matrix(self, x: FloatArray) -> FloatArray:
        matrix = self.tree.matrix.copy()
        matrix[self.tree.free] = x
        return matrix

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient at the free coefficients ``x``."""
        expected, gradient = self.sums(self.matrix(x))
        shrunk = self.ridge * x
        slopes = self.problem.slope(expected) * gradient[self.tree.free] + shrunk
        return self.problem.value(expected) + 0.5 * float(shrunk @ x), slopes

    def sums(self, matrix: FloatArray) -> tuple[float, FloatArray]:
        """Return E and dE by the matrix; the pieces of many rows are shared by threads."""
        n_rows = self.lines.shape[1]
        if n_rows <= PIECE:
            return self._piece(matrix, slice(None))
        pieces = [slice(begin, begin + PIECE) for begin in range(0, n_rows, PIECE)]
        if self.problem.threads > 1:
            with ThreadPoolExecutor(self.problem.threads) as pool:
                sums = list(pool.map(lambda some: self._piece(matrix, some), pieces))
        else:
            sums = [self._piece(matrix, some) for some in pieces]
        return sum(part for part, _ in sums), np.sum([part for _, part in sums], axis=0)

    def _piece(self, matrix: FloatArray, some: slice) -> tuple[float, FloatArray]:
        targets, n = self.problem.targets, self.tree.n_branches
        lines = self.lines[:, some]
        scores = matrix[:, :-1] @ lines
        scores += matrix[:, -1:]
        scores[n:] += targets.offset[some]
        slopes, weight = np.empty_like(scores), targets.totals[some]
        if self.problem.mixture:
            with np.errstate(over="ignore"):
                gates = 1.0 / (1.0 + np.exp(-scores[:n]))
            shares = node_reach(gates, 1.0 - gates)[n:]
            away = np.sum(shares * scores[n:], axis=0) - targets.values[some]
            expected = weight @ away**2
            leaves = np.ascontiguousarray(scores[n:])
            expected_pass(scores[:n], slopes[:n], 2.0 * weight * away, leaves, slopes[n:])
        else:
            costs, by_score, _ = self.problem.family.terms(targets.values[some], scores[n:])
            costs = np.ascontiguousarray(costs)
            expected = expected_pass(scores[:n], slopes[:n], weight, costs, slopes[n:])
            slopes[n:] *= by_score
        gradient = np.empty_like(matrix)
        np.matmul(slopes, lines.T, out=gradient[:, :-1])
        gradient[:, -1] = slopes.sum(axis=1)
        return float(expected), gradient
