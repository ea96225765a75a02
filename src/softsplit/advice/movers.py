"""What can move in a row: a feature, or a variable of a table, with the values that it may take.

A number takes values of its room, whole ones if all training values were whole. A category takes
its levels. A date of which the tree uses several parts moves as a whole, by days, and by hours if
the tree uses the hour; one part that is used alone, such as the month, moves by itself. A missing
value begins at its middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softsplit.advice.limits import Room, level_cells
from softsplit.fitted.model import TreeModel
from softsplit.fitted.summary import BINARY, INTEGER
from softsplit.support.arrays import FloatArray
from softsplit.variables import Cells, Variable
from softsplit.variables.dates import HOUR, UNITS
from softsplit.variables.variable import CATEGORY, DATE

MOST_STEPS = 100_000
"""Steps that are tried one by one: over a longer range whole numbers count as numbers."""


def moving(model: TreeModel, room: Room) -> list[int]:
    """Features, or variables, that may change: those in use, and for parts of a date the date."""
    movers = sorted({_mover(model, int(i)) for i in model.selected_variables})
    return [i for i in movers if room.fixed.isdisjoint([i, *moved_with(model, i)])]


def _mover(model: TreeModel, i: int) -> int:
    """The variable that moves where ``i`` is to change: the date, if several parts are in use."""
    coding = model.table_coding
    date = next((j for j in coding.siblings([i]) if coding.variables[j].kind == DATE), i)
    return date if len(moved_with(model, date)) > 1 else i


def moved_with(model: TreeModel, i: int) -> list[int]:
    """Variables that change when ``i`` does: itself, or all that is in use of a date.

    These are the parts of a date, and times that count from it.
    """
    variables, places = model.table_coding.variables, model.table_coding.places
    if variables[i].kind != DATE:
        return [i]
    of_date = [
        int(j)
        for j in model.selected_variables
        if places[j] == places[i] or variables[j].since == variables[i].name
    ]
    return of_date if len(of_date) > 1 else [i]


@dataclass(frozen=True)
class Mover:
    """One feature, or variable, of a row that moves within its room.

    Its values are numbers, days since the origin of a date, or positions of levels (that of merged
    rare ones last). ``cells`` are those of the row, by variable.
    """

    model: TreeModel
    x: FloatArray
    i: int
    room: Room
    cells: Sequence[Cells]

    @cached_property
    def variable(self) -> Variable:
        return self.model.table_coding.variables[self.i]

    @cached_property
    def moved(self) -> list[int]:
        """All variables that change."""
        return moved_with(self.model, self.i)

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """The columns that change."""
        return np.concatenate([self.model.table_coding.columns_of(n) for n in self.moved])

    @property
    def column(self) -> int:
        """The column of the value itself."""
        return self.model.table_coding.firsts[self.i]

    @property
    def low(self) -> float:
        return float(self.room.low[self.column])

    @property
    def high(self) -> float:
        return float(self.room.high[self.column])

    @property
    def span(self) -> float:
        """Length of the training range."""
        return float(self.model.summary.high[self.column] - self.model.summary.low[self.column])

    @cached_property
    def here(self) -> float:
        """The value of the row, or where an unknown one begins."""
        value = self.value(self.i)
        if not self.unknown(self.i):
            return value
        if self.model.summary.kinds[self.column] in (BINARY, INTEGER):
            value = float(np.rint(value))
        return float(np.clip(value, self.low, self.high)) if self.i in self.room.stated else value

    def unknown(self, n: int) -> bool:
        """Whether variable n is missing in the row."""
        variable = self.model.table_coding.variables[n]
        return variable.has_missing and bool(self.cells[n].missing[0])

    def value(self, n: int) -> float:
        """The number of variable n in the row, or what is imputed for it."""
        return float(self.model.table_coding.variables[n].imputed(self.cells[n])[0])

    @cached_property
    def steps(self) -> FloatArray | None:
        """All values of its room where these are levels, whole numbers or dates; else None."""
        low, high, kind = self.low, self.high, self.model.summary.kinds[self.column]
        if self.variable.kind == CATEGORY:
            n_levels = len(self.variable.levels) + self.variable.other
            return np.flatnonzero(self.room.allows(self.i, n_levels)).astype(float)
        if len(self.moved) > 1:
            parts = {self.model.table_coding.variables[n].part for n in self.moved}
            by_hour = HOUR in parts and 24 * (high - low) <= MOST_STEPS
            n_steps = 24 if by_hour else 1
            ends = np.clip(np.array([low, high]) - self.here, -MOST_STEPS, MOST_STEPS) * n_steps
            return self.here + np.arange(np.ceil(ends[0]), np.floor(ends[1]) + 1) / n_steps
        whole = kind in (BINARY, INTEGER) and self.here == np.rint(self.here)
        if whole and high - low <= MOST_STEPS:
            return np.arange(np.ceil(low), np.floor(high) + 1)
        return None

    def spread(self, most: int) -> FloatArray:
        """About so many values, evenly over its room; all levels of a category."""
        if self.steps is None:
            return np.linspace(self.low, self.high, most)
        if self.variable.kind == CATEGORY or len(self.steps) <= most:
            return self.steps
        return self.steps[np.rint(np.linspace(0, len(self.steps) - 1, most)).astype(int)]

    def rows(self, values: FloatArray) -> FloatArray:
        """The row with other values, (n_values, n_features)."""
        coding = self.model.table_coding
        rows = np.repeat(self.x[None, :], len(values), axis=0)
        for n in self.moved:
            if n == self.i or not (coding.variables[n].since and self.unknown(n)):
                rows[:, coding.columns_of(n)] = coding.variables[n].coded(self._cells(n, values))
        return rows

    def _cells(self, n: int, values: FloatArray) -> Cells:
        """The cells of variable n at values of this one."""
        coding, none = self.model.table_coding, np.zeros(len(values), dtype=bool)
        variable = coding.variables[n]
        if variable.kind == CATEGORY and n == self.i:
            return level_cells(variable).part(values.astype(int))
        if n == self.i:
            return Cells(values, none, none)
        if not variable.since:
            return variable.cells_of_days(values + self.variable.origin)
        later = 1.0 if coding.places[n] == coding.places[self.i] else -1.0
        passed = later * (values - self.value(self.i)) * UNITS[variable.part]
        return Cells(self.value(n) + passed, none, none)

    def allowed(self, values: FloatArray) -> NDArray[np.bool_]:
        """Of other dates: whether times since others, and limited parts, have room."""
        coding, room = self.model.table_coding, self.room
        possible = np.ones(len(values), dtype=bool)
        for n in self.moved:
            variable, j = coding.variables[n], coding.firsts[n]
            if n == self.i or not (variable.since or n in room.stated):
                continue
            numbers = variable.imputed(self._cells(n, values))
            if variable.since and self.unknown(n):
                numbers = np.full(len(values), self.value(n))
            if n in room.levels:
                listed = np.append(room.levels[n], False)
                possible &= listed[np.minimum(numbers, len(listed) - 1).astype(int)]
            else:
                possible &= (numbers >= room.low[j]) & (numbers <= room.high[j])
        return possible

    def distances(self, values: FloatArray) -> FloatArray:
        """How far values are: parts of the training range; 1 from a level to another one."""
        if self.variable.kind != CATEGORY:
            with np.errstate(over="ignore"):  # of a row that is far away
                return np.abs(values - self.here) / (self.span or 1.0)
        coded = self.rows(values)[:, self.columns]
        return 1.0 - np.all(np.abs(coded - self.x[self.columns]) < 1e-9, axis=1)
