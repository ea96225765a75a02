"""Numbers that callers hand in, checked with one clear sentence each."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from softsplit.support.messages import shown

MOST_STEPS = 1_000_000_000
"""Steps that are only counted; nobody waits for more."""

MOST_RUNS = 100_000
"""Runs, or points of a path, that are planned before the first of them starts."""


def positive_number(name: str, value: Any, zero: bool = False) -> float:
    """``value`` as a float, or a sentence that names the parameter."""
    number = _as_float(value)
    if not np.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise ValueError(
            f"{name} must be a finite number {'>= 0' if zero else '> 0'}, got {shown(value)}."
        )
    return number


def _as_float(value: Any) -> float:
    """``value``, or NaN if it is no number; integers have no largest one, floats do."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def positive_integer(name: str, value: Any, most: int = MOST_STEPS) -> int:
    """``value`` as an int, or a sentence that names the parameter."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
        raise ValueError(f"{name} must be a positive integer, got {shown(value)}.")
    if int(value) > most:
        raise ValueError(
            f"{name} must be a positive integer of at most {most:,}, got {shown(value)}."
        )
    return int(value)


def drawn_seed(random_state: Any) -> int:
    """A seed from what scikit-learn takes for a random state, or a sentence."""
    try:
        random = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            "random_state must be None, an integer from 0 to 4294967295 or a "
            f"numpy.random.RandomState, got {shown(random_state)}."
        ) from None
    return int(random.randint(np.iinfo(np.int32).max))
