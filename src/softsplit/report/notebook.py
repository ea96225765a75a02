"""What notebooks show of trees, explanations and paths: HTML in a box, without script or network.

The style is confined to the box by its class.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softsplit.advice.explanation import BranchReading, Explanation, changed_value
from softsplit.fitted.model import TreeModel, holder_of
from softsplit.reading.leaf_formulas import target_name
from softsplit.reading.outline import answer_words
from softsplit.report.drawing import tree_svg
from softsplit.report.pages import PageTable, asset, render
from softsplit.support.messages import shortened, visible
from softsplit.support.numbers import number

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class NotebookLimits:
    """How much a notebook shows."""

    bars: int = 12
    """Bars of a chart."""

    branches: int = 20
    """Trees of a path that are drawn."""


SHOWN = NotebookLimits()


class AskedQuestion(NamedTuple):
    """A question on the way of a row: its answer, and what decides it."""

    number: int
    condition: str
    answer: str
    terms: PageTable | None


def tree_html(estimator: Any) -> str:
    """A fitted tree: its picture and its figures."""
    tree = holder_of(estimator, numbers=True)
    model = tree.tree_
    predicted = f"{len(model.labels)} classes"
    if model.numbers is not None:
        predicted = shortened(target_name(model), 60)
    used = [int(j) for j in tree.selected_features_]
    facts = [
        f"{type(estimator).__name__}: {predicted}",
        f"{len(used)} of {model.table_coding.n_candidates} features used",
    ]
    score = getattr(estimator, "best_score_", None)
    if score is not None and np.isfinite(score):
        facts.append(f"cross-validated score {score:.3f}")
    shares = []
    if model.column_importances is not None:
        known = model.column_importances
        order = sorted(used, key=lambda j: (-known[j], j))
        shares = [(model.column_names[j], float(known[j])) for j in order]
    return _box("tree", facts=", ".join(facts), drawing=_drawing(model), shares=shares)


def explanation_html(explanation: Explanation) -> str:
    """Why a tree says what it says about one row."""
    if explanation.leaves:
        return f"<pre>{html.escape(str(explanation))}</pre>"
    chances = sorted(explanation.probabilities.items(), key=lambda item: -item[1])
    by_branch = {reading.branch: reading for reading in explanation.branches}
    words = answer_words(explanation.probabilities)
    rows = [
        [visible(change.name), _value(change.value), changed_value(change), visible(change.label)]
        for change in explanation.changes or explanation.together
    ]
    alone = "Changes of one feature alone" if explanation.changes else "Both together"
    head = ["feature", "now", "if it were", "the answer would be"]
    return _box(
        "explanation", explanation=explanation, chances=chances[: SHOWN.bars],
        asked=[_asked(by_branch[branch], words) for branch in explanation.path],
        changes=PageTable(alone, head, rows, (1, 2)) if rows else None,
    )  # fmt: skip


def path_html(path: Any) -> str:
    """Trees along a path of strengths: a table, and each tree to unfold."""
    rows = [
        [
            str(i), number(point.local_strength + point.global_strength, 4),
            str(len(point.selected_features)), str(np.count_nonzero(point.classifier.weights_)),
            number(point.solution.cost, 4),
        ]
        for i, point in enumerate(path.points, 1)
    ]  # fmt: skip
    head = ["tree", "strength", "features", "coefficients", "loss on training rows"]
    trees = []
    for point in path.points[: SHOWN.branches]:
        model = point.classifier.tree_
        names = [visible(model.column_names[j]) for j in point.selected_features]
        trees.append((", ".join(names), _drawing(model)))
    return _box("path", points=PageTable("Trees of the path", head, rows, range(1, 5)), trees=trees)


def _box(kind: str, **values: Any) -> str:
    from markupsafe import Markup

    style = Markup(asset("notebook.css") + "\n" + asset("tree.css"))
    return render("notebook.html", kind=kind, style=style, limits=SHOWN, **values)


def _drawing(model: TreeModel) -> Markup:
    return tree_svg(model, None, "Drawing of a tree")


def _asked(reading: BranchReading, words: tuple[str, str]) -> AskedQuestion:
    sure = reading.left if reading.answer else 1 - reading.left
    answer = f"{words[0] if reading.answer else words[1]}, with {100 * sure:.3g} %"
    terms = None
    if reading.answers:
        summed = reading.holds is None
        rows = [
            [visible(t.name), _value(t.value), *([number(t.amount, 6)] if summed else [])]
            for t in reading.contributions
        ]
        head = ["feature", "value", *(["points"] if summed else [])]
        said = reading.answers[not reading.answer]
        answer = f"{number(reading.total, 6)} points, {said}" if summed else said
        terms = PageTable("Its values", head, rows, (1, 2)[: len(head) - 1])
    elif reading.contributions:
        rows = [
            [visible(term.name), term.told, _towards(term.log_odds, words)]
            for term in reading.contributions
        ]
        rows.append(["an average row", "", _towards(reading.base_log_odds, words)])
        head = ["feature", "value", "pulls towards"]
        terms = PageTable("What decides it (log-odds)", head, rows, (1, 2))
    return AskedQuestion(reading.number, reading.condition, answer, terms)


def _value(value: float | str) -> str:
    """A value of a variable: a number, a level, a date."""
    return visible(value) if isinstance(value, str) else number(value, 6)


def _towards(log_odds: float, words: tuple[str, str]) -> str:
    return f"{words[0] if log_odds > 0 else words[1]} by {number(abs(log_odds), 3)}"
