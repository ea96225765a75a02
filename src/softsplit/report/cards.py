"""Score cards as tables: the lines of each column with their points, and where a sum leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softsplit.cards.score_card import QuestionCard, ScoreCard
from softsplit.report.pages import Table, render
from softsplit.support.messages import visible

if TYPE_CHECKING:
    from markupsafe import Markup


def card_part(card: ScoreCard) -> Markup:
    """All questions of a card."""
    questions = [(question.number, card.rules(question), _tables(card, question))
                 for question in card.questions]  # fmt: skip
    return render("card.html", card=card, questions=questions)


def _tables(card: ScoreCard, question: QuestionCard) -> list[Table]:
    """The points of a question, and what sums say, as far as there is something."""
    rows = [
        [visible(block.name) if i == 0 else "", values, str(points)]
        for block in question.blocks
        for i, (values, points) in enumerate(block.lines())
    ]
    points = f"Points at question {question.number}"
    tables = [Table(points, ["feature", "value", "points"], rows, (2,))]
    risks = [[text, f"{risk} %"] for text, risk in card.risk_lines(question)]
    sums = f"What a sum at question {question.number} says"
    tables.append(Table(sums, ["points", card.risk_name], risks, (1,)))
    return [table for table in tables if table.rows]
