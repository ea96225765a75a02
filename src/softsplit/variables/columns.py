"""Columns of a table that parameters name, by name or by position, and what each costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import ParameterError, nearest, shown, unfit

# Larger costs lose all others in rounding.
LARGEST_COST = 1e9


def column_costs(feature_costs: Any, names: Sequence[str]) -> FloatArray:
    """Return the cost of each of some columns, (n_columns,)."""
    return Columns(names).costs("feature_costs", feature_costs)


def listed_columns(names: Sequence[str], most: int = 8) -> str:
    """Return the first ``most`` names, separated by commas, and the number of the others."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def missing_columns(absent: Sequence[str], names: Sequence[str], advice: str) -> str:
    """Return the sentence for columns that are not among ``names``."""
    close = nearest(absent[0], names) if len(absent) == 1 else None
    listed = listed_columns([shown(name, 24) for name in absent])
    which = f"column {listed} is" if len(absent) == 1 else f"columns {listed} are"
    return f"{which} missing; {f'did you mean {close}?' if close else advice}"


class Columns:
    """The columns of a table, by name or position.

    ``name`` is the parameter that names columns, and that an error speaks of.
    """

    def __init__(self, names: Sequence[str], left_out: Mapping[str, str] | None = None) -> None:
        self.names = list(names)
        self.places = {name: j for j, name in enumerate(self.names)}
        self.left_out = left_out or {}

    def place(self, name: str, column: Any) -> int:
        """Return the position of a column."""
        place: int | None = None
        if isinstance(column, str):
            place = self.places.get(column)
        elif isinstance(column, int | np.integer) and not isinstance(column, bool | np.bool_):
            place = int(column) if 0 <= column < len(self.names) else None
        if place is None:
            near = nearest(column, self.names) if isinstance(column, str) else None
            hint = f"did you mean {near}?" if near else "name columns of X."
            what = f"names {shown(column, 40)}, which is not a column of X; {hint}"
            raise ParameterError(name, column, what)
        return place

    def listed(self, name: str, given: Any, more: Sequence[int] = ()) -> list[int]:
        """Return the positions of the columns in a list, none of them twice or among ``more``."""
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise unfit(name, given, "must list columns of X")
        places = [self.place(name, column) for column in self.filled(name, list(given))]
        every = [*more, *places]
        twice = next((place for i, place in enumerate(every) if place in every[:i]), None)
        if twice is not None:
            what = f"names {shown(self.names[twice])} twice; name it once."
            raise ParameterError(name, given, what)
        return places

    def mapped(self, name: str, given: Any, to: str) -> dict[int, tuple[Any, Any]]:
        """Return the columns that a mapping has as keys, by position: each key and its value.

        ``to`` says to what columns are mapped.
        """
        if not isinstance(given, Mapping):
            raise unfit(name, given, f"must map columns of X to {to}")
        pairs: dict[int, tuple[Any, Any]] = {}
        for column, value in given.items():
            place = self.place(name, column)
            if place in pairs:
                what = f"names {shown(self.names[place])} twice; name it once."
                raise ParameterError(name, column, what)
            pairs[place] = column, value
        return pairs

    def groups(self, given: Any) -> list[list[int]]:
        """Return groups of columns, with no column in two of them."""
        groups: list[list[int]] = []
        for members in _lists("groups", given, "groups"):
            before = [place for group in groups for place in group]
            groups.append(self.listed("groups", members, before))
        return groups

    def sets(self, name: str, given: Any, *, pairs: bool) -> list[tuple[str, list[int]]]:
        """Return sets of columns, each with the name of the parameter that gave it."""
        if given is None:
            return []
        sets: list[tuple[str, list[int]]] = []
        for members in self.filled(name, _lists(name, given, "sets")):
            columns = self.listed(name, members)
            if len(columns) < 2:
                what = (
                    f"holds a set of one column, {shown(self.names[columns[0]])}; name two "
                    "columns or more, or drop a column with feature_types={...: 'drop'}."
                )
                raise ParameterError(name, members, what)
            if pairs and len(columns) > 2:
                what = (
                    f"holds a set of {len(columns)} columns; it takes pairs: give sets to "
                    "at_most_one."
                )
                raise ParameterError(name, members, what, ("at_most_one",))
            sets.append((name, columns))
        return sets

    def refuse_left_out(self, name: str, column: int) -> None:
        """Raise ``ParameterError`` for a column that the coding of the table left out."""
        called = self.names[column]
        reason = self.left_out.get(called)
        if reason is not None:
            what = f"names {shown(called)}, which is not used in training ({reason}); "
            raise ParameterError(name, called, f"{what}take it out of {name}.")

    def costs(self, name: str, given: Any) -> FloatArray:
        """Return the cost of every column; 1 for those that are not named."""
        pairs = self.filled(name, self.mapped(name, given, "costs, {'mri': 30.0} say"))
        costs = np.ones(len(self.names))
        for place, (_, cost) in pairs.items():
            number = isinstance(cost, int | float | np.integer | np.floating)
            if not number or isinstance(cost, bool) or not 0 <= cost <= LARGEST_COST:
                what = (
                    f"gives {shown(self.names[place])} the cost {shown(cost)}; a cost is a "
                    f"number from 0 to {LARGEST_COST:g}."
                )
                raise ParameterError(name, cost, what)
            costs[place] = float(cost)
        return costs

    @staticmethod
    def filled(name: str, given: Any) -> Any:
        """Return ``given`` unless it is empty."""
        if not len(given):
            raise ParameterError(name, given, "is empty; name columns of X, or leave it out.")
        return given


def _lists(name: str, given: Any, what: str) -> list[Any]:
    """Return the lists of columns that a parameter holds."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise unfit(name, given, f"must list {what} of columns")
    lists = list(given)
    for members in lists:
        if isinstance(members, str | bytes | Mapping) or not isinstance(members, Iterable):
            what = f"must hold lists of columns, got {shown(members)}."
            raise ParameterError(name, members, what)
    return lists
