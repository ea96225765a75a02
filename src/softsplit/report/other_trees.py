"""Other trees as good as the chosen one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from softsplit.estimators.alternatives import Alternative
from softsplit.report.drawing import tree_outline, tree_svg
from softsplit.support.messages import counted, shortened, visible

if TYPE_CHECKING:
    from markupsafe import Markup


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
