"""Where the boxes of a drawn tree go, in inches at the usual size of type.

Boxes stand side by side as in reading/boxes.py. A level is as high as its highest box.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from softsplit.plots.canvas import minus, plain
from softsplit.reading.boxes import levels, spread
from softsplit.reading.equations import (
    common_label,
    number,
    rank_places,
    read_split,
    told_classes,
)
from softsplit.reading.model import TreeModel

TYPE = 8.0
"""Points."""
LINE = TYPE * 1.35 / 72
PAD = 0.07
SIDE_GAP, LEVEL_GAP = 0.16, 0.62
LONGEST_NAME = 26
LOOSE, BOLD = 1.06, 1.12
"""Type on a screen is wider than its outlines, and bold type wider still."""
CLASSES_OF_LEAF = 3
MOST_FOOTNOTES = 16


@dataclass
class Box:
    """One node: what is written in it and where it is; the lower left corner is (x, y)."""

    node: int
    lines: list[str]
    is_leaf: bool
    width: float = 0.0
    height: float = 0.0
    x: float = 0.0
    y: float = 0.0
    children: list[Box] = field(default_factory=list)

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def top(self) -> float:
        return self.y + self.height

    def walk(self) -> list[Box]:
        """This box and all below it."""
        return [self, *(box for child in self.children for box in child.walk())]


@dataclass(frozen=True)
class Layout:
    """A laid out tree, the size of the sheet, and lines that go below the tree."""

    root: Box
    width: float
    height: float
    footnotes: list[str]


def lay_out(
    model: TreeModel, leaf_notes: dict[int, str], max_terms: int | None, precision: int
) -> Layout:
    """Boxes of all nodes; branches above leaves of one class are drawn as one leaf.

    ``leaf_notes`` are second lines of leaves, by the number of the node.
    """
    numbers = iter(range(1, len(model.parameters.thresholds) + 1))
    root = _box(model, 0, leaf_notes, max_terms, precision, numbers)
    rows = levels(root)
    footnotes = _footnotes(model, root, precision)
    y = LINE * (len(footnotes) + 1) if footnotes else 0.0
    for level in reversed(rows):
        height = max(box.height for box in level)
        for box in level:
            # Boxes hang from the top of their level, so that bands to them are alike.
            box.y = y + height - box.height
        y += height + LEVEL_GAP
    width = max([spread(root, 0.0, SIDE_GAP), *map(text_width, footnotes)])
    return Layout(root, width, y - LEVEL_GAP, footnotes)


def _footnotes(model: TreeModel, root: Box, precision: int) -> list[str]:
    """What ranks mean, for splits that are written with them."""
    splits = [read_split(model, box.node) for box in root.walk() if not box.is_leaf]
    ranked = sorted({j for split in splits for j in split.ranked_features})
    lines = []
    for j in ranked[:MOST_FOOTNOTES]:
        places = ", ".join(
            f"{rank:g} at {minus(value)}" for rank, value in rank_places(model, j, precision)
        )
        lines.append(f"rank({plain(model.feature_names[j], LONGEST_NAME)}): {places}")
    left_out = len(ranked) - len(lines)
    return [*lines, f"and {left_out} more ranks"] if left_out else lines


def _leaf_lines(model: TreeModel, node: int) -> list[str]:
    """The class of a leaf, or its classes with their shares, a line each."""
    told = told_classes(model, model.topology.leaves_below(node)[0])
    lines = [plain(model.labels[k], LONGEST_NAME) + share for k, share in told]
    more = len(lines) - CLASSES_OF_LEAF
    return lines if more <= 0 else [*lines[:CLASSES_OF_LEAF], f"and {more} more"]


def _box(
    model: TreeModel,
    node: int,
    notes: dict[int, str],
    max_terms: int | None,
    precision: int,
    numbers: Any,
) -> Box:
    label = common_label(model, node)
    if label is not None:
        lines = [*_leaf_lines(model, node), *([notes[node]] if node in notes else [])]
        return _measured(Box(node, lines, True))
    box = Box(node, _equation(model, node, max_terms, precision, next(numbers)), False)
    box.children = [
        _box(model, 2 * node + side, notes, max_terms, precision, numbers) for side in (1, 2)
    ]
    return _measured(box)


def _equation(
    model: TreeModel, node: int, max_terms: int | None, precision: int, place: int
) -> list[str]:
    """Number of the split, a term to a line, the threshold, and how sharp it is."""
    split = read_split(model, node, lambda name: plain(name, LONGEST_NAME))
    if not split.features:
        return [f"split {place}", f"left with probability {split.left_share:.{precision}g}"]
    terms = [_signed(term) for term in split.terms(precision, max_terms)]
    if split.lefts is not None:
        return [f"split {place}", *terms, split.certainty()]
    if split.sure is not None:
        low, high = (minus(number(value, precision)) for value in split.sure)
        sure = f"sure outside {low} to {high}"
    else:
        sure = f"sure when more than {number(split.width, 2)} away"
    return [f"split {place}", *terms, minus(split.bound(precision + 1)), sure]


def _signed(term: str) -> str:
    """A term whose sign is a minus; a hyphen inside a name stays."""
    return minus(term[:1]) + term[1:] if term.startswith("- ") else term


def _measured(box: Box) -> Box:
    first = text_width(box.lines[0]) * (BOLD if box.is_leaf else 1.0)
    box.width = max([first, *map(text_width, box.lines)]) + 2 * PAD
    box.height = len(box.lines) * LINE + 2 * PAD
    return box


@cache
def text_width(text: str) -> float:
    """Width of a line in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=TYPE)
    bare = text.replace(r"\$", "$")
    return LOOSE * float(text_to_path.get_text_width_height_descent(bare, font, False)[0]) / 72
