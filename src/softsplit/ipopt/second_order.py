"""First and second derivatives of everything linear in the leaf probabilities, per sample.

For leaf values V_l of one sample, E = sum_l P_l V_l is a function of the scores z_t of the
branches. With gates p_t (left) and q_t = 1 - p_t (right), steepness gamma and the subtree values
V[node] = p V[left] + q V[right]:

    g_t = dE / dz_t        = reach_t gamma p_t q_t (V[left of t] - V[right of t])
    d2E / dz_t^2           = gamma (q_t - p_t) g_t
    d2E / dz_s dz_t        = gamma q_s g_t     if t lies in the left subtree of s
                           = -gamma p_s g_t    if t lies in the right subtree of s
                           = 0                 if neither is above the other
    dP_l / dz_t            = gamma q_t P_l if leaf l lies left of t, -gamma p_t P_l if right

The scores are linear, z_t = row' (a_t, mu_t) with row = (x / n_features, -1), so the block of
branches s and t in the Hessian of sum_i E_i is rows' diag(h) rows with h the d2E above.
Shapes: gates (n_branches, n_rows), leaf values and probabilities (n_leaves, n_rows), extended
rows (n_features + 1, n_rows).

``BranchRows`` computes these for all branches. ``FreeRows`` does so for the free branches t of a
block, where the fixed part of the tree has been worked out: with the factors, bases and shares of
``engines/block.py``,

    reach_t            = factor_t * (what its free parent sends to its side, or 1)
    L_t, R_t           = base of the side + sum of factor_s V_s over the free children s there
    V_t                = p_t L_t + q_t R_t
    g_t                = weight * reach_t gamma p_t q_t (L_t - R_t)
    P_l                = share_l * (what arrives at the side that leaf l belongs to)

Only free branches are routed, so that nothing here grows with the number of fixed ones; leaves
below the block cost one multiplication per row each. Shapes: gates (n_free, n_rows).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softsplit.engines.block import CollapsedRows
from softsplit.engines.samples import Samples
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Step, Topology, TreeParameters
from softsplit.tree.routing import gate_probabilities, split_scores


def extended_rows(samples: Samples) -> FloatArray:
    """Derivative of a score in its weights and threshold, (n_features + 1, n_rows)."""
    minus_ones = np.full((1, samples.n_rows), -1.0)
    return np.vstack([samples.features / samples.n_features, minus_ones])


@dataclass(frozen=True)
class BranchRows:
    """All rows routed through one tree: what first and second derivatives share.

    Attributes
    ----------
    samples : Samples
    topology : Topology
    steepness : float
    left, right : arrays (n_branches, n_rows)
        Gate probabilities p and q.
    """

    samples: Samples
    topology: Topology
    steepness: float
    left: FloatArray
    right: FloatArray

    @classmethod
    def of(cls, parameters: TreeParameters, samples: Samples, steepness: float) -> BranchRows:
        left, right = gate_probabilities(split_scores(parameters, samples.features), steepness)
        return cls(samples, parameters.topology, steepness, left, right)

    @cached_property
    def reach(self) -> FloatArray:
        """Probability of reaching each node, (n_branches + n_leaves, n_rows)."""
        n_branches, n_rows = self.left.shape
        reach = np.empty((2 * n_branches + 1, n_rows))
        reach[0] = 1.0
        for t in range(n_branches):
            reach[2 * t + 1] = reach[t] * self.left[t]
            reach[2 * t + 2] = reach[t] * self.right[t]
        return reach

    @property
    def leaf_probabilities(self) -> FloatArray:
        """P_il, shape (n_leaves, n_rows)."""
        return self.reach[self.topology.n_branches :]

    def score_slopes(self, leaf_values: FloatArray) -> FloatArray:
        """g_t of every row for the given leaf values, (n_branches, n_rows)."""
        n_branches, n_rows = self.left.shape
        values = np.empty((2 * n_branches + 1, n_rows))
        values[n_branches:] = leaf_values
        slopes = np.empty_like(self.left)
        for t in range(n_branches - 1, -1, -1):
            below_left, below_right = values[2 * t + 1], values[2 * t + 2]
            gates = self.left[t] * self.right[t]
            slopes[t] = self.steepness * self.reach[t] * gates * (below_left - below_right)
            values[t] = self.left[t] * below_left + self.right[t] * below_right
        return slopes

    def table_slopes(self, table: FloatArray) -> FloatArray:
        """As ``score_slopes`` for the leaf values weight_i table[class of row i, leaf]."""
        return self.score_slopes(table[self.samples.labels].T * self.samples.weights)

    def score_curvature(self, slopes: FloatArray, above: Step, branch: int) -> FloatArray:
        """d2E / dz_s dz_t of every row, (n_rows,).

        ``above`` names s and the side on which t = ``branch`` lies; for s = t the side is
        ignored.
        """
        s = above.branch
        factor = pair_factor(self.left[s], self.right[s], above, branch)
        return self.steepness * factor * slopes[branch]

    def leaf_slope(self, leaf: int, step: Step) -> FloatArray:
        """dP_l / dz_t of every row for a step on the path to the leaf, (n_rows,)."""
        gate = self.right[step.branch] if step.goes_left else -self.left[step.branch]
        return self.steepness * gate * self.leaf_probabilities[leaf]

    def mass_slope(self, leaf: int, step: Step) -> FloatArray:
        """``leaf_slope`` times the weights of the rows."""
        return self.samples.weights * self.leaf_slope(leaf, step)


def pair_factor(left: FloatArray, right: FloatArray, above: Step, branch: int) -> FloatArray:
    """d2E / dz_s dz_t over gamma g_t, from the gates of s; ``above`` as in ``score_curvature``."""
    if above.branch == branch:
        return right - left
    return right if above.goes_left else -left


def related_pairs(topology: Topology) -> list[tuple[Step, int]]:
    """Every pair (s, t) of branches with a nonzero block: t itself and each branch above it."""
    pairs = []
    for t in range(topology.n_branches):
        pairs.append((Step(t, True), t))
        pairs.extend((step, t) for step in topology.ancestors(t))
    return pairs


def weighted_gram(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """rows diag(weights) rows', skipping the rows whose weight is negligible.

    At high steepness most gates are saturated, so that most samples have no curvature at all.
    """
    largest = np.max(np.abs(weights), initial=0.0)
    kept = np.abs(weights) > 1e-18 * largest
    if np.count_nonzero(kept) < 0.7 * len(weights):
        rows, weights = rows[:, kept], weights[kept]
    gram: FloatArray = (rows * weights) @ rows.T
    return gram


@dataclass(frozen=True)
class FreeRows:
    """The rows of a collapsed problem, routed through its free branches; as ``BranchRows``."""

    collapsed: CollapsedRows
    left: FloatArray
    right: FloatArray

    @classmethod
    def of(cls, parameters: TreeParameters, collapsed: CollapsedRows) -> FreeRows:
        left, right = gate_probabilities(collapsed.scores(parameters.splits), collapsed.steepness)
        return cls(collapsed, left, right)

    @cached_property
    def place(self) -> dict[int, int]:
        return {int(t): position for position, t in enumerate(self.collapsed.branches)}

    @cached_property
    def reach(self) -> FloatArray:
        """Probability of reaching each free branch, times the weight of the row."""
        collapsed, reach = self.collapsed, np.empty_like(self.left)
        for position, above in enumerate(collapsed.parents):
            reach[position] = collapsed.factors[position]
            if above >= 0:
                gate = self.left if collapsed.on_left[position] else self.right
                reach[position] *= reach[above] * gate[above]
        return reach

    @cached_property
    def leaf_mass(self) -> dict[int, FloatArray]:
        """P_l times the weight of the row, for every leaf below the block."""
        mass: dict[int, FloatArray] = {}
        for position, sides in enumerate(self.collapsed.sides):
            for side, gate in zip(sides, (self.left, self.right), strict=True):
                arriving = side.shares * (self.reach[position] * gate[position])
                mass.update(zip(side.leaves.tolist(), arriving, strict=True))
        return mass

    def table_slopes(self, table: FloatArray) -> FloatArray:
        """g_t of every row for the leaf values table[class, leaf], (n_free, n_rows)."""
        collapsed, slopes = self.collapsed, np.empty_like(self.left)
        below_left, below_right = collapsed.bases(table)
        for position in range(len(slopes) - 1, -1, -1):
            left, right = self.left[position], self.right[position]
            one, other = below_left[position], below_right[position]
            slopes[position] = collapsed.steepness * self.reach[position] * left * right
            slopes[position] *= one - other
            above = collapsed.parents[position]
            if above >= 0:
                side = below_left if collapsed.on_left[position] else below_right
                side[above] += collapsed.factors[position] * (left * one + right * other)
        return slopes

    def score_curvature(self, slopes: FloatArray, above: Step, branch: int) -> FloatArray:
        """d2E / dz_s dz_t of every row, (n_rows,); see ``BranchRows``."""
        s, t = self.place[above.branch], self.place[branch]
        factor = pair_factor(self.left[s], self.right[s], above, branch)
        return self.collapsed.steepness * factor * slopes[t]

    def mass_slope(self, leaf: int, step: Step) -> FloatArray:
        """dP_l / dz_t of every row, times its weight, (n_rows,)."""
        t = self.place[step.branch]
        gate = self.right[t] if step.goes_left else -self.left[t]
        return self.collapsed.steepness * gate * self.leaf_mass[leaf]
