"""Score cards as tables: points by variable and value, and what the sum means."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from softsplit.reading.score_card import QuestionCard, ScoreCard
from softsplit.report.elements import add, add_table
from softsplit.support.messages import visible


def add_card(parent: ET.Element, card: ScoreCard) -> None:
    """All questions of a card."""
    if not card.questions:
        add(parent, "p", {}, "The tree asks nothing: it says the same of all rows.")
        return
    add(
        parent, "p", {},
        "The same tree by hand: look up the points of each value and add them; the answer to a "
        "question is yes from a sum on.",
    )  # fmt: skip
    if card.accuracy is not None:
        told = f"With these whole points it is {card.told_loss()} (training rows)."
        add(parent, "p", {"id": "card-loss"}, told)
    for place, question in enumerate(card.questions, start=1):
        _question(parent, place, question)
    part = add(parent, "details")
    add(part, "summary", {}, "As CSV")
    box = add(part, "div", {"class": "code"})
    shown = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": "Card as CSV"}
    add(add(box, "pre", shown), "code", {}, card.to_csv())
    add(box, "button", {"type": "button", "class": "copy"}, "Copy")


def _question(parent: ET.Element, place: int, question: QuestionCard) -> None:
    add(parent, "h3", {}, f"Question {place}: yes from {question.limit} points on")
    if not question.variables:
        add(parent, "p", {}, "It gives no points: the answer is the same for all rows.")
        return
    rows = []
    for variable in question.variables:
        for i, (values, points) in enumerate(variable.bands()):
            rows.append([visible(variable.name) if i == 0 else "", values, str(points)])
    head = ["variable", "value", "points"]
    add_table(parent, f"Points at question {place}", head, rows, (2,))
    chances = [[str(s), f"{100 * p:.0f} %"] for s, p in question.chances()]
    add_table(parent, "Probability of yes", ["sum", "yes"], chances, (0, 1))
