"""Strategy (i) of section 4.1: the leaf probabilities are variables tied by equations.

    f(x) = sum_i weight_i sum_l P_il sum_k cost[y_i, k] c_kl + penalty(x)
    g(x) = A x,  rate_k = sum_{i in k} weight_i sum_l P_il c_kl / n_k,  P_il - product of gates = 0

The cost is written row by row: summed over the rows first it would couple all P_il with each other
in the Hessian. Over the branches the Hessian is one pass of ``second_order.py`` with leaf values
minus the multipliers of the equations; between P_il and c_kl it is weight_i (factor * cost[y_i, k]
+ lambda_k / n_k [y_i = k]). Leaves that no free branch leads to keep their probabilities and get no
variables. The P_il follow the variables of ``variables.py``, leaf by leaf.
"""

from __future__ import annotations

import numpy as np

from softsplit.ipopt.program import IntArray, Pattern
from softsplit.ipopt.variables import BranchBlocks, TreeVariables
from softsplit.problem.problem import TrainingProblem
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters


class ExplicitProgram:
    """The training problem with P_il among the variables."""

    def __init__(self, problem: TrainingProblem) -> None:
        self.problem = problem
        self.variables = TreeVariables(problem)
        self.blocks = BranchBlocks(self.variables, problem.samples)
        self.classes = np.flatnonzero(problem.minimum_rates > 0)
        self.moving = np.unique([leaf for leaf, _ in self.blocks.leaf_steps]).astype(int)
        samples = problem.samples
        n_moving, n_rows, first = len(self.moving), samples.n_rows, self.variables.size
        self.size = first + n_moving * n_rows
        self.probabilities = np.arange(first, self.size).reshape(n_moving, n_rows)
        self._labels = samples.labels
        self._fixed = self.blocks.routed(self.variables.tree(self.variables.lower))
        self._set_bounds()
        self.jacobian_pattern = self._jacobian_pattern()
        self.hessian_pattern = self._hessian_pattern()

    def _set_bounds(self) -> None:
        variables, minimum = self.variables, self.problem.minimum_rates[self.classes]
        n_equations = self.probabilities.size
        zeros = np.zeros(n_equations)
        self.lower = np.concatenate([variables.lower, zeros])
        self.upper = np.concatenate([variables.upper, np.ones(n_equations)])
        self.constraint_lower = np.concatenate([variables.linear_lower, minimum, zeros])
        no_limit = np.full(len(minimum), np.inf)
        self.constraint_upper = np.concatenate([variables.linear_upper, no_limit, zeros])

    def start(self, parameters: TreeParameters) -> FloatArray:
        """The point of a tree, with the probabilities of its own routing."""
        routed = self.blocks.routed(self.problem.pin(parameters))
        moving = routed.leaf_probabilities[self.moving]
        return np.concatenate([self.variables.start(parameters), moving.ravel()])

    def tree(self, x: FloatArray) -> TreeParameters:
        return self.variables.tree(x)

    def _leaf_probabilities(self, x: FloatArray) -> FloatArray:
        """P_il, those of the leaves that do not move included, (n_leaves, n_rows)."""
        probabilities = np.array(self._fixed.leaf_probabilities)
        probabilities[self.moving] = x[self.probabilities]
        return probabilities

    def _mass(self, x: FloatArray) -> FloatArray:
        """M_kl from the variables P_il, (n_groups, n_leaves)."""
        weighted = self._leaf_probabilities(x) * self.problem.samples.weights
        return np.add.reduceat(weighted, self.problem.samples.starts[:-1], axis=1).T

    def objective(self, x: FloatArray) -> float:
        table = self.problem.loss.table(self.tree(x).leaf_values)
        return float(np.sum(table * self._mass(x))) + self.variables.penalty(x)

    def gradient(self, x: FloatArray) -> FloatArray:
        problem, variables = self.problem, self.variables
        gradient = np.zeros(self.size)
        by_leaf = problem.loss.leaf_gradient(self._mass(x))
        gradient[variables.leaf_values] = by_leaf[:, variables.leaves]
        table = problem.loss.table(self.tree(x).leaf_values)
        per_row = table[self._labels].T * problem.samples.weights
        gradient[self.probabilities] = per_row[self.moving]
        variables.add_penalty_gradient(x, gradient)
        return gradient

    def constraints(self, x: FloatArray) -> FloatArray:
        tree = self.tree(x)
        rates = self.problem.rates(tree, self._mass(x))[self.classes]
        routed = self.blocks.routed(tree).leaf_probabilities[self.moving]
        equations = (x[self.probabilities] - routed).ravel()
        linear = self.variables.linear @ x[: self.variables.size]
        return np.concatenate([linear, rates, equations])

    def _jacobian_pattern(self) -> Pattern:
        variables, samples = self.variables, self.problem.samples
        n_linear, n_rates = len(variables.linear_lower), len(self.classes)
        rows, columns = [variables.linear_rows], [variables.linear_columns]
        for position, k in enumerate(self.classes):
            own = self.probabilities[:, samples.starts[k] : samples.starts[k + 1]].ravel()
            reached = np.concatenate([own, variables.leaf_values[k]])
            rows.append(np.full(len(reached), n_linear + position))
            columns.append(reached)
        first = n_linear + n_rates
        equations = first + np.arange(self.probabilities.size).reshape(self.probabilities.shape)
        rows.append(equations.ravel())
        columns.append(self.probabilities.ravel())
        place = {int(leaf): position for position, leaf in enumerate(self.moving)}
        for leaf, step in self.blocks.leaf_steps:
            branch = self.blocks.columns(step.branch)
            rows.append(np.repeat(equations[place[leaf]], len(branch)))
            columns.append(np.tile(branch, samples.n_rows))
        shape = (first + self.probabilities.size, self.size)
        return Pattern.of(np.concatenate(rows), np.concatenate(columns), shape)

    def jacobian(self, x: FloatArray) -> FloatArray:
        variables, samples, tree = self.variables, self.problem.samples, self.tree(x)
        parts = [variables.linear_values]
        shares = self.problem.shares(self._mass(x))
        for k in self.classes:
            own = samples.weights[samples.starts[k] : samples.starts[k + 1]]
            per_leaf = tree.leaf_values[k, self.moving] / samples.group_totals[k]
            parts += [np.outer(per_leaf, own).ravel(), shares[k, variables.leaves]]
        parts.append(np.ones(self.probabilities.size))
        routed = self.blocks.routed(tree)
        by_row = variables.expand(self.blocks.rows.T)
        for leaf, step in self.blocks.leaf_steps:
            parts.append((-routed.leaf_slope(leaf, step)[:, None] * by_row).ravel())
        return np.concatenate(parts)

    def _hessian_pattern(self) -> Pattern:
        rows, columns = zip(
            self.blocks.positions(),
            self._mixed_positions(),
            self.variables.penalty_positions(),
            strict=True,
        )
        return Pattern.of(np.concatenate(rows), np.concatenate(columns), (self.size, self.size))

    def _mixed_positions(self) -> tuple[IntArray, IntArray]:
        """Between c_kl and P_il, for the (class of the row, k) that may have a nonzero."""
        problem, variables = self.problem, self.variables
        coupled = problem.loss.call_costs(problem.n_groups) != 0
        coupled[self.classes, self.classes] = True
        self._coupled = coupled[self._labels].T
        rows, columns = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        shared, at_moving, at_free = np.intersect1d(
            self.moving, variables.leaves, return_indices=True
        )
        self._n_mixed = len(shared)
        for m, free in zip(at_moving, at_free, strict=True):
            classes, samples = np.nonzero(self._coupled)
            rows.append(variables.leaf_values[classes, free])
            columns.append(self.probabilities[m, samples])
        return np.concatenate(rows), np.concatenate(columns)

    def hessian(self, x: FloatArray, factor: float, multipliers: FloatArray) -> FloatArray:
        problem, samples, tree = self.problem, self.problem.samples, self.tree(x)
        n_linear, n_rates = len(self.variables.linear_lower), len(self.classes)
        price = np.zeros(problem.n_groups)
        rate_multipliers = multipliers[n_linear : n_linear + n_rates]
        price[self.classes] = rate_multipliers / samples.group_totals[self.classes]
        routed = self.blocks.routed(tree)
        leaf_values = np.zeros((problem.topology.n_leaves, samples.n_rows))
        equations = multipliers[n_linear + n_rates :]
        leaf_values[self.moving] = -equations.reshape(self.probabilities.shape)
        per_class = factor * problem.loss.call_costs(problem.n_groups) + np.diag(price)
        mixed = (per_class[self._labels].T * samples.weights)[self._coupled]
        return np.concatenate(
            [
                self.blocks.hessian(routed, routed.score_slopes(leaf_values)),
                np.tile(mixed, self._n_mixed),
                factor * self.variables.penalty_curvatures(x),
            ]
        )
