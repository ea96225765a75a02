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

from softsplit.support.compiling import compiled, inlined

IDENTITY, LOGARITHM, SQUARE = OUTERS = tuple(range(3))

TINY_PROBABILITY = 1e-300
"""Floor under the logarithm: the value stays finite where a gate has underflowed."""

HALF_ROOT_BITS = 0x3FE6A09E667F3BCD
"""The bits of sqrt(1/2): a number is 2^k m with m between sqrt(1/2) and sqrt(2)."""

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


@inlined
def logarithms(numbers, bits, scratch, size):  # type: ignore[no-untyped-def]
    """Replace the first numbers, positive and normal, by their logarithms.

    ``bits`` is ``numbers`` seen as integers; ``scratch`` is overwritten. log(2^k m) = k log 2 +
    log m, and with s = (m - 1) / (m + 1) log m = 2 s + 2 s^3 / 3 + 2 s^5 / 5 + ..., whose
    coefficients are those of the best polynomial (fdlibm). Written out because calls of the
    library's log cannot be vectorised.
    """
    for i in range(size):
        k = (bits[i] - HALF_ROOT_BITS) >> 52
        bits[i] -= k << 52
        scratch[i] = k
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
