"""The folds of a cross-validation, as scikit-learn's ``cv`` names them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from softsplit.engines.samples import first_rows
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import unfit
from softsplit.training.rows import Rows

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Positions of the rows to train on and of those to test on."""


def to_compare(rows: Rows, cv: Any, most: int) -> Rows:
    """Return all rows, or a stratified sample of ``most`` if ``cv`` is a number."""
    if not is_number(cv) or len(rows.labels) <= most:
        return rows
    return rows.part(first_rows(rows.content, rows.labels, rows.weight, most))


def make_groups(groups: Any, n_rows: int) -> NDArray[Any] | None:
    """Return the group of each row as a number."""
    if groups is None:
        return None
    names = np.asarray(groups)
    if names.shape != (n_rows,):
        raise ValueError(f"groups has shape {names.shape}; it needs one entry for each row.")
    try:
        return np.unique(names, return_inverse=True)[1]
    except TypeError:
        raise ValueError("groups must hold entries of one kind, numbers or texts.") from None


def make_splits(
    cv: Any,
    X: FloatArray,
    y: NDArray[Any],
    seed: int,
    groups: NDArray[Any] | None = None,
    repeats: int = 1,
) -> list[Split]:
    """Return stratified, shuffled folds if ``cv`` is a number, else its own splits, checked.

    Folds by number and without groups are made ``repeats`` times, each time anew.
    """
    if names_rows(cv) and np.iterable(cv) and not isinstance(cv, str):
        return _checked(cv, len(y))
    if not is_number(cv):
        return _checked(check_cv(cv, y, classifier=True).split(X, y, groups), len(y))
    if cv < 2:
        raise ValueError(f"cv must be at least 2 folds, got {cv}.")
    largest, other = np.sort(np.unique(y, return_counts=True)[1])[::-1][:2].tolist()
    if other < 2:  # some fold would have one class to learn from
        raise ValueError(
            "cross-validation needs two classes with two samples each at least, got "
            f"{largest} and {other} in the largest two; use SoftTreeClassifier, with settings "
            "of your own."
        )
    if groups is not None:
        return _grouped(int(cv), X, y, seed, groups)
    n_folds, splits = min(int(cv), largest), []
    with warnings.catch_warnings():  # a class too rare for some folds is dealt with there
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        for again in range(repeats):
            state = (seed + again) % 2**32
            folds = StratifiedKFold(n_folds, shuffle=True, random_state=state)
            splits.extend(folds.split(X, y))
    return splits


def number_splits(cv: Any, y: FloatArray, groups: NDArray[Any] | None) -> int | list[Split]:
    """Return the splits of rows with numbers as targets, or how many folds are to be drawn."""
    n_rows = len(y)
    if is_number(cv):
        if cv < 2:
            raise ValueError(f"cv must be at least 2 folds, got {cv}.")
        if groups is None:
            return min(int(cv), n_rows)
        count = len(np.unique(groups))
        if count < 2:
            raise ValueError("groups holds one group only; folds need two at least.")
        cv = GroupKFold(min(int(cv), count))
    elif names_rows(cv) and np.iterable(cv) and not isinstance(cv, str):
        return _checked(cv, n_rows)
    return _checked(check_cv(cv, y).split(np.zeros((n_rows, 1)), y, groups), n_rows)


def _grouped(
    cv: int, X: FloatArray, y: NDArray[Any], seed: int, groups: NDArray[Any]
) -> list[Split]:
    count = len(np.unique(groups))
    if count < 2:
        raise ValueError("groups holds one group only; folds need two at least.")
    folds = StratifiedGroupKFold(min(cv, count), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return [(a, b) for a, b in folds.split(X, y, groups) if len(a) and len(b)]


def names_rows(cv: Any) -> bool:
    """Whether ``cv`` holds positions of rows, so that no row may be dropped before."""
    return cv is not None and not is_number(cv) and not hasattr(cv, "split")


def is_number(cv: Any) -> bool:
    """Whether ``cv`` is a number of folds."""
    return isinstance(cv, int | np.integer) and not isinstance(cv, bool)


def _checked(splits: Any, n_rows: int) -> list[Split]:
    checked: list[Split] = []
    for pair in splits:
        try:
            train, test = (np.asarray(part).ravel() for part in pair)
        except (TypeError, ValueError):
            raise unfit(
                "cv", pair, "must give pairs of positions to train and to test on"
            ) from None
        both = np.concatenate([train, test])
        if len(train) == 0 or len(test) == 0 or both.dtype.kind not in "iu":
            raise ValueError("cv must give integer positions of rows, some to train and to test.")
        wrong = both[(both < 0) | (both >= n_rows)]
        if len(wrong):
            raise ValueError(f"cv gives row {wrong[0]}, but the rows are 0 to {n_rows - 1}.")
        checked.append((train, test))
    if not checked:
        raise ValueError("cv gives no folds; name at least one.")
    return checked
