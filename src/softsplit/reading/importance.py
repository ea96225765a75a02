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

import numpy as np

from softsplit.reading.model import node_answers, node_reach
from softsplit.routing import gate_probabilities, split_scores
from softsplit.tree import FloatArray, TreeParameters

ROWS_AT_ONCE = 8_192


def feature_importances(
    parameters: TreeParameters, steepness: float, features: FloatArray, weights: FloatArray
) -> FloatArray:
    """Importances, (n_features,), from scaled rows (n_features, n_rows) and their weights."""
    gates = gate_probabilities(split_scores(parameters, features), steepness)[0]
    stakes = _stakes(gates, parameters.leaf_classes) * weights
    importance = np.zeros(parameters.n_features)
    for t in range(len(gates)):
        used = np.flatnonzero(parameters.weights[:, t])
        total = float(stakes[t].sum())
        if not len(used) or total <= 0:
            continue
        share = stakes[t] / total
        moved = total * float(share @ np.abs(gates[t] - share @ gates[t]))
        rows = features[used]
        spread = np.abs(rows - (rows @ share)[:, None]) @ share
        effect = np.abs(parameters.weights[used, t]) * spread
        if effect.sum() > 0:
            importance[used] += moved * effect / effect.sum()
    return importance / importance.sum() if importance.sum() > 0 else importance


def _stakes(gates: FloatArray, leaf_classes: FloatArray) -> FloatArray:
    """r_ti d_ti: what hangs on the decision of each branch, (n_branches, n_rows)."""
    n_branches, n_rows = gates.shape
    stakes = np.empty((n_branches, n_rows))
    for low in range(0, n_rows, ROWS_AT_ONCE):
        part = gates[:, low : low + ROWS_AT_ONCE]
        reach, answers = node_reach(part), node_answers(part, leaf_classes)
        for t in range(n_branches):
            apart = np.abs(answers[2 * t + 1] - answers[2 * t + 2]).sum(axis=0) / 2
            stakes[t, low : low + ROWS_AT_ONCE] = reach[t] * apart
    return stakes
