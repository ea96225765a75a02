"""Columns of a sparse matrix in scaled units, and what they promise a tree, by sparse products.

Scaled values of a sparse column are one number, what 0 becomes, plus a sparse rest. Put into the
split of branch t with coefficient a, a column of scaled values x_i moves its log-odds by
unit a x_i: with s_it the derivative of the loss by them, the derivative by a is

    slope   g_t = unit sum_i s_it x_i

and gains are those of solvers/elimination/screening.py. Shapes: slopes and curvatures (n_rows,
n_branches), g and gains (n_columns, n_branches).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from softsplit.solvers.elimination.screening import Labels, Steps, branch_slopes, newton_steps
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import gate_probabilities, split_scores
from softsplit.tree.scaling import DEVIATIONS, SMALLEST_SPAN, rank_curve


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
        return newton_steps(self.rest.T, self._squared.T, slopes, curvatures)


def slopes_at(
    tree: TreeParameters, steepness: float, scaled: FloatArray, labels: Labels, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Slopes and curvatures at a tree by likelihood, for scaled rows (n_features, n_rows)."""
    gates = gate_probabilities(split_scores(tree, scaled), steepness)
    return branch_slopes(*gates, tree.leaf_classes, labels, weight)


def _squares(X: Any) -> Any:
    return _with_data(X, X.data**2)


def _with_data(X: Any, data: FloatArray) -> Any:
    """The matrix with other numbers in the same places."""
    return type(X)((data, X.indices, X.indptr), shape=X.shape)
