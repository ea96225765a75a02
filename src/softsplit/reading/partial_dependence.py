"""Partial dependence: mean class probabilities over the rows with one or two columns set to values.

Of a tree that predicts a number, the mean number.

    f(v)    = 1/n sum_i P(class | row i with column a at v)
    f(u, v) = the same with columns a at u and b at v

as ``sklearn.inspection.partial_dependence`` by brute force, which calls ``predict_proba`` for each
point of the grid. Here rows are read once, and many points of the grid are answered in one call.
The sum of a printed question is that of the columns that stay, known once for each row, and that of
the columns that are set, known once for each point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.fitted.walk import LARGE_VALUE, TIE, Walk
from softsplit.support.arrays import FloatArray

ENDS = (0.05, 0.95)
"""Quantiles between which values of a number are spread, as in scikit-learn."""

CELLS_AT_ONCE = 4_000_000
"""Numbers of the rows that are asked in one call: 32 megabytes."""


@dataclass(frozen=True)
class SetColumn:
    """A column of the table that is set to values.

    Attributes
    ----------
    places : array of int
        Its features of the tree.
    values : array of shape (n_values, n_places)
        These features at each value.
    """

    places: NDArray[np.intp]
    values: FloatArray


def mean_answers(model: TreeModel, rows: FloatArray, columns: Sequence[SetColumn]) -> FloatArray:
    """Return mean probabilities, or the mean number, (n_answers, n_values of each column)."""
    used = np.flatnonzero(model.columns_in_use)
    shape = tuple(len(column.values) for column in columns)
    points = list(product(*map(range, shape)))
    at_once = max(1, CELLS_AT_ONCE // max(rows.size, 1))
    means = np.empty((len(points), len(model.answers)))
    walk = model.walk if model.numbers is None else None
    questions = None if walk is None else questions_on_grid(walk, rows, columns)
    for begin in range(0, len(points), at_once):
        some = points[begin : begin + at_once]
        # 1. All rows with the columns set to each of some points of the grid.
        # A column of the array lies in one piece: those that are not in use are left at zero.
        block = np.zeros((rows.shape[1], len(some) * len(rows))).T
        for j in used:
            block[:, j] = np.tile(rows[:, j], len(some))
        for number, column in enumerate(columns):
            values = column.values[[point[number] for point in some]]
            for place, j in enumerate(column.places):
                block[:, j] = np.repeat(values[:, place], len(rows))
        # 2. What the tree predicts for them, in the mean.
        if questions is not None and walk is not None:
            predicted = classes_on_grid(walk, questions, some, len(rows)).reshape(-1)
            said = model.predict_proba(block, predicted=predicted)
        else:
            said = model.surface(block)
        means[begin : begin + len(some)] = said.reshape(len(some), len(rows), -1).mean(axis=1)
    return means.T.reshape(len(model.answers), *shape)


@dataclass(frozen=True)
class QuestionOnGrid:
    """A printed question in two parts: it holds where ``fixed`` + the sum of ``moving`` > 0.

    With the sign s of the question, its threshold b and terms c_j x_j, of which those of the set
    columns move (as in ``Walk.holds``, a sum that is equal but for rounding does not hold):

        fixed  = s (sum_j c_j x_j - b) - tie (|b| + sum_j |c_j x_j|)
        moving = s sum_j c_j x_j - tie sum_j |c_j x_j|

    Attributes
    ----------
    fixed : array of shape (n_rows,)
    moving : list of arrays of shape (n_values,)
        One for each set column; None if the question does not ask for it.
    """

    fixed: FloatArray
    moving: Sequence[FloatArray | None]

    def holds(self, points: Sequence[tuple[int, ...]]) -> NDArray[np.bool_]:
        """Whether it holds, (n_points, n_rows), or (1, n_rows) if no set column is asked for."""
        moved = np.zeros((len(points) if any(m is not None for m in self.moving) else 1, 1))
        for number, values in enumerate(self.moving):
            if values is not None:
                moved[:, 0] += values[[point[number] for point in points]]
        return np.asarray(self.fixed[None] > -moved)


def questions_on_grid(
    walk: Walk, rows: FloatArray, columns: Sequence[SetColumn]
) -> list[QuestionOnGrid] | None:
    """Return all questions of a walk; None where they speak of ranks, or of the largest floats."""
    numbers = [rows, *(column.values for column in columns)]
    if np.any(walk.ranked) or max(np.abs(n).max(initial=0.0) for n in numbers) > LARGE_VALUE:
        return None

    def summed(branch: int, places: Any, values: FloatArray) -> FloatArray:
        terms = values * walk.coefficients[branch, places]
        sign = 1.0 if walk.upwards[branch] else -1.0
        return sign * terms.sum(axis=1) - TIE * np.abs(terms).sum(axis=1)

    is_set = np.zeros(walk.coefficients.shape[1], dtype=bool)
    for column in columns:
        is_set[column.places] = True
    questions = []
    for branch, coefficients in enumerate(walk.coefficients):
        stay = np.flatnonzero((coefficients != 0) & ~is_set)
        bound = walk.thresholds[branch]
        sign = 1.0 if walk.upwards[branch] else -1.0
        fixed = summed(branch, stay, rows[:, stay]) - (sign * bound + TIE * abs(bound))
        moving = [
            summed(branch, column.places, column.values)
            if np.any(coefficients[column.places])
            else None
            for column in columns
        ]
        questions.append(QuestionOnGrid(fixed, moving))
    return questions


def classes_on_grid(
    walk: Walk,
    questions: Sequence[QuestionOnGrid],
    points: Sequence[tuple[int, ...]],
    n_rows: int,
) -> NDArray[np.intp]:
    """Return the position of the class at the end of the walk, (n_points, n_rows)."""
    below: list[NDArray[np.intp]] = list(walk.classes[:, None, None])
    for branch in reversed(range(len(questions))):  # from the leaves up
        right, left = below.pop(), below.pop()
        if np.array_equal(left, right):  # a question that decides nothing
            below.insert(0, left)
        else:
            below.insert(0, np.where(questions[branch].holds(points), left, right))
    return np.broadcast_to(below[0], (len(points), n_rows))


def spread_values(numbers: FloatArray, count: int) -> FloatArray:
    """Return values of a number to ask for: all of them if they are few, else even steps."""
    known = np.unique(numbers[~np.isnan(numbers)])
    if len(known) <= count:
        return known
    from scipy.stats.mstats import mquantiles  # as in scikit-learn

    low, high = mquantiles(numbers[~np.isnan(numbers)], ENDS)
    return np.linspace(low, high, count)
