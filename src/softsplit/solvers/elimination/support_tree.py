"""A tree with a mask of nonzero coefficients, in the units in which descents work.

A ``TrainingProblem`` routes rows by steepness (x . a / p - mu) on scaled features x. With unit =
steepness / p and z = unit (x - 1/2) the same number is z . a + b: weights are log-odds per unit of
z, the same in both forms, and

    b = unit / 2 sum_j a_j - steepness mu

A *saturated* branch sends all rows to one side: it has no weights, an intercept of +-SATURATION,
and does not move. The branches on its other side have no weights either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.bounds import Bounds
from softsplit.problem.feature_rules import FeatureRules
from softsplit.problem.penalties import Groups
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.size_limits import CountedSize, tree_size
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters

FEATURE_SIZE = 4.0
"""A feature counts as much as this number of coefficients: it has to be measured and explained."""

SATURATION = 40.0
"""Log-odds of a saturated branch: the probability of the other side is lost in rounding."""

ZERO_WEIGHT = 1e-8
"""Smaller weights become zero: a ridge has shrunk a coefficient that has no effect."""

REQUIRED_WEIGHT = 0.01
"""The largest weight of a required variable is at least this: its effect is hardly visible, and the
variable is in the tree."""

SMALLEST_SHARE = 1e-12
"""Smaller class shares of a leaf are raised to this, so that their logarithm is finite."""


@dataclass(frozen=True)
class SupportTree:
    """A tree on some columns, with its support.

    Attributes
    ----------
    splits : array (n_branches, n_columns + 1)
        Weights and, last, the intercept of each branch.
    log_odds : array (n_groups, n_leaves)
        The class distribution of a leaf is the softmax of its column.
    columns : int array (n_columns,)
        The features of the problem that the columns are.
    support : bool array (n_branches, n_columns)
        Coefficients that may differ from zero; all others are zero.
    saturated : bool array (n_branches,)
        Branches that send all rows to one side.
    groups : Groups, optional
        Groups of the features of the problem; without them each feature is its own group.
    """

    splits: FloatArray
    log_odds: FloatArray
    columns: NDArray[np.intp]
    support: NDArray[np.bool_]
    saturated: NDArray[np.bool_]
    groups: Groups | None = None

    @classmethod
    def of(cls, tree: TreeParameters, problem: TrainingProblem) -> SupportTree:
        """Return ``tree`` on all columns; its support are the nonzero coefficients."""
        unit = problem.steepness / problem.n_features
        weights = tree.weights.T
        intercepts = 0.5 * unit * weights.sum(axis=1) - problem.steepness * tree.thresholds
        return cls(
            np.column_stack([weights, intercepts]),
            np.log(np.maximum(tree.leaf_values, SMALLEST_SHARE)),
            np.arange(problem.n_features),
            weights != 0,
            np.zeros(len(weights), dtype=bool),
            problem.feature_groups,
        )

    def parameters(self, problem: TrainingProblem) -> TreeParameters:
        """Return the tree in the units of ``problem``."""
        unit = problem.steepness / problem.n_features
        weights = np.zeros((problem.n_features, len(self.splits)))
        nonzero = self.support & (np.abs(self.splits[:, :-1]) > ZERO_WEIGHT)
        weights[self.columns] = np.where(nonzero, self.splits[:, :-1], 0.0).T
        if problem.binding_rules is not None:
            self._raise_required(weights, problem.binding_rules, problem.bounds)
        thresholds = (0.5 * unit * weights.sum(axis=0) - self.splits[:, -1]) / problem.steepness
        shares = np.exp(self.log_odds - self.log_odds.max(axis=0))
        return TreeParameters(weights, thresholds, shares / shares.sum(axis=0))

    def _raise_required(self, weights: FloatArray, rules: FeatureRules, bounds: Bounds) -> None:
        """Raise the largest weight of a required variable to REQUIRED_WEIGHT where it is smaller.

        The ridge shrinks what says nothing to zero, and it is to be in the tree.
        """
        kept = self.on_features(len(weights))
        for variable in rules.required:
            sizes = np.where(kept & (rules.of == variable)[:, None], np.abs(weights), -1.0)
            place = np.unravel_index(int(np.argmax(sizes)), sizes.shape)
            if 0.0 <= sizes[place] < REQUIRED_WEIGHT:
                sign = weights[place] if sizes[place] > 0 else bounds.high[place] or -1.0
                weights[place] = np.copysign(REQUIRED_WEIGHT, sign)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of branches and classes."""
        return len(self.splits), len(self.log_odds)

    @cached_property
    def n_coefficients(self) -> int:
        """Coefficients of the support."""
        return int(np.count_nonzero(self.support))

    @cached_property
    def group_of(self) -> NDArray[np.intp]:
        """Number of the group of every column."""
        if self.groups is None:
            return np.arange(len(self.columns))
        return np.unique(self.groups.of[self.columns], return_inverse=True)[1]

    @cached_property
    def n_features(self) -> int:
        """Features of the support; a group counts as one."""
        used = self.support.any(axis=0)
        return int(
            np.count_nonzero(used if self.groups is None else np.bincount(self.group_of[used]))
        )

    @cached_property
    def group_prices(self) -> FloatArray | None:
        """Price of every group of ``group_of``; None if all are one."""
        if self.groups is None or self.groups.prices is None:
            return None
        return self.groups.prices[np.unique(self.groups.of[self.columns])]

    @cached_property
    def price(self) -> float:
        """Features of the support, each at its price."""
        if self.group_prices is None:
            return float(self.n_features)
        used = np.unique(self.group_of[self.support.any(axis=0)])
        return float(self.group_prices[used].sum())

    def on_features(self, n_features: int) -> NDArray[np.bool_]:
        """The support on all features of the problem, (n_features, n_branches)."""
        kept = np.zeros((n_features, len(self.splits)), dtype=bool)
        kept[self.columns] = self.support.T
        return kept

    @property
    def tree_size(self) -> CountedSize:
        """Features, terms of the longest question, and questions of the support."""
        some = None if self.groups is None else Groups(self.group_of)
        return tree_size(self.support.T, some)

    @property
    def size(self) -> float:
        """Coefficients, and FEATURE_SIZE for each feature or group: what elimination lowers."""
        return self.n_coefficients + FEATURE_SIZE * self.n_features

    @property
    def vector(self) -> FloatArray:
        """A copy of all parameters in one vector, in the order of objective.py."""
        return np.concatenate([self.splits.ravel(), self.log_odds.ravel()])

    @property
    def free(self) -> NDArray[np.bool_]:
        """Mask of the entries of ``vector`` that descents may change."""
        free = np.ones(self.splits.size + self.log_odds.size, dtype=bool)
        splits = free[: self.splits.size].reshape(self.splits.shape)
        splits[:, :-1], splits[:, -1] = self.support, ~self.saturated
        return free

    def vector_bounds(self, bounds: Bounds) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest values of ``vector``; intercepts and log-odds have no bounds."""
        low, high = np.full(self.free.shape, -np.inf), np.full(self.free.shape, np.inf)
        for ends, weights in ((low, bounds.low), (high, bounds.high)):
            splits = ends[: self.splits.size].reshape(self.splits.shape)
            splits[:, :-1] = weights[self.columns, : len(splits)].T
        return low, high

    def moved_to(self, vector: FloatArray) -> SupportTree:
        """Return the tree with the parameters of ``vector``."""
        end = self.splits.size
        splits = vector[:end].reshape(self.splits.shape)
        return replace(self, splits=splits, log_odds=vector[end:].reshape(self.log_odds.shape))

    def compact(self) -> SupportTree:
        """Return the tree without the columns that no coefficient uses."""
        used = self.support.any(axis=0)
        splits = self.with_support(self.support).splits[:, np.append(used, True)]
        return replace(
            self, splits=splits, columns=self.columns[used], support=self.support[:, used]
        )

    def on_columns(self, columns: NDArray[np.intp]) -> SupportTree:
        """Return the tree on ``columns`` of the problem, numbered anew.

        Columns that it lacks get weight zero and belong to the support.
        """
        known = np.isin(columns, self.columns)
        at = np.searchsorted(self.columns, columns[known])
        splits = np.zeros((len(self.splits), len(columns) + 1))
        splits[:, :-1][:, known], splits[:, -1] = self.splits[:, at], self.splits[:, -1]
        support = np.ones((len(self.splits), len(columns)), dtype=bool) & ~self.saturated[:, None]
        support[:, known] = self.support[:, at]
        return SupportTree(splits, self.log_odds, np.arange(len(columns)), support, self.saturated)

    def with_columns(self, columns: NDArray[np.intp], branches: NDArray[np.intp]) -> SupportTree:
        """Return the tree with more ``columns``, whose weights may move in some ``branches``."""
        every = np.union1d(self.columns, columns)
        old, new = np.searchsorted(every, self.columns), np.searchsorted(every, columns)
        splits = np.zeros((len(self.splits), len(every) + 1))
        splits[:, old], splits[:, -1] = self.splits[:, :-1], self.splits[:, -1]
        support = np.zeros((len(self.splits), len(every)), dtype=bool)
        support[:, old] = self.support
        support[np.ix_(branches, new)] = True
        return replace(self, splits=splits, columns=every, support=support)

    def with_support(self, support: NDArray[np.bool_]) -> SupportTree:
        """Return the tree with a smaller support."""
        splits = self.splits.copy()
        splits[:, :-1] *= support
        return replace(self, splits=splits, support=support)

    def saturate(self, branch: int, goes_left: bool) -> SupportTree:
        """Return the tree whose ``branch`` sends all rows to one side.

        The branches on its other side are removed with it.
        """
        support, splits = self.support.copy(), self.splits.copy()
        saturated = self.saturated.copy()
        removed = removed_branches(branch, goes_left, len(splits))
        support[removed], saturated[removed], splits[removed] = False, True, 0.0
        splits[removed, -1] = SATURATION if goes_left else -SATURATION
        return replace(self, splits=splits, support=support, saturated=saturated)

    def constant(self, shares: FloatArray) -> SupportTree:
        """Return the tree without features, whose leaves all have the class ``shares``."""
        splits = np.zeros((len(self.splits), 1))
        leaves = np.repeat(np.log(shares)[:, None], len(splits) + 1, axis=1)
        none = np.zeros((len(splits), 0), dtype=bool)
        return SupportTree(splits, leaves, self.columns[:0], none, np.ones(len(splits), dtype=bool))


@lru_cache(maxsize=4096)
def removed_branches(branch: int, goes_left: bool, n_branches: int) -> NDArray[np.intp]:
    """A branch that is saturated, and all branches on its other side."""
    return np.array([branch, *subtree(2 * branch + (2 if goes_left else 1), n_branches)])


@cache
def removal_matrix(n_branches: int) -> FloatArray:
    """``removed_branches`` of each branch to the left and to the right, as lines of ones and zeros:
    (2 n_branches, n_branches)."""
    matrix = np.zeros((2 * n_branches, n_branches))
    for line in range(2 * n_branches):
        matrix[line, removed_branches(line // 2, line % 2 == 0, n_branches)] = 1.0
    return matrix


def subtree(node: int, n_branches: int) -> list[int]:
    """A branch and all branches under it; empty for a leaf."""
    if node >= n_branches:
        return []
    return [node, *subtree(2 * node + 1, n_branches), *subtree(2 * node + 2, n_branches)]
