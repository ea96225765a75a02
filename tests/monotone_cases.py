"""Tables with monotone effects, and pairs of rows that differ in one column alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from softsplit.variables import Cells

LEVELS = ["low", "mid", "high"]


def table(seed: int, n_classes: int, n_rows: int = 240) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, one with missing values, a category, an ordered column; classes k0, k1, ..."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n_rows),
            "b": 10 * rng.normal(size=n_rows),
            "c": rng.choice(["x", "y", "z"], n_rows),
            "e": rng.exponential(size=n_rows),
            "o": pd.Categorical.from_codes(rng.integers(0, 3, n_rows), LEVELS, ordered=True),
        }
    )
    score = 1.5 * np.tanh(2 * frame.a) - frame.e + 0.1 * frame.b * (frame.c == "x")
    score = score + 0.6 * frame.o.cat.codes + rng.logistic(size=n_rows)
    cuts = np.quantile(score, np.arange(1, n_classes) / n_classes)
    frame.loc[rng.random(n_rows) < 0.1, "a"] = np.nan
    return frame, np.array([f"k{i}" for i in np.digitize(score, cuts)])


def pairs(
    frame: pd.DataFrame, column: str, count: int, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Random rows, every column drawn by itself, with two values of ``column``: low and high."""
    rng = np.random.default_rng(seed)
    low = pd.DataFrame(
        {name: frame[name].to_numpy(object)[rng.integers(len(frame), size=count)] for name in frame}
    )
    for name in frame:
        if not isinstance(frame[name].dtype, pd.CategoricalDtype):
            low[name] = low[name].astype(frame[name].dtype)
    high = low.copy()
    if column == "o":
        codes = np.sort(rng.integers(0, 3, (count, 2)), axis=1)
        values: Any = np.array(LEVELS, dtype=object)[codes]
    else:
        known = frame[column].dropna()
        middle, spread = known.mean(), 3 * known.std()
        values = np.sort(rng.normal(middle, spread, (count, 2)), axis=1)
    low[column], high[column] = values[:, 0], values[:, 1]
    for one in (low, high):
        one["o"] = pd.Categorical(one["o"], LEVELS, ordered=True)
    return low, high


def coded_violations(tree: Any, frame: pd.DataFrame, column: str, count: int, seed: int = 0) -> int:
    """The same as ``violations`` on cells that are drawn in coded form: for many pairs."""
    rng, model = np.random.default_rng(seed), tree.tree_
    coding, effects, place = model.coding, model.monotone, list(frame).index(column)
    sides: list[list[np.ndarray]] = [[], []]
    for variable, at, cells in zip(
        coding.variables, coding.places, coding.code(frame).cells, strict=True
    ):
        numbers = cells.numbers[rng.integers(len(frame), size=count)]
        drawn = [numbers, numbers]
        if at == place and variable.levels:
            drawn = list(np.sort(rng.integers(0, len(variable.levels), (2, count)), axis=0) + 0.0)
        elif at == place:
            known = cells.numbers[~np.isnan(cells.numbers)]
            drawn = list(np.sort(rng.normal(known.mean(), 3 * known.std(), (2, count)), axis=0))
        for side, values in zip(sides, drawn, strict=True):
            missing = np.isnan(values)
            side.append(variable.coded(Cells(values, missing, np.zeros(count, dtype=bool))))
    low, high = (np.ascontiguousarray(np.hstack(side)) for side in sides)
    sign = dict(effects.signs)[place]
    said = [effects.at_least(model.predict_proba(X).T) for X in (low, high)]
    wrong = np.any(sign * (said[1] - said[0]) < -1e-9, axis=0)
    if model.walk is not None or len(model.classes) == 2:
        level = np.array(effects.levels)
        called = [level[model.predict_index(X)] for X in (low, high)]
        wrong |= sign * (called[1] - called[0]) < 0
    return int(wrong.sum())


def violations(tree: Any, frame: pd.DataFrame, column: str, count: int) -> int:
    """Pairs of rows that contradict the effect that ``tree`` was trained for."""
    effects = tree.tree_.monotone
    sign = dict(effects.signs)[list(frame).index(column)]
    low, high = pairs(frame, column, count)
    said = [effects.at_least(tree.predict_proba(one).T) for one in (low, high)]
    wrong = np.any(sign * (said[1] - said[0]) < -1e-9, axis=0)
    if tree.tree_.walk is not None or len(tree.classes_) == 2:
        level = dict(zip(tree.classes_, effects.levels, strict=True))
        called = [np.array([level[k] for k in tree.predict(one)]) for one in (low, high)]
        wrong |= sign * (called[1] - called[0]) < 0
    return int(wrong.sum())
