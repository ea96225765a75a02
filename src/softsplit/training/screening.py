"""What columns of a sparse matrix promise a tree, found by sparse products alone.

Put into the split of branch t with coefficient a, a column of scaled values x_i moves its log-odds
u_it by unit a x_i. With s_it the derivative of the loss by u_it and c_it >= 0 its curvature,

    slope   g_t = unit sum_i s_it x_i                             derivative of the loss by a
    gain    (sum_i s_it (x_i - m_t))^2 / (2 sum_i c_it (x_i - m_t)^2),   m_t the mean of x by c_it

The gain is what a Newton step in a and the threshold takes off the loss. At a tree by likelihood,

    s_it = - weight_i d_iyt / P_iy,    c_it = weight_i sum_k d_ikt^2 / P_ik     (Fisher information)
    d_ikt = dP_ik / du_it = reach_it p_it (1 - p_it) (V_k,left - V_k,right)

with V_k the probability of class k below each node, P_ik that at the root, and y the class of the
row; without a tree, for each class k,

    s_ik = weight_i ([y_i = k] - share_k),    c_ik = weight_i share_k (1 - share_k)

Scaled values of a sparse column are one number, what 0 becomes, plus a sparse rest. Shapes: slopes
and curvatures (n_rows, n_branches), g and gains (n_columns, n_branches).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import gate_probabilities, node_reach, split_scores
from softsplit.tree.scaling import DEVIATIONS, SMALLEST_SPAN, rank_curve

NO_SPREAD = 1e-10
"""A column whose variance is below this part of its mean square is constant to all who matter."""

LEAST_PROBABILITY = 1e-300


class Steps(NamedTuple):
    """Newton steps of columns alone: ``gains`` and ``change`` of the log-odds by a unit of x."""

    gains: FloatArray
    change: FloatArray


@dataclass(frozen=True)
class SparseColumns:
    """Columns as base + rest.

    Attributes
    ----------
    rest : sparse matrix (n_rows, n_columns)
    base : array (n_columns,)
    """

    rest: Any
    base: FloatArray

    @classmethod
    def plain(cls, X: Any) -> SparseColumns:
        """Columns as they are."""
        return cls(X, np.zeros(X.shape[1]))

    @classmethod
    def scaled(cls, kind: str, X: Any, weight: FloatArray) -> SparseColumns:
        """Columns in scaled units (tree/scaling.py); rows of weight zero do not count."""
        if kind == "identity":
            return cls.plain(X)
        if kind == "quantile":
            return cls._ranked(X, weight)
        counted = X[weight > 0]
        low = counted.min(axis=0).toarray().ravel()
        span = counted.max(axis=0).toarray().ravel() - low
        varies = span > SMALLEST_SPAN
        if kind == "standard":
            total = weight.sum()
            mean = X.T @ weight / total
            square = _squares(X).T @ weight / total
            deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
            low, span = mean - 0.5 * DEVIATIONS * deviation, DEVIATIONS * deviation
        inverse = np.zeros(len(span))
        np.divide(1.0, span, out=inverse, where=varies & (span > SMALLEST_SPAN))
        return cls(_with_data(X, X.data * inverse[X.indices]), -low * inverse)

    @classmethod
    def _ranked(cls, X: Any, weight: FloatArray) -> SparseColumns:
        columns, base = X.tocsc(copy=True), np.zeros(X.shape[1])
        total = weight.sum()
        for j in range(X.shape[1]):
            span = slice(columns.indptr[j], columns.indptr[j + 1])
            values, of = columns.data[span], weight[columns.indices[span]]
            known = np.append(values[of > 0], 0.0)
            found, place = np.unique(known, return_inverse=True)
            rest = total - of.sum()
            held = np.bincount(place, np.append(of[of > 0], rest)).astype(float)
            if held[place[-1]] <= 0:  # no row is zero here
                found, held = np.delete(found, place[-1]), np.delete(held, place[-1])
            curve = rank_curve(found, held)
            base[j] = np.interp(0.0, *curve)
            columns.data[span] = np.interp(values, *curve) - base[j]
        return cls(columns.tocsr(), base)

    @cached_property
    def _squared(self) -> Any:
        return _squares(self.rest)

    def products(self, slopes: FloatArray) -> FloatArray:
        """sum_i s_it x_ij, (n_columns, n_branches)."""
        sums: FloatArray = self.rest.T @ slopes + np.outer(self.base, slopes.sum(axis=0))
        return sums

    def steps(self, slopes: FloatArray, curvatures: FloatArray) -> Steps:
        """What a Newton step in each column alone gains, and how far it goes."""
        total = np.maximum(curvatures.sum(axis=0), LEAST_PROBABILITY)
        first, second = self.rest.T @ curvatures, self._squared.T @ curvatures
        spread = second - first**2 / total
        pull = self.rest.T @ slopes - first * (slopes.sum(axis=0) / total)
        varies = spread > NO_SPREAD * second
        change = np.divide(-pull, spread, out=np.zeros_like(pull), where=varies)
        return Steps(-0.5 * pull * change, change)


def class_slopes(labels: NDArray[np.int64], weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slopes and curvatures without a tree, a column for each class; of two, for one of them."""
    counts = np.bincount(labels, weight)
    shares = counts / counts.sum()
    kept = np.arange(len(shares))[len(shares) == 2 :]
    own = (labels[:, None] == kept).astype(float) - shares[kept]
    return weight[:, None] * own, np.outer(weight, (shares * (1 - shares))[kept])


def branch_slopes(
    tree: TreeParameters,
    steepness: float,
    scaled: FloatArray,
    labels: NDArray[np.int64],
    weight: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Slopes and curvatures at a tree by likelihood, for scaled rows (n_features, n_rows)."""
    left, right = gate_probabilities(split_scores(tree, scaled), steepness)
    reach, n_branches = node_reach(left, right), len(left)
    weighed = reach[:n_branches] * left * right
    slopes, curvatures = np.zeros_like(left), np.zeros_like(left)
    values = np.empty_like(reach)
    for k, shares in enumerate(tree.leaf_classes):
        values[n_branches:] = shares[:, None]
        for t in reversed(range(n_branches)):
            values[t] = left[t] * values[2 * t + 1] + right[t] * values[2 * t + 2]
        change = weighed * (values[1::2] - values[2::2])
        said = np.maximum(values[0], LEAST_PROBABILITY)
        slopes -= np.where(labels == k, weight, 0.0) * change / said
        curvatures += weight * change**2 / said
    return slopes.T, curvatures.T


def _squares(X: Any) -> Any:
    return _with_data(X, X.data**2)


def _with_data(X: Any, data: FloatArray) -> Any:
    """The matrix with other numbers in the same places."""
    return type(X)((data, X.indices, X.indptr), shape=X.shape)
