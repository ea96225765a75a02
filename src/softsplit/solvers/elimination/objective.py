"""The log-loss of a tree as a smooth function of all its numbers at once.

With standardised rows z, the log-odds of going left at branch t and the leaves' distributions are

    s_it = w_t . z_i + b_t                    c_kl = exp(v_kl) / sum_k' exp(v_k'l)

and the function is, over the rows i with weight_i, class y_i and leaf probabilities P_il,

    - sum_i weight_i log sum_l P_il c_{y_i l}                 log-loss
    - sum_kl pseudo_k log c_kl                                prior of the leaves
    + ridge / 2 sum w_jt^2                                    ridge
    + entry sum_jt phi(|w_jt|) + group sum_j phi(|w_j|_2)     only where a support is looked for

phi(u) = DELTA log(1 + u / DELTA) with u rounded off near zero: a shape that shrinks little what is
large. It finds what is worth keeping; coefficients become exactly zero by elimination alone.

Derivatives: with T the derivative of the log-loss by c (engines/tree_pass.py) and S_k = sum pseudo,

    d / d v_kl = c_kl (T_kl - sum_k' c_k'l T_k'l) - pseudo_k + c_kl S

All numbers lie in one vector: the splits (n_branches, n_columns + 1), intercept last, then the
log-odds of the leaves (n_classes, n_leaves). Entries that are not ``free`` keep their value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.outer import LOGARITHM, logarithms
from softsplit.engines.products import scores_of, sums_of
from softsplit.engines.tree_pass import tree_pass
from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled

DELTA = 0.3
"""Size, in log-odds per unit, from which on the shape phi flattens."""

ROUNDING = 0.02
"""Below this size phi is rounded off."""


class Field(NamedTuple):
    """Standardised rows of the columns in use, grouped by class."""

    features: FloatArray  # (n_columns, n_rows)
    starts: NDArray[np.int64]  # (n_classes + 1,)
    weights: FloatArray  # (n_rows,)
    pseudo: FloatArray  # (n_classes,)


class Smoothing(NamedTuple):
    """Factors of the terms beside the log-loss and its prior."""

    ridge: float
    entry: float = 0.0
    group: float = 0.0


@compiled
def value_and_gradient(x, field, smoothing, free, gradient, scores, mass):  # type: ignore[no-untyped-def]
    """The function at ``x``; its derivative goes to ``gradient``.

    ``scores`` (n_branches, n_rows) and ``mass`` (n_classes, n_leaves) are overwritten.
    """
    n_branches = scores.shape[0]
    n_classes, n_leaves = mass.shape
    n_columns = field.features.shape[0]
    size = n_branches * (n_columns + 1)
    splits = x[:size].reshape(n_branches, n_columns + 1)
    by_split = gradient[:size].reshape(n_branches, n_columns + 1)
    by_leaf = gradient[size:].reshape(n_classes, n_leaves)
    leaves = np.empty((n_classes, n_leaves))
    value = softmax(x[size:].reshape(n_classes, n_leaves), field.pseudo, leaves)
    score_columns(splits, field.features, scores)
    value += tree_pass(
        scores, scores, field.starts, field.weights, leaves, 1.0, LOGARITHM, mass,
        np.empty(0),
    )  # fmt: skip
    _gather(scores, field.features, by_split)
    by_log_odds(leaves, mass, field.pseudo, by_leaf)
    value += shrink(splits, smoothing, by_split)
    for i in range(x.size):
        if not free[i]:
            gradient[i] = 0.0
    return value


@compiled
def softmax(log_odds, pseudo, leaves):  # type: ignore[no-untyped-def]
    """Distributions of the leaves to ``leaves``; the prior term."""
    n_classes, n_leaves = log_odds.shape
    prior = 0.0
    for leaf in range(n_leaves):
        top = log_odds[0, leaf]
        for k in range(1, n_classes):
            top = max(top, log_odds[k, leaf])
        total = 0.0
        for k in range(n_classes):
            leaves[k, leaf] = np.exp(log_odds[k, leaf] - top)
            total += leaves[k, leaf]
        shift = top + np.log(total)
        for k in range(n_classes):
            leaves[k, leaf] /= total
            prior -= pseudo[k] * (log_odds[k, leaf] - shift)
    return prior


@compiled
def score_columns(splits, features, scores):  # type: ignore[no-untyped-def]
    """Log-odds of going left, (n_branches, n_rows), to ``scores``."""
    n_branches, n_columns = splits.shape[0], features.shape[0]
    theta = np.empty((n_branches, n_columns + 1))  # in the units of products.py
    for t in range(n_branches):
        for j in range(n_columns):
            theta[t, j] = n_columns * splits[t, j]
        theta[t, n_columns] = -splits[t, n_columns]
    scores_of(theta, features, scores)


@compiled
def _gather(slopes, features, by_split):  # type: ignore[no-untyped-def]
    """Derivative by the splits from that by the scores."""
    n_branches, n_columns = slopes.shape[0], features.shape[0]
    sums_of(slopes, features, np.ones(n_branches, dtype=np.bool_), by_split)
    for t in range(n_branches):
        for j in range(n_columns):
            by_split[t, j] *= n_columns
        by_split[t, n_columns] = -by_split[t, n_columns]


@compiled
def by_log_odds(leaves, mass, pseudo, by_leaf):  # type: ignore[no-untyped-def]
    """Derivative by the log-odds of the leaves, from that by their distributions."""
    n_classes, n_leaves = leaves.shape
    count = 0.0
    for k in range(n_classes):
        count += pseudo[k]
    for leaf in range(n_leaves):
        mean = 0.0
        for k in range(n_classes):
            mean += leaves[k, leaf] * mass[k, leaf]
        for k in range(n_classes):
            by_leaf[k, leaf] = leaves[k, leaf] * (mass[k, leaf] - mean + count) - pseudo[k]


@compiled
def shrink(splits, smoothing, by_split):  # type: ignore[no-untyped-def]
    """The terms of the weights; their derivative is added."""
    n_branches, width = splits.shape
    total = 0.0
    for t in range(n_branches):
        for j in range(width - 1):
            total += 0.5 * smoothing.ridge * splits[t, j] * splits[t, j]
            by_split[t, j] += smoothing.ridge * splits[t, j]
    if smoothing.entry == 0.0 and smoothing.group == 0.0:
        return total
    sizes = np.empty(n_branches + 1)  # of the weights of a column, and of all together
    logs, scratch = np.empty(n_branches + 1), np.empty(n_branches + 1)
    bits = logs.view(np.int64)
    for j in range(width - 1):
        square = 0.0
        for t in range(n_branches):
            square += splits[t, j] * splits[t, j]
            sizes[t] = splits[t, j] * splits[t, j]
        sizes[n_branches] = square
        for t in range(n_branches + 1):
            sizes[t] = np.sqrt(sizes[t] + ROUNDING * ROUNDING)
            logs[t] = 1.0 + (sizes[t] - ROUNDING) / DELTA
            sizes[t] = 1.0 / (logs[t] * sizes[t])
        logarithms(logs, bits, scratch, n_branches + 1)
        total += smoothing.group * DELTA * logs[n_branches]
        for t in range(n_branches):
            total += smoothing.entry * DELTA * logs[t]
            slope = smoothing.entry * sizes[t] + smoothing.group * sizes[n_branches]
            by_split[t, j] += slope * splits[t, j]
    return total
