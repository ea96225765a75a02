"""A tree in the units of a descent: some columns of standardised rows, and what may move.

A problem routes rows by steepness (x . a / p - mu) on scaled features x. With unit = steepness / p
and z = unit (x - 1/2) that is z . a + b: weights are log-odds per unit, the same in both, and

    b = unit / 2 sum_j a_j - steepness mu

A branch whose rows all go one way is *closed*: it has no weights, an intercept of +-FAR, and does
not move. What lies on its other side has no weights either.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.penalties import Groups
from softsplit.problem.problem import TrainingProblem
from softsplit.solvers.elimination.deletion_costs import FEATURE_SIZE
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters

FAR = 40.0
"""Log-odds of a closed branch: what goes the other way is lost in rounding."""

NOTHING = 1e-8
"""Weights below this are what a ridge has left of a coefficient that does nothing: zero."""

SMALLEST_SHARE = 1e-12
"""Shares of a leaf below this start from here: their logarithm must be finite."""


@dataclass(frozen=True)
class Draft:
    """A tree on some columns.

    Attributes
    ----------
    splits : array (n_branches, n_columns + 1), intercept last
    log_odds : array (n_classes, n_leaves)
    columns : int array (n_columns,)
        Which features they are.
    kept : bool array (n_branches, n_columns)
        The coefficients that there are; all others are zero.
    open : bool array (n_branches,)
        Branches that are not closed.
    groups : Groups, optional
        Those of the features of the problem; each is one of its own if not given.
    """

    splits: FloatArray
    log_odds: FloatArray
    columns: NDArray[np.intp]
    kept: NDArray[np.bool_]
    open: NDArray[np.bool_]
    groups: Groups | None = None

    @classmethod
    def of(cls, tree: TreeParameters, problem: TrainingProblem) -> Draft:
        """All columns of a tree; coefficients that are zero are not there."""
        unit = problem.steepness / problem.n_features
        weights = tree.weights.T
        intercepts = 0.5 * unit * weights.sum(axis=1) - problem.steepness * tree.thresholds
        return cls(
            np.column_stack([weights, intercepts]),
            np.log(np.maximum(tree.leaf_classes, SMALLEST_SHARE)),
            np.arange(problem.n_features),
            weights != 0,
            np.ones(len(weights), dtype=bool),
            problem.groups,
        )

    def tree(self, problem: TrainingProblem) -> TreeParameters:
        """The tree in the units of a problem."""
        unit = problem.steepness / problem.n_features
        weights = np.zeros((problem.n_features, len(self.splits)))
        found = self.splits[:, :-1]
        weights[self.columns] = np.where(self.kept & (np.abs(found) > NOTHING), found, 0.0).T
        thresholds = (0.5 * unit * weights.sum(axis=0) - self.splits[:, -1]) / problem.steepness
        shares = np.exp(self.log_odds - self.log_odds.max(axis=0))
        return TreeParameters(weights, thresholds, shares / shares.sum(axis=0))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of branches and classes."""
        return len(self.splits), len(self.log_odds)

    @cached_property
    def n_coefficients(self) -> int:
        return int(np.count_nonzero(self.kept))

    @cached_property
    def homes(self) -> NDArray[np.intp]:
        """The group of every column, by number."""
        if self.groups is None:
            return np.arange(len(self.columns))
        return np.unique(self.groups.of[self.columns], return_inverse=True)[1]

    @cached_property
    def n_features(self) -> int:
        """Features that are used; of a group, one."""
        used = self.kept.any(axis=0)
        return int(np.count_nonzero(used if self.groups is None else np.bincount(self.homes[used])))

    @property
    def size(self) -> float:
        """Coefficients, and FEATURE_SIZE for each feature or group: what elimination lowers."""
        return self.n_coefficients + FEATURE_SIZE * self.n_features

    @property
    def vector(self) -> FloatArray:
        """All numbers in the order of objective.py; a copy."""
        return np.concatenate([self.splits.ravel(), self.log_odds.ravel()])

    @property
    def free(self) -> NDArray[np.bool_]:
        """Which of them may move."""
        free = np.ones(self.splits.size + self.log_odds.size, dtype=bool)
        splits = free[: self.splits.size].reshape(self.splits.shape)
        splits[:, :-1], splits[:, -1] = self.kept, self.open
        return free

    def moved_to(self, vector: FloatArray) -> Draft:
        """The same with other numbers."""
        end = self.splits.size
        splits = vector[:end].reshape(self.splits.shape)
        log_odds = vector[end:].reshape(self.log_odds.shape)
        return Draft(splits, log_odds, self.columns, self.kept, self.open, self.groups)

    def compact(self) -> Draft:
        """Without the columns that no coefficient is left of."""
        used = self.kept.any(axis=0)
        splits = self.splits.copy()
        splits[:, :-1] *= self.kept
        splits = splits[:, np.append(used, True)]
        return Draft(
            splits, self.log_odds, self.columns[used], self.kept[:, used], self.open, self.groups
        )

    def among(self, columns: NDArray[np.intp]) -> Draft:
        """On some columns of the problem, numbered anew; those that it lacks have weight zero."""
        known = np.isin(columns, self.columns)
        at = np.searchsorted(self.columns, columns[known])
        splits = np.zeros((len(self.splits), len(columns) + 1))
        splits[:, :-1][:, known], splits[:, -1] = self.splits[:, at], self.splits[:, -1]
        kept = np.ones((len(self.splits), len(columns)), dtype=bool) & self.open[:, None]
        kept[:, known] = self.kept[:, at]
        return Draft(splits, self.log_odds, np.arange(len(columns)), kept, self.open)

    def with_kept(self, kept: NDArray[np.bool_]) -> Draft:
        """With these of its coefficients only."""
        splits = self.splits.copy()
        splits[:, :-1] *= kept
        return Draft(splits, self.log_odds, self.columns, kept, self.open, self.groups)

    def closed(self, branch: int, goes_left: bool) -> Draft:
        """All rows of a branch to one side; what lies on the other side goes."""
        kept, splits, open_ = self.kept.copy(), self.splits.copy(), self.open.copy()
        lost = lost_branches(branch, goes_left, len(splits))
        kept[lost], open_[lost], splits[lost] = False, False, 0.0
        splits[lost, -1] = FAR if goes_left else -FAR
        return Draft(splits, self.log_odds, self.columns, kept, open_, self.groups)

    def featureless(self, shares: FloatArray) -> Draft:
        """The tree that gives all rows the same answer."""
        splits = np.zeros((len(self.splits), 1))
        leaves = np.repeat(np.log(shares)[:, None], len(splits) + 1, axis=1)
        none = np.zeros((len(splits), 0), dtype=bool)
        return Draft(splits, leaves, self.columns[:0], none, np.zeros(len(splits), dtype=bool))


@lru_cache(maxsize=4096)
def lost_branches(branch: int, goes_left: bool, n_branches: int) -> NDArray[np.intp]:
    """A branch that is closed, and all that lies on its other side."""
    return np.array([branch, *below(2 * branch + (2 if goes_left else 1), n_branches)])


@cache
def lost_with(n_branches: int) -> FloatArray:
    """1 where a branch is lost with another that is closed, towards the left and towards the right:
    (2 n_branches, n_branches)."""
    found = np.zeros((2 * n_branches, n_branches))
    for line in range(2 * n_branches):
        found[line, lost_branches(line // 2, line % 2 == 0, n_branches)] = 1.0
    return found


def below(node: int, n_branches: int) -> list[int]:
    """A branch and all branches under it; nothing for a leaf."""
    if node >= n_branches:
        return []
    return [node, *below(2 * node + 1, n_branches), *below(2 * node + 2, n_branches)]
