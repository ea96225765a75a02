"""Draw the tree of the README: `make picture` writes docs/images/tree.svg.

The bands show where the training rows go, one colour per class and as wide as the expected number
of rows. A split sends a row left with probability 1 / (1 + exp(-score)), so nearly all of the rows
for which the inequality in the box holds go left.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Curve
from sklearn.datasets import load_wine

from softsplit import SoftTreeClassifier

COLOURS = ("#3b6ea8", "#d08a2e", "#5b9a68", "#a8577e")
INK = "#25292e"
LEVEL = 2.1
"""Height between two levels of the tree."""
WIDEST = 1.5
"""Width of the band of all rows."""
VISIBLE = 0.05
"""Expected rows below which a band or a node is left out."""
MINUS = "\N{MINUS SIGN}"


class Box(NamedTuple):
    """Vertical extent of a drawn node."""

    bottom: float
    top: float


def fitted_tree() -> tuple[SoftTreeClassifier, pd.DataFrame, np.ndarray]:
    data = load_wine(as_frame=True)
    X = data.data.rename(columns={"od280/od315_of_diluted_wines": "od280_od315"})
    y = np.array(["cultivar A", "cultivar B", "cultivar C"])[data.target]
    tree = SoftTreeClassifier(
        penalty="l0", global_strength=1.0, local_strength=0.25, random_state=0
    )
    return tree.fit(X, y), X, y


def class_flow(tree: SoftTreeClassifier, X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """Expected rows of each class at every node, (n_classes, n_nodes), in heap order."""
    leaves = tree.leaf_proba(X)
    n_leaves = leaves.shape[1]
    flow = np.zeros((len(tree.classes_), 2 * n_leaves - 1))
    for k, name in enumerate(tree.classes_):
        flow[k, n_leaves - 1 :] = leaves[y == name].sum(axis=0)
    for t in range(n_leaves - 2, -1, -1):
        flow[:, t] = flow[:, 2 * t + 1] + flow[:, 2 * t + 2]
    return flow


def positions(n_nodes: int) -> np.ndarray:
    """Centre of every node, (n_nodes, 2); leaves are evenly spread."""
    n_leaves = (n_nodes + 1) // 2
    depth = n_leaves.bit_length() - 1
    centre = np.zeros((n_nodes, 2))
    centre[n_leaves - 1 :, 0] = 2.6 * np.arange(n_leaves)
    for t in range(n_leaves - 2, -1, -1):
        centre[t, 0] = centre[[2 * t + 1, 2 * t + 2], 0].mean()
    for t in range(n_nodes):
        centre[t, 1] = LEVEL * (depth - ((t + 1).bit_length() - 1))
    return centre


def equation(tree: SoftTreeClassifier, t: int) -> str:
    """The split of branch t in original units, one term to a line; where it holds, go left.

    Divided by the coefficient that matters most, so that the first term is a bare feature.
    """
    weights = tree.weights_[:, t]
    if not np.any(weights):
        return "always" if tree.thresholds_[t] < 0 else "never"
    used = np.argsort(-np.abs(weights), kind="stable")[: np.count_nonzero(weights)]
    unit = tree.coef_[t, used[0]]
    lines = [name_of(tree, used[0])]
    for j in used[1:]:
        value = tree.coef_[t, j] / unit
        sign = MINUS if value < 0 else "+"
        lines.append(f"{sign} {abs(value):.3g} {name_of(tree, j)}")
    bound = f"{-tree.intercept_[t] / unit:.4g}".replace("-", MINUS)
    return "\n".join([*lines, f"{'>' if unit > 0 else '<'} {bound}"])


def name_of(tree: SoftTreeClassifier, j: int) -> str:
    return str(tree.feature_names_in_[j]).replace("_", " ")


def class_below(tree: SoftTreeClassifier, flow: np.ndarray, node: int) -> int | None:
    """The class of all leaves under a node that rows reach, if they agree."""
    n_branches = len(tree.thresholds_)
    first = last = node
    while first < n_branches:
        first, last = 2 * first + 1, 2 * last + 2
    reached = [m for m in range(first, last + 1) if flow[:, m].sum() >= VISIBLE]
    classes = {int(np.argmax(tree.leaf_classes_[:, m - n_branches])) for m in reached}
    return classes.pop() if len(classes) == 1 else None


def band(
    ax: Axes, top: tuple[float, float], end: tuple[float, float], width: float, colour: str
) -> None:
    """A vertical band that starts and ends straight down; the points are its left corners."""
    (x0, y0), (x1, y1) = top, end
    middle = (y0 + y1) / 2
    corners = [
        (x0, y0), (x0, middle), (x1, middle), (x1, y1), (x1 + width, y1),
        (x1 + width, middle), (x0 + width, middle), (x0 + width, y0), (x0, y0),
    ]  # fmt: skip
    codes = [Curve.MOVETO, *[Curve.CURVE4] * 3, Curve.LINETO, *[Curve.CURVE4] * 3, Curve.CLOSEPOLY]
    ax.add_patch(PathPatch(Curve(corners, codes), facecolor=colour, alpha=0.55, linewidth=0))


def draw_flow(
    ax: Axes, flow: np.ndarray, centre: np.ndarray, boxes: dict[int, Box], t: int
) -> None:
    """Bands from the bottom of branch t to the top of its children, with "yes" and "no"."""
    scale = WIDEST / flow[:, 0].sum()
    departs = centre[t, 0] - scale * flow[:, t].sum() / 2
    for child, word, side in ((2 * t + 1, "yes", -1), (2 * t + 2, "no", 1)):
        if child not in boxes:
            continue
        arrives = centre[child, 0] - scale * flow[:, child].sum() / 2
        for k, rows in enumerate(flow[:, child]):
            if rows >= VISIBLE:
                top, end = (departs, boxes[t].bottom), (arrives, boxes[child].top)
                band(ax, top, end, scale * rows, COLOURS[k])
            departs += scale * rows
            arrives += scale * rows
        x = (centre[t, 0] + centre[child, 0]) / 2 + 0.45 * side
        y = (boxes[t].bottom + boxes[child].top) / 2 + 0.12
        ax.text(x, y, word, ha="center", color=INK, fontsize=10, style="italic", zorder=4)


def draw_box(ax: Axes, x: float, y: float, text: str, fill: str, ink: str) -> Box:
    """Text in a rounded box around (x, y); where the box begins and ends."""
    pad = 0.15
    words = {"color": ink, "fontweight": "bold" if ink == "white" else "normal"}
    place = {"ha": "center", "va": "center", "fontsize": 10.5, "linespacing": 1.4, "zorder": 4}
    label = ax.text(x, y, text, **words, **place)
    extent = label.get_window_extent(ax.figure.canvas.get_renderer())
    (x0, y0), (x1, y1) = ax.transData.inverted().transform(extent)
    shape = FancyBboxPatch((x0, y0), x1 - x0, y1 - y0, f"round,pad={pad},rounding_size=0.12")
    shape.set(facecolor=fill, edgecolor=INK, linewidth=0.9, zorder=3)
    ax.add_patch(shape)
    return Box(y0 - pad, y1 + pad)


def draw_nodes(
    ax: Axes, tree: SoftTreeClassifier, flow: np.ndarray, centre: np.ndarray
) -> dict[int, Box]:
    """Boxes of all nodes that rows reach; a branch above leaves of one class is drawn as a leaf."""
    boxes: dict[int, Box] = {}
    waiting = [0]
    while waiting:
        node = waiting.pop()
        k = class_below(tree, flow, node)
        if k is None:
            boxes[node] = draw_box(ax, *centre[node], equation(tree, node), "white", INK)
            children = (2 * node + 1, 2 * node + 2)
            waiting.extend(c for c in children if flow[:, c].sum() >= VISIBLE)
        else:
            text = f"{tree.classes_[k]}\n{flow[k, node]:.0f} of {flow[:, node].sum():.0f} rows"
            boxes[node] = draw_box(ax, centre[node, 0], 0.0, text, COLOURS[k], "white")
    return boxes


def draw(tree: SoftTreeClassifier, X: pd.DataFrame, y: np.ndarray) -> Figure:
    flow = class_flow(tree, X, y)
    centre = positions(flow.shape[1])
    figure = Figure(figsize=(9.2, 5.4))
    FigureCanvasAgg(figure)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_xlim(centre[:, 0].min() - 1.35, centre[:, 0].max() + 1.35)
    ax.set_ylim(-0.6, centre[0, 1] + 0.9)
    ax.axis("off")
    boxes = draw_nodes(ax, tree, flow, centre)
    for t in range(len(tree.thresholds_)):
        if t in boxes and class_below(tree, flow, t) is None:
            draw_flow(ax, flow, centre, boxes, t)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).with_name("tree.svg")
    parser.add_argument("output", nargs="?", type=Path, default=default)
    output = parser.parse_args().output
    # Outlines look the same without the font; the fixed salt makes the same tree the same file.
    matplotlib.rcParams.update(
        {"svg.fonttype": "path", "svg.hashsalt": "softsplit", "font.family": "DejaVu Sans"}
    )
    metadata = {"Date": None} if output.suffix == ".svg" else None
    draw(*fitted_tree()).savefig(output, dpi=160, metadata=metadata)


if __name__ == "__main__":
    main()
