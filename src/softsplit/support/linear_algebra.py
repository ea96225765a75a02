"""Linear algebra of compiled code: vector sums, damped Cholesky solves, inverses."""

from __future__ import annotations

import numpy as np

from softsplit.support.compiling import compiled, compiled_sums, compiled_uncounted

SMALLEST_DAMPING, LARGEST_DAMPING = 1e-10, 1e4
"""Relative to the largest diagonal entry of the matrix."""


@compiled_uncounted
def add_line(factor, other, line):  # type: ignore[no-untyped-def]
    """line += factor other."""
    for i in range(line.size):
        line[i] += factor * other[i]


@compiled_sums
def sum_of_products(first, second):  # type: ignore[no-untyped-def]
    """Return first . second."""
    total = 0.0
    for i in range(first.size):
        total += first[i] * second[i]
    return total


@compiled
def solve_damped(matrix, right, scale, memory):  # type: ignore[no-untyped-def]
    """Solve (matrix + damping unit diag(scale)) x = right in place, with hardly more damping
    than it takes.

    Of the matrix what is on and above the diagonal is looked at. ``unit`` is the largest diagonal
    entry relative to its scale. ``memory`` holds the damping; the next call starts a little below
    it.
    """
    return solve_damped_in(matrix, right, scale, memory, np.empty(matrix.shape))


@compiled_uncounted
def solve_damped_in(matrix, right, scale, memory, upper):  # type: ignore[no-untyped-def]
    """The same with room for another matrix."""
    unit = 0.0
    for v in range(right.size):
        unit = max(unit, abs(matrix[v, v]) / scale[v])
    damping = max(0.1 * memory[0], SMALLEST_DAMPING)
    while damping < LARGEST_DAMPING:
        if _cholesky(matrix, damping * unit, scale, upper):
            _solve(upper, right)
            memory[0] = damping
            return True
        damping *= 10.0
    return False


@compiled_uncounted
def _solve(upper, right):  # type: ignore[no-untyped-def]
    """Solve U'U x = right in place."""
    n = right.size
    for a in range(n):
        right[a] /= upper[a, a]
        add_line(-right[a], upper[a, a + 1 :], right[a + 1 :])
    for a in range(n - 1, -1, -1):
        right[a] -= sum_of_products(upper[a, a + 1 :], right[a + 1 :])
        right[a] /= upper[a, a]


@compiled_uncounted
def _cholesky(matrix, damping, scale, upper):  # type: ignore[no-untyped-def]
    """Factor matrix + damping diag(scale) = U'U; False if it is not safely positive definite.

    Four rows of U at a time, taken off two of those below, so that each is loaded and stored
    seldom. Rows are slices from the diagonal on: an index that begins elsewhere than at zero may
    be negative as far as the compiler knows, and such loops are not vectorised.
    """
    n = matrix.shape[0]
    for a in range(n):
        row, given = upper[a, a:], matrix[a, a:]
        for b in range(row.size):
            row[b] = given[b]
        row[0] += damping * scale[a]
    for begin in range(0, n, 4):
        end = min(begin + 4, n)
        # 1. Four rows of U, each divided by the root of its diagonal.
        for c in range(begin, end):
            row = upper[c, c:]
            if not row[0] > 0.1 * damping * scale[c]:
                return False
            root = 1.0 / np.sqrt(row[0])
            for b in range(row.size):
                row[b] *= root
            for a in range(c + 1, end):
                add_line(-upper[c, a], upper[c, a:], upper[a, a:])
        # 2. Their products off the rows below, in pairs; an odd last row by itself.
        for a in range(end, n - 1, 2):
            _take_four_off_two(upper, begin, a)
        if end < n and (n - end) % 2 == 1:
            for c in range(begin, end):
                add_line(-upper[c, n - 1], upper[c, n - 1 :], upper[n - 1, n - 1 :])
    return True


@compiled_uncounted
def _take_four_off_two(upper, begin, a):  # type: ignore[no-untyped-def]
    """Take rows begin .. begin + 3 off rows a and a + 1.

    One number left of the diagonal, which nobody reads, is overwritten.
    """
    r, s = upper[begin, a:], upper[begin + 1, a:]
    t, u = upper[begin + 2, a:], upper[begin + 3, a:]
    first, second = upper[a, a:], upper[a + 1, a:]
    r0, s0, t0, u0 = r[0], s[0], t[0], u[0]
    r1, s1, t1, u1 = r[1], s[1], t[1], u[1]
    for b in range(first.size):
        first[b] = first[b] - r0 * r[b] - s0 * s[b] - t0 * t[b] - u0 * u[b]
        second[b] = second[b] - r1 * r[b] - s1 * s[b] - t1 * t[b] - u1 * u[b]


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
        row, inverse = matrix[a], 1.0 / upper[a, a]
        for b in range(n):
            row[b] = 0.0
        for c in range(a + 1, n):
            add_line(-inverse * upper[a, c], matrix[c, c:], row[c:])
        row[a] = inverse
    for a in range(n):
        for b in range(a, n):
            upper[a, b] = sum_of_products(matrix[a, b:], matrix[b, b:])
    for a in range(n):
        for b in range(n):
            matrix[a, b] = upper[min(a, b), max(a, b)]
    return True
