"""Limits for advice: which values of a row may change, and how far.

``AdviceLimits`` are what a user states, by names of columns; ``Room`` is what they leave of the
training ranges for one row, by features of a tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import ParameterError, nearest, shown, unfit, visible
from softsplit.support.numbers import number
from softsplit.variables import Cells, Variable
from softsplit.variables.variable import CATEGORY


@dataclass(frozen=True)
class Room:
    """How far each feature, or variable, of a row may move.

    Attributes
    ----------
    low, high : arrays of shape (n_features,)
        Smallest and largest value in original units; the training range if nothing is stated.
    fixed : frozenset of int
        Features, or variables of a table, that stay as they are.
    levels : mapping
        Of categories with stated levels: whether each level is allowed, by variable.
    stated : frozenset of int
        Features, or variables, of which a range or direction is stated.
    """

    low: FloatArray
    high: FloatArray
    fixed: frozenset[int] = frozenset()
    levels: Mapping[int, NDArray[np.bool_]] = field(default_factory=dict)
    stated: frozenset[int] = frozenset()

    @classmethod
    def of_training(cls, model: TreeModel) -> Room:
        """The training ranges."""
        return cls(model.summary.low, model.summary.high)

    def allows(self, i: int, n_levels: int) -> NDArray[np.bool_]:
        """Which levels of category i are allowed, the merged rare ones last."""
        return self.levels.get(i, np.ones(n_levels, dtype=bool))


@dataclass(frozen=True)
class AdviceLimits:
    """What may change in a row, by names of columns or of parts of dates.

    Attributes
    ----------
    fixed : names
        What stays as it is.
    ranges : mapping
        Smallest and largest value of a number, date or ordered column, None for an open end; the
        allowed levels of a category.
    only_decrease, only_increase : names
        What may only become smaller (earlier, lower in its order), or larger.
    """

    fixed: tuple[Any, ...] = ()
    ranges: Mapping[Any, Any] = field(default_factory=dict)
    only_decrease: tuple[Any, ...] = ()
    only_increase: tuple[Any, ...] = ()

    @classmethod
    def of(
        cls, fixed: Any = (), ranges: Any = None, only_decrease: Any = (), only_increase: Any = ()
    ) -> AdviceLimits:
        """Check what a user gives, apart from names and values."""
        if not isinstance(ranges, Mapping | None):
            raise unfit("ranges", ranges, "must map columns to (smallest, largest)")
        lists = {"fixed": fixed, "only_decrease": only_decrease, "only_increase": only_increase}
        for name, given in lists.items():
            if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
                raise unfit(name, given, "must list columns")
        listed = {name: tuple(given) for name, given in lists.items()}
        return cls(ranges=dict(ranges or {}), **listed)

    def __bool__(self) -> bool:
        return bool(self.fixed or self.ranges or self.only_decrease or self.only_increase)

    def sentences(self, model: TreeModel) -> tuple[str, ...]:
        """The limits in words."""
        said = [f"{_called(model, name)} stays as it is" for name in self.fixed]
        for name, given in self.ranges.items():
            listed = list(given)
            if _kind(model, name) == CATEGORY:
                said.append(f"{_called(model, name)} is {' or '.join(map(_value, listed))}")
                continue
            ends = zip(("from", "to"), listed, strict=True)
            text = " ".join(f"{word} {_value(end)}" for word, end in ends if end is not None)
            said.append(f"{_called(model, name)} {text}")
        said += [f"{_called(model, name)} only decreases" for name in self.only_decrease]
        said += [f"{_called(model, name)} only increases" for name in self.only_increase]
        return tuple(said)

    def room(self, model: TreeModel, cells: Sequence[Cells]) -> Room:
        """What the limits leave of the training ranges for a row, its ``cells`` by variable."""
        coding, low, high = model.table_coding, model.summary.low.copy(), model.summary.high.copy()
        fixed = {i for name in self.fixed for i in _places(model, "fixed", name)}
        levels: dict[int, NDArray[np.bool_]] = {}
        stated: set[int] = set()
        for name, given in self.ranges.items():
            i = _moving_place(model, "ranges", name)
            stated.add(i)
            variable = coding.variables[i]
            if variable.kind == CATEGORY:
                levels[i] = _levels(variable, name, given)
                continue
            j = coding.firsts[i]
            ends = _ends(variable, name, given)
            low[j], high[j] = max(low[j], ends[0]), min(high[j], ends[1])
            if low[j] > high[j]:
                raise ValueError(
                    f"ranges: no value of {shown(name)} from {_value(given[0])} to "
                    f"{_value(given[1])} is in its training range; widen the range."
                )
        directions = [("only_decrease", name) for name in self.only_decrease]
        directions += [("only_increase", name) for name in self.only_increase]
        for side, name in directions:
            i = _moving_place(model, side, name)
            stated.add(i)
            variable = coding.variables[i]
            if variable.kind == CATEGORY:
                raise ParameterError(
                    side,
                    name,
                    f"names {shown(name)}, whose levels have no order; list the allowed "
                    "ones in ranges.",
                )
            j, value = coding.firsts[i], float(variable.imputed(cells[i])[0])
            if variable.has_missing and cells[i].missing[0]:
                fixed.add(i)  # nothing is below or above an unknown value
            elif side == "only_decrease":
                high[j] = min(high[j], value)
            else:
                low[j] = max(low[j], value)
        firsts = coding.firsts
        fixed |= {i for i in stated if low[firsts[i]] > high[firsts[i]]}
        return Room(low, high, frozenset(fixed), levels, frozenset(stated))


def _places(model: TreeModel, said_by: str, name: Any) -> list[int]:
    """Features, or variables, of a column or part of a date; one sentence if there is none."""
    coding = model.table_coding
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        if 0 <= name < len(coding.names):
            return [i for i, place in enumerate(coding.places) if place == name]
    elif isinstance(name, str):
        own = [i for i, variable in enumerate(coding.variables) if variable.name == name]
        column = coding.names.index(name) if name in coding.names else -1
        places = [i for i, place in enumerate(coding.places) if place == column]
        if own or column >= 0:  # a column that was left out has no variable
            return places or own
    known = [*coding.names, *(v.name for v in coding.variables)]
    close = nearest(name, known)
    hint = f"did you mean {close}?" if close else "name columns of the table."
    raise ParameterError(
        said_by, name, f"names {shown(name)}, which is not a column of the tree; {hint}"
    )


def _moving_place(model: TreeModel, said_by: str, name: Any) -> int:
    """The one feature, or variable, that a range or direction is about."""
    variables = model.table_coding.variables
    places = _places(model, said_by, name)
    whole = [i for i in places if variables[i].name == name or not variables[i].part]
    if not whole:
        parts = [shown(variables[i].name) for i in places]
        why = f"it is used by parts: name {' or '.join(parts)}" if parts else "it was left out"
        raise ParameterError(said_by, name, f"names {shown(name)}, which cannot be limited; {why}.")
    return whole[0]


def _ends(variable: Variable, name: Any, given: Any) -> tuple[float, float]:
    """Two ends of a range as numbers of the column, infinite where one is open."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable) or len(list(given)) != 2:
        raise unfit("ranges", given, f"of {shown(name)} must be (smallest, largest)")
    ends = []
    for end, open_end in zip(given, (-np.inf, np.inf), strict=True):
        if end is None:
            ends.append(open_end)
            continue
        cells = variable.cells(pd.Series([end]))
        if np.isnan(cells.numbers[0]):
            raise ParameterError(
                "ranges", end, f"of {shown(name)} hold {shown(end)}, which is no such value."
            )
        ends.append(float(cells.numbers[0]))
    if ends[0] > ends[1]:
        raise ParameterError(
            "ranges", given, f"of {shown(name)} begin above their end: {shown(given)}."
        )
    return ends[0], ends[1]


def _levels(variable: Variable, name: Any, given: Any) -> NDArray[np.bool_]:
    """Which levels of a category are listed."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable) or not list(given):
        raise ParameterError("ranges", given, f"of {shown(name)} must list its allowed levels.")
    known = [*variable.levels, *([variable.other_name] if variable.other else [])]
    listed = [str(level) for level in given]
    for level in listed:
        if level not in known:
            levels = ", ".join(shown(one, 24) for one in known[:8])
            raise ParameterError(
                "ranges",
                level,
                f"of {shown(name)} hold {shown(level)}, which is no level; choose from "
                f"{levels}{' and others' if len(known) > 8 else ''}.",
            )
    return np.array([level in listed for level in known])


def _kind(model: TreeModel, name: Any) -> str:
    return model.table_coding.variables[_places(model, "ranges", name)[0]].kind


def _called(model: TreeModel, name: Any) -> str:
    return visible(name if isinstance(name, str) else model.column_names[int(name)])


def _value(value: Any) -> str:
    plain = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return number(float(value), None) if plain else visible(str(value))


def decoded_row(model: TreeModel, x: FloatArray) -> list[Cells]:
    """Cells of a row of columns that are no look-ups."""
    coding = model.table_coding
    return [
        variable.decoded(x[None, coding.columns_of(i)])
        for i, variable in enumerate(coding.variables)
    ]


def level_cells(variable: Variable) -> Cells:
    """Cells with every level of a category once, the merged rare ones last."""
    places = np.arange(len(variable.levels) + variable.other, dtype=float)
    strange = places >= len(variable.levels)
    places[strange] = np.nan
    return Cells(places, np.zeros_like(strange), strange)
