"""Coefficients under a log link, printed as factors with few digits.

    prediction = f_0 prod_j f_j^(x_j / u_j),     score = log f_0 + sum_j log(f_j) / u_j x_j

Each unit u_j is a power of ten, so that a factor is between 1.03 and 20, or their inverses, where
that can be: "x 1.05 per 10 age". Of an indicator it is 1. Trees and files hold slopes log(f) / u;
``factor`` reads the printed factor and its unit from such a slope, to the last digit.
"""

from __future__ import annotations

import math

MOST_DIGITS = 15

LARGEST_LOG = 300.0

SAME = 1e-11
"""Part of a slope by which one that was computed from a factor may differ from it."""


def factor(slope: float, *, indicator: bool = False) -> tuple[float, float]:
    """Return the factor that a slope was made of, and its unit.

    Rounding may have moved a slope past the end of a range of units, so that their neighbours are
    tried too.
    """
    usual = 0 if indicator else _exponent(abs(slope))
    powers = [0] if indicator else [usual, usual + 1, usual - 1]
    return _shortest(slope, SAME * abs(slope) + 1e-15, [10.0**power for power in powers])


def short_slope(slope: float, tolerance: float, *, indicator: bool = False) -> float:
    """Return the slope within the tolerance whose factor has the fewest digits; zero if that is."""
    if abs(slope) <= tolerance:
        return 0.0
    unit = 1.0 if indicator else 10.0 ** _exponent(abs(slope))
    printed, _ = _shortest(slope, tolerance, [unit])
    return math.log(printed) / unit


def _shortest(slope: float, tolerance: float, units: list[float]) -> tuple[float, float]:
    """Return the factor with the fewest digits, and its unit, within the tolerance."""
    for digits in range(MOST_DIGITS):
        for unit in units:
            if abs(slope) * unit < LARGEST_LOG:
                short = float(f"{math.exp(slope * unit):.{digits}e}")
                if abs(math.log(short) / unit - slope) <= tolerance:
                    return short, unit
    return math.exp(slope * units[0]), units[0]


def _exponent(size: float) -> int:
    """The power of ten by which a slope of this size becomes readable."""
    if size == 0.0 or 0.03 <= size <= 3.0:
        return 0
    return -math.floor(math.log10(size / (0.03 if size < 0.03 else 0.3)))
