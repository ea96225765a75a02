"""Point sets that a soft tree can label in every way, and the trees that do it.

A construction puts clusters of points under the last branches of a tree. The branches above send
each cluster down its own path, whatever the labels. Under its last branch a cluster consists of
a base point v and of points v + s_i e_i, one for each feature i that is free to move; labels
y = +1 (class 1) or -1 (class 0) are met by

    margin  m    = min_i |s_i| / (2 p)
    weights a_i  = (y_i - y_0) m p / s_i          in [-1, 1]; zero for features that do not move
    threshold mu = (a . v) / p - y_0 m            in [-1, 1] for the clusters below

since then the score a . x / p - mu is y_0 m at v and y_i m at v + s_i e_i. The left leaf of each
last branch says class 1, the right one class 0, so that every tree is feasible for training.

If every score on the path of a point is at least m in size, then at steepness gamma each gate
errs with probability at most epsilon = 1 / (1 + exp(gamma m)), and the tree gives the point its
label with probability at least (1 - epsilon)^D. More than 1/2 is needed, hence

    gamma > -log(2^(1/D) - 1) / m.

Shapes: points (n_points, n_features), in the order of the last branches from left to right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softsplit.capacity.bounds import (
    METHODS,
    ClusterPlan,
    Method,
    cluster_plan,
    paper_plan,
)
from softsplit.capacity.growth import feature_levels
from softsplit.support.arguments import open_interval, whole_number
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import unfit
from softsplit.tree.parameters import Topology, TreeParameters, tree_depth

MOST_NUMBERS = 1e8
"""Larger point sets are refused: they would fill the memory."""


@dataclass(frozen=True)
class Construction:
    """Clusters of points and the upper branches that tell them apart.

    Parameters
    ----------
    depth : int
        Depth of the trees; levels below the last branches that are needed repeat their leaves.
    bases : array of shape (n_clusters, n_features)
    steps : array of shape (n_clusters, n_features)
        Zero where a cluster does not move.
    upper_weights : array of shape (n_features, n_clusters - 1)
    upper_thresholds : array of shape (n_clusters - 1,)
    """

    depth: int
    bases: FloatArray
    steps: FloatArray
    upper_weights: FloatArray
    upper_thresholds: FloatArray

    @property
    def n_clusters(self) -> int:
        return int(self.bases.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.bases.shape[1])

    @property
    def working_depth(self) -> int:
        """Levels whose branches matter."""
        return self.n_clusters.bit_length()

    @property
    def moving(self) -> NDArray[np.intp]:
        """Features in which the points of a cluster differ; the same in all clusters."""
        return np.flatnonzero(self.steps[0])

    @property
    def clusters(self) -> FloatArray:
        """The points, as an array of shape (n_clusters, 1 + n_moving, n_features)."""
        moving = self.moving
        points = np.repeat(self.bases[:, None, :], 1 + len(moving), axis=1)
        points[:, 1 + np.arange(len(moving)), moving] += self.steps[:, moving]
        return points

    @property
    def points(self) -> FloatArray:
        return self.clusters.reshape(-1, self.n_features)

    @property
    def n_points(self) -> int:
        return self.n_clusters * (1 + len(self.moving))

    @property
    def last_margin(self) -> float:
        """Size of all scores at the last branches."""
        return float(np.min(np.abs(self.steps[:, self.moving]))) / (2 * self.n_features)

    @property
    def margin(self) -> float:
        """The smallest score on the path of any point, towards the side it shall take."""
        smallest = self.last_margin
        if self.n_clusters == 1:
            return smallest
        scores = self.clusters @ (self.upper_weights / self.n_features) - self.upper_thresholds
        for cluster, steps in enumerate(self._paths()):
            for branch, goes_left in steps:
                towards = scores[cluster, :, branch] * (1.0 if goes_left else -1.0)
                smallest = min(smallest, float(towards.min()))
        return smallest

    def _paths(self) -> list[tuple[Any, ...]]:
        """Decisions above each cluster."""
        if self.n_clusters == 1:
            return [()]
        upper = Topology(self.working_depth - 1)
        return [upper.path(cluster) for cluster in range(self.n_clusters)]

    @property
    def largest_epsilon(self) -> float:
        """Gates may err with any probability below this."""
        return float(1.0 - 0.5 ** (1.0 / self.working_depth))

    def required_steepness(self, epsilon: float | None = None) -> float:
        """Steepness at which no gate errs with more than ``epsilon``.

        Without ``epsilon``: the value that the steepness must exceed for this proof to hold.
        """
        return _steepness(self.margin, self.working_depth, epsilon)

    def tree(self, labels: ArrayLike) -> TreeParameters:
        """The tree that gives ``points[i]`` the class ``labels[i]``, 0 or 1."""
        signs = 2.0 * self._checked(labels).reshape(self.n_clusters, -1) - 1.0
        topology = Topology(self.depth)
        above, last = self.n_clusters - 1, 2 * self.n_clusters - 1
        weights = np.zeros((self.n_features, topology.n_branches))
        thresholds = np.zeros(topology.n_branches)
        weights[:, :above], thresholds[:above] = self.upper_weights, self.upper_thresholds
        weights[:, above:last], thresholds[above:last] = self._last_branches(signs)
        leaf_values = np.zeros((2, topology.n_leaves))
        # The left leaves of a last branch say class 1, the right ones class 0.
        for branch in range(above, last):
            leaf_values[1, topology.leaves_below(2 * branch + 1)] = 1.0
            leaf_values[0, topology.leaves_below(2 * branch + 2)] = 1.0
        return TreeParameters(weights, thresholds, leaf_values)

    def _last_branches(self, signs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights (n_features, n_clusters) and thresholds (n_clusters,) that meet the labels."""
        moving, margin = self.moving, self.last_margin
        steps = self.steps[:, moving]
        # m p / s_i = min |s| / (2 s_i), written so that rounding cannot lead out of the box.
        weights = np.zeros((self.n_clusters, self.n_features))
        weights[:, moving] = (signs[:, 1:] - signs[:, :1]) / 2.0 * (np.abs(steps).min() / steps)
        offsets = np.einsum("cj,cj->c", weights, self.bases) / self.n_features
        return weights.T, offsets - signs[:, 0] * margin

    def _checked(self, labels: ArrayLike) -> FloatArray:
        given = np.asarray(labels)
        if given.shape != (self.n_points,) or not np.isin(given, (0, 1)).all():
            raise ValueError(
                f"labels must hold {self.n_points} values, each 0 or 1, one per point of the "
                f"construction; got an array of shape {given.shape}."
            )
        return given.astype(np.float64)


def construct(
    depth: int,
    n_features: int,
    binary: bool = False,
    *,
    levels: int | None = None,
    method: Method = "best",
) -> Construction:
    """The construction behind ``vc_lower_bound`` with the same arguments.

    All points lie in [0, 1]^p, where the library scales features to; on a grid they are vertices.
    """
    depth, n_features = tree_depth(depth), whole_number("n_features", n_features)
    plan = _chosen(depth, n_features, feature_levels(binary, levels), method)
    size = 2 ** (plan.working_depth - 1) * (n_features + 1) * n_features
    if size > MOST_NUMBERS:
        raise ValueError(
            f"the points for depth {depth} and {n_features} features hold {size:.1e} numbers, "
            f"more than {MOST_NUMBERS:.1e}; take a smaller depth or fewer features."
        )
    return _in_cells(depth, plan) if plan.cells else _hypercube(depth, plan)


def required_steepness(
    depth: int,
    n_features: int,
    binary: bool = False,
    *,
    levels: int | None = None,
    method: Method = "best",
    epsilon: float | None = None,
) -> float:
    """``construct(...).required_steepness(epsilon)``, without building the construction.

    The margin is 1 / (2p) on the unit cube, and h / (2p) in cells of width h at the narrowest.
    """
    depth, n_features = tree_depth(depth), whole_number("n_features", n_features)
    plan = _chosen(depth, n_features, feature_levels(binary, levels), method)
    return _steepness(min(plan.widths) / (2 * n_features), plan.working_depth, epsilon)


def _chosen(depth: int, n_features: int, levels: int | None, method: Method) -> ClusterPlan:
    if method not in METHODS:
        raise unfit("method", method, "must be 'best' or 'lb-vc'")
    if method == "lb-vc" and depth > 1:
        return paper_plan(depth, n_features)
    return cluster_plan(depth, n_features, levels is not None)


def _steepness(margin: float, working_depth: int, epsilon: float | None) -> float:
    if epsilon is not None:
        epsilon = open_interval("epsilon", epsilon, 0.0, 0.5)
        return math.log((1.0 - epsilon) / epsilon) / margin
    if working_depth == 1:
        return 0.0
    return -math.log(math.expm1(math.log(2.0) / working_depth)) / margin


def _sides(levels: int) -> NDArray[np.int64]:
    """1 where the path to a cluster goes left, 0 where right; shape (n_clusters, levels)."""
    clusters = np.arange(2**levels)[:, None]
    return 1 - ((clusters >> np.arange(levels - 1, -1, -1)) & 1)


def _hypercube(depth: int, plan: ClusterPlan) -> Construction:
    """Vertices of the unit cube: at each level the left clusters have ones in its features.

    The features of a level are one fixed feature, or a block of three or more. A cluster may
    differ from its base in one feature, hence it has at most 1 one or at most 1 zero in a block.
    """
    p, levels = plan.n_features, plan.working_depth - 1
    free, n_blocks = p - plan.n_fixed, levels - plan.n_fixed
    tested = [np.array([j]) for j in range(p - 1, free - 1, -1)]
    tested += np.array_split(np.arange(free), n_blocks) if n_blocks else []
    sides = _sides(levels)
    bases = np.zeros((2**levels, p))
    weights, thresholds = np.zeros((p, 2**levels - 1)), np.zeros(2**levels - 1)
    for level, features in enumerate(tested):
        bases[:, features] = sides[:, [level]]
        branches = slice(2**level - 1, 2 ** (level + 1) - 1)
        weights[features, branches] = 1.0
        thresholds[branches] = len(features) / (2 * p)
    steps = 1.0 - 2.0 * bases
    steps[:, free:] = 0.0
    return Construction(depth, bases, steps, weights, thresholds)


def _in_cells(depth: int, plan: ClusterPlan) -> Construction:
    """The lowest corner of every cell of a grid in [0, 1]^p and its p neighbours.

    Each level halves the cells along one feature, in turn. Along a feature with cells of width h,
    cell c reaches from 2 c h to (2 c + 1) h: gaps are as wide as cells.
    """
    levels, p = plan.working_depth - 1, plan.n_features
    sides, cells = _sides(levels), np.zeros((2**levels, p), dtype=np.int64)
    widths = np.array(plan.widths)
    weights, thresholds = np.zeros((p, 2**levels - 1)), np.zeros(2**levels - 1)
    # At each level the left cells lie further up along the feature of the level.
    for level in range(levels):
        feature, half = level % p, 2 ** len(range(level + p, levels, p))
        branches = np.arange(2**level - 1, 2 ** (level + 1) - 1)
        first = cells[:: 2 ** (levels - level), feature]
        weights[feature, branches] = 1.0
        thresholds[branches] = (2 * (first + half) - 0.5) * widths[feature] / p
        cells[:, feature] += half * sides[:, level]
    steps = np.broadcast_to(widths, cells.shape)
    return Construction(depth, 2 * cells * widths, steps, weights, thresholds)
