"""A tree as score cards: whole points for values of each variable, added up question by question.

A card has its sides as drawings have them (``oriented``), and its questions in the order of their
numbers there.

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

from softsplit.reading.equations import number
from softsplit.reading.model import TreeModel
from softsplit.reading.outline import answer_words, outline
from softsplit.reading.summary import BINARY, INTEGER
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown, visible
from softsplit.support.options import late
from softsplit.support.output_files import write_file
from softsplit.tree.routing import node_reach
from softsplit.variables import Cells, Coding, Variable


@dataclass(frozen=True)
class CardOptions:
    """How the points of a card are chosen and shown.

    Attributes
    ----------
    fineness : int
        Edges are rounded to this part of a feature's range, or to fewer digits than that
        needs.
    units : tuple[float, ...]
        Units that are tried, as multiples of the finest.
    tails : tuple[float, ...]
        Shares of the rows beyond each end of the range that is given points.
    sums : int
        About so many sums are listed with what they mean.
    most_points : int
        Largest number of points that a caller may allow for one variable.
    """

    fineness: int = 400
    units: tuple[float, ...] = (1.0, 1.1, 1.25, 1.5, 2.0)
    tails: tuple[float, ...] = (0.0, 0.01, 0.03, 0.06)
    sums: int = 12
    most_points: int = 1000


OPTIONS = CardOptions()


@dataclass(frozen=True)
class VariablePoints:
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
    variables: tuple[VariablePoints, ...]
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
        places = (
            np.linspace(0, len(self.sums) - 1, min(OPTIONS.sums, len(self.sums)))
            .round()
            .astype(int)
        )
        found = np.searchsorted(self.sums, [self.limit, *turns]).tolist()
        near = {p for turn in found for p in (turn - 1, turn) if 0 <= p < len(self.sums)}
        listed = [self.sums[place] for place in sorted({*places.tolist(), *near})]
        return [(s, float(sigmoid(np.array([self.unit * s + self.offset]))[0])) for s in listed]


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
    for tail in OPTIONS.tails:
        ends = (np.quantile(X, tail, axis=0), np.quantile(X, 1 - tail, axis=0))
        for multiple in OPTIONS.units:
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
) -> VariablePoints:
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
    return VariablePoints(j, name, words if kind == BINARY else None, distinct, made)


def _readable(value: float, ends: Sequence[float], whole: bool) -> float:
    """A value with few digits; of whole numbers the next whole one."""
    if whole:
        return float(np.ceil(value)) + 0.0  # not -0
    span = ends[1] - ends[0]
    if not span > 0:
        return value
    step = 10.0 ** np.floor(np.log10(span / OPTIONS.fineness))
    fine = step * max(m for m in (1, 2, 5) if m * step <= span / OPTIONS.fineness)
    return float(f"{np.rint(value / fine) * fine:.12g}")


# --- sums ---------------------------------------------------------------------------------------


def possible_sums(model: TreeModel, variables: Sequence[VariablePoints]) -> tuple[int, ...]:
    """The sums of points that a row can have, ascending.

    Columns of one variable of a table do not change freely: a row has one level of a category, and
    what is unknown has no other value but the middle.
    """
    homes = model.table_coding.homes
    together: dict[int, list[VariablePoints]] = {}
    for one in variables:
        together.setdefault(int(homes[one.feature]), []).append(one)
    reached = np.zeros(1 + sum(int(one.points.max()) for one in variables), dtype=bool)
    reached[0] = True
    for home, columns in together.items():
        before, reached = reached, np.zeros_like(reached)
        for points in _possible_points(model.table_coding, home, columns):
            reached[points:] |= before[: len(before) - points]
    return tuple(np.flatnonzero(reached).tolist())


def _possible_points(coding: Coding, home: int, columns: Sequence[VariablePoints]) -> set[int]:
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
    variable: Variable,
    cells: Sequence[tuple[float, bool, bool]],
    first: int,
    columns: Sequence[VariablePoints],
) -> set[int]:
    """Points of cells (number, gap, strange) of a variable whose columns begin at ``first``."""
    numbers, gaps, strange = (np.array(part) for part in zip(*cells, strict=True))
    coded = variable.coded(Cells(numbers, gaps, strange))
    points = [one.of(coded[:, one.feature - first]) for one in columns]
    return set(np.sum(points, axis=0).tolist())


def sigmoid(odds: FloatArray) -> FloatArray:
    made: FloatArray = 0.5 * (1.0 + np.tanh(0.5 * odds))
    return made


# --- all questions of a tree ---------------------------------------------------------------------


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
        coding, width = self.model.coding, len(self.model.feature_names)
        if coding is not None and not (isinstance(X, np.ndarray) and X.shape[1:] == (width,)):
            X = coding.code(X).X  # a table
        rows = np.asarray(X, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != len(self.model.feature_names):
            raise ValueError(
                f"X must hold rows of {len(self.model.feature_names)} features, got an array of "
                f"shape {rows.shape}."
            )
        n_branches = len(self.model.parameters.thresholds)
        gates = self.model.gates(rows)
        for card in self.questions:
            gates[card.branch] = sigmoid(card.odds(rows))
        reached: FloatArray = node_reach(gates, 1.0 - gates)[n_branches:].T
        return reached

    def to_frame(self) -> pd.DataFrame:
        """One row per question, feature and range of values."""
        names = ["question", "feature", "values", "points"]
        return pd.DataFrame(self._lines(), columns=names)

    def to_csv(self, path: str | Path | None = None) -> str:
        """The same as CSV, also written to a file if one is given."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["question", "feature", "values", "points"])
        writer.writerows(self._lines())
        if self.decides:
            writer.writerows([1, f"class {label} from", "", total] for total, label in self.turns)
        else:
            yes = answer_words(self.model.labels)[0]
            for place, card in enumerate(self.questions, start=1):
                writer.writerow([place, f"{yes} from", "", card.limit])
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
        words = answer_words(self.model.labels)
        if self.decides:
            lines.append(self.rule(1))
        else:
            for found in outline(self.model).walk():
                lead = "" if found.side is None else f"{words[found.side]}: "
                text = f"class {found.label}"
                if found.split is not None:
                    card = self.questions[found.number - 1]
                    text = f"question {found.number}, {card.limit} points or more of {card.most}?"
                lines.append("    " * found.depth + lead + text)
        for place, card in enumerate(self.questions, start=1):
            lines += ["", f"question {place}: add the points; {self.rule(place)}"]
            for variable in card.variables:
                lines.append(f"    {visible(variable.name)}")
                lines += [f"        {p:>4}  {values}" for values, p in variable.bands()]
            listed = self.chances(card)
            chances = ", ".join(f"{s} points {100 * p:.0f} %" for s, p in listed)
            lines.append(f"    probability of the answer {words[0]}: {chances}")
            for total, shares, predicted in self.outcomes():
                each = zip(self.model.labels, shares, strict=True)
                parts = ", ".join(f"{visible(label)} {100 * p:.3g} %" for label, p in each)
                lines.append(f"    {total} points: {parts}; predicted {predicted}")
        if self.lost is not None and self.accuracy is not None:
            lines += ["", self.loss_sentence()]
        return "\n".join(lines)

    @property
    def turns(self) -> list[tuple[int, str]]:
        """Of one question: the sums from which on a class is predicted, and that class."""
        if len(self.model.parameters.thresholds) != 1 or not self.questions:
            return []
        card = self.questions[0]
        predicted = self._predicted(card.unit * np.array(card.sums, dtype=float) + card.offset)
        places = range(len(predicted))
        return [
            (card.sums[n], predicted[n])
            for n in places
            if n == 0 or predicted[n] != predicted[n - 1]
        ]

    @property
    def decides(self) -> bool:
        """Whether costs decide: the predicted class changes elsewhere than the answer."""
        found = [total for total, _ in self.turns[1:]]
        return (
            bool(self.turns)
            and found != [s for s in self.questions[0].sums[1:] if s >= self.questions[0].limit][:1]
        )

    def rule(self, place: int) -> str:
        """From how many points on the answer is yes; or a class is predicted, if costs decide."""
        if not self.decides:
            return f"{answer_words(self.model.labels)[0]} from {self.questions[place - 1].limit} on"
        return ", ".join(f"class {label} from {total} points on" for total, label in self.turns)

    def chances(self, card: QuestionCard) -> list[tuple[int, float]]:
        """Probability of yes at some sums, also those where the predicted class changes."""
        return card.chances([total for total, _ in self.turns])

    def outcomes(self) -> list[tuple[int, FloatArray, str]]:
        """Of one question: sums, how probable each class is there, and the predicted one."""
        if not self.turns:
            return []
        sums, left = (np.array(part) for part in zip(*self.chances(self.questions[0]), strict=True))
        card = self.questions[0]
        shares = self.model.leaf_shares @ np.array([left, 1.0 - left])
        predicted = self._predicted(card.unit * sums + card.offset)
        return list(zip(sums.tolist(), shares.T, predicted, strict=True))

    def _predicted(self, odds: FloatArray) -> list[str]:
        """The class that is predicted at odds of the answer to the only question."""
        left = sigmoid(odds)
        votes = self.model.leaf_votes @ np.array([left, 1.0 - left])
        return [visible(self.model.labels[k]) for k in np.argmax(votes, axis=0)]

    def loss_sentence(self) -> str:
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
        To measure what rounding costs.
    points : int
        Most points of one variable.
    """
    if (
        not isinstance(points, int)
        or isinstance(points, bool)
        or not 1 <= points <= OPTIONS.most_points
    ):
        raise ValueError(
            f"points must be an integer from 1 to {OPTIONS.most_points}, got {shown(points)}."
        )
    _known_rows(model, X, y)
    questions = outline(model).questions()
    cards = tuple(question_card(model, found.node, X, points) for found in questions)
    card = ScoreCard(model, cards)
    if X is None or y is None:
        return card
    labels = np.asarray(y)
    right = float(np.mean(card.predict(X) == labels))
    of_tree = float(np.mean(model.classes[model.predict_index(X)] == labels))
    return replace(card, accuracy=right, tree_accuracy=of_tree)


def _known_rows(model: TreeModel, X: FloatArray | None, y: Any) -> tuple[Any, Any]:
    """Rows whose class the tree knows, and its position; refused if there are rows and none is."""
    if X is None or y is None:
        return None, None
    labels = np.asarray(y)
    known = np.isin(labels, model.classes)
    if len(labels) and not known.any():
        raise ValueError(
            f"y holds {shown(labels[0])}, which is no class of the tree ("
            f"{', '.join(map(shown, model.classes.tolist()[:5]))}); give labels of that kind."
        )
    return X[known], np.searchsorted(model.classes, labels[known])
