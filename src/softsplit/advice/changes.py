"""The smallest change of one feature, or of two, that changes the predicted class.

Where the walk decides (walk.py), the class along one feature changes only where a question does:
at the value v with c_tj v = b_t - the other terms. Numbers a little beyond each of these values are
tried. Trees that predict by the mixture of their leaves are searched by interval arithmetic
(feature_line.py). From a value outside the training range the search begins at its nearer end.

The nearest value is then rounded away from the present one, to the fewest digits (from
``fewest_digits`` on; a date to days, hours or minutes) at which ``predict`` gives the same class,
within the training range and not further than ``most_rounding`` of it. What is printed is that
number with all its digits.

Features whose training values are all 0 or 1 are flipped, integer ones move in whole steps. A
category of a table changes to each of its other levels; a missing value is filled with its middle
first. A date of which the tree uses several parts moves as a whole, by days, and by hours if it
uses the hour; one part that is used alone, such as the month, changes by itself.

Where no single feature can do it, a change of two together is looked for. Each feature in use has
some values within its training range: levels, whole numbers, or ``grid`` parts of the range; every
pair of values of every two features is tried. Of those at which the class is another, the one with
the smallest parts of both ranges together is followed back: each of the two goes as near to its own
value as it can while the other stays (by the exact search above). What is found changes the class,
and neither of the two could change less by itself; a smaller change between values that were tried
may be missed.

Limits for advice (limits.py) narrow the ranges, levels and features that are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.advice.feature_line import FeatureLine, MovingNumber, UndecidedError
from softsplit.advice.limits import Room, level_cells
from softsplit.fitted.model import TreeModel
from softsplit.fitted.summary import BINARY, INTEGER
from softsplit.support.arrays import FloatArray
from softsplit.support.numbers import finite
from softsplit.variables import Cells
from softsplit.variables.curves import slopes
from softsplit.variables.dates import HOUR, UNITS
from softsplit.variables.variable import CATEGORY, DATE


@dataclass(frozen=True)
class ChangeSearchOptions:
    """How far the search for a change of class goes.

    Attributes
    ----------
    most_steps : int
        Integers tried one by one; over a longer range a feature counts as a number.
    grid : int
        Parts of a range that are tried for two features together.
    most_features : int
        Features that are paired: those with the largest coefficients.
    fewest_digits : int
        Digits to which a new value is rounded first, as on the report page.
    most_rounding : float
        Part of the training range by which rounding may move a value: the change stays a small one.
    """

    most_steps: int = 100_000
    grid: int = 24
    most_features: int = 12
    fewest_digits: int = 3
    most_rounding: float = 0.01


OPTIONS = ChangeSearchOptions()


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


Moved = tuple[Change, FloatArray]
"""A change, and the row after it."""


def class_changes(
    model: TreeModel,
    x: FloatArray,
    written: Sequence[float | str] | None = None,
    room: Room | None = None,
) -> tuple[list[Change], list[str]]:
    """Nearest change along every feature in use, smallest share of range first.

    Features along which the class does not change within the training range are not listed.
    ``written`` are the values of the row as people write them, by feature or by variable, if not
    its numbers. ``room`` is where values may move, the training ranges if it is not given. The
    second list names features whose search was given up.
    """
    room = room or Room.of_training(model)
    current = int(model.predict_index(x[None, :])[0])
    written = [float(value) for value in x] if written is None else written
    found, undecided = [], []
    for i in moving(model, room):
        name = model.feature_names[i] if model.coding is None else model.coding.variables[i].name
        try:
            change = change_along(model, x, i, current, written[i], room)
        except UndecidedError:
            undecided.append(name)
            continue
        if change is not None:
            found.append(change[0])
    found.sort(key=lambda change: (change.share_of_range, change.feature))
    return found, undecided


def in_use(model: TreeModel) -> list[int]:
    """Features, or variables, that some split looks at."""
    features = np.flatnonzero(np.any(np.abs(model.parameters.weights) > 0, axis=1))
    return np.unique(features if model.coding is None else model.coding.homes[features]).tolist()


def moving(model: TreeModel, room: Room) -> list[int]:
    """Features, or variables, that may change: those in use, and for parts of a date the date."""
    if model.coding is None:
        return [i for i in in_use(model) if i not in room.fixed]
    movers = sorted({_mover(model, i) for i in in_use(model)})
    return [i for i in movers if room.fixed.isdisjoint([i, *moved_with(model, i)])]


def _mover(model: TreeModel, i: int) -> int:
    """The variable that moves where ``i`` is to change: the date, if several parts are in use."""
    assert model.coding is not None
    siblings = model.coding.siblings([i])
    date = next((j for j in siblings if model.coding.variables[j].kind == DATE), i)
    return date if len(moved_with(model, date)) > 1 else i


def moved_with(model: TreeModel, i: int) -> list[int]:
    """Variables that change when ``i`` does: itself, or all that is in use of a date.

    These are the parts of a date, and times that count from it.
    """
    assert model.coding is not None
    variables, place = model.coding.variables, model.coding.places[i]
    if variables[i].kind != DATE:
        return [i]
    of_date = [
        j
        for j in in_use(model)
        if model.coding.places[j] == place or variables[j].since == variables[i].name
    ]
    return of_date if len(of_date) > 1 else [i]


def _columns_with(model: TreeModel, i: int) -> NDArray[np.intp]:
    """The columns that change when feature, or variable, i does."""
    if model.coding is None:
        return np.array([i])
    return np.concatenate([model.coding.columns_of(j) for j in moved_with(model, i)])


def change_along(
    model: TreeModel, x: FloatArray, i: int, current: int, written: float | str, room: Room
) -> Moved | None:
    """The nearest change of one feature, or of one variable, and the row after it."""
    if model.coding is None:
        return _moved_to(model, x, i, current, written, room)
    columns, variable = model.coding.columns_of(i), model.coding.variables[i]
    if variable.kind == CATEGORY:
        return _other_level(model, x, i, current, written, room)
    if len(moved_with(model, i)) > 1:
        return _other_date(model, x, i, current, written, room)
    if variable.has_missing and x[columns[-1]] == 1.0:
        x = x.copy()
        x[columns[-1]] = 0.0  # known, and as in the middle
        along = MovingNumber.of(model, i)
        if model.summary.kinds[along.column] in (BINARY, INTEGER):
            x = along.moved(x, np.rint(x[along.column : along.column + 1]))[0]
        if i in room.stated:
            inside = np.clip(x[along.column], room.low[along.column], room.high[along.column])
            x = along.moved(x, np.array([inside]))[0]
    return _moved_to(model, x, i, current, written, room)


def _moved_to(
    model: TreeModel, x: FloatArray, i: int, current: int, written: float | str, room: Room
) -> Moved | None:
    """The nearest change along feature or variable i, which is no category."""
    along = MovingNumber.of(model, i)
    j = along.column
    value: float | None = float(x[j])
    if int(model.predict_index(x[None, :])[0]) == current:
        value = _nearest(model, x, along, current, room)
    if value is None:
        return None
    value = _rounded(model, x, i, value, room)
    span = float(model.summary.high[j] - model.summary.low[j])
    coding, row = model.coding, along.moved(x, np.array([value]))[0]
    change = Change(
        feature=i if coding is None else coding.places[i],
        name=model.feature_names[i] if coding is None else coding.variables[i].name,
        value=written,
        new_value=value if coding is None else coding.variables[i].display(value),
        share_of_range=finite(abs(value - float(x[j])) / span) if span > 0 else 0.0,
        label=model.labels[int(model.predict_index(row[None, :])[0])],
    )
    return change, row


def _rounded(model: TreeModel, x: FloatArray, i: int, value: float, room: Room) -> float:
    """The shortest number from ``value`` on, away from that of the row, with the same class."""
    along, coding = MovingNumber.of(model, i), model.coding
    low, high = float(room.low[along.column]), float(room.high[along.column])
    whole = model.summary.kinds[along.column] in (BINARY, INTEGER) and value == np.rint(value)
    if whole or (coding is not None and coding.variables[i].levels):
        return value
    date = coding is not None and coding.variables[i].kind == DATE
    side = np.sign(value - float(x[along.column]))
    shorter = [
        number
        for up in ([side > 0] if side else [True, False])
        for number in (_whole_times(value, up) if date else _fewer_digits(value, up))
        if low <= number <= high and abs(number - value) <= OPTIONS.most_rounding * (high - low)
    ]
    predicted = model.predict_index(along.moved(x, np.array([value, *shorter])))
    same = np.flatnonzero(predicted[1:] == predicted[0])
    return shorter[same[0]] if len(same) else value


def _fewer_digits(value: float, up: bool) -> list[float]:
    """A number rounded up or down to more and more significant digits."""
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    return [
        float(Context(prec=digits, rounding=rounding).create_decimal(repr(value)))
        for digits in range(OPTIONS.fewest_digits, 16)
    ]


def _whole_times(days: float, up: bool) -> list[float]:
    """A date, in days, rounded up or down to whole days, hours and minutes."""
    found = []
    for parts in (1, 24, 1440):
        near, further = np.rint(days * parts), np.ceil if up else np.floor
        exact = abs(near - days * parts) < 1e-6  # within rounding of floats
        found.append(float((near if exact else further(days * parts)) / parts))
    return found


def _other_level(
    model: TreeModel, x: FloatArray, i: int, current: int, written: float | str, room: Room
) -> Moved | None:
    """The level of a category at which the class is another: the nearest, then the surest."""
    assert model.coding is not None
    variable, columns = model.coding.variables[i], model.coding.columns_of(i)
    cells = level_cells(variable)
    rows = np.repeat(x[None, :], len(cells.numbers), axis=0)
    rows[:, columns] = variable.coded(cells)
    predicted = model.predict_index(rows)
    changed = np.flatnonzero((predicted != current) & room.allows(i, len(rows)))
    if not len(changed):
        return None
    far = np.abs(rows[changed][:, columns] - x[columns]).sum(axis=1).round(9)
    sure = model.votes(rows[changed])[np.arange(len(changed)), predicted[changed]]
    best = int(changed[np.lexsort((-sure, far))[0]])
    change = Change(
        feature=model.coding.places[i],
        name=variable.name,
        value=written,
        new_value=variable.other_name if cells.unlisted[best] else variable.levels[best],
        share_of_range=1.0,
        label=model.labels[int(predicted[best])],
    )
    return change, rows[best]


def _other_date(
    model: TreeModel, x: FloatArray, i: int, current: int, written: float | str, room: Room
) -> Moved | None:
    """The nearest date at which the class is another, with all parts of it that are in use."""
    assert model.coding is not None
    variable, j = model.coding.variables[i], model.coding.firsts[i]
    low, high = float(room.low[j]), float(room.high[j])
    span = float(model.summary.high[j] - model.summary.low[j])
    start, steps = float(x[j]), 1
    parts = {model.coding.variables[n].part for n in moved_with(model, i)}
    if HOUR in parts and 24 * (high - low) <= OPTIONS.most_steps:
        steps = 24
    ends = np.ceil((low - start) * steps), np.floor((high - start) * steps)
    if not -OPTIONS.most_steps < ends[0] <= ends[1] < OPTIONS.most_steps:
        return None
    values = start + np.arange(ends[0], ends[1] + 1) / steps
    values = values[np.argsort(np.abs(values - start), kind="stable")]
    size = 4096
    for begin in range(0, len(values), size):
        rows = _at_dates(model, x, i, values[begin : begin + size])
        predicted = model.predict_index(rows)
        changed = (predicted != current) & _possible(model, rows, i, room)
        if np.any(changed):
            at = int(np.argmax(changed))
            value = float(values[begin + at])
            change = Change(
                feature=model.coding.places[i],
                name=variable.name,
                value=written,
                new_value=variable.display(value),
                share_of_range=finite(abs(value - start) / span) if span > 0 else 0.0,
                label=model.labels[int(predicted[at])],
            )
            return change, rows[at]
    return None


def _possible(model: TreeModel, rows: FloatArray, i: int, room: Room) -> NDArray[np.bool_]:
    """Whether times between the date and others, and limited parts of it, are within their room."""
    coding = model.coding
    assert coding is not None
    moved = [n for n in moved_with(model, i) if n != i]
    numbers = [n for n in moved if coding.variables[n].since or n in room.stated - set(room.levels)]
    columns = [coding.firsts[n] for n in numbers]
    inside = (rows >= room.low) & (rows <= room.high)
    possible = np.all(inside[:, columns], axis=1)
    for n in room.levels.keys() & set(moved):
        variable = coding.variables[n]
        allowed = variable.coded(level_cells(variable))[room.levels[n]]
        own = rows[:, coding.columns_of(n)]
        possible &= np.any(np.all(own[:, None] == allowed[None], axis=2), axis=1)
    return np.asarray(possible)


def _at_dates(model: TreeModel, x: FloatArray, i: int, values: FloatArray) -> FloatArray:
    """The row at other dates, in days since the origin, (n_values, n_features)."""
    coding = model.coding
    assert coding is not None
    origin, start = coding.variables[i].origin, float(x[coding.firsts[i]])
    none = np.zeros(len(values), dtype=bool)
    rows = np.repeat(x[None, :], len(values), axis=0)
    for n in moved_with(model, i):
        variable, columns = coding.variables[n], coding.columns_of(n)
        if variable.since:
            if variable.has_missing and x[columns[-1]] == 1.0:
                continue  # the other date is unknown
            later = 1.0 if coding.places[n] == coding.places[i] else -1.0
            passed = x[columns[0]] + later * (values - start) * UNITS[variable.part]
            cells = Cells(passed, none, none)
        elif n == i:
            cells = Cells(values, none, none)
        else:
            cells = variable.cells_of_days(values + origin)
        rows[:, columns] = variable.coded(cells)
    return rows


def _nearest(
    model: TreeModel, x: FloatArray, along: MovingNumber, current: int, room: Room
) -> float | None:
    """Nearest value of a number within its room at which the class is another."""
    j = along.column
    low, high = float(room.low[j]), float(room.high[j])
    kind, here = model.summary.kinds[j], float(x[j])
    constant = not model.summary.low[j] < model.summary.high[j]
    if constant or low > high or low == high == here:
        return None
    start = min(max(here, low), high)
    if kind == BINARY and here == np.rint(here):
        values = np.array([value for value in (0.0, 1.0) if low <= value <= high])
        return _nearest_of(model, x, along, current, values, start)
    if kind == INTEGER and here == np.rint(here) and high - low <= OPTIONS.most_steps:
        values = np.arange(np.ceil(low), np.floor(high) + 1)
        return _nearest_of(model, x, along, current, values, start)
    if start != here and model.predict_index(along.moved(x, np.array([start])))[0] != current:
        return start
    if model.walk is not None:
        return _nearest_turn(model, x, along, current, start, room)
    line = FeatureLine(model, x, along, current, start)
    down = line.first_change(start, low) if low < start else None
    up = line.first_change(start, high) if start < high else None
    found = [value for value in (down, up) if value is not None]
    return min(found, key=lambda value: abs(value - start)) if found else None


def _nearest_turn(
    model: TreeModel, x: FloatArray, along: MovingNumber, current: int, start: float, room: Room
) -> float | None:
    """Of a walk: the nearest short number beyond the turn of a question that changes the class."""
    assert model.walk is not None
    j = along.column
    low, high = float(room.low[j]), float(room.high[j])
    turns = [turn for turn in _turns(model, x, along) if low <= turn <= high]
    tried = [start]
    for turn in turns:
        for side in (-1.0, 1.0):
            tried += _beyond(turn, side, low, high)
    values = np.unique(np.clip(tried, low, high))
    return _nearest_of(model, x, along, current, values, start)


def _turns(model: TreeModel, x: FloatArray, along: MovingNumber) -> list[float]:
    """Values of a number at which a question turns, all else as in the row."""
    walk, found = model.walk, []
    assert walk is not None
    ranks = None if model.scaling.linear else model.scaled(x[None, :])[0]
    columns, j = along.columns, along.column
    for t in np.flatnonzero(np.any(walk.coefficients[:, columns], axis=1)):
        row = walk.coefficients[t]
        seen = ranks if walk.ranked[t] and ranks is not None else x
        with np.errstate(over="ignore", invalid="ignore"):  # of a row that is far away
            others = float(np.delete(row, columns) @ np.delete(seen, columns))
        left = float(walk.thresholds[t]) - others
        if not np.isfinite(left):
            continue
        if along.knots:
            found += _curve_at(left, row[columns], along)
        else:
            turn = left / float(row[j])
            found.append(model.scaling.to_original(j, turn) if walk.ranked[t] else turn)
    return [turn for turn in found if np.isfinite(turn)]


def _curve_at(level: float, coefficients: FloatArray, along: MovingNumber) -> list[float]:
    """Values at which the terms of a number that bends add up to ``level``."""
    with np.errstate(over="ignore", invalid="ignore"):  # of a row that is far away
        knots = np.array(along.knots)
        heights = along.coded(knots) @ coefficients
        rises = slopes(coefficients)
        ends = [-np.inf, *knots, np.inf]
        found = []
        for piece, (low, high) in enumerate(pairwise(ends)):
            at = max(piece - 1, 0)  # a knot at an end of the piece
            if rises[piece] != 0:
                value = float(knots[at] + (level - heights[at]) / rises[piece])
                found += [value] if low <= value <= high else []
        return found


def _beyond(turn: float, side: float, low: float, high: float) -> list[float]:
    """Numbers a little beyond a value, with more and more digits, within the training range."""
    size = max(abs(turn), 1e-6 * (high - low), 1e-300)
    exponent = int(np.floor(np.log10(size)))
    found = []
    for digits in (3, 4, 6, 9, 12):
        step = 10.0 ** (exponent - digits + 1)
        whole = np.ceil(turn / step) if side > 0 else np.floor(turn / step)
        for extra in (0.0, side):
            value = float(f"{(whole + extra) * step:.{digits}g}")
            if low <= value <= high and abs(value - turn) <= 0.01 * (high - low):
                found.append(value)
    return found


def _nearest_of(
    model: TreeModel,
    x: FloatArray,
    along: MovingNumber,
    current: int,
    values: FloatArray,
    start: float,
) -> float | None:
    """The one of some values nearest to ``start`` at which the class is another."""
    values = values[np.argsort(np.abs(values - start), kind="stable")]
    size = 4096
    for begin in range(0, len(values), size):
        part = values[begin : begin + size]
        changed = model.predict_index(along.moved(x, part)) != current
        if np.any(changed):
            return float(part[np.argmax(changed)])
    return None


# --- two features together -----------------------------------------------------------------------


class TriedValues(NamedTuple):
    """Values of one feature, or variable, that are tried: what its columns hold, and how far."""

    columns: NDArray[np.intp]
    values: FloatArray
    far: FloatArray


def joint_change(
    model: TreeModel, x: FloatArray, written: Sequence[float | str], room: Room | None = None
) -> tuple[Change, ...]:
    """Two changes that together change the class of a row; empty if none was found.

    ``written`` are the values of the row as people write them, by feature or by variable, ``room``
    is where values may move.
    """
    room = room or Room.of_training(model)
    with np.errstate(over="ignore"):  # of a row far off, distances may be infinite
        best = _nearest_pair(model, x, room)
    return () if best is None else _followed_back(model, x, written, *best, room)


def _nearest_pair(
    model: TreeModel, x: FloatArray, room: Room
) -> tuple[FloatArray, tuple[int, int]] | None:
    """The nearest row of the grid that has another class, and the two features that it moves."""
    current = int(model.predict_index(x[None, :])[0])
    moves = {i: _moves(model, x, i, room) for i in _weightiest(model, room)}
    least, best = np.inf, None
    for pair in combinations(moves, 2):
        one, other = moves[pair[0]], moves[pair[1]]
        if np.intersect1d(one.columns, other.columns).size:
            continue  # two dates, and the time between them
        rows = np.repeat(x[None, :], len(one.far) * len(other.far), axis=0)
        if not len(rows):
            continue  # limits leave no value
        rows[:, one.columns] = np.repeat(one.values, len(other.far), axis=0)
        rows[:, other.columns] = np.tile(other.values, (len(one.far), 1))
        far = np.add.outer(one.far, other.far).ravel()
        far[model.predict_index(rows) == current] = np.inf
        nearest = int(np.argmin(far))
        if far[nearest] < least:
            least, best = far[nearest], (rows[nearest], pair)
    return best


def _weightiest(model: TreeModel, room: Room) -> list[int]:
    """Features, or variables, in use: those with the largest coefficients, in order."""
    sizes = np.abs(model.parameters.weights).max(axis=1)
    if model.coding is not None:
        largest = np.zeros(len(model.coding.variables))
        np.maximum.at(largest, model.coding.homes, sizes)
        sizes = largest
        for i in moving(model, room):
            sizes[i] = max(sizes[n] for n in moved_with(model, i))
    movers = sorted(moving(model, room), key=lambda i: (-sizes[i], i))
    return sorted(movers[: OPTIONS.most_features])


def _moves(model: TreeModel, x: FloatArray, i: int, room: Room) -> TriedValues:
    columns = _columns_with(model, i)
    variable = None if model.coding is None else model.coding.variables[i]
    if variable is not None and variable.kind == CATEGORY:
        values = variable.coded(level_cells(variable))
        values = values[room.allows(i, len(values))]
        same = np.all(np.abs(values - x[columns]) < 1e-9, axis=1)
        return TriedValues(columns, values, np.where(same, 0.0, 1.0))
    j = i if model.coding is None else model.coding.firsts[i]
    low, high = float(room.low[j]), float(room.high[j])
    span = float(model.summary.high[j] - model.summary.low[j]) or 1.0
    if model.coding is not None and len(moved_with(model, i)) > 1:
        start = float(x[j])
        ends = np.ceil(low - start), max(np.floor(high - start), np.ceil(low - start))
        days = np.unique(np.rint(np.linspace(*ends, OPTIONS.grid + 1)))
        rows = _at_dates(model, x, i, start + days)
        days = np.where(_possible(model, rows, i, room), days, np.inf)
        values = rows[:, columns]
        return TriedValues(columns, values, np.abs(days) / span)
    if model.summary.kinds[j] == BINARY:
        tried = np.array([value for value in (0.0, 1.0) if low <= value <= high])
    elif model.summary.kinds[j] == INTEGER:
        tried = np.unique(np.rint(np.linspace(low, high, OPTIONS.grid + 1)))
        tried = tried[(tried >= low) & (tried <= high)]
    else:
        tried = np.linspace(low, high, OPTIONS.grid + 1)
    along = MovingNumber.of(model, i)
    values = np.zeros((len(tried), len(columns)))  # known, where there is an indicator
    values[:, : 1 + len(along.knots)] = along.coded(tried)
    return TriedValues(columns, values, np.abs(tried - float(x[j])) / span)


def _followed_back(
    model: TreeModel,
    x: FloatArray,
    written: Sequence[float | str],
    row: FloatArray,
    pair: tuple[int, int],
    room: Room,
) -> tuple[Change, ...]:
    """The changes of two features to a row, after each has gone back as far as it can."""
    current = int(model.predict_index(x[None, :])[0])
    found: dict[int, Change] = {}
    for i in pair:
        columns = _columns_with(model, i)
        begun = row.copy()
        begun[columns] = x[columns]  # as it was, the other one moved
        try:
            change = change_along(model, begun, i, current, written[i], room)
        except UndecidedError:
            return ()
        if change is None or int(model.predict_index(begun[None, :])[0]) != current:
            return ()
        found[i] = change[0]
        row = change[1]
    label = model.labels[int(model.predict_index(row[None, :])[0])]
    return tuple(replace(found[i], label=label) for i in pair)
