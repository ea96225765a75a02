"""Whether a column has a monotone effect: a proof for all inputs, or two rows that contradict it.

1. Leaf ranges (monotone.py): cheap, and enough for every tree that was trained for the effect.
2. A search for two rows that differ in the column alone and contradict the effect, on random rows
   and then around the worst of them; what it finds is confirmed by the tree's own predictions.
3. Branch and bound over boxes of the columns in use, for the mixture. In a box every gate lies in
   an interval, and so do the probabilities R_t of reaching a branch and what is below it:

       V_t in [min_p (p L_low + (1 - p) R_low), max_p (p L_high + (1 - p) R_high)]

   The effect holds in the box if the sum over the branches of slope g_t R_t (V_left - V_right)
   has a lower bound of zero. A box in which it has none is halved. Infinite boxes are part of it,
   so that what is proved holds for all inputs; columns of one category are taken for independent
   of one another, which proves no less.

Levels of the classes and the sign are those of variables/monotone.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.fitted.monotone import MonotoneEffect
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Topology
from softsplit.tree.scaling import LinearScaling
from softsplit.variables import Cells, MonotoneEffects, monotone_effects
from softsplit.variables.variable import CATEGORY, DATE, NUMBER


@dataclass(frozen=True)
class CheckOptions:
    """How long is searched, and what counts as a contradiction."""

    falls: float = 1e-9
    """Probabilities that fall by less are equal: rounding."""

    rows: int = 3000
    """Random rows of the search, each at ``places`` values of the column."""

    places: int = 12
    """Values of the column at which a row is looked at."""

    rounds: int = 3
    """Rounds around the worst rows."""

    worst: int = 60
    """Rows that a round goes on from."""

    beyond: float = 0.5
    """Values are drawn from the training range and this part of it on either side."""

    boxes: int = 20_000
    """Boxes that branch and bound may look at."""

    at_once: int = 512
    """Boxes of one pass."""

    far: float = 1e30
    """Infinite ends of boxes, in training ranges."""

    flat: float = 1e-13
    """Derivatives, per training range of the column, that are none."""


OPTIONS = CheckOptions()


@dataclass(frozen=True)
class MonotoneCheck:
    """What is known of the effect of a column.

    Attributes
    ----------
    effect : str
        What was asked, as a sentence.
    holds : bool or None
        None where it could not be decided.
    proved : bool
        Whether it is proved for all inputs.
    rows : table of two rows, optional
        They differ in the column alone and contradict the effect; in the form of X.
    reason : str
        How it was decided, or why not.
    """

    effect: str
    holds: bool | None
    proved: bool
    rows: Any = None
    reason: str = ""

    def __bool__(self) -> bool:
        return self.holds is True

    def __str__(self) -> str:
        verdict = {True: "holds", False: "does not hold", None: "not decided"}[self.holds]
        return f"{self.effect}: {verdict} ({self.reason})"


def check_monotone(
    model: TreeModel, column: Any, sign: Any = None, options: CheckOptions = OPTIONS
) -> MonotoneCheck:
    """Prove or refute the monotone effect of ``column``.

    Parameters
    ----------
    column : str or int
        Name or position of a column of X.
    sign : "+", "-" or mapping of classes to them, optional
        As in the parameter ``monotone``. By default what the tree was trained for, or else the
        sign that the tree itself has.
    """
    names = model.column_names
    given = {column: "+" if sign is None else sign}
    found = monotone_effects(given, model.coding, names, model.classes)
    assert found is not None
    place, wanted = found.signs[0]
    known = model.monotone
    if sign is None and known is not None and place in dict(known.signs):
        effect = MonotoneEffect(model, place, dict(known.signs)[place], known)
    elif sign is None:
        effect = MonotoneEffect(model, place, _own_sign(model, place, found), found)
    else:
        effect = MonotoneEffect(model, place, wanted, found)
    return _checked(effect, options)


def check_effect(
    effect: MonotoneEffect, model: TreeModel, options: CheckOptions = OPTIONS
) -> MonotoneCheck | None:
    """Prove or refute an effect of one tree in another one; None where the other has no such column
    with an order, or other classes."""
    name = effect.model.column_names[effect.place]
    if name not in model.column_names or list(model.labels) != list(effect.model.labels):
        return None
    place = model.column_names.index(name)
    try:
        found = monotone_effects({name: "+"}, model.coding, model.column_names, model.classes)
    except ValueError:  # a column that is no number there
        return None
    assert found is not None
    turned = (place,) if effect.place in effect.levels.turned else ()
    levels = replace(found, levels=effect.levels.levels, turned=turned)
    return _checked(MonotoneEffect(model, place, effect.sign, levels), options)


def _own_sign(model: TreeModel, place: int, levels: MonotoneEffects) -> int:
    """The sign of the effect in the middle of the training ranges."""
    rows = _Rows(model, place)
    frame = rows.drawn(np.random.default_rng(0), 400)
    low, high = rows.ends(place)
    ends = []
    for value in (low, high):
        moved = frame.copy()
        moved[:, place] = value
        ends.append(levels.at_least(model.predict_proba(rows.coded(moved)).T).mean())
    return 1 if ends[1] >= ends[0] else -1


def _checked(effect: MonotoneEffect, options: CheckOptions) -> MonotoneCheck:
    told = effect.sentence
    if not effect.used:
        return MonotoneCheck(told, True, True, reason="the tree does not use the column")
    if effect.proved:
        return MonotoneCheck(told, True, True, reason="proved for all inputs, by leaf ranges")
    rows = _searched(effect, options)
    if rows is not None:
        return MonotoneCheck(told, False, False, rows, "two rows contradict it")
    if effect.adjusted:
        why = "probabilities that are lowered to that of the predicted class are no mixture"
    elif effect.decides and not (effect.classes_follow or effect.classes_proved):
        why = "no rows contradict it, but leaf ranges do not prove it for the predicted classes"
    elif effect.proba_proved:
        why = "no rows contradict it"
    else:
        n_boxes = _bounded(effect, options)
        if n_boxes is not None:
            reason = f"proved for all inputs, by {n_boxes} boxes"
            return MonotoneCheck(told, True, True, reason=reason)
        why = f"no rows contradict it, and {options.boxes} boxes do not prove it"
    return MonotoneCheck(told, None, False, reason=why)


# --- rows -----------------------------------------------------------------------------------------


class _Rows:
    """Random rows of the table of a tree, as numbers: those of its cells, NaN for missing ones."""

    def __init__(self, model: TreeModel, place: int) -> None:
        self.model, self.place = model, place
        self.coding = model.table_coding
        first = np.array(self.coding.firsts)
        low, high = model.summary.low[first], model.summary.high[first]
        self._low, self._high = {}, {}
        for i, at in enumerate(self.coding.places):
            variable = self.coding.variables[i]
            ends = (float(low[i]), float(high[i]))
            if variable.levels and not variable.shares:
                ends = (0.0, len(variable.levels) - 1.0)
            if variable.shares:
                ends = (0.0, len(variable.shares) - 2.0)
            self._low[at], self._high[at] = ends if not variable.part else (0.0, 0.0)
        parts = [variable for variable in self.coding.variables if variable.part]
        self.whole = not parts and len(set(self.coding.places)) == len(self.coding.places)

    def ends(self, place: int) -> tuple[float, float]:
        """Training range of a column."""
        return self._low[place], self._high[place]

    def drawn(self, rng: np.random.Generator, count: int, beyond: float = 0.0) -> FloatArray:
        """Rows with every column drawn by itself, (count, n_columns of the table)."""
        made = np.zeros((count, len(self.coding.names)))
        for variable, at in zip(self.coding.variables, self.coding.places, strict=True):
            low, high = self.ends(at)
            if variable.kind in (NUMBER, DATE):
                span = (high - low) * beyond
                values = rng.uniform(low - span, high + span, count)
                some = rng.random(count) < 0.3  # ends matter: a share of the rows has them
                values[some] = rng.choice([low, high], int(some.sum()))
            else:
                values = rng.integers(int(low), int(high) + 1, count).astype(float)
            if variable.has_missing and at != self.place:
                values[rng.random(count) < 0.15] = np.nan
            made[:, at] = values
        return made

    def coded(self, frame: FloatArray) -> FloatArray:
        """The features of rows."""
        parts = []
        for variable, at in zip(self.coding.variables, self.coding.places, strict=True):
            numbers = frame[:, at]
            missing = np.isnan(numbers)
            parts.append(
                variable.coded(Cells(numbers, missing, np.zeros(len(missing), dtype=bool)))
            )
        return np.ascontiguousarray(np.hstack(parts))

    def shown(self, frame: FloatArray) -> Any:
        """Rows as ``predict`` takes them: a matrix of numbers, or a table."""
        coding = self.model.coding
        if coding is None or (coding.of_matrices and not coding.named):
            return frame
        columns: dict[str, Any] = {}
        for j, name in enumerate(coding.names):
            homes = [v for v, at in zip(coding.variables, coding.places, strict=True) if at == j]
            cells = [None if np.isnan(value) else value for value in frame[:, j]]
            if homes and homes[0].kind != NUMBER:
                cells = [None if c is None else homes[0].display(c) for c in cells]
            columns[name] = cells
        return pd.DataFrame(columns, columns=list(coding.names))


# --- search ---------------------------------------------------------------------------------------


def _searched(effect: MonotoneEffect, options: CheckOptions) -> Any:
    """Two rows that contradict the effect; None if none were found."""
    model, place = effect.model, effect.place
    rows, rng = _Rows(model, place), np.random.default_rng(0)
    if not rows.whole:
        return None
    low, high = rows.ends(place)
    variable = rows.coding.variables[rows.coding.places.index(place)]
    whole = variable.kind != NUMBER and variable.kind != DATE
    frame = rows.drawn(rng, options.rows, options.beyond)
    known = zip(rows.coding.variables, rows.coding.places, strict=True)
    numbers = [at for one, at in known if one.kind == NUMBER]
    spread = np.array([end - begin for begin, end in map(rows.ends, numbers)])
    best: tuple[float, FloatArray] | None = None
    for round_ in range(1 + options.rounds):
        values = _places(low, high, whole, options, rng)
        falls = np.stack([_said(effect, rows, frame, value) for value in values])
        # the largest value before each place, minus the value there
        excess = np.maximum.accumulate(falls, axis=0) - falls
        worst = excess.max(axis=(0, 2))
        row = int(np.argmax(worst))
        if worst[row] > options.falls and (best is None or worst[row] > best[0]):
            after, i = divmod(int(np.argmax(excess[:, row])), excess.shape[2])
            before = int(np.argmax(falls[: after + 1, row, i]))
            pair = np.stack([frame[row], frame[row]])
            pair[:, place] = values[[before, after]]
            best = float(worst[row]), pair
        if best is not None and best[0] > 1e-3:
            break
        gradient = np.diff(falls, axis=0).min(axis=(0, 2))  # flat or falling rows lead on
        lead = frame[np.argsort(np.minimum(gradient, -worst))[: options.worst]]
        frame = lead[rng.integers(len(lead), size=options.rows)]
        noise = rng.normal(0.0, 0.3 * 0.5**round_, (len(frame), len(numbers)))
        frame[:, numbers] += noise * spread
    return None if best is None else rows.shown(best[1])


def _places(
    low: float, high: float, whole: bool, options: CheckOptions, rng: np.random.Generator
) -> FloatArray:
    """Values of the column in ascending order."""
    if whole:
        return np.arange(low, high + 1)
    span = (high - low) * options.beyond or 1.0
    inner = rng.uniform(low - span, high + span, options.places - 2)
    return np.sort(np.concatenate([inner, [low - span, high + span]]))


def _said(effect: MonotoneEffect, rows: _Rows, frame: FloatArray, value: float) -> FloatArray:
    """What must not fall, (n_rows, n_numbers): P(level >= i), and the level predicted."""
    frame = frame.copy()
    frame[:, effect.place] = value
    X = rows.coded(frame)
    found = effect.levels.at_least(effect.model.predict_proba(X).T)
    if effect.decides:
        level = np.array(effect.levels.levels)[effect.model.predict_index(X)]
        found = np.vstack([found, level])
    return np.asarray(effect.sign * found.T)


# --- branch and bound -----------------------------------------------------------------------------


def _bounded(effect: MonotoneEffect, options: CheckOptions) -> int | None:
    """Number of boxes that prove the effect on the mixture; None if they do not."""
    model = effect.model
    if not isinstance(model.scaling, LinearScaling):
        return None
    space = _Space(effect, options)
    stack = [space.first()]
    seen = 0
    while stack:
        batch = stack.pop()
        seen += len(batch[0])
        if seen > options.boxes:
            return None
        open_ = ~space.proved(*batch)
        if np.any(open_):
            low, high = (ends[open_] for ends in batch)
            halves = space.halved(low, high)
            if halves is None:
                return None
            for begin in range(0, len(halves[0]), options.at_once):
                part = slice(begin, begin + options.at_once)
                stack.append((halves[0][part], halves[1][part]))
    return seen


class _Space:
    """Boxes of the terms of a tree: numbers with their hinges, and single columns."""

    def __init__(self, effect: MonotoneEffect, options: CheckOptions) -> None:
        model = effect.model
        coef, self.intercept = model.splits
        self.options, self.effect = options, effect
        self.topology = Topology.with_branches(len(coef))
        used = np.flatnonzero(np.any(coef != 0, axis=0))
        coding = model.coding
        self.terms: list[tuple[NDArray[np.intp], FloatArray, bool]] = []
        seen: set[int] = set()
        for j in used.tolist():
            if j in seen:
                continue
            columns, knots, single = np.array([j]), np.zeros(0), False
            if coding is not None:
                home = int(coding.homes[j])
                variable, first = coding.variables[home], coding.firsts[home]
                if j <= first + variable.n_hinges and variable.kind != CATEGORY:
                    columns = np.arange(first, first + 1 + variable.n_hinges)
                    knots = np.array(variable.knots)
                single = bool(coding.indicators[j])
            seen.update(columns.tolist())
            self.terms.append((columns, knots, single))
        self.coef = [coef[:, columns] for columns, _, _ in self.terms]
        firsts = [int(columns[0]) for columns, _, _ in self.terms]
        self.low, self.high = model.summary.low[firsts], model.summary.high[firsts]
        self.own = next(
            (n for n, (columns, _, _) in enumerate(self.terms) if columns[0] == effect.columns[0]),
            -1,
        )
        self.slopes = effect.sign * effect.slopes * (self.high - self.low)[self.own]
        self.knots = self.terms[self.own][1]
        self.values = effect.levels.at_least(model.leaf_shares)

    def first(self) -> tuple[FloatArray, FloatArray]:
        span = np.maximum(self.high - self.low, 1e-300)
        low, high = self.low - self.options.far * span, self.high + self.options.far * span
        for n, (_, _, single) in enumerate(self.terms):
            if single:
                low[n], high[n] = 0.0, 1.0
        return low[None], high[None]

    def scores(
        self, low: FloatArray, high: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Ends of the scores (n_boxes, n_branches), and the width that each term adds."""
        least = np.repeat(self.intercept[None], len(low), axis=0)
        most, widths = least.copy(), np.zeros((len(low), len(self.terms)))
        for n, ((_, knots, _), coef) in enumerate(zip(self.terms, self.coef, strict=True)):
            at = np.column_stack(
                [low[:, n], high[:, n], *(np.clip(k, low[:, n], high[:, n]) for k in knots)]
            )
            found = at[:, :, None] * coef[:, 0]
            for m, knot in enumerate(knots, 1):
                found = found + np.maximum(at - knot, 0.0)[:, :, None] * coef[:, m]
            least, most = least + found.min(axis=1), most + found.max(axis=1)
            width = np.minimum((found.max(axis=1) - found.min(axis=1)) * self.steepness, 1e3)
            widths[:, n] = width.max(axis=1)
        return least, most, widths

    @property
    def steepness(self) -> float:
        return self.effect.model.steepness

    def proved(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Whether the effect holds in each box."""
        least, most, _ = self.scores(low, high)
        gate_low, gate_high = _sigmoid(self.steepness * least), _sigmoid(self.steepness * most)
        n_branches, n_boxes = len(self.intercept), len(low)
        reach_high = np.ones((n_boxes, 2 * n_branches + 1))
        reach_low = np.ones((n_boxes, 2 * n_branches + 1))
        for t in range(n_branches):
            reach_high[:, 2 * t + 1] = reach_high[:, t] * gate_high[:, t]
            reach_low[:, 2 * t + 1] = reach_low[:, t] * gate_low[:, t]
            reach_high[:, 2 * t + 2] = reach_high[:, t] * (1 - gate_low[:, t])
            reach_low[:, 2 * t + 2] = reach_low[:, t] * (1 - gate_high[:, t])
        steep = np.where(
            (gate_low <= 0.5) & (gate_high >= 0.5),
            0.25,
            np.maximum(gate_low * (1 - gate_low), gate_high * (1 - gate_high)),
        )
        flat = np.minimum(gate_low * (1 - gate_low), gate_high * (1 - gate_high))
        slope_low, slope_high = self._slopes(low[:, self.own], high[:, self.own])
        total = np.zeros((len(self.values), n_boxes))
        for i, values in enumerate(self.values):
            below = np.empty((n_boxes, 2 * n_branches + 1, 2))
            below[:, n_branches:] = values[:, None]
            for t in reversed(range(n_branches)):
                left, right = below[:, 2 * t + 1], below[:, 2 * t + 2]
                ends = [
                    gate[:, t, None] * left + (1 - gate[:, t, None]) * right
                    for gate in (gate_low, gate_high)
                ]
                below[:, t, 0] = np.minimum(ends[0][:, 0], ends[1][:, 0])
                below[:, t, 1] = np.maximum(ends[0][:, 1], ends[1][:, 1])
            for t in range(n_branches):
                apart_low = below[:, 2 * t + 1, 0] - below[:, 2 * t + 2, 1]
                apart_high = below[:, 2 * t + 1, 1] - below[:, 2 * t + 2, 0]
                corners = [
                    s * d
                    for s in (slope_low[:, t], slope_high[:, t])
                    for d in (apart_low, apart_high)
                ]
                worst = np.minimum.reduce(corners)
                factor = np.where(
                    worst < 0,
                    reach_high[:, t] * steep[:, t],
                    reach_low[:, t] * flat[:, t],
                )
                total[i] += self.steepness * worst * factor
        return np.all(total >= -self.options.flat, axis=0)

    def _slopes(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of the slopes of the own column in each box, (n_boxes, n_branches)."""
        ends = np.concatenate([[-np.inf], self.knots, [np.inf]])
        inside = (high[:, None] >= ends[:-1]) & (low[:, None] <= ends[1:])  # (n_boxes, n_segments)
        held = np.where(inside[:, None, :], self.slopes[None], np.inf)
        least = held.min(axis=2)
        most = np.where(inside[:, None, :], self.slopes[None], -np.inf).max(axis=2)
        return least, most

    def halved(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Both halves of each box along the term that widens its scores most; None if none can."""
        _, _, widths = self.scores(low, high)
        span = np.maximum(self.high - self.low, 1e-300)
        widths[(high - low) <= 1e-9 * span] = 0.0
        axis = np.argmax(widths, axis=1)
        boxes = np.arange(len(low))
        if np.any(widths[boxes, axis] <= 0.0):
            return None
        a, b = low[boxes, axis], high[boxes, axis]
        near_low, near_high = self.low[axis], self.high[axis]
        middle = 0.5 * (a + b)
        middle = np.where((a < near_low) & (b > near_high), 0.5 * (near_low + near_high), middle)
        wide = (b - a) > 8.0 * span[axis]
        middle = np.where(wide & (a >= near_low), a + 2.0 * span[axis], middle)
        middle = np.where(wide & (b <= near_high), b - 2.0 * span[axis], middle)
        lower, upper = (low.copy(), high.copy()), (low.copy(), high.copy())
        lower[1][boxes, axis], upper[0][boxes, axis] = middle, middle
        single = np.array([one for _, _, one in self.terms])[axis]
        lower[1][boxes[single], axis[single]] = 0.0
        upper[0][boxes[single], axis[single]] = 1.0
        return np.concatenate([lower[0], upper[0]]), np.concatenate([lower[1], upper[1]])


def _sigmoid(values: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        found: FloatArray = 1.0 / (1.0 + np.exp(-values))
    return found
