"""The tree along one feature of a row: where another class takes the lead, by interval arithmetic.

Along one feature j everything is a function of one number v: the gates F(steepness z_t(v)) are
monotone in v because every scaling is, and the lead of the predicted class c over class k,

    g_k(v) = sum over leaves of (votes for c - votes for k) * probability of the leaf,

is carried up the tree as V_t = p_t V_left + (1 - p_t) V_right. On an interval of v each gate lies
between its values at the ends, so that interval arithmetic bounds every g_k, and its derivative
with respect to the scaled feature. An interval holds no change of class if every g_k is bounded
away from below zero there, or is monotone with both ends above; any other interval is divided. The
search goes outwards from x, so that the first change it meets is the nearest, up to ``finest`` of
the training range; none is missed at which another class leads by more than ``tie``.

A number that bends moves with its hinges: between its knots all gates are monotone as above, and
the search goes from one knot to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from softsplit.fitted.model import TreeModel
from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import gate_probabilities
from softsplit.tree.scaling import scaled_rows
from softsplit.variables.curves import hinges, slopes


@dataclass(frozen=True)
class LineSearchOptions:
    """How finely a line is searched.

    Attributes
    ----------
    tie : float
        Leads of another class smaller than this are no change of class: rounding may make
        them.
    finest : float
        A change is found to within this part of the training range.
    pieces : int
        Parts of an interval that could not be decided.
    most_divisions : int
        After so many divisions a search gives up; seen only where classes are all but tied.
    """

    tie: float = 1e-12
    finest: float = 1e-12
    pieces: int = 16
    most_divisions: int = 20_000


OPTIONS = LineSearchOptions()


class UndecidedError(Exception):
    """The search along a feature was given up."""


class MovingNumber(NamedTuple):
    """A feature that moves along its values: the column of the value, and its knots.

    The hinges of the knots are the columns that follow.
    """

    column: int
    knots: tuple[float, ...] = ()

    @classmethod
    def of(cls, model: TreeModel, i: int) -> MovingNumber:
        """Feature, or variable, i of a tree."""
        if model.coding is None:
            return cls(i)
        return cls(model.coding.firsts[i], model.coding.variables[i].knots)

    @property
    def columns(self) -> slice:
        return slice(self.column, self.column + 1 + len(self.knots))

    def coded(self, values: FloatArray) -> FloatArray:
        """What the columns hold at some values, (n_values, n_columns)."""
        return np.hstack([values[:, None], hinges(values, self.knots)])

    def moved(self, x: FloatArray, values: FloatArray) -> FloatArray:
        """The row with other values of the feature, (n_values, n_features)."""
        rows = np.repeat(x[None, :], len(values), axis=0)
        rows[:, self.columns] = self.coded(values)
        return rows


class FeatureLine:
    """The tree along one feature of one row, within the training range.

    Scores are counted from ``start``, a value in that range: those of a row that is far outside
    are so large that nothing else is left of them in rounding.

    Arrays of bounds have shape (n_nodes, n_others, n_intervals).
    """

    def __init__(
        self, model: TreeModel, x: FloatArray, along: MovingNumber, current: int, start: float
    ) -> None:
        self.model, self.x, self.along, self.current = model, x, along, current
        self.slopes = model.parameters.weights[along.columns] / model.parameters.n_features
        row = along.moved(x, np.array([start]))
        self.base = model.scores(row)[:, 0] - self._moving(np.array([start]))[:, 0]
        self.slope = self.slopes[0]
        votes = model.leaf_votes
        self.leads = (votes[current] - np.delete(votes, current, axis=0)).T  # (leaves, others)
        span = float(model.summary.high[along.column] - model.summary.low[along.column])
        self.finest = OPTIONS.finest * span
        self.divisions = 0

    def _moving(self, values: FloatArray) -> FloatArray:
        """What the feature adds to every score, (n_branches, n_values)."""
        rows = np.zeros((len(values), len(self.x)))
        rows[:, self.along.columns] = self.along.coded(values)
        used = np.zeros(len(self.x), dtype=bool)
        used[self.along.columns] = True
        scaled = scaled_rows(self.model.scaling, rows, used)[:, self.along.columns]
        return sum(
            slope[:, None] * column for slope, column in zip(self.slopes, scaled.T, strict=True)
        )

    def _gates(self, values: FloatArray) -> FloatArray:
        scores = self.base[:, None] + self._moving(values)
        return gate_probabilities(scores, self.model.steepness)[0]

    def first_change(self, near: float, far: float) -> float | None:
        """First value from ``near`` to ``far`` at which another class leads."""
        inside = sorted(knot for knot in self.along.knots if min(near, far) < knot < max(near, far))
        stops = [near, *(inside if near < far else reversed(inside)), far]
        for here, end in pairwise(stops):
            self.slope = self._slope((here + end) / 2)
            found = self._search(here, end)
            if found is not None:
                return self._confirmed(found, far)
        return None

    def _slope(self, value: float) -> FloatArray:
        """How every score rises along the feature near a value that is no knot, (n_branches,).

        Without knots it is the rise by the scaled feature, otherwise by the feature itself.
        """
        if not self.along.knots:
            return self.slopes[0]
        spans = self.model.scaling.arrays()["span"][self.along.columns]
        piece = int(np.searchsorted(self.along.knots, value))
        rise: FloatArray = slopes(self.slopes / spans[:, None])[piece]
        return rise

    def _confirmed(self, value: float, far: float) -> float | None:
        """``value``, or one a few roundings further at which ``predict`` itself says so."""
        step = max(self.finest, float(np.spacing(abs(value))))
        direction = 1.0 if far >= value else -1.0
        while True:
            row = self.along.moved(self.x, np.array([value]))
            if int(self.model.predict_index(row)[0]) != self.current:
                return value
            if value == far:
                return None
            value = value + direction * min(step, abs(far - value))
            step *= 2.0

    def _search(self, near: float, far: float) -> float | None:
        self.divisions += 1
        if self.divisions > OPTIONS.most_divisions:
            raise UndecidedError
        ends = np.linspace(near, far, OPTIONS.pieces + 1)
        safe = self._safe(ends)
        for i in np.flatnonzero(~safe):
            a, b = float(ends[i]), float(ends[i + 1])
            if abs(b - a) <= max(self.finest, 4 * float(np.spacing(max(abs(a), abs(b))))):
                if self._lead(self._gates(np.array([b])))[0] < -OPTIONS.tie:
                    return b
                continue
            found = self._search(a, b)
            if found is not None:
                return found
        return None

    def _lead(self, gates: FloatArray) -> FloatArray:
        """Smallest lead over any other class, (n_values,)."""
        return self._values(gates).min(axis=0)

    def _values(self, gates: FloatArray) -> FloatArray:
        """g_k at single values, (n_others, n_values)."""
        level = [np.repeat(lead[:, None], gates.shape[1], axis=1) for lead in self.leads]
        return _lifted(len(gates), level, lambda t, left, right: (
            gates[t] * left + (1 - gates[t]) * right
        ))  # fmt: skip

    def _safe(self, ends: FloatArray) -> Any:
        """Which of the intervals between ``ends`` hold no change of class for certain."""
        gates = self._gates(ends)
        values = self._values(gates)
        (low, _), (slope_low, slope_high) = self._bounds(gates)
        monotone = (slope_low >= 0) | (slope_high <= 0)
        at_ends = np.minimum(values[:, :-1], values[:, 1:])
        return np.all((low > -OPTIONS.tie) | (monotone & (at_ends > -OPTIONS.tie)), axis=0)

    def _bounds(self, gates: FloatArray) -> tuple[Any, Any]:
        """Bounds of g_k and of its derivative on every interval between neighbouring gates."""
        first, second = gates[:, :-1], gates[:, 1:]
        low, high = np.minimum(first, second), np.maximum(first, second)
        flat = np.minimum(low * (1 - low), high * (1 - high))
        steep = np.where((low < 0.5) & (high > 0.5), 0.25, np.maximum(
            low * (1 - low), high * (1 - high)
        ))  # fmt: skip
        factor = self.model.steepness * self.slope
        n = low.shape[1]
        leaves = [
            (*(np.repeat(lead[:, None], n, axis=1),) * 2, *(np.zeros((len(lead), n)),) * 2)
            for lead in self.leads
        ]

        def merge(t: int, left: Any, right: Any) -> Any:
            bounds = _mixed(low[t], high[t], left[:2], right[:2])
            apart = left[0] - right[1], left[1] - right[0]
            rise = _times(_ordered(factor[t] * flat[t], factor[t] * steep[t]), apart)
            below = _mixed(low[t], high[t], left[2:], right[2:])
            return (*bounds, rise[0] + below[0], rise[1] + below[1])

        found = _lifted(len(gates), leaves, merge)
        return found[:2], found[2:]


def _lifted(n_branches: int, leaves: list[Any], merge: Callable[[int, Any, Any], Any]) -> Any:
    """Carry leaf values up to the root."""
    nodes: list[Any] = [None] * n_branches + leaves
    for t in range(n_branches - 1, -1, -1):
        nodes[t] = merge(t, nodes[2 * t + 1], nodes[2 * t + 2])
        nodes[2 * t + 1] = nodes[2 * t + 2] = None
    return nodes[0]


def _mixed(low: FloatArray, high: FloatArray, left: Any, right: Any) -> tuple[Any, Any]:
    """Bounds of p left + (1 - p) right for p in [low, high]."""
    smallest = np.minimum(
        low * left[0] + (1 - low) * right[0], high * left[0] + (1 - high) * right[0]
    )
    largest = np.maximum(
        low * left[1] + (1 - low) * right[1], high * left[1] + (1 - high) * right[1]
    )
    return smallest, largest


def _ordered(a: Any, b: Any) -> tuple[Any, Any]:
    return np.minimum(a, b), np.maximum(a, b)


def _times(a: Any, b: Any) -> tuple[Any, Any]:
    """Bounds of a product of two intervals."""
    products = [a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]]
    return np.minimum.reduce(products), np.maximum.reduce(products)
