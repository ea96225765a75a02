"""Edits of the points of a question: what a value of a variable counts in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from softsplit.fitted.model import TreeModel
from softsplit.support.messages import shown, unfit
from softsplit.variables import Variable
from softsplit.variables.lookup import Lookup

MOST_POINTS = 10**6


def is_pointed(model: TreeModel) -> bool:
    """Whether the questions of a tree are sums of whole points."""
    return model.table_coding.pointed


def refuse_weight(number: int, value: float) -> None:
    """Raise ValueError for a weight in a question of points other than 0, which takes it out."""
    if value != 0.0:
        raise ValueError(
            f"question {number} is a sum of whole points and has no weights; change its points "
            "with set_points, or take a column out of it with the weight 0."
        )


def whole(name: str, value: Any) -> int:
    """Return a number as the whole number that it is."""
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or isinstance(value, bool) or value != np.rint(value):
        raise unfit(name, value, "must be a whole number of points")
    if abs(value) > MOST_POINTS:
        raise unfit(name, value, f"must be at most {MOST_POINTS:,}")
    return int(value)


def with_points(model: TreeModel, column: int, value: Any, points: Any) -> TreeModel:
    """Return the tree with other points for a value in the look-up of a column.

    All values of its range have the same points; None is a missing value.
    """
    coding, points = model.table_coding, whole("points", points)
    lookup, i = coding.lookup_at(column), int(coding.homes[column])
    variable = coding.variables[i]
    if lookup is None:
        raise ValueError(f"the points of {shown(variable.name)} are not those of a table.")
    if value is None or (isinstance(value, float) and np.isnan(value)):
        if lookup.unknown is None:
            raise ValueError(
                f"a missing {shown(variable.name)} counts as {variable.display_imputed}, as there "
                "was none in training; give a value."
            )
        changed = replace(lookup, unknown=points)
    else:
        changed = _at_value(variable, lookup, value, points)
    lookups = tuple(changed if own is lookup else own for own in variable.lookups)
    variables = list(coding.variables)
    variables[i] = replace(variable, lookups=lookups)
    return replace(model, coding=replace(coding, variables=tuple(variables)))


def _at_value(variable: Variable, lookup: Lookup, value: Any, points: int) -> Lookup:
    """The look-up with other points in the range, or for the level, of a value."""
    if lookup.slopes:
        raise ValueError(
            f"{shown(variable.name)} has points per unit and no table of points; take it out of "
            "the question, or fit the tree anew."
        )
    if variable.part and not variable.levels:
        numbers = np.array([float(value)])
        unlisted = False
    else:
        plain = replace(variable, part="") if variable.levels else variable
        cells = plain.cells(pd.Series([value]))
        numbers, unlisted = variable.imputed(cells), bool(cells.unlisted[0])
    if unlisted and not (variable.places_others and str(value) == variable.other_name):
        levels = ", ".join(shown(level, 24) for level in variable.levels[:8])
        raise ValueError(f"{shown(value)} is no level of {shown(variable.name)}: {levels}.")
    n_levels = len(variable.levels) + variable.places_others if variable.kind == "category" else 0
    known = list(
        lookup.points * n_levels if n_levels and len(lookup.points) == 1 else lookup.points
    )
    place = int(numbers[0]) if n_levels else np.searchsorted(lookup.edges, numbers[0], side="right")
    known[int(place)] = points
    return replace(lookup, points=tuple(known))
