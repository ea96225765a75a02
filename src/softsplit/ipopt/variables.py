"""The variables: split weights, thresholds, leaf classes, global bounds.

    a in [low, high],  mu in its own bounds,  c in [0, 1]              (problem.bounds)
    a = a_plus - a_minus, in [0, high] and [0, -low]                   with a local penalty
    beta_j >= floor_j,  beta_j >= a_plus_jt + a_minus_jt (or >= a_jt and >= -a_jt)

    penalty = local strength * sum_jt phi(a_plus_jt + a_minus_jt)
              + global strength * sum_j phi(beta_j)
              + the proximal term of a decomposition step, in a, mu and c (problem/problem.py)

Only the variables of free branches and leaves are in x, in the order a_plus (or a), a_minus, mu,
c, beta. The linear constraints are A x with A constant: leaf simplex, class coverage (where leaves
carry classes), beta. Weights are split only where the local penalty needs it: twice the columns is
twice the time. Under a prior the shares of a leaf stay above a floor that no best leaf comes near.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from softsplit.problem.leaves import ClassAssignment, CountedDistributions
from softsplit.problem.penalties import Penalty
from softsplit.problem.problem import TrainingProblem
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters

IntArray = NDArray[np.int64]

COVERED = 1e-9
"""A class this close to one leaf's worth among the fixed leaves needs no free leaf."""

LEAST_SHARE = 1e-3
"""Least share of a leaf under a prior, as a part of what an empty leaf would be left with."""


class TreeVariables:
    """Where each variable of a problem is in x, its bounds, its penalty, its linear constraints.

    Attributes
    ----------
    branches, leaves : int arrays
        The free ones.
    place : dict from a free branch to its number among them
    weights : int array (n_features, n_free_branches)
        Positions of a_plus, or of a where it is not split.
    negative : the same for a_minus, or None
    thresholds : int array (n_free_branches,)
    leaf_values : int array (n_groups, n_free_leaves)
    caps : int array (n_features,), of beta, or one for each group of features; empty without a
        global penalty
    """

    def __init__(self, problem: TrainingProblem) -> None:
        self.problem = problem
        local, global_ = problem.penalties.local, problem.penalties.global_
        self.branches = np.flatnonzero(problem.free_branches)
        self.leaves = np.flatnonzero(problem.free_leaves)
        self.place = {int(t): b for b, t in enumerate(self.branches)}
        self.size = 0
        p, n_free = problem.n_features, len(self.branches)
        # One branch after the other, so that the block of a branch is contiguous.
        self.weights = self._take(n_free, p).T
        self.negative = self._take(n_free, p).T if local.strength > 0 else None
        self.thresholds = self._take(1, n_free)[0]
        self.leaf_values = self._take(problem.n_groups, len(self.leaves))
        n_caps = len(problem.global_floor)
        self.caps = self._take(1, n_caps if global_.strength > 0 and n_free else 0)[0]
        self._set_bounds()
        self._set_linear_constraints()

    def _take(self, n_rows: int, n_columns: int) -> IntArray:
        first, self.size = self.size, self.size + n_rows * n_columns
        return np.arange(first, self.size).reshape(n_rows, n_columns)

    def _set_bounds(self) -> None:
        bounds, rule = self.problem.bounds, self.problem.loss.leaf_rule
        low, high = bounds.low[:, self.branches], bounds.high[:, self.branches]
        self.lower, self.upper = np.empty(self.size), np.empty(self.size)
        self.lower[self.weights], self.upper[self.weights] = low, high
        if self.negative is not None:
            self.lower[self.weights] = self.lower[self.negative] = 0.0
            self.upper[self.negative] = -low
        self.lower[self.thresholds] = bounds.threshold_low[self.branches]
        self.upper[self.thresholds] = bounds.threshold_high[self.branches]
        self.lower[self.leaf_values], self.upper[self.leaf_values] = 0.0, 1.0
        if isinstance(rule, CountedDistributions):
            counts, total = rule.pseudo_counts, float(self.problem.rows.group_totals.sum())
            self.lower[self.leaf_values] = (LEAST_SHARE * counts / (counts.sum() + total))[:, None]
        if len(self.caps):
            sizes = np.maximum(bounds.high, -bounds.low)
            most = np.max(self.problem.penalties.global_.rows(sizes), axis=1)
            self.upper[self.caps] = most
            self.lower[self.caps] = np.minimum(self.problem.global_floor, most)

    def columns(self, b: int) -> IntArray:
        """Positions of the variables of the b-th free branch: weights, a_minus, threshold."""
        parts = [self.weights[:, b]]
        if self.negative is not None:
            parts.append(self.negative[:, b])
        return np.append(np.concatenate(parts), self.thresholds[b])

    @cached_property
    def expansion(self) -> tuple[IntArray, FloatArray]:
        """Which extended feature each variable of a branch multiplies, and with which sign."""
        p = self.problem.n_features
        if self.negative is None:
            return np.arange(p + 1), np.ones(p + 1)
        index = np.concatenate([np.arange(p), np.arange(p), [p]])
        return index, np.concatenate([np.ones(p), -np.ones(p), [1.0]])

    def expand(self, by_feature: FloatArray) -> FloatArray:
        """Derivatives in (a_t, mu_t), last axis n_features + 1, as derivatives in x."""
        index, sign = self.expansion
        return by_feature[..., index] * sign

    def tree(self, x: FloatArray) -> TreeParameters:
        """The tree at x; fixed variables keep their anchor."""
        problem = self.problem
        anchor = problem.anchor or TreeParameters.neutral(
            problem.n_features, problem.n_groups, problem.topology
        )
        weights = np.array(anchor.weights, dtype=float)
        thresholds = np.array(anchor.thresholds, dtype=float)
        leaf_values = np.array(anchor.leaf_values, dtype=float)
        negative = 0.0 if self.negative is None else x[self.negative]
        weights[:, self.branches] = x[self.weights] - negative
        thresholds[self.branches] = x[self.thresholds]
        leaf_values[:, self.leaves] = x[self.leaf_values]
        return TreeParameters(weights, thresholds, leaf_values)

    def start(self, parameters: TreeParameters) -> FloatArray:
        """The point that stands for a tree, with beta_j = max_t |a_jt|."""
        x = np.zeros(self.size)
        weights = parameters.weights[:, self.branches]
        if self.negative is None:
            x[self.weights] = weights
        else:
            x[self.weights], x[self.negative] = np.maximum(weights, 0), np.maximum(-weights, 0)
        x[self.thresholds] = parameters.thresholds[self.branches]
        x[self.leaf_values] = parameters.leaf_values[:, self.leaves]
        if len(self.caps):
            x[self.caps] = self.problem.penalties.global_.magnitudes(weights)
        return np.clip(x, self.lower, self.upper)

    # Penalties. A further term that is a sum over single variables belongs beside them.

    def _sizes(self, x: FloatArray) -> FloatArray:
        assert self.negative is not None
        return x[self.weights] + x[self.negative]

    @cached_property
    def _fixed_penalty(self) -> float:
        """Local penalty of the fixed branches: a constant, so that f is the whole objective."""
        problem, local = self.problem, self.problem.penalties.local
        if problem.anchor is None:
            return 0.0
        fixed = local.value(problem.anchor.weights[:, ~problem.free_branches])
        if len(self.branches) == 0:
            fixed += problem.penalties.global_.value(problem.anchor.weights)
        return fixed

    def penalty(self, x: FloatArray) -> float:
        """Both penalties, with those of the fixed branches."""
        local, global_ = self.problem.penalties.local, self.problem.penalties.global_
        total = self._fixed_penalty
        if local.strength > 0:
            total += local.strength * float(np.sum(local.surrogate.value(self._sizes(x))))
        if len(self.caps):
            each = global_.surrogate.value(x[self.caps])
            total += global_.strength * float(np.sum(_at_prices(global_, each)))
        if self.problem.proximal is not None:
            total += self.problem.proximal.value(self.tree(x))
        return total

    def add_penalty_gradient(self, x: FloatArray, gradient: FloatArray) -> None:
        """Add the gradient of the penalties to ``gradient``."""
        local, global_ = self.problem.penalties.local, self.problem.penalties.global_
        if local.strength > 0 and self.negative is not None:
            slopes = local.strength * local.surrogate.slope(self._sizes(x))
            gradient[self.weights] += slopes
            gradient[self.negative] += slopes
        if len(self.caps):
            slopes = global_.surrogate.slope(x[self.caps])
            gradient[self.caps] += global_.strength * _at_prices(global_, slopes)
        if self.problem.proximal is not None:
            self._add_proximal_gradient(x, gradient)

    def _add_proximal_gradient(self, x: FloatArray, gradient: FloatArray) -> None:
        assert self.problem.proximal is not None
        strength, centre = self.problem.proximal.strength, self.problem.proximal.centre
        tree = self.tree(x)
        pull = strength * (tree.weights - centre.weights)[:, self.branches]
        gradient[self.weights] += pull
        if self.negative is not None:
            gradient[self.negative] -= pull
        shift = strength * (tree.thresholds - centre.thresholds)
        gradient[self.thresholds] += shift[self.branches]
        change = strength * (tree.leaf_values - centre.leaf_values)
        gradient[self.leaf_values] += change[:, self.leaves]

    def penalty_positions(self) -> tuple[IntArray, IntArray]:
        """Where the second derivatives of the penalties are, in the upper triangle."""
        rows, columns = [self.caps], [self.caps]
        if self.problem.penalties.local.strength > 0 and self.negative is not None:
            positive, negative = self.weights.ravel(), self.negative.ravel()
            rows += [positive, positive, negative]
            columns += [positive, negative, negative]
        if self.problem.proximal is not None:
            diagonal, (positive, negative) = self._proximal_diagonal(), self._split_pairs()
            rows += [diagonal, positive]
            columns += [diagonal, negative]
        return np.concatenate(rows), np.concatenate(columns)

    def _proximal_diagonal(self) -> IntArray:
        """Every variable but beta."""
        return np.setdiff1d(np.arange(self.size), self.caps)

    def _split_pairs(self) -> tuple[IntArray, IntArray]:
        """a_plus and a_minus of every split weight; empty where weights are not split."""
        if self.negative is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return self.weights.ravel(), self.negative.ravel()

    def penalty_curvatures(self, x: FloatArray) -> FloatArray:
        """The second derivatives that belong to ``penalty_positions``."""
        local, global_ = self.problem.penalties.local, self.problem.penalties.global_
        parts = [np.zeros(0)]
        if len(self.caps):
            curvatures = global_.surrogate.curvature(x[self.caps])
            parts.append(global_.strength * _at_prices(global_, curvatures))
        if local.strength > 0:
            curvature = local.strength * local.surrogate.curvature(self._sizes(x)).ravel()
            parts += [curvature, curvature, curvature]
        if self.problem.proximal is not None:
            strength = self.problem.proximal.strength
            parts.append(np.full(len(self._proximal_diagonal()), strength))
            parts.append(np.full(len(self._split_pairs()[0]), -strength))
        return np.concatenate(parts)

    # Linear constraints.

    def _set_linear_constraints(self) -> None:
        # Rows of the blocks one below the other.
        blocks = [self._simplex(), self._coverage(), self._cap_constraints()]
        rows, columns, values, lower, upper = [], [], [], [], []
        n_rows = 0
        for block_rows, block_columns, block_values, low, high in blocks:
            rows.append(block_rows + n_rows)
            columns.append(block_columns)
            values.append(block_values)
            lower.append(low)
            upper.append(high)
            n_rows += len(low)
        self.linear_rows, self.linear_columns = np.concatenate(rows), np.concatenate(columns)
        self.linear_values = np.concatenate(values).astype(float)
        self.linear_lower, self.linear_upper = np.concatenate(lower), np.concatenate(upper)
        self.linear = coo_array(
            (self.linear_values, (self.linear_rows, self.linear_columns)),
            shape=(n_rows, self.size),
        ).tocsr()

    def _simplex(self) -> _Block:
        n_groups, n_leaves = self.leaf_values.shape
        ones = np.ones(n_leaves)
        rows = np.tile(np.arange(n_leaves), n_groups)
        return rows, self.leaf_values.ravel(), np.ones(len(rows)), ones, ones

    def _coverage(self) -> _Block:
        """sum_l c_kl >= what the fixed leaves leave open.

        With as many classes as leaves the inequalities leave no interior, which an
        interior-point method cannot bear: they are equations then, and the last one follows
        from the others. Leaves with distributions cover nothing.
        """
        if not isinstance(self.problem.loss.leaf_rule, ClassAssignment):
            return _no_rows()
        n_groups, n_leaves = self.leaf_values.shape
        needed = np.ones(n_groups)
        if self.problem.anchor is not None:
            fixed = self.problem.anchor.leaf_values[:, ~self.problem.free_leaves]
            needed = np.maximum(needed - fixed.sum(axis=1), 0.0)
        # What fixed leaves cover but for rounding asks for nothing of the free ones.
        needed[needed < COVERED] = 0.0
        classes = np.flatnonzero(needed) if n_leaves else np.zeros(0, dtype=int)
        tight = n_leaves > 0 and needed.sum() >= n_leaves - COVERED
        upper = np.full(n_groups, np.inf)
        if tight:
            needed *= n_leaves / needed.sum()
            upper = needed
            self.upper[self.leaf_values[needed == 0]] = 0.0
            classes = classes[:-1]
        rows = np.repeat(np.arange(len(classes)), n_leaves)
        columns = self.leaf_values[classes].ravel()
        return rows, columns, np.ones(len(rows)), needed[classes], upper[classes]

    def _cap_constraints(self) -> _Block:
        """beta_j - (a_plus + a_minus) >= 0, or beta_j - a >= 0 and beta_j + a >= 0."""
        if len(self.caps) == 0:
            return _no_rows()
        positive = self.weights.ravel()
        groups = self.problem.feature_groups
        caps = self.caps if groups is None else self.caps[groups.of]
        caps = np.repeat(caps, len(self.branches))
        n_rows = len(positive)
        index = np.arange(n_rows)
        if self.negative is not None:
            rows = np.concatenate([index, index, index])
            columns = np.concatenate([caps, positive, self.negative.ravel()])
            signs = np.repeat([1.0, -1.0, -1.0], n_rows)
        else:
            rows = np.concatenate([index, index, index + n_rows, index + n_rows])
            columns = np.concatenate([caps, positive, caps, positive])
            signs = np.repeat([1.0, -1.0, 1.0, 1.0], n_rows)
            n_rows *= 2
        return rows, columns, signs, np.zeros(n_rows), np.full(n_rows, np.inf)


_Block = tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]


def _at_prices(penalty: Penalty, values: FloatArray) -> FloatArray:
    """Values of the global penalty, one for each feature or group, at their prices."""
    return values if penalty.prices is None else penalty.prices * values


def _no_rows() -> _Block:
    none, empty = np.zeros(0, dtype=np.int64), np.zeros(0)
    return none, none, empty, empty, empty
