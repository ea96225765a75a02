"""Checks of what callers hand in, each with one clear sentence."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from softsplit.support.messages import shown
from softsplit.tree.parameters import Topology


def whole_number(name: str, value: Any, least: int = 1) -> int:
    """``value`` as an int of at least ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {shown(value)}.")
    return int(value)


def tree_depth(value: Any) -> int:
    """``value`` as the depth of a tree that the library can build."""
    return Topology(whole_number("depth", value)).depth


def open_interval(name: str, value: Any, low: float, high: float) -> float:
    """``value`` as a float strictly between ``low`` and ``high``."""
    if not _is_number(value) or not low < float(value) < high:
        raise ValueError(
            f"{name} must be a number between {low:g} and {high:g}, got {shown(value)}."
        )
    return float(value)


def true_or_false(name: str, value: Any) -> bool:
    """``value`` as a bool: a stray number in its place would silently change the question."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {shown(value)}.")
    return value


def share(name: str, value: Any) -> float:
    """``value`` as a float in [0, 1]."""
    if not _is_number(value) or not 0.0 <= float(value) <= 1.0:
        raise ValueError(f"{name} must be a number from 0 to 1, got {shown(value)}.")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
