"""Figures of a tree for the groups of a column, with intervals, whether or not it is a feature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.estimators.row_reading import checked_rows
from softsplit.fitted.conformal import known_labels
from softsplit.fitted.model import tree_of
from softsplit.report.metrics import Interval, mean_with_interval, share
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.support.numbers import number
from softsplit.variables.contents import distinct, text_of
from softsplit.variables.variable import UNKNOWN


@dataclass(frozen=True)
class GroupOptions:
    """How a column becomes groups."""

    parts: int = 4
    """Groups of equally many rows of a column with many numbers."""

    numbers: int = 8
    """Different numbers that are groups of their own at most."""

    most: int = 12
    """Groups at most: the largest, and all others together."""


OPTIONS = GroupOptions()

ALL, OTHERS = "all rows", "others"


def group_figures(tree: Any, X: Any, y: Any, groups: Any) -> pd.DataFrame:
    """Figures of a fitted tree for every group of rows, and for all rows.

    Give rows that the tree was not trained on: figures on training rows flatter it.

    Parameters
    ----------
    tree : fitted SoftTreeClassifier or SoftTreeClassifierCV
    X, y : rows and their classes
    groups : array of shape (n_samples,)
        A column of the table, a feature or not. Of a column with many numbers quarters are made.

    Returns
    -------
    DataFrame
        A line for each group, figure and class, with ``value``, ``low`` and ``high`` (95 %) and the
        ``rows`` it is counted on. Figures: "accuracy"; of each class its "share" of the rows, the
        share that is "predicted" so, of its rows those "found", of other rows the "alarms", and
        "said - true", its mean probability less its share.
    """
    model = tree_of(tree)
    rows = checked_rows(tree, X)
    labels = known_labels(model.labels, np.asarray(y, dtype=object))
    for name, given in (("y", labels), ("groups", np.asarray(groups))):
        if given.shape[:1] != (len(rows),) or given.ndim != 1:
            raise ValueError(f"{name} must hold one value for each of the {len(rows)} rows of X.")
    if np.any(labels < 0):
        odd = np.asarray(y, dtype=object)[np.argmax(labels < 0)]
        raise ValueError(f"y holds {shown(odd)}, which is not a class of the tree.")
    calls, proba = model.predict_index(rows), model.predict_proba(rows)
    return figures(group_names(pd.Series(groups)), labels, calls, proba, model.labels)


def group_names(column: pd.Series) -> pd.Categorical:
    """The group of each row as text; numbers in their order, then texts in theirs."""
    column = column.reset_index(drop=True)
    codes, values = distinct(column)
    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    if numeric and len(values) > OPTIONS.numbers and column.dtype != bool:
        return _quarters(column.to_numpy(dtype=float, na_value=np.nan), number)
    if pd.api.types.is_datetime64_any_dtype(column.dtype) and len(values) > OPTIONS.numbers:
        days = (column - pd.Timestamp(0, tz=column.dt.tz)) / pd.Timedelta(days=1)
        return _quarters(days.to_numpy(dtype=float), _day)
    texts = list(map(text_of, values))
    ours = {ALL, *([OTHERS] if len(texts) >= OPTIONS.most else []),
            *([UNKNOWN] if np.any(codes < 0) else [])}  # fmt: skip
    texts = [f"'{text}'" if text in ours else text for text in texts]  # levels of these names
    names = np.array([*texts, UNKNOWN], dtype=object)[codes].astype(str)
    listed, counts = np.unique(names, return_counts=True)
    kept = listed[np.argsort(-counts, kind="stable")][: OPTIONS.most - 1]
    if len(listed) > OPTIONS.most:
        names = np.where(np.isin(names, kept), names, OTHERS)
    ordered = np.argsort(np.asarray(values, dtype=float), kind="stable") if numeric else ()
    order = [texts[i] for i in ordered] if numeric else sorted(texts)
    return _categorical(names, [*order, OTHERS, UNKNOWN])


def _categorical(names: NDArray[Any], order: Sequence[str]) -> pd.Categorical:
    """Names with those that occur for categories, in this order."""
    there = set(names.tolist())
    listed = [name for name in dict.fromkeys(order) if name in there]
    return pd.Categorical(names, categories=listed)


def _day(days: float) -> str:
    return str((pd.Timestamp(0) + pd.Timedelta(days=days)).date())


def _quarters(numbers: FloatArray, written: Callable[[float], str]) -> pd.Categorical:
    known = np.isfinite(numbers)
    ends = np.unique(np.quantile(numbers[known], np.linspace(0, 1, OPTIONS.parts + 1)))
    inner = ends[1:-1]
    places = np.searchsorted(inner, numbers, side="left")
    words = [f"up to {written(inner[0])}"] if len(inner) else ["all values"]
    words += [f"{written(a)} to {written(b)}" for a, b in pairwise(inner)]
    words += [f"above {written(inner[-1])}"] if len(inner) else []
    names = np.where(known, np.array(words, dtype=object)[places], UNKNOWN)
    return _categorical(names, [*words, UNKNOWN])


def figures(
    groups: pd.Categorical,
    labels: NDArray[np.int64],
    calls: NDArray[Any],
    proba: FloatArray,
    classes: Sequence[Any],
) -> pd.DataFrame:
    """The figures of ``group_figures``, from predicted classes and probabilities."""
    lines: list[dict[str, Any]] = []
    everyone = np.ones(len(labels), dtype=bool)
    held = {name: np.asarray(groups == name) for name in groups.categories}
    members = {ALL: everyone} | {name: own for name, own in held.items() if own.any()}
    for group, own in members.items():

        def add(figure: str, k: Any, rate: Interval | None, rows: int, group: str = group) -> None:
            if rate is not None:
                line = {"group": group, "figure": figure, "class": k, **rate._asdict()}
                lines.append(line | {"rows": rows})

        add("accuracy", None, share(calls[own] == labels[own]), int(own.sum()))
        for k, name in enumerate(classes):
            true, said = labels[own] == k, calls[own] == k
            n, hits = int(own.sum()), int(true.sum())
            add("share", name, share(true), n)
            add("predicted", name, share(said), n)
            add("found", name, share(said[true]) if hits else None, hits)
            add("alarms", name, share(said[~true]) if hits < n else None, n - hits)
            add("said - true", name, mean_with_interval(proba[own, k] - true), n)
    return pd.DataFrame(lines)


def group_rows(figures: pd.DataFrame, watched: Any) -> tuple[list[str], list[list[str]]]:
    """A table for people: a line for each group, of one class beside accuracy."""
    head = ["group", "rows", "accuracy"]
    asked = ("share", "predicted", "found", "alarms", "said - true")
    words = {
        "share": f"are {watched}", "predicted": f"predicted {watched}", "found": "of these found",
        "alarms": "false alarms", "said - true": "mean probability less observed share",
    }  # fmt: skip
    lines = []
    for group in dict.fromkeys(figures["group"]):
        own = figures[figures["group"] == group]
        accuracy = own[own["figure"] == "accuracy"].iloc[0]
        line = [group, f"{accuracy['rows']:,}", _shown(accuracy)]
        for figure in asked:
            part = own[(own["figure"] == figure) & (own["class"].astype(str) == str(watched))]
            line.append(_shown(part.iloc[0]) if len(part) else "")
        lines.append(line)
    return [*head, *(words[figure] for figure in asked)], lines


def _shown(line: Any) -> str:
    value, low, high = (100 * line[name] for name in ("value", "low", "high"))
    text = f"{value:.1f} % ({low:.1f} to {high:.1f})"
    return text.replace("-", "\N{MINUS SIGN}")
