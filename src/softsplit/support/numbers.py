"""Numbers as people read them: significant digits, percentages, ends of the floats."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

# What lies beyond is shown as this: no value reaches it, and rounding leaves it finite.
LARGEST = 1e308


def number(value: float, digits: int | None = 4) -> str:
    """A number to so many significant digits, without an exponent where it can be read so.

    With None, the shortest text from which the same float is read.
    """
    text = repr(float(value)) if digits is None else f"{value:.{digits - 1}e}"
    rounded = float(text) + 0.0
    if np.isinf(rounded):  # rounded up beyond the largest float, of which it is the name
        return text
    if digits is None:
        exact = Decimal(text) + 0
        plain = rounded == 0 or 1e-6 <= abs(rounded) < 1e16
        text = f"{exact:f}" if plain else text
        return text.rstrip("0").rstrip(".") if plain and "." in text else text
    if rounded == 0 or not 1e-4 <= abs(rounded) < 1e6:
        return f"{rounded:.{digits}g}"
    places = max(0, digits - 1 - int(np.floor(np.log10(abs(rounded)))))
    text = f"{rounded:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percentage(share: float) -> str:
    """A share as a percentage with all its digits: 0.5 %, 99.98 %."""
    return f"{number(float(f'{100 * share:.12g}'), None)} %"


def whole_percentage(share: float) -> str:
    """A share in whole per cent; of nearly all with as many digits as tell it from all."""
    texts = (f"{100 * share:.{digits}f}" for digits in range(12))
    return next((text for text in texts if share >= 1 or float(text) < 100), "100")


def finite(value: float) -> float:
    """``value``, cut where floats end."""
    return min(max(value, -LARGEST), LARGEST)
