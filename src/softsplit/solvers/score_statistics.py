"""Score statistics: the gain of one more column, without fitting it.

Put into the split of branch t with coefficient a, a column x moves its log-odds u_it by a x_i. With
s_it the derivative of the loss by u_it and c_it >= 0 its curvature,

    gain    (sum_i s_it (x_i - m_t))^2 / (2 sum_i c_it (x_i - m_t)^2),   m_t the mean of x by c_it

is the decrease of the loss by a Newton step in a and the threshold: half a score (Rao) statistic.
At a tree,

    s_it = - weight_i d_iyt / P_iy,    c_it = weight_i sum_k d_ikt^2 / P_ik     (Fisher information)
    d_ikt = dP_ik / du_it = reach_it p_it (1 - p_it) (V_k,left - V_k,right)

with V_k the probability of class k below each node, P_ik that at the root, and y the class of the
row; without a tree, for each class k,

    s_ik = weight_i ([y_i = k] - share_k),    c_ik = weight_i share_k (1 - share_k)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import node_reach, node_values

NO_SPREAD = 1e-10
"""A column whose variance is below this part of its mean square counts as constant."""

LEAST_PROBABILITY = 1e-300
"""Probabilities are at least this, so that divisions by them are finite."""

Labels = NDArray[np.signedinteger[Any]]


class ScoreStatistics(NamedTuple):
    """Newton steps in one column at a time, (n_columns, n_branches) each.

    ``gains`` are half the score statistics, ``change`` the coefficients of the steps.
    """

    gains: FloatArray
    change: FloatArray


def score_statistics(
    columns: Any, squares: Any, slopes: FloatArray, curvatures: FloatArray
) -> ScoreStatistics:
    """Return gains and coefficients of a Newton step in each column alone.

    ``columns`` and their ``squares`` are matrices (n_columns, n_rows), dense or sparse, ``slopes``
    and ``curvatures`` s and c, (n_rows, n_branches).
    """
    total = np.maximum(curvatures.sum(axis=0), LEAST_PROBABILITY)
    first, second = columns @ curvatures, squares @ curvatures
    spread = second - first**2 / total
    pull = columns @ slopes - first * (slopes.sum(axis=0) / total)
    varies = spread > NO_SPREAD * second
    change = np.divide(-pull, spread, out=np.zeros_like(pull), where=varies)
    return ScoreStatistics(-0.5 * pull * change, change)


def group_slopes(labels: Labels, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return slopes and curvatures without a tree, a column for each class; of two, for one."""
    counts = np.bincount(labels, weight)
    shares = counts / max(counts.sum(), LEAST_PROBABILITY)
    kept = np.arange(len(shares))[len(shares) == 2 :]
    own = (labels[:, None] == kept).astype(float) - shares[kept]
    return weight[:, None] * own, np.outer(weight, (shares * (1 - shares))[kept])


def branch_slopes(
    left: FloatArray, right: FloatArray, leaves: FloatArray, labels: Labels, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return slopes and curvatures at a tree, (n_rows, n_branches) each.

    Parameters
    ----------
    left, right : arrays (n_branches, n_rows)
        Gate probabilities.
    leaves : array (n_groups, n_leaves)
        Class distributions of the leaves.
    labels, weight : arrays (n_rows,)
    """
    reach, n_branches = node_reach(left, right), len(left)
    weighed = reach[:n_branches] * left * right
    slopes, curvatures = np.zeros_like(left), np.zeros_like(left)
    for k, shares in enumerate(leaves):
        values = node_values(left, right, shares)
        change = weighed * (values[1::2] - values[2::2])
        share = np.maximum(values[0], LEAST_PROBABILITY)
        slopes -= np.where(labels == k, weight, 0.0) * change / share
        curvatures += weight * change**2 / share
    return slopes.T, curvatures.T
