"""The log-loss as a nonlinear program, with all second derivatives.

    f(x) = - sum_i weight_i log V_i + ridge / 2 |a|^2 - sum_kl s_k log c_kl + penalty(x)
    V_i  = sum_l P_il(a, mu) c_{y_i l}

Variables and constraints are those of the substituted program without class coverage. With J_i the
derivative of V_i, and multipliers lambda of the class rates, the Hessian of the Lagrangian is

    sum_i factor weight_i / V_i^2  J_i J_i'  +  sum_i m_i d2V_i  +  what ridge and prior add
    m_i = weight_i (lambda_{y_i} / n_{y_i} - factor / V_i)

The first part couples all variables: the matrix is dense, which a reference can afford.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.ipopt.program import Pattern, outer_positions
from softsplit.ipopt.second_order import RoutedRows, weighted_gram
from softsplit.ipopt.substituted import SubstitutedProgram
from softsplit.problem.leaves import CountedDistributions
from softsplit.support.arrays import FloatArray


class LikelihoodProgram(SubstitutedProgram):
    """A training problem of the log-loss over weights, thresholds, leaves and global bounds."""

    def _hessian_pattern(self) -> Pattern:
        variables, width = self.variables, self.problem.n_features + 1
        n_branches, leaf_classes = len(variables.branches), variables.leaf_classes.ravel()
        index, sign = variables.expansion
        numbers = [b * width + index for b in range(n_branches)]
        leaves = n_branches * width + np.arange(len(leaf_classes))
        # For each variable but beta its line in a matrix over (a_t, mu_t) and c.
        self._numbers = np.concatenate([*numbers, leaves])
        self._signs = np.concatenate([np.tile(sign, n_branches), np.ones(len(leaves))])
        moved = [variables.columns(b) for b in range(n_branches)]
        place = np.concatenate([*moved, leaf_classes])
        rows, columns = outer_positions(place, place)
        self._upper: NDArray[np.bool_] = rows <= columns
        sparse = variables.penalty_positions()
        rows = np.concatenate([rows[self._upper], sparse[0]])
        columns = np.concatenate([columns[self._upper], sparse[1]])
        return Pattern.of(rows, columns, (variables.size, variables.size))

    def hessian(self, x: FloatArray, factor: float, multipliers: FloatArray) -> FloatArray:
        samples, tree = self.blocks.samples, self.tree(x)
        routed = self.blocks.routed(tree)
        price = np.zeros(self.problem.n_classes)
        first = len(self.variables.linear_lower)
        price[self.classes] = multipliers[first:] / samples.class_totals[self.classes]
        values = tree.leaf_classes[samples.labels].T
        truth = np.sum(routed.leaf_probabilities * values, axis=0)
        slopes = routed.score_slopes(values)
        along = self._slopes(routed, slopes)
        matrix = weighted_gram(along, factor * samples.weights / truth**2)
        self._add_curvature(
            matrix, routed, slopes, samples.weights * (price[samples.labels] - factor / truth)
        )
        self._add_ridge_and_prior(matrix, tree.leaf_classes, factor)
        full = matrix[np.ix_(self._numbers, self._numbers)] * np.outer(self._signs, self._signs)
        curvatures = factor * self.variables.penalty_curvatures(x)
        return np.concatenate([full.ravel()[self._upper], curvatures])

    def _slopes(self, routed: RoutedRows, slopes: FloatArray) -> FloatArray:
        """J: derivatives of V by every number, (n_numbers, n_rows)."""
        variables, rows = self.variables, self.blocks.rows
        by_branch = [slopes[t] * rows for t in variables.branches]
        reach = routed.leaf_probabilities[variables.leaves]
        labels, classes = self.blocks.samples.labels, range(self.problem.n_classes)
        by_class = [np.where(labels == k, reach, 0.0) for k in classes]
        return np.vstack([*by_branch, *by_class])

    def _add_curvature(
        self, matrix: FloatArray, routed: RoutedRows, slopes: FloatArray, weights: FloatArray
    ) -> None:
        """sum_i m_i d2V_i, with m in ``weights``."""
        blocks, variables, width = self.blocks, self.variables, self.problem.n_features + 1
        for above, t in blocks.pairs:
            block = weighted_gram(blocks.rows, weights * routed.score_curvature(slopes, above, t))
            s = slice(blocks.place[above.branch] * width, (blocks.place[above.branch] + 1) * width)
            own = slice(blocks.place[t] * width, (blocks.place[t] + 1) * width)
            matrix[s, own] += block
            if above.branch != t:
                matrix[own, s] += block.T
        n_leaves, first = len(variables.leaves), len(variables.branches) * width
        place = {int(leaf): position for position, leaf in enumerate(variables.leaves)}
        for leaf, step in blocks.leaf_steps:
            if leaf not in place:
                continue
            moved = weights * routed.leaf_slope(leaf, step) * blocks.rows
            by_class = np.add.reduceat(moved, blocks.samples.starts[:-1], axis=1)
            lines = first + place[leaf] + n_leaves * np.arange(self.problem.n_classes)
            own = slice(blocks.place[step.branch] * width, (blocks.place[step.branch] + 1) * width)
            matrix[own, lines] += by_class
            matrix[lines, own] += by_class.T

    def _add_ridge_and_prior(
        self, matrix: FloatArray, leaf_classes: FloatArray, factor: float
    ) -> None:
        width, diagonal = self.problem.n_features + 1, np.einsum("ii->i", matrix)
        first = len(self.variables.branches) * width
        by_branch = diagonal[:first].reshape(-1, width)
        by_branch[:, :-1] += factor * self.problem.ridge
        rule = self.problem.loss.leaf_rule
        if isinstance(rule, CountedDistributions):
            held = leaf_classes[:, self.variables.leaves]
            diagonal[first:] += (factor * rule.pseudo_counts[:, None] / held**2).ravel()
