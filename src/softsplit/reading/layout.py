"""Where the boxes and bands of a drawn tree go, whatever draws them.

Every node is as wide as its own box or as its children side by side, whichever is more, and stands
above the middle between its children. Boxes hang from the top of their level, which is as high as
its highest box. x counts from the left and y from the top, in the units in which boxes are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from softsplit.reading.outline import OutlineNode
from softsplit.support.arrays import FloatArray


@dataclass
class NodeBox:
    """The box of one node: what is written in it, its size, and its upper left corner (x, y)."""

    node: OutlineNode
    lines: list[str]
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    children: list[NodeBox] = field(default_factory=list)

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def foot(self) -> float:
        return self.y + self.height

    @property
    def is_end(self) -> bool:
        return self.node.split is None

    def walk(self) -> Iterator[NodeBox]:
        """This box and all below it, the left side first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class TreeSizes:
    """Sizes of a drawn tree, all in one unit.

    Attributes
    ----------
    line : float
        Height of a line of text.
    pad_x, pad_y : float
        Space beside the text of a box, and above and below it.
    side_gap, level_gap : float
        Space between two boxes of a level, and between two levels.
    margin : float
        Space around the tree.
    widest : float
        Width of the band of all rows.
    thinnest : float
        Share of all rows below which a band is not drawn.
    """

    line: float
    pad_x: float
    pad_y: float
    side_gap: float
    level_gap: float
    margin: float
    widest: float
    thinnest: float

    def box(self, node: OutlineNode, lines: list[str], width: float) -> NodeBox:
        """A box for lines of this width."""
        high = len(lines) * self.line + 2 * self.pad_y
        return NodeBox(node, lines, width + 2 * self.pad_x, high)


def lay_out(
    root: OutlineNode,
    box_of: Callable[[OutlineNode], NodeBox],
    side_gap: float,
    level_gap: float,
    margin: float = 0.0,
) -> tuple[NodeBox, float, float]:
    """The placed boxes of an outline, and width and height of the sheet with its margins.

    Parameters
    ----------
    root : OutlineNode
    box_of : callable
        Makes the box of one node, without its place.
    side_gap, level_gap, margin : float
        Distances between boxes side by side, between levels, and from the edge of the sheet.
    """
    placed = _boxes(root, box_of)
    right = _spread(placed, margin, side_gap)
    y = margin
    for level in _levels(placed):
        for box in level:
            box.y = y
        y += max(box.height for box in level) + level_gap
    return placed, right + margin, y - level_gap + margin


def _boxes(node: OutlineNode, box_of: Callable[[OutlineNode], NodeBox]) -> NodeBox:
    box = box_of(node)
    box.children = [_boxes(child, box_of) for child in node.children]
    return box


def _spread(box: NodeBox, left: float, gap: float) -> float:
    """Place a subtree with its left edge at ``left``; returns its right edge."""
    if not box.children:
        box.x = left
        return left + box.width
    right = left
    for i, child in enumerate(box.children):
        right = _spread(child, right + (gap if i else 0.0), gap)
    middles = [child.x + child.width / 2 for child in box.children]
    box.x = sum(middles) / 2 - box.width / 2
    overhang = left - box.x
    if overhang > 0:
        for other in box.walk():
            other.x += overhang
        right += overhang
    return max(right, box.x + box.width)


def _levels(root: NodeBox) -> list[list[NodeBox]]:
    """The boxes by their depth."""
    levels: list[list[NodeBox]] = []
    level = [root]
    while level:
        levels.append(level)
        level = [child for box in level for child in box.children]
    return levels


@dataclass(frozen=True)
class Band:
    """The rows of one group on their way from a box to its child.

    ``start`` and ``end`` are the left edges of the band at the foot of the box and at the top of
    the child.
    """

    group: int
    start: float
    end: float
    width: float


def bands(box: NodeBox, child: NodeBox, counts: FloatArray, sizes: TreeSizes) -> list[Band]:
    """Bands as wide as the expected rows of each group, side by side.

    Parameters
    ----------
    box, child : NodeBox
    counts : array of shape (n_groups, n_nodes)
        Expected rows of each group at every node of the complete tree.
    sizes : TreeSizes
    """
    total = counts[:, 0].sum()
    unit = sizes.widest / total if total > 0 else 0.0
    left, end_node = 2 * box.node.node + 1, child.node.node
    # Bands leave a box side by side: first all that go left, then all that go right.
    start = box.middle - unit * counts[:, box.node.node].sum() / 2
    if end_node != left:
        start += unit * counts[:, left].sum()
    end = child.middle - unit * counts[:, end_node].sum() / 2
    drawn = []
    for group, rows in enumerate(counts[:, end_node]):
        width = unit * float(rows)
        if rows >= sizes.thinnest * total:
            drawn.append(Band(group, start, end, width))
        start, end = start + width, end + width
    return drawn
