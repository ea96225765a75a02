"""Compiled products of a few splits with many rows: scores and gradients.

    scores    z[t, i] = theta[t] . (x_i / n_features, -1)
    gradient  g[t]    = sum_i slope[t, i] (x_i / n_features, -1)

Shapes: theta and g (n_branches, n_features + 1), features (n_features, n_rows), z and slopes
(n_branches, n_rows). One factor has only as many lines as the tree has branches: a BLAS library
would first pack the features, which takes as long as these loops. The loops process a tile of rows
at a time, which stays in the cache, and four features and two branches together (register
blocking), so that each number is loaded once for several products.
"""

from __future__ import annotations

from softsplit.support.compiling import compiled_sums, compiled_uncounted

ROWS = 256
"""Rows of a tile; a compile-time constant."""


@compiled_uncounted
def scores_of(theta, features, scores):  # type: ignore[no-untyped-def]
    """Write z[t, i] = theta[t] . (x_i / n_features, -1) of all rows to ``scores``."""
    n_branches, n_features = theta.shape[0], theta.shape[1] - 1
    n_rows = scores.shape[1]
    for begin in range(0, n_rows, ROWS):
        end = min(begin + ROWS, n_rows)
        for t in range(n_branches):
            score, threshold = scores[t, begin:end], theta[t, n_features]
            for i in range(score.size):
                score[i] = -threshold
        # Four features at a time: the root alone, then branches in pairs; of an even number of
        # branches the last one alone.
        for j in range(0, n_features, 4):
            _add_four(theta[0], j, features, begin, end, scores[0, begin:end])
            for t in range(1, n_branches - 1, 2):
                _add_four_to_two(
                    theta[t], theta[t + 1], j, features, begin, end, scores[t, begin:end],
                    scores[t + 1, begin:end],
                )  # fmt: skip
            if n_branches % 2 == 0:
                last = n_branches - 1
                _add_four(theta[last], j, features, begin, end, scores[last, begin:end])


@compiled_uncounted
def _four_weights(split, j):  # type: ignore[no-untyped-def]
    """Return the weights / n_features of features j .. j + 3; zero beyond the last feature."""
    n = split.size - 1
    return (
        split[j] / n,
        split[j + 1] / n if j + 1 < n else 0.0,
        split[j + 2] / n if j + 2 < n else 0.0,
        split[j + 3] / n if j + 3 < n else 0.0,
    )


@compiled_uncounted
def _four_lines(features, j, begin, end):  # type: ignore[no-untyped-def]
    """Return features j .. j + 3 of a tile; beyond the last feature, the last one again."""
    last = features.shape[0] - 1
    return (
        features[j, begin:end],
        features[min(j + 1, last), begin:end],
        features[min(j + 2, last), begin:end],
        features[min(j + 3, last), begin:end],
    )


@compiled_uncounted
def _add_four(split, j, features, begin, end, score):  # type: ignore[no-untyped-def]
    a, b, c, d = _four_weights(split, j)
    w, x, y, z = _four_lines(features, j, begin, end)
    for i in range(score.size):
        score[i] = score[i] + a * w[i] + b * x[i] + c * y[i] + d * z[i]


@compiled_uncounted
def _add_four_to_two(split, other, j, features, begin, end, score, second):  # type: ignore[no-untyped-def]
    a, b, c, d = _four_weights(split, j)
    e, f, g, h = _four_weights(other, j)
    w, x, y, z = _four_lines(features, j, begin, end)
    for i in range(score.size):
        score[i] = score[i] + a * w[i] + b * x[i] + c * y[i] + d * z[i]
        second[i] = second[i] + e * w[i] + f * x[i] + g * y[i] + h * z[i]


@compiled_uncounted
def sums_of(slopes, features, free, gradient):  # type: ignore[no-untyped-def]
    """Write g[t] = sum_i slope[t, i] (x_i / n_features, -1); zero for fixed branches."""
    n_branches, n_rows = slopes.shape
    n_features = features.shape[0]
    for t in range(n_branches):
        for j in range(n_features + 1):
            gradient[t, j] = 0.0
    for begin in range(0, n_rows, ROWS):
        end = min(begin + ROWS, n_rows)
        # Derivative by the threshold, then by the weights of two branches at a time.
        for t in range(n_branches):
            if free[t]:
                gradient[t, n_features] -= _sum(slopes[t, begin:end])
        for t in range(0, n_branches, 2):
            _sum_features(slopes, t, features, begin, end, gradient)
    for t in range(n_branches):
        for j in range(n_features):
            gradient[t, j] = gradient[t, j] / n_features if free[t] else 0.0


@compiled_sums
def _sum(slope):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(slope.size):
        total += slope[i]
    return total


@compiled_uncounted
def _sum_features(slopes, t, features, begin, end, gradient):  # type: ignore[no-untyped-def]
    """Add sum_i slope[t, i] x_ij of a tile for all features j, for branches t and t + 1."""
    n_features, two = features.shape[0], min(t + 1, slopes.shape[0] - 1)
    first, second = slopes[t, begin:end], slopes[two, begin:end]
    for j in range(0, n_features, 4):
        w, x, y, z = _four_lines(features, j, begin, end)
        sums = eight_sums(first, second, w, x, y, z)
        for k in range(min(4, n_features - j)):
            gradient[t, j + k] += sums[k]
            if two > t:
                gradient[two, j + k] += sums[4 + k]


@compiled_sums
def eight_sums(first, second, w, x, y, z):  # type: ignore[no-untyped-def]
    """Return the eight inner products of two lines with four others.

    Eight independent sums hide the latency of a fused multiply-add, about four cycles at two per
    cycle.
    """
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    e, f, g, h = 0.0, 0.0, 0.0, 0.0
    for i in range(first.size):
        a += first[i] * w[i]
        b += first[i] * x[i]
        c += first[i] * y[i]
        d += first[i] * z[i]
        e += second[i] * w[i]
        f += second[i] * x[i]
        g += second[i] * y[i]
        h += second[i] * z[i]
    return a, b, c, d, e, f, g, h


@compiled_uncounted
def upper_products(lines, others, matrix):  # type: ignore[no-untyped-def]
    """Write the inner products lines[a] . others[b] for b >= a to ``matrix``.

    Some entries below the diagonal are overwritten with other numbers.
    """
    last = lines.shape[0] - 1
    for a in range(0, last + 1, 2):
        two = min(a + 1, last)
        for b in range(a, last + 1, 4):
            sums = eight_sums(
                lines[a], lines[two], others[b], others[min(b + 1, last)],
                others[min(b + 2, last)], others[min(b + 3, last)],
            )  # fmt: skip
            for k in range(min(4, last + 1 - b)):
                matrix[a, b + k] = sums[k]
                matrix[two, b + k] = sums[4 + k] if two > a else sums[k]
