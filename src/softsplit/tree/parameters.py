"""Topology and parameters of a tree.

Nodes are numbered in heap order: the root is 0 and the children of branch ``t`` are
``2t + 1`` (left) and ``2t + 2`` (right). A tree of depth ``D`` has ``2^D - 1`` branches,
nodes ``0 .. n_branches - 1``, and ``2^D`` leaves, numbered ``0 .. n_leaves - 1`` from left
to right; leaf ``l`` is node ``n_branches + l``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softsplit.support.arguments import whole_number
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import unfit

MAX_DEPTH = 16
"""Deepest tree: 65,535 branches, more than any table supports."""


class Step(NamedTuple):
    """One decision on the path from the root to a leaf."""

    branch: int
    goes_left: bool


@dataclass(frozen=True)
class Topology:
    """A complete binary tree of the given depth."""

    depth: int

    def __post_init__(self) -> None:
        if not isinstance(self.depth, int) or not 1 <= self.depth <= MAX_DEPTH:
            raise unfit("depth", self.depth, f"must be an integer between 1 and {MAX_DEPTH}")

    @classmethod
    def with_leaves(cls, n_groups: int) -> Topology:
        """Return the smallest tree with ``n_groups`` leaves or more."""
        return cls(max(1, int(np.ceil(np.log2(n_groups)))))

    @classmethod
    def with_branches(cls, n_branches: int) -> Topology:
        """Return the tree with exactly ``n_branches`` branches."""
        depth = (n_branches + 1).bit_length() - 1
        if 2**depth - 1 != n_branches:
            raise ValueError(f"no complete binary tree has {n_branches} branches.")
        return cls(depth)

    @property
    def n_branches(self) -> int:
        return 2**self.depth - 1

    @property
    def n_leaves(self) -> int:
        return 2**self.depth

    def path(self, leaf: int) -> tuple[Step, ...]:
        """Return the decisions from the root to ``leaf``: N_L(t) and N_R(t) of the paper."""
        return self.ancestors(self.n_branches + leaf)

    def ancestors(self, node: int) -> tuple[Step, ...]:
        """Return the decisions from the root to ``node``."""
        steps = []
        while node > 0:
            parent = (node - 1) // 2
            steps.append(Step(parent, node == 2 * parent + 1))
            node = parent
        return tuple(reversed(steps))

    def leaves_below(self, node: int) -> range:
        """Return the leaves under ``node`` (a branch, or a leaf as ``n_branches + leaf``)."""
        first = last = node
        while first < self.n_branches:
            first, last = 2 * first + 1, 2 * last + 2
        return range(first - self.n_branches, last - self.n_branches + 1)


def tree_depth(value: Any) -> int:
    """Return ``value`` as a valid depth; raise ``ValueError`` otherwise."""
    return Topology(whole_number("depth", value)).depth


@dataclass(frozen=True)
class TreeParameters:
    """The decision variables of the training problem.

    Parameters
    ----------
    weights : array of shape (n_features, n_branches)
        Split coefficients a_jt; in [-1, 1] with loss "cost", unbounded with loss "log".
    thresholds : array of shape (n_branches,)
        Split thresholds mu_t, likewise.
    leaf_values : array of shape (n_groups, n_leaves)
        Values c_kl of each leaf: every column is a distribution over the target groups.
    """

    weights: FloatArray
    thresholds: FloatArray
    leaf_values: FloatArray

    def __post_init__(self) -> None:
        branches = self.weights.shape[1]
        if self.thresholds.shape != (branches,) or self.leaf_values.shape[1] != branches + 1:
            raise ValueError(
                f"weights {self.weights.shape}, thresholds {self.thresholds.shape} and "
                f"leaf_values {self.leaf_values.shape} do not describe one tree."
            )

    @property
    def n_features(self) -> int:
        return int(self.weights.shape[0])

    @property
    def n_groups(self) -> int:
        return int(self.leaf_values.shape[0])

    @property
    def topology(self) -> Topology:
        return Topology.with_branches(self.weights.shape[1])

    @property
    def splits(self) -> FloatArray:
        """theta: weights and threshold of each branch, (n_branches, n_features + 1); a copy."""
        return np.ascontiguousarray(np.vstack([self.weights, self.thresholds]).T)

    @classmethod
    def from_splits(cls, splits: FloatArray, leaf_values: FloatArray) -> TreeParameters:
        """Return the tree with these splits and leaves; all arrays are copies."""
        weights = np.ascontiguousarray(splits[:, :-1].T)
        return cls(weights, splits[:, -1].copy(), np.array(leaf_values))

    @classmethod
    def neutral(cls, n_features: int, n_groups: int, topology: Topology) -> TreeParameters:
        """Return the trivial feasible point of the paper: a = 0, mu = 0, c = 1/K."""
        return cls(
            np.zeros((n_features, topology.n_branches)),
            np.zeros(topology.n_branches),
            np.full((n_groups, topology.n_leaves), 1.0 / n_groups),
        )


@dataclass(frozen=True)
class Block:
    """A working set: the branches and leaves whose variables are free (W_B, W_L of the paper)."""

    branches: tuple[int, ...]
    leaves: tuple[int, ...]

    @classmethod
    def whole(cls, topology: Topology) -> Block:
        return cls(tuple(range(topology.n_branches)), tuple(range(topology.n_leaves)))
