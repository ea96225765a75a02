"""A fitted tree: split equations, where rows go, and classes by colour.

A leaf that predicts a number has its facts and its formula, with a bar for each term (leaf_boxes).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from softsplit.fitted.model import TreeModel, holder_of
from softsplit.plots.canvas import (
    INK,
    PALE,
    class_colours,
    matplotlib_pyplot,
    minus,
    plain,
)
from softsplit.reading.equations import Split, rank_places, right_text
from softsplit.reading.layout import NodeBox, TreeSizes, bands, lay_out
from softsplit.reading.leaf_boxes import CURVE_LINES, DOWN, UP, leaf_box, leaf_colour, leaf_curve
from softsplit.reading.outline import OutlineNode, class_counts, outline, side_words
from softsplit.reading.palette import ink_on
from softsplit.reading.text import ranked_features
from softsplit.support.arrays import FloatArray
from softsplit.support.numbers import number

TYPE_SIZE = 8.0
"""Points of the type."""

LINE = TYPE_SIZE * 1.35 / 72

STYLE = TreeSizes(
    line=LINE, pad_x=0.07, pad_y=0.07, side_gap=0.16, level_gap=0.62, margin=0.12, widest=0.9,
    thinnest=0.004,
)  # fmt: skip
"""Sizes in inches."""

LONGEST_NAME = 26
"""Characters of a name; longer ones are cut in the middle."""

LOOSE, BOLD = 1.06, 1.12
"""Type on a screen is wider than its outlines, and bold type wider still."""

BAR, BAR_SHADE = 0.9, 0.3
"""Height of the bar behind a term, as part of a line, and how much of its colour it has."""

LEAF_CLASSES, FOOTNOTES = 3, 16
"""Lines of classes in a leaf and of footnotes, at most."""


@dataclass(frozen=True)
class TreeSheet:
    """A placed tree, the size of the sheet, and lines that go below the tree; in inches."""

    root: NodeBox
    width: float
    height: float
    footnotes: list[str]

    def up(self, y: float) -> float:
        """A height counted from the foot of the sheet, as axes have it, of one from its top."""
        return self.height - y


@dataclass(repr=False, eq=False)
class TreeDisplay:
    """Picture of a tree; make one with ``from_estimator``.

    Where the question in a box holds, a row goes left ("yes"). With rows, bands show where they go,
    as wide as the expected number of rows and coloured by their class.

    Parameters
    ----------
    model : TreeModel
    flow : array of shape (n_groups, n_nodes), optional
        Expected rows of each class (or of all, as one group) at every node.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    """

    model: TreeModel
    flow: FloatArray | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        feature_names: Any = None,
        class_names: Any = None,
        max_terms: int | None = None,
        precision: int = 3,
        ax: Any = None,
    ) -> TreeDisplay:
        """Draw a fitted tree.

        Parameters
        ----------
        estimator : fitted SoftTreeClassifier or SoftTreeRegressor, or a search that holds one
        X, y : rows and their classes, optional
            To show where they go; without y, or if y are numbers, all rows have one colour.
        feature_names, class_names : sequences of str, optional
            Names to use instead of those of the columns, and of ``classes_`` in their order.
        max_terms : int, optional
            Most terms written in a box.
        precision : int, default=3
        ax : matplotlib axes, optional
            Type is made smaller to fit; by default a figure of the right size is made.
        """
        tree = holder_of(estimator, numbers=True)
        model = tree.tree_.with_names(feature_names, class_names)
        flow = None if X is None else _flow(tree, X, y)
        return cls(model, flow).plot(ax, max_terms=max_terms, precision=precision)

    def plot(
        self, ax: Any = None, *, max_terms: int | None = None, precision: int = 3
    ) -> TreeDisplay:
        """Draw on ``ax`` or on a new figure."""
        pyplot = matplotlib_pyplot()
        sheet = self._sheet(max_terms, precision)
        if ax is None:
            size = sheet.width + 2 * STYLE.margin, sheet.height + 2 * STYLE.margin
            figure = pyplot.figure(figsize=size)
            ax = figure.add_axes((0, 0, 1, 1))
        self.ax_, self.figure_ = ax, ax.figure
        scale = _prepared(ax, sheet)
        colours = class_colours(len(self.model.classes))
        for box in sheet.root.walk():
            words = side_words(self.model, box.node)
            for child, word in zip(box.children, words, strict=False):
                self._edge(sheet, box, child, word, colours, scale)
        for box in sheet.root.walk():
            self._box(sheet, box, colours, scale)
        for i, line in enumerate(reversed(sheet.footnotes)):
            place = {"ha": "left", "va": "center_baseline", "fontsize": TYPE_SIZE * scale}
            ax.text(0.0, (i + 0.5) * STYLE.line, line, color=PALE, **place)
        return self

    def _sheet(self, max_terms: int | None, precision: int) -> TreeSheet:
        """Boxes of all nodes, and the lines below the tree."""

        def box_of(node: OutlineNode) -> NodeBox:
            if node.split is None:
                if self.model.numbers is not None:
                    lines = [plain(line.text, None) for line in leaf_box(self.model, node.leaf)]
                    return _sized(node, lines)
                return _sized(node, [*_end_lines(self.model, node), *self._note(node)])
            return _sized(node, _condition_lines(node.number, node.split, max_terms, precision))

        root = outline(self.model, lambda name: plain(name, LONGEST_NAME))
        placed, width, height = lay_out(root, box_of, STYLE.side_gap, STYLE.level_gap)
        footnotes = _footnotes(self.model, ranked_features(root), precision)
        below = STYLE.line * (len(footnotes) + 1) if footnotes else 0.0
        width = max([width, *map(text_width, footnotes)])
        return TreeSheet(placed, width, height + below, footnotes)

    def _note(self, end: OutlineNode) -> list[str]:
        """How many rows end in a leaf, and how many of them are of its class."""
        k = end.classes[0][0]
        if self.flow is None:
            walk = self.model.walk
            return [] if walk is None else [right_text(walk.counts[:, list(end.leaves)].sum(1), k)]
        total = self.flow[:, end.node].sum()
        if len(self.flow) == 1:
            return [f"{total:.0f} rows"]
        return [right_text(np.round(self.flow[:, end.node]), k)]

    def _box(self, sheet: TreeSheet, box: NodeBox, colours: list[Any], scale: float) -> None:
        from matplotlib.patches import FancyBboxPatch

        fill = self._fill(box.node, colours)
        ink = ink_on(fill) if box.is_end else INK
        rounded = "round,pad=0,rounding_size=0.06"
        corner = box.x, sheet.up(box.foot)
        shape = FancyBboxPatch(corner, box.width, box.height, rounded)
        shape.set(facecolor=fill, edgecolor=INK, linewidth=0.8 * scale, zorder=3)
        self.ax_.add_patch(shape)
        split = box.node.split
        listed = split is not None and split.listed
        place = box.x + STYLE.pad_x if listed else box.middle
        for i, line in enumerate(box.lines):
            sharp = len(box.lines) - 1 if self.model.walk is None else 0
            small = not box.is_end and i in (0, sharp)
            self.ax_.text(
                place, sheet.up(box.y) - STYLE.pad_y - (i + 0.5) * STYLE.line, line,
                ha="left" if listed else "center", va="center_baseline",
                color=PALE if small else ink, zorder=4, fontsize=TYPE_SIZE * scale,
                weight="bold" if box.is_end and i == 0 else "normal",
            )  # fmt: skip
        if box.is_end and self.model.numbers is not None:
            self._bars(sheet, box)
            self._curve(sheet, box, ink, scale)

    def _fill(self, node: OutlineNode, colours: list[Any]) -> Any:
        if node.split is not None:
            return "white"
        if self.model.numbers is not None:
            return leaf_colour(self.model, node.leaf)
        return colours[node.classes[0][0]]

    def _bars(self, sheet: TreeSheet, box: NodeBox) -> None:
        """Bars behind the terms of a leaf: right of the middle if added, else left of it."""
        from matplotlib.patches import Rectangle

        longest = (box.width - STYLE.pad_x) / 2
        for i, line in enumerate(leaf_box(self.model, box.node.leaf)):
            foot = sheet.up(box.y) - STYLE.pad_y - (i + 0.5 + BAR / 2) * STYLE.line
            shape = Rectangle((box.middle, foot), longest * line.bar, BAR * STYLE.line)
            colour = UP if line.bar > 0 else DOWN
            shape.set(facecolor=colour, alpha=BAR_SHADE, linewidth=0, zorder=3.5)
            if line.bar:
                self.ax_.add_patch(shape)

    def _curve(self, sheet: TreeSheet, box: NodeBox, ink: str, scale: float) -> None:
        """The share without event over time, in the last lines of a leaf that says a hazard."""
        corners = leaf_curve(self.model, box.node.leaf)
        if corners is not None:
            width, height = box.width - 2 * STYLE.pad_x, (CURVE_LINES - 0.5) * STYLE.line
            left, foot = box.x + STYLE.pad_x, sheet.up(box.foot) + STYLE.pad_y
            x, y = left + width * corners[0], foot + height * corners[1]
            self.ax_.plot(x, y, color=ink, lw=1.2 * scale, zorder=4)

    def _edge(
        self, sheet: TreeSheet, box: NodeBox, child: NodeBox, word: str, colours: list[Any],
        scale: float,
    ) -> None:  # fmt: skip
        """The way from a box to its child, and the answer that leads there."""
        start, end = sheet.up(box.foot), sheet.up(child.y)
        if self.flow is None:
            line = [box.middle, child.middle], [start, end]
            self.ax_.plot(*line, color=PALE, lw=1.2 * scale, zorder=1)
        else:
            shades = colours if len(self.flow) > 1 else [PALE]
            for band in bands(box, child, self.flow, STYLE):
                corners = (band.start, start), (band.end, end)
                self.ax_.add_patch(_band(*corners, band.width, shades[band.group]))
        x = 0.5 * (box.middle + child.middle) + 0.06 * (1 if child.node.side else -1)
        pale = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8}
        self.ax_.text(
            x, 0.5 * (start + end), word, ha="center", va="center", style="italic", color=INK,
            fontsize=TYPE_SIZE * scale, zorder=2, bbox=pale,
        )  # fmt: skip


def _prepared(ax: Any, sheet: TreeSheet) -> float:
    """Set the limits of the axes to the sheet; how much smaller than planned it is drawn."""
    ax.set_xlim(-STYLE.margin, sheet.width + STYLE.margin)
    ax.set_ylim(-STYLE.margin, sheet.height + STYLE.margin)
    ax.set_aspect("equal")
    ax.axis("off")
    inches = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return float(
        min(
            inches.width / (sheet.width + 2 * STYLE.margin),
            inches.height / (sheet.height + 2 * STYLE.margin),
            1.5,
        )
    )


def _band(top: tuple[float, float], end: tuple[float, float], width: float, colour: str) -> Any:
    """A band that starts and ends straight down; the points are its left corners."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    (x0, y0), (x1, y1) = top, end
    middle = (y0 + y1) / 2
    corners = [
        (x0, y0), (x0, middle), (x1, middle), (x1, y1), (x1 + width, y1),
        (x1 + width, middle), (x0 + width, middle), (x0 + width, y0), (x0, y0),
    ]  # fmt: skip
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    return PathPatch(Path(corners, codes), facecolor=colour, alpha=0.6, linewidth=0, zorder=1)


def _flow(tree: Any, X: Any, y: Any) -> FloatArray:
    """Rows at every node by class, (n_classes, n_nodes); without y one group."""
    reach = tree.node_visits(X).T
    if y is None or tree.tree_.numbers is not None:
        return reach.sum(axis=1)[None, :]
    labels = np.asarray(y)
    if labels.shape != (reach.shape[1],):
        raise ValueError(f"y must hold {reach.shape[1]} labels, one per row of X.")
    return class_counts(reach, labels, tree.classes_)


# --- what is written in boxes ------------------------------------------------------------------


def _sized(node: OutlineNode, lines: list[str]) -> NodeBox:
    """A box that is as large as its lines need."""
    first = text_width(lines[0]) * (BOLD if node.split is None else 1.0)
    return STYLE.box(node, lines, max([first, *map(text_width, lines)]))


def _end_lines(model: TreeModel, end: OutlineNode) -> list[str]:
    """The class of a leaf, or its classes with their shares, a line each."""
    if model.walk is not None:
        return [plain(model.labels[end.classes[0][0]], LONGEST_NAME)]
    lines = [plain(model.labels[k], LONGEST_NAME) + share for k, share in end.classes]
    more = len(lines) - LEAF_CLASSES
    return lines if more <= 0 else [*lines[:LEAF_CLASSES], f"and {more} more"]


def _condition_lines(place: int, split: Split, max_terms: int | None, precision: int) -> list[str]:
    """Number of the split, a term to a line, the threshold, and how sharp it is."""
    if not split.features:
        return [f"question {place}", split.always(precision)]
    if split.digits is None:  # of a walk: numbers are written as they are
        terms = [_signed(term) for term in split.terms(most_terms=max_terms)]
        return [f"question {place}", *terms, *([minus(split.bound())] if split.bound() else [])]
    terms = [_signed(term) for term in split.terms(precision, max_terms)]
    if split.lefts is not None:
        return [f"question {place}", *terms, split.certainty()]
    if split.sure is not None:
        low, high = (minus(number(value, precision)) for value in split.sure)
        sure = f"sure outside {low} to {high}"
    else:
        sure = f"sure when more than {number(split.width, 2)} away"
    return [f"question {place}", *terms, minus(split.bound(precision + 1)), sure]


def _signed(term: str) -> str:
    """A term whose sign is a minus; a hyphen inside a name stays."""
    return minus(term[:1]) + term[1:] if term.startswith("- ") else term


def _footnotes(model: TreeModel, ranked: list[int], precision: int) -> list[str]:
    """What ranks mean, for splits that are written with them."""
    lines = []
    for j in ranked[:FOOTNOTES]:
        places = ", ".join(
            f"{rank:g} at {minus(value)}" for rank, value in rank_places(model, j, precision)
        )
        lines.append(f"rank({plain(model.feature_names[j], LONGEST_NAME)}): {places}")
    left_out = len(ranked) - len(lines)
    return [*lines, f"and {left_out} more ranks"] if left_out else lines


@cache
def text_width(text: str) -> float:
    """Width of a line in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=TYPE_SIZE)
    bare = text.replace(r"\$", "$")
    return LOOSE * float(text_to_path.get_text_width_height_descent(bare, font, False)[0]) / 72
