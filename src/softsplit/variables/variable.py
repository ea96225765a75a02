"""A variable of a table and its coding as columns of the training problem.

kind        columns                                              a missing value is imputed by
number      the number, and a hinge for each of its knots       the median
boolean     1 for true                                           the more frequent value
ordered     the rank of its level, from 0                        the median rank
date        days since the first day of the training table       the median day
            (its other parts, ``dates``, are variables beside it, numbers and categories)
category    one indicator per level; of two levels, the second   the most frequent level
            many levels: target encoding by class shares         the class shares of all rows

A variable with missing values in the training table has one more column, the indicator of a missing
value, so that the tree can learn what a missing value means. (A category with one indicator per
level needs no imputation: the missing-value indicator is one more level.) Levels that are too rare
for a column of their own, and levels that are absent from the training table, count as "other";
checksums of the rare ones are kept, so that the two can be told apart later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.variables.contents import Distinct, distinct, number_of, read, text_of, truth_of
from softsplit.variables.curves import hinge_names, hinges
from softsplit.variables.dates import NAMES, day_of, day_text, days_in, part_numbers, time_between
from softsplit.variables.lookup import Lookup

NUMBER, BOOLEAN, ORDERED, CATEGORY, DATE = "number", "boolean", "ordered", "category", "date"
KINDS = (NUMBER, BOOLEAN, ORDERED, CATEGORY, DATE)

# Encodings of a category: an indicator for each level, or the class shares of its level.
LEVELS, SHARES = "levels", "shares"

UNKNOWN = "unknown"
UNSEEN = "not seen in training"

# What a value counts as whose variable has indicators of its levels, all of them 0.
NO_LEVEL = "none of the levels"

# Hexadecimal digits of a checksum.
DIGITS = 8


@dataclass(frozen=True)
class Cells:
    """The parsed cells of one column of a table.

    Attributes
    ----------
    numbers : array of shape (n_rows,)
        Numbers, days since the origin, 0 or 1, or positions of levels; NaN for missing values and
        unlisted levels.
    missing : array of bool
        Missing values.
    unlisted : array of bool
        Values that are none of the variable's levels.
    content : tuple, optional
        The texts of a variable with levels.
    """

    numbers: FloatArray
    missing: NDArray[np.bool_]
    unlisted: NDArray[np.bool_]
    content: Distinct | None = None

    @classmethod
    def of(cls, numbers: FloatArray) -> Cells:
        """Return the cells of a variable without levels; NaN is missing."""
        return cls(numbers, np.isnan(numbers), np.zeros(len(numbers), dtype=bool))

    def part(self, rows: NDArray[Any]) -> Cells:
        """Return the cells of ``rows``."""
        content = None if self.content is None else (self.content[0][rows], self.content[1])
        return Cells(self.numbers[rows], self.missing[rows], self.unlisted[rows], content)


@dataclass(frozen=True)
class Variable:
    """A variable: its kind and the parameters of its coding.

    Attributes
    ----------
    name : str
    kind : {"number", "boolean", "ordered", "category", "date"}
    middle : float
        The value imputed for a missing one: a number, days since the origin, or the position of a
        level.
    has_missing : bool
        Whether the training table had missing values, so that there is an indicator of them.
    levels : tuple of str
    other : bool
        Whether unlisted levels share an indicator of their own.
    whole : bool
        Whether a category has an indicator for every level; if not, the first has none.
    origin : float
        For dates: the day from which days are counted, itself in days since 1970-01-01.
    form : str
        The ``strptime`` format of dates that are not written as 2026-11-16.
    classes : tuple of str
        For a category of many levels: the classes whose shares encode a level.
    shares : tuple of tuple of float
        Shrunken shares of ``classes`` among the rows of each level; the last line is that of all
        rows.
    rare : str, optional
        Checksums of the levels of training that are too rare to be listed, see ``checksums``. None:
        they are too many, or the variable has no levels.
    knots : tuple of float
        For numbers: the values at which the effect may bend, in ascending order (``curves``).
    part : str
        For a part of a date: which one (``dates.PARTS``), or the unit of the time since another
        date.
    source : str
        For a part of a date: the column of the table that holds the date.
    since : str
        For the time since another date: the column that holds that date.
    since_form : str
        The ``strptime`` format of dates in that column, as ``form``.
    lookups : tuple of Lookup
        Of a tree in whole points: the columns are these points instead.
    """

    name: str
    kind: str
    middle: float = 0.0
    has_missing: bool = False
    levels: tuple[str, ...] = ()
    other: bool = False
    whole: bool = True
    origin: float = 0.0
    form: str = ""
    classes: tuple[str, ...] = ()
    shares: tuple[tuple[float, ...], ...] = ()
    rare: str | None = None
    knots: tuple[float, ...] = ()
    part: str = ""
    source: str = ""
    since: str = ""
    since_form: str = ""
    lookups: tuple[Lookup, ...] = ()

    @property
    def column(self) -> str:
        """The column of the table that holds the variable."""
        return self.source or self.name

    @property
    def encoding(self) -> str:
        """The kind, of a category "levels" or "shares": a row of ``VALUE_NAMES``."""
        if self.kind != CATEGORY:
            return self.kind
        return SHARES if self.shares else LEVELS

    @property
    def shown_levels(self) -> tuple[str, ...]:
        """Levels with an indicator of their own."""
        if self.encoding != LEVELS:
            return ()
        return self.levels if self.whole else self.levels[1:]

    @property
    def indicated(self) -> list[str]:
        """What has an indicator of its own: levels, and the others together."""
        return [*self.shown_levels, *[self.other_name] * self.other]

    @property
    def indicators(self) -> tuple[bool, ...]:
        """For each column, whether it is a 0/1 indicator."""
        if self.lookups:
            return (False,) * len(self.lookups)
        values = VALUE_NAMES[self.encoding](self)
        return (*[self.encoding in (BOOLEAN, LEVELS)] * len(values), *[True] * self.has_missing)

    @property
    def n_hinges(self) -> int:
        """Number of hinges, which follow the column of the value: one for each knot."""
        return 0 if self.lookups else len(self.knots)

    @property
    def n_columns(self) -> int:
        return len(self.indicators)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The name of each column, as shown to users."""
        if self.lookups:
            ends = ["", *(f" ({n})" for n in range(2, len(self.lookups) + 1))]
            return tuple(f"points of {self.name}{end}" for end in ends)
        missing = [f"{self.unknown_name} is {UNKNOWN}"] * self.has_missing
        return (*VALUE_NAMES[self.encoding](self), *missing)

    @property
    def opposites(self) -> tuple[str, ...]:
        """For each indicator, the statement that holds where it is 0; the name of other columns."""
        if self.lookups:
            return self.column_names
        names = VALUE_NAMES[self.encoding](self)
        if self.encoding == BOOLEAN:
            names = [f"{self.name} is false"]
        elif self.encoding == LEVELS:
            names = [f"{self.name} is not {level}" for level in self.indicated]
            if not self.whole and len(self.levels) == 2:
                names[0] = f"{self.name} is {self.levels[0]}"
        return (*names, *[f"{self.unknown_name} is known"] * self.has_missing)

    @property
    def unknown_name(self) -> str:
        """What is unknown where the variable is: of a part of a date, the date."""
        return self.name if self.since else self.column

    @property
    def other_name(self) -> str:
        """The name of the merged levels: "other", unless a level has that name."""
        return "other" if "other" not in self.levels else "another level"

    # --- from tables to columns -------------------------------------------------------------------

    def cells(
        self, column: pd.Series, other: pd.Series | None = None, days: DayReader | None = None
    ) -> Cells:
        """Parse a column; raise ``ValueError`` with one sentence if its values do not fit.

        ``other`` is the column ``since``, and ``days`` remembers the dates of columns that several
        variables read.
        """
        reader = DayReader() if days is None else days
        if self.part:
            moments = reader.read(column, self.form, self.column)
            earlier = None if other is None else reader.read(other, self.since_form, self.since)
            return self.cells_of_days(moments, earlier)
        if self.kind == DATE:
            return Cells.of(reader.read(column, self.form, self.name) - self.origin)
        if self.levels:
            return self._level_cells(distinct(column))
        if self.kind == BOOLEAN:
            return Cells.of(_checked_numbers(column, truth_of, self.name, "true or false is"))
        return Cells.of(_checked_numbers(column, number_of, self.name, "numbers are"))

    def cells_of_days(self, days: FloatArray, earlier: FloatArray | None = None) -> Cells:
        """Return the cells of a part of a date, from days since 1970-01-01.

        ``earlier`` are the days of the column ``since``.
        """
        if self.since:
            assert earlier is not None
            numbers = time_between(days, earlier, self.part)
        else:
            numbers = part_numbers(self.part, days)
        if not self.levels:
            return Cells.of(numbers)
        codes = np.where(np.isnan(numbers), -1, numbers).astype(np.intp)
        return self._level_cells((codes, list(NAMES[self.part])))

    def _level_cells(self, content: Distinct) -> Cells:
        codes, values = content
        places = {level: float(i) for i, level in enumerate(self.levels)}
        texts = [text_of(value) for value in values]
        # Blanks around a text count only where training had them: files and databases add them.
        numbers_of = [places.get(text, places.get(text.strip(), np.nan)) for text in texts]
        table = np.array([*numbers_of, np.nan])
        numbers, missing = table[codes], codes < 0
        return Cells(numbers, missing, np.isnan(numbers) & ~missing, (codes, texts))

    def cells_of_numbers(self, cells: Cells) -> Cells:
        """Return the cells of a variable of levels whose texts are the numbers of ``cells``."""
        return self._level_cells(distinct(pd.Series(cells.numbers)))

    @property
    def n_rare(self) -> int:
        """Levels of training that are too rare to be listed; 0 where they are not known."""
        return len(self.rare or "") // DIGITS

    @property
    def may_omit_levels(self) -> bool:
        """Whether training may have had levels that are not listed, as too rare."""
        unknown = self.rare is None and not self.part
        return self.kind == CATEGORY and (unknown or self.n_rare > 0)

    def unseen(self, cells: Cells) -> NDArray[np.bool_]:
        """Return which cells hold a level that no training row had.

        Where rare levels are not known, no unlisted level counts as unseen.
        """
        if self.rare is None or cells.content is None or not np.any(cells.unlisted):
            return np.zeros(len(cells.numbers), dtype=bool)
        codes, texts = cells.content
        known = {self.rare[i : i + DIGITS] for i in range(0, len(self.rare), DIGITS)}
        fresh = np.array(
            [not known & {checksums([text]), checksums([text.strip()])} for text in texts] + [False]
        )
        return cells.unlisted & fresh[codes]

    def coded(self, cells: Cells) -> FloatArray:
        """Return the coded columns of the variable, shape (n_rows, n_columns)."""
        if self.lookups:
            numbers = self.imputed(cells)
            return np.column_stack([own.values(numbers, cells.missing) for own in self.lookups])
        if self.kind != CATEGORY:
            values = np.where(np.isnan(cells.numbers), self.middle, cells.numbers)
            parts = [values[:, None], *([hinges(values, self.knots)] if self.knots else [])]
        elif self.shares:
            table = np.array(self.shares)
            last = len(table) - 1
            parts = [table[np.where(np.isnan(cells.numbers), last, cells.numbers).astype(int)]]
        else:
            parts = [self._level_indicators(cells)]
        if self.has_missing:
            parts.append(cells.missing[:, None].astype(float))
        return np.hstack(parts) if len(parts) > 1 else parts[0]

    def decoded(self, columns: FloatArray) -> Cells:
        """Return cells whose coded columns are ``columns``, (n_rows, n_columns).

        Class shares are decoded as the level of the nearest shares: those of training rows are
        learned from other rows.
        """
        n_rows = len(columns)
        missing = columns[:, -1] > 0.5 if self.has_missing else np.zeros(n_rows, dtype=bool)
        unlisted = np.zeros(n_rows, dtype=bool)
        if self.encoding == LEVELS:
            own = columns[:, : len(self.indicated)] > 0.5
            first = len(self.levels) - len(self.shown_levels)
            numbers = np.where(np.any(own, axis=1), first + np.argmax(own, axis=1), 0.0)
            unlisted = numbers >= len(self.levels)
            unlisted |= ~np.any(own, axis=1) & ~missing & self.whole
        elif self.encoding == SHARES:
            table = np.array(self.shares)
            apart = [np.sum(np.abs(columns[:, : len(row)] - row), axis=1) for row in table]
            numbers = np.argmin(apart, axis=0).astype(float)
            unlisted = numbers >= len(self.levels)
        else:
            numbers = columns[:, 0].astype(float)
        return Cells(np.where(missing | unlisted, np.nan, numbers), missing, unlisted & ~missing)

    @property
    def places_others(self) -> bool:
        """Whether levels that are not listed have a place of their own, after all that are."""
        return self.kind == CATEGORY and (self.other or self.may_omit_levels)

    def imputed(self, cells: Cells) -> FloatArray:
        """Return the numbers of the cells, or places of levels, with what is missing imputed."""
        others = float(len(self.levels)) if self.places_others else self.middle
        numbers = np.where(cells.unlisted, others, cells.numbers)
        return np.where(np.isnan(numbers), self.middle, numbers)

    def _level_indicators(self, cells: Cells) -> FloatArray:
        numbers = cells.numbers
        if not self.whole:  # all zeros would mean the first level, so a missing value is imputed
            numbers = np.where(np.isnan(numbers), self.middle, numbers)
        elif not self.has_missing:
            numbers = np.where(cells.missing, self.middle, numbers)
        first = 0 if self.whole else 1
        indicators = (numbers[:, None] == np.arange(first, len(self.levels))[None, :]).astype(float)
        return (
            np.hstack([indicators, cells.unlisted[:, None].astype(float)])
            if self.other
            else indicators
        )

    # --- display ----------------------------------------------------------------------------------

    def display(self, number: float) -> float | str:
        """Return the value of ``number``, an entry of ``Cells.numbers``, as shown to users."""
        if np.isnan(number):
            return UNKNOWN
        if self.kind == DATE:
            return day_text(number + self.origin)
        if self.kind == BOOLEAN:
            return "true" if number else "false"
        return self.levels[int(number)] if self.levels else number

    @property
    def own_missing_level(self) -> bool:
        """Whether a missing value is coded as a level of its own, without imputation."""
        return self.has_missing and self.encoding == LEVELS and self.whole

    @property
    def display_imputed(self) -> str:
        """The value imputed for a missing one, as shown to users."""
        if self.shares and not self.lookups:
            return "the class shares of all rows"
        middle = self.display(self.middle)
        return middle if isinstance(middle, str) else f"{middle:.6g}"

    @property
    def display_unlisted(self) -> str:
        """What a rare or new level is coded as, as shown to users."""
        if self.other or (self.lookups and self.places_others):
            return self.other_name
        coded = self.encoding == LEVELS and self.whole and not self.lookups
        return NO_LEVEL if coded else self.display_imputed

    def display_cell(self, cells: Cells, row: int) -> float | str:
        """Return the value of one row as shown to users."""
        if cells.unlisted[row] and cells.content is not None:
            codes, texts = cells.content
            return texts[codes[row]]
        return self.display(float(cells.numbers[row]))

    def counts_as(self, cells: Cells, row: int) -> str:
        """Return what an imputed or unlisted value of one row is coded as, or ""."""
        if cells.missing[row]:
            if self.lookups and self.has_missing:
                return ""  # it has points of its own
            return NO_LEVEL if self.own_missing_level else self.display_imputed
        return self.display_unlisted if cells.unlisted[row] else ""

    def treatment(self, cells: Cells, row: int) -> str:
        """Return in brief how an imputed or unlisted value of one row is coded, or ""."""
        counts = self.counts_as(cells, row)
        if not counts:
            return ""
        rarity = self._rarity(cells, row)
        return f"{rarity}: counts as {counts}" if rarity else f"counts as {counts}"

    def remark(self, cells: Cells, row: int) -> str:
        """Return a note on how an imputed or unlisted value of one row is coded, or ""."""
        counts = self.counts_as(cells, row)
        if not counts or (cells.missing[row] and self.has_missing):
            return ""
        if cells.missing[row]:
            return f"{self.name} is unknown, as in no training row: it counts as {counts}"
        value, rarity = shown(str(self.display_cell(cells, row))), self._rarity(cells, row)
        verb = "was" if rarity == UNSEEN else "is"
        return f"{self.name} {value} {verb} {rarity}: it counts as {counts}"

    def _rarity(self, cells: Cells, row: int) -> str:
        """Return how often training had the unlisted level of one row; "" for other values."""
        if not cells.unlisted[row]:
            return ""
        if self.unseen(cells)[row]:
            return UNSEEN
        return "rare in training" if self.rare is not None else "rare or new"


# Names of the columns of a variable but for the indicator of a missing value, by its encoding.
VALUE_NAMES: dict[str, Callable[[Variable], list[str]]] = {
    NUMBER: lambda v: [v.name, *hinge_names(v.name, v.knots)],
    BOOLEAN: lambda v: [f"{v.name} is true"],
    ORDERED: lambda v: [f"{v.name} (0 {v.levels[0]} to {len(v.levels) - 1} {v.levels[-1]})"],
    DATE: lambda v: [f"{v.name} (days since {day_text(v.origin)})"],
    SHARES: lambda v: [f"{v.name} (share of {label} there)" for label in v.classes],
    LEVELS: lambda v: [f"{v.name} is {level}" for level in v.indicated],
}


class DayReader:
    """Reads columns of dates as days since 1970-01-01, each column once."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], FloatArray] = {}

    def read(self, column: pd.Series, form: str, name: str) -> FloatArray:
        """Return the days of the column ``name``; raise ``ValueError`` if its cells are no dates.

        ``form`` is the ``strptime`` format of dates that are not written as 2026-11-16.
        """
        if (name, form) not in self._read:
            days = _checked_numbers(column, days_in(form), name, "dates are")
            self._read[name, form] = days
        return self._read[name, form]


def _checked_numbers(
    column: pd.Series, reading: Callable[[Any], float | None], name: str, needed: str
) -> FloatArray:
    """Return the numbers that ``reading`` makes of the cells; one sentence names a cell of none."""
    numbers = read(column, reading)
    if numbers is None:
        codes, values = distinct(column)
        row = next(i for i in np.flatnonzero(codes >= 0) if reading(values[codes[i]]) is None)
        advice = "correct it" if len(codes) == 1 else "correct the cell, or leave it empty"
        raise ValueError(
            f"column {shown(name)} holds {shown(_plain(values[codes[row]]))} where {needed} needed"
            f"{_in_row(int(row), len(codes))}; {advice}."
        )
    refuse_infinity(name, numbers)
    return numbers


def refuse_infinity(name: str, numbers: FloatArray) -> None:
    """Raise ``ValueError`` for infinite values, which cannot be scaled; name the first row."""
    infinite = np.isinf(numbers)
    if np.any(infinite):
        place = _in_row(int(np.argmax(infinite)), len(numbers))
        raise ValueError(f"column {shown(name)} holds infinity{place}; replace it.")


def _in_row(row: int, n_rows: int) -> str:
    """Return the place of a cell among several rows, counted from 1."""
    return "" if n_rows == 1 else f" (row {row + 1})"


def checksums(texts: Iterable[str]) -> str:
    """Return the checksums (CRC-32) of ``texts``, sorted, as one text."""
    numbers = (crc32(text.encode("utf-8", "surrogatepass")) for text in texts)
    return "".join(f"{number:0{DIGITS}x}" for number in sorted(numbers))


def _plain(value: Any) -> Any:
    """Return dates and times as text, other values unchanged (for error messages)."""
    days = day_of(value)
    return value if days is None or isinstance(value, str) else day_text(days)
