"""A tree as an SVG picture and as a nested list.

A box is a question with its terms in the units of the data and, below them, how the rows that get
there are spread over its answers, and beside terms that bend a small curve of what they add to the
sum over the training range; a leaf is coloured by its predicted class. Bands between boxes
are as wide as the rows that go there, in the colours of their classes. Widths of text are
estimated, without a browser: a box is as wide as its longest line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.reading.equations import UNCOUNTED, Split, rank_places, read_split
from softsplit.reading.layout import NodeBox, TreeSizes, bands, lay_out
from softsplit.reading.outline import OutlineNode, answer_words, class_counts, outline
from softsplit.reading.palette import class_colour, ink_on
from softsplit.reading.points_text import pointed_lines
from softsplit.reading.term_curves import TermCurve, term_curves
from softsplit.reading.text import lines_below, notes_below, ranked_features
from softsplit.report.pages import render, text_width
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import counted, shortened, visible
from softsplit.support.numbers import number

if TYPE_CHECKING:
    from markupsafe import Markup

SIZES = TreeSizes(
    line=18.0, pad_x=12.0, pad_y=9.0, side_gap=18.0, level_gap=64.0, margin=4.0, widest=96.0,
    thinnest=0.002, curve_width=54.0, curve_gap=16.0, curve_pad=3.0,
)  # fmt: skip
"""Sizes of the drawn tree, in pixels."""


@dataclass(frozen=True)
class DrawingLayout:
    """Sizes of what is drawn with the tree, and how much it shows."""

    bins: int = 24
    """Bins of the spread of scores at a branch."""

    span: float = 6.0
    """Log-odds on either side of a threshold that the spread shows."""

    most_terms: int = 30
    """Terms of a question that a box shows."""

    shown_classes: int = 3
    """Classes of a leaf that a box shows."""

    least_share: float = 0.05
    """Smaller class shares are not written in a leaf."""

    spread_width: float = 196.0
    """Width of the spread of scores."""

    spread_height: float = 34.0
    """Its height."""

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


# --- A tree as an SVG picture ---------------------------------------------------------------------


SURE = float(np.log(0.95 / 0.05))
"""Log-odds from which on an answer is sure: 95 in 100."""


class Line(NamedTuple):
    """A line of text in a box: where it stands, its style, and its colour if it has one."""

    text: str
    x: float
    y: float
    kind: str = ""
    fill: str = ""


class Curve(NamedTuple):
    """The curve of a term in its frame; points are x, y, and whether the curve bends there."""

    sentence: str
    left: float
    top: float
    width: float
    height: float
    points: list[tuple[float, float, bool]]

    @property
    def path(self) -> str:
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in self.points)


class Spread(NamedTuple):
    """How rows are spread over the answers of a question: bars of each class, left surely yes."""

    left: float
    middle: float
    right: float
    top: float
    foot: float
    unsure: float
    bars: list[tuple[str, str]]


class Box(NamedTuple):
    """A box of the drawing with all that is in it."""

    node: OutlineNode
    title: str
    frame: NodeBox
    colour: str
    lines: list[Line]
    curves: list[Curve]
    spread: Spread | None


class Edge(NamedTuple):
    """The way from a box to its child: the shapes of its bands with their colours, or a line."""

    child: int
    line: str
    bands: list[tuple[str, str]]
    word: Line
    wide: float


def tree_svg(model: TreeModel, flow: Flow | None, label: str, anchor: str = "") -> Markup:
    """The tree as an SVG element of its natural size.

    With ``anchor``, questions link to their details further down, at anchor plus number.
    """
    words = answer_words(model.labels)

    def box_of(node: OutlineNode) -> NodeBox:
        if node.split is None:
            lines = _end_lines(model, flow, node)
            return SIZES.box(node, lines, max(map(text_width, lines)))
        lines = [f"question {node.number}", *_terms(node.split, words)]
        curves = [c for c in term_curves(model, node.split) if c.terms.stop <= LAYOUT.most_terms]
        least, below = (0.0, 0.0)
        if flow is not None:
            least, below = LAYOUT.spread_width, LAYOUT.spread_height + SIZES.line
        return SIZES.box(node, lines, max(map(text_width, lines)), curves, least, below)

    root, width, height = lay_out(
        outline(model, shortened), box_of, SIZES.side_gap, SIZES.level_gap, SIZES.margin
    )
    return render(
        "tree.html", label=label, anchor=anchor, words=words, width=round(width),
        height=round(height), boxes=[_drawn(model, box, flow) for box in root.walk()],
        edges=[
            _edge(box, child, word, flow)
            for box in root.walk()
            for child, word in zip(box.children, words, strict=False)
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


# --- Shapes ---------------------------------------------------------------------------------------


def _edge(box: NodeBox, child: NodeBox, word: str, flow: Flow | None) -> Edge:
    """The way to a child: a line, or a band per class from the foot of a box to its child's top."""
    y0, y1 = box.foot, child.y
    m = (y0 + y1) / 2
    line, shapes = "", []
    if flow is None:
        a, b = box.middle, child.middle
        line = f"M{a:.1f} {y0:.1f}C{a:.1f} {m:.1f} {b:.1f} {m:.1f} {b:.1f} {y1:.1f}"
    for band in () if flow is None else bands(box, child, flow.counts, SIZES):
        a, b, c, d = band.start, band.end, band.end + band.width, band.start + band.width
        shape = (
            f"M{a:.1f} {y0:.1f}C{a:.1f} {m:.1f} {b:.1f} {m:.1f} {b:.1f} {y1:.1f}"
            f"H{c:.1f}C{c:.1f} {m:.1f} {d:.1f} {m:.1f} {d:.1f} {y0:.1f}Z"
        )
        shapes.append((shape, class_colour(band.group)))
    place = Line(word, (box.middle + child.middle) / 2, m)
    return Edge(child.node.node, line, shapes, place, max(28.0, text_width(word) + 6.0))


def _drawn(model: TreeModel, box: NodeBox, flow: Flow | None) -> Box:
    node, colour, spread, title = box.node, "", None, box.node.label
    if node.split is None:
        colour = class_colour(node.classes[0][0])
    else:
        title = read_split(model, node.node).condition() if node.split.features else box.lines[1]
        spread = None if flow is None else _spread(box, flow.scores[node.node])
    fill = ink_on(colour) if colour else ""
    kinds = ["name" if colour else "note"] + ["note" if colour else ""] * (len(box.lines) - 1)
    top = box.y + SIZES.pad_y
    lines = [
        Line(text, box.middle_of_lines, top + (i + 0.74) * SIZES.line, kinds[i], fill)
        for i, text in enumerate(box.lines)
    ]
    curves = [_curve(curve, *SIZES.curve_frame(box, curve)) for curve in box.curves]
    return Box(node, title, box, colour, lines, curves, spread)


def _curve(curve: TermCurve, left: float, top: float, width: float, height: float) -> Curve:
    points = [
        (left + width * x, top + height * (1 - y), bool(bends))
        for (x, y), bends in zip(curve.places.tolist(), curve.bends, strict=True)
    ]
    return Curve(curve.sentence, left, top, width, height, points)


def _spread(box: NodeBox, scores: FloatArray) -> Spread:
    """The rows at a question by their log-odds, a stack of bars of all classes."""
    left = box.middle - LAYOUT.spread_width / 2
    foot = box.y + SIZES.pad_y + len(box.lines) * SIZES.line + LAYOUT.spread_height
    half = LAYOUT.spread_width * SURE / (2 * LAYOUT.span)
    largest = float(scores.sum(axis=0).max())
    step = LAYOUT.spread_width / LAYOUT.bins
    heights = scores * (LAYOUT.spread_height / largest if largest > 0 else 0.0)
    bars = []
    for k, own in enumerate(heights):
        base = foot - heights[:k].sum(axis=0)
        parts = [
            f"M{left + i * step:.1f} {base[i]:.1f}h{step - 0.6:.1f}v{-h:.1f}h{0.6 - step:.1f}z"
            for i, h in enumerate(own)
            if h >= 0.05
        ]
        if parts:
            bars.append(("".join(parts), class_colour(k)))
    right = left + LAYOUT.spread_width
    return Spread(left, box.middle, right, foot - LAYOUT.spread_height, foot, half, bars)


def tall_curve(curve: TermCurve) -> Markup:
    """The curve of a term by itself, with its ends and knots written below."""
    width, height = LAYOUT.wide + 2 * LAYOUT.aside, LAYOUT.tall + SIZES.line + SIZES.curve_pad
    whole = LAYOUT.aside, SIZES.curve_pad, LAYOUT.wide, LAYOUT.tall - SIZES.curve_pad
    drawn = _curve(curve, *whole)
    points = list(zip(drawn.points, curve.labels, strict=True))
    # Ends come first: a knot near one is not written.
    ticks: list[tuple[float, str]] = []
    for (x, _, _), label in [points[0], points[-1], *(p for p in points[1:-1] if p[0][2])]:
        if all(abs(x - other) >= LAYOUT.values_apart for other, _ in ticks):
            ticks.append((x, shortened(label, 12)))
    return render("curve.html", curve=drawn, ticks=ticks, width=round(width), height=round(height))


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


def tree_outline(model: TreeModel) -> Markup:
    """Every question with all its terms, complete and in words."""
    words, root = answer_words(model.labels), outline(model)
    pointed = pointed_lines(model, root)
    ranks = [
        f"rank({visible(model.feature_names[j])}): "
        + ", ".join(f"{rank:g} at {value}" for rank, value in rank_places(model, j))
        for j in ranked_features(root)
    ]
    return render(
        "outline.html", root=root, words=words, ranks=ranks, pointed=pointed,
        below=lines_below(model, root) if pointed is None else notes_below(model),
        sure=None if model.walk is not None else lambda split: threshold_text(split, words[0]),
        whatever_the_row=whatever_the_row,
    )  # fmt: skip
