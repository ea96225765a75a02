"""A question of a tree in whole points, in the shortest form that is exact.

form                            printed
levels, one threshold           sex is male or pclass is 3rd; glucose is 120 or more
a threshold for each level      age by sex: 30 or more if male; 50 or more if female
points                          a line for each column: below 25: 0 | from 25: 1 | unknown: 2

A statement is a set of values for each column, of which one, or all, must hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from softsplit.fitted.model import TreeModel
from softsplit.fitted.summary import BINARY
from softsplit.reading.point_columns import PointColumn, listed
from softsplit.support.lines import cut_lines
from softsplit.support.messages import visible
from softsplit.support.numbers import number
from softsplit.variables.lookup import Lookup, rounded, threshold_of
from softsplit.variables.variable import NUMBER, UNKNOWN

# Characters of a line in a box of a picture.
BOX_WIDTH = 48

# Columns that a statement is made of at most, and its characters.
MOST_COLUMNS = 3
LONGEST_STATEMENT = 160

# The opposite of a statement is said if it has less than this share of its characters.
SHORTER = 0.8

# Points of a slope are no whole numbers between its units.
ADD, ADD_PARTS = "add the points", 'add the points ("per" counts parts too)'


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

    @property
    def statement(self) -> str:
        """The question without points; empty where it takes more than a line or two."""
        return self._statement[0]

    @property
    def denied(self) -> bool:
        """Whether the statement holds where the question does not."""
        return self._statement[1]

    def sides(self, words: tuple[str, str]) -> tuple[str, str]:
        """Of the words for yes and no those where the question holds, and where it does not."""
        return (words[1], words[0]) if self.denied else words

    @cached_property
    def _statement(self) -> tuple[str, bool]:
        if len(self.columns) == 1 and not self.whole:
            return self._of_slope(), False
        if not self.whole or len(self.columns) > MOST_COLUMNS:
            return "", False
        text, denied = self._of_conditions()
        text = text or self._by_level()
        return (text, denied) if len(text) <= LONGEST_STATEMENT else ("", False)

    @property
    def title(self) -> str:
        """The question on one line."""
        if self.statement:
            return self.statement
        return f"points of {listed([c.name for c in self.columns], 'and')}: {self.answers[0]}"

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

    def _of_conditions(self) -> tuple[str, bool]:
        """Conditions on columns, of which one or all must hold; empty if there are none.

        1. By one column alone: values with which the question holds where all others have their
           fewest points ("or"), or can hold where all others have their most ("and").
        2. The sum where none of them holds, at most, or where all do, at least, must agree.
        3. The opposite, by all other values, is said where that is much shorter.
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
            pairs = [(c, own) for c, own in pairs if 0 < len(own) < len(c.points)]
            if pairs and (worst > self.limit) == (word == "and"):
                # 3. The shorter of both.
                others = [(c, set(range(len(c.points))) - own) for c, own in pairs]
                said = _conditions(pairs, word)
                opposite = _conditions(others, "and" if word == "or" else "or")
                sizes = [len(text.replace(f" or {UNKNOWN}", "")) for text in (said, opposite)]
                return (opposite, True) if sizes[1] < SHORTER * sizes[0] else (said, False)
        return "", False

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


def _conditions(pairs: Sequence[tuple[PointColumn, set[int]]], word: str) -> str:
    """Columns, each with values of it, of which one or all must be so."""
    parts = [f"{column.name} is {column.values_text(own)}" for column, own in pairs]
    plain = word == "or" and not any(" or " in p.replace(" or more", "") for p in parts)
    return f"{' ' if plain else ', '}{word} ".join(parts)


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
        binary = model.summary.kinds[j] == BINARY and variable.kind == NUMBER
        if binary:  # slopes too are points of 0 and of 1
            values = lookup.values(np.arange(2.0), np.zeros(2, dtype=bool))
            binary = bool(np.all(values == np.round(values)))
            points = tuple(map(int, values))
            lookup = Lookup(points, (1.0,), unknown=lookup.unknown) if binary else lookup
        columns.append(PointColumn(variable, lookup, j, written(variable.name), binary))
    spans = [np.ptp(c.points) if c.points else np.inf for c in columns]
    order = np.argsort([-span for span in spans], kind="stable")
    return PointedQuestion(tuple(columns[i] for i in order), float(walk.thresholds[branch]))
