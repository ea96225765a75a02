"""Curves of terms: what a number that bends adds to the sum of a question, over its training range.

    f(x) = c_0 x + sum_n c_n max(x - k_n, 0)

with the printed coefficients c and the knots k of the number. Between the smallest training value,
the knots and the largest one f is straight, so that these points are the whole curve; where a
question weighs ranks, x and its hinges stand for their ranks, and points between are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.reading.equations import Split
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import visible
from softsplit.support.numbers import number
from softsplit.variables.curves import knot_text, slopes

RANKED_POINTS = 24
"""Points of a curve of ranks, which is straight nowhere."""


@dataclass(frozen=True)
class TermCurve:
    """The curve of one number in one question.

    Attributes
    ----------
    name : str
        The number, as shown to users.
    terms : range
        Places of its terms among those of the question.
    values : array of shape (n_points,)
        Ascending, from the smallest to the largest training value.
    heights : array of shape (n_points,)
        What each value adds to the sum of the question.
    bends : array of bool, shape (n_points,)
        Whether a value is a knot at which the slope changes.
    labels : tuple of str
        The values, as shown to users.
    rises : str
        The slopes from knot to knot in words.
    """

    name: str
    terms: range
    values: FloatArray
    heights: FloatArray
    bends: NDArray[np.bool_]
    labels: tuple[str, ...]
    rises: str

    @property
    def sentence(self) -> str:
        """The curve in words, for readers who do not see it."""
        return (
            f"{self.name} from {self.labels[0]} to {self.labels[-1]} in the training rows: "
            f"{self.rises}"
        )

    @property
    def places(self) -> FloatArray:
        """Points in the unit square, from the left and from below, (n_points, 2)."""
        both = np.column_stack([self.values, self.heights])
        low, high = both.min(axis=0), both.max(axis=0)
        return np.asarray((both - low) / np.where(high > low, high - low, 1.0))


def term_curves(model: TreeModel, split: Split) -> list[TermCurve]:
    """Return the curves of the numbers that bend in a question, in the order of their terms."""
    coding = model.coding
    if coding is None or not coding.bends or split.lefts is not None:
        return []
    homes = [int(coding.homes[j]) for j in split.features]
    curves = []
    for i in dict.fromkeys(homes):
        variable, first = coding.variables[i], coding.firsts[i]
        known = dict(zip(split.features, split.coefficients, strict=True))
        own = np.array([known.get(first + n, 0.0) for n in range(1 + variable.n_hinges)])
        low, high = float(model.summary.low[first]), float(model.summary.high[first])
        bent = [k for k, c in zip(variable.knots, own[1:], strict=True) if c and low < k < high]
        if not bent:
            continue
        more = np.linspace(low, high, RANKED_POINTS) if split.ranked else np.zeros(0)
        values = np.unique([low, *bent, *more, high])
        rows = np.zeros((len(values), len(model.feature_names)))
        rows[:, first] = values
        coding.fill_hinges(rows)
        rows = model.scaled(rows) if split.ranked else rows
        places = [n for n, j in enumerate(split.features) if 0 <= j - first < len(own)]
        labels = [variable.display(value) for value in values.tolist()]
        curves.append(
            TermCurve(
                name=visible(variable.name),
                terms=range(places[0], places[-1] + 1),
                values=values,
                heights=rows[:, first : first + len(own)] @ own,
                bends=np.isin(values, bent),
                labels=tuple(x if isinstance(x, str) else number(x) for x in labels),
                rises=_rises(slopes(own), variable.knots),
            )
        )
    return curves


def _rises(rises: FloatArray, knots: Sequence[float]) -> str:
    """Slopes between knots in words; knots without a bend are left out."""
    parts: list[str] = []
    for rise, after, knot in zip(rises, rises[1:], knots, strict=False):
        if abs(after - rise) > 1e-9 * max(abs(after), abs(rise)):
            parts.append(f"{number(float(rise))}{'' if parts else ' per unit'} up to "
                         f"{knot_text(knot)}")  # fmt: skip
    return ", then ".join([*parts, number(float(rises[-1]))])
