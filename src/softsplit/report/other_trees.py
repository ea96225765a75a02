"""Other trees as good as the chosen one, and how often its features come back in resamples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from softsplit.estimators.alternatives import Alternative
from softsplit.estimators.stability import Stability
from softsplit.report.drawing import tree_outline, tree_svg
from softsplit.report.pages import PageTable, percent
from softsplit.support.messages import counted, shortened, visible

if TYPE_CHECKING:
    from markupsafe import Markup

SHOWN_SHARES = 8
"""Lines of each table of shares."""


class OtherTree(NamedTuple):
    """A tree to unfold."""

    title: str
    drawing: Markup
    outline: Markup


def other_trees(alternatives: Iterable[Alternative]) -> list[OtherTree]:
    """Each tree with its drawing and its words."""
    trees = []
    for place, alternative in enumerate(alternatives, 1):
        model = alternative.tree.tree_
        label = f"Drawing of alternative {place}; the same in words is below it."
        drawing = tree_svg(model, None, label)
        trees.append(OtherTree(_title(alternative), drawing, tree_outline(model)))
    return trees


def _title(alternative: Alternative) -> str:
    names = ", ".join(
        shortened(visible(name), 24) + (" (new)" if name in alternative.new_features else "")
        for name in alternative.features
    )
    questions = counted(alternative.n_questions, "question")
    return f"{names}; {questions}, {counted(alternative.n_terms, 'term')}; {alternative.gap_words}"


def recurring(stability: Stability | None) -> list[PageTable]:
    """How often features, pairs and questions come back."""
    tables: list[PageTable] = []
    if stability is None:
        return tables
    for what, title in (
        ("features", "Features that recur"),
        ("pairs", "Pairs of features in one tree"),
        ("questions", "Questions that ask for the same features"),
    ):
        shares: dict[Any, float] = getattr(stability, what)
        rows = [
            [
                ", ".join(
                    shortened(visible(name), 30) for name in ([key] if what == "features" else key)
                ),
                percent(share, 0),
                "yes" if stability.has(what, key) else "no",
            ]
            for key, share in list(shares.items())[:SHOWN_SHARES]
        ]
        if rows:
            tables.append(PageTable(title, [what, "share", "in the tree"], rows, (1,)))
    return tables
