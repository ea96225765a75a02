"""The leaves of a tree that predicts a number, as formulas or as one table of terms by leaves.

    charges = 550 + 140 age + 240 max(age - 39, 0)
        (1,064 rows, mean 8,434, 90 % within +- 4,500)   [leaf 1]

A formula is what ``predict`` computes, to the last digit: terms by variable, the weightiest first
(|slope| times the spread of its column). Under a log link it is a product of factors,

    claims a year = 0.12 x 1.4 per children x 0.97 per 10 age x 1.8 if region = north

with each factor to the power of its term, or of a part of it. More than ``MOST_TERMS`` terms in a
leaf, or more leaves, make a table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softsplit.fitted.baseline import Baseline
from softsplit.fitted.leaf_factors import factor
from softsplit.fitted.leaf_numbers import LeafNumbers, NoResidualsError
from softsplit.fitted.model import TreeModel
from softsplit.support.lines import wrapped
from softsplit.support.messages import visible
from softsplit.support.numbers import number, whole_percentage
from softsplit.tree.leaf_families import Quantile

MOST_TERMS = 4
"""Terms of a leaf, and leaves, that are written as formulas."""

PERIODS = ("hour", "day", "week", "month", "year")

INTERVAL = 0.9
"""Confidence of the interval that is printed."""


def grouped(value: float, digits: int | None = None) -> str:
    """A number with thousands set apart: 13,330."""
    text = number(value, digits)
    if "e" in text and 1.0 <= abs(value) < 1e15:
        text = f"{float(text):.0f}"
    whole, dot, rest = text.partition(".")
    return text if "e" in text else f"{int(whole):,}{dot}{rest}".replace("0", "-0", whole == "-0")


def target_name(model: TreeModel) -> str:
    """What the formulas give, in words."""
    assert model.numbers is not None
    family, name = model.numbers.family, visible(model.answers[0])
    if isinstance(family, Quantile) and family.level != 0.5:
        return f"{family.level:g} quantile of {name}"
    if model.numbers.totals is not None and model.numbers.baseline is None:
        return f"{name} {per_unit(model.numbers.per)}"
    return name if family.predicted == "mean" else f"{family.predicted} of {name}"


def per_unit(name: str | None) -> str:
    """Of what a rate is, in words: "a year", "per unit of acres"."""
    if name is None:
        return "per unit of exposure"
    period = name.lower().rstrip("s")
    if period in PERIODS:
        return f"{'an' if period == 'hour' else 'a'} {period}"
    return f"per unit of {visible(name)}"


def leaf_terms(model: TreeModel, leaf: int) -> list[int]:
    """Columns of the problem in the formula of a leaf: by variable, the weightiest first."""
    assert model.numbers is not None
    slopes = model.numbers.functions.slopes[:, leaf]
    spread = model.scaling.arrays().get("span", np.ones(len(slopes)))
    used = np.flatnonzero(slopes)
    size = np.abs(slopes[used]) * np.where(np.isfinite(spread[used]), spread[used], 0.0)
    order = used[np.argsort(-size, kind="stable")].tolist()
    homes = model.table_coding.homes
    rank = {home: place for place, home in reversed(list(enumerate(homes[order].tolist())))}
    return sorted(order, key=lambda j: (rank[int(homes[j])], j))


def term_name(model: TreeModel, column: int) -> str:
    """What a slope multiplies; what holds or not stands in brackets."""
    name = visible(model.feature_names[column])
    return f"[{name}]" if model.table_coding.indicators[column] else name


def formula(model: TreeModel, leaf: int, digits: int | None = None) -> str:
    """The formula of a leaf, such as "550 + 140 age - 2 children"."""
    assert model.numbers is not None
    functions = model.numbers.functions
    if model.numbers.family.log_link:
        first = grouped(linked(model, float(functions.constants[leaf])), digits)
        terms = (term_text(model, j, leaf, digits) for j in leaf_terms(model, leaf))
        return " x ".join([first, *terms])
    text = grouped(float(functions.constants[leaf]), digits)
    for j in leaf_terms(model, leaf):
        sign = "-" if functions.slopes[j, leaf] < 0 else "+"
        text += f" {sign} {term_text(model, j, leaf, digits)}"
    return text


def term_text(model: TreeModel, column: int, leaf: int, digits: int | None = None) -> str:
    """A term of a leaf without its sign, "140 age", or as a factor, "1.05 per 10 age"."""
    assert model.numbers is not None
    if model.numbers.family.log_link:
        size, unit = _factor(model, column, leaf)
        when = "if" if model.table_coding.indicators[column] else "per"
        often = "" if unit == 1.0 else f"{grouped(unit)} "
        return f"{grouped(size, digits)} {when} {often}{visible(model.feature_names[column])}"
    size_text = grouped(abs(float(model.numbers.functions.slopes[column, leaf])), digits)
    name = term_name(model, column)
    return name if size_text == "1" else f"{size_text} {name}"


def _factor(model: TreeModel, column: int, leaf: int) -> tuple[float, float]:
    """The factor of a term in a leaf, and the amount of the term that it is for."""
    assert model.numbers is not None
    slope = float(model.numbers.functions.slopes[column, leaf])
    return factor(slope, indicator=bool(model.table_coding.indicators[column]))


def leaf_facts(model: TreeModel, leaf: int) -> str:
    """Rows, mean and error of a leaf, such as "144 rows, mean 41,693, 90 % within +- 3,600"."""
    numbers = model.numbers
    assert numbers is not None
    facts = []
    if model.walk is not None:
        rows = float(model.walk.counts[0, leaf])
        if rows == 0:
            return "no training row"
        many = grouped(rows, None if rows == round(rows) else 4)
        facts = [f"{many} row{'' if rows == 1 else 's'}"]
    if numbers.baseline is not None and numbers.totals is not None:
        events = float(f"{numbers.means[leaf] * numbers.totals[leaf]:.9g}")
        facts.append(f"{grouped(events, None)} event{'' if events == 1 else 's'}")
        return ", ".join([*facts, *curve_facts(numbers, float(numbers.means[leaf]))])
    if numbers.totals is not None:
        facts.append(f"{grouped(float(numbers.totals[leaf]), 4)} {numbers.per or 'of exposure'}")
    facts.append(f"mean {grouped(float(numbers.means[leaf]), 4)}")
    if numbers.totals is not None:
        return ", ".join(facts)
    try:
        half = float(numbers.half_widths(INTERVAL)[leaf])
        facts.append(f"{100 * INTERVAL:g} % within +- {grouped(half, 2)}")
    except NoResidualsError:
        facts.append(f"typical error {grouped(float(numbers.errors[leaf]), 2)}")
    return ", ".join(facts)


def curve_facts(numbers: LeafNumbers, hazard: float) -> list[str]:
    """What a hazard means: "median 14 months", "62 % event-free at 12 months"."""
    assert numbers.baseline is not None
    known, unit = numbers.baseline, f" {visible(numbers.per)}" if numbers.per else ""
    median = float(known.medians(np.array([hazard]))[0])
    at = middle_time(known)
    share = float(known.free(np.array([hazard]), np.array([at]))[0, 0])
    after = f" after {grouped(float(known.times[-1]))}{unit}" if np.isinf(median) else ""
    half = f"median{after}" if after else f"median {grouped(median)}{unit}"
    return [half, f"{whole_percentage(share)} % event-free at {grouped(at)}{unit}"]


def middle_time(known: Baseline) -> float:
    """The middle one of the event times, in two digits."""
    return float(f"{float(np.median(known.times)):.1e}")


def tabled(model: TreeModel, leaves: Sequence[int]) -> bool:
    """Whether these leaves are written as a table."""
    assert model.numbers is not None
    terms = np.count_nonzero(model.numbers.functions.slopes[:, list(leaves)], axis=0)
    return len(leaves) > MOST_TERMS or int(terms.max()) > MOST_TERMS


def leaf_lines(
    model: TreeModel, leaf: int, place: str, digits: int | None, in_table: bool
) -> list[str]:
    """The lines of a leaf in the text of a tree."""
    said = "see the table below" if in_table else formula(model, leaf, digits)
    mark = f"   [{place}]" if place else ""
    return [f"{target_name(model)} = {said}", f"    ({leaf_facts(model, leaf)}){mark}"]


def table_lines(model: TreeModel, leaves: Sequence[int], digits: int | None) -> list[str]:
    """A table of terms by leaves: each slope is multiplied by its term, and all are added up.

    Under a log link each cell is a factor to the power of its term, and all are multiplied.
    """
    assert model.numbers is not None
    functions, columns = model.numbers.functions, list(leaves)
    log_link = model.numbers.family.log_link
    order: dict[int, None] = {}
    for leaf in columns:
        order |= dict.fromkeys(leaf_terms(model, leaf))
    starts = [linked(model, float(functions.constants[k])) for k in columns]
    rows = [["constant", *(grouped(start, digits) for start in starts)]]
    for j in order:
        cells = [_cell(model, j, leaf, digits) for leaf in columns]
        rows.append([term_name(model, j), *cells])
    head = [
        f"{target_name(model)} ={' product of' if log_link else ''}",
        *(f"leaf {n}" for n in range(1, len(columns) + 1)),
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "   ".join(f"{cell:<{w}}" if n == 0 else f"{cell:>{w}}" for n, (cell, w) in enumerate(
            zip(row, widths, strict=True))).rstrip()
        for row in [head, *rows]
    ]  # fmt: skip


def _cell(model: TreeModel, column: int, leaf: int, digits: int | None) -> str:
    """The slope of a term in a table, or its factor: "1.05 per 10"."""
    assert model.numbers is not None
    slope = float(model.numbers.functions.slopes[column, leaf])
    if slope == 0.0 or not model.numbers.family.log_link:
        return "" if slope == 0.0 else grouped(slope, digits)
    size, unit = _factor(model, column, leaf)
    return grouped(size, digits) + ("" if unit == 1.0 else f" per {grouped(unit)}")


def linked(model: TreeModel, score: float) -> float:
    """A score as it is printed: itself, or the factor that it is the log of."""
    assert model.numbers is not None
    return factor(score, indicator=True)[0] if model.numbers.family.log_link else score


def number_lines(model: TreeModel, leaves: Sequence[int], digits: int | None) -> list[str]:
    """What stands below a tree that predicts a number: its table, and the ends of its formulas."""
    if model.numbers is None:
        return []
    functions = model.numbers.functions
    lines = ["", *table_lines(model, leaves, digits), ""] if tabled(model, leaves) else []
    kept = [
        f"{f'leaf {n} ' if len(leaves) > 1 else ''}"
        f"{grouped(linked(model, float(functions.low[leaf])))} to "
        f"{grouped(linked(model, float(functions.high[leaf])))}"
        for n, leaf in enumerate(leaves, 1)
        if np.any(functions.slopes[:, leaf])
    ]
    if kept:
        said = "a formula is cut where its training rows end: "
        lines += wrapped("", said + ", ".join(kept))
    if model.numbers.baseline is not None:
        facts = ", ".join(curve_facts(model.numbers, 1.0))
        lines += wrapped("", f"hazard 1: {facts}; hazard h: a share s event-free becomes s^h")
    if model.walk is None:
        lines += wrapped("", MIXED)
    return lines


MIXED = (
    "a question is true with p = 1 / (1 + exp(-(sum - centre) / width)), P(leaf) is the product "
    "along its path, and the prediction the sum over leaves of P(leaf) x formula"
)
"""How a tree without a walk predicts."""
