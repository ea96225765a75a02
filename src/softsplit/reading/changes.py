"""The smallest change of one feature that changes the predicted class.

Along one feature j everything is a function of one number v: the gates F(steepness z_t(v)) are
monotone in v because every scaling is, and the lead of the predicted class c over class k,

    g_k(v) = sum over leaves of (votes for c - votes for k) * probability of the leaf,

is carried up the tree as V_t = p_t V_left + (1 - p_t) V_right. On an interval of v each gate lies
between its values at the ends, so that interval arithmetic bounds every g_k, and its derivative
with respect to the scaled feature. An interval holds no change of class if every g_k is bounded
away from below zero there, or is monotone with both ends above; any other interval is divided. The
search goes outwards from x, so that the first change it meets is the nearest, up to ``FINEST`` of
the training range; none is missed at which another class leads by more than ``TIE``. From a value
outside the training range the search begins at the nearer end of it.

Features whose training values are all 0 or 1 are flipped, integer ones move in whole steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softsplit.reading.equations import finite
from softsplit.reading.model import TreeModel
from softsplit.reading.summary import BINARY, INTEGER
from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import gate_probabilities
from softsplit.tree.scaling import scaled_rows

TIE = 1e-12
"""Leads smaller than this are no change of class."""

FINEST = 1e-12
"""A change is found to within this part of the training range."""

PIECES = 16
"""Parts of an interval that could not be decided."""

MOST_DIVISIONS = 20_000
"""After so many divisions a search gives up; seen only where classes are all but tied."""

MOST_STEPS = 100_000
"""Integers tried one by one; over a longer range a feature counts as a number."""


@dataclass(frozen=True)
class Change:
    """One feature moved until the predicted class changes.

    Attributes
    ----------
    feature : int
    name : str
    value, new_value : float
        Before and after, in original units.
    share_of_range : float
        |new_value - value| as a part of the feature's training range, a finite number always.
    label : object
        The class predicted afterwards.
    """

    feature: int
    name: str
    value: float
    new_value: float
    share_of_range: float
    label: Any


class UndecidedError(Exception):
    """The search along a feature was given up."""


def class_changes(model: TreeModel, x: FloatArray) -> tuple[list[Change], list[int]]:
    """Nearest change along every feature in use, smallest share of range first.

    Features along which the class does not change within the training range are not listed. The
    second list names features whose search was given up.
    """
    current = int(model.predict_index(x[None, :])[0])
    found, undecided = [], []
    for j in np.flatnonzero(np.any(np.abs(model.parameters.weights) > 0, axis=1)):
        try:
            value = _nearest(model, x, int(j), current)
        except UndecidedError:
            undecided.append(int(j))
            continue
        if value is None:
            continue
        label = model.labels[int(model.predict_index(_moved(x, int(j), np.array([value])))[0])]
        span = float(model.summary.high[j] - model.summary.low[j])
        found.append(
            Change(
                feature=int(j),
                name=model.feature_names[j],
                value=float(x[j]),
                new_value=value,
                share_of_range=finite(abs(value - float(x[j])) / span),
                label=label,
            )
        )
    found.sort(key=lambda change: (change.share_of_range, change.feature))
    return found, undecided


def _nearest(model: TreeModel, x: FloatArray, j: int, current: int) -> float | None:
    """Nearest value of feature j within the training range at which the class is another."""
    low, high = float(model.summary.low[j]), float(model.summary.high[j])
    kind, here = model.summary.kinds[j], float(x[j])
    if not low < high:
        return None
    start = min(max(here, low), high)
    if kind == BINARY and here == np.rint(here):
        return _nearest_of(model, x, j, current, np.array([0.0, 1.0]), start)
    if kind == INTEGER and here == np.rint(here) and high - low <= MOST_STEPS:
        return _nearest_of(model, x, j, current, np.arange(low, high + 1), start)
    if start != here and model.predict_index(_moved(x, j, np.array([start])))[0] != current:
        return start
    line = _Line(model, x, j, current, start)
    down = line.first_change(start, low) if low < start else None
    up = line.first_change(start, high) if start < high else None
    values = [value for value in (down, up) if value is not None]
    return min(values, key=lambda value: abs(value - start)) if values else None


def _moved(x: FloatArray, j: int, values: FloatArray) -> FloatArray:
    rows = np.repeat(x[None, :], len(values), axis=0)
    rows[:, j] = values
    return rows


def _nearest_of(
    model: TreeModel, x: FloatArray, j: int, current: int, values: FloatArray, start: float
) -> float | None:
    """The one of some values nearest to ``start`` at which the class is another."""
    values = values[np.argsort(np.abs(values - start), kind="stable")]
    size = 4096
    for begin in range(0, len(values), size):
        part = values[begin : begin + size]
        changed = model.predict_index(_moved(x, j, part)) != current
        if np.any(changed):
            return float(part[np.argmax(changed)])
    return None


class _Line:
    """The tree along one feature of one row, within the training range.

    Scores are counted from ``start``, a value in that range: those of a row that is far outside
    are so large that nothing else is left of them in rounding.

    Arrays of bounds have shape (n_nodes, n_rivals, n_intervals).
    """

    def __init__(
        self, model: TreeModel, x: FloatArray, feature: int, current: int, start: float
    ) -> None:
        self.model, self.x, self.feature, self.current = model, x, feature, current
        self.slope = model.parameters.weights[feature] / model.parameters.n_features
        at_start = self._scaled(np.array([start]))[0]
        row = _moved(x, feature, np.array([start]))
        self.base = model.scores(row)[:, 0] - self.slope * at_start
        votes = model.leaf_votes
        self.leads = (votes[current] - np.delete(votes, current, axis=0)).T  # (leaves, rivals)
        span = float(model.summary.high[feature] - model.summary.low[feature])
        self.finest = FINEST * span
        self.divisions = 0

    def _scaled(self, values: FloatArray) -> FloatArray:
        rows = np.zeros((len(values), len(self.x)))
        rows[:, self.feature] = values
        used = np.zeros(len(self.x), dtype=bool)
        used[self.feature] = True
        return scaled_rows(self.model.scaling, rows, used)[:, self.feature]

    def _gates(self, values: FloatArray) -> FloatArray:
        scores = self.base[:, None] + self.slope[:, None] * self._scaled(values)
        return gate_probabilities(scores, self.model.steepness)[0]

    def first_change(self, near: float, far: float) -> float | None:
        """First value from ``near`` to ``far`` at which another class leads."""
        found = self._search(near, far)
        return None if found is None else self._confirmed(found, far)

    def _confirmed(self, value: float, far: float) -> float | None:
        """``value``, or one a few roundings further at which ``predict`` itself says so."""
        step = max(self.finest, float(np.spacing(abs(value))))
        direction = 1.0 if far >= value else -1.0
        while True:
            row = _moved(self.x, self.feature, np.array([value]))
            if int(self.model.predict_index(row)[0]) != self.current:
                return value
            if value == far:
                return None
            value = value + direction * min(step, abs(far - value))
            step *= 2.0

    def _search(self, near: float, far: float) -> float | None:
        self.divisions += 1
        if self.divisions > MOST_DIVISIONS:
            raise UndecidedError
        ends = np.linspace(near, far, PIECES + 1)
        safe = self._safe(ends)
        for i in np.flatnonzero(~safe):
            a, b = float(ends[i]), float(ends[i + 1])
            if abs(b - a) <= max(self.finest, 4 * float(np.spacing(max(abs(a), abs(b))))):
                if self._lead(self._gates(np.array([b])))[0] < -TIE:
                    return b
                continue
            found = self._search(a, b)
            if found is not None:
                return found
        return None

    def _lead(self, gates: FloatArray) -> FloatArray:
        """Smallest lead over any rival, (n_values,)."""
        return self._values(gates).min(axis=0)

    def _values(self, gates: FloatArray) -> FloatArray:
        """g_k at single values, (n_rivals, n_values)."""
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
        return np.all((low > -TIE) | (monotone & (at_ends > -TIE)), axis=0)

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
