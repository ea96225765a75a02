"""Routing of rows through a tree: scores, gates, and the probabilities of nodes and leaves.

With score z_ti = (x_i . a_t) / p - mu_t of p features and steepness gamma, row i goes left at
branch t with the probability (its *gate*)

    p_ti = F(gamma z_ti) = 1 / (1 + exp(-gamma z_ti)),          and right with 1 - p_ti

and reaches a node with the product of the gates above it. Shapes: scores and gates (n_branches,
n_rows), node probabilities (n_nodes, n_rows), leaf probabilities (n_leaves, n_rows). The pass that
sums a loss over many rows, engines/tree_pass.py, computes its gates by ``open_gates``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.compiling import compiled_uncounted, inlined
from softsplit.tree.parameters import TreeParameters

# Compile-time constants of the kernels: as arguments they could not be folded into the loops.

TILE = 128
"""Rows processed together: the working arrays of a tile stay in the first-level cache."""

SATURATION = 700.0
"""Scores |gamma z| are clipped here: exp(-700) is still a normal number."""

ROUND = 6755399441055744.0
"""1.5 * 2^52: adding it rounds to an integer, which is then in the lowest bits of the float."""

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""log 2 as the sum of two floats (fdlibm): the low bits of the first are zero, so that k LN2_HIGH
is exact for the exponents k that occur."""


@inlined
def exponential_parts(x):  # type: ignore[no-untyped-def]
    """Return e^r and k + ROUND with e^-x = e^r 2^-k and |r| <= ln(2) / 2, for 0 <= x <= SATURATION.

    Range reduction of Cody and Waite (1980), then the Taylor polynomial of e^r of degree 13, whose
    error is below the last digit; its terms are grouped by Estrin's scheme, so that they do not
    wait for one another.
    """
    # k = round(x / log 2), and r = k log 2 - x in two parts, without cancellation.
    power = x * LOG2_E + ROUND
    k = power - ROUND
    r = (k * LN2_HIGH - x) + k * LN2_LOW
    # e^r = sum_n r^n / n!, in groups of four powers.
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0))
    middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0))
    high = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0))
    top = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0)
    return low + r4 * (middle + r4 * (high + r4 * top)), power


@inlined
def tile_gates(scores, begin, size, steepness, left, right, powers, bits):  # type: ignore[no-untyped-def]
    """Gate probabilities of one branch, p to ``left`` and 1 - p to ``right``.

    Both are accurate to the last digits however small they are. ``bits`` is a view of ``powers`` as
    integers. The exponential is written out because a library call per row cannot be vectorised,
    and gates are most of the work; nor can a loop whose index might be negative, hence the slice.
    """
    tile = scores[begin : begin + size]
    # exp(-|gamma z|) = e^r 2^-k: e^r to ``left``, k + ROUND to ``powers``.
    for i in range(size):
        left[i], powers[i] = exponential_parts(min(abs(steepness * tile[i]), SATURATION))
    # 2^-k by its exponent bits: the low bits of k + ROUND hold k.
    for i in range(size):
        bits[i] = (1023 - (bits[i] & 0xFFFF)) << 52
    # The larger of p and 1 - p is 1 / (1 + e^-|gamma z|), the smaller e^-|gamma z| times that.
    for i in range(size):
        decay = left[i] * powers[i]
        large = 1.0 / (1.0 + decay)
        small = decay * large
        positive = tile[i] >= 0.0
        left[i] = large if positive else small
        right[i] = small if positive else large


@compiled_uncounted
def open_gates(scores, begin, size, steepness, left, right, powers, bits):  # type: ignore[no-untyped-def]
    """``tile_gates`` as compiled for training, with fused multiply-adds."""
    tile_gates(scores, begin, size, steepness, left, right, powers, bits)


def split_scores(parameters: TreeParameters, features: FloatArray) -> FloatArray:
    """Return the scores z_ti = (x_i . a_t) / p - mu_t, shape (n_branches, n_rows)."""
    scores = np.dot(parameters.weights.T / parameters.n_features, features)
    scores -= parameters.thresholds[:, None]
    return scores


def gate_probabilities(scores: FloatArray, steepness: float) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of going left and right, each of shape (n_branches, n_rows)."""
    with np.errstate(over="ignore"):
        decay = np.exp(-np.minimum(np.abs(steepness * scores), 700.0))
    large = 1.0 / (1.0 + decay)
    small = decay * large
    return np.where(scores >= 0, large, small), np.where(scores >= 0, small, large)


def node_reach(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the probability of reaching each node, shape (n_nodes, n_rows), from the gates."""
    n_branches, n_rows = left.shape
    reach: NDArray[np.float64] = np.empty((2 * n_branches + 1, n_rows))
    reach[0] = 1.0
    for t in range(n_branches):
        reach[2 * t + 1] = reach[t] * left[t]
        reach[2 * t + 2] = reach[t] * right[t]
    return reach


def node_values(left: FloatArray, right: FloatArray, leaf_values: FloatArray) -> FloatArray:
    """Return the mean of the leaf values below each node, shape (n_nodes, n_rows).

    ``leaf_values`` are one for each leaf, or one for each leaf and row.
    """
    n_branches, n_rows = left.shape
    values: NDArray[np.float64] = np.empty((2 * n_branches + 1, n_rows))
    values[n_branches:] = leaf_values if leaf_values.ndim == 2 else leaf_values[:, None]
    for t in reversed(range(n_branches)):
        values[t] = left[t] * values[2 * t + 1] + right[t] * values[2 * t + 2]
    return values


def leaf_probabilities(scores: FloatArray, steepness: float) -> FloatArray:
    """Return the leaf probabilities P_li of scaled rows, shape (n_leaves, n_rows)."""
    return node_reach(*gate_probabilities(scores, steepness))[len(scores) :]


def mixed_values(parameters: TreeParameters, features: FloatArray, steepness: float) -> FloatArray:
    """Return sum_l c_kl P_li, shape (n_groups, n_rows), for ``features`` (n_features, n_rows).

    This is the definition, for rows in scaled units. Three translations start from rows in original
    units: ``predict_proba`` (fitted/row_pass.py, compiled and in numpy; the bits of a row do not
    depend on the other rows), the ONNX graph (exports/graph.py) and the script of the report
    (report/case.js). Tests compare all of them with tests/golden_probabilities.json.
    """
    leaves = leaf_probabilities(split_scores(parameters, features), steepness)
    return parameters.leaf_values @ leaves
