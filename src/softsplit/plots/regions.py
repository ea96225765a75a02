"""What a tree says over the plane of two features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.estimators.row_reading import read_rows
from softsplit.fitted.model import TreeModel, holder_of
from softsplit.fitted.summary import NUMBER
from softsplit.plots.canvas import INK, axes, class_colours, plain
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import unfit
from softsplit.variables import CodedRows
from softsplit.variables.variable import CATEGORY

MARKERS = "osD^vP*X"
FURTHEST = 1e307
"""Values beyond this are drawn here: axes any longer are more than a float holds."""


@dataclass(repr=False, eq=False)
class DecisionRegionsDisplay:
    """Predicted classes over two features, paler where the tree is less sure.

    All other features stay at their median over X. A black line is where the class changes.

    Parameters
    ----------
    grid : tuple of two arrays
        Values of the two features.
    probabilities : array of shape (n_second, n_first, n_classes)
    labels : list
    names : tuple of two str
    points : array of shape (n_rows, 2), optional
    classes_of_points : array of int of shape (n_rows,), optional
    called : array of int of shape (n_second, n_first), optional
        Positions of the predicted classes; the most probable ones if not given.

    Attributes
    ----------
    ax_, figure_
    """

    grid: tuple[FloatArray, FloatArray]
    probabilities: FloatArray
    labels: list[Any]
    names: tuple[str, str]
    points: FloatArray | None = None
    classes_of_points: Any = None
    called: NDArray[np.intp] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: tuple[int | str, int | str] | None = None,
        resolution: int = 300,
        ax: Any = None,
    ) -> DecisionRegionsDisplay:
        """Draw the regions of a fitted tree.

        Parameters
        ----------
        estimator : fitted SoftTreeClassifier, or a search that holds one
        X : rows
            They give the range, and the medians of all other features.
        y : their classes, optional
            To draw the rows as points.
        features : pair of names or numbers of columns, optional
            The two most important ones if not given.
        resolution : int, default=300
            Points per axis.
        ax : matplotlib axes, optional
        """
        tree = holder_of(estimator)
        model = tree.tree_
        read = read_rows(tree, X, whole=True)
        numbers = _numbers(read) if isinstance(read, CodedRows) else read
        rows = np.clip(numbers.astype(np.float64, copy=False), -FURTHEST, FURTHEST)
        if not isinstance(resolution, int) or resolution < 2:
            raise unfit("resolution", resolution, "must be an integer >= 2")
        first, second = _pair(tree, features)
        grid = _range(model, rows, first, resolution), _range(model, rows, second, resolution)
        plane = np.repeat(np.median(rows, axis=0)[None, :], len(grid[0]) * len(grid[1]), axis=0)
        plane[:, first], plane[:, second] = (part.ravel() for part in np.meshgrid(*grid))
        names = _names(model)
        if model.table_coding.pointed:
            plane = _points(model, plane)
        elif model.coding is not None:
            model.coding.fill_hinges(plane)
        shape = len(grid[1]), len(grid[0]), len(model.classes)
        points = rows[:, [first, second]]
        known = None
        if y is not None:
            labels = np.asarray(y)
            if labels.shape != (len(rows),):
                raise ValueError(f"y must hold {len(rows)} labels, one per row of X.")
            order = {label: k for k, label in enumerate(model.labels)}
            known = np.array([order.get(label, -1) for label in labels.tolist()])
        display = cls(
            grid,
            model.predict_proba(plane).reshape(shape),
            model.labels,
            (names[first], names[second]),
            points,
            known,
            model.predict_index(plane).reshape(shape[:2]),
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> DecisionRegionsDisplay:
        """Draw on ``ax`` or on a new figure."""
        from matplotlib.colors import to_rgb

        ax = axes(ax, (6.4, 4.8))
        self.ax_, self.figure_ = ax, ax.figure
        colours = np.array([to_rgb(c) for c in class_colours(len(self.labels))])
        best = self.probabilities.argmax(axis=2) if self.called is None else self.called
        chance = 1 / len(self.labels)
        own = np.take_along_axis(self.probabilities, best[:, :, None], axis=2)[:, :, 0]
        sure = np.maximum(own - chance, 0.0) / (1 - chance)
        strength = (0.12 + 0.43 * sure)[:, :, None]
        image = 1 - strength * (1 - colours[best])
        first, second = self.grid
        extent = (first[0], first[-1], second[0], second[-1])
        ax.imshow(image, extent=extent, origin="lower", aspect="auto", interpolation="nearest")
        for k in np.unique(best)[:-1] if len(np.unique(best)) > 1 else []:
            ax.contour(first, second, best == k, levels=[0.5], colors=INK, linewidths=0.8)
        handles = self._points(colours)
        ax.set(xlabel=plain(self.names[0], 40), ylabel=plain(self.names[1], 40))
        names = [plain(label, 24) for label in self.labels]
        ax.legend(
            handles, names, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0),
            frameon=False,
        )  # fmt: skip
        return self

    def _points(self, colours: FloatArray) -> list[Any]:
        handles = []
        for k in range(len(self.labels)):
            chosen = np.zeros((0, 2))
            if self.points is not None and self.classes_of_points is not None:
                chosen = self.points[self.classes_of_points == k]
            look = {"color": [colours[k]], "marker": MARKERS[k % len(MARKERS)], "s": 18}
            handles.append(
                self.ax_.scatter(
                    chosen[:, 0], chosen[:, 1], edgecolor="white", linewidth=0.5, **look
                )
            )
        return handles


def _numbers(read: CodedRows) -> FloatArray:
    """Coded rows, for a tree in points the numbers, or places of levels, of all variables."""
    if not read.coding.pointed:
        return read.X
    pairs = zip(read.coding.variables, read.cells, strict=True)
    return np.column_stack([variable.imputed(cells) for variable, cells in pairs])


def _points(model: TreeModel, values: FloatArray) -> FloatArray:
    """The coded columns of a tree in points for values of all variables."""
    coding, none = model.table_coding, np.zeros(len(values), dtype=bool)
    coded: FloatArray = np.zeros((len(values), len(coding.homes)))
    for i, variable in enumerate(coding.variables):
        for lookup, j in zip(variable.lookups, coding.columns_of(i), strict=False):
            known = values[:, i]
            if variable.kind == CATEGORY:
                known = np.clip(np.rint(known), 0.0, len(lookup.points) - 1.0)
            coded[:, j] = lookup.values(known, none)
    return coded


def _names(model: TreeModel) -> tuple[str, ...]:
    """What axes may show: the columns of the coding, of a tree in points its variables."""
    coding = model.table_coding
    pointed = tuple(variable.name for variable in coding.variables)
    return pointed if coding.pointed else model.feature_names


def _pair(tree: Any, features: Any) -> tuple[int, int]:
    """Numbers of the two columns; hinges belong to that of their number."""
    model = tree.tree_
    coding = model.table_coding
    hinges = np.zeros(len(coding.variables), dtype=bool) if coding.pointed else coding.hinges
    columns = np.flatnonzero(~hinges)
    if len(columns) < 2:
        raise ValueError("decision regions need at least two features.")
    if features is None:
        shares: FloatArray = np.zeros(len(columns))
        if model.importances is not None:
            homes = coding.homes if coding.pointed else np.cumsum(~hinges) - 1
            shares = np.bincount(homes, model.importances).astype(float)
        order = columns[np.argsort(-shares, kind="stable")]
        return int(order[0]), int(order[1])
    names = [_names(model)[j] for j in columns]
    pair = []
    for feature in features:
        column = names.index(feature) if feature in names else feature
        if not isinstance(column, int | np.integer) or not 0 <= column < len(names):
            raise unfit("features", feature, "must name two columns of X")
        pair.append(int(columns[column]))
    if len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError("features must name two different columns of X.")
    return pair[0], pair[1]


def _range(model: Any, rows: FloatArray, j: int, resolution: int) -> FloatArray:
    """Values of a feature over its range in X, with a margin where it is a plain number."""
    low, high = float(rows[:, j].min()), float(rows[:, j].max())
    if low == high:
        half = max(0.5, 0.04 * abs(low))
        low, high = low - half, high + half
    j = model.table_coding.firsts[j] if model.table_coding.pointed else j
    share = 0.04 if model.summary.kinds[j] == NUMBER else 0.08
    return np.linspace(low - share * (high - low), high + share * (high - low), resolution)
