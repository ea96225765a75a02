"""A tree as an SVG picture and as a nested list, made of elements: names are text nodes only.

A box is a question with its terms in the units of the data and, below them, how the rows that get
there are spread over its answers, and beside terms that bend a small curve of what they add to the
sum over the training range; a leaf is coloured by its predicted class. Bands between boxes
are as wide as the rows that go there, in the colours of their classes. Widths of text are
estimated, without a browser: a box is as wide as its longest line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.reading.equations import UNCOUNTED, Split, rank_places, read_split
from softsplit.reading.layout import NodeBox, bands, lay_out
from softsplit.reading.outline import OutlineNode, answer_words, class_counts, outline
from softsplit.reading.palette import class_colour, ink_on
from softsplit.reading.term_curves import TermCurve, term_curves
from softsplit.reading.text import lines_below, ranked_features
from softsplit.report.elements import add, element
from softsplit.report.pages import shortened, text_width
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import counted, visible
from softsplit.support.numbers import number


@dataclass(frozen=True)
class DrawingLayout:
    """Sizes of the drawn tree, in units of the drawing, and how much it shows."""

    bins: int = 24
    """Bins of the spread of scores at a branch."""

    span: float = 6.0
    """Log-odds on either side of a threshold that the spread shows."""

    line: float = 18.0
    """Height of a line of text."""

    pad_x: float = 12.0
    """Space beside the text of a box."""

    pad_y: float = 9.0
    """Space above and below it."""

    side_gap: float = 18.0
    """Space between two boxes of a level."""

    level_gap: float = 64.0
    """Space between two levels."""

    margin: float = 4.0
    """Space around the tree."""

    most_terms: int = 30
    """Terms of a question that a box shows."""

    shown_classes: int = 3
    """Classes of a leaf that a box shows."""

    least_share: float = 0.05
    """Smaller class shares are not written in a leaf."""

    widest: float = 96.0
    """Width of the band of all rows."""

    thinnest: float = 0.002
    """Bands of a smaller share are not drawn."""

    spread_width: float = 196.0
    """Width of the spread of scores."""

    spread_height: float = 34.0
    """Its height."""

    curve_width: float = 54.0
    """Width of the curve of a term, beside it; it is as high as the lines of its terms."""

    curve_gap: float = 16.0
    """Space between the lines of a box and its curves."""

    curve_pad: float = 3.0
    """Space above and below a curve."""

    tall: float = 64.0
    """Height of the curve of a term where it stands alone, with its values below it."""

    wide: float = 200.0
    """Width of such a curve."""

    aside: float = 48.0
    """Space on either side of it: the first and the last value are centred at its ends."""

    values_apart: float = 34.0
    """Least distance of two values written below a curve."""


LAYOUT = DrawingLayout()


@dataclass(frozen=True)
class Flow:
    """Rows at the nodes of a tree.

    Attributes
    ----------
    counts : array of shape (n_classes, n_nodes)
        Rows of each class that come by each node: whole rows of a walk, else expected ones.
    scores : array of shape (n_branches, n_classes, LAYOUT.bins)
        The same by the log-odds of yes at each question, counted from where its answer turns.
    ended : array of shape (n_classes, n_leaves)
        Whole rows by the leaf at which they arrive, without a walk their most probable leaf.
    predicted : array of shape (n_classes, n_leaves)
        The same rows by predicted class: under a cost matrix that need not be the class
        of their most probable leaf.
    """

    counts: FloatArray
    scores: FloatArray
    ended: FloatArray
    predicted: FloatArray


def rows_flow(model: TreeModel, X: FloatArray, labels: NDArray[Any]) -> Flow:
    """Where these rows, with classes by position, go."""
    scores = model.scores(X)
    reach, n_classes = model.visits(X), len(model.classes)
    counts = class_counts(reach, labels, range(n_classes))
    odds = (
        model.steepness * scores - np.array([_turn(model, t) for t in range(len(scores))])[:, None]
    )
    odds = np.clip(odds, -LAYOUT.span, LAYOUT.span)
    places = np.minimum(
        ((LAYOUT.span - odds) / (2 * LAYOUT.span) * LAYOUT.bins).astype(np.int64), LAYOUT.bins - 1
    )
    spread = np.zeros((len(scores), n_classes, LAYOUT.bins))
    for t in range(len(scores)):
        np.add.at(spread[t], (labels, places[t]), reach[t])
    ended, predicted = np.zeros((2, n_classes, len(scores) + 1))
    leaves = model.arrive(X)
    np.add.at(ended, (labels, leaves), 1.0)
    np.add.at(predicted, (model.predict_index(X), leaves), 1.0)
    return Flow(counts, spread, ended, predicted)


def _turn(model: TreeModel, branch: int) -> float:
    """Log-odds of yes at which the answer to a question turns: 0 but for a walk."""
    split = read_split(model, branch)
    if model.walk is None or split.ranked or split.sure or split.lefts or not split.features:
        return 0.0
    away = (split.threshold - split.centre) / split.gate_width
    return away if split.sign == ">" else -away


# --- A tree as an SVG picture made of elements: names are text nodes only -------------------------


SURE = float(np.log(0.95 / 0.05))
"""Log-odds from which on an answer is sure: 95 in 100."""


def tree_svg(model: TreeModel, flow: Flow | None, label: str, anchor: str = "") -> ET.Element:
    """The tree as an SVG element of its natural size.

    With ``anchor``, questions link to their details further down, at anchor plus number.
    """
    words = answer_words(model.labels)

    def box_of(node: OutlineNode) -> NodeBox:
        if node.split is None:
            return _sized(node, _end_lines(model, flow, node))
        lines = [f"question {node.number}", *_terms(node.split, words)]
        curves = [c for c in term_curves(model, node.split) if c.terms.stop <= LAYOUT.most_terms]
        return _sized(node, lines, LAYOUT.spread_height + LAYOUT.line if flow else 0.0, curves)

    root, width, height = lay_out(
        outline(model, shortened), box_of, LAYOUT.side_gap, LAYOUT.level_gap, LAYOUT.margin
    )
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
        for child, word in zip(box.children, words, strict=False):
            _edge(svg, box, child, word, flow)
    for box in root.walk():
        _draw(svg, model, box, flow, anchor)
    return svg


def _sized(
    node: OutlineNode, lines: list[str], extra: float = 0.0, curves: Sequence[TermCurve] = ()
) -> NodeBox:
    """A box as wide as its longest line with the curves beside it, and with ``extra`` height for
    the spread of its rows."""
    beside = LAYOUT.curve_gap + LAYOUT.curve_width if curves else 0.0
    widest = max(map(text_width, lines)) + beside
    width = max(widest, LAYOUT.spread_width if extra > LAYOUT.line else 0.0) + 2 * LAYOUT.pad_x
    height = len(lines) * LAYOUT.line + 2 * LAYOUT.pad_y + extra
    return NodeBox(node, lines, width, height, curves=list(curves), beside=beside)


def whatever_the_row(split: Split, words: tuple[str, str]) -> str:
    """The answer of all rows to a question without features, and its probability."""
    left, share = split.usual_side
    return f"{words[0] if left else words[1]} in {100 * share:.3g} of 100, whatever the row"


def _terms(split: Split, words: tuple[str, str]) -> list[str]:
    """The question, a term to a line, in the units of the data."""
    if not split.features:
        return [whatever_the_row(split, words)]
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
    predicted = end.classes[0][0]
    if model.walk is not None:
        counts = (
            model.walk.counts[:, list(end.leaves)]
            if flow is None
            else flow.ended[:, list(end.leaves)]
        )
        return [
            shortened(model.labels[predicted]),
            *_arriving_lines(model, counts.sum(axis=1), predicted),
        ]
    if flow is not None:
        notes = _rows_notes(model, flow, list(end.leaves), predicted)
        return [shortened(model.labels[predicted]), *notes]
    lines = [
        _class_text(model.labels[k], share) for k, share in end.classes[: LAYOUT.shown_classes]
    ]
    more = len(end.classes) - LAYOUT.shown_classes
    return [*lines, f"and {more} more"] if more > 0 else lines


def _arriving_lines(model: TreeModel, counts: FloatArray, predicted: int) -> list[str]:
    """How many rows arrive at the end of a walk, and their classes, the predicted one first."""
    total = float(counts.sum())
    if np.isnan(total):
        return [UNCOUNTED]
    if total == 0:
        return ["no training row"]
    shares = counts / total
    order = [predicted, *(int(k) for k in np.argsort(-shares, kind="stable") if k != predicted)]
    listed = [k for k in order if k == predicted or shares[k] >= LAYOUT.least_share]
    rows = counted(round(total), "row")
    lines = [f"{rows}: {_share_text(model, predicted, shares)}"]
    return lines + [_share_text(model, k, shares) for k in listed[1 : LAYOUT.shown_classes]]


def _share_text(model: TreeModel, k: int, shares: FloatArray) -> str:
    return f"{shortened(model.labels[k])} {100 * shares[k]:.0f} %"


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


# --- what is between boxes ----------------------------------------------------------------------


def _edge(svg: ET.Element, box: NodeBox, child: NodeBox, word: str, flow: Flow | None) -> None:
    group = add(svg, "g", {"class": "edge", "data-child": str(child.node.node)})
    y0, y1 = box.foot, child.y
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


def _bands(group: ET.Element, box: NodeBox, child: NodeBox, counts: FloatArray) -> None:
    """A band per class from the bottom of a box to the top of its child."""
    y0, y1 = box.foot, child.y
    m = (y0 + y1) / 2
    for band in bands(box, child, counts, LAYOUT.widest, LAYOUT.thinnest):
        a, b, c, d = band.start, band.end, band.end + band.width, band.start + band.width
        shape = (
            f"M{a:.1f} {y0:.1f}C{a:.1f} {m:.1f} {b:.1f} {m:.1f} {b:.1f} {y1:.1f}"
            f"H{c:.1f}C{c:.1f} {m:.1f} {d:.1f} {m:.1f} {d:.1f} {y0:.1f}Z"
        )
        add(group, "path", {"class": "band", "d": shape, "fill": class_colour(band.group)})


# --- boxes --------------------------------------------------------------------------------------


def _draw(svg: ET.Element, model: TreeModel, box: NodeBox, flow: Flow | None, anchor: str) -> None:
    node, colour = box.node, None
    if node.split is None:
        kind, title, colour = "leaf", node.label, class_colour(node.classes[0][0])
    else:
        kind = "split"
        title = read_split(model, node.node).condition() if node.split.features else box.lines[1]
    parent = svg
    if anchor and not box.is_end:
        link = {"href": f"#{anchor}{node.number}", "aria-label": f"Question {node.number}: {title}"}
        parent = add(svg, "a", link)
    group = add(parent, "g", {"class": kind, "data-node": str(node.node)})
    add(group, "title", {}, title)
    shape = {
        "x": f"{box.x:.1f}", "y": f"{box.y:.1f}", "rx": "8",
        "width": f"{box.width:.1f}", "height": f"{box.height:.1f}",
    }  # fmt: skip
    if colour:
        shape["fill"] = colour
    add(group, "rect", shape)
    for i, line in enumerate(box.lines):
        place = {
            "x": f"{box.middle_of_lines:.1f}",
            "y": f"{box.y + LAYOUT.pad_y + (i + 0.74) * LAYOUT.line:.1f}",
        }
        if colour:
            place |= {"fill": ink_on(colour), "class": "name" if i == 0 else "note"}
        elif i == 0:
            place["class"] = "note"
        add(group, "text", place, line)
    for curve in box.curves:
        top = box.y + LAYOUT.pad_y + (1 + curve.terms.start) * LAYOUT.line + LAYOUT.curve_pad
        left = box.x + box.width - LAYOUT.pad_x - LAYOUT.curve_width
        height = len(curve.terms) * LAYOUT.line - 2 * LAYOUT.curve_pad
        add_curve(group, curve, left, top, LAYOUT.curve_width, height)
    if flow is not None and not box.is_end:
        _spread(group, box, flow.scores[node.node], answer_words(model.labels))


def add_curve(
    parent: ET.Element, curve: TermCurve, left: float, top: float, width: float, height: float
) -> list[float]:
    """Draw the curve of a term in a frame; returns how far from the left its points are."""
    group = add(parent, "g", {"class": "curve", "role": "img", "aria-label": curve.told})
    add(group, "title", {}, curve.told)
    frame = {"x": f"{left:.1f}", "y": f"{top:.1f}", "width": f"{width:.1f}"}
    add(group, "rect", frame | {"height": f"{height:.1f}"})  # the whole frame shows the title
    points = [(left + width * x, top + height * (1 - y)) for x, y in curve.places.tolist()]
    for (x, y), bends in zip(points, curve.bends, strict=True):
        if bends:
            line = {"class": "knot", "x1": f"{x:.1f}", "x2": f"{x:.1f}", "y1": f"{top:.1f}"}
            add(group, "line", line | {"y2": f"{top + height:.1f}"})
            add(group, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "2.2"})
    way = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    add(group, "path", {"d": f"M{way}"})
    return [x for x, _ in points]


def tall_curve(curve: TermCurve) -> ET.Element:
    """The curve of a term by itself, with its ends and knots written below."""
    width, height = LAYOUT.wide + 2 * LAYOUT.aside, LAYOUT.tall + LAYOUT.line + LAYOUT.curve_pad
    svg = element(
        "svg",
        {
            "class": "tree", "viewBox": f"0 0 {width:.0f} {height:.0f}", "width": f"{width:.0f}",
            "height": f"{height:.0f}", "role": "img", "aria-label": curve.told,
        },
    )  # fmt: skip
    whole = LAYOUT.aside, LAYOUT.curve_pad, LAYOUT.wide, LAYOUT.tall - LAYOUT.curve_pad
    points = list(zip(add_curve(svg, curve, *whole), curve.bends, curve.labels, strict=True))
    # Ends come first: a knot near one is not written.
    written: list[float] = []
    for x, _, label in [points[0], points[-1], *(point for point in points[1:-1] if point[1])]:
        if all(abs(x - other) >= LAYOUT.values_apart for other in written):
            place = {"class": "tick", "x": f"{x:.1f}", "y": f"{height - 5:.1f}"}
            add(svg, "text", place, shortened(label, 12))
            written.append(x)
    return svg


def _spread(group: ET.Element, box: NodeBox, scores: FloatArray, words: tuple[str, str]) -> None:
    """How the rows at a question are spread over its answers, by class; left is surely yes."""
    left = box.middle - LAYOUT.spread_width / 2
    foot = box.y + LAYOUT.pad_y + len(box.lines) * LAYOUT.line + LAYOUT.spread_height
    half = LAYOUT.spread_width * SURE / (2 * LAYOUT.span)
    zone = {
        "class": "unsure", "x": f"{box.middle - half:.1f}", "width": f"{2 * half:.1f}",
        "y": f"{foot - LAYOUT.spread_height:.1f}", "height": f"{LAYOUT.spread_height:.1f}",
    }  # fmt: skip
    add(group, "rect", zone)
    largest = float(scores.sum(axis=0).max())
    step = LAYOUT.spread_width / LAYOUT.bins
    bars = scores * (LAYOUT.spread_height / largest if largest > 0 else 0.0)
    for k, heights in enumerate(bars):
        base = foot - bars[:k].sum(axis=0)
        parts = [
            f"M{left + i * step:.1f} {base[i]:.1f}h{step - 0.6:.1f}v{-h:.1f}h{0.6 - step:.1f}z"
            for i, h in enumerate(heights)
            if h >= 0.05
        ]
        if parts:
            add(group, "path", {"class": "bars", "d": "".join(parts), "fill": class_colour(k)})
    axis = {"class": "axis", "x1": f"{left:.1f}", "x2": f"{left + LAYOUT.spread_width:.1f}"}
    add(group, "line", axis | {"y1": f"{foot:.1f}", "y2": f"{foot:.1f}"})
    y = f"{foot + 13:.1f}"
    for x, word, side in (
        (left, f"sure: {words[0]}", "start"),
        (box.middle, "unsure", "middle"),
        (left + LAYOUT.spread_width, f"sure: {words[1]}", "end"),
    ):
        add(group, "text", {"class": f"tick {side}", "x": f"{x:.1f}", "y": y}, word)


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
            sure = "" if model.walk is not None else f" ({threshold_text(split, words[0])})"
            add(item, "span", {}, f"?{sure}")
        else:
            add(item, "span", {}, f"{lead}{whatever_the_row(split, words)}")
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
    for line in lines_below(model, root):
        add(outer, "p", {"class": "quiet"}, line.strip())
    return outer
