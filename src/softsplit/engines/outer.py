"""What a row adds to the loss, as a function of its mixed value: the *outer function* of a loss.

A row of class k that reaches leaf l with probability P_l has the mixed value V = sum_l P_l W[k, l],
where W is the table of the loss. The loss of the row is f(V):

    IDENTITY    f = V          f' = 1          f'' = 0          expected cost
    LOGARITHM   f = -log V     f' = -1 / V     f'' = 1 / V^2    negative log-likelihood
    SQUARE      f = V^2        f' = 2 V        f'' = 2          squared error

Another one takes a number and a branch in ``outer_terms``. f has no parameters: a family takes a
number for each member.
"""

from __future__ import annotations

import numpy as np

from softsplit.support.compiling import compiled

IDENTITY, LOGARITHM, SQUARE = OUTERS = tuple(range(3))

TINY_PROBABILITY = 1e-300
"""Floor under the logarithm: the value stays finite where a gate has underflowed."""


@compiled
def outer_terms(outer, mixed):  # type: ignore[no-untyped-def]
    """f(V), f'(V) and f''(V)."""
    if outer == LOGARITHM:
        probability = max(mixed, TINY_PROBABILITY)
        return -np.log(probability), -1.0 / probability, 1.0 / (probability * probability)
    if outer == SQUARE:
        return mixed * mixed, 2.0 * mixed, 2.0
    return mixed, 1.0, 0.0


@compiled
def outer_values(outer, mixed):  # type: ignore[no-untyped-def]
    """f(V) and f'(V) of many rows, for engines that are written in Python."""
    values, slopes = np.empty(mixed.size), np.empty(mixed.size)
    for i in range(mixed.size):
        values[i], slopes[i], _ = outer_terms(outer, mixed[i])
    return values, slopes
