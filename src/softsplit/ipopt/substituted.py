"""Strategy (ii) of section 4.1: the leaf probabilities replaced by the product of gates.

    f(x) = sum_i weight_i sum_l P_il(a, mu) sum_k cost[y_i, k] c_kl + penalty(x)
    g(x) = A x,  rate_k = sum_l M_kl(a, mu) c_kl / n_k  for each class with a minimum rate

Value, gradient and masses come from the compiled pass (loss.py), the rest from second_order.py.
With multipliers lambda the Lagrangian is again linear in the leaf probabilities, so that its
Hessian over the branches is one pass with leaf values

    V_il = weight_i (factor * sum_k cost[y_i, k] c_kl + lambda_{y_i} / n_{y_i} c_{y_i l})

and between c_kl and a branch it is factor * sum_y cost[y, k] S[y] + lambda_k / n_k S[k].
"""

from __future__ import annotations

import numpy as np

from softsplit.ipopt.blocks import BranchBlocks
from softsplit.ipopt.program import IntArray, Pattern, outer_positions, upper_triangle
from softsplit.ipopt.variables import TreeVariables
from softsplit.problem.loss import Evaluation
from softsplit.problem.problem import TrainingProblem
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters


class SubstitutedProgram:
    """The training problem over weights, thresholds, leaf classes and global bounds alone."""

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
        found, variables = self._evaluate(x), self.variables
        gradient = np.zeros(variables.size)
        by_feature = np.vstack([found.weights, found.thresholds])
        for b, t in enumerate(variables.branches):
            gradient[variables.columns(b)] = variables.expand(by_feature[:, t])
        gradient[variables.leaf_classes] = found.leaf_classes[:, variables.leaves]
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
            reached = np.concatenate([*branches, variables.leaf_classes[k]])
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
                weight = tree.leaf_classes[k, leaf] / self.problem.samples.class_totals[k]
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
            classes = variables.leaf_classes[:, place[leaf]]
            block = outer_positions(classes, self.blocks.columns(step.branch))
            mirrored = upper_triangle(*block)
            rows.append(mirrored[0])
            columns.append(mirrored[1])
        return np.concatenate(rows), np.concatenate(columns)

    def hessian(self, x: FloatArray, factor: float, multipliers: FloatArray) -> FloatArray:
        problem, samples, tree = self.problem, self.blocks.samples, self.tree(x)
        price = np.zeros(problem.n_classes)
        n_linear = len(self.variables.linear_lower)
        price[self.classes] = multipliers[n_linear:] / samples.class_totals[self.classes]
        table = factor * problem.loss.table(tree.leaf_classes)
        table = table + price[:, None] * tree.leaf_classes
        routed = self.blocks.moving(tree)
        slopes = self.blocks.mass_slopes(routed)
        per_class = factor * problem.loss.call_costs(problem.n_classes).T + np.diag(price)
        mixed = np.einsum("ky,ysj->skj", per_class, slopes[:, self._mixed])
        return np.concatenate(
            [
                self.blocks.hessian(routed, routed.table_slopes(table)),
                self.variables.expand(mixed).ravel(),
                factor * self.variables.penalty_curvatures(x),
            ]
        )
