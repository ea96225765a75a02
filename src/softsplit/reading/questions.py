"""A question of a tree in whole points, in the shortest form that is exact.

form                            printed
levels, one threshold           sex is male or pclass is 3rd; glucose is 120 or more
a threshold for each level      age by sex: 30 or more if male; 50 or more if female
points                          a line for each column: below 25: 0 | from 25: 1 | unknown: 2

A look-up gives points to *places*: the ranges of a number or the levels of another column, then
levels that are not listed, where they have points of their own, then missing values, where training
had some. A statement is a set of places for each column, of which one, or all, must hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import groupby

import numpy as np

from softsplit.fitted.model import TreeModel
from softsplit.support.lines import cut_lines
from softsplit.support.messages import visible
from softsplit.support.numbers import number
from softsplit.variables import Variable
from softsplit.variables.dates import moment_text
from softsplit.variables.lookup import (
    Lookup,
    counted_edges,
    readable_slopes,
    rounded,
    threshold_of,
)
from softsplit.variables.variable import BOOLEAN, DATE, NUMBER, UNKNOWN

# Characters of a line in a box of a picture.
BOX_WIDTH = 48

# Columns that a statement is made of at most, and its characters.
MOST_COLUMNS = 3
LONGEST_STATEMENT = 160

# Levels with equal points that are listed, where none of them has to be called "other".
LISTED_LEVELS = 3

# Points of a slope are no whole numbers between its units.
ADD, ADD_PARTS = "add the points", 'add the points ("per" counts parts too)'

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
    """

    variable: Variable
    lookup: Lookup
    column: int
    name: str

    @property
    def ranged(self) -> bool:
        """Whether places are ranges of a number or a date."""
        return self.variable.kind in (NUMBER, DATE)

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels as they are written."""
        boolean = self.variable.kind == BOOLEAN
        return ("false", "true") if boolean else tuple(map(level_text, self.variable.levels))

    @cached_property
    def n_values(self) -> int:
        """Ranges or listed levels."""
        return len(self.lookup.edges) + 1 if self.ranged else len(self.levels)

    @property
    def other(self) -> int | None:
        """The place of levels that are not listed: their own, or that of the imputed level."""
        if self.ranged or self.variable.kind == BOOLEAN:
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
        return [*((", ".join(levels), points) for points, levels in sorted(groups.items())), *last]

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
            return f"not {no[0]}" if len(no) == 1 else f"none of {_listed(no)}"
        return _listed(yes)

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


@dataclass(frozen=True)
class PointedQuestion:
    """A question in whole points: it holds where the sum of the points exceeds ``limit``."""

    columns: tuple[PointColumn, ...]
    limit: float

    @property
    def whole(self) -> bool:
        """Whether all sums are whole numbers."""
        return not any(column.lookup.slopes for column in self.columns)

    @property
    def least(self) -> int:
        """Of whole sums the lowest for which the question holds."""
        return int(np.floor(self.limit)) + 1

    @property
    def head(self) -> str:
        """What is asked for above the lines of the columns."""
        return ADD if self.whole else ADD_PARTS

    @property
    def answers(self) -> tuple[str, str]:
        """What is said of sums where the question holds, and of others."""
        if self.whole:
            return f"{self.least} or more", "fewer"
        return f"above {number(self.limit, None)}", "else"

    @property
    def answers_in_full(self) -> tuple[str, str]:
        """The same, each by itself."""
        yes, _ = self.answers
        return yes, f"fewer than {self.least}" if self.whole else f"not {yes}"

    @property
    def sums(self) -> list[int]:
        """All sums that places can have, in ascending order; none where there are slopes."""
        if not self.whole:
            return []
        sums = {0}
        for column in self.columns:
            sums = {s + n for s in sums for n in set(column.points)}
        return sorted(sums)

    @cached_property
    def statement(self) -> str:
        """The question without points; empty where it takes more than a line or two."""
        if len(self.columns) == 1 and not self.whole:
            return self._of_slope()
        if not self.whole or len(self.columns) > MOST_COLUMNS:
            return ""
        text = self._of_conditions() or self._by_level()
        return text if len(text) <= LONGEST_STATEMENT else ""

    @property
    def title(self) -> str:
        """The question on one line."""
        if self.statement:
            return self.statement
        return f"points of {_listed([c.name for c in self.columns], 'and')}: {self.answers[0]}"

    def box_lines(self, most: int | None = None) -> list[str]:
        """The question in lines for a box: the statement, or a line for each column and an end.

        ``most`` columns are listed at most.
        """
        if self.statement:
            return cut_lines(f"{self.statement}?", BOX_WIDTH)
        lines = []
        for column in self.columns[:most]:
            lines += cut_lines(f"{column.name}: {column.entry}", BOX_WIDTH)
        left_out = len(self.columns) - len(self.columns[:most])
        sum_at = f"{self.least} points or more" if self.whole else f"{self.answers[0]} points"
        return [*lines, *([f"... ({left_out} more)"] if left_out else []), f"{sum_at}?"]

    def _of_slope(self) -> str:
        """The threshold of one number whose points only grow or fall; empty if it is no decimal."""
        (column,) = self.columns
        own = column.lookup
        exact = None if column.variable.kind != NUMBER else threshold_of(own, self.limit)
        value = None if exact is None else rounded(float(exact))
        if value is None or Fraction(repr(value)) != exact:
            return ""
        unknown = own.unknown is not None and own.unknown > self.limit
        side = "above" if own.direction > 0 else "below"
        return f"{column.name} is {side} {number(value, None)}{f' or {UNKNOWN}' * unknown}"

    def _of_conditions(self) -> str:
        """Conditions on columns, of which one or all must hold; empty if there are none.

        1. By one column alone: values with which the question holds where all others have their
           fewest points ("or"), or can hold where all others have their most ("and").
        2. The sum where none of them holds, at most, or where all do, at least, must agree.
        """
        for ends, word in ((min, "or"), (max, "and")):
            # 1. Values of each column.
            rest = sum(ends(column.points) for column in self.columns)
            chosen = [
                {k for k, n in enumerate(c.points) if rest - ends(c.points) + n > self.limit}
                for c in self.columns
            ]
            # 2. The sum at worst; columns all or none of whose values do are not asked for.
            pairs = list(zip(self.columns, chosen, strict=True))
            if word == "or":
                worst = sum(
                    max((n for k, n in enumerate(c.points) if k not in own), default=np.inf)
                    for c, own in pairs
                )
            else:
                worst = sum(min((c.points[k] for k in own), default=-np.inf) for c, own in pairs)
            parts = [f"{c.name} is {c.values_text(own)}" for c, own in pairs
                     if 0 < len(own) < len(c.points)]  # fmt: skip
            if parts and (worst > self.limit) == (word == "and"):
                plain = word == "or" and not any(" or " in p.replace(" or more", "") for p in parts)
                return f"{' ' if plain else ', '}{word} ".join(parts)
        return ""

    def _by_level(self) -> str:
        """Values of one column for each level of another; empty if the question is none such."""
        if len(self.columns) != 2 or self.columns[0].ranged == self.columns[1].ranged:
            return ""
        own, by = sorted(self.columns, key=lambda column: not column.ranged)
        chosen: dict[tuple[int, ...], list[int]] = {}
        for place, given in enumerate(by.points):
            holds = tuple(k for k, n in enumerate(own.points) if n + given > self.limit)
            chosen.setdefault(holds, []).append(place)
        cases = []
        for holds, places in chosen.items():
            words = own.values_text(holds)
            words = "never" if not holds else "always" if len(holds) == len(own.points) else words
            cases.append(f"{words} if {by.values_text(places)}")
        return f"{own.name} by {by.name}: {'; '.join(cases)}"


def read_question(
    model: TreeModel, branch: int, written: Callable[[str], str] = visible
) -> PointedQuestion | None:
    """The question of a branch in whole points; None if it is none such."""
    coding, walk = model.coding, model.walk
    if coding is None or walk is None or not coding.pointed:
        return None
    own = np.flatnonzero(walk.coefficients[branch])
    if not len(own) or np.any(walk.coefficients[branch, own] != 1) or not walk.upwards[branch]:
        return None
    columns = []
    for j in own.tolist():
        variable = coding.variables[coding.homes[j]]
        if not variable.lookups:
            return None
        lookup = variable.lookups[j - coding.firsts[coding.homes[j]]]
        columns.append(PointColumn(variable, lookup, j, written(variable.name)))
    spans = [np.ptp(c.points) if c.points else np.inf for c in columns]
    order = np.argsort([-span for span in spans], kind="stable")
    return PointedQuestion(tuple(columns[i] for i in order), float(walk.thresholds[branch]))


def level_text(level: str) -> str:
    """A level as it is written: in quotation marks where it could be misread."""
    if level.isprintable() and not MISLEADING.search(level):
        return level
    return json.dumps(level, ensure_ascii=not level.isprintable())


def _listed(words: Sequence[str], last: str = "or") -> str:
    """ "a, b or c"."""
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end
