"""A tree as a score card: points to look up and add, question by question, until a class is met.

A card has one block per question and column of the table (card_blocks.py). At a question a person
adds the points of the lines that apply and compares the sum with the limit: from there on the right
side of the tree follows, below it the left side, which is another question or a class. ``predict``
is that and nothing else. Points, edges and limits are searched for so that the card gives the class
of the tree (card_search.py). Questions have the numbers that they have in texts and pictures; a
question whose sides all end in one class is not asked.

**Risks.** A card of one question and two classes has a table from sums to the chance of the second
class, in whole per cent: with n_T rows of sum T, k_T of them of that class, and the logistic curve
l_T fitted to all of them,

    risk_T = (k_T + m l_T) / (n_T + m),       m = ``prior_rows``,

made nondecreasing by pooling adjacent violators, and on the side of one half (of the tree's
decision threshold) on which the card says so. Other cards list the classes of the rows that arrive
at each end. ``predict_proba`` is what is listed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.reading.card_blocks import (
    Bins,
    BlockPoints,
    day_edges,
    decoded,
    gap_edge,
    spread_edges,
)
from softsplit.reading.card_search import OPTIONS as SEARCH
from softsplit.reading.card_search import Asked, Part, search_points
from softsplit.reading.model import TreeModel
from softsplit.reading.outline import outline
from softsplit.reading.summary import NUMBER as FRACTIONS
from softsplit.reading.walk import OPTIONS as WALK
from softsplit.reading.walk import arrivals, best_cut
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown, visible
from softsplit.support.options import late
from softsplit.support.output_files import write_file
from softsplit.variables import Cells, CodedRows
from softsplit.variables.variable import CATEGORY, DATE


@dataclass(frozen=True)
class CardOptions:
    """How cards are made of rows."""

    most_points: int = 1000
    """Largest number of points that a caller may allow for one line."""

    rows: int = 20_000
    """Rows that points are searched on; of more, evenly spaced ones."""

    shaken: int = 4_000
    """Of fewer given rows, copies with values moved a little are added up to about so many: the
    class of the tree is known everywhere, and a card that is right for few rows alone is not for
    new ones."""

    copies: int = 20
    """But no more copies of a row than this."""

    few_values: int = 12
    """Numbers with at most so many values are not moved, only swapped."""

    jitter: float = 0.03
    """Standard deviation of moves, as a share of the ranks of a number."""

    swapped: float = 0.05
    """Share of cells that are replaced by those of another row."""

    drawn: int = 2_000
    """Rows that are drawn over the training ranges where none are given."""

    missing: float = 0.1
    """Share of missing values among them, of variables that had some in training."""

    prior_rows: float = 20.0
    """Weight in rows of the logistic curve in the table of risks."""


OPTIONS = CardOptions()


class Goal(NamedTuple):
    """Where an answer leads: to a question, or (question 0) to a class with shares in per cent."""

    question: int
    label: int = -1
    shares: tuple[int, ...] = ()


@dataclass(frozen=True)
class QuestionCard:
    """One question: add the points of all blocks; from ``limit`` on ``high`` follows, else ``low``.

    Attributes
    ----------
    number : int
        As in texts and pictures of the tree.
    branch : int
        Its node in the tree.
    blocks : tuple of BlockPoints
    limit : int
    low, high : Goal
    """

    number: int
    branch: int
    blocks: tuple[BlockPoints, ...]
    limit: int
    low: Goal
    high: Goal

    @property
    def most(self) -> int:
        """The largest sum."""
        return sum(int(block.points.max()) for block in self.blocks)

    def totals(self, cells: Sequence[Cells]) -> NDArray[np.int64]:
        """Sums of points of rows, from the cells of all variables."""
        sums = np.zeros(len(cells[0].numbers) if cells else 0, dtype=np.int64)
        for block in self.blocks:
            sums += block.of(cells[block.bins.home])
        return sums


@dataclass(frozen=True)
class ScoreCard:
    """A tree as whole points to add up by hand. ``print`` it, or ``to_frame``, ``to_csv``.

    Attributes
    ----------
    model : TreeModel
    start : Goal
        The first question, or the class of all rows.
    questions : tuple of QuestionCard
    risks : tuple of int
        For one question and two classes: chance of the second class by sum of points, in per cent.
    accuracy, tree_accuracy : float, optional
        Shares of right classes on the rows that were given: of who follows the card by hand, and of
        the tree.
    agreement : float, optional
        Share of these rows for which the card gives the class of the tree.
    """

    model: TreeModel
    start: Goal
    questions: tuple[QuestionCard, ...]
    risks: tuple[int, ...] = ()
    accuracy: float | None = None
    tree_accuracy: float | None = None
    agreement: float | None = None

    @property
    def lost(self) -> float | None:
        """Points of accuracy that the card loses against the tree, in percent."""
        if self.accuracy is None or self.tree_accuracy is None:
            return None
        return 100 * (self.tree_accuracy - self.accuracy)

    # --- following the card -----------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each row: what a person finds who follows the card."""
        goals, place, _ = self._followed(cells_of(self.model, X))
        labels: NDArray[Any] = self.model.classes[np.array([g.label for g in goals])[place]]
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """Share of each class that the card lists: by the sum of points, or at the end met."""
        goals, place, totals = self._followed(cells_of(self.model, X))
        if self.risks:
            risk = np.array(self.risks)[totals] / 100
            return np.column_stack([1.0 - risk, risk])
        made: FloatArray = np.array([g.shares for g in goals])[place] / 100
        return made

    def totals(self, X: Any) -> NDArray[np.int64]:
        """Sum of points of each row at the first question."""
        return self._followed(cells_of(self.model, X))[2]

    def _followed(
        self, cells: Sequence[Cells]
    ) -> tuple[list[Goal], NDArray[np.intp], NDArray[np.int64]]:
        """Ends of the card, the end of each row, and its sum at the first question."""
        n_rows = len(cells[0].numbers) if cells else 0
        ends = [g for q in self.questions for g in (q.low, q.high) if not g.question]
        if not self.questions:
            return [self.start], np.zeros(n_rows, dtype=np.intp), np.zeros(n_rows, dtype=np.int64)
        at = np.full(n_rows, -self.start.question, dtype=np.intp)
        first, met = np.zeros(n_rows, dtype=np.int64), 0
        for question in self.questions:  # those above come first
            rows = np.flatnonzero(at == -question.number)
            totals = question.totals([one.part(rows) for one in cells])
            if question.number == self.start.question:
                first = totals
            for side, goal in enumerate((question.low, question.high)):
                there = rows[(totals >= question.limit) == bool(side)]
                at[there] = -goal.question if goal.question else met
                met += not goal.question
        return ends, at, first

    # --- reading it -------------------------------------------------------------------------------

    def to_frame(self) -> pd.DataFrame:
        """One row per line of the card: question, feature, values and points."""
        return pd.DataFrame(self._lines(), columns=["question", "feature", "values", "points"])

    def to_csv(self, path: str | Path | None = None) -> str:
        """The same as CSV with limits and risks, also written to a file if one is given."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["question", "feature", "values", "points"])
        writer.writerows(self._lines())
        for question in self.questions:
            for text, goal in self.rules(question):
                writer.writerow([question.number, "sum of points", text, goal])
        for text, risk in self.risk_lines():
            writer.writerow([self.start.question, self.risk_name, text, f"{risk} %"])
        text = out.getvalue()
        if path is not None:
            write_file(Path(path), text.encode("utf-8"))
        return text

    def _lines(self) -> list[tuple[int, str, str, int]]:
        return [
            (question.number, visible(block.name), values, points)
            for question in self.questions
            for block in question.blocks
            for values, points in block.lines()
        ]

    def goal_text(self, goal: Goal) -> str:
        """Where an answer leads, in words."""
        if goal.question:
            return f"go to question {goal.question}"
        labels = self.model.labels
        text = f"class {visible(labels[goal.label])}"
        if self.risks or not goal.shares:
            return text
        order = sorted(range(len(labels)), key=lambda k: (k != goal.label, -goal.shares[k], k))
        parts = [f"{visible(labels[k])} {goal.shares[k]} %" for k in order if goal.shares[k]]
        return f"{text}   ({', '.join(parts)})"

    def rules(self, question: QuestionCard) -> list[tuple[str, str]]:
        """Sums of points, and where each leads."""
        count = "1 point" if question.limit == 1 else f"{question.limit} points"
        return [
            (f"{count} or more", self.goal_text(question.high)),
            ("fewer", self.goal_text(question.low)),
        ]

    @property
    def risk_name(self) -> str:
        """The head of the table of risks."""
        return f"chance of {visible(self.model.labels[-1])}"

    def risk_lines(self) -> list[tuple[str, int]]:
        """Sums of points with the same risk, and the risk in per cent."""
        if not self.risks:
            return []
        risks = np.array(self.risks)
        starts = [0, *(np.flatnonzero(np.diff(risks)) + 1).tolist()]
        ends = [*(s - 1 for s in starts[1:]), len(risks) - 1]
        words = [f"{a}" if a == b else f"{a} to {b}" for a, b in zip(starts, ends, strict=True)]
        return [(text, int(risks[a])) for text, a in zip(words, starts, strict=True)]

    def __str__(self) -> str:
        if not self.questions:
            return f"all rows: {self.goal_text(self.start)}"
        lines: list[str] = []
        for question in self.questions:
            lines.append(f"question {question.number}: add the points")
            lines += [f"    {text}: {goal}" for text, goal in self.rules(question)]
            for block in question.blocks:
                lines.append(f"    {visible(block.name)}")
                lines += [f"        {points:>4}  {values}" for values, points in block.lines()]
            lines.append("")
        if self.risks:
            listed = ", ".join(f"{text}: {risk} %" for text, risk in self.risk_lines())
            lines += [f"{self.risk_name} by points: {listed}", ""]
        lines.append(self.loss_sentence())
        return "\n".join(lines).rstrip("\n")

    def loss_sentence(self) -> str:
        """How far the card follows the tree on the given rows; empty without rows."""
        if self.agreement is None:
            return ""
        text = f"by hand the class of the tree on {100 * self.agreement:.1f} % of the rows"
        if self.accuracy is None or self.tree_accuracy is None:
            return text
        return (
            f"{text}; right on {100 * self.accuracy:.1f} %, the tree on "
            f"{100 * self.tree_accuracy:.1f} %"
        )

    def _repr_html_(self) -> str:
        made: str = late("softsplit.report.notebook", "card_html")(self)
        return made


# --- rows -----------------------------------------------------------------------------------------


def cells_of(model: TreeModel, X: Any) -> tuple[Cells, ...]:
    """The cells of a table, or of rows that are coded already, for all variables."""
    if isinstance(X, CodedRows) and X.cells:
        return X.cells
    X = X.X if isinstance(X, CodedRows) else X
    coding = model.table_coding
    coded = isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == len(model.feature_names)
    if model.coding is not None and coded and np.issubdtype(X.dtype, np.number):
        columns = np.split(np.arange(X.shape[1]), np.flatnonzero(np.diff(coding.homes)) + 1)
        used = set(model.selected_variables.tolist())
        return tuple(
            decoded(variable, np.asarray(X[:, own], dtype=float)) if i in used else _nothing(len(X))
            for i, (variable, own) in enumerate(zip(coding.variables, columns, strict=True))
        )
    if model.coding is None:  # names count where both sides have them
        known = set(map(str, getattr(X, "columns", ()))) & set(model.feature_names)
        coding = replace(coding, named=bool(known))
    if not hasattr(X, "shape") and not hasattr(X, "columns"):
        X = np.asarray(X)
    return coding.code(X, model.selected_variables.tolist()).cells


def _nothing(n_rows: int) -> Cells:
    return Cells(np.full(n_rows, np.nan), np.ones(n_rows, dtype=bool), np.zeros(n_rows, dtype=bool))


def _drawn(model: TreeModel) -> tuple[Cells, ...]:
    """Rows drawn evenly over the ranges and levels of training."""
    rng, n = np.random.default_rng(0), OPTIONS.drawn
    coding = model.table_coding
    cells = []
    for i, variable in enumerate(coding.variables):
        first = int(coding.columns_of(i)[0])
        none = np.zeros(n, dtype=bool)
        if variable.levels:
            numbers = rng.integers(0, len(variable.levels), n).astype(float)
        else:
            low, high = float(model.summary.low[first]), float(model.summary.high[first])
            numbers = low + (high - low) * rng.random(n)
            if model.summary.kinds[first] != FRACTIONS:
                numbers = np.rint(numbers)
        gaps = rng.random(n) < OPTIONS.missing if variable.gaps else none
        cells.append(Cells(np.where(gaps, np.nan, numbers), gaps, none))
    return tuple(cells)


def _shaken(model: TreeModel, cells: Sequence[Cells]) -> tuple[Cells, ...]:
    """The rows, and copies of them whose values are moved a little."""
    rng, n = np.random.default_rng(0), len(cells[0].numbers)
    copies = min(OPTIONS.shaken // max(n, 1), OPTIONS.copies)
    if copies <= 1:
        return tuple(cells)
    used = set(model.selected_variables.tolist())
    made = []
    for i, one in enumerate(cells):
        rows = np.tile(np.arange(n), copies)
        if i not in used:
            made.append(one.part(rows))
            continue
        swapped = rng.random(len(rows)) < OPTIONS.swapped
        swapped[:n] = False
        moved = one.part(np.where(swapped, rng.integers(n, size=len(rows)), rows))
        values = np.sort(one.numbers[~np.isnan(one.numbers)])
        many = len(np.unique(values)) > OPTIONS.few_values
        if many and not model.table_coding.variables[i].levels:
            ranks = np.searchsorted(values, moved.numbers) + rng.random(len(rows))
            ranks = ranks + OPTIONS.jitter * len(values) * rng.normal(size=len(rows))
            ranks = np.clip(ranks, 0, len(values) - 1)
            shifted = np.interp(ranks, np.arange(len(values)), values)
            if _whole(model, i):
                shifted = np.rint(shifted)
            shifted[:n] = one.numbers
            moved = replace(moved, numbers=np.where(np.isnan(moved.numbers), np.nan, shifted))
        made.append(moved)
    return tuple(made)


def _coded(model: TreeModel, cells: Sequence[Cells]) -> FloatArray:
    """The matrix that the tree takes; columns that it does not use are 0."""
    coding = model.table_coding
    X = np.zeros((len(cells[0].numbers), len(model.feature_names)))
    for i in model.selected_variables:
        X[:, coding.columns_of(int(i))] = coding.variables[int(i)].coded(cells[int(i)])
    return X


# --- one question of the tree ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Linear:
    """One question of a tree: right where sum_j c_j f_j(x_j) + constant >= 0.

    f_j is the column itself or, of ``scaled`` questions, its value in scaled units.
    """

    model: TreeModel
    coefficients: FloatArray
    constant: float
    width: float
    scaled: bool

    @classmethod
    def of(cls, model: TreeModel, branch: int) -> _Linear:
        parameters, walk = model.parameters, model.walk
        slopes = parameters.weights[:, branch] / parameters.n_features
        if walk is None:
            slopes = np.where(
                np.abs(parameters.weights[:, branch]) > model.zero_threshold, slopes, 0
            )
            threshold = float(parameters.thresholds[branch])
            return cls(model, -slopes, threshold, 1.0 / model.steepness, True)
        sign = -1.0 if walk.upwards[branch] else 1.0
        coefficients = sign * walk.coefficients[branch]
        unit = model.splits[0][branch][np.argmax(np.abs(coefficients))]
        leading = np.flatnonzero(np.abs(coefficients) == 1.0)
        if len(leading):
            unit = model.splits[0][branch][leading[0]]
        width = 1.0 / (model.steepness * abs(unit)) if unit else 1.0
        constant = -sign * float(walk.thresholds[branch])
        return cls(model, coefficients, constant, width, bool(walk.ranked[branch]))

    @cached_property
    def homes(self) -> list[int]:
        """Variables that it looks at."""
        found = self.model.table_coding.homes[np.flatnonzero(self.coefficients)]
        return np.unique(found).astype(int).tolist()

    def pull(self, home: int, cells: Cells) -> FloatArray:
        """Contribution of one variable."""
        coding = self.model.table_coding
        columns = coding.columns_of(home)
        coded = coding.variables[home].coded(cells)
        if self.scaled:
            coded = self.model.scaling.of_columns(columns).transform(coded)
        terms = [
            self.coefficients[j] * coded[:, n]
            for n, j in enumerate(columns)
            if self.coefficients[j]
        ]
        made: FloatArray = np.sum(terms, axis=0)
        return made

    def right(self, pulls: Sequence[FloatArray]) -> NDArray[np.bool_]:
        """Whether rows go right; sums that miss equality by rounding are equal."""
        total = np.sum(pulls, axis=0) + self.constant
        size = np.sum(np.abs(pulls), axis=0) + abs(self.constant)
        return np.asarray(total >= -WALK.tie * size)


def _bins(model: TreeModel, home: int, cells: Cells) -> Bins:
    """Candidate bins of a variable: readable numbers between values of the rows."""
    variable = model.table_coding.variables[home]
    bins = Bins(home, variable, np.zeros(0))
    if not bins.ranged:
        return bins
    values = cells.numbers[~cells.gaps & ~cells.unlisted]
    if variable.kind == DATE:
        days = np.array(spread_edges(values + variable.origin, SEARCH.bins, True))
        apart = np.diff(days, prepend=days[:1] - 2, append=days[-1:] + 2)
        reach = np.minimum(apart[:-1], apart[1:]) / 3 if len(days) else days
        return replace(bins, edges=np.array(day_edges(days, reach)) - variable.origin)
    return replace(bins, edges=np.array(spread_edges(values, SEARCH.bins, _whole(model, home))))


def _whole(model: TreeModel, home: int) -> bool:
    """Whether all training values of a variable are whole numbers."""
    first = int(model.table_coding.columns_of(home)[0])
    return bool(model.summary.kinds[first] != FRACTIONS)


def _with_crossings(linear: _Linear, bins: Bins, cells: Cells, shift: float) -> Bins:
    """Bins of a variable that is asked alone, with edges exactly where its side changes."""
    values = np.unique(cells.numbers[~cells.gaps & ~cells.unlisted])
    none = np.zeros(len(values), dtype=bool)
    if not bins.ranged or len(values) < 2:
        return bins
    above = linear.pull(bins.home, Cells(values, none, none)) + linear.constant - shift
    size = np.abs(above) + 2 * abs(linear.constant - shift)
    right = above >= -WALK.tie * size
    whole = bins.variable.kind == DATE or _whole(linear.model, bins.home)
    made = []
    for k in np.flatnonzero(right[1:] != right[:-1]):
        a, b, low, high = values[k], values[k + 1], above[k], above[k + 1]
        at = a + (b - a) * low / (low - high) if low != high else b
        moved = bins.variable.origin  # dates: edges are whole days
        made.append(gap_edge(values + moved, at + moved, bool(right[k]), whole) - moved)
    ends = np.unique(np.concatenate([bins.edges, made]))
    # An edge between a crossing and the values next to it parts nothing.
    return replace(bins, edges=ends)


def _asked(
    linear: _Linear,
    cells: Sequence[Cells],
    gain: FloatArray,
    points: int,
    sharp: bool,
) -> tuple[tuple[BlockPoints, ...], int]:
    """Blocks and limit of one question, searched for on the rows that arrive there."""
    pulls = [linear.pull(home, cells[home]) for home in linear.homes]
    above = np.sum(pulls, axis=0) + linear.constant
    shift, alone = 0.0, len(linear.homes) == 1
    if alone and len(above):
        cut = best_cut(above, gain, 0.0)
        if cut.gain > gain[linear.right(pulls)].sum() + 1e-6:
            shift = cut.nearest(0.0)
    bins, parts = [], []
    for home in linear.homes:
        one = _bins(linear.model, home, cells[home])
        if alone:
            one = _with_crossings(linear, one, cells[home], shift)
        first = int(linear.model.table_coding.columns_of(home)[0])
        ends = linear.model.summary.low[first], linear.model.summary.high[first]
        examples = linear.pull(home, one.examples(*map(float, ends)))
        chain = np.arange(one.n_values + one.own_other)
        if one.variable.kind == CATEGORY:
            chain = chain[np.argsort(examples[chain], kind="stable")]
        bins.append(one)
        parts.append(Part(one.of(cells[home]), examples, chain))
    side = np.where(above >= shift, SEARCH.side, -SEARCH.side)
    asked = Asked(above - shift, linear.constant - shift, linear.width, gain + side)
    found = search_points(asked, parts, points, sharp)
    blocks = [BlockPoints(b, p).merged() for b, p in zip(bins, found.points, strict=True)]
    return tuple(block for block in blocks if np.any(block.points)), found.limit


# --- the whole tree -------------------------------------------------------------------------------


def make_card(model: TreeModel, X: Any = None, y: Any = None, points: int = 20) -> ScoreCard:
    """The score card of a tree.

    Parameters
    ----------
    model : TreeModel
    X : table, coded rows or None
        Rows on which the card is to give the class of the tree; without them, rows drawn evenly
        over the training ranges.
    y : classes of the rows, optional
        For the accuracies, and for the risks of the card.
    points : int
        Most points of one line.
    """
    if (
        not isinstance(points, int)
        or isinstance(points, bool)
        or not 1 <= points <= OPTIONS.most_points
    ):
        raise ValueError(
            f"points must be an integer from 1 to {OPTIONS.most_points}, got {shown(points)}."
        )
    cells = _drawn(model) if X is None else cells_of(model, X)
    labels = None if y is None or X is None else _positions(model, y, cells)
    coded = _coded(model, cells)
    predicted = model.predict_index(coded)
    step = max(1, -(-len(predicted) // OPTIONS.rows))
    some = np.arange(0, len(predicted), step)
    card = _searched(model, _shaken(model, [one.part(some) for one in cells]), points)
    counts = model.predict_proba(coded)
    known = np.ones(len(counts), dtype=bool)
    if labels is not None:
        known = labels >= 0
        counts = np.eye(len(model.classes))[labels]
    card = _with_shares(card, [one.part(known) for one in cells], counts[known])
    if X is None or not len(predicted):
        return card
    goals, place, _ = card._followed(cells)
    given = np.array([goal.label for goal in goals])[place]
    card = replace(card, agreement=float(np.mean(given == predicted)))
    if labels is None:
        return card
    right = [float(np.mean(one == labels)) for one in (given, predicted)]
    return replace(card, accuracy=right[0], tree_accuracy=right[1])


def _positions(model: TreeModel, y: Any, cells: Sequence[Cells]) -> NDArray[np.intp]:
    """Positions of classes, -1 for those that the tree does not know; refused if none is known."""
    labels = np.asarray(y)
    known = np.isin(labels, model.classes)
    if len(labels) and not known.any():
        raise ValueError(
            f"y holds {shown(labels[0])}, which is no class of the tree ("
            f"{', '.join(map(shown, model.classes.tolist()[:5]))}); give labels of that kind."
        )
    if cells and len(labels) != len(cells[0].numbers):
        raise ValueError(
            f"X has {len(cells[0].numbers)} rows and y has {len(labels)} labels; give one per row."
        )
    found = np.full(len(labels), -1, dtype=np.intp)
    found[known] = np.searchsorted(model.classes, labels[known])
    return found


def _plan(model: TreeModel) -> tuple[Goal, list[tuple[int, int, Goal, Goal]]]:
    """The first goal, and number, node and goals (left, right) of every question of the card."""
    numbers = {found.node: found for found in outline(model).walk()}
    n_branches, calls = model.topology.n_branches, model.leaf_predictions
    linear = [_Linear.of(model, t) for t in range(n_branches)]
    made: list[tuple[int, int, Goal, Goal]] = []

    def leads(node: int, root: bool = False) -> Goal:
        while node < n_branches and not linear[node].homes:
            node = 2 * node + (2 if linear[node].constant >= 0 else 1)
        classes = {int(calls[leaf]) for leaf in model.topology.leaves_below(node)}
        found = numbers.get(node)
        asked = found is not None and found.split is not None
        if node >= n_branches or not asked or (len(classes) == 1 and not root):
            leaf = model.topology.leaves_below(node)[0]
            leaf = found.leaf if found is not None and found.leaf >= 0 else leaf
            return Goal(0, int(calls[leaf]))
        assert found is not None
        place = len(made)
        made.append((found.number, node, Goal(0), Goal(0)))
        made[place] = (found.number, node, leads(2 * node + 1), leads(2 * node + 2))
        return Goal(found.number)

    start = leads(0, root=True)
    return start, made


def _searched(model: TreeModel, cells: Sequence[Cells], points: int) -> ScoreCard:
    """The card without shares: its questions from the root down, each on the rows that arrive."""
    predicted = model.predict_index(_coded(model, cells))
    start, plan = _plan(model)
    n_rows, n_branches = len(predicted), model.topology.n_branches
    linear = [_Linear.of(model, t) for t in range(n_branches)]
    holds = np.array(
        [
            ~one.right([one.pull(home, cells[home]) for home in one.homes])
            if one.homes
            else np.full(n_rows, one.constant < 0)
            for one in linear
        ]
    )
    calls = model.leaf_predictions
    arrive = {start.question: np.arange(n_rows)}
    questions = []
    for number, node, low, high in plan:
        rows = arrive[number]
        few = holds[:, rows]
        left, right = (
            (calls[arrivals(few, 2 * node + side)] == predicted[rows]).astype(float)
            for side in (1, 2)
        )
        gain = right - left
        used = rows if len(rows) else np.arange(n_rows)
        gain = gain if len(rows) else np.zeros(n_rows)
        there = [one.part(used) for one in cells]
        blocks, limit = _asked(linear[node], there, gain, points, sharp=len(plan) > 1)
        question = QuestionCard(number, node, blocks, limit, low, high)
        questions.append(question)
        holds[node] = question.totals(cells) < limit
        for goal, side in ((low, True), (high, False)):
            if goal.question:
                arrive[goal.question] = rows[holds[node, rows] == side]
    return ScoreCard(model, start, tuple(questions))


# --- shares and risks -----------------------------------------------------------------------------


def _with_shares(card: ScoreCard, cells: Sequence[Cells], counts: FloatArray) -> ScoreCard:
    """The card with the classes of the rows at its ends; ``counts`` (n_rows, n_classes)."""
    goals, place, totals = card._followed(cells)
    overall = counts.mean(axis=0) if len(counts) else card.model.leaf_shares.mean(axis=1)
    shares = [
        _percentages(counts[place == n].sum(axis=0) + overall / overall.sum())
        for n in range(len(goals))
    ]
    ends = iter(shares)

    def known(goal: Goal) -> Goal:
        return goal if goal.question else goal._replace(shares=next(ends))

    questions = tuple(replace(q, low=known(q.low), high=known(q.high)) for q in card.questions)
    if not questions:
        return replace(card, start=known(card.start))
    card = replace(card, questions=questions)
    if len(questions) == 1 and len(card.model.classes) == 2:
        return replace(card, risks=_risks(card, totals, counts[:, 1]))
    return card


def _percentages(counts: FloatArray) -> tuple[int, ...]:
    """Whole per cents that add up to 100."""
    exact = 100 * counts / counts.sum()
    whole = np.floor(exact).astype(int)
    for k in np.argsort(-(exact - whole), kind="stable")[: 100 - int(whole.sum())]:
        whole[k] += 1
    return tuple(whole.tolist())


def _risks(card: ScoreCard, totals: NDArray[np.int64], second: FloatArray) -> tuple[int, ...]:
    """Chance of the second class by sum of points, in per cent from 1 to 99."""
    question = card.questions[0]
    size = question.most + 1
    n, k = np.bincount(totals, minlength=size), np.bincount(totals, second, size).astype(float)
    rises = question.high.label >= question.low.label
    risk: FloatArray = (k + OPTIONS.prior_rows * _logistic(n, k)) / (n + OPTIONS.prior_rows)
    weight = n + 1e-3
    risk = _pooled(risk, weight) if rises else _pooled(risk[::-1], weight[::-1])[::-1]
    found = np.clip(np.rint(100 * risk), 1, 99)
    if question.low.label != question.high.label:
        bar = 100 * card.model.decision_threshold(1)
        second_side = (np.arange(size) >= question.limit) == rises
        least, most = min(np.floor(bar) + 1, 99), max(np.ceil(bar) - 1, 1)
        found = np.where(second_side, np.maximum(found, least), np.minimum(found, most))
    return tuple(found.astype(int).tolist())


def _logistic(n: NDArray[np.int64], k: FloatArray) -> FloatArray:
    """Logistic curve through shares k / n at 0, 1, ..., by Newton's method; one row of prior."""
    at = np.arange(len(n)) / max(len(n) - 1, 1) - 0.5
    design = np.column_stack([np.ones(len(n)), at])
    mean = (k.sum() + 0.5) / (n.sum() + 1.0)
    beta = np.array([np.log(mean / (1 - mean)), 0.0])
    for _ in range(30):
        p = 1.0 / (1.0 + np.exp(-np.clip(design @ beta, -30, 30)))
        slope = design.T @ (k - n * p) - 1e-2 * beta
        curve = (design.T * (n * p * (1 - p))) @ design + 1e-2 * np.eye(2)
        change = np.clip(np.linalg.solve(curve, slope), -4, 4)
        beta = beta + change
        if np.abs(change).max() < 1e-9:
            break
    made: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(design @ beta, -30, 30)))
    return made


def _pooled(values: NDArray[Any], weight: NDArray[Any]) -> FloatArray:
    """The nearest nondecreasing sequence, by pooling adjacent violators."""
    blocks: list[list[float]] = []
    for value, w in zip(values.tolist(), weight.tolist(), strict=True):
        blocks.append([value, w, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            b, a = blocks.pop(), blocks.pop()
            total = a[1] + b[1]
            blocks.append([(a[0] * a[1] + b[0] * b[1]) / total, total, a[2] + b[2]])
    return np.repeat([b[0] for b in blocks], [int(b[2]) for b in blocks])
