"""The columns of a table as the exported program reads and codes them.

This is the one place that knows ``Variable``. Levels, truth values, weekdays and months are finite:
their coded columns are tabulated by ``Variable.coded`` itself. Numbers and dates are coded by
formulas, whose hinges are recognised by what ``hinges`` makes of values on both sides of a knot.

Months and days of the year are those of the civil calendar, counted from 1 March so that a leap day
is the last of a year (Hinnant, chrono-compatible low-level date algorithms, 2013).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from softsplit.exports.expressions import (
    MISSING,
    Column,
    Expression,
    Name,
    Op,
    either,
    floor,
    if_,
    looked_up,
    minus,
    over,
    times,
    total,
)
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.variables import Cells, Coding, Variable
from softsplit.variables.curves import hinges
from softsplit.variables.dates import (
    DAY_MILLISECONDS,
    HOUR,
    MONTH,
    NAMES,
    UNITS,
    WEEKDAY,
    YEAR_DAY,
)
from softsplit.variables.lookup import Lookup
from softsplit.variables.variable import BOOLEAN, DATE, NUMBER

# Gives the name of a cell.
Read = Callable[[Column], Name]

# Gives a name to an expression.
Define = Callable[[str, Expression], Expression]


def coded(coding: Coding, i: int, read: Read, define: Define) -> list[Expression]:
    """The coded columns of variable ``i``, in their order."""
    variable, place = coding.variables[i], coding.places[i]
    if variable.part:
        columns = _coded_part(coding, i, read, define)
    elif variable.levels or variable.kind == BOOLEAN:
        kind = "text" if variable.levels else "truth"
        cell = read(Column(place, variable.name, kind, variable.levels))  # type: ignore[arg-type]
        count = len(variable.levels) or 2
        numbers = np.concatenate([[np.nan, np.nan], np.arange(count, dtype=float)])
        rows = np.arange(count + 2)
        columns = _tabulated(variable, cell, Cells(numbers, rows == 0, rows == 1))
    elif variable.kind in (NUMBER, DATE):
        kind = "number" if variable.kind == NUMBER else "day"
        cell = read(Column(place, variable.name, kind, form=variable.form))  # type: ignore[arg-type]
        value = minus(cell, float(variable.origin))
        columns = _formulas(variable, value, Op("missing", (cell,)))
    else:
        raise _unknown(variable)
    if len(columns) != variable.n_columns:
        raise _unknown(variable)
    return columns


def _tabulated(variable: Variable, cell: Name, cells: Cells) -> list[Expression]:
    """Columns of a variable of finitely many values: missing, unlisted, and its levels."""
    return [looked_up(cell, column) for column in variable.coded(cells).T.tolist()]


def _formulas(variable: Variable, value: Expression, missing: Op) -> list[Expression]:
    """Columns of a number or a date: its look-ups, or its value, its hinges, and whether it is
    missing."""
    if variable.lookups:
        return [_pointed(variable, own, value, missing) for own in variable.lookups]
    columns = [if_(missing, float(variable.middle), value)]
    columns += [_hinge(variable, n, value, missing) for n in range(variable.n_hinges)]
    return [*columns, *([if_(missing, 1.0, 0.0)] * variable.has_missing)]


def _pointed(variable: Variable, own: Lookup, value: Expression, missing: Op) -> Expression:
    """Points of a number or a date, those of the last range that has begun."""
    if own.slopes:
        terms = [times(float(own.slopes[0]), value)]
        for change, knot in zip(np.diff(own.slopes).tolist(), own.knots, strict=True):
            terms.append(times(float(change), Op("max", (minus(value, knot), 0.0))))
        known = total(terms) if own.unit == 1.0 else over(total(terms), own.unit)
    else:
        known = float(own.points[0])
        for edge, points in zip(own.edges, own.points[1:], strict=True):
            known = if_(Op("at least", (value, edge)), float(points), known)
    blank = own.values(np.array([variable.middle]), np.array([True]))
    return if_(missing, float(blank[0]), known)


def _hinge(variable: Variable, n: int, value: Expression, missing: Op) -> Expression:
    """A hinge of a number; that of a missing value is a number."""
    knot = float(variable.knots[n % len(variable.knots)])
    step = 2.0 * max(1.0, abs(knot))
    ends = np.array([knot - step, knot + step])
    below, above = hinges(ends, variable.knots)[:, n].tolist()
    at_missing = float(hinges(np.array([variable.middle]), variable.knots)[0, n])
    if (below, above) == (0.0, ends[1] - knot):
        hinge: Expression = Op("max", (minus(value, knot), 0.0))
    elif (below, above) == (ends[0], knot):
        hinge = Op("min", (value, knot))
    elif (below, above) == (knot - ends[0], 0.0):
        hinge = Op("max", (minus(knot, value), 0.0))
    else:
        raise _unknown(variable)
    return if_(missing, at_missing, hinge)


# --- parts of dates -------------------------------------------------------------------------------


def _coded_part(coding: Coding, i: int, read: Read, define: Define) -> list[Expression]:
    variable, place = coding.variables[i], coding.places[i]
    cell = read(Column(place, variable.column, "day", form=variable.form))
    missing = Op("missing", (cell,))
    moment = _milliseconds(cell, place, define)
    if variable.since:
        at = coding.names.index(variable.since)
        other = read(Column(at, variable.since, "day", form=variable.since_form))
        missing = either([missing, Op("missing", (other,))])
        passed = minus(moment, _milliseconds(other, at, define))
        return _formulas(variable, over(passed, DAY_MILLISECONDS / UNITS[variable.part]), missing)
    whole = define(f"day{place}", floor(over(moment, DAY_MILLISECONDS)))
    if variable.part == HOUR:
        rest = minus(moment, times(DAY_MILLISECONDS, whole))
        return _formulas(variable, floor(over(rest, DAY_MILLISECONDS / 24)), missing)
    if variable.part == YEAR_DAY:
        return _formulas(variable, _year_day(whole, place, define), missing)
    if variable.part not in (WEEKDAY, MONTH):
        raise _unknown(variable)
    if variable.part == WEEKDAY:
        shifted = define(f"week{place}", total([whole, 3.0]))
        position = minus(shifted, times(7.0, floor(over(shifted, 7.0))))
        days = 4.0 + np.arange(7)  # from a Monday on
    else:
        position = _month(whole, place, define)
        days = np.array(np.arange("1970-01", "1971-01", dtype="datetime64[M]"), "datetime64[D]")
        days = days.astype(np.int64).astype(float)
    at_level = define(f"at{i}", if_(missing, float(MISSING), position))
    assert isinstance(at_level, Name) and len(days) == len(NAMES[variable.part])
    known: FloatArray = np.concatenate([[np.nan, np.nan], days])
    return _tabulated(variable, at_level, variable.cells_of_days(known))


def _milliseconds(cell: Name, place: int, define: Define) -> Expression:
    """Whole milliseconds since 1970-01-01; 0 for a missing date, which is told apart elsewhere."""
    rounded = floor(total([times(DAY_MILLISECONDS, cell), 0.5]))
    return define(f"ms{place}", if_(Op("missing", (cell,)), 0.0, rounded))


def _from_march(
    whole: Expression, place: int, define: Define
) -> tuple[Expression, Expression, Expression]:
    """Year of a period of 400 years, day of that year and month of it, from 1 March on."""
    z = define(f"z{place}_days", total([whole, 719_468.0]))
    era = define(f"era{place}", minus(z, times(146_097.0, floor(over(z, 146_097.0)))))
    parts: Sequence[Expression] = [
        era,
        times(-1.0, floor(over(era, 1_460.0))),
        floor(over(era, 36_524.0)),
        times(-1.0, floor(over(era, 146_096.0))),
    ]
    year = define(f"year{place}", floor(over(total(parts), 365.0)))
    past = [times(-365.0, year), times(-1.0, floor(over(year, 4.0))), floor(over(year, 100.0))]
    day = define(f"since_march{place}", total([era, *past]))
    month = define(f"march{place}", floor(over(total([times(5.0, day), 2.0]), 153.0)))
    return year, day, month


def _month(whole: Expression, place: int, define: Define) -> Expression:
    """0 for January."""
    month = _from_march(whole, place, define)[2]
    return if_(Op("at least", (month, 10.0)), minus(month, 10.0), total([month, 2.0]))


def _year_day(whole: Expression, place: int, define: Define) -> Expression:
    """1 for 1 January."""
    year, day, month = _from_march(whole, place, define)

    def left_over(by: float) -> Expression:
        return minus(year, times(by, floor(over(year, by))))

    common = either(
        [
            Op("greater", (left_over(4.0), 0.0)),
            Op("all", (Op("equal", (left_over(100.0), 0.0)), Op("greater", (year, 0.0)))),
        ]
    )
    later = if_(common, total([day, 60.0]), total([day, 61.0]))
    return if_(Op("at least", (month, 10.0)), minus(day, 305.0), later)


def _unknown(variable: Variable) -> ValueError:
    return ValueError(
        f"column {shown(variable.name)} ({variable.kind}) is coded in a way that exports do not "
        "know; use save_model instead."
    )
