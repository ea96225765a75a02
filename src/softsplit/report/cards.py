"""Score cards as tables: points by feature and value, and what the sum means."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from softsplit.reading.outline import answer_words
from softsplit.reading.score_card import QuestionCard, ScoreCard
from softsplit.report.elements import add, add_table, shortened
from softsplit.support.messages import visible


def add_card(parent: ET.Element, card: ScoreCard) -> None:
    """All questions of a card."""
    if not card.questions:
        add(parent, "p", {}, "The tree asks nothing: it says the same of all rows.")
        return
    add(
        parent, "p", {},
        "The same tree by hand: look up the points of each value and add them; the answer to a "
        "question follows from the sum.",
    )  # fmt: skip
    if card.accuracy is not None:
        sentence = f"With these whole points it is {card.loss_sentence()} (training rows)."
        add(parent, "p", {"id": "card-loss"}, sentence)
    yes = answer_words(card.model.labels)[0]
    for place, question in enumerate(card.questions, start=1):
        _question(parent, place, question, card.rule(place))
        chances = card.chances(question)
        rows = [[str(s), f"{100 * p:.0f} %"] for s, p in chances]
        head, outcomes = ["sum", f"answer {yes}"], card.outcomes()
        if outcomes:  # one question: the sum says which class it is
            head += [shortened(label, 20) for label in card.model.labels] + ["predicted"]
            shares = [[*(f"{100 * p:.3g} %" for p in line), call] for _, line, call in outcomes]
            rows = [row + more for row, more in zip(rows, shares, strict=True)]
        if question.variables:
            add_table(parent, "What a sum says", head, rows, range(len(head)))
    part = add(parent, "details")
    add(part, "summary", {}, "As CSV")
    box = add(part, "div", {"class": "code"})
    shown = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": "Card as CSV"}
    add(add(box, "pre", shown), "code", {}, card.to_csv())
    add(box, "button", {"type": "button", "class": "copy"}, "Copy")


def _question(parent: ET.Element, place: int, question: QuestionCard, rule: str) -> None:
    add(parent, "h3", {}, f"Question {place}: {rule}")
    if not question.variables:
        add(parent, "p", {}, "It gives no points: the answer is the same for all rows.")
        return
    rows = []
    for variable in question.variables:
        for i, (values, points) in enumerate(variable.bands()):
            rows.append([visible(variable.name) if i == 0 else "", values, str(points)])
    head = ["feature", "value", "points"]
    add_table(parent, f"Points at question {place}", head, rows, (2,))
