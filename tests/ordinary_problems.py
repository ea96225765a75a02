"""Ordinary problems: random rows, columns, classes and class shares of real data sets.

A problem is what somebody could bring who has a table and no idea of settings: 30 to 2,000 rows, 2
to 26 classes, the rarest perhaps with four rows. ``complaint`` says what is wrong with the tree
that the defaults make of it. Small ones are part of the tests.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from softsplit import FarOutsideWarning, SoftTreeClassifierCV, load_dataset
from softsplit.data import BUNDLED
from softsplit.estimators.base import CutShortWarning

FEWEST = 4
"""Training rows of a class at least; as many of it are kept to test, or half of that."""

MOST_CLASSES = 26
MOST_TESTS = 1000


@dataclass(frozen=True)
class OrdinaryProblem:
    """Rows to train on and others to test, with equal shares of the classes."""

    story: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def shared_names() -> list[str]:
    """The data sets of the folder in ``SOFTSPLIT_DATA``, or those bundled with scikit-learn."""
    folder = os.environ.get("SOFTSPLIT_DATA")
    if not folder:
        return sorted(BUNDLED)
    listed = json.loads((Path(folder) / "datasets.json").read_text(encoding="utf-8"))["datasets"]
    return [entry["name"] for entry in listed]


@cache
def _table(name: str) -> tuple[np.ndarray, np.ndarray]:
    data = load_dataset(name)
    return data.X, np.searchsorted(data.class_names, data.y)


def ordinary_problems(
    numbers: Iterable[int],
    seed: int = 0,
    names: Sequence[str] = (),
    most_rows: int = 2000,
    most_columns: int = 300,
) -> Iterator[OrdinaryProblem]:
    """Problems by their number, of some or all data sets; each is drawn by itself.

    A data set is drawn the more often the more classes it has: most have two.
    """
    names = names or shared_names()
    weights = np.array([len(_able(name)) for name in names], dtype=float)
    for number in numbers:
        rng = np.random.default_rng([seed, number])
        name = names[rng.choice(len(names), p=weights / weights.sum())]
        yield _drawn(name, rng, most_rows, most_columns)


def _able(name: str) -> np.ndarray:
    """Classes with enough rows to train and to test."""
    return np.flatnonzero(np.bincount(_table(name)[1]) >= FEWEST + FEWEST // 2)


def _drawn(
    name: str, rng: np.random.Generator, most_rows: int, most_columns: int
) -> OrdinaryProblem:
    X, y = _table(name)
    able = _able(name)
    n_classes = int(rng.integers(2, min(len(able), MOST_CLASSES), endpoint=True))
    classes = rng.permutation(able)[:n_classes]
    shares = rng.dirichlet(np.full(n_classes, rng.choice([0.5, 2.0, 20.0])))
    n_rows = _between(rng, 30, most_rows)
    widest = min(X.shape[1], most_columns)
    n_columns = widest if rng.random() < 0.3 else _between(rng, 1, widest)
    columns = rng.permutation(X.shape[1])[:n_columns]
    train, test = [], []
    for k, share in zip(classes, shares, strict=True):
        rows = rng.permutation(np.flatnonzero(y == k))
        n_train = int(np.clip(round(share * n_rows), FEWEST, 2 * len(rows) // 3))
        train.append(rows[:n_train])
        test.append(rows[n_train:])
    # As many test rows for each training row as every class can give.
    ratio = min(len(b) / len(a) for a, b in zip(train, test, strict=True))
    ratio = min(ratio, MOST_TESTS / sum(map(len, train)))
    kept = [b[: max(1, int(ratio * len(a)))] for a, b in zip(train, test, strict=True)]
    rows, others = rng.permutation(np.concatenate(train)), np.concatenate(kept)
    smallest = min(map(len, train))
    story = f"{name}: {len(rows)} x {len(columns)}, {n_classes} classes, the rarest {smallest} rows"
    parts = (X[np.ix_(rows, columns)], y[rows], X[np.ix_(others, columns)], y[others])
    return OrdinaryProblem(story, *parts)


def _between(rng: np.random.Generator, low: int, high: int) -> int:
    """A whole number from low to high whose logarithm is about uniform."""
    if high <= low:
        return high
    return int(np.exp(rng.uniform(np.log(low), np.log(high + 1))))


def complaint(problem: OrdinaryProblem) -> str | None:
    """What is wrong with the default tree of a problem; None if nothing is.

    It must come without an exception and without a warning other than that a limit was reached or
    that test rows lie far outside of a training range of few rows. It must not be worse on the test
    rows than always guessing the most frequent class, by more than two standard errors of the
    difference.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for known in (CutShortWarning, FarOutsideWarning):
            warnings.simplefilter("ignore", known)
        try:
            model = SoftTreeClassifierCV(random_state=0).fit(problem.X, problem.y)
            guess = model.predict(problem.X_test)
            proba = model.predict_proba(problem.X_test)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    if not (np.all(proba >= 0) and np.allclose(proba.sum(axis=1), 1)):
        return "probabilities of a row are negative or do not sum to one"
    classes, counts = np.unique(problem.y, return_counts=True)
    majority = problem.y_test == classes[counts.argmax()]
    gain = (guess == problem.y_test).astype(float) - majority
    # McNemar's: the standard error of the sum if both were equally good.
    if gain.sum() < -2 * np.sqrt(np.sum(gain**2)):
        right = np.mean(guess == problem.y_test)
        return f"{right:.1%} right where the most frequent class has {majority.mean():.1%}"
    return None
