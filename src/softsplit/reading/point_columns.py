"""One look-up of a question in words: the points of a column, and sets of its values.

A look-up gives points to *places*: the ranges of a number or the levels of another column, then
levels that are not listed, where they have points of their own, then missing values, where training
had some.

table       below 25: 0 | from 25: 1 | unknown: 2        red, blue: 3 | other: 0
            1 for each full 20 above 60, at most 7       3 per 10; from 40: 1 per 10
set         30 or more; below 20 or unknown              male or female; none of red or blue
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from softsplit.support.numbers import number
from softsplit.variables import Variable
from softsplit.variables.dates import moment_text
from softsplit.variables.lookup import Lookup, counted_edges, readable_slopes
from softsplit.variables.variable import BOOLEAN, DATE, NUMBER, UNKNOWN

# Levels with equal points that are listed, where none of them has to be called "other".
LISTED_LEVELS = 3

# Levels that could be misread between others.
MISLEADING = re.compile(
    r'[|:;,"]|\bor\b|\bif\b|^(other|another level|unknown|not|none)\b|^$|^\s|\s$'
)


@dataclass(frozen=True)
class PointColumn:
    """One look-up of a question.

    Attributes
    ----------
    variable : Variable
    lookup : Lookup
    column : int
        The column of the coding that holds the points.
    name : str
        Of the variable, as it is written.
    binary : bool
        Whether a number was 0 or 1 in training: it is written as two levels.
    """

    variable: Variable
    lookup: Lookup
    column: int
    name: str
    binary: bool = False

    @property
    def ranged(self) -> bool:
        """Whether places are ranges of a number or a date."""
        return self.variable.kind in (NUMBER, DATE) and not self.binary

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels as they are written."""
        if self.binary:
            return "0", "1"
        boolean = self.variable.kind == BOOLEAN
        return ("false", "true") if boolean else tuple(map(level_text, self.variable.levels))

    @cached_property
    def n_values(self) -> int:
        """Ranges or listed levels."""
        return len(self.lookup.edges) + 1 if self.ranged else len(self.levels)

    @property
    def other(self) -> int | None:
        """The place of levels that are not listed: their own, or that of the imputed level."""
        if self.ranged or self.binary or self.variable.kind == BOOLEAN:
            return None
        return self.n_values if self.variable.places_others else int(self.variable.middle)

    @property
    def unknown(self) -> int | None:
        """The place of missing values, if they have points of their own."""
        return None if self.lookup.unknown is None else len(self.points) - 1

    @cached_property
    def points(self) -> tuple[int, ...]:
        """Points of all places; none of slopes."""
        if self.lookup.slopes:
            return ()
        points = [int(p) for p in self.lookup.points]
        if not self.ranged:
            n = self.n_values + self.variable.places_others
            values = np.arange(float(n))
            points = [int(p) for p in self.lookup.values(values, np.zeros(n, dtype=bool))]
        return (*points, *([] if self.lookup.unknown is None else [self.lookup.unknown]))

    # --- as one line of a table -------------------------------------------------------------------

    @cached_property
    def entry(self) -> str:
        """The points of all values: "below 25: 0 | from 25: 1 | unknown: 2"."""
        own = self._slopes() if self.lookup.slopes else self._counts()
        if own:
            return (
                own if self.lookup.unknown is None else f"{own} | {UNKNOWN}: {self.lookup.unknown}"
            )
        return " | ".join(f"{words}: {points}" for words, points in self.parts)

    @property
    def parts(self) -> list[tuple[str, int]]:
        """Groups of values with equal points, and these points; not of slopes."""
        parts = self._range_parts() if self.ranged else self._level_parts()
        return parts if self.lookup.unknown is None else [*parts, (UNKNOWN, self.lookup.unknown)]

    def _range_parts(self) -> list[tuple[str, int]]:
        ends = [self.value_text(edge) for edge in self.lookup.edges]
        below = "before" if self.variable.kind == DATE else "below"
        words = [f"{below} {ends[0]}", *(f"from {end}" for end in ends)] if ends else ["known"]
        return list(zip(words, self.points[: self.n_values], strict=True))

    def _level_parts(self) -> list[tuple[str, int]]:
        """Levels with equal points; those with the points of others are called so."""
        n = self.n_values
        groups: dict[int, list[str]] = {}
        for level, points in zip(self.levels, self.points[:n], strict=True):
            groups.setdefault(points, []).append(level)
        last = []
        if self.other is not None:
            points = self.points[self.other]
            if self.other == n or len(groups[points]) > LISTED_LEVELS:
                groups.pop(points, None)
                last = [(self.variable.other_name if groups else "any level", points)]
        listed = list(groups.items()) if self.binary else sorted(groups.items())
        return [*((", ".join(levels), points) for points, levels in listed), *last]

    def _counts(self) -> str:
        """Even steps from 0 on, such as "1 for each full 20 above 60, at most 7"."""
        even, points = self.lookup.counts, self.lookup.points
        if not self.ranged or even is None or min(points[0], points[-1]) != 0:
            return ""
        if counted_edges(even.start, even.width, even.steps) != self.lookup.edges:
            return ""
        date = self.variable.kind == DATE
        width = self._unit_text(even.width)
        at_most = f"at most {abs(even.each) * even.steps}"
        if even.each > 0:
            start = f"{'after' if date else 'above'} {self.value_text(even.start)}"
            return f"{even.each} for each full {width} {start}, {at_most}"
        end = f"{'before' if date else 'below'} {self.value_text(self.lookup.edges[-1])}"
        return f"{-even.each} for each {width} or part {end}, {at_most}"

    def _slopes(self) -> str:
        own, date = self.lookup, self.variable.kind == DATE
        slopes, width = readable_slopes(own.slopes, own.unit)
        unit, first = self._unit_text(width), slopes[0]
        parts = [f"{first} per {unit}{f' since {self.value_text(0.0)}' * date}"] if first else []
        for before, slope, knot in zip(slopes[:-1], slopes[1:], own.knots, strict=True):
            if slope != before:
                parts.append(f"from {self.value_text(knot)}: {slope} per {unit}")
        return "; ".join(parts)

    def _unit_text(self, width: float) -> str:
        """A width of steps, or the unit of slopes."""
        if self.variable.kind == DATE:
            return "day" if width == 1 else f"{number(width, None)} days"
        return "unit" if width == 1 else number(width, None)

    # --- in sentences -----------------------------------------------------------------------------

    def value_text(self, value: float) -> str:
        """A number or a date with all its digits."""
        if self.variable.kind == DATE:
            return moment_text(value + self.variable.origin)
        return number(value, None)

    def values_text(self, places: Collection[int]) -> str:
        """Some places as what follows "is": "30 or more", "male or unknown", "not male"."""
        if self.ranged:
            return " or ".join(self._range_words(places))
        yes = [level for k, level in enumerate(self.levels) if k in places]
        no = [level for k, level in enumerate(self.levels) if k not in places]
        if self.unknown is not None:
            (yes if self.unknown in places else no).append(UNKNOWN)
        if no == [UNKNOWN]:
            return "known"
        fewer = len(no) < min(len(yes), LISTED_LEVELS)
        if self.other in places and no and (self.other == self.n_values or fewer):
            return f"not {no[0]}" if len(no) == 1 else f"none of {listed(no)}"
        return listed(yes)

    def _range_words(self, places: Collection[int]) -> list[str]:
        date, edges, n = self.variable.kind == DATE, self.lookup.edges, self.n_values
        ends = [self.value_text(edge) for edge in edges]
        words = []
        for chosen, run in groupby(range(n), lambda k: k in places):
            own = list(run)
            if not chosen:
                continue
            low = ends[own[0] - 1] if own[0] else ""
            high = ends[own[-1]] if own[-1] < n - 1 else ""
            below = f"{'before' if date else 'below'} {high}" if high else ""
            if low and below:
                words.append(f"{low} to {below}")
            else:
                words.append(
                    below or (f"{low} or {'later' if date else 'more'}" if low else "known")
                )
        if self.unknown is not None and self.unknown in places:
            words.append(UNKNOWN)
        return words


def level_text(level: str) -> str:
    """A level as it is written: in quotation marks where it could be misread."""
    if level.isprintable() and not MISLEADING.search(level):
        return level
    return json.dumps(level, ensure_ascii=not level.isprintable())


def listed(words: Sequence[str], last: str = "or") -> str:
    """ "a, b or c"."""
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end
