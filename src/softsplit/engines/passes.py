"""The compiled steps from splits to sums, for both kinds of rows in memory.

    scores      z = theta . (x / n_features, -1)                                  score_rows
    value       sum_i weight_i f(V_i) - sum_k price_k correct_k, with slopes      pass_rows
    gradient    d value / d theta = sum_i slope_i (x_i / n_features, -1)          gather_gradient

where correct_k = sum_l mass[k, l] c[k, l] is the correctly classified mass of group k. The two
kinds of rows are those of a whole tree and those of a block; numba compiles for the type of its
argument, so that nothing is compiled for blocks unless they are used.
"""

from __future__ import annotations

import numpy as np

from softsplit.engines.block_pass import BlockRows, block_pass
from softsplit.engines.compiled import TreeRows
from softsplit.engines.leaf_tables import GroupTable
from softsplit.engines.outer import IDENTITY
from softsplit.engines.products import scores_of, sums_of
from softsplit.engines.tree_pass import pass_tiles, tree_pass
from softsplit.support.compiling import compiled, compiled_by_type, compiled_uncounted


@compiled_uncounted
def score_rows(theta, passes):  # type: ignore[no-untyped-def]
    """Write the scores of all rows to ``passes.scores``."""
    scores_of(theta, passes.rows.features, passes.scores)


@compiled_uncounted
def gather_gradient(passes, free, gradient):  # type: ignore[no-untyped-def]
    """Write the gradient of the last pass in theta; zero for branches that are not free."""
    sums_of(passes.slopes, passes.rows.features, free, gradient)


@compiled_uncounted
def _pass_tree(rows, passes, priced, rated):  # type: ignore[no-untyped-def]
    """The pass of a whole tree; under the identity, prices are part of the table.

    A ``priced`` pass follows one without prices at the same scores, so that its gates are known.
    """
    table, leaf_values, mass = passes.table, passes.leaf_values, passes.mass
    n_groups, n_leaves = table.shape
    if passes.outer != IDENTITY:
        return _pass_nonlinear(rows, passes, priced, rated)
    if priced:
        # W - price c: both terms are linear in the leaf probabilities.
        table = passes.priced
        for k in range(n_groups):
            for leaf in range(n_leaves):
                price = passes.price[k] * leaf_values[k, leaf]
                table[k, leaf] = passes.table[k, leaf] - price
    value = pass_tiles(
        passes.scores, passes.slopes, rows.weights, GroupTable(table, rows.starts),
        passes.steepness, IDENTITY, mass, passes.outer_curvature, passes.gates, passes.room, priced,
    )  # fmt: skip
    if rated:
        _sum_correct_mass(mass, leaf_values, passes.correct_mass)
    return value


@compiled
def _pass_nonlinear(rows, passes, priced, rated):  # type: ignore[no-untyped-def]
    """The same for an outer function that is not the identity: rates take a pass of their own."""
    n_groups, n_leaves = passes.table.shape
    slopes, rate_slopes = passes.slopes, passes.rate_slopes
    value = pass_tiles(
        passes.scores, slopes, rows.weights, GroupTable(passes.table, rows.starts),
        passes.steepness, passes.outer, passes.mass, passes.outer_curvature, passes.gates,
        passes.room, False,
    )  # fmt: skip
    if rated:
        # Correct mass and its slopes: the table c under the identity.
        mass = np.empty((n_groups, n_leaves))
        pass_tiles(
            passes.scores, rate_slopes, rows.weights, GroupTable(passes.leaf_values, rows.starts),
            passes.steepness, IDENTITY, mass, np.empty(0), passes.gates, passes.room,
            True,
        )  # fmt: skip
        _sum_correct_mass(mass, passes.leaf_values, passes.correct_mass)
    if priced:
        # value - sum_k price_k correct_k, and its slopes.
        for k in range(n_groups):
            price = passes.price[k]
            for t in range(slopes.shape[0]):
                for i in range(rows.starts[k], rows.starts[k + 1]):
                    slopes[t, i] -= price * rate_slopes[t, i]
            value -= price * passes.correct_mass[k]
    return value


@compiled_uncounted
def _sum_correct_mass(mass, leaf_values, correct_mass):  # type: ignore[no-untyped-def]
    """correct_mass[k] = sum_l mass[k, l] c[k, l]."""
    for k in range(mass.shape[0]):
        total = 0.0
        for leaf in range(mass.shape[1]):
            total += mass[k, leaf] * leaf_values[k, leaf]
        correct_mass[k] = total


@compiled
def _pass_block(rows, passes, priced, rated):  # type: ignore[no-untyped-def]
    n_groups = rows.group_totals.size
    price = passes.price if priced else np.zeros(n_groups)
    return block_pass(
        passes.scores, passes.slopes, rows, passes.steepness, 1.0, price, passes.correct_mass
    )


@compiled_by_type({TreeRows: _pass_tree, BlockRows: _pass_block})
def pass_rows(rows, passes, priced, rated):  # type: ignore[no-untyped-def]
    """Return the value at ``passes.scores``; write slopes and, if ``rated``, the correct mass.

    If ``priced``, ``passes.price`` times the correct mass is subtracted.
    """


@compiled
def _all_rate_slopes_tree(rows, passes, k):  # type: ignore[no-untyped-def]
    return np.empty((0, 0))  # ``rate_slopes`` computes them by chunks, without an array of all rows


@compiled
def _all_rate_slopes_block(rows, passes, k):  # type: ignore[no-untyped-def]
    n_groups = rows.group_totals.size
    slopes, price = np.empty(passes.scores.shape), np.zeros(n_groups)
    price[k] = -1.0 / rows.group_totals[k]  # cost_share 0 and this price give rate_k
    block_pass(passes.scores, slopes, rows, passes.steepness, 0.0, price, np.empty(n_groups))
    return slopes


@compiled_by_type({TreeRows: _all_rate_slopes_tree, BlockRows: _all_rate_slopes_block})
def all_rate_slopes(rows, passes, k):  # type: ignore[no-untyped-def]
    """Return d rate_k / d score of all rows of a block; an empty array for a whole tree."""


@compiled
def _rate_slopes_tree(rows, passes, k, begin, size, every, slopes):  # type: ignore[no-untyped-def]
    n_branches, n_leaves = passes.scores.shape[0], passes.table.shape[1]
    scores = np.empty((n_branches, size))
    table, mass = np.empty((1, n_leaves)), np.empty((1, n_leaves))
    # rate_k = sum_i weight_i sum_l P_il c_kl / n_k: a pass over rows of one group.
    for leaf in range(n_leaves):
        table[0, leaf] = passes.leaf_values[k, leaf] / rows.group_totals[k]
    for t in range(n_branches):
        for i in range(size):
            scores[t, i] = passes.scores[t, begin + i]
    tree_pass(
        scores, slopes, np.array([0, size]), rows.weights[begin:], table, passes.steepness,
        IDENTITY, mass, np.empty(0),
    )  # fmt: skip


@compiled
def _rate_slopes_block(rows, passes, k, begin, size, every, slopes):  # type: ignore[no-untyped-def]
    for t in range(slopes.shape[0]):
        for i in range(size):
            slopes[t, i] = every[t, begin + i]


@compiled_by_type({TreeRows: _rate_slopes_tree, BlockRows: _rate_slopes_block})
def rate_slopes(rows, passes, k, begin, size, every, slopes):  # type: ignore[no-untyped-def]
    """Write d rate_k / d score of ``size`` rows of group k from ``begin`` on to ``slopes``.

    ``every`` is the result of ``all_rate_slopes``.
    """
