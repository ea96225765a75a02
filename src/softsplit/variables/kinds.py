"""Inference of the kind of a variable from its column, and of columns that no tree can use."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.variables.contents import (
    PADDED,
    Distinct,
    date_form,
    day_of,
    distinct,
    is_written_date,
    look_like_dates,
    number_of,
    occurring,
    text_of,
    truth_of,
)
from softsplit.variables.curves import Ordered
from softsplit.variables.variable import (
    BOOLEAN,
    CATEGORY,
    DATE,
    NUMBER,
    ORDERED,
    Variable,
    checksums,
)

KEEP, DROP = "keep", "drop"
HINTS = (NUMBER, CATEGORY, DATE, KEEP, DROP)
"""Values of ``feature_types``."""


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


def learn_variable(
    name: str, column: pd.Series, weight: FloatArray, hint: str | None
) -> Variable | str:
    """Return the variable of a column of the training table, or the reason why it is unusable.

    ``weight`` are the sample weights and ``hint`` is the user's entry of ``feature_types``. A
    category of many levels is returned without ``shares``, which depend on the classes of the rows.
    """
    kind = kind_of(column) if hint in (None, KEEP) else str(hint)
    if kind in (CATEGORY, ORDERED):
        return _learn_levels(name, column, weight, hint, kind)
    form = ""
    if kind == DATE and column.dtype.kind != "M":
        form = date_form(occurring(distinct(column)), name)
    made = Variable(name, kind, form=form)
    cells = made.cells(column)
    known = ~cells.gaps & (weight > 0)
    gaps = bool(np.any(cells.gaps & (weight > 0)))
    numbers = cells.numbers[known]
    if not len(numbers):
        return NO_VALUES
    if hint is None:
        if np.all(numbers == numbers[0]) and not gaps:
            return CONSTANT
        if kind == NUMBER and not gaps and _looks_like_identifier(name, numbers):
            return IDENTIFIER
    if kind == BOOLEAN:
        middle = float(weight[known] @ numbers > weight[known].sum() / 2)
        return Variable(name, kind, middle, gaps)
    origin = float(np.floor(numbers.min())) if kind == DATE else 0.0
    middle = _median(numbers, weight[known])
    return Variable(name, kind, middle - origin, gaps, origin=origin, form=form)


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


def _learn_levels(
    name: str, column: pd.Series, weight: FloatArray, hint: str | None, kind: str
) -> Variable | str:
    content = distinct(column)
    codes, values = content
    texts = [text_of(value) for value in values]
    counts: dict[str, float] = {}
    gaps = bool(np.any((codes < 0) & (weight > 0)))
    sums = np.bincount(codes[codes >= 0], weight[codes >= 0], minlength=len(values))
    for text, count in zip(texts, sums, strict=True):
        if count > 0:
            counts[text] = counts.get(text, 0.0) + float(count)
    total = sum(counts.values())
    if not counts:
        return NO_VALUES
    if len(counts) == 1 and not gaps:
        return CONSTANT  # also against the user's hint: there would be no column
    if kind == ORDERED:
        ordered = tuple(text for text in texts if text in counts)
        places = np.array([float(i) for i in range(len(ordered))])
        middle = np.floor(_median(places, np.array([counts[text] for text in ordered])))
        return Variable(name, ORDERED, float(middle), gaps, ordered, rare="")
    rare = max(1, min(OPTIONS.rare_rows, int(total // 10)))
    kept = tuple(sorted(text for text, count in counts.items() if count >= rare))
    if hint is None and (why := _reason_unusable(counts, kept, total, content)):
        return why
    if not kept:
        kept = tuple(sorted(sorted(counts), key=lambda text: -counts[text])[: OPTIONS.most_columns])
    middle = max(range(len(kept)), key=lambda i: counts[kept[i]])
    merged = len(kept) < len(counts)
    rare_levels = counts.keys() - kept
    return Variable(
        name,
        CATEGORY,
        float(middle),
        gaps,
        kept,
        other=merged and 1 < len(kept) <= OPTIONS.most_columns,
        whole=merged or len(kept) > 2,
        rare=checksums(rare_levels) if len(rare_levels) <= OPTIONS.most_rare else None,
    )


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
    gaps = int(np.sum(distinct(column)[0] < 0))
    found = learn_variable(name, column.rename(name), weight, None)
    if isinstance(found, str):
        return (found if found == NO_VALUES else f"{found}, left out of training"), gaps
    words = {NUMBER: "numbers", BOOLEAN: "true or false", DATE: "dates"}
    levels = f"{len(found.levels)} levels" + (", in order" if found.kind == ORDERED else "")
    return words.get(found.kind, levels + (" and rare ones" if found.other else "")), gaps
