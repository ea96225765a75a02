"""The smallest change of one feature that changes the predicted class.

The class along a number changes near values at which the score z of some question
has a certain level: where the walk decides (walk.py) at z = 0, where the mixture of the leaves
decides within some widths of the gate around it,

    c_tj v = level + b_t - the other terms.

Values between neighbouring ones of these are tried, and of a mixture ``GRID`` more over the range;
the first one outwards at which ``predict`` gives another class is followed back to the place where
it begins. From a value outside the training range the search begins at its nearer end. Levels,
whole numbers and dates are tried one by one (movers.py).

The nearest value is then rounded away from the present one, to the fewest digits (from
``FEWEST_DIGITS`` on; a date to days, hours or minutes) at which ``predict`` gives the same class,
within the training range and not further than ``MOST_ROUNDING`` of it. What is printed is that
number with all its digits.

Limits for advice (limits.py) narrow the ranges, levels and features that are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

import numpy as np

from softsplit.advice.limits import Room, decoded_row
from softsplit.advice.movers import Mover, moving
from softsplit.fitted.model import TreeModel
from softsplit.fitted.summary import BINARY, INTEGER
from softsplit.fitted.walk import TIE
from softsplit.support.arrays import FloatArray
from softsplit.support.numbers import finite
from softsplit.variables import Cells
from softsplit.variables.curves import hinges, slopes
from softsplit.variables.lookup import Lookup
from softsplit.variables.variable import CATEGORY, DATE

GRID = 2048
"""Even parts of a range, in units of the data and of the scaling, that are tried in a mixture."""

GATE_LEVELS = np.linspace(-12.0, 12.0, 49)
"""Log-odds of a gate at which a mixture is tried: beyond, a gate is open or shut to 6e-6."""

FINEST = 1e-10
"""A change is found to within this part of the training range."""

PARTS = 200
"""Parts of an interval with a change that are looked at together; three times are enough."""


FEWEST_DIGITS = 3
"""Digits to which a new value is rounded first, as on the report page."""

MOST_ROUNDING = 0.01
"""Part of the training range by which rounding may move a value: the change stays a small one."""

AT_ONCE = 4096
"""Rows that are predicted together."""


@dataclass(frozen=True)
class Change:
    """One feature, or one variable of a table, changed until the predicted class changes.

    Attributes
    ----------
    feature : int
        Its place among the columns of X.
    name : str
    value, new_value : float or str
        Before and after, in original units; levels, dates and truth values as text.
    share_of_range : float
        |new_value - value| as a part of the feature's training range, a finite number always; 1
        from one level of a category to another.
    label : object
        The class predicted afterwards.
    """

    feature: int
    name: str
    value: float | str
    new_value: float | str
    share_of_range: float
    label: Any


def class_changes(
    model: TreeModel,
    x: FloatArray,
    written: Sequence[float | str] | None = None,
    room: Room | None = None,
    cells: Sequence[Cells] = (),
) -> list[Change]:
    """Nearest change along every feature in use, smallest share of range first.

    Features along which the class does not change within the training range are not listed.
    ``written`` are the values of the row as people write them, by feature or by variable, if not
    its numbers. ``room`` is where values may move, the training ranges if it is not given;
    ``cells`` are those of the row by variable, which look-ups need.
    """
    room, cells = room or Room.of_training(model), cells or decoded_row(model, x)
    current = class_of(model, x)
    written = [float(value) for value in x] if written is None else written
    changes = []
    for i in moving(model, room):
        mover = Mover(model, x, i, room, cells)
        value = nearest_value(mover, current)
        if value is not None:
            changes.append(change_to(mover, value, written[i]))
    return sorted(changes, key=lambda change: (change.share_of_range, change.feature))


def class_of(model: TreeModel, x: FloatArray) -> int:
    return int(model.predict_index(x[None, :])[0])


def change_to(mover: Mover, value: float, written: float | str) -> Change:
    """The change of a feature to ``value``, in words of the table."""
    model, variable = mover.model, mover.variable
    level = variable.kind == CATEGORY
    unlisted = level and value >= len(variable.levels)
    return Change(
        feature=model.table_coding.places[mover.i],
        name=variable.name,
        value=written,
        new_value=variable.other_name if unlisted else variable.display(value),
        share_of_range=1.0 if level else finite(float(mover.distances(np.array([value]))[0])),
        label=model.labels[class_of(model, mover.rows(np.array([value]))[0])],
    )


# --- one feature ---------------------------------------------------------------------------------


def nearest_value(mover: Mover, current: int) -> float | None:
    """The nearest value of a feature at which the class is another; None without one."""
    if mover.variable.kind == CATEGORY:
        return _nearest_level(mover, current)
    if not mover.span > 0 or mover.low > mover.high:
        return None
    start = float(np.clip(mover.here, mover.low, mover.high))
    if mover.steps is not None:
        order = np.argsort(np.abs(mover.steps - start), kind="stable")
        place = _first_other(mover, mover.steps[order], current)
        return None if place is None else float(mover.steps[order][place])

    # 1. The first value on either side at which the class is another.
    values, ends = _places_to_try(mover), []
    for side in (values[values < start][::-1], values[values > start]):
        outwards = np.append(start, side)
        place = _first_other(mover, outwards, current)
        if place == 0:
            return _rounded(mover, start)
        # 2. Back to where the other class begins.
        if place is not None:
            ends.append(_begin(mover, outwards[place - 1], outwards[place], current))
    if not ends:
        return None
    # 3. To few digits.
    return _rounded(mover, min(ends, key=lambda value: abs(value - start)))


def _nearest_level(mover: Mover, current: int) -> float | None:
    """The level of a category at which the class is another: the nearest, then the surest."""
    assert mover.steps is not None
    rows = mover.rows(mover.steps)
    predicted = mover.model.predict_index(rows)
    changed = np.flatnonzero(predicted != current)
    if not len(changed):
        return None
    far = np.abs(rows[changed] - mover.x).sum(axis=1).round(9)
    sure = mover.model.votes(rows[changed])[np.arange(len(changed)), predicted[changed]]
    return float(mover.steps[changed[np.lexsort((-sure, far))[0]]])


def _first_other(mover: Mover, values: FloatArray, current: int) -> int | None:
    """The place of the first value at which the class is another."""
    for begin in range(0, len(values), AT_ONCE):
        some = values[begin : begin + AT_ONCE]
        changed = mover.model.predict_index(mover.rows(some)) != current
        changed &= mover.allowed(some)
        if np.any(changed):
            return begin + int(np.argmax(changed))
    return None


def _begin(mover: Mover, near: float, far: float, current: int) -> float:
    """Where another class begins between ``near``, of this class, and ``far`` of the other."""
    while abs(far - near) > max(
        FINEST * mover.span, 2 * float(np.spacing(max(abs(near), abs(far))))
    ):
        values = np.linspace(near, far, PARTS + 1)[1:]
        changed = mover.model.predict_index(mover.rows(values)) != current
        changed[-1], values[-1] = True, far
        place = int(np.argmax(changed))
        near, far = values[place - 1] if place else near, values[place]
    return float(far)


def _places_to_try(mover: Mover) -> FloatArray:
    """Values of a number in ascending order at which the class is asked for."""
    low, high, model = mover.low, mover.high, mover.model
    pointed = mover.variable.lookups
    parts = [np.array([low, high]), *(map(_steps, pointed) if pointed else _turns(mover))]
    if any(lookup.slopes for lookup in pointed):
        parts.append(np.linspace(low, high, GRID + 1))
    if model.walk is None and not pointed:
        ranks = model.scaling.restored(mover.column, np.linspace(0.0, 1.0, GRID + 1))
        parts += [np.linspace(low, high, GRID + 1), ranks]
    values = np.concatenate(parts)
    values = np.unique(values[(values >= low) & (values <= high)])
    if model.walk is None:
        return values
    return np.unique(np.concatenate([values, (values[1:] + values[:-1]) / 2]))


def _steps(lookup: Lookup) -> FloatArray:
    """Values at which points change, or their slope."""
    return np.array(lookup.edges or lookup.knots)


def _turns(mover: Mover) -> list[FloatArray]:
    """Values of a number at which a question turns, all else as in the row."""
    model, x, turns = mover.model, mover.x, []
    columns = mover.column + np.arange(1 + len(mover.variable.knots))
    if model.walk is not None:
        coefficients, thresholds = model.walk.coefficients, model.walk.thresholds
        ranked, levels = model.walk.ranked, np.array([-2.0, 0.0, 2.0]) * TIE
    else:
        coefficients, intercepts = model.splits
        thresholds, levels = -intercepts, GATE_LEVELS / model.steepness
        ranked = np.full(len(thresholds), not model.scaling.linear)
    ranks = model.scaled(x[None, :])[0] if np.any(ranked) else x
    for t in np.flatnonzero(np.any(coefficients[:, columns], axis=1)):
        seen = ranks if ranked[t] else x
        with np.errstate(over="ignore", invalid="ignore"):  # of a row that is far away
            terms = np.delete(coefficients[t] * seen, columns)
            left = thresholds[t] - terms.sum()
            # A walk takes sums that miss equality by rounding for equal.
            size = (
                1.0 if model.walk is None else abs(thresholds[t]) + np.abs(terms).sum() + abs(left)
            )
            values = _crossings(
                left + levels * size, coefficients[t, columns], mover.variable.knots
            )
        values = values[np.isfinite(values)]
        turns.append(model.scaling.restored(mover.column, values) if ranked[t] else values)
    return turns


def _crossings(
    levels: FloatArray, coefficients: FloatArray, knots: tuple[float, ...]
) -> FloatArray:
    """Values at which the terms of a number, which may bend, add up to one of ``levels``."""
    anchors, ends, values = np.array(knots or (0.0,)), [-np.inf, *knots, np.inf], []
    heights = np.hstack([anchors[:, None], hinges(anchors, knots)]) @ coefficients
    for piece, rise in enumerate(slopes(coefficients)):
        k = max(piece - 1, 0)  # a knot at an end of the piece
        if rise != 0:
            reached = anchors[k] + (levels - heights[k]) / rise
            values.append(reached[(reached >= ends[piece]) & (reached <= ends[piece + 1])])
    return np.concatenate([*values, np.zeros(0)])


# --- rounding ------------------------------------------------------------------------------------


def _rounded(mover: Mover, value: float) -> float:
    """The shortest number from ``value`` on, away from that of the row, with the same class."""
    low, high, variable = mover.low, mover.high, mover.variable
    whole = mover.model.summary.kinds[mover.column] in (BINARY, INTEGER) and value.is_integer()
    if whole or variable.levels:
        return value
    shorten = _whole_times if variable.kind == DATE else _fewer_digits
    side = value - mover.here
    ways = [side > 0] if side else [True, False]
    shorter = [
        number
        for up in ways
        for number in shorten(value, up)
        if low <= number <= high and abs(number - value) <= MOST_ROUNDING * (high - low)
    ]
    predicted = mover.model.predict_index(mover.rows(np.array([value, *shorter])))
    same = np.flatnonzero(predicted[1:] == predicted[0])
    return shorter[same[0]] if len(same) else value


def _fewer_digits(value: float, up: bool) -> list[float]:
    """A number rounded up or down to more and more significant digits."""
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    return [
        float(Context(prec=digits, rounding=rounding).create_decimal(repr(value)))
        for digits in range(FEWEST_DIGITS, 16)
    ]


def _whole_times(days: float, up: bool) -> list[float]:
    """A date, in days, rounded up or down to whole days, hours and minutes."""
    times = []
    for parts in (1, 24, 1440):
        near, further = np.rint(days * parts), np.ceil if up else np.floor
        exact = abs(near - days * parts) < 1e-6  # within rounding of floats
        times.append(float((near if exact else further(days * parts)) / parts))
    return times
