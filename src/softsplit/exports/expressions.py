"""Expressions of the exported program, and what is simplified while they are made.

An expression is a number, the name of a definition, or one of the classes below. Conditions are
expressions that stand only in ``if_``, ``all_of`` and ``any_of``: some languages have no truth
values in tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "sum", "product", "minus", "divide", "negative", "exp", "abs", "max", "min", "if", "greater",
    "at least", "equal", "missing", "all", "any", "floor",
]  # fmt: skip


@dataclass(frozen=True)
class Name:
    """The value of a definition."""

    text: str


@dataclass(frozen=True)
class Op:
    """An operation on expressions."""

    kind: Kind
    args: tuple[Expression, ...]


@dataclass(frozen=True)
class Column:
    """A column of the table that the program reads.

    Attributes
    ----------
    place : int
        Its index in the table.
    name : str
    kind : {"number", "truth", "day", "text"}
        How a cell is read. Numbers, and days since 1970-01-01, may be missing. Truth values and
        texts become the position of a level, ``UNLISTED`` or ``MISSING``.
    levels : tuple of str
        Of texts.
    form : str
        The ``strptime`` format of dates that are not written as 2026-11-16.
    """

    place: int
    name: str
    kind: Literal["number", "truth", "day", "text"]
    levels: tuple[str, ...] = ()
    form: str = ""


# Positions of a text that is none of the levels, and of a missing one.
UNLISTED, MISSING = -1, -2


@dataclass(frozen=True)
class Read:
    """The cell of a column: a number or missing, or a position as of ``Column``."""

    column: Column


@dataclass(frozen=True)
class ValueLookup:
    """``values[at + 2]``, the first two for ``MISSING`` and ``UNLISTED``."""

    at: Name
    values: tuple[float, ...]


@dataclass(frozen=True)
class Interpolate:
    """Linear interpolation from ``knots`` to ``ranks``, constant beyond the first and the last."""

    at: Name
    knots: tuple[float, ...]
    ranks: tuple[float, ...]


Expression = float | Name | Op | Read | ValueLookup | Interpolate


# --- making expressions ---------------------------------------------------------------------------


def total(terms: Sequence[Expression]) -> Expression:
    """The sum in this order; zeros are left out."""
    kept = tuple(term for term in terms if term != 0.0)
    if all(isinstance(term, float) for term in kept):
        return float(sum(term for term in kept if isinstance(term, float)))
    return kept[0] if len(kept) == 1 else Op("sum", kept)


def times(*factors: Expression) -> Expression:
    """The product; numbers are multiplied at once."""
    number, others = 1.0, []
    for factor in factors:
        if isinstance(factor, float):
            number *= factor
        else:
            others.append(factor)
    if number == 0.0 or not others:
        return number
    kept = (*([number] if number != 1.0 else []), *others)
    return kept[0] if len(kept) == 1 else Op("product", tuple(kept))


def minus(left: Expression, right: Expression) -> Expression:
    """The difference."""
    if isinstance(left, float) and isinstance(right, float):
        return left - right
    return left if right == 0.0 else Op("minus", (left, right))


def over(left: Expression, right: float) -> Expression:
    """The quotient."""
    return Op("divide", (left, right))


def floor(value: Expression) -> Expression:
    """The largest whole number that is not larger."""
    return Op("floor", (value,))


def if_(condition: Op | bool, yes: Expression, no: Expression) -> Expression:
    """``yes`` where the condition holds."""
    if isinstance(condition, bool):
        return yes if condition else no
    return yes if yes == no else Op("if", (condition, yes, no))


def either(conditions: Sequence[Op]) -> Op:
    """Whether one of the conditions holds."""
    return conditions[0] if len(conditions) == 1 else Op("any", tuple(conditions))


def looked_up(at: Name, values: Sequence[float]) -> Expression:
    """``Lookup``, or the same as a condition where one of two values has few places."""
    values = tuple(map(float, values))
    counts = {value: values.count(value) for value in values}
    if len(counts) == 1:
        return values[0]
    rarer, other = sorted(counts, key=lambda value: counts[value])[:2]
    if len(counts) == 2 and counts[rarer] <= 3:
        places = [float(i - 2) for i, value in enumerate(values) if value == rarer]
        return if_(either([Op("equal", (at, place)) for place in places]), rarer, other)
    return ValueLookup(at, values)


def first_largest(values: Sequence[Expression]) -> Expression:
    """Position of the largest value, the first of equal ones."""
    last: Expression = float(len(values) - 1)
    for i in range(len(values) - 2, -1, -1):
        rest = values[i + 1 :]
        most = rest[0] if len(rest) == 1 else Op("max", tuple(rest))
        last = if_(Op("at least", (values[i], most)), float(i), last)
    return last


def picked(at: Expression, values: Sequence[Expression]) -> Expression:
    """The value at a position."""
    if isinstance(at, float):
        return values[int(at)]
    choice = values[-1]
    for i in range(len(values) - 2, -1, -1):
        choice = if_(Op("equal", (at, float(i))), values[i], choice)
    return choice


def names_in(expression: Expression) -> Iterator[str]:
    """The names that an expression uses."""
    if isinstance(expression, Name):
        yield expression.text
    elif isinstance(expression, Op):
        for part in expression.args:
            yield from names_in(part)
    elif isinstance(expression, ValueLookup | Interpolate):
        yield expression.at.text
