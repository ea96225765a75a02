"""Inference of the kind of a variable from its column, and of columns that no tree can use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.variables.contents import (
    PADDED,
    Distinct,
    cells_without_date,
    date_form,
    day_of,
    distinct,
    is_written_date,
    look_like_dates,
    number_of,
    occurring,
    share_like_dates,
    text_of,
    truth_of,
)
from softsplit.variables.curves import Ordered
from softsplit.variables.dates import (
    DAYS,
    NAMES,
    PARTS,
    part_name,
    part_numbers,
    time_between,
    unit_of,
    usual_parts,
)
from softsplit.variables.orders import calendar_order, natural_order
from softsplit.variables.variable import (
    BOOLEAN,
    CATEGORY,
    DATE,
    NUMBER,
    ORDERED,
    DayReader,
    Variable,
    checksums,
)

KEEP, DROP = "keep", "drop"
HINTS = (NUMBER, CATEGORY, ORDERED, DATE, KEEP, DROP)
"""Values of ``feature_types``; "ordered" and "date" may say more, see ``Hint``."""


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
    def of(cls, said: Any) -> Hint | None:
        """Read an entry of ``feature_types``; None if it is none."""
        if not isinstance(said, str):
            return None
        kind, _, more = (part.strip() for part in said.partition(":"))
        if said in HINTS:
            return cls(said)
        if kind == ORDERED:
            between = " < " if " < " in more else "<"
            levels = tuple(level.strip() for level in more.split(between))
            good = len(levels) > 1 and all(levels) and len(set(levels)) == len(levels)
            return cls(ORDERED, levels) if good else None
        if match := re.fullmatch(rf"{DATE} since (.+)", said):
            return cls(DATE, since=match[1].strip())
        if kind != DATE:
            return None
        listed, _, since = (f", {more}").partition(", since ")
        parts = tuple(part.strip() for part in listed.split(",") if part.strip())
        if any(part not in PARTS for part in parts) or not (parts or since):
            return None
        return cls(DATE, parts=parts, since=since.strip())


@dataclass(frozen=True)
class KindOptions:
    """How the kind of a column is inferred from its cells."""

    most_columns: int = 30
    """A category of more levels is encoded by class shares instead of one indicator per level."""

    rare_rows: int = 5
    """Levels with fewer rows are merged, if the table has at least ten times as many rows."""

    most_rare: int = 100_000
    """Of more rare levels no checksums are kept: they would make the model file larger than a
    megabyte, and new levels then count as rare."""

    identifier_rows: int = 20
    """In a table of fewer rows no column is taken for an identifier."""

    density: int = 4
    """Distinct integers whose range is at most this multiple of their number are taken for an
    identifier."""

    nearly_dates: float = 0.9
    """If at least this share of the cells of an unusable column are dates, the reason says so: the
    other cells are probably typing errors."""

    free_text_words: float = 2.5
    """Texts with more words on average are free text."""


OPTIONS = KindOptions()

IDENTIFIER_NAME = re.compile(
    r"(^|[^a-z])(id|ids|nr|no|num|number|key|index|idx|uuid|guid|row)([^a-z]|$)"
)

NO_VALUES, CONSTANT, IDENTIFIER, FREE_TEXT = (
    "no values",
    "one value only",
    "an identifier",
    "free text",
)

NEARLY_DATES = "dates except for"
"""The beginning of the reason for a column of dates with a few other cells."""


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
    hint: str | None,
    columns: Mapping[str, pd.Series],
) -> tuple[Variable, ...] | str:
    """Return the variables of a column of the training table, or the reason why it is unusable.

    A column is one variable; a date may have several parts. ``weight`` are the sample weights,
    ``hint`` is the user's entry of ``feature_types``, and ``columns`` are all columns by name. A
    category of many levels is returned without ``shares``, which depend on the classes of the rows.
    """
    said = None if hint is None else Hint.of(hint)
    kind = kind_of(column) if said is None or said.kind == KEEP else said.kind
    if kind in (CATEGORY, ORDERED):
        made = _learn_levels(name, column, weight, said, kind)
        return made if isinstance(made, str) else (made,)
    form = _form(name, column) if kind == DATE else ""
    days = DayReader()
    cells = Variable(name, kind, form=form).cells(column, days=days)
    known = ~cells.missing & (weight > 0)
    missing = bool(np.any(cells.missing & (weight > 0)))
    numbers = cells.numbers[known]
    if not len(numbers):
        return NO_VALUES
    if said is None:
        if np.all(numbers == numbers[0]) and not missing:
            return CONSTANT
        if kind == NUMBER and not missing and _looks_like_identifier(name, numbers):
            return IDENTIFIER
    if kind == BOOLEAN:
        middle = float(weight[known] @ numbers > weight[known].sum() / 2)
        return (Variable(name, kind, middle, missing),)
    origin = float(np.floor(numbers.min())) if kind == DATE else 0.0
    middle = _median(numbers, weight[known])
    whole = Variable(name, kind, middle - origin, missing, origin=origin, form=form)
    if kind == NUMBER:
        return (whole,)
    return _learn_parts(whole, column, weight, said or Hint(DATE), columns, days)


def _form(name: str, column: pd.Series) -> str:
    """Return the ``strptime`` format of a column of dates, "" for ISO 8601."""
    return "" if column.dtype.kind == "M" else date_form(distinct(column), name)


def _learn_parts(
    date: Variable,
    column: pd.Series,
    weight: FloatArray,
    said: Hint,
    columns: Mapping[str, pd.Series],
    days: DayReader,
) -> tuple[Variable, ...]:
    """Return the parts of a date: those that the user names, or that its range gives."""
    moments = days.read(column, date.form, date.name)
    known = moments[~np.isnan(moments) & (weight > 0)]
    parts = usual_parts(known) if said.parts is None else said.parts
    made = [date] if DAYS in parts else []
    for part in parts:
        if part == DAYS:
            continue
        one = Variable(
            part_name(part, date.name),
            CATEGORY if part in NAMES else NUMBER,
            has_missing=date.has_missing,
            form=date.form,
            part=part,
            source=date.name,
        )
        numbers = part_numbers(part, moments)
        if part not in NAMES:
            made += _with_middle(one, numbers, weight)
            continue
        codes = np.where(np.isnan(numbers), -1, numbers).astype(np.intp)
        names = pd.Series(np.array([*NAMES[part], None], dtype=object)[codes])
        levels = _learn_levels(one.name, names, weight, Hint(KEEP), CATEGORY)
        if isinstance(levels, Variable):
            learned = {
                f: getattr(levels, f) for f in ("middle", "levels", "other", "whole", "rare")
            }
            made.append(replace(one, **learned))
    if said.since:
        made += _learn_since(date, moments, weight, said.since, columns, days)
    return tuple(made) or (date,)


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
    one = Variable(
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
    return _with_middle(one, numbers, weight)


def _with_middle(variable: Variable, numbers: FloatArray, weight: FloatArray) -> list[Variable]:
    """Return a part of a date that is a number with its median; none if it has one value only."""
    known = ~np.isnan(numbers) & (weight > 0)
    values = numbers[known]
    if np.all(values == values[0]):
        return []
    return [replace(variable, middle=_median(values, weight[known]))]


def _median(numbers: FloatArray, weight: FloatArray) -> float:
    """Return the weighted median: a row of weight two counts as two rows."""
    return Ordered.of(numbers, weight).quantile(0.5)


def _looks_like_identifier(name: str, numbers: FloatArray) -> bool:
    """Whether integers look like an identifier: distinct, and consecutive, dense or named so."""
    if len(numbers) < OPTIONS.identifier_rows or np.any(numbers != np.floor(numbers)):
        return False
    different = np.unique(numbers)
    if len(different) < len(numbers):
        return False
    steps = np.diff(numbers)
    if np.all(steps == 1) or _named_as_identifier(name):
        return True
    return len(numbers) >= OPTIONS.identifier_rows * OPTIONS.rare_rows and bool(
        np.ptp(different) <= OPTIONS.density * len(different)
    )


def _named_as_identifier(name: str) -> bool:
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return IDENTIFIER_NAME.search(spaced.lower()) is not None


def fewest_rows(total: float) -> int:
    """Return the rows that a level needs to be listed, in a table of ``total`` rows."""
    return max(1, min(OPTIONS.rare_rows, int(total // 10)))


def _learn_levels(
    name: str, column: pd.Series, weight: FloatArray, said: Hint | None, kind: str
) -> Variable | str:
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
        ordered = _order(name, [text for text in texts if text in counts], column, said)
        return _ordered(name, ordered, counts, missing)
    fewest = fewest_rows(total)
    kept = tuple(sorted(text for text, count in counts.items() if count >= fewest))
    if said is None and (why := _reason_unusable(counts, kept, total, content)):
        return why
    natural = natural_order(list(counts)) if said is None or said.kind == KEEP else None
    if natural is not None:
        return _ordered(name, natural, counts, missing)
    kept = calendar_order(kept) or kept
    if not kept:
        kept = tuple(sorted(sorted(counts), key=lambda text: -counts[text])[: OPTIONS.most_columns])
    middle = max(range(len(kept)), key=lambda i: counts[kept[i]])
    merged = len(kept) < len(counts)
    rare_levels = counts.keys() - kept
    return Variable(
        name,
        CATEGORY,
        float(middle),
        missing,
        kept,
        other=merged and 1 < len(kept) <= OPTIONS.most_columns,
        whole=merged or len(kept) > 2,
        rare=checksums(rare_levels) if len(rare_levels) <= OPTIONS.most_rare else None,
    )


def _ordered(
    name: str, levels: tuple[str, ...], counts: Mapping[str, float], missing: bool
) -> Variable:
    """Return a variable whose levels have an order."""
    share = np.array([counts.get(text, 0.0) for text in levels])
    middle = np.floor(_median(np.arange(float(len(levels))), share))
    return Variable(name, ORDERED, float(middle), missing, levels, rare="")


def _order(name: str, levels: list[str], column: pd.Series, said: Hint | None) -> tuple[str, ...]:
    """Return levels in order: of the user, of a pandas category, or the natural one."""
    if said is not None and said.levels:
        strange = [level for level in levels if level not in said.levels]
        if strange:
            raise ValueError(
                f"column {shown(name)} holds {shown(strange[0])}, which its order "
                f"{shown(' < '.join(said.levels))} does not name; add it to feature_types."
            )
        return said.levels
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        return tuple(levels)
    numbers = [number_of(level) for level in levels]
    if all(number is not None for number in numbers):
        return tuple(sorted(levels, key=lambda level: number_of(level) or 0.0))
    found = natural_order(levels) or calendar_order(levels)
    if found is None:
        raise ValueError(
            f"column {shown(name)} has no order that is known; write it down, such as "
            f"feature_types={{{name!r}: 'ordered: {levels[0]} < {levels[-1]}'}}."
        )
    return found


def _reason_unusable(
    counts: dict[str, float], kept: tuple[str, ...], total: float, content: Distinct
) -> str:
    """Return why a column of texts is no category, or "" if it is one."""
    if total < OPTIONS.identifier_rows or (kept and len(counts) <= total / 2):
        return ""
    if len(counts) <= OPTIONS.rare_rows:
        return ""
    if look_like_dates(occurring(content)):
        example = shown(next(iter(counts)), 20)
        return f"dates such as {example}, day and month unclear: write them as 2026-11-16"
    if share_like_dates(content) >= OPTIONS.nearly_dates:
        found = cells_without_date(content, "")
        if found.count <= (1 - OPTIONS.nearly_dates) * found.total:
            example = shown(found.cells[0][0], 20)
            return f"{NEARLY_DATES} {found.count:,} of {found.total:,} cells, such as {example}"
    odd = _typing_error(content)
    if odd is not None:
        return f"texts beside numbers, such as {shown(odd, 20)}"
    words = np.mean([len(text.split()) for text in counts])
    return FREE_TEXT if words > OPTIONS.free_text_words else IDENTIFIER


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
    return variable.kind == CATEGORY and len(variable.levels) > OPTIONS.most_columns


def column_facts(name: str, column: pd.Series, weight: FloatArray) -> tuple[str, int]:
    """Return a short description of a column and its number of missing values."""
    missing = int(np.sum(distinct(column)[0] < 0))
    made = learn_variables(name, column.rename(name), weight, None, {})
    if isinstance(made, str):
        return (made if made == NO_VALUES else f"{made}, left out of training"), missing
    found = made[0]
    parts = "".join(f", {one.part}" for one in made[1:])
    words = {NUMBER: "numbers", BOOLEAN: "true or false", DATE: f"dates{parts}"}
    levels = f"{len(found.levels)} levels" + (", in order" if found.kind == ORDERED else "")
    return words.get(found.kind, levels + (" and rare ones" if found.other else "")), missing
