"""Checks of single parameters: from a value to what is computed with, or a ``ParameterError``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from softsplit.support.arguments import (
    MOST_RUNS,
    is_integer,
    one_of,
    positive_integer,
    positive_number,
)
from softsplit.support.messages import ParameterError, shown, unfit

# Efforts by the names of the estimator.
EFFORTS = {"fast": 0.2, "balanced": 1.0, "thorough": 5.0}

# Most workers that may be asked for.
MOST_JOBS = 1_000_000

# Most knots of a number: more would not be a curve that people read.
MOST_KNOTS = 20


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to the library."""
    return isinstance(value, str) and value == "auto"


def one_among(words: Sequence[str]) -> Callable[[str, Any], str]:
    """Return the check that a value is one of ``words``."""
    return lambda name, value: one_of(name, value, words)


def points_form(name: str, value: Any) -> bool | str:
    """Whether questions are whole points, or "fine"."""
    if isinstance(value, str):
        if value != "fine":
            raise unfit(name, value, "must be True, False or 'fine'")
        return value
    return truth(name, value)


def run_count(name: str, value: Any) -> int:
    """Runs that are planned before the first of them starts."""
    return positive_integer(name, value, MOST_RUNS)


def effort_factor(name: str, value: Any) -> float:
    """An effort by name, or as a multiple of the usual one."""
    if isinstance(value, str):
        if value not in EFFORTS:
            words = ", ".join(map(repr, EFFORTS))
            raise unfit(name, value, f"must be one of {words} or a number > 0")
        return EFFORTS[value]
    return positive_number(name, value)


def job_count(name: str, value: Any) -> int:
    """A nonzero integer; scikit-learn's negative ones count from the number of cores."""
    if not is_integer(value) or not 0 < abs(value) <= MOST_JOBS:
        raise unfit(name, value, "must be None or a nonzero integer")
    return int(value)


def knot_count(name: str, value: Any) -> int | None:
    """The number of knots of each number, 0 for straight effects; None for "auto"."""
    if is_auto(value):
        return None
    if value is False:
        return 0
    if not is_integer(value) or not 0 <= value <= MOST_KNOTS:
        raise ParameterError(
            name,
            value,
            f"must be 'auto', False or a number of knots up to {MOST_KNOTS}, got {shown(value)}.",
            typed=f"must be auto or a number of knots up to {MOST_KNOTS}, got {shown(value)}.",
        )
    return int(value)


def truth(name: str, value: Any) -> bool:
    """Whether to tell how far training is: a number or a truth value."""
    if value is not None and not isinstance(value, Real | np.bool_):
        raise unfit(name, value, "must be an integer or a truth value")
    return bool(value)
