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

from softsplit.engines.outer import TINY_PROBABILITY, logarithms
from softsplit.engines.tree_pass import lift_values
from softsplit.solvers.likelihood.objective import Field, score_columns, softmax
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled, compiled_uncounted
from softsplit.tree.routing import TILE, open_gates

FEATURE_SIZE = 4.0
"""A feature counts as much as this number of coefficients: it has to be measured and explained."""

FEATURE = -1
"""In the place of a branch: the price is that of a whole feature."""


@compiled
def routed(x, field, shape):  # type: ignore[no-untyped-def]
    """scores, gates and D (n_branches, n_rows), V (n_rows,), the leaves' distributions, and P."""
    n_branches, n_classes = shape
    features = field.features
    n_columns, n_rows = features.shape
    size = n_branches * (n_columns + 1)
    leaves = np.empty((n_classes, n_branches + 1))
    softmax(x[size:].reshape(n_classes, n_branches + 1), field.pseudo, leaves)
    scores = np.empty((n_branches, n_rows))
    score_columns(x[:size].reshape(n_branches, n_columns + 1), features, scores)
    gates, gains = np.empty((n_branches, n_rows)), np.empty((n_branches, n_rows))
    root, arriving = np.empty(n_rows), np.empty((n_branches + 1, n_rows))
    tiles, powers = np.empty((4, n_branches, TILE)), np.empty(TILE)
    _route(
        scores, field.starts, leaves, gates, gains, root, arriving, tiles[0], tiles[1], tiles[2],
        tiles[3], powers, powers.view(np.int64),
    )  # fmt: skip
    return scores, gates, gains, root, leaves, arriving


@compiled_uncounted
def _route(  # type: ignore[no-untyped-def]
    scores, starts, leaves, gates, gains, root, arriving, left, right, values, reach, powers, bits
):
    """What ``routed`` gives back, a tile of rows of one class at a time."""
    n_branches = scores.shape[0]
    for k in range(leaves.shape[0]):
        shares = leaves[k]
        for begin in range(starts[k], starts[k + 1], TILE):
            size = min(TILE, starts[k + 1] - begin)
            for t in range(n_branches):
                open_gates(scores[t], begin, size, 1.0, left[t], right[t], powers, bits)
            lift_values(left, right, shares, size, values)
            for i in range(size):
                root[begin + i] = max(values[0, i], TINY_PROBABILITY)
                reach[0, i] = 1.0
            for t in range(n_branches):
                p, q, here, gate, gain = left[t], right[t], reach[t], gates[t], gains[t]
                if 2 * t + 1 >= n_branches:
                    leaf = 2 * t + 1 - n_branches
                    to_left, to_right = arriving[leaf], arriving[leaf + 1]
                    for i in range(size):
                        gate[begin + i] = p[i]
                        gain[begin + i] = here[i] * (shares[leaf] - shares[leaf + 1])
                        to_left[begin + i] = here[i] * p[i]
                        to_right[begin + i] = here[i] * q[i]
                else:
                    on_left, on_right = values[2 * t + 1], values[2 * t + 2]
                    below_left, below_right = reach[2 * t + 1], reach[2 * t + 2]
                    for i in range(size):
                        gate[begin + i] = p[i]
                        gain[begin + i] = here[i] * (on_left[i] - on_right[i])
                        below_left[i] = here[i] * p[i]
                        below_right[i] = here[i] * q[i]


Routed = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
"""What ``routed`` gives back."""


def coefficient_rises(
    x: FloatArray, field: Field, shape: tuple[int, int], kept: NDArray[np.bool_], ridge: float,
    n_exact: int, known: Routed | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray, FloatArray]:  # fmt: skip
    """Branch (or FEATURE), column, rise and size saved of every coefficient and feature.

    ``kept`` (n_branches, n_columns) says which coefficients there are. The size of a tree is the
    number of its coefficients plus FEATURE_SIZE for each of its features; one of one coefficient
    goes with it. ``known`` is what ``routed`` gives back, if that is known.
    """
    n_branches, n_columns = kept.shape
    scores, gates, gains, root, leaves, _ = known or routed(x, field, shape)
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
    tiles, powers = np.empty((3, scores.shape[0], TILE)), np.empty(TILE)
    bits, shifted = powers.view(np.int64), np.empty(TILE)
    for place in range(moves.size):
        move = moves[place]
        j, total = columns[move], 0.0
        column = field.features[j]
        if branches[move] == FEATURE:
            total = _feature_rise(
                splits, j, column, field.starts, field.weights, scores, gates, root, leaves,
                tiles[0], tiles[1], tiles[2], powers, bits, shifted,
            )  # fmt: skip
            for t in range(splits.shape[0]):
                total -= 0.5 * ridge * splits[t, j] * splits[t, j]
        else:
            t = branches[move]
            total = _coefficient_rise(
                splits[t, j], column, field.weights, scores[t], gates[t], gains[t], root,
                tiles[0, 0], tiles[1, 0], powers, bits, shifted,
            )  # fmt: skip
            total -= 0.5 * ridge * splits[t, j] * splits[t, j]
        rises[move] = total


@compiled_uncounted
def _coefficient_rise(  # type: ignore[no-untyped-def]
    weight, column, weights, scores, gates, gains, root, left, right, powers, bits, shifted
):
    total = 0.0
    for begin in range(0, root.size, TILE):
        size = min(TILE, root.size - begin)
        for i in range(size):
            shifted[i] = scores[begin + i] - weight * column[begin + i]
        open_gates(shifted, 0, size, 1.0, left, right, powers, bits)
        for i in range(size):
            powers[i] = root[begin + i] + gains[begin + i] * (left[i] - gates[begin + i])
        total += _log_ratios(root, begin, size, weights, powers, bits, left)
    return total


@compiled_uncounted
def _feature_rise(  # type: ignore[no-untyped-def]
    splits, j, column, starts, weights, scores, gates, root, leaves, left, right, values, powers,
    bits, shifted,
):  # fmt: skip
    total = 0.0
    for k in range(leaves.shape[0]):
        for begin in range(starts[k], starts[k + 1], TILE):
            size = min(TILE, starts[k + 1] - begin)
            for t in range(splits.shape[0]):
                if splits[t, j] == 0.0:
                    for i in range(size):
                        left[t, i], right[t, i] = gates[t, begin + i], 1.0 - gates[t, begin + i]
                else:
                    for i in range(size):
                        shifted[i] = scores[t, begin + i] - splits[t, j] * column[begin + i]
                    open_gates(shifted, 0, size, 1.0, left[t], right[t], powers, bits)
            lift_values(left, right, leaves[k], size, values)
            for i in range(size):
                powers[i] = values[0, i]
            total += _log_ratios(root, begin, size, weights, powers, bits, shifted)
    return total


@compiled_uncounted
def _log_ratios(root, begin, size, weights, powers, bits, scratch):  # type: ignore[no-untyped-def]
    """Sum of weight log(V / V') over a tile, with the new values V' in ``powers``."""
    total = 0.0
    for i in range(size):
        powers[i] = root[begin + i] / max(powers[i], TINY_PROBABILITY)
    logarithms(powers, bits, scratch, size)
    for i in range(size):
        total += weights[begin + i] * powers[i]
    return total


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


def branch_rises(
    x: FloatArray, field: Field, shape: tuple[int, int], known: Routed | None = None
) -> FloatArray:
    """Rise if all rows go left, and if all go right, at each branch, (n_branches, 2)."""
    _, gates, gains, root, _, _ = known or routed(x, field, shape)
    rises = np.zeros((shape[0], 2))
    _add_branch_rises(gates, gains, root, field.weights, rises)
    return rises


@compiled
def _add_branch_rises(gates, gains, root, weights, rises):  # type: ignore[no-untyped-def]
    powers, scratch = np.empty(TILE), np.empty(TILE)
    bits = powers.view(np.int64)
    for begin in range(0, root.size, TILE):
        size = min(TILE, root.size - begin)
        for t in range(rises.shape[0]):
            for side in range(2):
                for i in range(begin, begin + size):
                    powers[i - begin] = root[i] + gains[t, i] * (1.0 - side - gates[t, i])
                rises[t, side] += _log_ratios(root, begin, size, weights, powers, bits, scratch)
