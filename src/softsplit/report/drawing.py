"""A tree as an SVG picture made of elements: names are text nodes only.

A box is a question with its terms in the units of the data and, below them, how the rows that get
there are spread over its answers; a leaf is coloured by the class it says. Bands between boxes are
as wide as the rows that go there, in the colours of their classes. Widths of text are estimated,
without a browser: a box is as wide as its longest line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

import numpy as np

from softsplit.reading.answers import answers
from softsplit.reading.boxes import levels, spread
from softsplit.reading.equations import (
    Split,
    common_label,
    leaf_label,
    number,
    read_split,
    told_classes,
)
from softsplit.reading.model import TreeModel
from softsplit.report.elements import add, element
from softsplit.report.flow import BINS, SPAN, Flow
from softsplit.report.labels import class_colour, counted, ink_on, shortened, text_width
from softsplit.support.arrays import FloatArray

LINE, PAD_X, PAD_Y = 18.0, 12.0, 9.0
SIDE_GAP, LEVEL_GAP, MARGIN = 18.0, 64.0, 4.0
MOST_TERMS, SHOWN_CLASSES = 6, 3
WORTH_TELLING = 0.05
"""Shares of other classes in a leaf below this are not told."""
WIDEST = 96.0
"""Pixels of the band of all rows."""
THIN = 0.002
"""Share of all rows below which a band is not drawn."""
SPREAD_WIDTH, SPREAD_HEIGHT = 196.0, 34.0
SURE = float(np.log(0.95 / 0.05))
"""Log-odds from which on an answer is sure: 95 in 100."""


@dataclass
class Box:
    """One node: its lines, its place (upper left corner) and size, and the nodes below."""

    node: int
    lines: list[str]
    colour: str | None
    title: str
    place: int = 0
    extra: float = 0.0
    x: float = 0.0
    y: float = 0.0
    children: list[Box] = field(default_factory=list)

    @property
    def width(self) -> float:
        widest = max(map(text_width, self.lines))
        return max(widest, SPREAD_WIDTH if self.extra > LINE else 0.0) + 2 * PAD_X

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + 2 * PAD_Y + self.extra

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    def walk(self) -> list[Box]:
        return [self, *(box for child in self.children for box in child.walk())]


def tree_svg(model: TreeModel, flow: Flow | None, label: str, anchor: str = "") -> ET.Element:
    """The tree as an SVG element of its natural size.

    With ``anchor``, questions link to what is said of them further down, at anchor plus number.
    """
    root = _box(model, flow, 0, iter(range(1, len(model.parameters.thresholds) + 1)))
    width, height = _place(root)
    svg = element(
        "svg",
        {
            # A picture hides what is in it from screen readers, a group does not hide its links.
            "class": "tree", "role": "group" if anchor else "img", "aria-label": label,
            "viewBox": f"0 0 {width:.0f} {height:.0f}",
            "width": f"{width:.0f}", "height": f"{height:.0f}",
        },
    )  # fmt: skip
    for box in root.walk():
        for child, word in zip(box.children, answers(model.labels), strict=False):
            _edge(svg, box, child, word, flow)
    for box in root.walk():
        _draw(svg, model, box, flow, anchor)
    return svg


def question_nodes(model: TreeModel) -> list[int]:
    """Nodes that ask something, in the order of their numbers in the drawing."""
    root = _box(model, None, 0, iter(range(1, len(model.parameters.thresholds) + 1)))
    return [box.node for box in root.walk() if box.colour is None]


def _box(model: TreeModel, flow: Flow | None, node: int, numbers: Iterator[int]) -> Box:
    if common_label(model, node) is not None:
        return _leaf(model, flow, node)
    split = read_split(model, node, shortened)
    place = next(numbers)
    lines = [f"question {place}", *_terms(split, answers(model.labels)[0])]
    title = read_split(model, node).condition() if split.features else lines[1]
    box = Box(node, lines, None, title, place, SPREAD_HEIGHT + LINE if flow else 0.0)
    box.children = [_box(model, flow, 2 * node + side, numbers) for side in (1, 2)]
    return box


def _terms(split: Split, yes: str) -> list[str]:
    """The question, a term to a line, in the units of the data."""
    if not split.features:
        return [f"{yes} in {100 * split.left_share:.3g} of 100, whatever the row"]
    if split.lefts is not None:
        return [f"{split.names[0]}?"]
    more = len(split.features) - MOST_TERMS
    if split.ranked:
        # Ranks have no unit: the scale beside the drawing says from which value on.
        bare = [name.removeprefix("rank(").removesuffix(")") for name in split.names]
        up = 1 if split.sign == ">" else -1
        pairs = zip(bare, split.coefficients, strict=True)
        lines = [_pull(name, up * coef > 0) for name, coef in pairs]
        ending = "taken together"
    else:
        lines, ending = split.terms(3), split.bound(4)
    if more > 0:
        lines = [*lines[:MOST_TERMS], f"and {more} more, listed below"]
    return [*lines, f"{ending}?"]


def _pull(name: str, upwards: bool) -> str:
    """What speaks for the left side: high or low values, or that something holds or does not."""
    if name.startswith("["):
        return name.strip("[]") if upwards else f"not: {name.strip('[]')}"
    return f"{'high' if upwards else 'low'} {name}"


def _leaf(model: TreeModel, flow: Flow | None, node: int) -> Box:
    below = list(model.topology.leaves_below(node))
    told = told_classes(model, below[0])
    called = told[0][0]
    if flow is None:
        lines = [_told(model.labels[k], share) for k, share in told[:SHOWN_CLASSES]]
        if len(told) > SHOWN_CLASSES:
            lines.append(f"and {len(told) - SHOWN_CLASSES} more")
    else:
        lines = [shortened(model.labels[called]), *_rows_notes(model, flow, below, called)]
    return Box(node, lines, class_colour(called), leaf_label(model, below[0]))


def _told(label: object, share: str) -> str:
    """A class and its share: "2: 98 %"."""
    return shortened(label) + (f":{share}" if share else "")


def _rows_notes(model: TreeModel, flow: Flow, leaves: list[int], called: int) -> list[str]:
    """How many rows end in a leaf, and what share of them is of which class."""
    counts = flow.ended[:, leaves].sum(axis=1)
    total = float(counts.sum())
    if total == 0:
        return ["no row ends here"]
    shares, calls = counts / total, flow.called[:, leaves].sum(axis=1)
    right = "right" if calls[called] == total else f"are {shortened(model.labels[called])}"
    notes = [f"{counted(round(total), 'row')}, {100 * shares[called]:.0f} % {right}"]
    others = [int(k) for k in np.argsort(-shares, kind="stable") if k != called]
    notes += [
        _told(model.labels[k], f" {100 * shares[k]:.0f} %")
        for k in others[: SHOWN_CLASSES - 1]
        if shares[k] >= WORTH_TELLING
    ]
    # Rows that most probably end here may be called for what they find on the other side.
    return notes + [
        f"{round(calls[k]):,} called {shortened(model.labels[k])}" for k in others if calls[k] > 0
    ]


def _place(root: Box) -> tuple[float, float]:
    """Set the corners of all boxes; the size of the sheet."""
    width = spread(root, MARGIN, SIDE_GAP)
    y = MARGIN
    for level in levels(root):
        for box in level:
            box.y = y
        y += max(box.height for box in level) + LEVEL_GAP
    return width + MARGIN, y - LEVEL_GAP + MARGIN


# --- what is between boxes ----------------------------------------------------------------------


def _edge(svg: ET.Element, box: Box, child: Box, word: str, flow: Flow | None) -> None:
    group = add(svg, "g", {"class": "edge", "data-child": str(child.node)})
    y0, y1 = box.y + box.height, child.y
    bend = (y0 + y1) / 2
    if flow is None:
        x0, x1 = box.middle, child.middle
        line = f"M{x0:.1f} {y0:.1f}C{x0:.1f} {bend:.1f} {x1:.1f} {bend:.1f} {x1:.1f} {y1:.1f}"
        add(group, "path", {"class": "line", "d": line})
    else:
        _bands(group, box, child, flow.counts)
    x = (box.middle + child.middle) / 2
    wide = max(28.0, text_width(word) + 6.0)
    back = {"class": "word-back", "x": f"{x - wide / 2:.1f}", "y": f"{bend - 10:.1f}"}
    add(group, "rect", back | {"width": f"{wide:.1f}", "height": "20", "rx": "6"})
    add(group, "text", {"class": "word", "x": f"{x:.1f}", "y": f"{bend + 4.5:.1f}"}, word)


def _bands(group: ET.Element, box: Box, child: Box, counts: FloatArray) -> None:
    """A band per class from the bottom of a box to the top of its child."""
    total = counts[:, 0].sum()
    unit = WIDEST / total if total > 0 else 0.0
    left = 2 * box.node + 1
    # Bands leave a box side by side: first all that go left, then all that go right.
    departs = box.middle - unit * counts[:, box.node].sum() / 2
    if child.node != left:
        departs += unit * counts[:, left].sum()
    arrives = child.middle - unit * counts[:, child.node].sum() / 2
    y0, y1 = box.y + box.height, child.y
    m = (y0 + y1) / 2
    for k, rows in enumerate(counts[:, child.node]):
        width = unit * float(rows)
        if rows >= THIN * total:
            a, b, c, d = departs, arrives, arrives + width, departs + width
            shape = (
                f"M{a:.1f} {y0:.1f}C{a:.1f} {m:.1f} {b:.1f} {m:.1f} {b:.1f} {y1:.1f}"
                f"H{c:.1f}C{c:.1f} {m:.1f} {d:.1f} {m:.1f} {d:.1f} {y0:.1f}Z"
            )
            add(group, "path", {"class": "band", "d": shape, "fill": class_colour(k)})
        departs, arrives = departs + width, arrives + width


# --- boxes --------------------------------------------------------------------------------------


def _draw(svg: ET.Element, model: TreeModel, box: Box, flow: Flow | None, anchor: str) -> None:
    kind = "leaf" if box.colour else "split"
    parent = svg
    if anchor and not box.colour:
        said = f"Question {box.place}: {box.title}"
        parent = add(svg, "a", {"href": f"#{anchor}{box.place}", "aria-label": said})
    group = add(parent, "g", {"class": kind, "data-node": str(box.node)})
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
        elif i == 0:
            place["class"] = "note"
        add(group, "text", place, line)
    if flow is not None and not box.colour:
        _spread(group, box, flow.scores[box.node], answers(model.labels))


def _spread(group: ET.Element, box: Box, scores: FloatArray, words: tuple[str, str]) -> None:
    """How the rows at a question are spread over its answers, by class; left is surely yes."""
    left = box.middle - SPREAD_WIDTH / 2
    foot = box.y + PAD_Y + len(box.lines) * LINE + SPREAD_HEIGHT
    half = SPREAD_WIDTH * SURE / (2 * SPAN)
    zone = {
        "class": "unsure", "x": f"{box.middle - half:.1f}", "width": f"{2 * half:.1f}",
        "y": f"{foot - SPREAD_HEIGHT:.1f}", "height": f"{SPREAD_HEIGHT:.1f}",
    }  # fmt: skip
    add(group, "rect", zone)
    largest = float(scores.sum(axis=0).max())
    step = SPREAD_WIDTH / BINS
    bars = scores * (SPREAD_HEIGHT / largest if largest > 0 else 0.0)
    for k, heights in enumerate(bars):
        base = foot - bars[:k].sum(axis=0)
        parts = [
            f"M{left + i * step:.1f} {base[i]:.1f}h{step - 0.6:.1f}v{-h:.1f}h{0.6 - step:.1f}z"
            for i, h in enumerate(heights)
            if h >= 0.05
        ]
        if parts:
            add(group, "path", {"class": "bars", "d": "".join(parts), "fill": class_colour(k)})
    axis = {"class": "axis", "x1": f"{left:.1f}", "x2": f"{left + SPREAD_WIDTH:.1f}"}
    add(group, "line", axis | {"y1": f"{foot:.1f}", "y2": f"{foot:.1f}"})
    y = f"{foot + 13:.1f}"
    for x, word, side in (
        (left, f"sure: {words[0]}", "start"),
        (box.middle, "unsure", "middle"),
        (left + SPREAD_WIDTH, f"sure: {words[1]}", "end"),
    ):
        add(group, "text", {"class": f"tick {side}", "x": f"{x:.1f}", "y": y}, word)


def threshold_text(split: Split, yes: str) -> str:
    """From where on a question is sure, in plain words."""
    if split.lefts is not None:
        held, else_ = (f"{100 * share:.3g}" for share in split.lefts)
        return f"{yes} in {held} of 100 where it holds, else in {else_} of 100"
    if split.sure is not None:
        low, high = (number(value, 4) for value in split.sure)
        return f"sure (95 in 100) below {low} and above {high}"
    what = "the sum" if len(split.features) > 1 else "it"
    return (
        f"sure (95 in 100) when {what} is more than {number(split.width, 2)} away from "
        f"{number(split.threshold, 4)}"
    )
