"""All second derivatives of the log-loss of a tree by its free numbers, exact, in one pass.

With V the probability that a tree gives to the class y of a row, gates p_t, D_t = reach_t (V_left -
V_right) as in prices.py, q_t = D_t p_t (1 - p_t) and r_l = P_l c_yl / V,

    d2 (-log V) = (dV dV') / V^2 - d2V / V
    dV / d s_t  = q_t          dV / d v_kl = V r_l e_kl,      e_kl = [y = k] - c_kl

    d2V / d s_t d s_t   = q_t (1 - 2 p_t)
    d2V / d s_t d s_u   = q_u side_tu                  u below t
    d2V / d s_t d v_kl  = V r_l e_kl side_tl           l below t
    d2V / d v_kl d v_ml = V r_l (e_kl e_ml - c_kl ([k = m] - c_ml))

where side is 1 - p_t for what lies on the left of t, and -p_t on its right. A number of a split is
s_t times a column of the row or 1. Since e_kl is the same for all rows of a class, leaves take one
line each while a class is added up, and are spread over its log-odds afterwards.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.outer import TINY_PROBABILITY
from softsplit.solvers.elimination.objective import Field, softmax
from softsplit.solvers.elimination.support_tree import Draft, below
from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import gate_probabilities, node_reach

CHUNK = 4096
"""Rows handled at a time."""


def hessian(draft: Draft, field: Field, ridge: float) -> FloatArray:
    """Second derivatives of log-loss, prior and ridge by the free numbers of a draft, square.

    ``field`` has the columns of the draft.
    """
    n_branches, n_classes = draft.shape
    leaves = np.empty(draft.log_odds.shape)
    softmax(np.ascontiguousarray(draft.log_odds), field.pseudo, leaves)
    used = np.column_stack([draft.kept, draft.open])
    ends = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    n_splits = int(ends[-1])
    total = np.zeros((n_splits + leaves.size, n_splits + leaves.size))
    for k in range(n_classes):
        part = np.zeros((n_splits + n_branches + 1, n_splits + n_branches + 1))
        mass = np.zeros(n_branches + 1)
        for begin in range(field.starts[k], field.starts[k + 1], CHUNK):
            rows = slice(begin, min(begin + CHUNK, field.starts[k + 1]))
            _add(draft.splits, field.features[:, rows], field.weights[rows], leaves[k], used, ends,
                 part, mass)  # fmt: skip
        total += _spread(part, mass, leaves, k, n_splits)
    curvature = leaves[:, None, :] * (np.eye(n_classes)[:, :, None] - leaves[None, :, :])
    _add_by_leaf(total, field.pseudo.sum() * curvature, n_splits)
    weights = np.flatnonzero(np.column_stack([draft.kept, np.zeros(n_branches, bool)])[used])
    total[weights, weights] += ridge
    return total


def _add(
    splits: FloatArray,
    features: FloatArray,
    weights: FloatArray,
    shares: FloatArray,
    used: NDArray[np.bool_],
    ends: NDArray[np.intp],
    part: FloatArray,
    mass: FloatArray,
) -> None:
    """Add rows of one class, whose shares of the leaves are given, to ``part`` and ``mass``."""
    n_branches = len(splits)
    lines = np.vstack([features, np.ones((1, features.shape[1]))])
    left, right = gate_probabilities(splits @ lines, 1.0)
    reach = node_reach(left, right)
    values = np.empty_like(reach)
    values[n_branches:] = shares[:, None]
    for t in range(n_branches - 1, -1, -1):
        values[t] = left[t] * values[2 * t + 1] + right[t] * values[2 * t + 2]
    root = np.maximum(values[0], TINY_PROBABILITY)
    by_score = reach[:n_branches] * left * right * (values[1::2] - values[2::2]) / root
    held = reach[n_branches:] * shares[:, None] / root
    mass += held @ weights
    n_splits = int(ends[-1])
    part[n_splits:, n_splits:] += (held * weights) @ held.T
    moving = [lines[used[t]] for t in range(n_branches)]
    for t in range(n_branches):
        if not len(moving[t]):
            continue
        mine, q = slice(ends[t], ends[t + 1]), by_score[t]
        sides = _sides(t, n_branches, left[t], right[t])
        along = held * (q - sides[n_branches:])  # by leaf
        part[mine, n_splits:] += moving[t] @ (along * weights).T
        for u in range(t, n_branches):
            if not len(moving[u]):
                continue
            bend = (right[t] - left[t]) if u == t else sides[u]
            factor = weights * by_score[u] * (q - bend)
            part[mine, ends[u] : ends[u + 1]] += (moving[t] * factor) @ moving[u].T


def _sides(t: int, n_branches: int, left: FloatArray, right: FloatArray) -> FloatArray:
    """side of every node that lies below branch t, zero for all others, (n_nodes, n_rows)."""
    n_nodes = 2 * n_branches + 1
    sides = np.zeros((n_nodes, len(left)))
    sides[below(2 * t + 1, n_nodes)] = right
    sides[below(2 * t + 2, n_nodes)] = -left
    return sides


def _spread(
    part: FloatArray, mass: FloatArray, leaves: FloatArray, k: int, n_splits: int
) -> FloatArray:
    """The second derivatives of class k by all log-odds; ``part`` has one line for a leaf."""
    n_classes = len(leaves)
    e = -leaves
    e[k] += 1.0
    upper = np.triu(part[:n_splits, :n_splits])
    mixed = (part[:n_splits, None, n_splits:] * e).reshape(n_splits, -1)
    by_leaf = (e[:, :, None, None] * part[n_splits:, n_splits:][None, :, None, :]) * e
    found = np.block(
        [
            [upper + np.triu(upper, 1).T, mixed],
            [mixed.T, by_leaf.reshape(leaves.size, leaves.size)],
        ]
    )
    bent = e[:, None, :] * e - leaves[:, None, :] * (np.eye(n_classes)[:, :, None] - leaves)
    _add_by_leaf(found, -mass * bent, n_splits)
    return found


def _add_by_leaf(total: FloatArray, blocks: FloatArray, n_splits: int) -> None:
    """Add blocks (n_classes, n_classes, n_leaves), one for each leaf, to the log-odds."""
    n_classes, _, n_leaves = blocks.shape
    for leaf in range(n_leaves):
        places = n_splits + leaf + n_leaves * np.arange(n_classes)
        total[np.ix_(places, places)] += blocks[:, :, leaf]
