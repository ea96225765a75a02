"""Texts with a natural order: sizes, ratings, steps from low to high, ranges of numbers.

A column of texts is ordered if all its levels are steps of one known scale, or all are numbers with
a unit or ranges of numbers that do not overlap ("1-2", "3-5", "6+"). Letters of sizes are told from
other letters by XS, XL or the three of S, M and L. Months and weekdays come round again: they stay
categories, with their levels in the order of the calendar, unless they are said to be ordered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from math import inf

from softsplit.variables.dates import MONTHS, WEEKDAYS

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
"""Known scales from the lowest to the highest step; ``|`` parts names of one step."""

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
    found: dict[str, tuple[float, float]] = {}
    for level in levels:
        ends = _range(level)
        if ends is None:
            return None
        found[level] = ends
    units = {m[2] or "" for m in map(SINGLE.fullmatch, levels) if m and m[2] not in ORDINALS}
    if len(units - {""}) > 1 or all(re.fullmatch(NUMBER, level) for level in levels):
        return None  # codes such as 1a, 2b, or 01, 02
    ordered = sorted(found.values())
    apart = all(a[1] <= b[0] and a != b for a, b in pairwise(ordered))
    if not apart:
        return None
    return {level: float(ordered.index(ends)) for level, ends in found.items()}


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
