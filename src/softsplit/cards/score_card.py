"""A tree as a score card: points to look up and add, question by question, until a class is met.

A card has one block per question and column of the table (card_blocks.py). At a question a person
adds the points of the lines that apply and compares the sum with the limit: from there on the right
side of the tree follows, below it the left side, which is another question or a class. ``predict``
is that and nothing else. Points, edges and limits are searched for so that the card gives the class
of the tree (card_search.py). Questions have the numbers that they have in texts and pictures; a
question whose sides all end in one class is not asked.

**Risks.** With two classes, a question at which rows end has a table from sums to the chance of the
second class, in whole per cent: with n_T rows that end there with the sum T, k_T of them of that
class, and the logistic curve l_T fitted to all of them,

    risk_T = (k_T + m l_T) / (n_T + m),       m = ``prior_rows``,

made monotone in T by pooling adjacent violators, and on the side of one half (of the tree's
decision threshold) on which the card's class is. With more classes, each end lists the shares of
the rows that arrive there. ``predict_proba`` is what is listed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.cards.blocks import BlockPoints
from softsplit.cards.questions import Linear, question_points
from softsplit.cards.rows import cells_of, coded_rows, drawn_rows, shaken_rows
from softsplit.fitted.model import TreeModel
from softsplit.fitted.walk import arrivals
from softsplit.reading.outline import outline
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown, visible
from softsplit.support.options import late
from softsplit.support.output_files import write_file
from softsplit.variables import Cells


@dataclass(frozen=True)
class CardOptions:
    """How cards are made of rows."""

    most_points: int = 1000
    """Largest number of points that a caller may allow for one line."""

    rows: int = 20_000
    """Rows that points are searched on; of more, evenly spaced ones."""

    few_questions: int = 8
    """Of more questions the points are searched for quickly: nobody adds up so many by hand, and a
    page would wait ten seconds for thirty."""

    prior_rows: float = 20.0
    """Weight in rows of the logistic curve in the table of risks."""


OPTIONS = CardOptions()


class Goal(NamedTuple):
    """Where an answer leads: to a question, or (question 0) to a class with shares in per cent."""

    question: int
    label: int = -1
    shares: tuple[int, ...] = ()


class Followed(NamedTuple):
    """Rows that were led through a card.

    ``goals`` are its ends and ``place`` that of each row; ``last`` is the number of the question at
    which a row ended, and ``totals`` its sum of points there.
    """

    goals: list[Goal]
    place: NDArray[np.intp]
    last: NDArray[np.intp]
    totals: NDArray[np.int64]

    @property
    def labels(self) -> NDArray[np.intp]:
        """Position of the class of each row."""
        return np.array([goal.label for goal in self.goals], dtype=np.intp)[self.place]


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
    risks : tuple of int
        With two classes: chance of the second one by sum of points, in per cent; -1 for sums that
        lead to another question.
    """

    number: int
    branch: int
    blocks: tuple[BlockPoints, ...]
    limit: int
    low: Goal
    high: Goal
    risks: tuple[int, ...] = ()

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
    accuracy, tree_accuracy : float, optional
        Shares of right classes on the rows that were given: of who follows the card by hand, and of
        the tree.
    agreement : float, optional
        Share of these rows for which the card gives the class of the tree.
    """

    model: TreeModel
    start: Goal
    questions: tuple[QuestionCard, ...]
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
        followed = self.follow(cells_of(self.model, X))
        labels: NDArray[Any] = self.model.classes[followed.labels]
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """Share of each class that the card lists: by the sum of points, or at the end met."""
        followed = self.follow(cells_of(self.model, X))
        proba: FloatArray = np.array([goal.shares for goal in followed.goals])[followed.place] / 100
        for question in self.questions:
            if question.risks:
                rows = np.flatnonzero(followed.last == question.number)
                risk = np.array(question.risks)[followed.totals[rows]] / 100
                proba[rows] = np.column_stack([1.0 - risk, risk])
        return proba

    def follow(self, cells: Sequence[Cells]) -> Followed:
        """Follow the card for rows, given by the cells of all variables."""
        n_rows = len(cells[0].numbers) if cells else 0
        place, last = np.zeros(n_rows, dtype=np.intp), np.zeros(n_rows, dtype=np.intp)
        sums = np.zeros(n_rows, dtype=np.int64)
        if not self.questions:
            return Followed([self.start], place, last, sums)
        goals: list[Goal] = []
        last[:] = self.start.question
        for question in self.questions:  # those above come first
            rows = np.flatnonzero(last == question.number)
            sums[rows] = totals = question.totals([column.part(rows) for column in cells])
            for side, goal in enumerate((question.low, question.high)):
                there = rows[(totals >= question.limit) == bool(side)]
                if goal.question:
                    last[there] = goal.question
                else:
                    place[there] = len(goals)
                    goals.append(goal)
        return Followed(goals, place, last, sums)

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
            for text, risk in self.risk_lines(question):
                writer.writerow([question.number, self.risk_name, text, f"{risk} %"])
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
        if (len(labels) == 2 and self.questions) or not goal.shares:
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

    def risk_lines(self, question: QuestionCard) -> list[tuple[str, int]]:
        """Sums of points of rows that end at a question, those of one risk together, and it."""
        risks = np.array(question.risks, dtype=int)
        runs = np.split(np.arange(len(risks)), np.flatnonzero(np.diff(risks)) + 1)
        return [
            (f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}", int(risks[run[0]]))
            for run in runs
            if len(run) and risks[run[0]] >= 0
        ]

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
            listed = [f"{text}: {risk} %" for text, risk in self.risk_lines(question)]
            if listed:
                lines.append(f"{self.risk_name} by points: {', '.join(listed)}")
            lines.append("")
        lines.append(self.loss_sentence())
        return "\n".join(lines).rstrip("\n")

    def loss_sentence(self) -> str:
        """How far the card follows the tree on the given rows; empty without rows."""
        if self.agreement is None:
            return ""
        text = f"the card gives the class of the tree on {100 * self.agreement:.1f} % of the rows"
        if self.accuracy is None or self.tree_accuracy is None:
            return text
        return (
            f"{text}; accuracy {100 * self.accuracy:.1f} %, of the tree "
            f"{100 * self.tree_accuracy:.1f} %"
        )

    def _repr_html_(self) -> str:
        return str(late("softsplit.report.notebook", "card_html")(self))


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
    cells = drawn_rows(model) if X is None else cells_of(model, X)
    labels = None if y is None or X is None else _positions(model, y, cells)
    coded = coded_rows(model, cells)
    predicted = model.predict_index(coded)
    step = max(1, -(-len(predicted) // OPTIONS.rows))
    some = np.arange(0, len(predicted), step)
    card = _searched(model, shaken_rows(model, [column.part(some) for column in cells]), points)
    counts = model.predict_proba(coded)
    known = np.ones(len(counts), dtype=bool)
    if labels is not None:
        known = labels >= 0
        counts = np.eye(len(model.classes))[labels]
    card = _with_shares(card, [column.part(known) for column in cells], counts[known])
    if X is None or not len(predicted):
        return card
    given = card.follow(cells).labels
    card = replace(card, agreement=float(np.mean(given == predicted)))
    if labels is None:
        return card
    right = [float(np.mean(calls == labels)) for calls in (given, predicted)]
    return replace(card, accuracy=right[0], tree_accuracy=right[1])


def _positions(model: TreeModel, y: Any, cells: Sequence[Cells]) -> NDArray[np.intp]:
    """Positions of classes, -1 for those that the tree does not know; refused if none is known."""
    labels = np.asarray(y)
    known = np.isin(labels, model.classes)
    if len(labels) and not known.any():
        raise ValueError(
            f"y holds {shown(labels[0])}, which is not a class of the tree ("
            f"{', '.join(map(shown, model.classes.tolist()[:5]))}); give labels of that kind."
        )
    if cells and len(labels) != len(cells[0].numbers):
        raise ValueError(
            f"X has {len(cells[0].numbers)} rows and y has {len(labels)} labels; give one per row."
        )
    positions = np.full(len(labels), -1, dtype=np.intp)
    positions[known] = np.searchsorted(model.classes, labels[known])
    return positions


def _plan(model: TreeModel) -> tuple[Goal, list[tuple[int, int, Goal, Goal]]]:
    """The first goal, and number, node and goals (left, right) of every question of the card."""
    nodes = {node.node: node for node in outline(model).walk()}
    n_branches, calls = model.topology.n_branches, model.leaf_predictions
    linear = [Linear.of(model, t) for t in range(n_branches)]
    plan: list[tuple[int, int, Goal, Goal]] = []

    def leads(node: int, root: bool = False) -> Goal:
        while node < n_branches and not linear[node].homes:
            node = 2 * node + (2 if linear[node].constant >= 0 else 1)
        classes = {int(calls[leaf]) for leaf in model.topology.leaves_below(node)}
        drawn = nodes.get(node)
        asked = drawn is not None and drawn.split is not None
        if node >= n_branches or not asked or (len(classes) == 1 and not root):
            leaf = model.topology.leaves_below(node)[0]
            leaf = drawn.leaf if drawn is not None and drawn.leaf >= 0 else leaf
            return Goal(0, int(calls[leaf]))
        assert drawn is not None
        place = len(plan)
        plan.append((drawn.number, node, Goal(0), Goal(0)))
        plan[place] = (drawn.number, node, leads(2 * node + 1), leads(2 * node + 2))
        return Goal(drawn.number)

    start = leads(0, root=True)
    return start, plan


def _searched(model: TreeModel, cells: Sequence[Cells], points: int) -> ScoreCard:
    """The card without shares: its questions from the root down, each on the rows that arrive."""
    predicted = model.predict_index(coded_rows(model, cells))
    start, plan = _plan(model)
    n_rows, n_branches = len(predicted), model.topology.n_branches
    linear = [Linear.of(model, t) for t in range(n_branches)]
    holds = np.array(
        [
            ~question.right([question.pull(home, cells[home]) for home in question.homes])
            if question.homes
            else np.full(n_rows, question.constant < 0)
            for question in linear
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
        there = [column.part(used) for column in cells]
        blocks, limit = question_points(
            linear[node], there, gain, points, sharp=len(model.classes) > 2,
            quick=len(plan) > OPTIONS.few_questions,
        )  # fmt: skip
        question = QuestionCard(number, node, blocks, limit, low, high)
        questions.append(question)
        holds[node] = question.totals(cells) < limit
        for goal, side in ((low, True), (high, False)):
            if goal.question:
                arrive[goal.question] = rows[holds[node, rows] == side]
    return _with_classes(ScoreCard(model, start, tuple(questions)), cells, predicted)


def _with_classes(
    card: ScoreCard, cells: Sequence[Cells], predicted: NDArray[np.intp]
) -> ScoreCard:
    """The card with the classes that the tree gives to most rows at each end."""
    goals, place, *_ = card.follow(cells)
    ends = []
    for n, goal in enumerate(goals):
        counts = np.bincount(predicted[place == n], minlength=len(card.model.classes))
        most = int(counts.argmax()) if counts[goal.label] < counts.max() else goal.label
        ends.append(goal._replace(label=most))
    return _with_ends(card, ends)


def _with_ends(card: ScoreCard, ends: Sequence[Goal]) -> ScoreCard:
    """The card with other ends, in the order in which following it lists them."""
    if not card.questions:
        return replace(card, start=ends[0])
    left, questions = iter(ends), []
    for question in card.questions:
        low = question.low if question.low.question else next(left)
        high = question.high if question.high.question else next(left)
        questions.append(replace(question, low=low, high=high))
    return replace(card, questions=tuple(questions))


# --- shares and risks -----------------------------------------------------------------------------


def _with_shares(card: ScoreCard, cells: Sequence[Cells], counts: FloatArray) -> ScoreCard:
    """The card with the classes of the rows at its ends; ``counts`` (n_rows, n_classes)."""
    goals, place, last, totals = card.follow(cells)
    overall = counts.mean(axis=0) if len(counts) else card.model.leaf_shares.mean(axis=1)
    own = np.eye(len(overall))
    ends = []
    for n, goal in enumerate(goals):
        # One more row: half of it of the class of the end, half as all rows are.
        mass = counts[place == n].sum(axis=0) + (own[goal.label] + overall) / 2
        ends.append(goal._replace(shares=_percentages(mass)))
    card = _with_ends(card, ends)
    if len(card.model.classes) != 2:
        return card
    bar, questions = card.model.decision_threshold(1), []
    for question in card.questions:
        there = last == question.number
        risks = _risks(question, bar, totals[there], counts[there, 1])
        questions.append(replace(question, risks=risks))
    return replace(card, questions=tuple(questions))


def _percentages(counts: FloatArray) -> tuple[int, ...]:
    """Whole per cents that add up to 100."""
    exact = 100 * counts / counts.sum()
    whole = np.floor(exact).astype(int)
    for k in np.argsort(-(exact - whole), kind="stable")[: 100 - int(whole.sum())]:
        whole[k] += 1
    return tuple(whole.tolist())


def _monotone(values: FloatArray, weights: FloatArray) -> FloatArray:
    """The nearest values that do not fall, by pooling neighbours that do.

    Reading a tree needs neither scikit-learn nor scipy, which have it too.
    """
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (low, v, n), (high, w, m) = pools[-2:]
            pools[-2:] = [((low * v + high * w) / (v + w), v + w, n + m)]
    return np.repeat([value for value, _, _ in pools], [n for _, _, n in pools])


def _risks(
    question: QuestionCard, bar: float, totals: NDArray[np.int64], second: FloatArray
) -> tuple[int, ...]:
    """Chance of the second class by sum of points, in per cent from 1 to 99, at one question.

    ``totals`` and ``second`` are the sums of the rows that end there, and how far they are of that
    class; it is predicted from the chance ``bar`` on.
    """
    size = question.most + 1
    high = np.arange(size) >= question.limit
    labels = np.where(high, question.high.label, question.low.label)
    ends = np.where(high, question.high.question, question.low.question) == 0
    if not np.any(ends):
        return ()
    n = np.bincount(totals, minlength=size)[ends]
    k = np.bincount(totals, second, size).astype(float)[ends]
    prior = float(np.clip(np.average(labels[ends], weights=n + 1e-9), 0.1, 0.9))
    curve, labels = _logistic(n, k, prior), labels[ends]
    risk: FloatArray = (k + OPTIONS.prior_rows * curve) / (n + OPTIONS.prior_rows)
    rises = labels[-1] > labels[0] if labels[-1] != labels[0] else curve[-1] >= curve[0]
    risk = _monotone(risk, n + 1e-3) if rises else -_monotone(-risk, n + 1e-3)
    least, most = min(np.floor(100 * bar) + 1, 99), max(np.ceil(100 * bar) - 1, 1)
    risk = np.clip(np.rint(100 * risk), 1, 99)
    if not (np.all(ends) and len(set(labels.tolist())) == 1):  # else the class says nothing
        risk = np.where(labels == 1, np.maximum(risk, least), np.minimum(risk, most))
    risks = np.full(size, -1)
    risks[ends] = risk
    return tuple(risks.tolist())


def _logistic(n: NDArray[np.int64], k: FloatArray, prior: float) -> FloatArray:
    """Logistic curve through shares k / n at 0, 1, ..., by Newton's method."""
    at = np.arange(len(n)) / max(len(n) - 1, 1) - 0.5
    design = np.column_stack([np.ones(len(n)), at])
    mean = (k.sum() + prior) / (n.sum() + 1.0)
    beta = np.array([np.log(mean / (1 - mean)), 0.0])
    for _ in range(30):
        p = 1.0 / (1.0 + np.exp(-np.clip(design @ beta, -30, 30)))
        slope = design.T @ (k - n * p) - 1e-2 * beta
        curve = (design.T * (n * p * (1 - p))) @ design + 1e-2 * np.eye(2)
        change = np.clip(np.linalg.solve(curve, slope), -4, 4)
        beta = beta + change
        if np.abs(change).max() < 1e-9:
            break
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(design @ beta, -30, 30))))
