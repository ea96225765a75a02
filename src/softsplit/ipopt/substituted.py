"""Strategy (ii) of section 4.1: the leaf probabilities replaced by the product of gates.

    f(x) = sum_i weight_i sum_l P_il(a, mu) sum_k cost[y_i, k] c_kl + penalty(x)
    g(x) = A x,  rate_k = sum_l M_kl(a, mu) c_kl / n_k  for each class with a minimum rate

Value, gradient and masses come from the compiled pass (``problem/loss.py``), the rest from
``second_order.py``. With multipliers lambda the Lagrangian is again linear in the leaf
probabilities, so that its Hessian over the branches is one pass with leaf values

    V_il = weight_i (factor * sum_k cost[y_i, k] c_kl + lambda_{y_i} / n_{y_i} c_{y_i l})

and between c_kl and a branch it is factor * sum_y cost[y, k] S[y] + lambda_k / n_k S[k].

``LikelihoodProgram`` is the log-loss as a nonlinear program, with all second derivatives:

    f(x) = - sum_i weight_i log V_i + ridge / 2 |a|^2 - sum_kl s_k log c_kl + penalty(x)
    V_i  = sum_l P_il(a, mu) c_{y_i l}

Variables and constraints are those of the substituted program without class coverage. With J_i the
derivative of V_i, and multipliers lambda of the class rates, the Hessian of the Lagrangian is

    sum_i factor weight_i / V_i^2  J_i J_i'  +  sum_i m_i d2V_i  +  what ridge and prior add
    m_i = weight_i (lambda_{y_i} / n_{y_i} - factor / V_i)

The first part couples all variables: the matrix is dense, which a reference can afford.

``BranchBlocks`` computes derivatives over the variables of the branches:

    Hessian blocks   d2 / d(branch s) d(branch t) of sum_i sum_l P_il V_il, s above or equal to t
    leaf steps       every (leaf, step on its path) whose branch is free
    mass slopes      S[k, step] = sum over rows of class k of weight_i dP_il / d(branch of step)

Leaf values V have the sample weights in them; S is (n_groups, n_steps, n_features + 1).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.block import CollapsedRows
from softsplit.engines.samples import Samples
from softsplit.ipopt.program import IntArray, Pattern, outer_positions, upper_triangle
from softsplit.ipopt.second_order import (
    BranchRows,
    FreeRows,
    extended_rows,
    related_pairs,
    weighted_gram,
)
from softsplit.ipopt.variables import TreeVariables
from softsplit.problem.leaves import CountedDistributions
from softsplit.problem.loss import Evaluation
from softsplit.problem.problem import TrainingProblem
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
        self._routed: tuple[bytes, BranchRows] | None = None
        self._free: tuple[bytes, FreeRows] | None = None

    def columns(self, branch: int) -> IntArray:
        """Positions in x of the variables of a free branch."""
        return self.variables.columns(self.place[branch])

    def routed(self, parameters: TreeParameters) -> BranchRows:
        """The rows routed through a tree; the last one is kept, as IPOPT asks for each thrice."""
        key = parameters.weights.tobytes() + parameters.thresholds.tobytes()
        if self._routed is None or self._routed[0] != key:
            rows = BranchRows.of(parameters, self.samples, self.problem.steepness)
            self._routed = key, rows
        return self._routed[1]

    def moving(self, parameters: TreeParameters) -> BranchRows | FreeRows:
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

    def hessian(self, routed: BranchRows | FreeRows, slopes: FloatArray) -> FloatArray:
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

    def mass_slopes(self, routed: BranchRows | FreeRows) -> FloatArray:
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


class SubstitutedProgram:
    """The training problem over weights, thresholds, leaf classes and global bounds alone.

    minimise f(x)   subject to   lower <= x <= upper,   constraint_lower <= g(x) <= constraint_upper

    ``jacobian`` and ``hessian``, the upper triangle of that of factor * f + multipliers . g, give
    lists of numbers for ``jacobian_pattern`` and ``hessian_pattern``.
    """

    def __init__(self, problem: TrainingProblem) -> None:
        self.problem = problem
        self.variables = TreeVariables(problem)
        self.blocks = BranchBlocks(self.variables, problem.moving_samples)
        self.classes = np.flatnonzero(problem.minimum_rates > 0)
        variables, minimum = self.variables, problem.minimum_rates[self.classes]
        self.lower, self.upper = variables.lower, variables.upper
        self.constraint_lower = np.concatenate([variables.linear_lower, minimum])
        no_limit = np.full(len(minimum), np.inf)
        self.constraint_upper = np.concatenate([variables.linear_upper, no_limit])
        self.jacobian_pattern = self._jacobian_pattern()
        self.hessian_pattern = self._hessian_pattern()
        self._evaluated: tuple[bytes, Evaluation] | None = None

    def start(self, parameters: TreeParameters) -> FloatArray:
        return self.variables.start(parameters)

    def tree(self, x: FloatArray) -> TreeParameters:
        return self.variables.tree(x)

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
            slopes = self.blocks.mass_slopes(self.blocks.moving(tree))
            shares = self.problem.shares(self._evaluate(x).mass)
        for k in self.classes:
            by_branch = np.zeros((len(variables.branches), self.problem.n_features + 1))
            for position, (leaf, step) in enumerate(self.blocks.leaf_steps):
                weight = tree.leaf_values[k, leaf] / self.problem.samples.group_totals[k]
                by_branch[self.blocks.place[step.branch]] += weight * slopes[k, position]
            parts += [variables.expand(by_branch).ravel(), shares[k, variables.leaves]]
        return np.concatenate(parts)

    def _hessian_pattern(self) -> Pattern:
        rows, columns = zip(
            self.blocks.positions(),
            self._mixed_positions(),
            self.variables.penalty_positions(),
            strict=True,
        )
        size = self.variables.size
        return Pattern.of(np.concatenate(rows), np.concatenate(columns), (size, size))

    def _mixed_positions(self) -> tuple[IntArray, IntArray]:
        """Between the classes of a free leaf and the free branches above it."""
        variables = self.variables
        place = {int(leaf): position for position, leaf in enumerate(variables.leaves)}
        rows, columns = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        self._mixed = [s for s, (leaf, _) in enumerate(self.blocks.leaf_steps) if leaf in place]
        for s in self._mixed:
            leaf, step = self.blocks.leaf_steps[s]
            classes = variables.leaf_values[:, place[leaf]]
            block = outer_positions(classes, self.blocks.columns(step.branch))
            mirrored = upper_triangle(*block)
            rows.append(mirrored[0])
            columns.append(mirrored[1])
        return np.concatenate(rows), np.concatenate(columns)

    def hessian(self, x: FloatArray, factor: float, multipliers: FloatArray) -> FloatArray:
        problem, samples, tree = self.problem, self.blocks.samples, self.tree(x)
        price = np.zeros(problem.n_groups)
        n_linear = len(self.variables.linear_lower)
        price[self.classes] = multipliers[n_linear:] / samples.group_totals[self.classes]
        table = factor * problem.loss.table(tree.leaf_values)
        table = table + price[:, None] * tree.leaf_values
        routed = self.blocks.moving(tree)
        slopes = self.blocks.mass_slopes(routed)
        per_class = factor * problem.loss.call_costs(problem.n_groups).T + np.diag(price)
        mixed = np.einsum("ky,ysj->skj", per_class, slopes[:, self._mixed])
        return np.concatenate(
            [
                self.blocks.hessian(routed, routed.table_slopes(table)),
                self.variables.expand(mixed).ravel(),
                factor * self.variables.penalty_curvatures(x),
            ]
        )


class LikelihoodProgram(SubstitutedProgram):
    """A training problem of the log-loss over weights, thresholds, leaves and global bounds."""

    def _hessian_pattern(self) -> Pattern:
        variables, width = self.variables, self.problem.n_features + 1
        n_branches, leaf_values = len(variables.branches), variables.leaf_values.ravel()
        index, sign = variables.expansion
        numbers = [b * width + index for b in range(n_branches)]
        leaves = n_branches * width + np.arange(len(leaf_values))
        # For each variable but beta its line in a matrix over (a_t, mu_t) and c.
        self._numbers = np.concatenate([*numbers, leaves])
        self._signs = np.concatenate([np.tile(sign, n_branches), np.ones(len(leaves))])
        moved = [variables.columns(b) for b in range(n_branches)]
        place = np.concatenate([*moved, leaf_values])
        rows, columns = outer_positions(place, place)
        self._upper: NDArray[np.bool_] = rows <= columns
        sparse = variables.penalty_positions()
        rows = np.concatenate([rows[self._upper], sparse[0]])
        columns = np.concatenate([columns[self._upper], sparse[1]])
        return Pattern.of(rows, columns, (variables.size, variables.size))

    def hessian(self, x: FloatArray, factor: float, multipliers: FloatArray) -> FloatArray:
        samples, tree = self.blocks.samples, self.tree(x)
        routed = self.blocks.routed(tree)
        price = np.zeros(self.problem.n_groups)
        first = len(self.variables.linear_lower)
        price[self.classes] = multipliers[first:] / samples.group_totals[self.classes]
        values = tree.leaf_values[samples.labels].T
        truth = np.sum(routed.leaf_probabilities * values, axis=0)
        slopes = routed.score_slopes(values)
        along = self._slopes(routed, slopes)
        matrix = weighted_gram(along, factor * samples.weights / truth**2)
        self._add_curvature(
            matrix, routed, slopes, samples.weights * (price[samples.labels] - factor / truth)
        )
        self._add_ridge_and_prior(matrix, tree.leaf_values, factor)
        full = matrix[np.ix_(self._numbers, self._numbers)] * np.outer(self._signs, self._signs)
        curvatures = factor * self.variables.penalty_curvatures(x)
        return np.concatenate([full.ravel()[self._upper], curvatures])

    def _slopes(self, routed: BranchRows, slopes: FloatArray) -> FloatArray:
        """J: derivatives of V by every number, (n_numbers, n_rows)."""
        variables, rows = self.variables, self.blocks.rows
        by_branch = [slopes[t] * rows for t in variables.branches]
        reach = routed.leaf_probabilities[variables.leaves]
        labels, classes = self.blocks.samples.labels, range(self.problem.n_groups)
        by_class = [np.where(labels == k, reach, 0.0) for k in classes]
        return np.vstack([*by_branch, *by_class])

    def _add_curvature(
        self, matrix: FloatArray, routed: BranchRows, slopes: FloatArray, weights: FloatArray
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
            lines = first + place[leaf] + n_leaves * np.arange(self.problem.n_groups)
            own = slice(blocks.place[step.branch] * width, (blocks.place[step.branch] + 1) * width)
            matrix[own, lines] += by_class
            matrix[lines, own] += by_class.T

    def _add_ridge_and_prior(
        self, matrix: FloatArray, leaf_values: FloatArray, factor: float
    ) -> None:
        width, diagonal = self.problem.n_features + 1, np.einsum("ii->i", matrix)
        first = len(self.variables.branches) * width
        by_branch = diagonal[:first].reshape(-1, width)
        by_branch[:, :-1] += factor * self.problem.ridge
        rule = self.problem.loss.leaf_rule
        if isinstance(rule, CountedDistributions):
            held = leaf_values[:, self.variables.leaves]
            diagonal[first:] += (factor * rule.pseudo_counts[:, None] / held**2).ravel()
