"""Leaves that hold a function of the features: eta_l(x) = a_l + u_l . x, within bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class LeafFunctions:
    """A sparse linear function in each leaf, whose value is the *score* of a row there.

    Attributes
    ----------
    constants : array (n_leaves,)
    slopes : array (n_features, n_leaves)
        In the units of the features that ``scores`` is given.
    low, high : arrays (n_leaves,)
        Smallest and largest score of the training rows of a leaf, to which scores are clipped:
        beyond the training rows a leaf says what it said at their edge.
    """

    constants: FloatArray
    slopes: FloatArray
    low: FloatArray
    high: FloatArray

    def __post_init__(self) -> None:
        n_leaves = len(self.constants)
        if self.slopes.shape[1] != n_leaves or not len(self.low) == len(self.high) == n_leaves:
            raise ValueError(
                f"constants {self.constants.shape}, slopes {self.slopes.shape} and bounds "
                f"{self.low.shape} do not describe the same leaves."
            )

    @property
    def n_leaves(self) -> int:
        return len(self.constants)

    @property
    def n_coefficients(self) -> int:
        """Number of slopes that are not zero."""
        return int(np.count_nonzero(self.slopes))

    def towards(self, centre: float, share: float) -> LeafFunctions:
        """Return the functions with a share of their distance from a constant."""
        constants, low, high = (
            centre + share * (part - centre) for part in (self.constants, self.low, self.high)
        )
        return LeafFunctions(constants, share * self.slopes, low, high)

    def raised(self, by: float) -> LeafFunctions:
        """Return the functions with a constant added."""
        return LeafFunctions(self.constants + by, self.slopes, self.low + by, self.high + by)

    def scores(self, X: FloatArray) -> FloatArray:
        """Return the score of every row in every leaf, (n_leaves, n_rows); X (n_rows, n_features).

        The bits of a row do not depend on the other rows.
        """
        scores = np.repeat(self.constants[:, None], len(X), axis=1)
        for j in np.flatnonzero(self.slopes.any(axis=1)):
            column = np.asarray(X[:, j], dtype=float)
            for leaf in np.flatnonzero(self.slopes[j]):
                scores[leaf] += self.slopes[j, leaf] * column
        return np.clip(scores, self.low[:, None], self.high[:, None])


def proves_monotone(
    weights: FloatArray, leaves: LeafFunctions, features: NDArray[np.intp], sign: int
) -> bool:
    """Return whether walks provably never fall (``sign`` 1), or never rise (-1), with a variable.

    ``features`` are its value and then its hinges by ascending knots, as in X. The proof: no
    question asks for it, so that it moves a row within a leaf alone, and there the slope between
    any two knots, the sum of the coefficients of the value and of the hinges before, has the sign
    or is zero up to rounding. Bounds of scores keep this. False says that this proof does not hold.
    """
    slopes = leaves.slopes[features]
    rounding = 1e-12 * np.sum(np.abs(slopes), axis=0)
    between = np.cumsum(slopes, axis=0)
    return not np.any(weights[features]) and bool(np.all(sign * between >= -rounding))
