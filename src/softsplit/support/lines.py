"""Sums over lines of numbers, compiled: what loops over matrices are made of."""

from __future__ import annotations

from softsplit.support.compiling import compiled_sums, compiled_uncounted


@compiled_uncounted
def add_line(factor, other, line):  # type: ignore[no-untyped-def]
    """line += factor other."""
    for i in range(line.size):
        line[i] += factor * other[i]


@compiled_sums
def sum_of_products(first, second):  # type: ignore[no-untyped-def]
    """first . second."""
    total = 0.0
    for i in range(first.size):
        total += first[i] * second[i]
    return total
