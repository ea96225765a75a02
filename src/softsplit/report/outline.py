"""The tree in words, as a nested list."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from softsplit.reading.equations import rank_places, tree_notes
from softsplit.reading.model import TreeModel
from softsplit.reading.outline import OutlineNode, answer_words, outline
from softsplit.reading.text import ranked_features
from softsplit.report.drawing import threshold_text
from softsplit.report.elements import add, element
from softsplit.support.messages import visible


def tree_outline(model: TreeModel) -> ET.Element:
    """Every question with all its terms, complete and in words."""
    words, root = answer_words(model.labels), outline(model)

    def write(parent: ET.Element, found: OutlineNode, lead: str) -> None:
        item, split = add(parent, "li"), found.split
        if split is None:
            add(item, "span", {}, f"{lead}class ")
            add(item, "strong", {}, found.label)
            return
        if split.features:
            add(item, "span", {}, f"{lead}is ")
            add(item, "code", {}, split.condition())
            add(item, "span", {}, f"? ({threshold_text(split, words[0])})")
        else:
            share = 100 * split.left_share
            add(item, "span", {}, f"{lead}{words[0]} in {share:.3g} of 100, whatever the row")
        inner = add(item, "ul")
        for child, word in zip(found.children, words, strict=True):
            write(inner, child, f"{word}: ")

    outer = element("div", {"class": "outline"})
    write(add(outer, "ul"), root, "")
    ranked = ranked_features(root)
    if ranked:
        add(
            outer, "p", {"class": "quiet"},
            "rank(x) is the place of x among the training rows, from 0 for the smallest to 1 for "
            "the largest:",
        )  # fmt: skip
    for j in ranked:
        places = ", ".join(f"{rank:g} at {value}" for rank, value in rank_places(model, j))
        add(outer, "p", {"class": "quiet"}, f"rank({visible(model.feature_names[j])}): {places}")
    for note in tree_notes(model):
        add(outer, "p", {"class": "quiet"}, note)
    return outer
