"""Numbers that callers hand in, checked with one clear sentence each."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np


def positive_number(name: str, value: Any, zero: bool = False) -> float:
    """``value`` as a float, or a sentence that names the parameter."""
    good = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value))
    if not good or float(value) < 0 or (float(value) == 0 and not zero):
        raise ValueError(
            f"{name} must be a finite number {'>= 0' if zero else '> 0'}, got {value!r}."
        )
    return float(value)


def positive_integer(name: str, value: Any) -> int:
    """``value`` as an int, or a sentence that names the parameter."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}.")
    return int(value)
