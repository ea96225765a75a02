"""Score cards as tables: the lines of each column with their points, and where a sum leads."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from softsplit.cards.score_card import QuestionCard, ScoreCard
from softsplit.report.elements import add, add_table
from softsplit.support.messages import visible


def add_card(parent: ET.Element, card: ScoreCard) -> None:
    """All questions of a card."""
    if not card.questions:
        add(parent, "p", {}, f"The tree has no questions; {card}.")
        return
    add(
        parent, "p", {},
        "The same tree by hand: at each question look up the line of each value, add the points, "
        "and go where the sum says, until a class is met.",
    )  # fmt: skip
    if card.agreement is not None:
        sentence = f"On the training rows {card.loss_sentence()}."
        add(parent, "p", {"id": "card-loss"}, sentence)
    for question in card.questions:
        _question(parent, card, question)
    part = add(parent, "details")
    add(part, "summary", {}, "As CSV")
    box = add(part, "div", {"class": "code"})
    shown = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": "Card as CSV"}
    add(add(box, "pre", shown), "code", {}, card.to_csv())
    add(box, "button", {"type": "button", "class": "copy"}, "Copy")


def _question(parent: ET.Element, card: ScoreCard, question: QuestionCard) -> None:
    add(parent, "h3", {}, f"Question {question.number}")
    rules = add(parent, "ul")
    for text, goal in card.rules(question):
        add(rules, "li", {}, f"{text}: {goal}")
    rows = [
        [visible(block.name) if i == 0 else "", values, str(points)]
        for block in question.blocks
        for i, (values, points) in enumerate(block.lines())
    ]
    if rows:
        head = ["feature", "value", "points"]
        add_table(parent, f"Points at question {question.number}", head, rows, (2,))
    risks = [[text, f"{risk} %"] for text, risk in card.risk_lines(question)]
    if risks:
        what = f"What a sum at question {question.number} says"
        add_table(parent, what, ["points", card.risk_name], risks, (1,))
