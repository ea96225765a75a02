"""One block of a score card: the lines of one column of the table, and the points of each.

The values of a variable fall into *bins*: ranges of a number or a date, levels of a category, one
bin for levels that are not listed and one for missing values. Bins with the same points share a
line of the card:

    number, date    below a; a to below b; b or more           (neighbours share a line)
    levels          male, any other level; female              (any levels may share a line)
    missing         a line of its own where training had missing values; else the line of the value
                    that is imputed says "or missing"

What is written is all there is: ``BlockPoints.of`` gives the points that the lines say, with
numbers compared as they are printed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.numbers import number
from softsplit.variables import Cells, Variable
from softsplit.variables.dates import day_text
from softsplit.variables.variable import BOOLEAN, CATEGORY, DATE, NUMBER

ANY_OTHER, MISSING, OR_MISSING, ANY_VALUE = (
    "any other level",
    "missing",
    ", or missing",
    "any value",
)
MOST_NAMED = 3
"""Levels that are named beside "any other level" on one line; more of them are not."""


@dataclass(frozen=True)
class Bins:
    """The bins of one variable: ranges or levels, then unlisted levels and missing values.

    Attributes
    ----------
    home : int
        The variable, by its place in the coding.
    variable : Variable
    edges : array of shape (n_ranges - 1,)
        Of numbers and dates: range k goes from ``edges[k - 1]`` up to below ``edges[k]``.
    """

    home: int
    variable: Variable
    edges: FloatArray

    @property
    def ranged(self) -> bool:
        return self.variable.kind in (NUMBER, DATE)

    @property
    def levels(self) -> tuple[str, ...]:
        return ("false", "true") if self.variable.kind == BOOLEAN else self.variable.levels

    @property
    def n_values(self) -> int:
        """Ranges or listed levels."""
        return len(self.edges) + 1 if self.ranged else len(self.levels)

    @property
    def own_other(self) -> bool:
        """Whether unlisted levels have a bin of their own; else they count as the imputed level."""
        variable = self.variable
        return variable.kind == CATEGORY and (variable.whole or bool(variable.shares))

    @property
    def other(self) -> int:
        """The bin of unlisted levels."""
        return self.n_values if self.own_other else self._imputed

    @property
    def missing(self) -> int:
        """The bin of missing values."""
        if self.variable.has_missing:
            return self.n_values + self.own_other
        return self.n_values if self.variable.shares else self._imputed

    @property
    def _imputed(self) -> int:
        if self.ranged:
            return int(np.searchsorted(self.edges, self.variable.middle, side="right"))
        return int(self.variable.middle)

    @property
    def size(self) -> int:
        """Bins in all."""
        return self.n_values + self.own_other + self.variable.has_missing

    def of(self, cells: Cells) -> NDArray[np.intp]:
        """The bin of each cell."""
        known = ~(cells.missing | cells.unlisted)
        bins = np.where(cells.missing, self.missing, self.other).astype(np.intp)
        values = cells.numbers[known]
        if self.ranged:
            bins[known] = np.searchsorted(self.edges, values, side="right")
        else:
            bins[known] = values.astype(np.intp)
        return bins

    def examples(self, low: float, high: float) -> Cells:
        """A cell of each bin; of ranges the middle, within ``low`` and ``high`` at the ends."""
        values = np.arange(float(self.n_values))
        if self.ranged and len(self.edges):
            ends = [min(low, self.edges[0]), *self.edges, max(high, self.edges[-1])]
            values = np.array([(a + b) / 2 for a, b in pairwise(ends)])
        elif self.ranged:
            values = np.array([(low + high) / 2])
        more = [np.nan] * (self.size - self.n_values)
        kind = np.zeros((2, self.size), dtype=bool)
        if self.variable.has_missing:
            kind[0, -1] = True
        if self.own_other:
            kind[1, self.n_values] = True
        return Cells(np.array([*values, *more]), kind[0], kind[1])


@dataclass(frozen=True)
class BlockPoints:
    """Points of one variable at one question: ``points[k]`` of bin k, whole numbers from 0."""

    bins: Bins
    points: NDArray[np.int64]

    @property
    def name(self) -> str:
        return self.bins.variable.name

    def of(self, cells: Cells) -> NDArray[np.int64]:
        """Points of cells of the variable."""
        return np.asarray(self.points[self.bins.of(cells)])

    def merged(self) -> BlockPoints:
        """The same without edges at which points do not change."""
        bins = self.bins
        if not bins.ranged:
            return self
        changes = np.flatnonzero(np.diff(self.points[: bins.n_values]))
        kept = [*self.points[changes].tolist(), *self.points[bins.n_values - 1 :].tolist()]
        few = Bins(bins.home, bins.variable, bins.edges[changes])
        return BlockPoints(few, np.array(kept, dtype=np.int64))

    def lines(self) -> list[tuple[str, int]]:
        """The lines of the block: values in words, and their points."""
        bins, missing = self.bins, self.bins.variable.has_missing
        if bins.ranged:
            places = list(range(bins.n_values))
            lines = [
                (text, int(self.points[k])) for k, text in zip(places, self._ranges(), strict=True)
            ]
            if not missing:
                text, points = lines[bins.missing]
                lines[bins.missing] = (text + OR_MISSING, points)
        else:
            lines = self._level_lines()
        return [*lines, *([(MISSING, int(self.points[-1]))] if missing else [])]

    def _ranges(self) -> list[str]:
        bins = self.bins
        if not len(bins.edges):
            return [ANY_VALUE]
        if bins.variable.kind == DATE:
            ends = [day_text(edge + bins.variable.origin) for edge in bins.edges]
            words = "before {}", "{} to before {}", "{} or later"
        else:
            ends = [number(edge, None) for edge in bins.edges]
            words = "below {}", "{} to below {}", "{} or more"
        between = [words[1].format(*pair) for pair in pairwise(ends)]
        return [words[0].format(ends[0]), *between, words[2].format(ends[-1])]

    def _level_lines(self) -> list[tuple[str, int]]:
        bins = self.bins
        rest = bins.variable.kind != BOOLEAN  # levels that are not listed can occur
        lines = []
        for points in sorted(set(self.points[: bins.n_values + bins.own_other].tolist())):
            named = [
                level_text(bins.levels[k]) for k in range(bins.n_values) if self.points[k] == points
            ]
            if rest and self.points[bins.other] == points:
                named = [*(named if len(named) <= MOST_NAMED else []), ANY_OTHER]
            text = ", ".join(named)
            if not bins.variable.has_missing and self.points[bins.missing] == points:
                text += OR_MISSING
            lines.append((text, int(points)))
        return lines


def level_text(level: str) -> str:
    """A level as it is printed: in quotation marks where it could be misread."""
    plain = level.isprintable() and level == level.strip() and not set(level) & set(',"')
    if plain and level not in ("", ANY_OTHER, MISSING, ANY_VALUE):
        return level
    return json.dumps(level, ensure_ascii=not level.isprintable())


def readable(low: float, high: float, near: float, whole: bool = False) -> float:
    """The shortest decimal number in (low, high], of those of that length the closest to ``near``.

    With ``whole``, a whole number where there is one.
    """
    if not (np.isfinite(low) and np.isfinite(high)) or low >= high:
        return high
    if low < 0.0 <= high and not whole:
        return 0.0
    exponent = int(np.floor(np.log10(max(abs(low), abs(high))))) + 1
    for power in range(exponent, exponent - 18, -1):
        if whole and power < 0:
            break
        step = 10.0**power
        for point in sorted(
            {np.floor(near / step), np.ceil(near / step), np.floor(high / step)},
            key=lambda k: abs(k * step - near),
        ):
            value = float(f"{int(point)}e{power}")
            if low < value <= high:
                return value + 0.0
    return high


def spread_edges(values: FloatArray, most: int, whole: bool) -> list[float]:
    """Readable numbers that part the values: about ``most`` of them by rank, more by distance.

    With ``whole``, whole numbers alone.
    """
    values = np.sort(values[np.isfinite(values)])
    distinct = np.unique(values)
    if len(distinct) - 1 <= most:
        places = [(a, (a + b) / 2, b) for a, b in pairwise(distinct.tolist())]
    else:
        last = len(values) - 1
        around = np.arange(1, most + 1)[:, None] + np.array([-0.25, 0.0, 0.25])
        picked = np.rint(around * len(values) / (most + 1)).astype(int).clip(0, last)
        step = (values[-1] - values[0]) / (most // 2)
        even = (values[0] + step * np.arange(1, most // 2)).tolist()
        places = [(a, m, b) for a, m, b in values[picked].tolist()]
        places += [(m - step / 4, m, m + step / 4) for m in even]
    edges = {readable(a, b, m, whole) for a, m, b in places if a < b}
    return sorted(e for e in edges if not whole or e == round(e))


def gap_edge(values: FloatArray, at: float, included: bool, whole: bool) -> float:
    """A readable edge that parts values as ``at`` does; ``included``: ``at`` itself is below it."""
    at = float(f"{at:.12g}")
    under = values <= at if included else values < at
    low = float(values[under].max()) if np.any(under) else -np.inf
    high = float(values[~under].min()) if not np.all(under) else np.inf
    if whole:
        edge = np.floor(at) + 1.0 if included else np.ceil(at)
        return float(edge)
    if low < at <= high:
        return at
    return readable(max(low, at - 0.01 * abs(at)), min(high, at + 0.01 * abs(at)), at)


def day_edges(edges: FloatArray, reach: FloatArray) -> list[float]:
    """Whole days since 1970-01-01 moved to the first of a year or of a month within ``reach``."""
    moved = set()
    for edge, far in zip(edges, reach, strict=True):
        days = np.arange(np.ceil(edge - far), np.floor(edge + far) + 1).astype("datetime64[D]")
        for unit in ("Y", "M"):
            firsts = days[days == days.astype(f"datetime64[{unit}]").astype("datetime64[D]")]
            if len(firsts):
                edge = float(firsts[0].astype(np.int64))
                break
        moved.add(float(edge))
    return sorted(moved)
