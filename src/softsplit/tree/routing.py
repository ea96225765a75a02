"""How rows go through a tree: scores, gates, and the probabilities of reaching nodes and leaves.

Gates, with score z_it = (x_i . a_t) / p - mu_t and steepness gamma:

    p_it = F(gamma z_it) = 1 / (1 + exp(-gamma z_it))           left with p, right with 1 - p

Shapes: scores, gates (n_branches, n_rows); probabilities of leaves (n_leaves, n_rows). The pass
that adds up a loss over many rows is engines/tree_pass.py; it opens its gates here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled_uncounted, inlined
from softsplit.tree.parameters import TreeParameters

TILE = 128
"""Rows handled together: the working arrays of a tile stay in the first-level cache."""


SATURATION = 700.0
"""Scores beyond this are cut: exp(-700) is still a normal number."""

ROUND = 6755399441055744.0
"""1.5 * 2^52: adding it rounds to an integer, which then sits in the lowest bits."""

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


@inlined
def exponential_parts(x):  # type: ignore[no-untyped-def]
    """e^-x for 0 <= x <= SATURATION is e^r 2^-k with |r| <= ln(2) / 2: e^r, and k + ROUND.

    e^r is a polynomial of degree 13, accurate to the last digits.
    """
    power = x * LOG2_E + ROUND
    k = power - ROUND
    r = (k * LN2_HIGH - x) + k * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0))
    middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0))
    high = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0))
    top = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0)
    return low + r4 * (middle + r4 * (high + r4 * top)), power


@inlined
def tile_gates(scores, begin, size, steepness, left, right, powers, bits):  # type: ignore[no-untyped-def]
    """Gate probabilities of one branch, each accurate to the last digits however small it is.

    2^-k is written into the exponent bits: ``bits`` is ``powers`` seen as integers. Written out
    because a call of the library's exp per row cannot be vectorised, and gates are most of the
    work. Nor can a loop whose index might be negative: hence the slice.
    """
    tile = scores[begin : begin + size]
    for i in range(size):
        left[i], powers[i] = exponential_parts(min(abs(steepness * tile[i]), SATURATION))
    for i in range(size):
        bits[i] = (1023 - (bits[i] & 0xFFFF)) << 52
    for i in range(size):
        decay = left[i] * powers[i]
        large = 1.0 / (1.0 + decay)
        small = decay * large
        positive = tile[i] >= 0.0
        left[i] = large if positive else small
        right[i] = small if positive else large


@compiled_uncounted
def open_gates(scores, begin, size, steepness, left, right, powers, bits):  # type: ignore[no-untyped-def]
    """``tile_gates`` as training uses them, with fused multiply-adds."""
    tile_gates(scores, begin, size, steepness, left, right, powers, bits)


def split_scores(parameters: TreeParameters, features: FloatArray) -> FloatArray:
    """Scores z_ti = (x_i . a_t) / p - mu_t, shape (n_branches, n_rows)."""
    scores = np.dot(parameters.weights.T / parameters.n_features, features)
    scores -= parameters.thresholds[:, None]
    return scores


def gate_probabilities(scores: FloatArray, steepness: float) -> tuple[FloatArray, FloatArray]:
    """Probabilities of going left and right at every branch, each (n_branches, n_rows)."""
    with np.errstate(over="ignore"):
        decay = np.exp(-np.minimum(np.abs(steepness * scores), 700.0))
    large = 1.0 / (1.0 + decay)
    small = decay * large
    return np.where(scores >= 0, large, small), np.where(scores >= 0, small, large)


def node_reach(left: FloatArray, right: FloatArray) -> FloatArray:
    """Probability of reaching each node, (n_nodes, n_rows), from the gates of every branch."""
    n_branches, n_rows = left.shape
    reach: NDArray[np.float64] = np.empty((2 * n_branches + 1, n_rows))
    reach[0] = 1.0
    for t in range(n_branches):
        reach[2 * t + 1] = reach[t] * left[t]
        reach[2 * t + 2] = reach[t] * right[t]
    return reach


def leaf_probabilities(scores: FloatArray, steepness: float) -> FloatArray:
    """P_il of scaled rows, in training and for solvers that keep them, (n_leaves, n_rows)."""
    return node_reach(*gate_probabilities(scores, steepness))[len(scores) :]


def class_probabilities(
    parameters: TreeParameters, features: FloatArray, steepness: float
) -> FloatArray:
    """Class probabilities sum_l c_kl P_il, (n_classes, n_rows), of rows (n_features, n_rows).

    This is the definition, for rows in scaled units. Three translations start from rows in
    original units: ``predict_proba`` (reading/row_pass.py, compiled and in numpy, with the same
    bits for a row wherever it stands), the ONNX graph (persistence/graph.py) and the script of the
    report (report/case.js). tests/golden_probabilities.json holds all of them to one table.
    """
    leaves = leaf_probabilities(split_scores(parameters, features), steepness)
    return parameters.leaf_classes @ leaves


def predicted_classes(
    parameters: TreeParameters, features: FloatArray, steepness: float
) -> NDArray[np.intp]:
    """Index of the most probable class of scaled rows, given as (n_features, n_rows)."""
    return np.argmax(class_probabilities(parameters, features, steepness), axis=0)
