"""A fitted tree: split equations, where rows go, and classes by colour."""

from __future__ import annotations

from typing import Any

import numpy as np

from softsplit.plots.canvas import INK, PALE, class_colours, ink_on, matplotlib_pyplot
from softsplit.reading.answers import answers
from softsplit.reading.holder import holder_of
from softsplit.reading.model import TreeModel
from softsplit.report.tree_layout import LINE, PAD, TYPE, Box, Layout, lay_out
from softsplit.support.arrays import FloatArray
from softsplit.tree.routing import node_reach

WIDEST = 0.9
"""Inches of the band of all rows."""
THIN = 0.004
"""Share of all rows below which a band is not drawn."""
MARGIN = 0.12


class TreeDisplay:
    """Picture of a tree; make one with ``from_estimator``.

    Where the inequality in a box holds, a row goes left ("yes"). With rows, bands show where they
    go, as wide as the expected number of rows and coloured by their class.

    Parameters
    ----------
    model : TreeModel
    flow : array of shape (n_groups, n_nodes), optional
        Expected rows of each class (or of all, as one group) at every node.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    """

    def __init__(self, model: TreeModel, flow: FloatArray | None = None) -> None:
        self.model = model
        self.flow = flow

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
        estimator : fitted SoftTreeClassifier, or a search that holds one
        X, y : rows and their classes, optional
            To show where they go; without y, all rows have one colour.
        feature_names, class_names : sequences of str, optional
            Names to use instead of those of the columns, and of ``classes_`` in their order.
        max_terms : int, optional
            Most terms written in a box.
        precision : int, default=3
        ax : matplotlib axes, optional
            Type is made smaller to fit; by default a figure of the right size is made.
        """
        tree = holder_of(estimator)
        model = tree.tree_.with_names(feature_names, class_names)
        flow = None if X is None else _flow(tree, X, y)
        return cls(model, flow).plot(ax, max_terms=max_terms, precision=precision)

    def plot(
        self, ax: Any = None, *, max_terms: int | None = None, precision: int = 3
    ) -> TreeDisplay:
        """Draw on ``ax`` or on a new figure."""
        pyplot = matplotlib_pyplot()
        layout = lay_out(self.model, self._notes(), max_terms, precision)
        if ax is None:
            size = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
            figure = pyplot.figure(figsize=size)
            ax = figure.add_axes((0, 0, 1, 1))
        self.ax_, self.figure_ = ax, ax.figure
        scale = _prepared(ax, layout)
        colours = class_colours(len(self.model.classes))
        for box in layout.root.walk():
            for child, word in zip(box.children, answers(self.model.labels), strict=False):
                self._edge(box, child, word, colours, scale)
        for box in layout.root.walk():
            self._box(box, colours, scale)
        for i, line in enumerate(reversed(layout.footnotes)):
            place = {"ha": "left", "va": "center_baseline", "fontsize": TYPE * scale}
            ax.text(0.0, (i + 0.5) * LINE, line, color=PALE, **place)
        return self

    def _notes(self) -> dict[int, str]:
        """Rows that end in each leaf, and how many of them are of its class."""
        if self.flow is None:
            return {}
        notes = {}
        for node in range(self.flow.shape[1]):
            total = self.flow[:, node].sum()
            own = self._class(node)
            if len(self.flow) > 1:
                notes[node] = f"{self.flow[own, node]:.0f} of {total:.0f} rows"
            else:
                notes[node] = f"{total:.0f} rows"
        return notes

    def _class(self, node: int) -> int:
        leaves = list(self.model.topology.leaves_below(node))
        return int(np.argmax(self.model.leaf_votes[:, leaves].sum(axis=1)))

    def _box(self, box: Box, colours: list[Any], scale: float) -> None:
        from matplotlib.patches import FancyBboxPatch

        fill = colours[self._class(box.node)] if box.is_leaf else "white"
        ink = ink_on(fill) if box.is_leaf else INK
        rounded = "round,pad=0,rounding_size=0.06"
        shape = FancyBboxPatch((box.x, box.y), box.width, box.height, rounded)
        shape.set(facecolor=fill, edgecolor=INK, linewidth=0.8 * scale, zorder=3)
        self.ax_.add_patch(shape)
        for i, line in enumerate(box.lines):
            small = not box.is_leaf and i in (0, len(box.lines) - 1)
            self.ax_.text(
                box.middle, box.top - PAD - (i + 0.5) * LINE, line, ha="center",
                va="center_baseline", color=PALE if small else ink, zorder=4,
                fontsize=TYPE * scale, weight="bold" if box.is_leaf and i == 0 else "normal",
            )  # fmt: skip

    def _edge(self, box: Box, child: Box, word: str, colours: list[Any], scale: float) -> None:
        if self.flow is None:
            ends = [box.middle, child.middle], [box.y, child.top]
            self.ax_.plot(*ends, color=PALE, lw=1.2 * scale, zorder=1)
        else:
            self._bands(box, child, colours)
        side = -1 if child is box.children[0] else 1
        x = 0.5 * (box.middle + child.middle) + 0.06 * side
        y = 0.5 * (box.y + child.top)
        pale = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8}
        self.ax_.text(
            x, y, word, ha="center", va="center", style="italic", color=INK,
            fontsize=TYPE * scale, zorder=2, bbox=pale,
        )  # fmt: skip

    def _bands(self, box: Box, child: Box, colours: list[Any]) -> None:
        """A band per class from the bottom of a box to the top of its child."""
        assert self.flow is not None
        total = self.flow[:, 0].sum()
        unit = WIDEST / total if total > 0 else 0.0
        left = 2 * box.node + 1
        # Bands leave a box side by side: first all that go left, then all that go right.
        departs = box.middle - unit * self.flow[:, box.node].sum() / 2
        if child.node != left:
            departs += unit * self.flow[:, left].sum()
        arrives = child.middle - unit * self.flow[:, child.node].sum() / 2
        shades = colours if len(self.flow) > 1 else [PALE]
        for rows, colour in zip(self.flow[:, child.node], shades, strict=True):
            width = unit * float(rows)
            if rows >= THIN * total:
                ends = (departs, box.y), (arrives, child.top)
                self.ax_.add_patch(_band(*ends, width, colour))
            departs, arrives = departs + width, arrives + width


def _prepared(ax: Any, layout: Layout) -> float:
    """Set the limits of the axes to the sheet; how much smaller than planned it is drawn."""
    ax.set_xlim(-MARGIN, layout.width + MARGIN)
    ax.set_ylim(-MARGIN, layout.height + MARGIN)
    ax.set_aspect("equal")
    ax.axis("off")
    inches = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return float(
        min(
            inches.width / (layout.width + 2 * MARGIN),
            inches.height / (layout.height + 2 * MARGIN),
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
    """Expected rows at every node by class, (n_classes, n_nodes); without y one group."""
    gates = tree.decision_path(X).T
    reach = node_reach(gates, 1.0 - gates)
    if y is None:
        return reach.sum(axis=1)[None, :]
    labels = np.asarray(y)
    if labels.shape != (gates.shape[1],):
        raise ValueError(f"y must hold {gates.shape[1]} labels, one per row of X.")
    return np.array([reach[:, labels == label].sum(axis=1) for label in tree.classes_])
