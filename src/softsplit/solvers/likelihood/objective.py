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

from softsplit.engines.outer import LOGARITHM
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
        scores, scores, field.starts, field.weights, leaves, 1.0, LOGARITHM, mass, np.empty(0)
    )
    _gather(scores, field.features, by_split)
    _by_log_odds(leaves, mass, field.pseudo, by_leaf)
    value += _shrink(splits, smoothing, by_split)
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
    n_branches, width = splits.shape
    n_columns, n_rows = features.shape
    weights = np.empty((n_branches, n_columns))
    for t in range(n_branches):
        for j in range(n_columns):
            weights[t, j] = splits[t, j]
    if n_columns > 0:
        np.dot(weights, features, scores)
    else:
        scores[:, :] = 0.0
    for t in range(n_branches):
        intercept = splits[t, width - 1]
        for i in range(n_rows):
            scores[t, i] += intercept


@compiled
def _gather(slopes, features, by_split):  # type: ignore[no-untyped-def]
    """Derivative by the splits from that by the scores."""
    n_branches, n_rows = slopes.shape
    n_columns = features.shape[0]
    products = np.empty((n_branches, n_columns))
    if n_columns > 0:
        np.dot(slopes, features.T, products)
    for t in range(n_branches):
        total = 0.0
        for i in range(n_rows):
            total += slopes[t, i]
        by_split[t, n_columns] = total
        for j in range(n_columns):
            by_split[t, j] = products[t, j]


@compiled
def _by_log_odds(leaves, mass, pseudo, by_leaf):  # type: ignore[no-untyped-def]
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
def _shrink(splits, smoothing, by_split):  # type: ignore[no-untyped-def]
    """The terms of the weights; their derivative is added."""
    n_branches, width = splits.shape
    total = 0.0
    for t in range(n_branches):
        for j in range(width - 1):
            total += 0.5 * smoothing.ridge * splits[t, j] * splits[t, j]
            by_split[t, j] += smoothing.ridge * splits[t, j]
    if smoothing.entry == 0.0 and smoothing.group == 0.0:
        return total
    for j in range(width - 1):
        square = 0.0
        for t in range(n_branches):
            weight = splits[t, j]
            square += weight * weight
            value, slope = _shape(weight * weight)
            total += smoothing.entry * value
            by_split[t, j] += smoothing.entry * slope * weight
        value, slope = _shape(square)
        total += smoothing.group * value
        for t in range(n_branches):
            by_split[t, j] += smoothing.group * slope * splits[t, j]
    return total


@compiled
def _shape(square):  # type: ignore[no-untyped-def]
    """phi of a size whose square is given, and its slope divided by the size."""
    size = np.sqrt(square + ROUNDING * ROUNDING)
    beyond = (size - ROUNDING) / DELTA
    return DELTA * np.log1p(beyond), 1.0 / ((1.0 + beyond) * size)
