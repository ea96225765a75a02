"""The leaves of a tree that predicts a number, as formulas or as one table of terms by leaves.

    charges = 550 + 140 age + 240 max(age - 39, 0)
        (1,064 rows, mean 8,434, 90 % within +- 4,500)   [leaf 1]

A formula is what ``predict`` computes, to the last digit: terms by variable, the weightiest first
(|slope| times the spread of its column). More than ``MOST_TERMS`` terms in a leaf, or more leaves,
make a table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softsplit.fitted.leaf_numbers import NoResidualsError
from softsplit.fitted.model import TreeModel
from softsplit.support.lines import wrapped
from softsplit.support.messages import visible
from softsplit.support.numbers import number
from softsplit.tree.leaf_families import Quantile

MOST_TERMS = 4
"""Terms of a leaf, and leaves, that are written as formulas."""

INTERVAL = 0.9
"""Confidence of the interval that is printed."""


def grouped(value: float, digits: int | None = None) -> str:
    """A number with thousands set apart: 13,330."""
    text = number(value, digits)
    whole, dot, rest = text.partition(".")
    return text if "e" in text else f"{int(whole):,}{dot}{rest}".replace("0", "-0", whole == "-0")


def target_name(model: TreeModel) -> str:
    """What the formulas give, in words."""
    assert model.numbers is not None
    family, name = model.numbers.family, visible(model.answers[0])
    if isinstance(family, Quantile) and family.level != 0.5:
        return f"{family.level:g} quantile of {name}"
    if family.log_link:
        return f"log of the {family.predicted} of {name}"
    return name if family.predicted == "mean" else f"{family.predicted} of {name}"


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
    text = grouped(float(functions.constants[leaf]), digits)
    for j in leaf_terms(model, leaf):
        slope = float(functions.slopes[j, leaf])
        size = grouped(abs(slope), digits)
        body = term_name(model, j) if size == "1" else f"{size} {term_name(model, j)}"
        text += f" {'-' if slope < 0 else '+'} {body}"
    return text


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
    facts.append(f"mean {grouped(float(numbers.means[leaf]), 4)}")
    try:
        half = float(numbers.half_widths(INTERVAL)[leaf])
        facts.append(f"{100 * INTERVAL:g} % within +- {grouped(half, 2)}")
    except NoResidualsError:
        facts.append(f"typical error {grouped(float(numbers.errors[leaf]), 2)}")
    return ", ".join(facts)


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
    """A table of terms by leaves: each slope is multiplied by its term, and all are added up."""
    assert model.numbers is not None
    functions, columns = model.numbers.functions, list(leaves)
    order: dict[int, None] = {}
    for leaf in columns:
        order |= dict.fromkeys(leaf_terms(model, leaf))
    rows = [["constant", *(grouped(float(functions.constants[k]), digits) for k in columns)]]
    for j in order:
        slopes = functions.slopes[j, columns].tolist()
        cells = ["" if slope == 0 else grouped(slope, digits) for slope in slopes]
        rows.append([term_name(model, j), *cells])
    head = [f"{target_name(model)} =", *(f"leaf {n}" for n in range(1, len(columns) + 1))]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "   ".join(f"{cell:<{w}}" if n == 0 else f"{cell:>{w}}" for n, (cell, w) in enumerate(
            zip(row, widths, strict=True))).rstrip()
        for row in [head, *rows]
    ]  # fmt: skip


def number_lines(model: TreeModel, leaves: Sequence[int], digits: int | None) -> list[str]:
    """What stands below a tree that predicts a number: its table, and the ends of its formulas."""
    if model.numbers is None:
        return []
    functions = model.numbers.functions
    lines = ["", *table_lines(model, leaves, digits), ""] if tabled(model, leaves) else []
    kept = [
        f"{f'leaf {n} ' if len(leaves) > 1 else ''}{grouped(float(functions.low[leaf]))} to "
        f"{grouped(float(functions.high[leaf]))}"
        for n, leaf in enumerate(leaves, 1)
        if np.any(functions.slopes[:, leaf])
    ]
    if kept:
        said = "a formula is cut where its training rows end: "
        lines += wrapped("", said + ", ".join(kept))
    if model.walk is None:
        lines += wrapped("", MIXED)
    return lines


MIXED = (
    "a question is true with p = 1 / (1 + exp(-(sum - centre) / width)), P(leaf) is the product "
    "along its path, and the prediction the sum over leaves of P(leaf) x formula"
)
"""How a tree without a walk predicts."""
