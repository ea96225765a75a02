"""Columns of a table that parameters name, by name or by position, and what each costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import ParameterError, nearest, shown

LARGEST_COST = 1e9
"""Larger costs lose all others in rounding."""


def column_costs(feature_costs: Any, names: Sequence[str]) -> FloatArray:
    """Return the cost of each of some columns, (n_columns,)."""
    return Columns(names).costs("feature_costs", feature_costs)


class Columns:
    """The columns of a table, by name or position."""

    def __init__(self, names: Sequence[str], left_out: Mapping[str, str] | None = None) -> None:
        self.names = list(names)
        self.places = {name: j for j, name in enumerate(self.names)}
        self.left_out = left_out or {}

    def place(self, name: str, column: Any) -> int:
        """Return the position of a column that the parameter ``name`` names."""
        found: int | None = None
        if isinstance(column, str):
            found = self.places.get(column)
        elif isinstance(column, int | np.integer) and not isinstance(column, bool | np.bool_):
            found = int(column) if 0 <= column < len(self.names) else None
        if found is None:
            near = nearest(column, self.names) if isinstance(column, str) else None
            hint = f"did you mean {near}?" if near else "name columns of X."
            raise ParameterError(
                name,
                column,
                f"names {shown(column, 40)}, which is not a column of X; {hint}",
                ("of X",),
            )
        return found

    def listed(self, name: str, given: Any) -> list[int]:
        """Return the positions of the columns in a list."""
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise ParameterError(
                name, given, f"must list columns of X, got {shown(given)}.", ("of X",)
            )
        members = list(given)
        if not members:
            raise ParameterError(
                name, given, "is empty; name columns of X, or leave it out.", ("of X",)
            )
        found = [self.place(name, column) for column in members]
        twice = next((place for i, place in enumerate(found) if place in found[:i]), None)
        if twice is not None:
            raise ParameterError(
                name, given, f"names {shown(self.names[twice])} twice; name it once."
            )
        return found

    def sets(self, name: str, given: Any, *, pairs: bool) -> list[tuple[str, list[int]]]:
        """Return sets of columns, each with the name of the parameter that gave it."""
        if given is None:
            return []
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise ParameterError(name, given, f"must list sets of columns, got {shown(given)}.")
        found: list[tuple[str, list[int]]] = []
        for members in given:
            if isinstance(members, str | bytes | Mapping) or not isinstance(members, Iterable):
                raise ParameterError(
                    name, members, f"must hold lists of columns, got {shown(members)}."
                )
            columns = self.listed(name, members)
            if len(columns) < 2:
                raise ParameterError(
                    name,
                    members,
                    f"holds a set of one column, {shown(self.names[columns[0]])}; name two "
                    "columns or more, or drop a column with feature_types={...: 'drop'}.",
                )
            if pairs and len(columns) > 2:
                raise ValueError(
                    f"forbidden_together holds a set of {len(columns)} columns; it takes pairs: "
                    "give sets to at_most_one."
                )
            found.append((name, columns))
        if not found:
            raise ParameterError(
                name, given, "is empty; name columns of X, or leave it out.", ("of X",)
            )
        return found

    def refuse_left_out(self, name: str, column: int) -> None:
        """Raise ValueError for a column that the coding of the table left out."""
        reason = self.left_out.get(self.names[column])
        if reason is not None:
            raise ParameterError(
                name,
                self.names[column],
                f"names {shown(self.names[column])}, which is not used in training "
                f"({reason}); take it out of {name}.",
            )

    def costs(self, name: str, given: Any) -> FloatArray:
        """Return the cost of every column; 1 for those that are not named."""
        if not isinstance(given, Mapping):
            raise ParameterError(
                name,
                given,
                f"must map columns of X to costs, {{'mri': 30.0}} say, got {shown(given)}.",
                ("of X",),
            )
        if not given:
            raise ParameterError(
                name, given, "is empty; name columns of X, or leave it out.", ("of X",)
            )
        found, seen = np.ones(len(self.names)), set()
        for column, cost in given.items():
            place = self.place(name, column)
            if place in seen:
                raise ParameterError(
                    name, column, f"names {shown(self.names[place])} twice; name it once."
                )
            seen.add(place)
            number = isinstance(cost, int | float | np.integer | np.floating)
            if not number or isinstance(cost, bool) or not 0 <= cost <= LARGEST_COST:
                raise ParameterError(
                    name,
                    cost,
                    f"gives {shown(self.names[place])} the cost {shown(cost)}; a cost is a "
                    f"number from 0 to {LARGEST_COST:g}.",
                )
            found[place] = float(cost)
        return found
