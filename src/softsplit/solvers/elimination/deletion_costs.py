"""What a tree loses if a coefficient, a feature or a branch goes and nothing else moves.

With V_i the probability that the tree gives to the class of row i, and gate p of branch t,

    V_i = (what does not depend on t) + D_it p_it,      D_it = reach_it (V_left - V_right)

so that another gate p' changes V_i by D_it (p' - p_it). The *rise* of the log-loss is

    coefficient (t, j)   p' = F(s_it - w_jt z_ij)
    branch t, its side   p' = 1 (all rows go left) or 0
    feature j            all gates that use it change at once: V_i is worked out anew

less the ridge that is saved by coefficients and features. Rises are exact. Where many could go,
only the ``n_exact`` cheapest by a quadratic estimate, w^2 / 2 times the curvature
sum_i weight_i (D p (1 - p) z / V)^2, get an exact one; the others count as infinite.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.outer import TINY_PROBABILITY, logarithms
from softsplit.engines.tree_pass import lift_values, part_of_class
from softsplit.solvers.elimination.objective import Field, score_columns, softmax
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled, compiled_sums, compiled_uncounted
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
    tiles, powers = np.empty((2, n_branches, TILE)), np.empty(TILE)
    _route(
        scores, field.starts, leaves, gates, np.empty((n_branches, n_rows)), gains, root, arriving,
        tiles[0], tiles[1], powers, powers.view(np.int64),
    )  # fmt: skip
    return scores, gates, gains, root, leaves, arriving


@compiled_uncounted
def _route(  # type: ignore[no-untyped-def]
    scores, starts, leaves, left, right, gains, root, arriving, values, reach, powers, bits
):
    """What ``routed`` gives back, a tile of rows at a time."""
    n_branches, n_rows = scores.shape
    for begin in range(0, n_rows, TILE):
        end = min(begin + TILE, n_rows)
        size = end - begin
        for t in range(n_branches):
            p, q = left[t, begin:end], right[t, begin:end]
            open_gates(scores[t], begin, size, 1.0, p, q, powers, bits)
        lift_values(left, right, begin, leaves, starts, begin, size, values)
        top, mixed, everywhere = values[0], root[begin:end], reach[0]
        for i in range(size):
            mixed[i] = max(top[i], TINY_PROBABILITY)
            everywhere[i] = 1.0
        for t in range(n_branches):
            p, q = left[t, begin:end], right[t, begin:end]
            here, gain = reach[t], gains[t, begin:end]
            if 2 * t + 1 >= n_branches:
                leaf = 2 * t + 1 - n_branches
                for k in range(leaves.shape[0]):
                    low, high = part_of_class(starts, k, begin, size)
                    if low < high:
                        change = leaves[k, leaf] - leaves[k, leaf + 1]
                        _scaled(here[low:high], change, gain[low:high])
                _parted(here, p, q, arriving[leaf, begin:end], arriving[leaf + 1, begin:end])
            else:
                on_left, on_right = values[2 * t + 1], values[2 * t + 2]
                for i in range(size):
                    gain[i] = here[i] * (on_left[i] - on_right[i])
                _parted(here, p, q, reach[2 * t + 1, :size], reach[2 * t + 2, :size])


@compiled_uncounted
def _scaled(numbers, factor, found):  # type: ignore[no-untyped-def]
    for i in range(found.size):
        found[i] = factor * numbers[i]


@compiled_uncounted
def _parted(here, p, q, to_left, to_right):  # type: ignore[no-untyped-def]
    for i in range(to_left.size):
        to_left[i] = here[i] * p[i]
        to_right[i] = here[i] * q[i]


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
    n_branches = scores.shape[0]
    tiles, powers = np.empty((3, n_branches, TILE)), np.empty(TILE)
    bits, shifted = powers.view(np.int64), np.empty(TILE)
    for place in range(moves.size):
        move = moves[place]
        j, first, last = columns[move], branches[move], branches[move] + 1
        if first == FEATURE:
            first, last = 0, n_branches
        total = _rise(
            first, last, splits[:, j], field.features[j], field.starts, field.weights, scores,
            gates, gains, root, leaves, tiles[0], tiles[1], tiles[2], powers, bits, shifted,
        )  # fmt: skip
        for t in range(first, last):
            total -= 0.5 * ridge * splits[t, j] * splits[t, j]
        rises[move] = total


@compiled_uncounted
def _rise(  # type: ignore[no-untyped-def]
    first, last, column_weights, column, starts, weights, scores, gates, gains, root, leaves, left,
    right, values, powers, bits, shifted,
):  # fmt: skip
    """Rise of the loss where a column leaves one branch, or all of several."""
    total = 0.0
    for begin in range(0, root.size, TILE):
        end = min(begin + TILE, root.size)
        size = end - begin
        for t in range(first, last):
            p, q, gate = left[t], right[t], gates[t, begin:end]
            if column_weights[t] == 0.0:
                for i in range(size):
                    p[i], q[i] = gate[i], 1.0 - gate[i]
            else:
                _shift(scores[t, begin:end], column_weights[t], column[begin:end], shifted)
                open_gates(shifted, 0, size, 1.0, p, q, powers, bits)
        mixed = root[begin:end]
        if last - first > 1:
            lift_values(left, right, 0, leaves, starts, begin, size, values)
            top = values[0]
            for i in range(size):
                powers[i] = top[i]
        else:
            gain, gate, p = gains[first, begin:end], gates[first, begin:end], left[first]
            for i in range(size):
                powers[i] = mixed[i] + gain[i] * (p[i] - gate[i])
        total += _log_ratios(mixed, weights[begin:end], powers, bits, shifted)
    return total


@compiled_uncounted
def _shift(scores, weight, column, shifted):  # type: ignore[no-untyped-def]
    """Scores without one coefficient."""
    for i in range(scores.size):
        shifted[i] = scores[i] - weight * column[i]


@compiled_sums
def _log_ratios(root, weights, powers, bits, scratch):  # type: ignore[no-untyped-def]
    """Sum of weight log(V / V') over a tile, with the new values V' in ``powers``."""
    size, total = root.size, 0.0
    for i in range(size):
        powers[i] = root[i] / max(powers[i], TINY_PROBABILITY)
    logarithms(powers, bits, scratch, size)
    for i in range(size):
        total += weights[i] * powers[i]
    return total


def _estimates(
    splits: FloatArray, field: Field, kept: NDArray[np.bool_], gates: FloatArray,
    gains: FloatArray, root: FloatArray,
) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray, FloatArray]:  # fmt: skip
    """All moves with quadratic estimates of their rises."""
    slopes = gains * gates * (1.0 - gates) / root
    curvatures = (slopes * slopes * field.weights) @ (field.features * field.features).T
    estimates = 0.5 * kept * curvatures * splits[:, :-1] ** 2
    counts, (branches, columns) = kept.sum(axis=0), np.nonzero(kept)
    several = np.flatnonzero(counts > 1)
    saved = np.where(counts == 1, 1.0 + FEATURE_SIZE, 1.0)[columns]
    rises, whole = estimates[branches, columns], estimates.sum(axis=0)[several]
    return (
        np.concatenate([branches, np.full(len(several), FEATURE)]),
        np.concatenate([columns, several]),
        np.concatenate([rises, whole]),
        np.concatenate([saved, counts[several] + FEATURE_SIZE]),
    )


def branch_rises(
    x: FloatArray, field: Field, shape: tuple[int, int], known: Routed | None = None
) -> FloatArray:
    """Rise if all rows go left, and if all go right, at each branch, (n_branches, 2)."""
    _, gates, gains, root, _, _ = known or routed(x, field, shape)
    sides = [root + gains * (gate - gates) for gate in (1.0, 0.0)]
    found = [np.log(root / np.maximum(side, TINY_PROBABILITY)) @ field.weights for side in sides]
    return np.column_stack(found)
