"""Linear systems that compiled code solves: damped until they can be solved; inverses."""

from __future__ import annotations

import numpy as np

from softsplit.support.compiling import compiled, compiled_uncounted

SMALLEST_DAMPING, LARGEST_DAMPING = 1e-10, 1e4
"""Relative to the largest diagonal entry of the matrix."""


@compiled
def solve_damped(matrix, right, scale, memory):  # type: ignore[no-untyped-def]
    """Solve (matrix + damping unit diag(scale)) x = right in place, with hardly more damping
    than it takes.

    ``unit`` is the largest diagonal entry relative to its scale. ``memory`` holds the damping; the
    next call starts a little below it.
    """
    n = right.size
    unit = 0.0
    for v in range(n):
        unit = max(unit, abs(matrix[v, v]) / scale[v])
    upper = np.empty((n, n))
    damping = max(0.1 * memory[0], SMALLEST_DAMPING)
    while damping < LARGEST_DAMPING:
        if _cholesky(matrix, damping * unit, scale, upper):
            for a in range(n):
                right[a] /= upper[a, a]
                for b in range(a + 1, n):
                    right[b] -= upper[a, b] * right[a]
            for a in range(n - 1, -1, -1):
                for b in range(a + 1, n):
                    right[a] -= upper[a, b] * right[b]
                right[a] /= upper[a, a]
            memory[0] = damping
            return True
        damping *= 10.0
    return False


@compiled_uncounted
def _cholesky(matrix, damping, scale, upper):  # type: ignore[no-untyped-def]
    """Factor matrix + damping diag(scale) = U'U; False if it is not safely positive definite.

    Four rows of U at a time, so that each row below is loaded and stored a quarter as often.
    """
    n = matrix.shape[0]
    for a in range(n):
        for b in range(a, n):
            upper[a, b] = matrix[a, b]
        upper[a, a] += damping * scale[a]
    for begin in range(0, n, 4):
        end = min(begin + 4, n)
        for c in range(begin, end):
            row = upper[c]
            if not row[c] > 0.1 * damping * scale[c]:
                return False
            root = 1.0 / np.sqrt(row[c])
            for b in range(c, n):
                row[b] *= root
            for a in range(c + 1, end):
                factor, below = row[a], upper[a]
                for b in range(a, n):
                    below[b] -= factor * row[b]
        if end == n:
            break
        r, s, t, u = upper[begin], upper[begin + 1], upper[begin + 2], upper[begin + 3]
        for a in range(end, n):
            at_r, at_s, at_t, at_u, below = r[a], s[a], t[a], u[a], upper[a]
            for b in range(a, n):
                below[b] -= at_r * r[b] + at_s * s[b] + at_t * t[b] + at_u * u[b]
    return True


@compiled_uncounted
def invert_positive(matrix, upper):  # type: ignore[no-untyped-def]
    """Replace a positive definite matrix by its inverse; False where it is not safely one.

    With matrix = U'U: V = U^-1, a row after the other from the last one up, and then V V'.
    ``upper`` is overwritten.
    """
    n = matrix.shape[0]
    if n == 0 or not _cholesky(matrix, 0.0, matrix[0], upper):
        return False
    for a in range(n - 1, -1, -1):
        row, above, inverse = matrix[a], upper[a], 1.0 / upper[a, a]
        for b in range(n):
            row[b] = 0.0
        for c in range(a + 1, n):
            factor, below = inverse * above[c], matrix[c]
            for b in range(c, n):
                row[b] -= factor * below[b]
        row[a] = inverse
    for a in range(n):
        first = matrix[a]
        for b in range(a, n):
            second, even, odd = matrix[b], 0.0, 0.0
            for c in range(b, n - 1, 2):  # two sums, which a processor adds side by side
                even += first[c] * second[c]
                odd += first[c + 1] * second[c + 1]
            if (n - b) % 2 == 1:
                even += first[n - 1] * second[n - 1]
            upper[a, b] = even + odd
    for a in range(n):
        for b in range(n):
            matrix[a, b] = upper[min(a, b), max(a, b)]
    return True
