"""Strategy (ii) of section 4.1: the leaf probabilities replaced by the product of gates.

    f(x) = sum_i weight_i f(V_i) + ridge / 2 |a|^2 - sum_kl s_k log c_kl + penalty(x)
    V_i  = sum_l P_il(a, mu) W[y_i, l],   W = table of the loss at the leaves c
    g(x) = A x,  rate_k = sum_l M_kl(a, mu) c_kl / n_k  for each class with a minimum rate

Value, gradient and masses come from the compiled pass (``problem/loss.py``), the rest from
``second_order.py``. With multipliers lambda and m_i = weight_i f'(V_i), the Hessian of the
Lagrangian of factor f + lambda g is a sum of blocks:

    branches s, t      of sum_i E_i, E linear in the leaf probabilities with leaf values
                       factor m_i W[y_i, l] + weight_i lambda_{y_i} / n_{y_i} c_{y_i l}
    c_kl, branch t     factor sum_y cost[y, k] S[y] + lambda_k / n_k S'[k], where S[y] sums
                       m_i dP_il / d(branch t) over the rows of class y, and S' the same without f'
    all variables      factor sum_i weight_i f''(V_i) J_i J_i', J_i the derivative of V_i
    one variable       of ridge, prior and penalty

The third couples all variables. It is zero for the expected cost; that of the log-loss makes the
matrix dense, which a reference can afford.

Derivatives are lists of numbers for a fixed list of positions (``Pattern``). A position may occur
more than once: its numbers are added, so that each term can be written down by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from softsplit.engines.outer import LOGARITHM, outer_values
from softsplit.ipopt.second_order import (
    RoutedRows,
    extended_rows,
    related_pairs,
    weighted_gram,
)
from softsplit.ipopt.variables import IntArray, TreeVariables
from softsplit.problem.leaves import CountedDistributions
from softsplit.problem.loss import Evaluation
from softsplit.problem.problem import TrainingProblem
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Step, TreeParameters


@dataclass(frozen=True)
class Pattern:
    """Positions of the nonzeros of a matrix, and where each listed number goes.

    Attributes
    ----------
    shape : (n_rows, n_columns)
    column_starts, row_indices : int arrays
        Compressed columns, as in scipy.sparse.csc_array.
    slots : int array
        For each listed number the nonzero it is added to.
    """

    shape: tuple[int, int]
    column_starts: IntArray
    row_indices: IntArray
    slots: IntArray

    @classmethod
    def of(cls, rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> Pattern:
        """The pattern of the listed positions, in the order of the list."""
        keys = columns.astype(np.int64) * shape[0] + rows
        distinct, slots = np.unique(keys, return_inverse=True)
        per_column = np.bincount(distinct // max(shape[0], 1), minlength=shape[1])
        starts = np.concatenate([[0], np.cumsum(per_column)])
        return cls(shape, starts, distinct % max(shape[0], 1), slots.ravel())

    def gather(self, values: FloatArray) -> FloatArray:
        """The nonzeros, column by column, from the listed numbers."""
        summed = np.bincount(self.slots, weights=values, minlength=len(self.row_indices))
        return summed.astype(np.float64, copy=False)


class LeafStep(NamedTuple):
    """A free branch on the path to a leaf."""

    leaf: int
    step: Step


class SubstitutedProgram:
    """The training problem over weights, thresholds, leaf classes and global bounds alone.

    minimise f(x)   subject to   lower <= x <= upper,   constraint_lower <= g(x) <= constraint_upper

    ``jacobian`` and ``hessian``, the upper triangle of that of factor * f + multipliers . g, give
    lists of numbers for ``jacobian_pattern`` and ``hessian_pattern``.
    """

    def __init__(self, problem: TrainingProblem) -> None:
        self.problem = problem
        self.variables = variables = TreeVariables(problem)
        # The rows to sum over: those that no free branch moves may be left out.
        self.samples = problem.moving_samples
        self.rows = extended_rows(self.samples)
        self.classes = np.flatnonzero(problem.minimum_rates > 0)
        minimum = problem.minimum_rates[self.classes]
        self.lower, self.upper = variables.lower, variables.upper
        self.constraint_lower = np.concatenate([variables.linear_lower, minimum])
        no_limit = np.full(len(minimum), np.inf)
        self.constraint_upper = np.concatenate([variables.linear_upper, no_limit])
        # Pairs of free branches of which one is above the other, and free branches above leaves.
        topology, free = problem.topology, problem.free_branches
        self.pairs = [
            (above, t) for above, t in related_pairs(topology) if free[above.branch] and free[t]
        ]
        self.leaf_steps = [
            LeafStep(leaf, step)
            for leaf in range(topology.n_leaves)
            for step in topology.path(leaf)
            if free[step.branch]
        ]
        self.mixed = [s for s, (leaf, _) in enumerate(self.leaf_steps) if problem.free_leaves[leaf]]
        self.jacobian_pattern = self._jacobian_pattern()
        self.hessian_pattern = self._hessian_pattern()
        self._evaluated: tuple[bytes, Evaluation] | None = None
        self._routed: tuple[bytes, RoutedRows] | None = None

    def start(self, parameters: TreeParameters) -> FloatArray:
        return self.variables.start(parameters)

    def tree(self, x: FloatArray) -> TreeParameters:
        return self.variables.tree(x)

    # Values and first derivatives.

    def _evaluate(self, x: FloatArray) -> Evaluation:
        key = x.tobytes()
        if self._evaluated is None or self._evaluated[0] != key:
            self._evaluated = key, self.problem.evaluate_cost(self.tree(x))
        return self._evaluated[1]

    def objective(self, x: FloatArray) -> float:
        return self._evaluate(x).value + self.variables.penalty(x)

    def gradient(self, x: FloatArray) -> FloatArray:
        evaluation, variables = self._evaluate(x), self.variables
        gradient = np.zeros(variables.size)
        by_feature = np.vstack([evaluation.weights, evaluation.thresholds])
        for b, t in enumerate(variables.branches):
            gradient[variables.columns(b)] = variables.expand(by_feature[:, t])
        gradient[variables.leaf_values] = evaluation.leaf_values[:, variables.leaves]
        variables.add_penalty_gradient(x, gradient)
        return gradient

    def constraints(self, x: FloatArray) -> FloatArray:
        linear = self.variables.linear @ x
        if len(self.classes) == 0:
            return np.asarray(linear)
        rates = self.problem.rates(self.tree(x), self._evaluate(x).mass)
        return np.concatenate([linear, rates[self.classes]])

    def _jacobian_pattern(self) -> Pattern:
        variables = self.variables
        n_linear = len(variables.linear_lower)
        rows, columns = [variables.linear_rows], [variables.linear_columns]
        branches = [variables.columns(b) for b in range(len(variables.branches))]
        for position, k in enumerate(self.classes):
            reached = np.concatenate([*branches, variables.leaf_values[k]])
            rows.append(np.full(len(reached), n_linear + position))
            columns.append(reached)
        shape = (n_linear + len(self.classes), variables.size)
        return Pattern.of(np.concatenate(rows), np.concatenate(columns), shape)

    def jacobian(self, x: FloatArray) -> FloatArray:
        variables, tree = self.variables, self.tree(x)
        parts = [variables.linear_values]
        if len(self.classes):
            slopes = self._mass_slopes(self._route(tree), self.samples.weights)
            shares = self.problem.shares(self._evaluate(x).mass)
        for k in self.classes:
            by_branch = np.zeros((len(variables.branches), self.problem.n_features + 1))
            for position, (leaf, step) in enumerate(self.leaf_steps):
                weight = tree.leaf_values[k, leaf] / self.problem.samples.group_totals[k]
                by_branch[variables.place[step.branch]] += weight * slopes[k, position]
            parts += [variables.expand(by_branch).ravel(), shares[k, variables.leaves]]
        return np.concatenate(parts)

    # Second derivatives.

    def _route(self, tree: TreeParameters) -> RoutedRows:
        """The rows routed through a tree; the last one is kept, as IPOPT asks for each thrice."""
        branches, features = self.variables.branches, self.samples.features
        key = tree.splits[branches].tobytes()
        if self._routed is None:
            self._routed = key, RoutedRows.of(tree, features, self.problem.steepness)
        elif self._routed[0] != key:  # the gates of fixed branches stay
            self._routed = key, self._routed[1].moved(tree, features, branches)
        return self._routed[1]

    def _mass_slopes(self, routed: RoutedRows, weights: FloatArray) -> FloatArray:
        """S[k, step]: sum over the rows of class k of weight_i dP_il / d(branch of the step)."""
        slopes = np.empty((len(self.leaf_steps), self.samples.n_rows))
        for position, (leaf, step) in enumerate(self.leaf_steps):
            slopes[position] = weights * routed.leaf_slope(leaf, step)
        groups = pairwise(self.samples.starts)
        return np.stack([slopes[:, begin:end] @ self.rows[:, begin:end].T for begin, end in groups])

    def _hessian_pattern(self) -> Pattern:
        variables = self.variables
        columns = {int(t): variables.columns(b) for b, t in enumerate(variables.branches)}
        leaves = {
            int(leaf): variables.leaf_values[:, at] for at, leaf in enumerate(variables.leaves)
        }
        blocks = [(columns[above.branch], columns[t]) for above, t in self.pairs]
        for s in self.mixed:
            leaf, step = self.leaf_steps[s]
            blocks.append((leaves[leaf], columns[step.branch]))
        if self._curved:
            everything = np.concatenate([*columns.values(), variables.leaf_values.ravel()])
            blocks.append((everything, everything))
            self._upper = np.less_equal.outer(everything, everything)
        listed = [*(_upper_positions(*block) for block in blocks), variables.penalty_positions()]
        return Pattern.of(
            np.concatenate([rows for rows, _ in listed]),
            np.concatenate([columns for _, columns in listed]),
            (variables.size, variables.size),
        )

    @property
    def _curved(self) -> bool:
        """Whether the loss is not linear in the leaf probabilities."""
        return self.problem.loss.outer == LOGARITHM

    def hessian(self, x: FloatArray, factor: float, multipliers: FloatArray) -> FloatArray:
        problem, samples, variables, tree = self.problem, self.samples, self.variables, self.tree(x)
        routed = self._route(tree)
        # 1. Prices of the rates, and slopes of the outer function.
        price = np.zeros(problem.n_groups)
        n_linear = len(variables.linear_lower)
        price[self.classes] = multipliers[n_linear:] / samples.group_totals[self.classes]
        table, outer_slopes = problem.loss.table(tree.leaf_values), np.ones(samples.n_rows)
        if self._curved:
            values = table[samples.labels].T
            mixed_values = np.sum(routed.leaf_probabilities * values, axis=0)
            outer_slopes = outer_values(problem.loss.outer, mixed_values)[1]
        # 2. Pairs of branches.
        prices = (price[:, None] * tree.leaf_values)[samples.labels].T
        leaf_values = factor * outer_slopes * table[samples.labels].T + prices
        parts = self._branch_blocks(routed, routed.score_slopes(samples.weights * leaf_values))
        # 3. Classes of leaves with branches.
        slopes = self._mass_slopes(routed, samples.weights * outer_slopes)[:, self.mixed]
        by_class = np.einsum("yk,ysj->skj", factor * self._costs(), slopes)
        if self._curved:
            slopes = self._mass_slopes(routed, samples.weights)[:, self.mixed]
        by_class += np.einsum("k,ksj->skj", price, slopes)
        parts.append(variables.expand(by_class).ravel())
        # 4. What a curved loss adds, with ridge and prior; the penalties.
        if self._curved:
            parts.append(self._curved_block(routed, tree, values, factor, outer_slopes))
        parts.append(factor * variables.penalty_curvatures(x))
        return np.concatenate(parts)

    def _costs(self) -> FloatArray:
        """cost[y, k]: the derivative of W[y, l] by c_kl."""
        return self.problem.loss.table(np.eye(self.problem.n_groups))

    def _branch_blocks(self, routed: RoutedRows, slopes: FloatArray) -> list[FloatArray]:
        """d2 E / d(branch s) d(branch t) for every pair, from the slopes g_t of the scores."""
        index, sign = self.variables.expansion
        signs = np.outer(sign, sign)
        upper = np.triu(np.ones((len(index), len(index)), dtype=bool))
        parts = [np.zeros(0)]
        for above, t in self.pairs:
            block = weighted_gram(self.rows, routed.score_curvature(slopes, above, t))
            block = block[np.ix_(index, index)] * signs
            parts.append(block[upper] if above.branch == t else block.ravel())
        return parts

    def _curved_block(
        self,
        routed: RoutedRows,
        tree: TreeParameters,
        values: FloatArray,
        factor: float,
        outer_slopes: FloatArray,
    ) -> FloatArray:
        """factor (sum_i weight_i f'' J_i J_i' + ridge + prior); f'' of the logarithm is f'^2."""
        variables, rule = self.variables, self.problem.loss.leaf_rule
        # 1. J by (a_t, mu_t) of the free branches, then by c_kl, and J diag J'.
        slopes = routed.score_slopes(values)
        reach = routed.leaf_probabilities[variables.leaves]
        along = [slopes[t] * self.rows for t in variables.branches]
        along += [of_class * reach for of_class in self._costs()[self.samples.labels].T]
        matrix = weighted_gram(np.vstack(along), self.samples.weights * outer_slopes**2)
        # 2. Ridge and prior, on the diagonal.
        width, diagonal = self.problem.n_features + 1, np.einsum("ii->i", matrix)
        n_lines = len(variables.branches) * width
        diagonal[:n_lines].reshape(-1, width)[:, :-1] += self.problem.ridge
        if isinstance(rule, CountedDistributions):
            held = tree.leaf_values[:, variables.leaves]
            diagonal[n_lines:] += (rule.pseudo_counts[:, None] / held**2).ravel()
        # 3. The line of each variable in the matrix, and its sign.
        index, sign = variables.expansion
        branches = [b * width + index for b in range(len(variables.branches))]
        lines = np.concatenate([*branches, np.arange(n_lines, len(matrix))])
        signs = np.ones(len(lines))
        signs[: len(sign) * len(branches)] = np.tile(sign, len(branches))
        block = matrix[np.ix_(lines, lines)] * np.outer(signs, signs)
        return factor * block[self._upper]


def _upper_positions(rows: IntArray, columns: IntArray) -> tuple[IntArray, IntArray]:
    """Positions of a block, row by row, mirrored into the upper triangle; half of a square one."""
    left, right = np.repeat(rows, len(columns)), np.tile(columns, len(rows))
    if rows is columns:
        upper = left <= right
        return left[upper], right[upper]
    return np.minimum(left, right), np.maximum(left, right)
