"""A tree as an SVG picture and as a nested list.

A box is a question in the units of the data; a leaf is coloured by its predicted class. Bands
between boxes are as wide as the rows that go there, in the colours of their classes. Widths of text
are estimated, without a browser: a box is as wide as its longest line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.reading.equations import Split, rank_places, read_split, right_text
from softsplit.reading.layout import NodeBox, TreeSizes, bands, lay_out
from softsplit.reading.leaf_boxes import (
    CURVE_LINES,
    DOWN,
    UP,
    leaf_box,
    leaf_colour,
    leaf_curve,
)
from softsplit.reading.outline import OutlineNode, answer_words, class_counts, outline, side_words
from softsplit.reading.palette import class_colour, ink_on
from softsplit.reading.points_text import written_tree
from softsplit.reading.text import lines_below, notes_below, ranked_features
from softsplit.report.pages import render, text_width
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import counted, shortened, visible
from softsplit.support.numbers import number

if TYPE_CHECKING:
    from markupsafe import Markup

SIZES = TreeSizes(
    line=18.0, pad_x=12.0, pad_y=9.0, side_gap=18.0, level_gap=64.0, margin=4.0, widest=96.0,
    thinnest=0.002,
)  # fmt: skip
"""Sizes of the drawn tree, in pixels."""


BAND = "#8a8f96"
"""Colour of bands of rows without classes."""

BAR = 3.0
"""Height of the bar of a term, in pixels."""


@dataclass(frozen=True)
class DrawingLayout:
    """Sizes of what is drawn with the tree, and how much it shows."""

    most_terms: int = 30
    """Terms of a question that a box shows."""

    shown_classes: int = 3
    """Classes of a leaf that a box shows."""

    least_share: float = 0.05
    """Smaller class shares are not written in a leaf."""


LAYOUT = DrawingLayout()


@dataclass(frozen=True)
class Flow:
    """Rows at the nodes of a tree.

    Attributes
    ----------
    counts : array of shape (n_classes, n_nodes)
        Rows of each class that come by each node: whole rows of a walk, else expected ones.
    ended : array of shape (n_classes, n_leaves)
        Whole rows by the leaf at which they arrive, without a walk their most probable leaf.
    predicted : array of shape (n_classes, n_leaves)
        The same rows by predicted class: under a cost matrix that need not be the class
        of their most probable leaf.
    """

    counts: FloatArray
    ended: FloatArray
    predicted: FloatArray


def rows_flow(model: TreeModel, X: FloatArray, labels: NDArray[Any]) -> Flow:
    """Where these rows, with classes by position, go."""
    n_classes = len(model.classes)
    counts = class_counts(model.visits(X), labels, range(n_classes))
    ended, predicted = np.zeros((2, n_classes, model.topology.n_leaves))
    leaves = model.arrive(X)
    np.add.at(ended, (labels, leaves), 1.0)
    np.add.at(predicted, (model.predict_index(X), leaves), 1.0)
    return Flow(counts, ended, predicted)


# --- A tree as an SVG picture ---------------------------------------------------------------------


class Line(NamedTuple):
    """A line of text in a box: where it stands, its style, and its colour if it has one."""

    text: str
    x: float
    y: float
    kind: str = ""
    fill: str = ""


class Bar(NamedTuple):
    """The bar of a term of a leaf that predicts a number: where it is, and its colour."""

    x: float
    y: float
    width: float
    height: float
    colour: str


class Box(NamedTuple):
    """A box of the drawing with all that is in it."""

    node: OutlineNode
    title: str
    frame: NodeBox
    colour: str
    lines: list[Line]
    bars: Sequence[Bar] = ()
    curve: str = ""


class Edge(NamedTuple):
    """The way from a box to its child: the shapes of its bands with their colours, or a line."""

    child: int
    line: str
    bands: list[tuple[str, str]]
    word: Line
    wide: float


def tree_svg(
    model: TreeModel,
    flow: Flow | None,
    label: str,
    anchor: str = "",
    visits: FloatArray | None = None,
) -> Markup:
    """The tree as an SVG element of its natural size.

    With ``anchor``, questions link to their details further down, at anchor plus number. Where
    there are no classes, bands are as wide as the ``visits`` of each node, (n_nodes,).
    """
    words = answer_words(model.labels)
    counts = None if visits is None else visits[None]
    counts = counts if flow is None else flow.counts

    def box_of(node: OutlineNode) -> NodeBox:
        if node.split is None:
            lines = _end_lines(model, flow, node)
            return SIZES.box(node, lines, max(map(text_width, lines)))
        lines = [f"question {node.number}", *_terms(node.split, words)]
        return SIZES.box(node, lines, max(map(text_width, lines)))

    root, width, height = lay_out(
        outline(model, shortened), box_of, SIZES.side_gap, SIZES.level_gap, SIZES.margin
    )
    return render(
        "tree.html", label=label, anchor=anchor, words=words, width=round(width),
        height=round(height), boxes=[_drawn(model, box) for box in root.walk()],
        edges=[
            _edge(box, child, word, counts)
            for box in root.walk()
            for child, word in zip(box.children, side_words(model, box.node), strict=False)
        ],
    )  # fmt: skip


def whatever_the_row(split: Split, words: tuple[str, str]) -> str:
    """The answer of all rows to a question without features, and its probability."""
    left, share = split.usual_side
    return f"{words[0] if left else words[1]} in {100 * share:.3g} of 100, whatever the row"


def _terms(split: Split, words: tuple[str, str]) -> list[str]:
    """The question, a term to a line, in the units of the data."""
    if not split.features:
        return [whatever_the_row(split, words)]
    if split.points is not None:
        return split.terms()
    if split.lefts is not None:
        return [f"{split.names[0]}?"]
    more = len(split.features) - LAYOUT.most_terms
    if split.ranked:
        # Ranks have no unit: the scale beside the drawing says from which value on.
        bare = [name.removeprefix("rank(").removesuffix(")") for name in split.names]
        up = 1 if split.sign == ">" else -1
        pairs = zip(bare, split.coefficients, strict=True)
        lines = [_pull(name, up * coef > 0) for name, coef in pairs]
        ending = "taken together"
    else:
        lines, ending = split.terms(split.digits and 3), split.bound()
    if more > 0:
        lines = [*lines[: LAYOUT.most_terms], f"and {more} more, listed below"]
    return [*lines, f"{ending}?"]


def _pull(name: str, upwards: bool) -> str:
    """What speaks for the left side: high or low values, or that something holds or does not."""
    if name.startswith("["):
        return name.strip("[]") if upwards else f"not: {name.strip('[]')}"
    return f"{'high' if upwards else 'low'} {name}"


def _end_lines(model: TreeModel, flow: Flow | None, end: OutlineNode) -> list[str]:
    """The predicted class of an end, and its other classes or the rows that end there."""
    if model.numbers is not None:
        return [line.text for line in leaf_box(model, end.leaf)]
    predicted = end.classes[0][0]
    if model.walk is not None:
        counts = model.walk.counts if flow is None else flow.ended
        right = right_text(counts[:, list(end.leaves)].sum(axis=1), predicted)
        return [shortened(model.labels[predicted]), right]
    if flow is not None:
        notes = _rows_notes(model, flow, list(end.leaves), predicted)
        return [shortened(model.labels[predicted]), *notes]
    lines = [
        _class_text(model.labels[k], share) for k, share in end.classes[: LAYOUT.shown_classes]
    ]
    more = len(end.classes) - LAYOUT.shown_classes
    return [*lines, f"and {more} more"] if more > 0 else lines


def _class_text(label: object, share: str) -> str:
    """A class and its share: "2: 98 %"."""
    return shortened(label) + (f":{share}" if share else "")


def _rows_notes(model: TreeModel, flow: Flow, leaves: list[int], predicted: int) -> list[str]:
    """How many rows end in a leaf, and what share of them is of which class."""
    counts = flow.ended[:, leaves].sum(axis=1)
    total = float(counts.sum())
    if total == 0:
        return ["no row ends here"]
    shares, predictions = counts / total, flow.predicted[:, leaves].sum(axis=1)
    right = (
        "right" if predictions[predicted] == total else f"are {shortened(model.labels[predicted])}"
    )
    notes = [f"{counted(round(total), 'row')}, {100 * shares[predicted]:.0f} % {right}"]
    others = [int(k) for k in np.argsort(-shares, kind="stable") if k != predicted]
    notes += [
        _class_text(model.labels[k], f" {100 * shares[k]:.0f} %")
        for k in others[: LAYOUT.shown_classes - 1]
        if shares[k] >= LAYOUT.least_share
    ]
    # Rows that most probably end here may be predicted by what they find on the other side.
    return notes + [
        f"{round(predictions[k]):,} predicted {shortened(model.labels[k])}"
        for k in others
        if predictions[k] > 0
    ]


# --- Shapes ---------------------------------------------------------------------------------------


def _edge(box: NodeBox, child: NodeBox, word: str, counts: FloatArray | None) -> Edge:
    """The way to a child: a line, or a band per class from the foot of a box to its child's top."""
    y0, y1 = box.foot, child.y
    m = (y0 + y1) / 2
    line, shapes = "", []
    if counts is None:
        a, b = box.middle, child.middle
        line = f"M{a:.1f} {y0:.1f}C{a:.1f} {m:.1f} {b:.1f} {m:.1f} {b:.1f} {y1:.1f}"
    plain = counts is not None and len(counts) == 1
    for band in () if counts is None else bands(box, child, counts, SIZES):
        a, b, c, d = band.start, band.end, band.end + band.width, band.start + band.width
        shape = (
            f"M{a:.1f} {y0:.1f}C{a:.1f} {m:.1f} {b:.1f} {m:.1f} {b:.1f} {y1:.1f}"
            f"H{c:.1f}C{c:.1f} {m:.1f} {d:.1f} {m:.1f} {d:.1f} {y0:.1f}Z"
        )
        shapes.append((shape, BAND if plain else class_colour(band.group)))
    place = Line(word, (box.middle + child.middle) / 2, m)
    return Edge(child.node.node, line, shapes, place, max(28.0, text_width(word) + 6.0))


def _drawn(model: TreeModel, box: NodeBox) -> Box:
    node, colour, title = box.node, "", box.node.label
    if node.split is None:
        numbers = model.numbers is not None
        colour = leaf_colour(model, node.leaf) if numbers else class_colour(node.classes[0][0])
    else:
        title = read_split(model, node.node).condition() if node.split.features else box.lines[1]
    fill = ink_on(colour) if colour else ""
    kinds = ["name" if colour else "note"] + ["note" if colour else ""] * (len(box.lines) - 1)
    place, top = box.middle, box.y + SIZES.pad_y
    if node.split is not None and node.split.listed:
        kinds, place = ["left note", *["left"] * (len(box.lines) - 1)], box.x + SIZES.pad_x
    lines = [
        Line(text.replace("  ", 2 * "\N{NO-BREAK SPACE}"), place, top + (i + 0.74) * SIZES.line,
             kinds[i], fill)
        for i, text in enumerate(box.lines)
    ]  # fmt: skip
    return Box(node, title, box, colour, lines, _bars(model, box), _curve(model, box))


def _curve(model: TreeModel, box: NodeBox) -> str:
    """The points of the curve of a hazard, in the last lines of its box."""
    corners = leaf_curve(model, box.node.leaf) if box.is_end else None
    if corners is None:
        return ""
    width, height = box.width - 2 * SIZES.pad_x, (CURVE_LINES - 0.5) * SIZES.line
    left, foot = box.x + SIZES.pad_x, box.foot - SIZES.pad_y
    pairs = zip(*corners, strict=True)
    return " ".join(f"{left + x * width:.1f},{foot - y * height:.1f}" for x, y in pairs)


def _bars(model: TreeModel, box: NodeBox) -> list[Bar]:
    """Bars under the terms of a leaf: to the right of the middle if added, else to the left."""
    if model.numbers is None or not box.is_end:
        return []
    longest, bars = (box.width - SIZES.pad_x) / 2, []
    for i, line in enumerate(leaf_box(model, box.node.leaf)):
        size, foot = longest * line.bar, box.y + SIZES.pad_y + (i + 0.86) * SIZES.line
        if size:
            colour = UP if size > 0 else DOWN
            bars.append(Bar(box.middle + min(size, 0.0), foot, abs(size), BAR, colour))
    return bars


def threshold_text(split: Split, yes: str) -> str:
    """From where on a question is sure, in plain words; of a walk, its gate as printed."""
    if split.digits is None and split.sure is None:
        return f"probability: {split.gate()}"
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


# --- The tree in words, as a nested list ----------------------------------------------------------


def tree_outline(model: TreeModel, anchor: str = "") -> Markup:
    """Every question with all its terms, complete and in words; named by ``anchor`` and number."""
    words, root = answer_words(model.labels), outline(model)
    pointed = written_tree(model, root)
    ranks = [
        f"rank({visible(model.feature_names[j])}): "
        + ", ".join(f"{rank:g} at {value}" for rank, value in rank_places(model, j))
        for j in ranked_features(root)
    ]
    return render(
        "outline.html", root=root, anchor=anchor, words=words, ranks=ranks, pointed=pointed,
        below=lines_below(model, root) if pointed is None else notes_below(model),
        sure=None if model.walk is not None else lambda split: threshold_text(split, words[0]),
        whatever_the_row=whatever_the_row,
    )  # fmt: skip
