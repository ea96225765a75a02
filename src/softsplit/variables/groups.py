"""Columns of a problem that are selected together: those of a variable, and the user's groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.support.messages import shown
from softsplit.variables.coding import Coding, told_columns


def column_groups(
    coding: Coding | None, names: Sequence[str], given: Any
) -> NDArray[np.intp] | None:
    """The group of every column of a problem, by number; None if each is one of its own.

    Parameters
    ----------
    coding : Coding or None
        None: the columns of the table are those of the problem.
    names : sequence of str
        Columns of the table.
    given : sequence of sequences of names or positions, False, or None
        Columns of the table that are selected together. False: no column with another, not even
        those of one variable.
    """
    if given is False:
        return None
    homes = np.arange(len(names))
    for number, group in enumerate(_checked(given, names)):
        homes[group] = len(names) + number
    if coding is not None:
        homes = homes[np.array(coding.places, dtype=np.intp)[coding.homes]]
    _, groups = np.unique(homes, return_inverse=True)
    return None if len(np.unique(groups)) == len(groups) else groups


def _checked(given: Any, names: Sequence[str]) -> list[list[int]]:
    """The groups by positions of columns; all that is wrong in one sentence."""
    if given is None:
        return []
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence | np.ndarray):
        raise ValueError(f"groups must list groups of columns, got {shown(given)}.")
    places = {name: j for j, name in enumerate(names)}
    found: list[list[int]] = []
    unknown: list[Any] = []
    for group in given:
        if isinstance(group, str) or not isinstance(group, Sequence | np.ndarray):
            raise ValueError(f"groups must hold lists of columns, got {shown(group)}.")
        known = [(column, _place(column, places)) for column in group]
        unknown += [column for column, place in known if place is None]
        found.append([place for _, place in known if place is not None])
    if unknown:
        told = told_columns([shown(column, 20) for column in unknown])
        raise ValueError(f"groups names {told}, which is no column of X; name columns of X.")
    every = [place for group in found for place in group]
    twice = next((place for i, place in enumerate(every) if place in every[:i]), None)
    if twice is not None:
        raise ValueError(f"groups names column {shown(names[twice])} twice; name it once.")
    return found


def _place(column: Any, places: Mapping[str, int]) -> int | None:
    if isinstance(column, str):
        return places.get(column)
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        return int(column) if 0 <= column < len(places) else None
    return None
