"""Shattering shown: for every labelling of a point set, a tree that realises it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softsplit.capacity.bounds import Method
from softsplit.capacity.constructions import Construction, construct
from softsplit.support.arguments import open_interval, whole_number
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import mixed_values

LARGEST_STEEPNESS = 1e12
"""As for the estimator."""


@dataclass(frozen=True)
class ShatteringCheck:
    """What the routing of the library says about the trees of a shattering.

    ``least_probability`` is the smallest probability that any tree gave to the label of any
    point: above 1/2, all labellings are realised. ``largest_parameter`` is the largest weight or
    threshold in size: trees within the box of training have it at most 1.
    """

    n_labellings: int
    exhaustive: bool
    least_probability: float
    largest_parameter: float

    @property
    def realised(self) -> bool:
        return self.least_probability > 0.5 and self.largest_parameter <= 1.0


@dataclass(frozen=True)
class Shattering:
    """Points, labellings of them, and a tree for each; iterating gives (labels, tree).

    ``labellings`` has shape (n_labellings, n_points); ``exhaustive`` says whether it holds all.
    """

    construction: Construction
    steepness: float
    labellings: NDArray[np.int8]
    exhaustive: bool

    @property
    def points(self) -> FloatArray:
        return self.construction.points

    def __len__(self) -> int:
        return len(self.labellings)

    def __iter__(self) -> Iterator[tuple[NDArray[np.int8], TreeParameters]]:
        for labels in self.labellings:
            yield labels, self.construction.tree(labels)

    def probabilities(self, labels: ArrayLike) -> FloatArray:
        """Probability that the tree for ``labels`` gives to class 1, per point."""
        tree = self.construction.tree(labels)
        return mixed_values(tree, self.points.T, self.steepness)[1]

    def check(self) -> ShatteringCheck:
        """Route all points through the tree of each labelling."""
        points, least, largest = self.points, 1.0, 0.0
        everyone = np.arange(len(points))
        for labels, tree in self:
            right = mixed_values(tree, points.T, self.steepness)[labels, everyone]
            least = min(least, float(right.min()))
            largest = max(largest, _largest(tree))
        return ShatteringCheck(len(self), self.exhaustive, least, largest)


def shatter(
    depth: int,
    n_features: int,
    binary: bool = False,
    *,
    levels: int | None = None,
    method: Method = "best",
    epsilon: float = 0.01,
    steepness: float | None = None,
    max_labellings: int = 4096,
    seed: int = 0,
) -> Shattering:
    """Points that trees of this size label in every way, with a tree for each labelling.

    Parameters
    ----------
    depth, n_features, binary, levels, method
        As in ``vc_lower_bound``: there are as many points as it says.
    epsilon : float
        No gate errs with a larger probability; sets the steepness.
    steepness : float, optional
        Use this steepness in place of the one that follows from ``epsilon``.
    max_labellings : int
        Up to so many labellings all are made, else so many are drawn.
    seed : int
        Seed of the draw.
    """
    construction = construct(depth, n_features, binary, levels=levels, method=method)
    if steepness is None:
        open_interval("epsilon", epsilon, 0.0, construction.largest_epsilon)
        steepness = construction.required_steepness(epsilon)
    else:
        steepness = open_interval("steepness", steepness, 0.0, LARGEST_STEEPNESS)
        needed = construction.required_steepness()
        if steepness <= needed:
            raise ValueError(
                f"steepness {steepness:g} is too small for this construction, it needs more than "
                f"{needed:.4g}; raise it, or leave it out."
            )
    most = whole_number("max_labellings", max_labellings)
    labellings, exhaustive = _labellings(construction.n_points, most, seed)
    return Shattering(construction, steepness, labellings, exhaustive)


def _labellings(n_points: int, most: int, seed: int) -> tuple[NDArray[np.int8], bool]:
    """All labellings if there are no more than ``most``, else that many, drawn."""
    if n_points < most.bit_length():
        numbers = np.arange(2**n_points)[:, None]
        return ((numbers >> np.arange(n_points)) & 1).astype(np.int8), True
    draws = np.random.default_rng(seed).integers(0, 2, size=(most, n_points), dtype=np.int8)
    return draws, False


def _largest(tree: TreeParameters) -> float:
    return float(max(np.abs(tree.weights).max(), np.abs(tree.thresholds).max()))
