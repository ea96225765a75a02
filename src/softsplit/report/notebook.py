"""What notebooks show of trees, explanations and paths: HTML in a box, without script or network.

The style is confined to the box by its class, and every name is a text node.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from softsplit.advice.explanation import BranchReading, Explanation, changed_value
from softsplit.cards.score_card import ScoreCard
from softsplit.fitted.model import holder_of
from softsplit.reading.outline import answer_words
from softsplit.report.cards import add_card
from softsplit.report.drawing import tree_svg
from softsplit.report.elements import add, add_markup, add_table, element, rendered
from softsplit.report.pages import shortened
from softsplit.support.messages import visible
from softsplit.support.numbers import number


@dataclass(frozen=True)
class NotebookLimits:
    """How much a notebook shows."""

    bars: int = 12
    """Bars of a chart."""

    branches: int = 20
    """Branches of a tree that is drawn."""


SHOWN = NotebookLimits()


def tree_html(estimator: Any) -> str:
    """A fitted tree: its picture and its figures."""
    box = _box()
    tree = holder_of(estimator)
    model = tree.tree_
    used = [int(j) for j in tree.selected_features_]
    facts = [
        f"{type(estimator).__name__}: {len(model.labels)} classes",
        f"{len(used)} of {model.table_coding.n_candidates} features used",
    ]
    score = getattr(estimator, "best_score_", None)
    if score is not None and np.isfinite(score):
        facts.append(f"cross-validated score {score:.3f}")
    add(box, "p", {"class": "facts"}, ", ".join(facts) + ".")
    _drawing(box, model)
    known = model.column_importances
    if used and known is not None:
        order = sorted(used, key=lambda j: (-known[j], j))
        shares = [(model.column_names[j], float(known[j])) for j in order]
        add(box, "p", {"class": "head"}, "Share of each feature in the predictions")
        _bars(box, shares[: SHOWN.bars])
        if len(shares) > SHOWN.bars:
            rest = ", ".join(visible(name) for name, _ in shares[SHOWN.bars :])
            more = add(box, "details")
            add(more, "summary", {}, f"{len(shares) - SHOWN.bars} more")
            add(more, "p", {}, rest)
    return rendered(box)


def explanation_html(explanation: Explanation) -> str:
    """Why a tree says what it says about one row."""
    box = _box()
    line = add(box, "p", {"class": "facts"}, "Answer: ")
    add(line, "strong", {}, visible(explanation.label))
    if explanation.note:
        add(box, "p", {"class": "note"}, explanation.note)
    chances = sorted(explanation.probabilities.items(), key=lambda item: -item[1])
    _bars(box, [(label, share) for label, share in chances[: SHOWN.bars]])
    by_branch = {reading.branch: reading for reading in explanation.branches}
    for branch in explanation.path:
        _question(box, by_branch[branch], answer_words(explanation.probabilities))
    add(box, "p", {}, f"It ends at: {explanation.leaf_label}.")
    changes = explanation.changes or explanation.together
    if changes:
        add(box, "p", {"class": "head"}, "What would change the answer")
        rows = [
            [visible(c.name), _told(c.value), changed_value(c), visible(c.label)] for c in changes
        ]
        head = ["feature", "now", "if it were", "the answer would be"]
        alone = "Changes of one feature alone" if explanation.changes else "Both together"
        add_table(box, alone, head, rows, (1, 2))
    return rendered(box)


def path_html(path: Any) -> str:
    """Trees along a path of strengths: a table, and each tree to unfold."""
    box = _box()
    add(box, "p", {"class": "facts"}, f"{len(path)} trees, from a weak penalty to a strong one.")
    rows = [
        [
            str(i + 1),
            number(point.local_strength + point.global_strength, 4),
            str(len(point.selected_features)),
            str(np.count_nonzero(point.classifier.weights_)),
            number(point.solution.cost, 4),
        ]
        for i, point in enumerate(path.points)
    ]
    head = ["tree", "strength", "features", "coefficients", "loss on training rows"]
    add_table(box, "Trees of the path", head, rows, range(1, 5))
    for i, point in enumerate(path.points[: SHOWN.branches]):
        part = add(box, "details")
        names = [visible(point.classifier.tree_.column_names[j]) for j in point.selected_features]
        add(part, "summary", {}, f"Tree {i + 1}: {', '.join(names) or 'no features'}")
        _drawing(part, point.classifier.tree_)
    return rendered(box)


def card_html(card: ScoreCard) -> str:
    """A tree as score cards."""
    box = _box()
    add_card(box, card)
    return rendered(box)


def _box() -> ET.Element:
    box = element("div", {"class": "softsplit"})
    folder = files("softsplit.report")
    style = "\n".join(
        folder.joinpath(name).read_text(encoding="utf-8") for name in ("notebook.css", "tree.css")
    )
    add(box, "style", {}, style)
    return box


def _drawing(parent: ET.Element, model: Any) -> None:
    label = "Drawing of a tree"
    scroll = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": label}
    add_markup(add(parent, "div", scroll), tree_svg(model, None, label))


def _bars(parent: ET.Element, shares: list[tuple[Any, float]]) -> None:
    listed = add(parent, "ul", {"class": "bars"})
    for name, share in shares:
        item = add(listed, "li")
        add(item, "span", {"title": visible(name)}, shortened(name, 60))
        bar = {"min": "0", "max": "1", "value": f"{share:.3f}", "aria-hidden": "true"}
        add(item, "meter", bar)
        add(item, "span", {"class": "number"}, f"{100 * share:.3g} %")


def _question(parent: ET.Element, reading: BranchReading, words: tuple[str, str]) -> None:
    """One question on the way, and what each feature adds to its answer."""
    answer = words[0] if reading.answer else words[1]
    sure = reading.left if reading.answer else 1 - reading.left
    line = add(parent, "p", {"class": "head"}, f"Question {reading.number}: ")
    add(line, "code", {}, reading.condition)
    add(parent, "p", {}, f"{answer}, with {100 * sure:.3g} %")
    if not reading.contributions:
        return
    rows = [
        [visible(term.name), term.told, _towards(term.log_odds, words)]
        for term in reading.contributions
    ]
    rows.append(["an average row", "", _towards(reading.base_log_odds, words)])
    head = ["feature", "value", "pulls towards"]
    add_table(parent, "What decides it (log-odds)", head, rows, (1, 2))


def _told(value: float | str) -> str:
    """A value of a variable: a number, a level, a date."""
    return visible(value) if isinstance(value, str) else number(value, 6)


def _towards(log_odds: float, words: tuple[str, str]) -> str:
    return f"{words[0] if log_odds > 0 else words[1]} by {number(abs(log_odds), 3)}"
