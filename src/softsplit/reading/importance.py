"""How much each feature moves the answers of a tree.

Replace branch t by a coin that goes left with the branch's mean probability c_t, and leave all else
as it is: the class probabilities of row i then move by r_ti |p_ti - c_t| d_ti in total variation,

    r_ti = reach of branch t       p_ti = its gate       d_ti = TV(V_left, V_right) for row i

where V is the answer of a subtree. The movement of branch t is the weighted mean of this over the
training rows; c_t is the mean of p_ti under the weights w_i r_ti d_ti, so that a branch that
decides nothing (d = 0), is not reached (r = 0) or treats all rows alike (p = c) moves nothing. It
is divided among the features of the split in proportion to

    |a_jt| * mean |scaled_ij - its mean|      both means under the weights w_i r_ti d_ti

and features are summed over branches. Importances add up to one, or are all zero if no feature
moves anything. They need no labels and no random permutation, and do not depend on units.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softsplit.reading.model import node_answers, node_reach
from softsplit.routing import gate_probabilities, split_scores
from softsplit.tree import FloatArray, TreeParameters

ROWS_AT_ONCE = 8_192


def feature_importances(
    parameters: TreeParameters, steepness: float, features: FloatArray, weights: FloatArray
) -> FloatArray:
    """Importances, (n_features,), from scaled rows (n_features, n_rows) and their weights."""
    shape, weights = parameters.weights.shape, weights / weights.sum()
    totals, gate_means, means = np.zeros(shape[1]), np.zeros(shape[1]), np.zeros(shape)
    for rows, gates, stakes in _parts(parameters, steepness, features, weights):
        totals += stakes.sum(axis=1)
        gate_means += np.sum(stakes * gates, axis=1)
        means += rows @ stakes.T
    some = np.where(totals > 0, totals, 1.0)  # a branch without stakes moves nothing
    gate_means, means = gate_means / some, means / some
    moved, spread = np.zeros(shape[1]), np.zeros(shape)
    used = np.argwhere(parameters.weights)
    for rows, gates, stakes in _parts(parameters, steepness, features, weights):
        moved += np.sum(stakes * np.abs(gates - gate_means[:, None]), axis=1)
        for j, t in used:
            spread[j, t] += np.abs(rows[j] - means[j, t]) @ stakes[t]
    effect = np.abs(parameters.weights) * spread
    sums = effect.sum(axis=0)
    importance: FloatArray = (effect / np.where(sums > 0, sums, 1.0)) @ moved
    return importance / importance.sum() if importance.sum() > 0 else importance


def _parts(
    parameters: TreeParameters, steepness: float, features: FloatArray, weights: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Rows, their gates p_ti and their stakes w_i r_ti d_ti, some rows at a time.

    The stakes say how much hangs on the decision of each branch.
    """
    for low in range(0, features.shape[1], ROWS_AT_ONCE):
        rows = features[:, low : low + ROWS_AT_ONCE]
        gates = gate_probabilities(split_scores(parameters, rows), steepness)[0]
        reach, answers = node_reach(gates), node_answers(gates, parameters.leaf_classes)
        stakes = np.empty_like(gates)
        for t in range(len(gates)):
            apart = np.abs(answers[2 * t + 1] - answers[2 * t + 2]).sum(axis=0) / 2
            stakes[t] = reach[t] * apart * weights[low : low + ROWS_AT_ONCE]
        yield rows, gates, stakes
