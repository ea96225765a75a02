"""One question of a score card: whole points for values of each variable, and what sums say.

At question t feature j adds c_j(v) = steepness a_jt scaled_j(v) / p to the log-odds of yes. With a
unit u of log-odds the card gives

    points_j(v) = round((c_j(v) - least c_j) / u),      yes with log-odds u * (sum of points) + b

where c_j is taken within a range of the feature, so that no value has more than ``points`` points.
Values at which the points change are rounded to few digits, and the card is what follows from the
rounded values. With rows, unit, range and b are chosen on them: those of the least log-loss of the
card beside the tree (the tree's own probabilities are the target, so that no class is needed).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from softsplit.reading.equations import number
from softsplit.reading.model import TreeModel
from softsplit.reading.summary import BINARY, INTEGER
from softsplit.support.arrays import FloatArray
from softsplit.variables import Cells, Coding
from softsplit.variables import Variable as TableVariable

FINENESS = 400
"""Edges are rounded to this part of a feature's range, or to fewer digits than that needs."""
UNITS = (1.0, 1.1, 1.25, 1.5, 2.0)
"""Units that are tried, as multiples of the finest."""
TAILS = (0.0, 0.01, 0.03, 0.06)
"""Shares of the rows beyond each end of the range that is given points."""


SUMS = 12
"""About so many sums are told with what they say."""


@dataclass(frozen=True)
class Variable:
    """Points of one variable: ``points[i]`` from ``edges[i - 1]`` up to below ``edges[i]``.

    ``words`` are for the values 0 and 1 of one that has no others.
    """

    feature: int
    name: str
    words: tuple[str, str] | None
    edges: FloatArray
    points: NDArray[np.int64]

    def of(self, values: FloatArray) -> NDArray[np.int64]:
        """Points of values."""
        return self.points[np.searchsorted(self.edges, values, side="right")]

    def bands(self) -> list[tuple[str, int]]:
        """Values in words, and their points."""
        points = self.points.tolist()
        if self.words is not None and len(points) == 2:
            return list(zip(self.words, points, strict=True))
        ends = [number(edge, 12) for edge in self.edges]
        if not ends:
            return [("any", points[0])]
        between = [f"{a} to below {b}" for a, b in pairwise(ends)]
        return list(zip([f"below {ends[0]}", *between, f"{ends[-1]} or more"], points, strict=True))


@dataclass(frozen=True)
class QuestionCard:
    """One question: add the points up; from ``limit`` on the answer is yes.

    ``unit`` and ``offset`` make probabilities of points: log-odds of yes = unit * sum + offset.
    ``sums`` are those that a row can have, ascending.
    """

    branch: int
    variables: tuple[Variable, ...]
    unit: float
    offset: float
    sums: tuple[int, ...] = (0,)

    @property
    def limit(self) -> int:
        return int(np.floor(-self.offset / self.unit)) + 1

    @property
    def most(self) -> int:
        """The largest sum that a row can have."""
        return self.sums[-1]

    def totals(self, X: FloatArray) -> NDArray[np.int64]:
        """Sums of points of rows."""
        sums = np.zeros(len(X), dtype=np.int64)
        for variable in self.variables:
            sums += variable.of(X[:, variable.feature])
        return sums

    def odds(self, X: FloatArray) -> FloatArray:
        """Log-odds of yes."""
        made: FloatArray = self.unit * self.totals(X).astype(np.float64) + self.offset
        return made

    def chances(self, turns: Sequence[int] = ()) -> list[tuple[int, float]]:
        """Probability that the answer is yes, at some of the sums that there are.

        The first and the last are among them, and those on both sides of the limit and of other
        ``turns``.
        """
        places = np.linspace(0, len(self.sums) - 1, min(SUMS, len(self.sums))).round().astype(int)
        found = np.searchsorted(self.sums, [self.limit, *turns]).tolist()
        near = {p for turn in found for p in (turn - 1, turn) if 0 <= p < len(self.sums)}
        told = [self.sums[place] for place in sorted({*places.tolist(), *near})]
        return [(s, float(sigmoid(np.array([self.unit * s + self.offset]))[0])) for s in told]


def question_card(model: TreeModel, branch: int, X: FloatArray | None, points: int) -> QuestionCard:
    """The card of one question: the best of some units and ranges, on the rows if there are any."""
    if len(model.used(branch)) == 0:  # the same answer for all rows
        offset = -model.steepness * float(model.parameters.thresholds[branch])
        return QuestionCard(branch, (), 1.0, offset)
    if X is None:
        ends = model.summary.low, model.summary.high
        return _rounded(model, branch, ends, points, 1.0)
    odds = model.steepness * model.scores(X)[branch]
    reach, target = model.reach(X)[branch], model.gates(X)[branch]
    best: tuple[float, QuestionCard] | None = None
    for tail in TAILS:
        ends = (np.quantile(X, tail, axis=0), np.quantile(X, 1 - tail, axis=0))
        for multiple in UNITS:
            card = _rounded(model, branch, ends, points, multiple)
            card = replace(card, offset=_offset(card, X, odds, reach * target * (1 - target)))
            loss = _cross_entropy(card.odds(X), target, reach)
            if best is None or loss < best[0]:
                best = loss, card
    assert best is not None
    return best[1]


def _offset(card: QuestionCard, X: FloatArray, odds: FloatArray, weight: FloatArray) -> float:
    """b, such that sums near the limit have the odds of the tree on average."""
    if weight.sum() <= 0:
        return card.offset
    return float(np.average(odds - card.unit * card.totals(X), weights=weight))


def _cross_entropy(odds: FloatArray, target: FloatArray, weight: FloatArray) -> float:
    losses = np.logaddexp(0.0, odds) - target * odds
    return float(weight @ losses)


def _rounded(
    model: TreeModel,
    branch: int,
    ends: tuple[FloatArray, FloatArray],
    points: int,
    multiple: float,
) -> QuestionCard:
    used = [int(j) for j in model.used(branch)]
    parameters = model.parameters
    slopes = model.steepness * parameters.weights[used, branch] / parameters.n_features
    rows = np.zeros((2, len(model.feature_names)))
    rows[0, used], rows[1, used] = ends[0][used], ends[1][used]
    pulls = slopes * model.scaled(rows)[:, used]
    widest = float(np.abs(pulls[1] - pulls[0]).max())
    unit = multiple * widest / points if widest > 0 else 1.0
    variables = []
    for n, j in enumerate(used):
        low, high = float(rows[0, j]), float(rows[1, j])
        variables.append(_variable(model, j, (low, high), pulls[:, n], slopes[n], unit))
    least = float(pulls.min(axis=0).sum())
    offset = least - model.steepness * float(parameters.thresholds[branch])
    kept = tuple(v for v in variables if v.points.any())
    return QuestionCard(branch, kept, unit, offset, possible_sums(model, kept))


def _variable(
    model: TreeModel,
    j: int,
    ends: tuple[float, float],
    pulls: FloatArray,
    slope: float,
    unit: float,
) -> Variable:
    """Points of one feature; they change where the pull passes a half point."""
    name, kind = model.feature_names[j], model.summary.kinds[j]
    least, steps = float(pulls.min()), round(float(np.ptp(pulls)) / unit)
    edges: list[float] = []
    if kind == BINARY:
        edges = [0.5] * (steps > 0)
    else:
        for k in range(steps):
            at = model.scaling.to_original(j, (least + (k + 0.5) * unit) / slope)
            edges.append(_readable(at, ends, whole=bool(kind == INTEGER)))
    distinct = np.unique(np.array(edges))
    # Points at the middle of each range of values, by the rounded edges themselves.
    if kind == BINARY or len(distinct) == 0:
        middles = np.array([0.0, 1.0]) if len(distinct) else np.array([ends[0]])
    else:
        # Of whole numbers the last one before the next edge is one below it.
        inner = (distinct[:-1] + distinct[1:] - float(kind == INTEGER)) / 2
        middles = np.array([min(ends[0], distinct[0]), *inner, max(ends[1], distinct[-1])])
    rows = np.zeros((len(middles), len(model.feature_names)))
    rows[:, j] = middles
    pull = slope * model.scaled(rows)[:, j]
    made = np.clip(np.rint((pull - least) / unit), 0, steps).astype(np.int64)
    indicator = model.coding is not None and bool(model.coding.indicators[j])
    words = ("no", "yes") if indicator else ("0", "1")
    return Variable(j, name, words if kind == BINARY else None, distinct, made)


def _readable(value: float, ends: Sequence[float], whole: bool) -> float:
    """A value with few digits; of whole numbers the next whole one."""
    if whole:
        return float(np.ceil(value)) + 0.0  # not -0
    span = ends[1] - ends[0]
    if not span > 0:
        return value
    step = 10.0 ** np.floor(np.log10(span / FINENESS))
    fine = step * max(m for m in (1, 2, 5) if m * step <= span / FINENESS)
    return float(f"{np.rint(value / fine) * fine:.12g}")


# --- sums ---------------------------------------------------------------------------------------


def possible_sums(model: TreeModel, variables: Sequence[Variable]) -> tuple[int, ...]:
    """The sums of points that a row can have, ascending.

    Columns of one variable of a table do not change freely: a row has one level of a category, and
    what is unknown has no other value but the middle.
    """
    homes = model.table_coding.homes
    together: dict[int, list[Variable]] = {}
    for one in variables:
        together.setdefault(int(homes[one.feature]), []).append(one)
    reached = np.zeros(1 + sum(int(one.points.max()) for one in variables), dtype=bool)
    reached[0] = True
    for home, columns in together.items():
        before, reached = reached, np.zeros_like(reached)
        for points in _possible_points(model.table_coding, home, columns):
            reached[points:] |= before[: len(before) - points]
    return tuple(np.flatnonzero(reached).tolist())


def _possible_points(coding: Coding, home: int, columns: Sequence[Variable]) -> set[int]:
    """Points that one variable of a table can have together."""
    variable, first = coding.variables[home], int(coding.columns_of(home)[0])
    unknown = (np.nan, True, False)
    if variable.shown_levels:
        cells = [(float(place), False, False) for place in range(len(variable.levels))]
        cells += [(np.nan, False, True)] * variable.other + [unknown] * variable.gaps
        return _points_of(variable, cells, first, columns)
    indicator = int(coding.columns_of(home)[-1]) if variable.gaps else -1
    known = {0}
    for one in columns:
        own = {int(one.points[0])} if one.feature == indicator else set(one.points.tolist())
        known = {s + p for s in known for p in own}
    return known | (_points_of(variable, [unknown], first, columns) if variable.gaps else set())


def _points_of(
    variable: TableVariable,
    cells: Sequence[tuple[float, bool, bool]],
    first: int,
    columns: Sequence[Variable],
) -> set[int]:
    """Points of cells (number, gap, strange) of a variable whose columns begin at ``first``."""
    numbers, gaps, strange = (np.array(part) for part in zip(*cells, strict=True))
    coded = variable.coded(Cells(numbers, gaps, strange))
    points = [one.of(coded[:, one.feature - first]) for one in columns]
    return set(np.sum(points, axis=0).tolist())


def sigmoid(odds: FloatArray) -> FloatArray:
    made: FloatArray = 0.5 * (1.0 + np.tanh(0.5 * odds))
    return made
