"""A tree as score cards: whole points for values of each variable, added up question by question.

At question t feature j adds c_j(v) = steepness a_jt scaled_j(v) / p to the log-odds of yes. With a
unit u of log-odds the card gives

    points_j(v) = round((c_j(v) - least c_j) / u),      yes with log-odds u * (sum of points) + b

where c_j is taken within a range of the feature, so that no value has more than ``points`` points.
Values at which the points change are rounded to few digits, and the card is what follows from the
rounded values. With rows, unit, range and b are chosen on them: those of the least log-loss of the
card beside the tree (the tree's own probabilities are the target, so that no class is needed).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.reading.answers import answers
from softsplit.reading.equations import common_label, number
from softsplit.reading.model import TreeModel
from softsplit.reading.summary import BINARY, INTEGER
from softsplit.support.arrays import FloatArray
from softsplit.support.late import late
from softsplit.support.messages import shown, visible
from softsplit.support.output_files import write_file
from softsplit.tree.routing import node_reach

MOST_POINTS = 1000
FINENESS = 400
"""Edges are rounded to this part of a feature's range, or to fewer digits than that needs."""
UNITS = (1.0, 1.1, 1.25, 1.5, 2.0)
"""Units that are tried, as multiples of the finest."""
TAILS = (0.0, 0.01)
"""Shares of the rows beyond each end of the range that is given points."""


SUMS = 10
"""About so many sums are told with what they say."""


@dataclass(frozen=True)
class Variable:
    """Points of one variable: ``points[i]`` from ``edges[i - 1]`` up to below ``edges[i]``."""

    feature: int
    name: str
    binary: bool
    edges: FloatArray
    points: NDArray[np.int64]

    def of(self, values: FloatArray) -> NDArray[np.int64]:
        """Points of values."""
        return self.points[np.searchsorted(self.edges, values, side="right")]

    def bands(self) -> list[tuple[str, int]]:
        """Values in words, and their points."""
        points = self.points.tolist()
        if self.binary and len(points) == 2:
            return [("0", points[0]), ("1", points[1])]
        ends = [number(edge, 12) for edge in self.edges]
        if not ends:
            return [("any", points[0])]
        between = [f"{a} to below {b}" for a, b in pairwise(ends)]
        return list(zip([f"below {ends[0]}", *between, f"{ends[-1]} or more"], points, strict=True))


@dataclass(frozen=True)
class QuestionCard:
    """One question: add the points up; from ``limit`` on the answer is yes.

    ``unit`` and ``offset`` make probabilities of points: log-odds of yes = unit * sum + offset.
    """

    branch: int
    variables: tuple[Variable, ...]
    unit: float
    offset: float

    @property
    def limit(self) -> int:
        return int(np.floor(-self.offset / self.unit)) + 1

    @property
    def most(self) -> int:
        return int(sum(v.points.max() for v in self.variables))

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

    def chances(self) -> list[tuple[int, float]]:
        """Probability that the answer is yes, at sums from none to all of the points."""
        step = max(1, -(-self.most // SUMS))
        sums = sorted({*range(0, self.most + 1, step), min(max(self.limit, 0), self.most)})
        return [(s, float(_sigmoid(np.array([self.unit * s + self.offset]))[0])) for s in sums]


@dataclass(frozen=True)
class ScoreCard:
    """A tree with whole points in place of coefficients. ``print`` it, or ``to_csv``.

    Attributes
    ----------
    model : TreeModel
    questions : tuple of QuestionCard
        In the order in which they are numbered.
    accuracy, tree_accuracy : float, optional
        Shares of right answers of the card and of the tree on the rows that were given.
    """

    model: TreeModel
    questions: tuple[QuestionCard, ...]
    accuracy: float | None = None
    tree_accuracy: float | None = None

    @property
    def lost(self) -> float | None:
        """Points of accuracy that rounding costs, in percent; negative if it gains."""
        if self.accuracy is None or self.tree_accuracy is None:
            return None
        return 100 * (self.tree_accuracy - self.accuracy)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, by adding points."""
        made: FloatArray = self._reach(X) @ self.model.leaf_shares.T
        return made

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each row, by adding points."""
        votes = self._reach(X) @ self.model.leaf_votes.T
        labels: NDArray[Any] = self.model.classes[np.argmax(votes, axis=1)]
        return labels

    def _reach(self, X: Any) -> FloatArray:
        rows = np.asarray(X, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != len(self.model.feature_names):
            raise ValueError(
                f"X must hold rows of {len(self.model.feature_names)} features, got an array of "
                f"shape {rows.shape}."
            )
        n_branches = len(self.model.parameters.thresholds)
        gates = self.model.gates(rows)
        for card in self.questions:
            gates[card.branch] = _sigmoid(card.odds(rows))
        reached: FloatArray = node_reach(gates, 1.0 - gates)[n_branches:].T
        return reached

    def to_frame(self) -> pd.DataFrame:
        """One row per question, variable and range of values."""
        names = ["question", "variable", "values", "points"]
        return pd.DataFrame(self._lines(), columns=names)

    def to_csv(self, path: str | Path | None = None) -> str:
        """The same as CSV, also written to a file if one is given."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["question", "variable", "values", "points"])
        writer.writerows(self._lines())
        for place, card in enumerate(self.questions, start=1):
            writer.writerow([place, f"{answers(self.model.labels)[0]} from", "", card.limit])
        text = out.getvalue()
        if path is not None:
            write_file(Path(path), text.encode("utf-8"))
        return text

    def _lines(self) -> list[tuple[int, str, str, int]]:
        return [
            (place, visible(variable.name), values, points)
            for place, card in enumerate(self.questions, start=1)
            for variable in card.variables
            for values, points in variable.bands()
        ]

    def __str__(self) -> str:
        lines: list[str] = []
        yes, no = answers(self.model.labels)

        def write(node: int, indent: str, lead: str) -> None:
            label = common_label(self.model, node)
            if label is not None:
                lines.append(f"{indent}{lead}class {label}")
                return
            place = [card.branch for card in self.questions].index(node)
            card = self.questions[place]
            said = f"question {place + 1}, {card.limit} points or more of {card.most}?"
            lines.append(f"{indent}{lead}{said}")
            write(2 * node + 1, indent + "    ", f"{yes}: ")
            write(2 * node + 2, indent + "    ", f"{no}: ")

        write(0, "", "")
        for place, card in enumerate(self.questions, start=1):
            lines += ["", f"question {place}: add the points; {yes} from {card.limit} on"]
            for variable in card.variables:
                lines.append(f"    {visible(variable.name)}")
                lines += [f"        {p:>4}  {values}" for values, p in variable.bands()]
            chances = ", ".join(f"{s} points {100 * p:.0f} %" for s, p in card.chances())
            lines.append(f"    probability of the answer {yes}: {chances}")
            for total, shares, called in self.outcomes():
                told = zip(self.model.labels, shares, strict=True)
                parts = ", ".join(f"{visible(label)} {100 * p:.3g} %" for label, p in told)
                lines.append(f"    {total} points: {parts}; called {called}")
        if self.lost is not None and self.accuracy is not None:
            lines += ["", self.told_loss()]
        return "\n".join(lines)

    def outcomes(self) -> list[tuple[int, FloatArray, str]]:
        """Of one question: sums, how probable each class is there, and the one that is called."""
        if len(self.model.parameters.thresholds) != 1 or not self.questions:
            return []
        sums, left = (np.array(part) for part in zip(*self.questions[0].chances(), strict=True))
        reach = np.array([left, 1.0 - left])
        shares, votes = self.model.leaf_shares @ reach, self.model.leaf_votes @ reach
        calls = [visible(self.model.labels[k]) for k in np.argmax(votes, axis=0)]
        return list(zip(sums.tolist(), shares.T, calls, strict=True))

    def told_loss(self) -> str:
        """What rounding costs, in a sentence."""
        assert self.accuracy is not None and self.tree_accuracy is not None
        return (
            f"right on {100 * self.accuracy:.1f} % of the rows, the tree itself on "
            f"{100 * self.tree_accuracy:.1f} %"
        )

    def _repr_html_(self) -> str:
        made: str = late("softsplit.report.notebook", "card_html")(self)
        return made


def make_card(
    model: TreeModel, X: FloatArray | None = None, y: Any = None, points: int = 10
) -> ScoreCard:
    """The score cards of a tree.

    Parameters
    ----------
    model : TreeModel
    X : rows, optional
        On which units and ranges are chosen; without them the training ranges are used.
    y : classes of the rows, optional
        To tell what rounding costs.
    points : int
        Most points of one variable.
    """
    if not isinstance(points, int) or isinstance(points, bool) or not 1 <= points <= MOST_POINTS:
        raise ValueError(f"points must be an integer from 1 to {MOST_POINTS}, got {shown(points)}.")
    asking = _asking(model)
    cards = tuple(_card(model, t, X, points) for t in asking)
    card = ScoreCard(model, cards)
    if X is None or y is None:
        return card
    labels = np.asarray(y)
    right = float(np.mean(card.predict(X) == labels))
    of_tree = float(np.mean(model.classes[model.predict_index(X)] == labels))
    return replace(card, accuracy=right, tree_accuracy=of_tree)


def _asking(model: TreeModel) -> list[int]:
    """Questions with features that decide something, from the top down, left first."""
    found: list[int] = []

    def walk(node: int) -> None:
        if common_label(model, node) is None:
            found.append(node)
            walk(2 * node + 1)
            walk(2 * node + 2)

    walk(0)
    return found


def _card(model: TreeModel, branch: int, X: FloatArray | None, points: int) -> QuestionCard:
    """The card of one question: the best of some units and ranges, on the rows if there are any."""
    if len(model.used(branch)) == 0:  # the same answer for all rows
        offset = -model.steepness * float(model.parameters.thresholds[branch])
        return QuestionCard(branch, (), 1.0, offset)
    if X is None:
        ends = model.summary.low, model.summary.high
        return _rounded(model, branch, ends, points, 1.0)
    odds = model.steepness * model.scores(X)[branch]
    gates = model.gates(X)
    reach = node_reach(gates, 1.0 - gates)[branch]
    target = gates[branch]
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
    return QuestionCard(branch, tuple(v for v in variables if v.points.any()), unit, offset)


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
    return Variable(j, name, bool(kind == BINARY), distinct, made)


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


def _sigmoid(odds: FloatArray) -> FloatArray:
    made: FloatArray = 0.5 * (1.0 + np.tanh(0.5 * odds))
    return made
