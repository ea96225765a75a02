"""The smooth log-loss of a tree as a function of all its parameters.

With standardised rows z, the log-odds of going left at branch t and the leaves' distributions are

    s_it = w_t . z_i + b_t                    c_kl = exp(v_kl) / sum_k' exp(v_k'l)

and the function is, over the rows i with weight_i, class y_i and leaf probabilities P_il,

    - sum_i weight_i log sum_l P_il c_{y_i l}                 log-loss; with targets t_ik
                                                              - sum_ik weight_i t_ik log V_ik
    - sum_kl pseudo_k log c_kl                                prior of the leaves
    + ridge / 2 sum w_jt^2                                    ridge
    + entry sum_jt phi(|w_jt|) + group sum_j phi(|w_j|_2)     only while a support is searched

phi(u) = delta log(1 + u / delta), rounded off near zero, is the log-sum surrogate of the count
(Candes, Wakin and Boyd 2008): it shrinks large weights little. It ranks coefficients; only
elimination sets them to zero.

Derivatives: with T the derivative of the log-loss by c (engines/tree_pass.py) and S = sum pseudo_k,

    d / d v_kl = c_kl (T_kl - sum_k' c_k'l T_k'l) - pseudo_k + c_kl S

All parameters lie in one vector: the splits (n_branches, n_columns + 1), intercept last, then the
log-odds of the leaves (n_groups, n_leaves). Entries that are not ``free`` keep their value.

``SmoothFunction`` is all that optimisers ask of rows, wherever those are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.outer import LOGARITHM, logarithms
from softsplit.engines.products import scores_of, sums_of
from softsplit.engines.samples import stratified_counts
from softsplit.engines.target_pass import target_pass
from softsplit.engines.tree_pass import tree_pass
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled, compiled_by_type

SmoothFunction = Callable[[FloatArray], tuple[float, FloatArray]]
"""Value and gradient at a vector of parameters."""


class PhiShape(NamedTuple):
    """Constants of phi, known to compiled code."""

    delta: float = 0.3  # weight, in log-odds per unit, from which on phi flattens
    rounding: float = 0.02  # below this weight phi is rounded off


PHI = PhiShape()


BLOCK_LINES, BLOCK_CELLS = 64, 100_000
"""Columns are looked at in multiples of so many, and about so many cells at a time."""


def column_blocks(n_columns: int, n_rows: int) -> Iterator[slice]:
    """Yield all columns, some at a time, so that matrix products have the bits of all at once.

    A single column at the end joins the others: its product is another routine's.
    """
    step = BLOCK_LINES * max(1, BLOCK_CELLS // (BLOCK_LINES * max(n_rows, 1)))
    begin = 0
    while begin < n_columns:
        end = begin + step if n_columns - begin - step > 1 else n_columns
        yield slice(begin, end)
        begin = end


class StandardisedRows(NamedTuple):
    """Standardised rows z of the columns in use, grouped by class, and the prior of the leaves."""

    features: FloatArray  # (n_columns, n_rows)
    starts: NDArray[np.int64]  # (n_groups + 1,)
    weights: FloatArray  # (n_rows,)
    pseudo: FloatArray  # (n_groups,)


def first_of_each_group(rows: StandardisedRows, limit: int, fewest: int) -> StandardisedRows:
    """Return about ``limit`` rows, at least ``fewest`` of each class, with the same class totals.

    They are the first of each class, which are as good as random (engines/samples.py).
    """
    counts = np.diff(rows.starts)
    take = stratified_counts(counts, limit, fewest)
    if np.array_equal(take, counts):
        return rows
    chosen = np.concatenate([low + np.arange(n) for low, n in zip(rows.starts, take, strict=False)])
    starts = np.concatenate([[0], np.cumsum(take)]).astype(np.int64)
    weights = rows.weights[chosen]
    present = np.flatnonzero(take)
    totals, some = (
        np.add.reduceat(w, s[:-1][present])
        for w, s in ((rows.weights, rows.starts), (weights, starts))
    )
    weights = weights * np.repeat(totals / some, take[present])
    features = np.ascontiguousarray(rows.features[:, chosen])
    return rows._replace(features=features, starts=starts, weights=weights)


class SoftTargetRows(NamedTuple):
    """The same for rows with class probabilities as targets, each row once."""

    features: FloatArray  # (n_columns, n_rows)
    targets: FloatArray  # (n_groups, n_rows): weight in each class
    weights: FloatArray  # (n_rows,)
    pseudo: FloatArray  # (n_groups,)


class Shrinkage(NamedTuple):
    """Strengths of the terms that shrink weights."""

    ridge: float
    entry: float = 0.0  # phi of each weight
    group: float = 0.0  # phi of the norm of each column's weights


@compiled
def _pass_labelled(rows, scores, leaves, mass):  # type: ignore[no-untyped-def]
    return tree_pass(
        scores, scores, rows.starts, rows.weights, leaves, 1.0, LOGARITHM, mass,
        np.empty(0),
    )  # fmt: skip


@compiled
def _pass_soft_targets(rows, scores, leaves, mass):  # type: ignore[no-untyped-def]
    return target_pass(scores, scores, rows.targets, leaves, 1.0, LOGARITHM, mass)


@compiled_by_type({StandardisedRows: _pass_labelled, SoftTargetRows: _pass_soft_targets})
def pass_scores(rows, scores, leaves, mass):  # type: ignore[no-untyped-def]
    """Return the log-loss; replace ``scores`` by its derivative and write that by ``leaves``."""


@compiled
def value_and_gradient(x, rows, shrinkage, free, gradient, scores, mass):  # type: ignore[no-untyped-def]
    """Return the function at ``x`` and write its derivative to ``gradient``.

    ``scores`` (n_branches, n_rows) and ``mass`` (n_groups, n_leaves) are overwritten.
    """
    n_branches = scores.shape[0]
    n_groups, n_leaves = mass.shape
    n_columns = rows.features.shape[0]
    size = n_branches * (n_columns + 1)
    splits = x[:size].reshape(n_branches, n_columns + 1)
    by_split = gradient[:size].reshape(n_branches, n_columns + 1)
    by_leaf = gradient[size:].reshape(n_groups, n_leaves)
    leaves = np.empty((n_groups, n_leaves))
    # prior of the leaves, then the log-loss; the pass turns scores into d loss / d score
    value = softmax(x[size:].reshape(n_groups, n_leaves), rows.pseudo, leaves)
    score_columns(splits, rows.features, scores)
    value += pass_scores(rows, scores, leaves, mass)
    _gather(scores, rows.features, by_split)
    by_log_odds(leaves, mass, rows.pseudo, by_leaf)
    value += shrink(splits, shrinkage, by_split)
    for i in range(x.size):
        if not free[i]:
            gradient[i] = 0.0
    return value


@compiled
def softmax(log_odds, pseudo, leaves):  # type: ignore[no-untyped-def]
    """Write the distributions c_kl to ``leaves``; return the prior, -sum_kl pseudo_k log c_kl."""
    n_groups, n_leaves = log_odds.shape
    prior = 0.0
    for leaf in range(n_leaves):
        top = log_odds[0, leaf]
        for k in range(1, n_groups):
            top = max(top, log_odds[k, leaf])
        total = 0.0
        for k in range(n_groups):
            leaves[k, leaf] = np.exp(log_odds[k, leaf] - top)
            total += leaves[k, leaf]
        shift = top + np.log(total)  # log sum_k exp(v_kl)
        for k in range(n_groups):
            leaves[k, leaf] /= total
            prior -= pseudo[k] * (log_odds[k, leaf] - shift)
    return prior


@compiled
def score_columns(splits, features, scores):  # type: ignore[no-untyped-def]
    """Write s_it = w_t . z_i + b_t, (n_branches, n_rows), to ``scores``."""
    n_branches, n_columns = splits.shape[0], features.shape[0]
    theta = np.empty((n_branches, n_columns + 1))  # in the units of engines/products.py
    for t in range(n_branches):
        for j in range(n_columns):
            theta[t, j] = n_columns * splits[t, j]
        theta[t, n_columns] = -splits[t, n_columns]
    scores_of(theta, features, scores)


@compiled
def _gather(slopes, features, by_split):  # type: ignore[no-untyped-def]
    """Write the derivative by the splits, sum_i slope_it (z_i, 1), to ``by_split``."""
    n_branches, n_columns = slopes.shape[0], features.shape[0]
    sums_of(slopes, features, np.ones(n_branches, dtype=np.bool_), by_split)
    for t in range(n_branches):
        for j in range(n_columns):
            by_split[t, j] *= n_columns
        by_split[t, n_columns] = -by_split[t, n_columns]


@compiled
def by_log_odds(leaves, mass, pseudo, by_leaf):  # type: ignore[no-untyped-def]
    """Write the derivative by the log-odds of the leaves to ``by_leaf``.

    ``mass`` is T, the derivative of the log-loss by the distributions ``leaves``.
    """
    n_groups, n_leaves = leaves.shape
    count = 0.0
    for k in range(n_groups):
        count += pseudo[k]
    for leaf in range(n_leaves):
        mean = 0.0
        for k in range(n_groups):
            mean += leaves[k, leaf] * mass[k, leaf]
        for k in range(n_groups):
            by_leaf[k, leaf] = leaves[k, leaf] * (mass[k, leaf] - mean + count) - pseudo[k]


@compiled
def shrink(splits, shrinkage, by_split):  # type: ignore[no-untyped-def]
    """Return ridge and phi terms of the weights; add their derivative to ``by_split``."""
    n_branches, width = splits.shape
    total = 0.0
    for t in range(n_branches):
        for j in range(width - 1):
            total += 0.5 * shrinkage.ridge * splits[t, j] * splits[t, j]
            by_split[t, j] += shrinkage.ridge * splits[t, j]
    if shrinkage.entry == 0.0 and shrinkage.group == 0.0:
        return total
    # For each column: phi of its weights in every branch, and of their norm (last entry).
    sizes = np.empty(n_branches + 1)
    logs, scratch = np.empty(n_branches + 1), np.empty(n_branches + 1)
    bits = logs.view(np.int64)
    for j in range(width - 1):
        square = 0.0
        for t in range(n_branches):
            square += splits[t, j] * splits[t, j]
            sizes[t] = splits[t, j] * splits[t, j]
        sizes[n_branches] = square
        # u = sqrt(w^2 + rounding^2), phi = delta log(1 + (u - rounding) / delta), and in sizes
        # phi'(u) / u, by which a weight is multiplied in the derivative
        for t in range(n_branches + 1):
            sizes[t] = np.sqrt(sizes[t] + PHI.rounding * PHI.rounding)
            logs[t] = 1.0 + (sizes[t] - PHI.rounding) / PHI.delta
            sizes[t] = 1.0 / (logs[t] * sizes[t])
        logarithms(logs, bits, scratch, n_branches + 1)
        total += shrinkage.group * PHI.delta * logs[n_branches]
        for t in range(n_branches):
            total += shrinkage.entry * PHI.delta * logs[t]
            slope = shrinkage.entry * sizes[t] + shrinkage.group * sizes[n_branches]
            by_split[t, j] += slope * splits[t, j]
    return total
