"""Checks of the classes of rows, beside those of X (inputs.py)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown

# Rows without a label that an error names.
MOST_ROWS_NAMED = 5

# Integer labels beyond which they are counted; none of them lies that far from another.
MANY_LABELS = 100_000


def refuse_missing_labels(y: Any, target: Any = None) -> None:
    """Missing labels; ``target`` is the name of the column that they come from, if it has one."""
    rows = np.flatnonzero(_missing(y))
    if not len(rows):
        return
    named = f" (column {shown(target)})" if isinstance(target, str) and target else ""
    listed = ", ".join(str(row) for row in rows[:MOST_ROWS_NAMED])
    listed += ", ..." if len(rows) > MOST_ROWS_NAMED else ""
    one = len(rows) == 1
    raise ValueError(
        f"y{named} has {len(rows):,} missing value{'' if one else 's'} (row{'' if one else 's'} "
        f"{listed}); drop {'this row or fill it' if one else 'these rows or fill them'} in."
    )


def _missing(y: Any) -> NDArray[np.bool_]:
    """Which labels are None, NaN, NaT or pandas' NA."""
    if hasattr(y, "isna"):  # of pandas
        return np.ravel(np.asarray(y.isna(), dtype=bool))
    if y is None:
        return np.zeros(0, dtype=bool)
    labels = np.ravel(np.asarray(y if hasattr(y, "dtype") else np.array(y, dtype=object)))
    if labels.dtype.kind in "fcmM":
        return np.asarray(labels != labels)
    if labels.dtype != object:
        return np.zeros(len(labels), dtype=bool)
    return np.array([v is None or (isinstance(v, float) and v != v) for v in labels], dtype=bool)


def refuse_one_class(classes: NDArray[Any]) -> None:
    """Raise a ValueError where there are not two classes of positive weight."""
    if len(classes) < 2:
        raise ValueError(
            f"y has {'only one class' if len(classes) else 'no class of positive weight'}; a "
            "classifier needs at least two."
        )


def refuse_mixed_labels(y: NDArray[Any]) -> None:
    """Text beside something else, which has no order, so no first class; and other objects."""
    if y.dtype != object:
        return
    text = next((label for label in y if isinstance(label, str)), None)
    other = [label for label in y if not isinstance(label, str)]
    if text is not None and other:
        raise ValueError(
            f"y holds text beside other labels, such as {shown(str(text))} and "
            f"{shown_label(other[0])}; make the labels all text or "
            "all numbers."
        )
    if other:
        raise ValueError(
            f"Unknown label type: y holds Python objects such as {shown_label(other[0])}; "
            f"{_way_to_labels(other)}."
        )


def refuse_continuous(y: NDArray[Any]) -> None:
    """Labels that are numbers with fractions: a quantity, not classes."""
    if y.dtype.kind != "f":
        return
    broken = np.flatnonzero(np.isfinite(y) & (y != np.floor(y)))
    if len(broken):
        raise ValueError(
            f"Unknown label type: continuous, y holds {shown_label(y[broken[0]])} in row "
            f"{broken[0]}; a classifier needs classes: make them of y, as with y > {_middle(y)}, "
            "or take a regressor."
        )


def _middle(y: NDArray[Any]) -> str:
    return f"{float(np.median(y[np.isfinite(y)])):.3g}"


def distinct_labels(y: NDArray[Any], weight: FloatArray) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes that have rows of positive weight, in order, and the place of every label there.

    Rows of weight zero may carry labels that are no class; their place is of no meaning. Integers
    that lie close together are counted instead of sorted.
    """
    if counted_labels(y) and int(y.max()) - int(y.min()) < MANY_LABELS:
        low = int(y.min())
        steps = y.astype(np.int64)  # short integers would wrap around
        steps -= low
        there = np.bincount(steps, weight > 0) > 0
        classes = (np.flatnonzero(there) + low).astype(y.dtype)
        places = np.maximum(np.cumsum(there) - 1, 0)[steps]
        return classes, places
    classes = np.unique(y[weight > 0])
    return classes, np.searchsorted(classes, y).clip(max=max(len(classes) - 1, 0))


def counted_labels(y: NDArray[Any]) -> bool:
    """Whether labels are so many integers that to sort them takes long."""
    return y.dtype.kind in "iu" and y.dtype != np.uint64 and len(y) > MANY_LABELS


def shown_label(label: Any) -> str:
    """As Python itself writes it, also if it is one of numpy's."""
    return shown(label.item() if isinstance(label, np.generic) else label)


def _way_to_labels(objects: list[Any]) -> str:
    for kind, name in ((bool | np.bool_, "bool"), (Integral, "int"), (Real, "float")):
        if all(isinstance(label, kind) for label in objects):
            return f"give it a type first, with y.astype({name})"
    return "make the labels all text or all numbers"
