"""A tree as an SVG picture and as a nested list, both made of elements: names are text nodes only.

Widths of text are estimated, without a browser: a box is as wide as its longest line.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from softsplit.reading.boxes import levels, spread
from softsplit.reading.equations import (
    common_label,
    gap_notes,
    leaf_label,
    number,
    rank_places,
    read_split,
    told_classes,
)
from softsplit.reading.model import TreeModel
from softsplit.report.elements import add, element
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import visible
from softsplit.tree.routing import node_reach

# Okabe and Ito's colours, which people with any common colour blindness can tell apart.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C8C8C",
)  # fmt: skip
DARK_INK, LIGHT_INK = "#14181d", "#ffffff"

LINE, PAD_X, PAD_Y = 18.0, 12.0, 9.0
CHARACTER, WIDE_CHARACTER = 7.5, 14.0
SIDE_GAP, LEVEL_GAP, MARGIN = 18.0, 52.0, 4.0
LONGEST_NAME, MOST_TERMS, SHOWN_CLASSES = 28, 6, 3


@dataclass
class Box:
    """One node: its lines, its place (upper left corner) and size, and the nodes below."""

    node: int
    lines: list[str]
    colour: str | None
    title: str
    x: float = 0.0
    y: float = 0.0
    children: list[Box] = field(default_factory=list)

    @property
    def width(self) -> float:
        return max(map(text_width, self.lines)) + 2 * PAD_X

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + 2 * PAD_Y

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    def walk(self) -> list[Box]:
        return [self, *(box for child in self.children for box in child.walk())]


def class_colour(k: int) -> str:
    """Colours repeat after eight classes; names stand beside them everywhere."""
    return COLOURS[k % len(COLOURS)]


def ink_on(colour: str) -> str:
    """Dark or light, whichever has the higher contrast on the colour."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return LIGHT_INK if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.058 else DARK_INK


def text_width(text: str) -> float:
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return WIDE_CHARACTER * wide + CHARACTER * (len(text) - wide)


def shortened(name: Any, length: int = LONGEST_NAME) -> str:
    """A name on one line, its middle left out if it is long."""
    text = " ".join(visible(name).split())
    if len(text) <= length:
        return text
    ending = (length - 1) // 3
    return f"{text[: length - 1 - ending]}\N{HORIZONTAL ELLIPSIS}{text[-ending:]}"


def class_flow(model: TreeModel, X: FloatArray, labels: Any) -> FloatArray:
    """Expected rows at every node by class, (n_classes, n_nodes)."""
    gates = model.gates(X)
    reach = node_reach(gates, 1.0 - gates)
    return np.array([reach[:, labels == k].sum(axis=1) for k in range(len(model.classes))])


def tree_svg(model: TreeModel, flow: FloatArray, label: str) -> ET.Element:
    """The tree as an SVG element of its natural size."""
    root = _box(model, flow, 0, iter(range(1, len(model.parameters.thresholds) + 1)))
    width, height = _place(root)
    svg = element(
        "svg",
        {
            "class": "tree", "role": "img", "aria-label": label,
            "viewBox": f"0 0 {width:.0f} {height:.0f}",
            "width": f"{width:.0f}", "height": f"{height:.0f}",
        },
    )  # fmt: skip
    for box in root.walk():
        for child, word in zip(box.children, ("yes", "no"), strict=False):
            _edge(svg, box, child, word)
    for box in root.walk():
        _draw(svg, box)
    return svg


def _box(model: TreeModel, flow: FloatArray, node: int, numbers: Any) -> Box:
    if common_label(model, node) is not None:
        return _leaf(model, flow, node)
    split = read_split(model, node, shortened)
    place = next(numbers)
    if split.features:
        terms = split.terms(3, MOST_TERMS)
        if split.lefts is not None:
            sure = split.certainty()
        elif split.sure is not None:
            low, high = (number(value, 3) for value in split.sure)
            sure = f"95 % sure outside {low} to {high}"
        else:
            sure = f"95 % sure beyond \N{PLUS-MINUS SIGN}{number(split.width, 2)}"
        lines = [f"split {place}", *terms, *filter(None, [split.bound(4)]), sure]
        title = read_split(model, node).condition()
    else:
        lines = [f"split {place}", f"yes with probability {split.left_share:.3g}"]
        title = lines[1]
    box = Box(node, lines, None, title)
    box.children = [_box(model, flow, 2 * node + side, numbers) for side in (1, 2)]
    return box


def _leaf(model: TreeModel, flow: FloatArray, node: int) -> Box:
    leaf = model.topology.leaves_below(node)[0]
    told = told_classes(model, leaf)
    lines = [shortened(model.labels[k]) + share for k, share in told[:SHOWN_CLASSES]]
    if len(told) > SHOWN_CLASSES:
        lines.append(f"and {len(told) - SHOWN_CLASSES} more")
    called = told[0][0]
    lines.append(_rows_note(flow[:, node], called))
    return Box(node, lines, class_colour(called), leaf_label(model, leaf))


def _rows_note(counts: FloatArray, own: int) -> str:
    total = float(counts.sum())
    if total < 0.5:
        return "no rows"
    rows = f"{total:,.0f} row{'' if round(total) == 1 else 's'}"
    return f"{rows}, {100 * counts[own] / total:.0f} % right"


def _place(root: Box) -> tuple[float, float]:
    """Set the corners of all boxes; the size of the sheet."""
    width = spread(root, MARGIN, SIDE_GAP)
    y = MARGIN
    for level in levels(root):
        for box in level:
            box.y = y
        y += max(box.height for box in level) + LEVEL_GAP
    return width + MARGIN, y - LEVEL_GAP + MARGIN


def _edge(svg: ET.Element, box: Box, child: Box, word: str) -> None:
    x0, y0, x1, y1 = box.middle, box.y + box.height, child.middle, child.y
    bend = (y0 + y1) / 2
    path = f"M{x0:.1f} {y0:.1f}C{x0:.1f} {bend:.1f} {x1:.1f} {bend:.1f} {x1:.1f} {y1:.1f}"
    add(svg, "path", {"class": "edge", "d": path})
    x, y = (x0 + x1) / 2, bend
    add(
        svg, "rect",
        {
            "class": "word-back", "x": f"{x - 14:.1f}", "y": f"{y - 10:.1f}", "width": "28",
            "height": "20", "rx": "6",
        },
    )  # fmt: skip
    add(svg, "text", {"class": "word", "x": f"{x:.1f}", "y": f"{y + 4.5:.1f}"}, word)


def _draw(svg: ET.Element, box: Box) -> None:
    group = add(svg, "g", {"class": "leaf" if box.colour else "split"})
    add(group, "title", {}, box.title)
    shape = {
        "x": f"{box.x:.1f}", "y": f"{box.y:.1f}", "rx": "8",
        "width": f"{box.width:.1f}", "height": f"{box.height:.1f}",
    }  # fmt: skip
    if box.colour:
        shape["fill"] = box.colour
    add(group, "rect", shape)
    for i, line in enumerate(box.lines):
        place = {"x": f"{box.middle:.1f}", "y": f"{box.y + PAD_Y + (i + 0.74) * LINE:.1f}"}
        if box.colour:
            place |= {"fill": ink_on(box.colour), "class": "name" if i == 0 else "note"}
        elif i in (0, len(box.lines) - 1):
            place["class"] = "note"
        add(group, "text", place, line)


def tree_outline(model: TreeModel) -> ET.Element:
    """The same tree as a nested list, complete and in words."""
    ranked: set[int] = set()

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
            sure = split.certainty().replace("+-", "\N{PLUS-MINUS SIGN}")
            add(item, "span", {}, f"{lead}is ")
            add(item, "code", {}, split.condition())
            add(item, "span", {}, f"? ({sure})")
        else:
            add(item, "span", {}, f"{lead}yes with probability {split.left_share:.3g}, always")
        inner = add(item, "ul")
        write(inner, 2 * node + 1, "yes: ")
        write(inner, 2 * node + 2, "no: ")

    outer = element("div", {"class": "outline"})
    write(add(outer, "ul"), 0, "")
    for j in sorted(ranked):
        places = ", ".join(f"{rank:g} at {value}" for rank, value in rank_places(model, j))
        add(outer, "p", {"class": "quiet"}, f"rank({visible(model.feature_names[j])}): {places}")
    for note in gap_notes(model):
        add(outer, "p", {"class": "quiet"}, note)
    return outer
