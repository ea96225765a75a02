"""Dates: cells that are dates, and what a clock and a calendar say of a date.

part             value                                                  as
days             days since the first day of the training table         a date
hour             the whole hour, 0 to 23                                a number
weekday          Monday to Sunday                                       levels
month            January to December                                    levels
day of year      1 for 1 January, up to 366                             a number
since a column   time from that column's date to this one               a number

A part can be read off a calendar, so that a printed question can be checked by hand. Each is a
variable of its own, and all parts of one column are one feature (``column_groups``). Times are UTC
where a time zone is given.

A day number d counts from 1970-01-01, with the time of day as its fraction. It is rounded to
milliseconds first: a double holds 13/24 of a day only nearly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.variables.contents import DAY, EPOCH, Distinct, occurring, text_of

ISO_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
)

OTHER_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%d")

TIMES = ("", " %H:%M", " %H:%M:%S")

# Texts that ``OTHER_DATES`` may fit and that are no numbers.
DATE_LIKE = re.compile(
    r"(?:\d{1,2}([./-])\d{1,2}\1\d{4}|\d{4}/\d{1,2}/\d{1,2})(?: \d{1,2}:\d\d(?::\d\d)?)?"
)

ISO_LIKE = re.compile(rf"{ISO_DATE.pattern}|{DATE_LIKE.pattern}")

# Cells that a message names.
LISTED_CELLS = 5

# A format of dates is tried if it fits one of this many first values.
TRIED_VALUES = 100


DAYS, HOUR, WEEKDAY, MONTH, YEAR_DAY = "days", "hour", "weekday", "month", "day of year"
PARTS = (DAYS, HOUR, WEEKDAY, MONTH, YEAR_DAY)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip

# The levels of a part that has levels, in the order of the calendar.
NAMES = {WEEKDAY: WEEKDAYS, MONTH: MONTHS}

# Columns of the parts that are looked for unasked.
COLUMNS = {HOUR: 3, WEEKDAY: 7, MONTH: 12}

DAY_MILLISECONDS = 86_400_000.0

# Units of the time since another date, and how many of each make a day.
UNITS = {"days": 1.0, "hours": 24.0, "minutes": 1_440.0, "seconds": 86_400.0}


# A column with fewer different hours has no hour: they are noise of time zones, or dates.
FEWEST_HOURS = 3

# Rows that each column of a part must have: an hour has three (``curves``), a weekday seven, a
# month twelve. Columns of a feature that is chosen cost little more, and fit noise in fewer rows:
# weekdays and months that mean nothing beside a date that does take five points of accuracy from
# a tree of 400 rows, three of 800 and none of 1,600; where they do mean something, they add six,
# eleven and ten.
ROWS_PER_COLUMN = 100

# Days that dates must span for weekdays: two weeks, or a weekday is a single day.
WEEKDAY_SPAN = 14.0

# Days that dates must span for months: less than a year, and a month is a piece of the time line,
# which the date itself tells.
MONTH_SPAN = 330.0

# The time since another date is in the largest unit of which the median is more than this.
MOST_UNITS = 3.0


def milliseconds(days: FloatArray) -> FloatArray:
    """Return day numbers as whole milliseconds."""
    return np.rint(days * DAY_MILLISECONDS)


def part_numbers(part: str, days: FloatArray) -> FloatArray:
    """Return a part of day numbers, NaN for missing ones; levels by their place in ``NAMES``."""
    known = ~np.isnan(days)
    numbers = np.full(len(days), np.nan)
    whole, rest = np.divmod(milliseconds(days[known]), DAY_MILLISECONDS)
    if part == HOUR:
        numbers[known] = np.floor(rest / (DAY_MILLISECONDS / 24))
        return numbers
    if part == WEEKDAY:
        numbers[known] = np.mod(whole + 3, 7)  # 1970-01-01 was a Thursday
        return numbers
    dates = whole.astype(np.int64).astype("datetime64[D]")
    if part == MONTH:
        numbers[known] = np.mod(dates.astype("datetime64[M]").astype(np.int64), 12)
    else:
        first = dates.astype("datetime64[Y]").astype("datetime64[D]")
        numbers[known] = (dates - first).astype(np.int64) + 1
    return numbers


def time_between(days: FloatArray, earlier: FloatArray, unit: str) -> FloatArray:
    """Return the time from ``earlier`` to ``days``, both day numbers, in a unit."""
    passed: FloatArray = milliseconds(days) - milliseconds(earlier)
    return passed / (DAY_MILLISECONDS / UNITS[unit])


def unit_of(passed: FloatArray) -> str:
    """Return a readable unit for times in days: the largest in which most are no small fraction."""
    middle = float(np.median(np.abs(passed)))
    return next((u for u, per in UNITS.items() if middle * per > MOST_UNITS), "seconds")


def usual_parts(days: FloatArray) -> tuple[str, ...]:
    """Return the parts that dates of a training table have, by their resolution and range."""
    fitting = {
        HOUR: len(np.unique(part_numbers(HOUR, days))) >= FEWEST_HOURS,
        WEEKDAY: float(np.ptp(days)) >= WEEKDAY_SPAN,
        MONTH: float(np.ptp(days)) >= MONTH_SPAN,
    }
    enough = [part for part, n in COLUMNS.items() if len(days) >= n * ROWS_PER_COLUMN]
    return (DAYS, *(part for part in enough if fitting[part]))


def part_name(part: str, column: str, since: str = "") -> str:
    """Return the name of a part, as shown to users."""
    return f"{part} from {since} to {column}" if since else f"{part} of {column}"


# --- cells that are dates ------------------------------------------------------------------------


def day_of(value: Any) -> float | None:
    """Return days since 1970-01-01 (UTC where a time zone is given), or None if it is no date."""
    if isinstance(value, pd.Period):
        value = value.to_timestamp()
    if isinstance(value, str):
        text = value.strip()
        if not ISO_DATE.fullmatch(text):
            return None
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            return None
    if isinstance(value, datetime):
        zone = value.utcoffset()
        plain = value.replace(tzinfo=None)
        return (plain - EPOCH - zone) / DAY if zone is not None else (plain - EPOCH) / DAY
    if isinstance(value, date):
        return (datetime.combine(value, time()) - EPOCH) / DAY
    return None


class NotDates(ValueError):
    """Some cells of a column of dates are no dates.

    Attributes
    ----------
    column : str
    cells : tuple of (value, int)
        The values that are no dates, each with the first of its rows, counted from one.
    count, total : int
        Number of cells that are no dates, and of all cells that are not missing.
    """

    def __init__(
        self, column: str, cells: Sequence[tuple[Any, int]], count: int, total: int
    ) -> None:
        super().__init__(column, cells, count, total)
        self.column, self.cells, self.count, self.total = column, tuple(cells), count, total

    def numbered(self, numbers: NDArray[np.intp]) -> NotDates:
        """Return the same error with ``numbers[i]`` as the number of the ``i``-th row."""
        cells = [(value, int(numbers[row - 1])) for value, row in self.cells]
        return NotDates(self.column, cells, self.count, self.total)

    def __str__(self) -> str:
        listed = ", ".join(
            f"{shown(value, 30)} (row {row})" for value, row in self.cells[:LISTED_CELLS]
        )
        more = (
            f" and {len(self.cells) - LISTED_CELLS} more" if len(self.cells) > LISTED_CELLS else ""
        )
        which = "cell is not a date" if self.total == 1 else "cells are not dates"
        return (
            f"column {shown(self.column)}: {self.count:,} of {self.total:,} {which}: {listed}{more}"
            "; correct them, or leave them empty, and write all dates in the same way."
        )


def date_form(content: Distinct, column: str) -> str:
    """Return the ``strptime`` format of all dates of a column, "" for ISO 8601.

    Raise ``ValueError`` if no format fits all values, or if several do and give different dates;
    it is ``NotDates`` if one fits at least half of the cells.
    """
    values = occurring(content)
    if all(day_of(value) is not None for value in values):
        return ""
    texts = [text_of(value).strip() for value in values]
    fitting = _fitting_forms(texts)
    if len(fitting) > 1:
        raise ValueError(
            f"column {shown(column)} holds dates such as {shown(texts[0])}, in which day and month "
            "cannot be told apart; write them as 2026-11-16."
        )
    if not fitting:
        odd_cells = cells_without_date(content, column)
        if 2 * odd_cells.count <= odd_cells.total:
            raise odd_cells
        odd = odd_cells.cells[0][0]
        raise ValueError(
            f"column {shown(column)} holds {shown(odd)} where dates are needed; write them as "
            "2026-11-16."
        )
    return fitting[0]


def cells_without_date(content: Distinct, column: str) -> NotDates:
    """Return the cells that are no dates in the format that fits most cells."""
    codes, values = content
    rows = np.flatnonzero(codes >= 0)
    places, firsts, counts = np.unique(codes[rows], return_index=True, return_counts=True)
    order = np.argsort(firsts)
    values = [values[place] for place in places[order]]
    firsts, counts = rows[firsts[order]], counts[order]
    texts = [text_of(value).strip() for value in values[:TRIED_VALUES]]
    forms = [form + time for form in OTHER_DATES for time in TIMES]
    forms = ["", *(form for form in forms if any(_parsed(text, form) for text in texts))]
    odd = [np.array([days_in(form)(value) is None for value in values]) for form in forms]
    least = min(odd, key=lambda marked: counts[marked].sum())
    cells = [(values[i], int(firsts[i]) + 1) for i in np.flatnonzero(least)]
    return NotDates(column, cells, int(counts[least].sum()), len(rows))


def share_like_dates(content: Distinct) -> float:
    """Return the share of the cells that are written like dates, missing values apart."""
    codes, values = content
    like = [
        isinstance(value, date)
        or (isinstance(value, str) and bool(ISO_LIKE.fullmatch(value.strip())))
        for value in values
    ]
    known = codes[codes >= 0]
    return float(np.mean(np.array(like)[known])) if len(known) else 0.0


def _fitting_forms(texts: list[str]) -> list[str]:
    """Return the ``strptime`` formats of all ``texts``; of formats that agree, the first one."""
    forms = [form + time for form in OTHER_DATES for time in TIMES]
    forms = [form for form in forms if _parsed(texts[0], form)]
    days = {form: tuple(_parsed(text, form) for text in texts) for form in forms}
    different = {read: form for form, read in reversed(days.items()) if all(read)}
    return list(different.values())


def look_like_dates(values: list[Any]) -> bool:
    """Whether all values are texts such as 16.11.2026, 11/16/2026 or 16-11-2026 08:30."""
    return all(isinstance(v, str) and DATE_LIKE.fullmatch(v.strip()) for v in values)


def is_written_date(values: list[Any]) -> bool:
    """Whether all values are dates in one format other than ISO 8601, with only one reading."""
    return look_like_dates(values) and len(_fitting_forms([v.strip() for v in values])) == 1


def days_in(form: str) -> Callable[[Any], float | None]:
    """Return a parser like ``day_of`` that also accepts dates in the format ``form``."""

    def reading(value: Any) -> float | None:
        day = day_of(value)
        if day is not None or not form:
            return day
        parsed = _parsed(text_of(value).strip(), form)
        return None if parsed is None else day_of(parsed)

    return reading


def _parsed(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


def day_text(days: float) -> str:
    """Return days since 1970-01-01 as an ISO date, with the time of day unless it is midnight."""
    try:
        moment = EPOCH + days * DAY
    except OverflowError:
        return f"{days:.0f} days from 1970-01-01"
    if moment.time() == time():
        return moment.date().isoformat()
    return moment.isoformat(sep=" ", timespec="minutes")


def moment_text(days: float) -> str:
    """Return the first whole millisecond from then on, as ``day_text`` with all its digits."""
    moment = EPOCH + timedelta(milliseconds=ceil(days * DAY_MILLISECONDS - 0.01))
    if moment.time() == time():
        return moment.date().isoformat()
    seconds = moment.second or moment.microsecond
    text = moment.isoformat(sep=" ", timespec="auto" if seconds else "minutes")
    return text.rstrip("0") if moment.microsecond else text
