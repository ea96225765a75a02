"""Checks of single values that callers hand in, each with one clear sentence."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from softsplit.support.messages import ParameterError, shown, unfit

# The largest number of steps: more could not be made in a lifetime.
MOST_STEPS = 1_000_000_000

# Runs, or points of a path, that are planned before the first of them starts.
MOST_RUNS = 100_000


def positive_number(name: str, value: Any, zero: bool = False) -> float:
    """``value`` as a float, or a sentence that names the parameter."""
    number = _as_float(value)
    if not np.isfinite(number) or number < 0 or (number == 0 and not zero):
        least = ">= 0" if zero else "> 0"
        raise unfit(name, value, f"must be a finite number {least}")
    return number


def _as_float(value: Any) -> float:
    """``value``, or NaN if it is no number; integers have no largest one, floats do."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def open_interval(name: str, value: Any, low: float, high: float) -> float:
    """``value`` as a float strictly between ``low`` and ``high``."""
    number = _as_float(value)
    if not low < number < high:
        raise unfit(name, value, f"must be a number between {low:g} and {high:g}")
    return number


def share(name: str, value: Any) -> float:
    """``value`` as a float in [0, 1]."""
    number = _as_float(value)
    if not 0.0 <= number <= 1.0:
        raise unfit(name, value, "must be a number from 0 to 1")
    return number


def precision(name: str, value: Any) -> np.dtype[Any]:
    """``value`` as double or single precision."""
    try:
        kind = np.dtype(value)
    except TypeError:
        kind = np.dtype(object)
    if kind not in (np.float64, np.float32):
        raise unfit(name, value, "must be numpy's float64 or float32")
    return kind


def true_or_false(name: str, value: Any) -> bool:
    """``value`` as a bool: a stray number in its place would silently change the question."""
    if not isinstance(value, bool):
        raise unfit(name, value, "must be True or False")
    return value


def whole_number(name: str, value: Any, least: int = 1) -> int:
    """``value`` as an int of at least ``least``."""
    if not is_integer(value) or value < least:
        raise unfit(name, value, f"must be an integer of at least {least}")
    return int(value)


def is_integer(value: Any) -> bool:
    """Whether a value is a whole number, which truth values are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def positive_integer(name: str, value: Any, most: int = MOST_STEPS) -> int:
    """``value`` as an int, or a sentence that names the parameter."""
    if not is_integer(value) or int(value) < 1:
        raise unfit(name, value, "must be a positive integer")
    if int(value) > most:
        raise unfit(name, value, f"must be a positive integer of at most {most:,}")
    return int(value)


def drawn_seed(name: str, random_state: Any) -> int:
    """A seed from what scikit-learn takes for a random state, or a sentence."""
    from sklearn.utils import check_random_state  # here: bounds on trees need no scikit-learn

    try:
        random = check_random_state(random_state)
    except ValueError:
        raise ParameterError(
            name,
            random_state,
            "must be None, an integer from 0 to 4294967295 or a "
            f"numpy.random.RandomState, got {shown(random_state)}.",
            typed=f"must be a whole number from 0 to 4294967295, got {shown(random_state)}.",
        ) from None
    return int(random.randint(np.iinfo(np.int32).max))


def one_of(name: str, value: Any, known: Sequence[str]) -> str:
    """``value`` if it is a known word, or a sentence that names the parameter and the words."""
    if isinstance(value, str) and value in known:
        return value
    words = [repr(word) for word in known]
    listed = f"{', '.join(words[:-1])} or {words[-1]}"
    raise unfit(name, value, f"must be {listed}")
