"""Leaves that hold distributions, for descents on the log-loss.

soften   c_kl <- (1 - s) c_kl + s / n_classes        with a small share s of every class
expect   c_kl in proportion to c_kl times the responsibility of leaf l for the rows of class k,
         which is minus the derivative of the log-loss by c_kl; then softened
"""

from __future__ import annotations

from softsplit.problem.leaves import SMOOTHING, TINY_SHARE
from softsplit.support.compiling import compiled


@compiled
def soften(leaves):  # type: ignore[no-untyped-def]
    """Mix a little of every class into every leaf, in place."""
    n_classes = leaves.shape[0]
    for k in range(n_classes):
        for leaf in range(leaves.shape[1]):
            leaves[k, leaf] = (1.0 - SMOOTHING) * leaves[k, leaf] + SMOOTHING / n_classes


@compiled
def expect(by_table, leaves):  # type: ignore[no-untyped-def]
    """An expectation step for the leaves, in place, from the derivative of the log-loss by them."""
    for leaf in range(leaves.shape[1]):
        total = 0.0
        for k in range(leaves.shape[0]):
            leaves[k, leaf] *= -by_table[k, leaf]
            total += leaves[k, leaf]
        for k in range(leaves.shape[0]):
            leaves[k, leaf] /= max(total, TINY_SHARE)
    soften(leaves)
