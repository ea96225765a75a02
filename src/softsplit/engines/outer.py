"""The outer function f of a loss: the loss of a row as a function of its mixed value.

A row of group k that reaches leaf l with probability P_l has the mixed value V = sum_l P_l W[k, l],
where W is the table of the loss. The loss of the row is f(V):

    IDENTITY    f = V          f' = 1          f'' = 0          expected cost
    LOGARITHM   f = -log V     f' = -1 / V     f'' = 1 / V^2    negative log-likelihood
    SQUARE      f = V^2        f' = 2 V        f'' = 2          squared error

To add one, give it a number and a branch in ``outer_terms``. f has no parameters: a parametric
family needs a number for each member.
"""

from __future__ import annotations

import numpy as np

from softsplit.support.compiling import compiled, inlined
from softsplit.tree.routing import LN2_HIGH, LN2_LOW

IDENTITY, LOGARITHM, SQUARE = OUTERS = tuple(range(3))

# Compile-time constants of the kernels.

TINY_PROBABILITY = 1e-300
"""Lower bound of the argument of the logarithm: the loss stays finite if a gate underflows."""

HALF_ROOT_BITS = 0x3FE6A09E667F3BCD
"""The bits of sqrt(1/2): a number is 2^k m with m between sqrt(1/2) and sqrt(2)."""


@inlined
def logarithms(numbers, bits, scratch, size):  # type: ignore[no-untyped-def]
    """Replace the first ``size`` numbers, positive and normal, by their natural logarithms.

    ``bits`` is a view of ``numbers`` as integers; ``scratch`` is overwritten. The method and the
    coefficients Lg1 .. Lg7 are those of ``__ieee754_log`` of fdlibm (Sun Microsystems, 1993):
    log(2^k m) = k log 2 + log m, and with f = m - 1, s = f / (2 + f)

        log m = f - f^2 / 2 + s (f^2 / 2 + R(s^2)),    R(z) = Lg1 z + ... + Lg7 z^7 (minimax)

    It is written out because calls of a library's log cannot be vectorised.
    """
    # k from the exponent bits; m between sqrt(1/2) and sqrt(2) remains in ``numbers``.
    for i in range(size):
        k = (bits[i] - HALF_ROOT_BITS) >> 52
        bits[i] -= k << 52
        scratch[i] = k
    # R is split into odd and even coefficients, so that both are computed side by side.
    for i in range(size):
        k, f = scratch[i], numbers[i] - 1.0
        s = f / (2.0 + f)
        z = s * s
        w = z * z
        odd = w * (0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332))
        even = z * (
            0.6666666666666735130
            + w * (0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591))
        )
        half = 0.5 * f * f
        numbers[i] = k * LN2_HIGH - ((half - (s * (half + (odd + even)) + k * LN2_LOW)) - f)


@compiled
def outer_terms(outer, mixed):  # type: ignore[no-untyped-def]
    """Return f(V), f'(V) and f''(V)."""
    if outer == LOGARITHM:
        probability = max(mixed, TINY_PROBABILITY)
        return -np.log(probability), -1.0 / probability, 1.0 / (probability * probability)
    if outer == SQUARE:
        return mixed * mixed, 2.0 * mixed, 2.0
    return mixed, 1.0, 0.0


@compiled
def outer_values(outer, mixed):  # type: ignore[no-untyped-def]
    """Return f(V) and f'(V) of many rows, for engines written in Python."""
    values, slopes = np.empty(mixed.size), np.empty(mixed.size)
    for i in range(mixed.size):
        values[i], slopes[i], _ = outer_terms(outer, mixed[i])
    return values, slopes
