"""Inference of the kind of a variable from its column, and of columns that no tree can use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.variables.contents import PADDED, distinct, number_of, occurring, truth_of
from softsplit.variables.curves import median
from softsplit.variables.dates import (
    DAYS,
    NAMES,
    PARTS,
    date_form,
    day_of,
    is_written_date,
    part_name,
    part_numbers,
    time_between,
    unit_of,
    usual_parts,
)
from softsplit.variables.levels import (
    CONSTANT,
    IDENTIFIER,
    IDENTIFIER_ROWS,
    KEEP,
    NO_VALUES,
    RARE_ROWS,
    learn_levels,
)
from softsplit.variables.variable import (
    BOOLEAN,
    CATEGORY,
    DATE,
    NUMBER,
    ORDERED,
    DayReader,
    Variable,
)

DROP = "drop"

# Values of ``feature_types``; "ordered" and "date" may say more, see ``Hint``.
HINTS = (NUMBER, CATEGORY, ORDERED, DATE, KEEP, DROP)


class Hint(NamedTuple):
    """What the user says about a column.

    Attributes
    ----------
    kind : str
        One of ``HINTS``.
    levels : tuple of str
        Of "ordered: low < mid < high": the levels in order. Empty: they have a natural order.
    parts : tuple of str, optional
        Of "date: hour, weekday": the parts of the date. None: those that its range gives.
    since : str
        Of "date since signup" and "date: days, since signup": the other column.
    """

    kind: str
    levels: tuple[str, ...] = ()
    parts: tuple[str, ...] | None = None
    since: str = ""

    @classmethod
    def of(cls, text: Any) -> Hint | None:
        """Read an entry of ``feature_types``; None if it is none."""
        if not isinstance(text, str):
            return None
        kind, _, more = (part.strip() for part in text.partition(":"))
        if text in HINTS:
            return cls(text)
        if kind == ORDERED:
            between = " < " if " < " in more else "<"
            levels = tuple(level.strip() for level in more.split(between))
            good = len(levels) > 1 and all(levels) and len(set(levels)) == len(levels)
            return cls(ORDERED, levels) if good else None
        if match := re.fullmatch(rf"{DATE} since (.+)", text):
            return cls(DATE, since=match[1].strip())
        if kind != DATE:
            return None
        listed, _, since = (f", {more}").partition(", since ")
        parts = tuple(part.strip() for part in listed.split(",") if part.strip())
        if any(part not in PARTS for part in parts) or not (parts or since):
            return None
        return cls(DATE, parts=parts, since=since.strip())


# Distinct integers whose range is at most this multiple of their number are taken for an
# identifier.
DENSITY = 4

IDENTIFIER_NAME = re.compile(
    r"(^|[^a-z])(id|ids|nr|no|num|number|key|index|idx|uuid|guid|row)([^a-z]|$)"
)


def kind_of(column: pd.Series) -> str:
    """Return the kind of a column, by its dtype or, for object columns, by its values."""
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return ORDERED if kind.ordered and len(kind.categories) > 2 else CATEGORY
    if pd.api.types.is_bool_dtype(kind):
        return BOOLEAN
    if pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
        return NUMBER
    if pd.api.types.is_datetime64_any_dtype(kind) or isinstance(kind, pd.PeriodDtype):
        return DATE
    values = occurring(distinct(column))
    if not values:
        return CATEGORY
    truths = [value for value in values if isinstance(value, bool | str)]
    if len(truths) == len(values) and all(truth_of(value) is not None for value in values):
        return BOOLEAN
    numbers = (not isinstance(v, bool) and number_of(v) is not None for v in values)
    if all(numbers) and not any(isinstance(v, str) and PADDED.match(v.strip()) for v in values):
        return NUMBER
    if all(day_of(value) is not None for value in values) or is_written_date(values):
        return DATE
    return CATEGORY


def learn_variables(
    name: str,
    column: pd.Series,
    weight: FloatArray,
    hint_text: str | None,
    columns: Mapping[str, pd.Series],
) -> tuple[Variable, ...] | str:
    """Return the variables of a column of the training table, or the reason why it is unusable.

    A column is one variable; a date may have several parts. ``weight`` are the sample weights,
    ``hint_text`` is the user's entry of ``feature_types``, and ``columns`` are all columns by name.
    A category of many levels is returned without ``shares``, which depend on the classes of rows.
    """
    hint = None if hint_text is None else Hint.of(hint_text)
    kind = kind_of(column) if hint is None or hint.kind == KEEP else hint.kind
    if kind in (CATEGORY, ORDERED):
        hint_kind, order = (None, ()) if hint is None else (hint.kind, hint.levels)
        variable = learn_levels(name, column, weight, hint_kind, kind, order)
        return variable if isinstance(variable, str) else (variable,)
    # 1. Its numbers: values, days, or 0 and 1; rows of weight zero do not count.
    form = _form(name, column) if kind == DATE else ""
    days = DayReader()
    cells = Variable(name, kind, form=form).cells(column, days=days)
    known = ~cells.missing & (weight > 0)
    missing = bool(np.any(cells.missing & (weight > 0)))
    numbers = cells.numbers[known]
    if not len(numbers):
        return NO_VALUES
    if hint is None:
        if np.all(numbers == numbers[0]) and not missing:
            return CONSTANT
        if kind == NUMBER and not missing and looks_like_identifier(name, numbers):
            return IDENTIFIER
    # 2. What a missing value counts as, and the parts of a date.
    if kind == BOOLEAN:
        middle = float(weight[known] @ numbers > weight[known].sum() / 2)
        return (Variable(name, kind, middle, missing),)
    origin = float(np.floor(numbers.min())) if kind == DATE else 0.0
    middle = median(numbers, weight[known])
    whole = Variable(name, kind, middle - origin, missing, origin=origin, form=form)
    if kind == NUMBER:
        return (whole,)
    return _learn_parts(whole, column, weight, hint or Hint(DATE), columns, days)


def _form(name: str, column: pd.Series) -> str:
    """Return the ``strptime`` format of a column of dates, "" for ISO 8601."""
    return "" if column.dtype.kind == "M" else date_form(distinct(column), name)


def _learn_parts(
    date: Variable,
    column: pd.Series,
    weight: FloatArray,
    hint: Hint,
    columns: Mapping[str, pd.Series],
    days: DayReader,
) -> tuple[Variable, ...]:
    """Return the parts of a date: those that the user names, or that its range gives."""
    moments = days.read(column, date.form, date.name)
    known = moments[~np.isnan(moments) & (weight > 0)]
    parts = usual_parts(known) if hint.parts is None else hint.parts
    variables = [date] if DAYS in parts else []
    for part in parts:
        if part == DAYS:
            continue
        name, numbers = part_name(part, date.name), part_numbers(part, moments)
        own: dict[str, Any] = {"has_missing": date.has_missing, "form": date.form, "part": part}
        if part not in NAMES:
            whole = Variable(name, NUMBER, source=date.name, **own)
            variables += _with_middle(whole, numbers, weight)
            continue
        codes = np.where(np.isnan(numbers), -1, numbers).astype(np.intp)
        names = pd.Series(np.array([*NAMES[part], None], dtype=object)[codes])
        levels = learn_levels(name, names, weight)
        if isinstance(levels, Variable):
            variables.append(replace(levels, source=date.name, **own))
    if hint.since:
        variables += _learn_since(date, moments, weight, hint.since, columns, days)
    return tuple(variables) or (date,)


def _learn_since(
    date: Variable,
    moments: FloatArray,
    weight: FloatArray,
    since: str,
    columns: Mapping[str, pd.Series],
    days: DayReader,
) -> list[Variable]:
    """Return the time since another date, in a readable unit."""
    if since not in columns or since == date.name:
        raise ValueError(
            f"feature_types asks for the time from column {shown(since)} to {shown(date.name)}, "
            "but it is no other column of X; name a column of dates."
        )
    form = _form(since, columns[since])
    passed = moments - days.read(columns[since], form, since)
    known = passed[~np.isnan(passed) & (weight > 0)]
    if not len(known):
        raise ValueError(
            f"no row has dates in both columns {shown(since)} and {shown(date.name)}; do not ask "
            "for the time between them."
        )
    unit = unit_of(known)
    variable = Variable(
        part_name(unit, date.name, since),
        NUMBER,
        has_missing=bool(np.any(np.isnan(passed) & (weight > 0))),
        form=date.form,
        part=unit,
        source=date.name,
        since=since,
        since_form=form,
    )
    numbers = time_between(moments, days.read(columns[since], form, since), unit)
    return _with_middle(variable, numbers, weight)


def _with_middle(variable: Variable, numbers: FloatArray, weight: FloatArray) -> list[Variable]:
    """Return a part of a date that is a number with its median; none if it has one value only."""
    known = ~np.isnan(numbers) & (weight > 0)
    values = numbers[known]
    if np.all(values == values[0]):
        return []
    return [replace(variable, middle=median(values, weight[known]))]


def looks_like_identifier(name: str, numbers: FloatArray) -> bool:
    """Whether integers look like an identifier: distinct, and consecutive, dense or named so."""
    if len(numbers) < IDENTIFIER_ROWS or np.any(numbers != np.floor(numbers)):
        return False
    different = np.unique(numbers)
    if len(different) < len(numbers):
        return False
    steps = np.diff(numbers)
    words = re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()
    if np.all(steps == 1) or IDENTIFIER_NAME.search(words):
        return True
    return len(numbers) >= IDENTIFIER_ROWS * RARE_ROWS and bool(
        np.ptp(different) <= DENSITY * len(different)
    )


def column_facts(name: str, column: pd.Series, weight: FloatArray) -> tuple[str, int]:
    """Return a short description of a column and its number of missing values."""
    missing = int(np.sum(distinct(column)[0] < 0))
    variables = learn_variables(name, column.rename(name), weight, None, {})
    if isinstance(variables, str):
        why = variables if variables == NO_VALUES else f"{variables}, left out of training"
        return why, missing
    first, *parts = variables
    dates = ", ".join(["dates", *(variable.part for variable in parts)])
    words = {NUMBER: "numbers", BOOLEAN: "true or false", DATE: dates}
    levels = f"{len(first.levels)} levels" + (", in order" if first.kind == ORDERED else "")
    return words.get(first.kind, levels + (" and rare ones" if first.other else "")), missing
