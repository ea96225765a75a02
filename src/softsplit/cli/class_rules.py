"""Options that speak of classes: weights, costs and least rates, as CLASS=NUMBER or a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softsplit.support.messages import shown


def class_weight(given: Sequence[str] | None, classes: Sequence[str]) -> Any:
    """What a row of each class counts: "balanced", or a number by class."""
    if not given:
        return None
    if list(given) == ["balanced"]:
        return "balanced"
    return {**dict.fromkeys(classes, 1.0), **_by_class("--class-weight", given, classes)}


def min_class_rate(given: Sequence[str] | None, classes: Sequence[str]) -> Any:
    """Least share of each class that is to be right: one number for all, or by class."""
    if not given:
        return "auto"
    if len(given) == 1 and "=" not in given[0]:
        return _number("--min-rate", given[0])
    return {**dict.fromkeys(classes, 0.0), **_by_class("--min-rate", given, classes)}


def cost_matrix(given: Sequence[str] | None, classes: Sequence[str]) -> Any:
    """What mistakes cost: the mistakes about a class that is named, and 1 for all others."""
    if not given:
        return None
    costs = np.ones((len(classes), len(classes)))
    for name, value in _by_class("--cost", given, classes).items():
        costs[list(classes).index(name)] = value
    np.fill_diagonal(costs, 0.0)
    return costs.tolist()


def _by_class(option: str, given: Sequence[str], classes: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in given:
        name, sign, value = text.rpartition("=")
        if not sign:
            raise ValueError(
                f"{option} {shown(text)} names no class; write CLASS=NUMBER, for instance "
                f"{classes[-1]}=10."
            )
        if name not in classes:
            known = ", ".join(shown(label, 20) for label in list(classes)[:8])
            raise ValueError(f"{option}: there is no class {shown(name)}; the classes are {known}.")
        found[name] = _number(option, value)
    return found


def _number(option: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value) or value < 0:
        raise ValueError(f"{option} needs a number of at least 0, got {shown(text)}.")
    return value
