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
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.samples import Samples
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Step, Topology, TreeParameters
from softsplit.tree.routing import gate_probabilities, node_reach, node_values, split_scores


def extended_rows(samples: Samples) -> FloatArray:
    """Derivative of a score in its weights and threshold, (n_features + 1, n_rows)."""
    minus_ones = np.full((1, samples.n_rows), -1.0)
    return np.vstack([samples.features / samples.n_features, minus_ones])


@dataclass(frozen=True)
class RoutedRows:
    """All rows routed through one tree: what first and second derivatives share.

    Attributes
    ----------
    steepness : float
    left, right : arrays (n_branches, n_rows)
        Gate probabilities p and q.
    """

    steepness: float
    left: FloatArray
    right: FloatArray

    @classmethod
    def of(cls, tree: TreeParameters, features: FloatArray, steepness: float) -> RoutedRows:
        """Route rows (n_features, n_rows) through a tree."""
        return cls(steepness, *gate_probabilities(split_scores(tree, features), steepness))

    def moved(
        self, tree: TreeParameters, features: FloatArray, branches: NDArray[np.intp]
    ) -> RoutedRows:
        """The rows routed through a tree that differs at ``branches`` only."""
        left, right = self.left.copy(), self.right.copy()
        scores = (tree.weights[:, branches].T / tree.n_features) @ features
        scores -= tree.thresholds[branches, None]
        left[branches], right[branches] = gate_probabilities(scores, self.steepness)
        return RoutedRows(self.steepness, left, right)

    @cached_property
    def reach(self) -> FloatArray:
        """Probability of reaching each node, (n_branches + n_leaves, n_rows)."""
        return node_reach(self.left, self.right)

    @property
    def leaf_probabilities(self) -> FloatArray:
        """P_il, shape (n_leaves, n_rows)."""
        return self.reach[len(self.left) :]

    def score_slopes(self, leaf_values: FloatArray) -> FloatArray:
        """g_t of every row for the given leaf values, (n_branches, n_rows)."""
        values = node_values(self.left, self.right, leaf_values)
        gates, reach = self.left * self.right, self.reach[: len(self.left)]
        return self.steepness * reach * gates * (values[1::2] - values[2::2])

    def score_curvature(self, slopes: FloatArray, above: Step, branch: int) -> FloatArray:
        """d2E / dz_s dz_t of every row, (n_rows,).

        ``above`` names s and the side on which t = ``branch`` lies; for s = t the side is
        ignored.
        """
        left, right = self.left[above.branch], self.right[above.branch]
        factor = right if above.goes_left else -left
        if above.branch == branch:
            factor = right - left
        return self.steepness * factor * slopes[branch]

    def leaf_slope(self, leaf: int, step: Step) -> FloatArray:
        """dP_l / dz_t of every row for a step on the path to the leaf, (n_rows,)."""
        gate = self.right[step.branch] if step.goes_left else -self.left[step.branch]
        return self.steepness * gate * self.leaf_probabilities[leaf]


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
    return (rows * weights) @ rows.T
