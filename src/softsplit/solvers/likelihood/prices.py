"""What a tree loses if a coefficient, a feature or a branch goes and nothing else moves.

With V_i the probability that the tree gives to the class of row i, and gate p of branch t,

    V_i = (what does not depend on t) + D_it p_it,      D_it = reach_it (V_left - V_right)

so that another gate p' changes V_i by D_it (p' - p_it). The *rise* of the log-loss is

    coefficient (t, j)   p' = F(s_it - w_jt z_ij)
    branch t, its side   p' = 1 (all rows go left) or 0
    feature j            all gates that use it change at once: V_i is worked out anew

less the ridge that is saved. Rises are exact. Where many could go, only the ``n_exact`` cheapest by
a quadratic estimate, w^2 / 2 times the curvature sum_i weight_i (D p (1 - p) z / V)^2, get an exact
one; the others count as infinite.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.outer import TINY_PROBABILITY
from softsplit.solvers.likelihood.objective import Field, score_columns, softmax
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled
from softsplit.tree.routing import SATURATION

FEATURE_SIZE = 4.0
"""A feature counts as much as this number of coefficients: it has to be measured and explained."""

FEATURE = -1
"""In the place of a branch: the price is that of a whole feature."""


@compiled
def _gate(score):  # type: ignore[no-untyped-def]
    decay = np.exp(-min(abs(score), SATURATION))
    large = 1.0 / (1.0 + decay)
    return large if score >= 0.0 else decay * large


@compiled
def _lift(gates, leaves, i, label, values):  # type: ignore[no-untyped-def]
    """values[node] of one row of a class, from the leaves up."""
    n_branches = gates.shape[0]
    for leaf in range(n_branches + 1):
        values[n_branches + leaf] = leaves[label, leaf]
    for t in range(n_branches - 1, -1, -1):
        p = gates[t, i]
        values[t] = p * values[2 * t + 1] + (1.0 - p) * values[2 * t + 2]


@compiled
def routed(x, field, shape):  # type: ignore[no-untyped-def]
    """scores, gates and D (n_branches, n_rows), V (n_rows,), the leaves' distributions, and P."""
    n_branches, n_classes = shape
    features, starts = field.features, field.starts
    n_columns, n_rows = features.shape
    size = n_branches * (n_columns + 1)
    leaves = np.empty((n_classes, n_branches + 1))
    softmax(x[size:].reshape(n_classes, n_branches + 1), field.pseudo, leaves)
    scores = np.empty((n_branches, n_rows))
    score_columns(x[:size].reshape(n_branches, n_columns + 1), features, scores)
    gates, gains = np.empty((n_branches, n_rows)), np.empty((n_branches, n_rows))
    for t in range(n_branches):
        for i in range(n_rows):
            gates[t, i] = _gate(scores[t, i])
    root, arriving = np.empty(n_rows), np.empty((n_branches + 1, n_rows))
    values, reach = np.empty(2 * n_branches + 1), np.empty(2 * n_branches + 1)
    for k in range(n_classes):
        for i in range(starts[k], starts[k + 1]):
            _lift(gates, leaves, i, k, values)
            root[i] = max(values[0], TINY_PROBABILITY)
            reach[0] = 1.0
            for t in range(n_branches):
                reach[2 * t + 1] = reach[t] * gates[t, i]
                reach[2 * t + 2] = reach[t] * (1.0 - gates[t, i])
                gains[t, i] = reach[t] * (values[2 * t + 1] - values[2 * t + 2])
            for leaf in range(n_branches + 1):
                arriving[leaf, i] = reach[n_branches + leaf]
    return scores, gates, gains, root, leaves, arriving


@compiled
def _log_ratio(old, new):  # type: ignore[no-untyped-def]
    return np.log(old / max(new, TINY_PROBABILITY))


def coefficient_rises(
    x: FloatArray, field: Field, shape: tuple[int, int], kept: NDArray[np.bool_], ridge: float,
    n_exact: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray, FloatArray]:  # fmt: skip
    """Branch (or FEATURE), column, rise and size saved of every coefficient and feature.

    ``kept`` (n_branches, n_columns) says which coefficients there are. The size of a tree is the
    number of its coefficients plus FEATURE_SIZE for each of its features; one of one coefficient
    goes with it.
    """
    n_branches, n_columns = kept.shape
    scores, gates, gains, root, leaves, _ = routed(x, field, shape)
    splits = x[: n_branches * (n_columns + 1)].reshape(n_branches, n_columns + 1)
    branches, columns, rises, saved = _estimates(splits, field, kept, gates, gains, root)
    order = np.argsort(rises / saved, kind="stable")
    rises[order[n_exact:]] = np.inf
    _work_out(
        splits, field, scores, gates, gains, root, leaves, float(ridge), order[:n_exact],
        branches, columns, rises,
    )  # fmt: skip
    return branches, columns, rises, saved


@compiled
def _work_out(  # type: ignore[no-untyped-def]
    splits, field, scores, gates, gains, root, leaves, ridge, moves, branches, columns, rises
):
    """Exact rises of chosen moves, in place."""
    for place in range(moves.size):
        move = moves[place]
        if branches[move] == FEATURE:
            rises[move] = _feature_rise(splits, columns[move], field, scores, root, leaves, ridge)
        else:
            t, j = branches[move], columns[move]
            weight, total = splits[t, j], 0.0
            for i in range(root.size):
                gate = _gate(scores[t, i] - weight * field.features[j, i])
                new = root[i] + gains[t, i] * (gate - gates[t, i])
                total += field.weights[i] * _log_ratio(root[i], new)
            rises[move] = total - 0.5 * ridge * weight * weight


@compiled
def _estimates(splits, field, kept, gates, gains, root):  # type: ignore[no-untyped-def]
    """All moves with quadratic estimates of their rises."""
    n_branches, n_columns = kept.shape
    counts = np.zeros(n_columns, dtype=np.int64)
    n_moves = 0
    for j in range(n_columns):
        for t in range(n_branches):
            counts[j] += 1 if kept[t, j] else 0
        n_moves += counts[j] + (1 if counts[j] > 1 else 0)
    branches = np.empty(n_moves, dtype=np.int64)
    columns = np.empty(n_moves, dtype=np.int64)
    rises, saved = np.zeros(n_moves), np.empty(n_moves)
    factor, move = np.empty(root.size), 0
    totals = np.zeros(n_columns)
    for t in range(n_branches):
        for i in range(root.size):
            slope = gains[t, i] * gates[t, i] * (1.0 - gates[t, i]) / root[i]
            factor[i] = 0.5 * field.weights[i] * slope * slope
        for j in range(n_columns):
            if not kept[t, j]:
                continue
            total = 0.0
            for i in range(root.size):
                total += factor[i] * field.features[j, i] * field.features[j, i]
            branches[move], columns[move] = t, j
            rises[move] = total * splits[t, j] * splits[t, j]
            saved[move] = 1.0 + FEATURE_SIZE if counts[j] == 1 else 1.0
            totals[j] += rises[move]
            move += 1
    for j in range(n_columns):
        if counts[j] > 1:
            branches[move], columns[move] = FEATURE, j
            rises[move], saved[move] = totals[j], counts[j] + FEATURE_SIZE
            move += 1
    return branches, columns, rises, saved


@compiled
def _feature_rise(splits, j, field, scores, root, leaves, ridge):  # type: ignore[no-untyped-def]
    n_branches, total = splits.shape[0], 0.0
    gates, values = np.empty((n_branches, 1)), np.empty(2 * n_branches + 1)
    for k in range(leaves.shape[0]):
        for i in range(field.starts[k], field.starts[k + 1]):
            for t in range(n_branches):
                gates[t, 0] = _gate(scores[t, i] - splits[t, j] * field.features[j, i])
            _lift(gates, leaves, np.int64(0), k, values)
            total += field.weights[i] * _log_ratio(root[i], values[0])
    for t in range(n_branches):
        total -= 0.5 * ridge * splits[t, j] * splits[t, j]
    return total


def branch_rises(x: FloatArray, field: Field, shape: tuple[int, int]) -> FloatArray:
    """Rise if all rows go left, and if all go right, at each branch, (n_branches, 2)."""
    _, gates, gains, root, _, _ = routed(x, field, shape)
    rises = np.zeros((shape[0], 2))
    _add_branch_rises(gates, gains, root, field.weights, rises)
    return rises


@compiled
def _add_branch_rises(gates, gains, root, weights, rises):  # type: ignore[no-untyped-def]
    for t in range(rises.shape[0]):
        for i in range(root.size):
            to_left = root[i] + gains[t, i] * (1.0 - gates[t, i])
            to_right = root[i] - gains[t, i] * gates[t, i]
            rises[t, 0] += weights[i] * _log_ratio(root[i], to_left)
            rises[t, 1] += weights[i] * _log_ratio(root[i], to_right)
