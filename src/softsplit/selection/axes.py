"""Checked values of each setting that a cross-validation chooses from."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring, get_scorer_names

from softsplit.formulations import ChoiceRules, Formulation, formulation_of, is_auto, settings
from softsplit.selection.strengths import SHARES
from softsplit.support.arguments import MOST_RUNS, positive_integer, positive_number
from softsplit.support.messages import shown
from softsplit.training.wide import AnyRows
from softsplit.tree.parameters import Topology

Axes = dict[str, Sequence[Any]]
"""Values of each setting to choose from."""


def make_axes(
    loss: Any, scales: Any, penalties: Any, scopes: Any, steepnesses: Any, ridges: Any
) -> Axes:
    """Return the values of each setting of a candidate; depths depend on the classes and follow."""
    formulation = formulation_of(loss)
    given = {"scales": scales, "penalties": penalties, "scopes": scopes}
    given |= {"steepnesses": steepnesses, "ridges": ridges}
    if not is_auto(steepnesses):
        steepnesses = _values("steepnesses", steepnesses)
        for steepness in steepnesses:
            formulation.check_steepness("steepnesses", steepness)
    found = {
        name: formulation.choice.axes[name] if is_auto(value) else _values(name, value)
        for name, value in given.items()
    }
    for scale in found["scales"]:
        settings.make_scale(scale)
    for penalty in found["penalties"]:
        if penalty is None or penalty not in settings.PENALTIES:
            raise ValueError(f"penalties holds {shown(penalty)}, which has no strength to choose.")
    for scope in found["scopes"]:
        if scope not in SHARES:
            raise ValueError(
                f"scopes must be of {', '.join(map(repr, SHARES))}, got {shown(scope)}."
            )
    gammas = [formulation.check_steepness("steepnesses", s) for s in found["steepnesses"]]
    return {
        "scale": found["scales"],
        "depth": (),
        "steepness": gammas,
        "penalty": found["penalties"],
        "scope": found["scopes"],
        "loss": [loss],
        "ridge": [positive_number("ridges", ridge, zero=True) for ridge in found["ridges"]],
    }


def make_depths(depths: Any, n_classes: int, n_rows: int, choice: ChoiceRules) -> list[int]:
    """Return depths in ascending order; "auto" depends on the numbers of classes and rows."""
    smallest = Topology.for_classes(n_classes).depth
    if not isinstance(depths, str):
        values = sorted({positive_integer("depths", d) for d in _values("depths", depths)})
        if values[0] < smallest and choice.leaf_per_class:
            raise ValueError(
                f"depths holds {values[0]}, but {n_classes} classes need depth {smallest} at "
                "least: each class needs a leaf."
            )
        return values
    if depths != "auto":
        raise ValueError(f"depths must be 'auto' or a sequence of integers, got {shown(depths)}.")
    deepest = max(smallest + 1, int(np.log2(max(n_rows / choice.rows_per_leaf, 1))))
    return list(range(smallest, deepest + 1))


def make_fractions(
    strengths: Any, n_strengths: Any, unit: float, loss: float, formulation: Formulation
) -> tuple[float, ...]:
    """Return strengths as fractions of their unit, in ascending order.

    ``loss`` is the unit on the rows that candidates are compared on, each of weight 1.
    """
    if strengths is None:
        count = None
        if not is_auto(n_strengths):
            count = positive_integer("n_strengths", n_strengths, MOST_RUNS)
        return formulation.fractions(count, loss)
    given = _values("strengths", strengths)
    values = sorted({positive_number("strengths", s, zero=True) for s in given})
    return tuple(value / unit for value in values)


def make_scorer(estimator: Any, scoring: Any) -> Any:
    """Return the scorer that ``scoring`` names; None is accuracy."""
    if scoring is None:
        return None
    name = scoring if isinstance(scoring, str) else ""
    if not callable(scoring) and name not in get_scorer_names():
        close = get_close_matches(name, get_scorer_names(), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "try 'balanced_accuracy'."
        raise ValueError(
            f"scoring must be None, a callable or the name of a scorer of scikit-learn, got "
            f"{shown(scoring)}; {hint}"
        )
    return check_scoring(estimator, scoring=scoring)


def different_scales(scales: Sequence[str], rows: AnyRows) -> Sequence[str]:
    """Drop "quantile" where it equals the other scalings: no column has three values."""
    known = "quantile" in scales and {"minmax", "standard"} & set(scales)
    if not known or not rows.two_valued:
        return scales
    return [scale for scale in scales if scale != "quantile"]


def _values(name: str, given: Any) -> list[Any]:
    """Return a nonempty list of distinct values."""
    if isinstance(given, str) or not np.iterable(given):
        raise ValueError(f"{name} must be a sequence, got {shown(given)}.")
    try:
        values = list(dict.fromkeys(given))
    except TypeError:  # a list or an array in a place of one value
        raise ValueError(f"{name} must be a flat sequence, got {shown(given)}.") from None
    if not values:
        raise ValueError(f"{name} is empty; name at least one value.")
    return values
