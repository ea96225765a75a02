"""Leaves that hold class distributions, for descents on the log-loss: compiled steps in place."""

from __future__ import annotations

from softsplit.problem.leaves import SMOOTHING, TINY_SHARE
from softsplit.support.compiling import compiled


@compiled
def soften(leaves):  # type: ignore[no-untyped-def]
    """Mix a little of every class into every leaf, in place.

    c_kl <- (1 - s) c_kl + s / n_groups, with a small share s.
    """
    n_groups = leaves.shape[0]
    for k in range(n_groups):
        for leaf in range(leaves.shape[1]):
            leaves[k, leaf] = (1.0 - SMOOTHING) * leaves[k, leaf] + SMOOTHING / n_groups


@compiled
def expect(by_table, leaves):  # type: ignore[no-untyped-def]
    """An expectation step for the leaves, in place, from the derivative of the log-loss by them.

    c_kl becomes proportional to c_kl times the responsibility of leaf l for the rows of class k,
    which is minus the derivative of the log-loss by c_kl; then it is softened.
    """
    for leaf in range(leaves.shape[1]):
        total = 0.0
        for k in range(leaves.shape[0]):
            leaves[k, leaf] *= -by_table[k, leaf]
            total += leaves[k, leaf]
        for k in range(leaves.shape[0]):
            leaves[k, leaf] /= max(total, TINY_SHARE)
    soften(leaves)
