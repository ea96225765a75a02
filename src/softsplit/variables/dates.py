"""Parts of a date: what a clock and a calendar say of it, and the time since another date.

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

from dataclasses import dataclass

import numpy as np

from softsplit.support.arrays import FloatArray

DAYS, HOUR, WEEKDAY, MONTH, YEAR_DAY = "days", "hour", "weekday", "month", "day of year"
PARTS = (DAYS, HOUR, WEEKDAY, MONTH, YEAR_DAY)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
NAMES = {WEEKDAY: WEEKDAYS, MONTH: MONTHS}
"""The levels of a part that has levels, in the order of the calendar."""

COLUMNS = {HOUR: 3, WEEKDAY: 7, MONTH: 12}
"""Columns of the parts that are looked for unasked."""

DAY_MILLISECONDS = 86_400_000.0
UNITS = {"days": 1.0, "hours": 24.0, "minutes": 1_440.0, "seconds": 86_400.0}
"""Units of the time since another date, and how many of each make a day."""


@dataclass(frozen=True)
class DateOptions:
    """Which parts a date has unless they are named."""

    fewest_hours: int = 3
    """A column with fewer different hours has no hour: they are noise of time zones, or dates."""

    rows_per_column: int = 100
    """Rows that each column of a part must have: an hour has three (``curves``), a weekday seven, a
    month twelve. Columns of a feature that is chosen cost little more, and fit noise in fewer rows:
    weekdays and months that mean nothing beside a date that does take five points of accuracy from
    a tree of 400 rows, three of 800 and none of 1,600; where they do mean something, they add six,
    eleven and ten."""

    weekday_span: float = 14.0
    """Days that dates must span for weekdays: two weeks, or a weekday is a single day."""

    month_span: float = 330.0
    """Days that dates must span for months: less than a year, and a month is a piece of the time
    line, which the date itself tells."""

    most_units: float = 3.0
    """The time since another date is in the largest unit of which the median is more than this."""


OPTIONS = DateOptions()


def milliseconds(days: FloatArray) -> FloatArray:
    """Return day numbers as whole milliseconds."""
    return np.rint(days * DAY_MILLISECONDS)


def part_numbers(part: str, days: FloatArray) -> FloatArray:
    """Return a part of day numbers, NaN for missing ones; levels by their place in ``NAMES``."""
    known = ~np.isnan(days)
    made = np.full(len(days), np.nan)
    whole, rest = np.divmod(milliseconds(days[known]), DAY_MILLISECONDS)
    if part == HOUR:
        made[known] = np.floor(rest / (DAY_MILLISECONDS / 24))
        return made
    if part == WEEKDAY:
        made[known] = np.mod(whole + 3, 7)  # 1970-01-01 was a Thursday
        return made
    dates = whole.astype(np.int64).astype("datetime64[D]")
    if part == MONTH:
        made[known] = np.mod(dates.astype("datetime64[M]").astype(np.int64), 12)
    else:
        first = dates.astype("datetime64[Y]").astype("datetime64[D]")
        made[known] = (dates - first).astype(np.int64) + 1
    return made


def time_between(days: FloatArray, earlier: FloatArray, unit: str) -> FloatArray:
    """Return the time from ``earlier`` to ``days``, both day numbers, in a unit."""
    passed: FloatArray = milliseconds(days) - milliseconds(earlier)
    return passed / (DAY_MILLISECONDS / UNITS[unit])


def unit_of(passed: FloatArray) -> str:
    """Return a readable unit for times in days: the largest in which most are no small fraction."""
    middle = float(np.median(np.abs(passed)))
    return next((u for u, per in UNITS.items() if middle * per > OPTIONS.most_units), "seconds")


def usual_parts(days: FloatArray) -> tuple[str, ...]:
    """Return the parts that dates of a training table have, by their resolution and range."""
    fitting = {
        HOUR: len(np.unique(part_numbers(HOUR, days))) >= OPTIONS.fewest_hours,
        WEEKDAY: float(np.ptp(days)) >= OPTIONS.weekday_span,
        MONTH: float(np.ptp(days)) >= OPTIONS.month_span,
    }
    enough = [part for part, n in COLUMNS.items() if len(days) >= n * OPTIONS.rows_per_column]
    return (DAYS, *(part for part in enough if fitting[part]))


def part_name(part: str, column: str, since: str = "") -> str:
    """Return the name of a part, as shown to users."""
    return f"{part} from {since} to {column}" if since else f"{part} of {column}"
