"""A tree as score cards: whole points for values of each variable, added up question by question.

A card has its sides as the drawings have them (sides.py), and its questions are in the order of
their numbers there; question_card.py has the points.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softsplit.reading.model import TreeModel
from softsplit.reading.outline import answer_words, oriented, outline
from softsplit.reading.question_card import QuestionCard, question_card, sigmoid
from softsplit.support.arrays import FloatArray
from softsplit.support.late import late
from softsplit.support.messages import shown, visible
from softsplit.support.output_files import write_file
from softsplit.tree.routing import node_reach

MOST_POINTS = 1000


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
            told = self.chances(card)
            chances = ", ".join(f"{s} points {100 * p:.0f} %" for s, p in told)
            lines.append(f"    probability of the answer {words[0]}: {chances}")
            for total, shares, called in self.outcomes():
                each = zip(self.model.labels, shares, strict=True)
                parts = ", ".join(f"{visible(label)} {100 * p:.3g} %" for label, p in each)
                lines.append(f"    {total} points: {parts}; called {called}")
        if self.lost is not None and self.accuracy is not None:
            lines += ["", self.told_loss()]
        return "\n".join(lines)

    @property
    def turns(self) -> list[tuple[int, str]]:
        """Of one question: the sums from which on a class is called, and that class."""
        if len(self.model.parameters.thresholds) != 1 or not self.questions:
            return []
        card = self.questions[0]
        called = self._called(card.unit * np.array(card.sums, dtype=float) + card.offset)
        places = range(len(called))
        return [(card.sums[n], called[n]) for n in places if n == 0 or called[n] != called[n - 1]]

    @property
    def decides(self) -> bool:
        """Whether classes are called elsewhere than where the answer turns: costs decide."""
        found = [total for total, _ in self.turns[1:]]
        return (
            bool(self.turns)
            and found != [s for s in self.questions[0].sums[1:] if s >= self.questions[0].limit][:1]
        )

    def rule(self, place: int) -> str:
        """From how many points on the answer is yes; or a class is called, if costs decide."""
        if not self.decides:
            return f"{answer_words(self.model.labels)[0]} from {self.questions[place - 1].limit} on"
        return ", ".join(f"class {label} from {total} points on" for total, label in self.turns)

    def chances(self, card: QuestionCard) -> list[tuple[int, float]]:
        """Probability of the answer yes at some sums, those where another class is called too."""
        return card.chances([total for total, _ in self.turns])

    def outcomes(self) -> list[tuple[int, FloatArray, str]]:
        """Of one question: sums, how probable each class is there, and the one that is called."""
        if not self.turns:
            return []
        sums, left = (np.array(part) for part in zip(*self.chances(self.questions[0]), strict=True))
        card = self.questions[0]
        shares = self.model.leaf_shares @ np.array([left, 1.0 - left])
        called = self._called(card.unit * sums + card.offset)
        return list(zip(sums.tolist(), shares.T, called, strict=True))

    def _called(self, odds: FloatArray) -> list[str]:
        """The class that is called at odds of the answer to the only question."""
        left = sigmoid(odds)
        votes = self.model.leaf_votes @ np.array([left, 1.0 - left])
        return [visible(self.model.labels[k]) for k in np.argmax(votes, axis=0)]

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
    model = oriented(model, *_known_rows(model, X, y))
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
