"""The levels of a category: which are listed, their order, and columns of texts that are none.

Levels of few rows are merged. A column of texts is ordered if all its levels are steps of one known
scale (sizes, ratings, steps from low to high), or all are numbers with a unit or ranges of numbers
that do not overlap ("1-2", "3-5", "6+"). Letters of sizes are told from other letters by XS, XL or
the three of S, M and L. Months and weekdays come round again: they stay categories, with their
levels in the order of the calendar, unless they are said to be ordered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf

import numpy as np
import pandas as pd

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.variables.contents import Distinct, distinct, number_of, occurring, text_of
from softsplit.variables.curves import median
from softsplit.variables.dates import (
    MONTHS,
    WEEKDAYS,
    cells_without_date,
    look_like_dates,
    share_like_dates,
)
from softsplit.variables.variable import CATEGORY, ORDERED, Variable, checksums

# A hint that a column is used as what it looks like, even if it looks useless.
KEEP = "keep"

# A category of more levels is encoded by class shares instead of one indicator per level.
MOST_COLUMNS = 30

# Levels with fewer rows are merged, if the table has at least ten times as many rows.
RARE_ROWS = 5

# Of more rare levels no checksums are kept: they would make the model file larger than a
# megabyte, and new levels then count as rare.
MOST_RARE = 100_000

# In a table of fewer rows no column is taken for an identifier.
IDENTIFIER_ROWS = 20

# If at least this share of the cells of an unusable column are dates, the reason says so: the
# other cells are probably typing errors.
NEARLY_DATES_SHARE = 0.9

# Texts with more words on average are free text.
FREE_TEXT_WORDS = 2.5

# Reasons why a column is unusable; the last begins that of dates with a few other cells.
NO_VALUES, CONSTANT, IDENTIFIER = "no values", "one value only", "an identifier"
FREE_TEXT, NEARLY_DATES = "free text", "dates except for"


def fewest_rows(total: float) -> int:
    """Return the rows that a level needs to be listed, in a table of ``total`` rows."""
    return max(1, min(RARE_ROWS, int(total // 10)))


def learn_levels(
    name: str,
    column: pd.Series,
    weight: FloatArray,
    hint: str | None = KEEP,
    kind: str = CATEGORY,
    order: tuple[str, ...] = (),
) -> Variable | str:
    """Return a category or an ordered variable, or the reason why its column is unusable.

    ``hint`` is the kind that the user names, and ``order`` the levels, if named; without a hint the
    column may be unusable. Shares of classes are learned later.
    """
    # 1. The weight of each level; equal texts of different values are one level.
    content = distinct(column)
    codes, values = content
    texts = [text_of(value) for value in values]
    counts: dict[str, float] = {}
    missing = bool(np.any((codes < 0) & (weight > 0)))
    sums = np.bincount(codes[codes >= 0], weight[codes >= 0], minlength=len(values))
    for text, count in zip(texts, sums, strict=True):
        if count > 0:
            counts[text] = counts.get(text, 0.0) + float(count)
    total = sum(counts.values())
    if not counts:
        return NO_VALUES
    if len(counts) == 1 and not missing:
        return CONSTANT  # also against the user's hint: there would be no column
    if kind == ORDERED:
        ordered = _order(name, [text for text in texts if text in counts], column, order)
        return _ordered(name, ordered, counts, missing)
    # 2. Levels of enough rows are listed, unless the column is no category or has an order.
    fewest = fewest_rows(total)
    kept = tuple(sorted(text for text, count in counts.items() if count >= fewest))
    if hint is None and (why := _reason_unusable(counts, kept, total, content)):
        return why
    natural = natural_order(list(counts)) if hint in (None, KEEP) else None
    if natural is not None:
        return _ordered(name, natural, counts, missing)
    kept = calendar_order(kept) or kept
    if not kept:
        kept = tuple(sorted(sorted(counts), key=lambda text: -counts[text])[:MOST_COLUMNS])
    # 3. A missing value counts as the most frequent level, a rare one as "other".
    middle = max(range(len(kept)), key=lambda i: counts[kept[i]])
    merged = len(kept) < len(counts)
    rare_levels = counts.keys() - kept
    return Variable(
        name,
        CATEGORY,
        float(middle),
        missing,
        kept,
        other=merged and 1 < len(kept) <= MOST_COLUMNS,
        whole=merged or len(kept) > 2,
        rare=checksums(rare_levels) if len(rare_levels) <= MOST_RARE else None,
    )


def _ordered(
    name: str, levels: tuple[str, ...], counts: Mapping[str, float], missing: bool
) -> Variable:
    """Return a variable whose levels have an order."""
    share = np.array([counts.get(text, 0.0) for text in levels])
    middle = np.floor(median(np.arange(float(len(levels))), share))
    return Variable(name, ORDERED, float(middle), missing, levels, rare="")


def _order(
    name: str, levels: list[str], column: pd.Series, order: tuple[str, ...]
) -> tuple[str, ...]:
    """Return levels in order: of the user, of a pandas category, or the natural one."""
    if order:
        strange = [level for level in levels if level not in order]
        if strange:
            raise ValueError(
                f"column {shown(name)} holds {shown(strange[0])}, which its order "
                f"{shown(' < '.join(order))} does not name; add it to feature_types."
            )
        return order
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        return tuple(levels)
    numbers = [number_of(level) for level in levels]
    if all(number is not None for number in numbers):
        return tuple(sorted(levels, key=lambda level: number_of(level) or 0.0))
    known = natural_order(levels) or calendar_order(levels)
    if known is None:
        raise ValueError(
            f"column {shown(name)} has no order that is known; write it down, such as "
            f"feature_types={{{name!r}: 'ordered: {levels[0]} < {levels[-1]}'}}."
        )
    return known


def _reason_unusable(
    counts: dict[str, float], kept: tuple[str, ...], total: float, content: Distinct
) -> str:
    """Return why a column of texts is no category, or "" if it is one."""
    if total < IDENTIFIER_ROWS or (kept and len(counts) <= total / 2):
        return ""
    if len(counts) <= RARE_ROWS:
        return ""
    if look_like_dates(occurring(content)):
        example = shown(next(iter(counts)), 20)
        return f"dates such as {example}, day and month unclear: write them as 2026-11-16"
    if share_like_dates(content) >= NEARLY_DATES_SHARE:
        odd_cells = cells_without_date(content, "")
        count, total = odd_cells.count, odd_cells.total
        if count <= (1 - NEARLY_DATES_SHARE) * total:
            example = shown(odd_cells.cells[0][0], 20)
            return f"{NEARLY_DATES} {count:,} of {total:,} cells, such as {example}"
    odd = _typing_error(content)
    if odd is not None:
        return f"texts beside numbers, such as {shown(odd, 20)}"
    words = np.mean([len(text.split()) for text in counts])
    return FREE_TEXT if words > FREE_TEXT_WORDS else IDENTIFIER


def _typing_error(content: Distinct) -> str | None:
    """Return the first non-numeric text of a column in which under 10 % of cells are such."""
    codes, values = content
    numbers = [number_of(value) for value in values]
    odd = np.array([number is None for number in numbers] + [False])[codes]
    if not 0 < odd.mean() < 0.1:
        return None
    return str(values[codes[np.argmax(odd)]])


def needs_shares(variable: Variable) -> bool:
    """Whether a category has too many levels for one indicator each."""
    return variable.kind == CATEGORY and len(variable.levels) > MOST_COLUMNS


# Known scales from the lowest to the highest step; ``|`` parts names of one step.
SCALES: tuple[str, ...] = (
    "none|no < minimal < very low|vlow|v low < low|lo < rather low|medium low < "
    "mid|med|medium|middle|moderate|average|normal < rather high|medium high < high|hi < "
    "very high|vhigh|v high < extreme|extremely high|critical",
    "none|no < minimal < mild|minor|slight|light < moderate|medium < serious|major|severe|heavy < "
    "very severe|critical|extreme|fatal",
    "xxxs|3xs < xxs|2xs < xs < s < m < l < xl < xxl|2xl < xxxl|3xl < xxxxl|4xl",
    "tiny < extra small|very small < small < mid|med|medium|middle < large|big < "
    "extra large|very large|very big < huge",
    "terrible|awful < very bad|very poor < bad|poor < fair|ok|okay|average|mediocre|satisfactory < "
    "good < very good < excellent|ideal|outstanding|perfect",
    "unacceptable|unsatisfactory < acceptable|satisfactory < good < very good < "
    "excellent|outstanding",
    "fail < poor < basic < premium < ideal",
    "strongly disagree < disagree < somewhat disagree|slightly disagree < "
    "neutral|undecided|neither|neither agree nor disagree < somewhat agree|slightly agree < "
    "agree < strongly agree",
    "very dissatisfied < dissatisfied < neutral < satisfied < very satisfied",
    "very unlikely < unlikely < neutral|possible < likely < very likely",
    "never < almost never|very rarely < rarely|seldom < occasionally|sometimes < often|frequently "
    "< very often|usually|mostly < always",
    "never < yearly|annually < quarterly < monthly < weekly < daily < hourly",
    "beginner|novice < intermediate < advanced < expert",
    "young < middle aged|middle < old|elderly",
    "first < second < third < fourth < fifth < sixth < seventh < eighth < ninth < tenth",
    "slow < medium|moderate|normal < fast < very fast",
    "cold < cool < mild < warm < hot",
    "bronze < silver < gold < platinum < diamond",
)
NUMBER = r"[+-]?\d+(?:[.,]\d+)*"
UNIT = r"(?:\s*[a-z%$€£]+)?"
RANGE = re.compile(rf"[$€£]?({NUMBER}){UNIT}\s*(?:-|–|to|up to|bis)\s*[$€£]?({NUMBER}){UNIT}")  # noqa: RUF001
BELOW = re.compile(rf"(?:<=?|under|below|up to|less than)\s*[$€£]?({NUMBER}){UNIT}")
ABOVE = re.compile(
    rf"(?:>=?|over|above|more than)\s*[$€£]?({NUMBER}){UNIT}"
    rf"|[$€£]?({NUMBER}){UNIT}\s*(?:\+|or more|and more|and over|or older|more)"
)
SINGLE = re.compile(rf"[$€£]?({NUMBER})(st|nd|rd|th|\s*[a-z%€]+)?")
ORDINALS = ("st", "nd", "rd", "th")
LETTERS = {"s", "m", "l"}
CALENDAR = tuple(
    " < ".join(f"{name}|{name[:3]}|{name[:4]}" for name in map(str.casefold, names))
    for names in (MONTHS, WEEKDAYS)
)


def natural_order(levels: Sequence[str]) -> tuple[str, ...] | None:
    """Return the levels from the lowest to the highest, or None if they have no natural order.

    Fewer than three levels have none: a level and its opposite are one column anyway.
    """
    if len(levels) < 3:
        return None
    plain = {level: _plain(level) for level in levels}
    texts = list(plain.values())
    return _sorted(plain, _on_a_scale(texts, SCALES) or _by_numbers(texts))


def calendar_order(levels: Sequence[str]) -> tuple[str, ...] | None:
    """Return months or weekdays in the order of the calendar, or None if levels are neither."""
    plain = {level: _plain(level) for level in levels}
    return _sorted(plain, _on_a_scale(list(plain.values()), CALENDAR))


def _sorted(plain: dict[str, str], places: dict[str, float] | None) -> tuple[str, ...] | None:
    if places is None:
        return None
    return tuple(sorted(plain, key=lambda level: places[plain[level]]))


def _plain(level: str) -> str:
    """Return a level in small letters, with single spaces; hyphens part words, but not numbers."""
    between = r"\s+" if re.search(r"\d", level) else r"[\s_-]+"
    return re.sub(between, " ", level.strip().casefold())


def _on_a_scale(levels: list[str], scales: Sequence[str]) -> dict[str, float] | None:
    """Return the steps of the first scale that has all levels, on different steps."""
    for scale in scales:
        steps = {
            name: float(place)
            for place, names in enumerate(scale.split(" < "))
            for name in names.split("|")
        }
        if not all(level in steps for level in levels):
            continue
        if all(len(level) == 1 for level in levels) and not set(levels) >= LETTERS:
            continue
        if len({steps[level] for level in levels}) == len(levels):
            return steps
    return None


def _by_numbers(levels: list[str]) -> dict[str, float] | None:
    """Return the middle of each range of numbers, if ranges do not overlap; else None."""
    ranges: dict[str, tuple[float, float]] = {}
    for level in levels:
        ends = _range(level)
        if ends is None:
            return None
        ranges[level] = ends
    units = {m[2] or "" for m in map(SINGLE.fullmatch, levels) if m and m[2] not in ORDINALS}
    if len(units - {""}) > 1 or all(re.fullmatch(NUMBER, level) for level in levels):
        return None  # codes such as 1a, 2b, or 01, 02
    ordered = sorted(ranges.values())
    apart = all(a[1] <= b[0] and a != b for a, b in pairwise(ordered))
    if not apart:
        return None
    return {level: float(ordered.index(ends)) for level, ends in ranges.items()}


def _range(level: str) -> tuple[float, float] | None:
    """Return the ends of a range of numbers, equal ones for a single number."""
    if match := RANGE.fullmatch(level):
        low, high = map(_number, match.groups())
        return (low, high) if low <= high else None
    if match := BELOW.fullmatch(level):
        return -inf, _number(match[1])
    if match := ABOVE.fullmatch(level):
        return _number(match[1] or match[2]), inf
    if match := SINGLE.fullmatch(level):
        return _number(match[1]), _number(match[1])
    return None


def _number(text: str) -> float:
    """Return a number of which commas part thousands."""
    return float(text.replace(",", ""))
