"""A variable of a table, and the columns that it becomes in the training problem.

kind        columns                                              a gap counts as
number      the number                                           the median
boolean     1 for true                                           the more frequent value
ordered     the place of its level, from 0                       the median place
date        days since the first day of the training table      the median day
category    1 for each level; of two levels, for the second      the most frequent level
            many levels: the class shares of its level           the class shares of all rows

A variable that had gaps in training has one more column, 1 where the value is unknown: what a gap
means is learned there. (Of a category with a column for each level it is a level like others.)
Levels that are too rare for a column of their own, and levels that training did not have, count
as "other".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.variables.contents import (
    Distinct,
    day_of,
    day_text,
    days_in,
    distinct,
    number_of,
    occurring,
    read,
    text_of,
    truth_of,
)

NUMBER, BOOLEAN, ORDERED, CATEGORY, DATE = "number", "boolean", "ordered", "category", "date"
KINDS = (NUMBER, BOOLEAN, ORDERED, CATEGORY, DATE)
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Cells:
    """A column of a table as a variable reads it.

    Attributes
    ----------
    numbers : array of shape (n_rows,)
        Numbers, days since the origin, 0 or 1, or places of levels; NaN where there is none.
    gaps : array of bool
    strange : array of bool
        Levels that have no place of their own.
    content : tuple, optional
        The texts of a variable with levels.
    """

    numbers: FloatArray
    gaps: NDArray[np.bool_]
    strange: NDArray[np.bool_]
    content: Distinct | None = None

    def unseen(self, gaps: bool) -> NDArray[np.bool_]:
        """Cells that training did not have; ``gaps`` says whether it had gaps."""
        return self.strange if gaps else self.strange | self.gaps

    def part(self, rows: NDArray[Any]) -> Cells:
        """Some of the rows."""
        content = None if self.content is None else (self.content[0][rows], self.content[1])
        return Cells(self.numbers[rows], self.gaps[rows], self.strange[rows], content)


@dataclass(frozen=True)
class Variable:
    """A variable: its kind, and all that coding its values takes.

    Attributes
    ----------
    name : str
    kind : {"number", "boolean", "ordered", "category", "date"}
    middle : float
        What a gap counts as: a number, days since the origin, or the place of a level.
    gaps : bool
        Whether training had gaps, so that there is a column for them.
    levels : tuple of str
    other : bool
        Whether levels without a place have a column of their own.
    whole : bool
        Whether a category has a column for every level; if not, the first has none.
    origin : float
        Of a date: the day from which days are counted, from 1970-01-01.
    form : str
        How dates are written where it is not as in 2026-11-16.
    classes : tuple of str
        Of a category with many levels: the classes whose shares stand for a level.
    shares : tuple of tuple of float
        Their shares among the rows of each level, shrunken; the last line is that of all rows.
    """

    name: str
    kind: str
    middle: float = 0.0
    gaps: bool = False
    levels: tuple[str, ...] = ()
    other: bool = False
    whole: bool = True
    origin: float = 0.0
    form: str = ""
    classes: tuple[str, ...] = ()
    shares: tuple[tuple[float, ...], ...] = ()

    @property
    def shown_levels(self) -> tuple[str, ...]:
        """Levels with a column of their own."""
        if self.kind != CATEGORY or self.shares:
            return ()
        return self.levels if self.whole else self.levels[1:]

    @property
    def indicators(self) -> tuple[bool, ...]:
        """Of every column, whether it is 1 where something holds and else 0."""
        if self.kind != CATEGORY:
            first: tuple[bool, ...] = (self.kind == BOOLEAN,)
        elif self.shares:
            first = (False,) * len(self.classes)
        else:
            first = (True,) * (len(self.shown_levels) + self.other)
        return (*first, *((True,) if self.gaps else ()))

    @property
    def n_columns(self) -> int:
        return len(self.indicators)

    @property
    def column_names(self) -> tuple[str, ...]:
        """What each column says."""
        if self.kind == NUMBER:
            names = [self.name]
        elif self.kind == BOOLEAN:
            names = [f"{self.name} is true"]
        elif self.kind == ORDERED:
            names = [
                f"{self.name} (0 {self.levels[0]} to {len(self.levels) - 1} {self.levels[-1]})"
            ]
        elif self.kind == DATE:
            names = [f"{self.name} (days since {day_text(self.origin)})"]
        elif self.shares:
            names = [f"{self.name} (share of {label} there)" for label in self.classes]
        else:
            names = [f"{self.name} is {level}" for level in self.shown_levels]
            names += [f"{self.name} is {self.other_name}"] * self.other
        return (*names, *([f"{self.name} is {UNKNOWN}"] * self.gaps))

    @property
    def opposites(self) -> tuple[str, ...]:
        """What holds where a column that is an indicator is 0; of others their names."""
        names = list(self.column_names)
        if self.kind == BOOLEAN:
            names[0] = f"{self.name} is false"
        elif self.kind == CATEGORY and not self.shares:
            told = [*self.shown_levels, *([self.other_name] * self.other)]
            names[: len(told)] = [f"{self.name} is not {level}" for level in told]
            if not self.whole and len(self.levels) == 2:
                names[0] = f"{self.name} is {self.levels[0]}"
        if self.gaps:
            names[-1] = f"{self.name} is known"
        return tuple(names)

    @property
    def other_name(self) -> str:
        """ "other", unless a level is called so."""
        return "other" if "other" not in self.levels else "another level"

    # --- from tables to columns -------------------------------------------------------------------

    def cells(self, column: pd.Series) -> Cells:
        """The cells of a column; one sentence if they are not what the variable needs."""
        if self.levels:
            return self._placed(distinct(column))
        readings: dict[str, tuple[Callable[[Any], float | None], str]] = {
            NUMBER: (number_of, "numbers are"),
            BOOLEAN: (truth_of, "true or false is"),
            DATE: (days_in(self.form), "dates are"),
        }
        reading, needed = readings[self.kind]
        numbers = read(column, reading)
        if numbers is None:
            odd = next(v for v in occurring(distinct(column)) if reading(v) is None)
            raise ValueError(
                f"column {shown(self.name)} holds {shown(_plain(odd))} where {needed} needed."
            )
        if np.any(np.isinf(numbers)):
            raise ValueError(f"column {shown(self.name)} holds infinity; replace it.")
        return Cells(numbers - self.origin, np.isnan(numbers), np.zeros(len(numbers), dtype=bool))

    def _placed(self, content: Distinct) -> Cells:
        codes, values = content
        places = {level: float(i) for i, level in enumerate(self.levels)}
        texts = [text_of(value) for value in values]
        table = np.array([places.get(text, np.nan) for text in texts] + [np.nan])
        numbers, gaps = table[codes], codes < 0
        return Cells(numbers, gaps, np.isnan(numbers) & ~gaps, (codes, texts))

    def coded(self, cells: Cells) -> FloatArray:
        """The columns of the variable, (n_rows, n_columns)."""
        if self.kind != CATEGORY:
            parts = [np.where(np.isnan(cells.numbers), self.middle, cells.numbers)[:, None]]
        elif self.shares:
            table = np.array(self.shares)
            last = len(table) - 1
            parts = [table[np.where(np.isnan(cells.numbers), last, cells.numbers).astype(int)]]
        else:
            parts = [self._indicated(cells)]
        if self.gaps:
            parts.append(cells.gaps[:, None].astype(float))
        return np.hstack(parts) if len(parts) > 1 else parts[0]

    def _indicated(self, cells: Cells) -> FloatArray:
        numbers = cells.numbers
        if not self.whole:  # there is no column for the first level: none is no answer
            numbers = np.where(np.isnan(numbers), self.middle, numbers)
        elif not self.gaps:
            numbers = np.where(cells.gaps, self.middle, numbers)
        first = 0 if self.whole else 1
        made = (numbers[:, None] == np.arange(first, len(self.levels))[None, :]).astype(float)
        return np.hstack([made, cells.strange[:, None].astype(float)]) if self.other else made

    # --- for people -------------------------------------------------------------------------------

    def told(self, number: float) -> float | str:
        """A number of a cell as people write it."""
        if np.isnan(number):
            return UNKNOWN
        if self.kind == DATE:
            return day_text(number + self.origin)
        if self.kind == BOOLEAN:
            return "true" if number else "false"
        return self.levels[int(number)] if self.levels else number

    @property
    def own_gap_level(self) -> bool:
        """Whether an unknown value is a level like others, with no other level in its place."""
        return self.gaps and self.kind == CATEGORY and self.whole and not self.shares

    @property
    def told_middle(self) -> str:
        """What a gap counts as."""
        if self.shares:
            return "the class shares of all rows"
        middle = self.told(self.middle)
        return middle if isinstance(middle, str) else f"{middle:.6g}"

    def told_cell(self, cells: Cells, row: int) -> float | str:
        """The value of one row."""
        if cells.strange[row] and cells.content is not None:
            codes, texts = cells.content
            return texts[codes[row]]
        return self.told(float(cells.numbers[row]))

    def remark(self, cells: Cells, row: int) -> str:
        """What a reader must be told about the value of one row; mostly nothing."""
        taken = f"it counts as {self.told_middle}"
        if cells.gaps[row]:
            return "" if self.gaps else f"{self.name} is unknown, as in no training row: {taken}"
        if not cells.strange[row]:
            return ""
        said = f"{self.name} {shown(str(self.told_cell(cells, row)))}"
        if self.other:
            return f"{said} is rare or new: it counts as {self.other_name}"
        if self.kind == CATEGORY and self.whole and not self.shares:
            return f"{said} is rare or new: it counts as none of the levels"
        return f"{said} is rare or new: {taken}"


def _plain(value: Any) -> Any:
    """Times without the name of their class."""
    days = day_of(value)
    return value if days is None or isinstance(value, str) else day_text(days)
