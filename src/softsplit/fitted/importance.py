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

from collections.abc import Callable, Iterator

import numpy as np

from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.routing import gate_probabilities, node_reach, split_scores

NUMBERS_AT_ONCE = 2**21
"""Of the largest array: answers of nodes for some rows, or features of some rows."""

Part = tuple[slice, FloatArray, FloatArray]
"""Where rows stand, their gates and their stakes."""


def feature_importances(
    parameters: TreeParameters, steepness: float, features: FloatArray, weights: FloatArray
) -> FloatArray:
    """Importances, (n_features,), from scaled rows (n_features, n_rows) and their weights."""
    moved = feature_movements(parameters, steepness, features, weights)
    return moved / moved.sum() if moved.sum() > 0 else moved


def feature_movements(
    parameters: TreeParameters, steepness: float, features: FloatArray, weights: FloatArray
) -> FloatArray:
    """By how much each feature moves the answers, (n_features,), in their units."""
    shape, weights = parameters.weights.shape, weights / weights.sum()
    parts = _twice(parameters, steepness, features, weights)
    totals, gate_means, means = np.zeros(shape[1]), np.zeros(shape[1]), np.zeros(shape)
    for part, gates, stakes in parts():
        rows = features[:, part]
        totals += stakes.sum(axis=1)
        gate_means += np.sum(stakes * gates, axis=1)
        means += rows @ stakes.T
    some = np.where(totals > 0, totals, 1.0)  # a branch without stakes moves nothing
    gate_means, means = gate_means / some, means / some
    moved, spread = np.zeros(shape[1]), np.zeros(shape)
    used = np.argwhere(parameters.weights)
    for part, gates, stakes in parts():
        moved += np.sum(stakes * np.abs(gates - gate_means[:, None]), axis=1)
        for j, t in used:
            spread[j, t] += np.abs(features[j, part] - means[j, t]) @ stakes[t]
    effect = np.abs(parameters.weights) * spread
    sums = effect.sum(axis=0)
    return np.asarray((effect / np.where(sums > 0, sums, 1.0)) @ moved)


def _twice(
    parameters: TreeParameters, steepness: float, features: FloatArray, weights: FloatArray
) -> Callable[[], Iterator[Part]]:
    """The parts as often as they are asked for; kept if they are small."""

    def make() -> Iterator[Part]:
        return _parts(parameters, steepness, features, weights)

    if len(parameters.thresholds) * len(weights) > NUMBERS_AT_ONCE:
        return make
    kept = list(make())
    return lambda: iter(kept)


def _parts(
    parameters: TreeParameters, steepness: float, features: FloatArray, weights: FloatArray
) -> Iterator[Part]:
    """Places of rows, their gates p_ti and their stakes w_i r_ti d_ti, some rows at a time.

    The stakes say how much hangs on the decision of each branch.
    """
    widest = max(len(features), 2 * parameters.leaf_values.size)
    at_once = max(1, NUMBERS_AT_ONCE // widest)
    for low in range(0, features.shape[1], at_once):
        part = slice(low, low + at_once)
        gates = gate_probabilities(split_scores(parameters, features[:, part]), steepness)[0]
        reach = node_reach(gates, 1.0 - gates)[: len(gates)]
        stakes = reach * _apart(gates, parameters.leaf_values) * weights[part]
        yield part, gates, stakes


def _apart(gates: FloatArray, leaf_values: FloatArray) -> FloatArray:
    """d_ti: how far the answers on both sides of a branch differ, (n_branches, n_rows)."""
    n_branches, n_rows = gates.shape
    answers = np.empty((2 * n_branches + 1, len(leaf_values), n_rows))  # below each node
    answers[n_branches:] = leaf_values.T[:, :, None]
    apart = np.empty_like(gates)
    for t in range(n_branches - 1, -1, -1):
        right = answers[2 * t + 2]
        gap = answers[2 * t + 1] - right
        apart[t] = np.abs(gap).sum(axis=0) / 2
        gap *= gates[t]
        np.add(right, gap, out=answers[t])
    return apart
