"""The tree in words, as a nested list."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from softsplit.reading.answers import answers
from softsplit.reading.equations import common_label, rank_places, read_split, tree_notes
from softsplit.reading.model import TreeModel
from softsplit.report.drawing import threshold_text
from softsplit.report.elements import add, element
from softsplit.support.messages import visible


def tree_outline(model: TreeModel) -> ET.Element:
    """Every question with all its terms, complete and in words."""
    ranked: set[int] = set()

    yes, no = answers(model.labels)

    def write(parent: ET.Element, node: int, lead: str) -> None:
        item = add(parent, "li")
        label = common_label(model, node)
        if label is not None:
            add(item, "span", {}, f"{lead}class ")
            add(item, "strong", {}, label)
            return
        split = read_split(model, node)
        ranked.update(split.ranked_features)
        if split.features:
            add(item, "span", {}, f"{lead}is ")
            add(item, "code", {}, split.condition())
            add(item, "span", {}, f"? ({threshold_text(split, yes)})")
        else:
            share = 100 * split.left_share
            add(item, "span", {}, f"{lead}{yes} in {share:.3g} of 100, whatever the row")
        inner = add(item, "ul")
        write(inner, 2 * node + 1, f"{yes}: ")
        write(inner, 2 * node + 2, f"{no}: ")

    outer = element("div", {"class": "outline"})
    write(add(outer, "ul"), 0, "")
    if ranked:
        add(
            outer, "p", {"class": "quiet"},
            "rank(x) is the place of x among the training rows, from 0 for the smallest to 1 for "
            "the largest:",
        )  # fmt: skip
    for j in sorted(ranked):
        places = ", ".join(f"{rank:g} at {value}" for rank, value in rank_places(model, j))
        add(outer, "p", {"class": "quiet"}, f"rank({visible(model.feature_names[j])}): {places}")
    for note in tree_notes(model):
        add(outer, "p", {"class": "quiet"}, note)
    return outer
