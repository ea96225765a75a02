"""Bounds of the coefficients of a tree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters


@dataclass(frozen=True, eq=False)
class Bounds:
    """low_jt <= a_jt <= high_jt for the weights, low_t <= mu_t <= high_t for the thresholds.

    Zero lies within the bounds of every weight, so that any coefficient may be deleted. The paper's
    box is [-1, 1] for all of them; by likelihood there are no bounds unless some are asked for.

    Parameters
    ----------
    low, high : arrays (n_features, n_branches)
        Bounds of the weights, -inf and inf where there are none.
    threshold_low, threshold_high : arrays (n_branches,)
        Bounds of the thresholds.
    """

    low: FloatArray
    high: FloatArray
    threshold_low: FloatArray
    threshold_high: FloatArray

    def __post_init__(self) -> None:
        shape = self.low.shape
        if len(shape) != 2 or self.high.shape != shape:
            raise ValueError("low and high must have the same shape (n_features, n_branches).")
        if not self.threshold_low.shape == self.threshold_high.shape == shape[1:]:
            raise ValueError("bounds of thresholds must have the shape (n_branches,).")
        if not (np.all(self.low <= 0.0) and np.all(self.high >= 0.0)):
            raise ValueError("bounds of weights must hold low <= 0 <= high.")
        if not np.all(self.threshold_low <= self.threshold_high):
            raise ValueError("bounds of thresholds must hold low <= high.")

    @classmethod
    def box(cls, n_features: int, n_branches: int, size: float = 1.0) -> Bounds:
        """Return the bounds [-size, size] of all weights and thresholds."""
        sizes = np.broadcast_to(float(size), (n_features, n_branches))
        ends = np.broadcast_to(float(size), (n_branches,))
        return cls(np.broadcast_to(-float(size), sizes.shape), sizes, -ends, ends)

    @classmethod
    def free(cls, n_features: int, n_branches: int) -> Bounds:
        """Return bounds that hold nothing back."""
        return cls.box(n_features, n_branches, np.inf)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of features and branches."""
        return self.low.shape[0], self.low.shape[1]

    @cached_property
    def size(self) -> float | None:
        """Half the width of the box, inf without bounds; None unless all bounds are one box."""
        if self.threshold_high.size == 0:
            return float(np.inf)
        size = float(self.threshold_high[0])
        ends = ((self.low, -size), (self.high, size), (self.threshold_low, -size))
        same = all(np.all(values == end) for values, end in ends)
        return size if same and np.all(self.threshold_high == size) else None

    @property
    def boxed(self) -> bool:
        """Whether all weights and thresholds have finite bounds on both sides."""
        return self._finite[0]

    @property
    def finite(self) -> bool:
        """Whether any weight or threshold has a finite bound."""
        return self._finite[1]

    @cached_property
    def _finite(self) -> tuple[bool, bool]:
        if self.size is not None:
            return bool(np.isfinite(self.size)), bool(np.isfinite(self.size))
        parts = (self.low, self.high, self.threshold_low, self.threshold_high)
        finite = [np.isfinite(part) for part in parts]
        return all(np.all(part) for part in finite), any(np.any(part) for part in finite)

    @property
    def free_thresholds(self) -> bool:
        """Whether thresholds have no bounds."""
        return bool(np.all(self.threshold_low == -np.inf) and np.all(self.threshold_high == np.inf))

    @cached_property
    def splits(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest splits, weights then threshold, (n_branches, n_features + 1) each."""
        return (
            np.ascontiguousarray(np.column_stack([self.low.T, self.threshold_low])),
            np.ascontiguousarray(np.column_stack([self.high.T, self.threshold_high])),
        )

    def project(self, weights: FloatArray) -> FloatArray:
        """Return the nearest weights within the bounds, (n_features, n_branches)."""
        if self.size is not None:  # comparing with one number takes half the time
            return np.clip(weights, -self.size, self.size)
        return np.clip(weights, self.low, self.high)

    def project_thresholds(self, thresholds: FloatArray) -> FloatArray:
        """Return the nearest thresholds within the bounds, (n_branches,)."""
        if self.size is not None:
            return np.clip(thresholds, -self.size, self.size)
        return np.clip(thresholds, self.threshold_low, self.threshold_high)

    def project_tree(self, tree: TreeParameters) -> TreeParameters:
        """Return the tree with weights and thresholds within the bounds."""
        if self.violation(tree) == 0.0:
            return tree
        return replace(
            tree,
            weights=self.project(tree.weights),
            thresholds=self.project_thresholds(tree.thresholds),
        )

    def project_splits(self, splits: FloatArray) -> FloatArray:
        """Return the nearest splits within the bounds, (n_branches, n_features + 1)."""
        return splits if self.size is not None else np.clip(splits, *self.splits)

    def violation(self, tree: TreeParameters) -> float:
        """Return by how much a weight or threshold lies beyond its bounds; NaN if one is NaN."""
        weights, thresholds, size = tree.weights, tree.thresholds, self.size
        if size is not None:
            ends = (weights.max(), -weights.min(), thresholds.max(), -thresholds.min())
            excesses = [float(end) - size for end in ends]
        else:
            excesses = [
                float((weights - self.high).max()),
                float((self.low - weights).max()),
                float((thresholds - self.threshold_high).max()),
                float((self.threshold_low - thresholds).max()),
            ]
        return float("nan") if np.isnan(excesses).any() else max(0.0, *excesses)

    def inside(self, weights: FloatArray) -> NDArray[np.bool_]:
        """Return where weights lie strictly between their bounds."""
        return (weights > self.low) & (weights < self.high)

    def residual(self, weights: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return a - project(a - gradient): zero exactly where no feasible change lowers a smooth
        function to first order, which at a bound holds if the gradient points outwards."""
        return weights - self.project(weights - gradient)

    def allows(self, sign: Literal[1, -1]) -> NDArray[np.bool_]:
        """Return where coefficients of this sign are possible, (n_features, n_branches)."""
        return self.high > 0.0 if sign > 0 else self.low < 0.0

    def allows_step(self, change: FloatArray) -> NDArray[np.bool_]:
        """Return where a coefficient that is zero may change in this direction."""
        return np.where(change > 0.0, self.allows(1), self.allows(-1))

    def largest_sizes(self, weights: FloatArray) -> FloatArray | float:
        """Return the largest |a_jt| of the same sign as ``weights``; one number for a box.

        Where a weight is zero, that of either sign.
        """
        if self.size is not None:
            return self.size
        either = np.maximum(self.high, -self.low)
        return np.where(weights > 0, self.high, np.where(weights < 0, -self.low, either))

    def restrict(
        self,
        features: NDArray[np.intp] | slice = slice(None),
        branches: NDArray[np.intp] | slice = slice(None),
    ) -> Bounds:
        """Return the bounds of some features and branches."""
        return Bounds(
            self.low[features][:, branches],
            self.high[features][:, branches],
            self.threshold_low[branches],
            self.threshold_high[branches],
        )
