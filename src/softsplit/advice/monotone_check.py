"""Whether a column has a monotone effect: a proof for all inputs, or two rows that contradict it.

1. Leaf ranges (fitted/monotone.py) prove it: cheap, and enough for every tree that was trained for
   the effect.
2. Otherwise two rows are looked for that differ in the column alone and contradict the effect,
   among random rows and then around the worst of them; the tree's own predictions confirm them.

Where neither succeeds the effect stays undecided.

Levels of the classes and the sign are those of variables/monotone.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from softsplit.fitted.model import TreeModel
from softsplit.fitted.monotone import MonotoneEffect
from softsplit.support.arrays import FloatArray
from softsplit.variables import Cells, MonotoneEffects, monotone_effects
from softsplit.variables.variable import DATE, NUMBER

ROUNDING = 1e-9
"""Probabilities that fall by less are equal."""

SEARCHED_ROWS = 3000
"""Random rows of the search, each at ``PLACES`` values of the column."""

PLACES = 12
"""Values of the column at which a row is looked at."""

ROUNDS = 3
"""Rounds around the worst rows."""

WORST = 60
"""Rows that a round goes on from."""

BEYOND = 0.5
"""Values are drawn from the training range and this part of it on either side."""


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


def check_monotone(model: TreeModel, column: Any, sign: Any = None) -> MonotoneCheck:
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
    levels = monotone_effects(given, model.coding, names, model.classes)
    assert levels is not None
    place, wanted = levels.signs[0]
    trained = model.monotone
    if sign is None and trained is not None and place in dict(trained.signs):
        effect = MonotoneEffect(model, place, dict(trained.signs)[place], trained)
    elif sign is None:
        effect = MonotoneEffect(model, place, _own_sign(model, place, levels), levels)
    else:
        effect = MonotoneEffect(model, place, wanted, levels)
    return _checked(effect)


def check_effect(effect: MonotoneEffect, model: TreeModel) -> MonotoneCheck | None:
    """Prove or refute an effect of one tree in another one; None where the other has no such column
    with an order, or other classes."""
    name = effect.model.column_names[effect.place]
    if name not in model.column_names or list(model.labels) != list(effect.model.labels):
        return None
    place = model.column_names.index(name)
    try:
        own = monotone_effects({name: "+"}, model.coding, model.column_names, model.classes)
    except ValueError:  # a column that is no number there
        return None
    assert own is not None
    turned = (place,) if effect.place in effect.levels.turned else ()
    levels = replace(own, levels=effect.levels.levels, turned=turned)
    return _checked(MonotoneEffect(model, place, effect.sign, levels))


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


def _checked(effect: MonotoneEffect) -> MonotoneCheck:
    sentence = effect.sentence
    if not effect.used:
        return MonotoneCheck(sentence, True, True, reason="the tree does not use the column")
    if effect.proved:
        return MonotoneCheck(sentence, True, True, reason="proved for all inputs, by leaf ranges")
    rows = _searched(effect)
    if rows is not None:
        return MonotoneCheck(sentence, False, False, rows, "two rows contradict it")
    if effect.adjusted:
        why = "probabilities that are lowered to that of the predicted class are no mixture"
    elif effect.decides and not (effect.classes_follow or effect.classes_proved):
        why = "no rows contradict it, but leaf ranges do not prove it for the predicted classes"
    else:
        why = "no rows contradict it, but leaf ranges do not prove it"
    return MonotoneCheck(sentence, None, False, reason=why)


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
        frame = np.zeros((count, len(self.coding.names)))
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
            frame[:, at] = values
        return frame

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


def _searched(effect: MonotoneEffect) -> Any:
    """Two rows that contradict the effect; None if none were found."""
    model, place = effect.model, effect.place
    rows, rng = _Rows(model, place), np.random.default_rng(0)
    if not rows.whole:
        return None
    low, high = rows.ends(place)
    variable = rows.coding.variables[rows.coding.places.index(place)]
    whole = variable.kind != NUMBER and variable.kind != DATE
    frame = rows.drawn(rng, SEARCHED_ROWS, BEYOND)
    known = zip(rows.coding.variables, rows.coding.places, strict=True)
    numbers = [at for one, at in known if one.kind == NUMBER]
    spread = np.array([end - begin for begin, end in map(rows.ends, numbers)])
    best: tuple[float, FloatArray] | None = None
    for round_ in range(1 + ROUNDS):
        # 1. Predictions of all rows at some places of the variable.
        values = _places(low, high, whole, rng)
        falls = np.stack([_said(effect, rows, frame, value) for value in values])
        # the largest value before each place, minus the value there
        excess = np.maximum.accumulate(falls, axis=0) - falls
        worst = excess.max(axis=(0, 2))
        row = int(np.argmax(worst))
        # 2. The pair of places with the largest fall is kept; a clear one ends the search.
        if worst[row] > ROUNDING and (best is None or worst[row] > best[0]):
            after, i = divmod(int(np.argmax(excess[:, row])), excess.shape[2])
            before = int(np.argmax(falls[: after + 1, row, i]))
            pair = np.stack([frame[row], frame[row]])
            pair[:, place] = values[[before, after]]
            best = float(worst[row]), pair
        if best is not None and best[0] > 1e-3:
            break
        # 3. The rows nearest to a fall lead on, with less noise every round.
        gradient = np.diff(falls, axis=0).min(axis=(0, 2))
        lead = frame[np.argsort(np.minimum(gradient, -worst))[:WORST]]
        frame = lead[rng.integers(len(lead), size=SEARCHED_ROWS)]
        noise = rng.normal(0.0, 0.3 * 0.5**round_, (len(frame), len(numbers)))
        frame[:, numbers] += noise * spread
    return None if best is None else rows.shown(best[1])


def _places(low: float, high: float, whole: bool, rng: np.random.Generator) -> FloatArray:
    """Values of the column in ascending order."""
    if whole:
        return np.arange(low, high + 1)
    span = (high - low) * BEYOND or 1.0
    inner = rng.uniform(low - span, high + span, PLACES - 2)
    return np.sort(np.concatenate([inner, [low - span, high + span]]))


def _said(effect: MonotoneEffect, rows: _Rows, frame: FloatArray, value: float) -> FloatArray:
    """What must not fall, (n_rows, n_numbers): P(level >= i), and the level predicted."""
    frame = frame.copy()
    frame[:, effect.place] = value
    X = rows.coded(frame)
    levels = effect.levels.at_least(effect.model.predict_proba(X).T)
    if effect.decides:
        level = np.array(effect.levels.levels)[effect.model.predict_index(X)]
        levels = np.vstack([levels, level])
    return np.asarray(effect.sign * levels.T)
