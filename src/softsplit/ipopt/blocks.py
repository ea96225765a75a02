"""Derivatives over the variables of the branches, shared by both strategies.

    Hessian blocks   d2 / d(branch s) d(branch t) of sum_i sum_l P_il V_il, s above or equal to t
    leaf steps       every (leaf, step on its path) whose branch is free
    mass slopes      S[k, step] = sum over rows of class k of weight_i dP_il / d(branch of step)

Leaf values V have the sample weights in them; S is (n_classes, n_steps, n_features + 1).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from softsplit.engines.block import CollapsedRows
from softsplit.engines.samples import Samples
from softsplit.ipopt.program import IntArray, outer_positions, upper_triangle
from softsplit.ipopt.second_order import RoutedRows, extended_rows, related_pairs, weighted_gram
from softsplit.ipopt.second_order_blocks import FreeRows
from softsplit.ipopt.variables import TreeVariables
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Step, TreeParameters


class LeafStep(NamedTuple):
    """A free branch on the path to a leaf."""

    leaf: int
    step: Step


class BranchBlocks:
    """Positions and numbers of the blocks over the free branches of one problem.

    ``samples`` are the rows to sum over: those that no free branch moves may be left out.
    """

    def __init__(self, variables: TreeVariables, samples: Samples) -> None:
        self.variables = variables
        self.problem = variables.problem
        self.samples = samples
        self.rows = extended_rows(samples)
        topology = self.problem.topology
        self.place = {int(t): b for b, t in enumerate(variables.branches)}
        self.pairs = [
            (above, t)
            for above, t in related_pairs(topology)
            if above.branch in self.place and t in self.place
        ]
        self.leaf_steps = [
            LeafStep(leaf, step)
            for leaf in range(topology.n_leaves)
            for step in topology.path(leaf)
            if step.branch in self.place
        ]
        self._routed: tuple[bytes, RoutedRows] | None = None
        self._free: tuple[bytes, FreeRows] | None = None

    def columns(self, branch: int) -> IntArray:
        """Positions in x of the variables of a free branch."""
        return self.variables.columns(self.place[branch])

    def routed(self, parameters: TreeParameters) -> RoutedRows:
        """The rows routed through a tree; the last one is kept, as IPOPT asks for each thrice."""
        key = parameters.weights.tobytes() + parameters.thresholds.tobytes()
        if self._routed is None or self._routed[0] != key:
            rows = RoutedRows.of(parameters, self.samples, self.problem.steepness)
            self._routed = key, rows
        return self._routed[1]

    def moving(self, parameters: TreeParameters) -> RoutedRows | FreeRows:
        """As ``routed``, by the free branches alone where the rest has been worked out."""
        collapsed = self.problem.rows
        if not isinstance(collapsed, CollapsedRows):
            return self.routed(parameters)
        free = self.variables.branches
        key = parameters.weights[:, free].tobytes() + parameters.thresholds[free].tobytes()
        if self._free is None or self._free[0] != key:
            self._free = key, FreeRows.of(parameters, collapsed)
        return self._free[1]

    def positions(self) -> tuple[IntArray, IntArray]:
        """Where the numbers of ``hessian`` are, in the upper triangle."""
        rows, columns = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for above, t in self.pairs:
            block = outer_positions(self.columns(above.branch), self.columns(t))
            if above.branch == t:
                upper = block[0] <= block[1]
                block = block[0][upper], block[1][upper]
            mirrored = upper_triangle(*block)
            rows.append(mirrored[0])
            columns.append(mirrored[1])
        return np.concatenate(rows), np.concatenate(columns)

    def hessian(self, routed: RoutedRows | FreeRows, slopes: FloatArray) -> FloatArray:
        """Numbers of all blocks, from the slopes g_t of the scores."""
        index, sign = self.variables.expansion
        signs = np.outer(sign, sign)
        upper = np.triu(np.ones((len(index), len(index)), dtype=bool))
        parts = [np.zeros(0)]
        for above, t in self.pairs:
            weights = routed.score_curvature(slopes, above, t)
            block = weighted_gram(self.rows, weights)[np.ix_(index, index)] * signs
            parts.append(block[upper] if above.branch == t else block.ravel())
        return np.concatenate(parts)

    def mass_slopes(self, routed: RoutedRows | FreeRows) -> FloatArray:
        """S[k, step]: how the mass of class k in each leaf moves with the branches above it."""
        samples = self.samples
        slopes = np.empty((len(self.leaf_steps), samples.n_rows))
        for position, (leaf, step) in enumerate(self.leaf_steps):
            slopes[position] = routed.mass_slope(leaf, step)
        starts = samples.starts
        parts = [
            slopes[:, begin:end] @ self.rows[:, begin:end].T for begin, end in pairwise(starts)
        ]
        return np.stack(parts)
