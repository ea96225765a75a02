"""Deletion costs: the increase of the log-loss when a coefficient, a feature or a branch is removed
and everything else is kept.

With V_i the probability that the tree gives to the class of row i, and gate p of branch t,

    V_i = (what does not depend on t) + D_it p_it,      D_it = reach_it (V_left - V_right)

so that another gate p' changes V_i by D_it (p' - p_it). The deletion cost is the change of
sum_i weight_i (-log V_i) for

    coefficient (t, j)   p' = F(s_it - w_jt z_ij)
    branch t, its side   p' = 1 (all rows go left) or 0
    feature j            all gates that use it change at once: V_i is computed anew

less the ridge saved by coefficients and features. Where many could be removed, a quadratic
estimate, w^2 / 2 times the Fisher information sum_i weight_i (D p (1 - p) z / V)^2, ranks them (as
in optimal brain damage, LeCun, Denker and Solla 1990), and the ``n_exact`` cheapest get their exact
cost; the cost of the others counts as infinite.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from softsplit.engines.leaf_tables import GroupTable, part_of_group
from softsplit.engines.outer import TINY_PROBABILITY, logarithms
from softsplit.engines.tree_pass import lift_values
from softsplit.solvers.elimination.objective import (
    StandardisedRows,
    column_blocks,
    score_columns,
    softmax,
)
from softsplit.solvers.elimination.support_tree import FEATURE_SIZE
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled, compiled_sums, compiled_uncounted
from softsplit.tree.routing import TILE, open_gates

FEATURE = -1
"""In place of a branch: the cost is that of a whole feature."""

WORK_AT_ONCE = 5_000_000
"""Rows times branches times entries of one call that works out exact costs: some 50 milliseconds,
between which an interruption is noticed."""


@compiled
def routed(x, rows, shape):  # type: ignore[no-untyped-def]
    """Route the rows through the tree ``x``.

    Returns scores s, gates p and D, each (n_branches, n_rows), V (n_rows,), the leaves'
    distributions (n_groups, n_leaves) and the leaf probabilities P (n_leaves, n_rows).
    """
    n_branches, n_groups = shape
    features = rows.features
    n_columns, n_rows = features.shape
    size = n_branches * (n_columns + 1)
    leaves = np.empty((n_groups, n_branches + 1))
    softmax(x[size:].reshape(n_groups, n_branches + 1), rows.pseudo, leaves)
    scores = np.empty((n_branches, n_rows))
    score_columns(x[:size].reshape(n_branches, n_columns + 1), features, scores)
    gates, gains = np.empty((n_branches, n_rows)), np.empty((n_branches, n_rows))
    root, arriving = np.empty(n_rows), np.empty((n_branches + 1, n_rows))
    tiles, powers = np.empty((2, n_branches, TILE)), np.empty(TILE)
    _route(
        scores, rows.starts, leaves, gates, np.empty((n_branches, n_rows)), gains, root, arriving,
        tiles[0], tiles[1], powers, powers.view(np.int64),
    )  # fmt: skip
    return scores, gates, gains, root, leaves, arriving


@compiled_uncounted
def _route(  # type: ignore[no-untyped-def]
    scores, starts, leaves, left, right, gains, root, arriving, values, reach, powers, bits
):
    """The compiled part of ``routed``, a tile of rows at a time."""
    n_branches, n_rows = scores.shape
    for begin in range(0, n_rows, TILE):
        end = min(begin + TILE, n_rows)
        size = end - begin
        for t in range(n_branches):
            p, q = left[t, begin:end], right[t, begin:end]
            open_gates(scores[t], begin, size, 1.0, p, q, powers, bits)
        # 1. upwards: V of every node, V[t] = p V[left child] + (1 - p) V[right child]
        lift_values(GroupTable(leaves, starts), left, right, begin, begin, size, values)
        top, mixed, everywhere = values[0], root[begin:end], reach[0]
        for i in range(size):
            mixed[i] = max(top[i], TINY_PROBABILITY)
            everywhere[i] = 1.0
        # 2. downwards: reach of the children, and D = reach (V_left - V_right); above leaves V is
        # the share of the row's class
        for t in range(n_branches):
            p, q = left[t, begin:end], right[t, begin:end]
            here, gain = reach[t], gains[t, begin:end]
            if 2 * t + 1 >= n_branches:
                leaf = 2 * t + 1 - n_branches
                for k in range(leaves.shape[0]):
                    low, high = part_of_group(starts, k, begin, size)
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
"""Result of ``routed``: scores, gates, D, V, the leaves' distributions, leaf probabilities."""


def deletion_costs(
    x: FloatArray, rows: StandardisedRows, shape: tuple[int, int], support: NDArray[np.bool_],
    ridge: float, n_exact: int, known: Routed | None = None, sizes: FloatArray | None = None,
    more: FloatArray | None = None, check: Callable[[], None] = lambda: None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray, FloatArray]:  # fmt: skip
    """Return branch (or FEATURE), column, cost and size saved for every coefficient and feature.

    The size of a tree is the number of its coefficients plus FEATURE_SIZE for each of its
    features, or its entry of ``sizes`` (n_columns,); a feature of one coefficient is removed with
    it, and ``more`` (n_branches, n_columns) is saved with coefficients. ``known`` is the result of
    ``routed``, if the caller has it. ``check`` is called now and then, and may raise: with many
    rows exact costs take a while.
    """
    n_branches, n_columns = support.shape
    scores, gates, gains, root, leaves, _ = known or routed(x, rows, shape)
    splits = x[: n_branches * (n_columns + 1)].reshape(n_branches, n_columns + 1)
    sizes = np.full(n_columns, FEATURE_SIZE) if sizes is None else sizes
    branches, columns, costs, saved = _estimates(splits, rows, support, gates, gains, root, sizes)
    if more is not None:
        saved = saved + np.where(branches == FEATURE, 0.0, more[branches, columns])
    order = np.argsort(costs / saved, kind="stable")
    costs[order[n_exact:]] = np.inf
    at_once = max(1, WORK_AT_ONCE // max(scores.size, 1))
    for begin in range(0, min(n_exact, len(order)), at_once):
        check()
        _exact_costs(
            splits, rows, scores, gates, gains, root, leaves, float(ridge),
            order[begin : min(begin + at_once, n_exact)], branches, columns, costs,
        )  # fmt: skip
    return branches, columns, costs, saved


@compiled
def _exact_costs(  # type: ignore[no-untyped-def]
    splits, rows, scores, gates, gains, root, leaves, ridge, chosen, branches, columns, costs
):
    """Replace the estimates of the ``chosen`` entries of ``costs`` by exact costs."""
    n_branches = scores.shape[0]
    tiles, powers = np.empty((3, n_branches, TILE)), np.empty(TILE)
    bits, shifted = powers.view(np.int64), np.empty(TILE)
    for place in range(chosen.size):
        number = chosen[place]
        j, first, last = columns[number], branches[number], branches[number] + 1
        if first == FEATURE:
            first, last = 0, n_branches
        total = _loss_increase(
            first, last, splits[:, j], rows.features[j], rows.starts, rows.weights, scores,
            gates, gains, root, leaves, tiles[0], tiles[1], tiles[2], powers, bits, shifted,
        )  # fmt: skip
        for t in range(first, last):  # the ridge that is saved
            total -= 0.5 * ridge * splits[t, j] * splits[t, j]
        costs[number] = total


@compiled_uncounted
def _loss_increase(  # type: ignore[no-untyped-def]
    first, last, column_weights, column, starts, weights, scores, gates, gains, root, leaves, left,
    right, values, powers, bits, shifted,
):  # fmt: skip
    """Increase of the log-loss when a column is removed from the branches first to last - 1."""
    total = 0.0
    for begin in range(0, root.size, TILE):
        end = min(begin + TILE, root.size)
        size = end - begin
        # 1. new gates p' = F(s - w z); branches that do not use the column keep theirs
        for t in range(first, last):
            p, q, gate = left[t], right[t], gates[t, begin:end]
            if column_weights[t] == 0.0:
                for i in range(size):
                    p[i], q[i] = gate[i], 1.0 - gate[i]
            else:
                _shift(scores[t, begin:end], column_weights[t], column[begin:end], shifted)
                open_gates(shifted, 0, size, 1.0, p, q, powers, bits)
        # 2. new V': computed anew for several branches, V + D (p' - p) for one
        mixed = root[begin:end]
        if last - first > 1:
            lift_values(GroupTable(leaves, starts), left, right, 0, begin, size, values)
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
    """Write the scores without one coefficient to ``shifted``."""
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
    splits: FloatArray, rows: StandardisedRows, support: NDArray[np.bool_], gates: FloatArray,
    gains: FloatArray, root: FloatArray, sizes: FloatArray,
) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray, FloatArray]:  # fmt: skip
    """As ``deletion_costs``, with quadratic estimates of all costs and ``sizes`` of features."""
    estimates = support * quadratic_costs(splits, rows, gates, gains, root)
    counts, (branches, columns) = support.sum(axis=0), np.nonzero(support)
    several = np.flatnonzero(counts > 1)
    saved = np.where(counts == 1, 1.0 + sizes, 1.0)[columns]
    costs, whole = estimates[branches, columns], estimates.sum(axis=0)[several]
    return (
        np.concatenate([branches, np.full(len(several), FEATURE)]),
        np.concatenate([columns, several]),
        np.concatenate([costs, whole]),
        np.concatenate([saved, counts[several] + sizes[several]]),
    )


def quadratic_costs(
    splits: FloatArray, rows: StandardisedRows, gates: FloatArray, gains: FloatArray,
    root: FloatArray,
) -> FloatArray:  # fmt: skip
    """Return the estimated cost of every coefficient, (n_branches, n_columns)."""
    slopes = gains * gates * (1.0 - gates) / root
    weighed = slopes * slopes * rows.weights
    curvatures = np.empty((len(splits), len(rows.features)))
    for some in column_blocks(*rows.features.shape):
        columns = rows.features[some]
        curvatures[:, some] = weighed @ (columns * columns).T
    return 0.5 * curvatures * splits[:, :-1] ** 2


@compiled
def root_values(scores, starts, leaves):  # type: ignore[no-untyped-def]
    """Return V of every row, (n_rows,), from the scores (n_branches, n_rows)."""
    n_branches, n_rows = scores.shape
    root, tiles, powers = np.empty(n_rows), np.empty((3, n_branches, TILE)), np.empty(TILE)
    left, right, bits = tiles[0], tiles[1], powers.view(np.int64)
    for begin in range(0, n_rows, TILE):
        size = min(TILE, n_rows - begin)
        for t in range(n_branches):
            open_gates(scores[t], begin, size, 1.0, left[t], right[t], powers, bits)
        lift_values(GroupTable(leaves, starts), left, right, 0, begin, size, tiles[2])
        for i in range(size):
            root[begin + i] = max(tiles[2, 0, i], TINY_PROBABILITY)
    return root


def removal_cost(
    splits: FloatArray, rows: StandardisedRows, known: Routed, out: NDArray[np.bool_], ridge: float
) -> float:
    """Return the cost of removing the coefficients ``out``, (n_branches, n_columns), at once."""
    scores, gates, gains, root, leaves, _ = known
    branches, columns = np.flatnonzero(out.any(axis=1)), np.flatnonzero(out.any(axis=0))
    removed = (splits[:, :-1] * out)[np.ix_(branches, columns)]
    shifts = removed @ rows.features[columns]
    if len(branches) == 1:  # V + D (p' - p)
        t = branches[0]
        changed = expit(scores[t] - shifts[0])
        changed -= gates[t]
        changed *= gains[t]
        changed += root
        np.maximum(changed, TINY_PROBABILITY, out=changed)
    else:
        scores = scores.copy()
        scores[branches] -= shifts
        changed = root_values(scores, rows.starts, leaves)
    cost = float(rows.weights @ np.log(root / changed))
    return cost - 0.5 * ridge * float(np.sum(removed**2))


def saturation_costs(
    x: FloatArray, rows: StandardisedRows, shape: tuple[int, int], known: Routed | None = None
) -> FloatArray:
    """Return the cost of sending all rows left, and right, at each branch, (n_branches, 2)."""
    _, gates, gains, root, _, _ = known or routed(x, rows, shape)
    sides = [root + gains * (gate - gates) for gate in (1.0, 0.0)]
    found = [np.log(root / np.maximum(side, TINY_PROBABILITY)) @ rows.weights for side in sides]
    return np.column_stack(found)
