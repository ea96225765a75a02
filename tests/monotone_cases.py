"""Tables with monotone effects, and pairs of rows that differ in one column alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

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
