"""What a drawing writes in a leaf that predicts a number: facts, and its formula, a term to a line.

    mean 8,434
    1,064 rows
    90 % within +- 4,500
    charges = 550
    + 140 age                    with a bar of the length |140| x spread of age
    + 240 max(age - 39, 0)

Bars of one tree have one scale: the longest is 1. A hazard has a curve below: the share without
event over time, of the mean hazard of the leaf.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softsplit.fitted.model import TreeModel
from softsplit.reading.leaf_formulas import (
    grouped,
    leaf_facts,
    leaf_terms,
    linked,
    target_name,
    term_text,
)
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shortened

MOST_TERMS = 6
"""Terms of a leaf that a drawing writes; the text has them all."""

DIGITS = 3
"""Significant digits of coefficients in a drawing."""

LONGEST = 48
"""Characters of a term, and of the name of the target."""

UP, DOWN = "#0b5cad", "#b3500a"
"""Colours of the bars of terms that are added, and of those that are subtracted."""

LOWEST, HIGHEST = (241, 246, 251), (188, 214, 238)
"""Colours of the leaves with the lowest and the highest mean."""


CURVE_LINES = 3
"""Lines of text that the curve of a hazard takes."""


class LeafLine(NamedTuple):
    """A line of a leaf; ``bar`` is its signed length, 0 for a line without one."""

    text: str
    bar: float = 0.0


def leaf_box(model: TreeModel, leaf: int) -> list[LeafLine]:
    """The lines of a leaf, its mean first."""
    numbers = model.numbers
    assert numbers is not None
    facts = leaf_facts(model, leaf).split(", ")
    facts.sort(key=lambda fact: not fact.startswith("mean"))
    constant, log_link = float(numbers.functions.constants[leaf]), numbers.family.log_link
    first = grouped(linked(model, constant), DIGITS)
    name = shortened(target_name(model), LONGEST)
    lines = [LeafLine(text) for text in (*facts, f"{name} = {first}")]
    terms, sizes = leaf_terms(model, leaf), term_sizes(model)
    largest = float(np.max(np.abs(sizes), initial=0.0)) or 1.0
    for j in terms[:MOST_TERMS]:
        size = float(sizes[j, leaf]) / largest
        sign = "x" if log_link else ("-" if size < 0 else "+")
        text = shortened(term_text(model, j, leaf, DIGITS), LONGEST)
        lines.append(LeafLine(f"{sign} {text}", size))
    more = len(terms) - MOST_TERMS
    lines += [LeafLine(f"and {more} more term{'s' * (more > 1)}")] if more > 0 else []
    return lines if numbers.baseline is None else [*lines, *[LeafLine("")] * CURVE_LINES]


def leaf_curve(model: TreeModel, leaf: int) -> tuple[FloatArray, FloatArray] | None:
    """Corners of the curve of a leaf: times as parts of the last one, and shares without event."""
    baseline = None if model.numbers is None else model.numbers.baseline
    if baseline is None or not baseline.times[-1] > 0.0:
        return None
    assert model.numbers is not None
    at = np.append(0.0, baseline.times)
    free = baseline.free(model.numbers.means[leaf : leaf + 1], at)[0]
    return np.repeat(at / at[-1], 2)[1:], np.repeat(free, 2)[:-1]


def term_sizes(model: TreeModel) -> FloatArray:
    """By how much each term moves its leaf: slope times the spread of its column, signed."""
    assert model.numbers is not None
    slopes = model.numbers.functions.slopes
    spread = model.scaling.arrays().get("span", np.ones(len(slopes)))
    return slopes * np.where(np.isfinite(spread), spread, 0.0)[:, None]


def leaf_colour(model: TreeModel, leaf: int) -> str:
    """The fill of a leaf: the darker, the higher its mean."""
    assert model.numbers is not None
    means = model.numbers.means
    span = float(np.ptp(means))
    part = (float(means[leaf]) - float(means.min())) / span if span > 0 else 0.0
    shade = (round(a + part * (b - a)) for a, b in zip(LOWEST, HIGHEST, strict=True))
    return "#" + "".join(f"{value:02x}" for value in shade)
