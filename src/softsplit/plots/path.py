"""What a path of strengths costs and buys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from softsplit.estimators.path import StrengthPathResult
from softsplit.plots.canvas import INK, SEQUENTIAL, axes, plain, stacked_axes
from softsplit.reading.palette import COLOURS
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import unfit

BLUE, ORANGE, GREEN, VERMILLION = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[5]
MOST_FEATURES = 40
"""Rows of the panel of features; the ones that stay longest are shown."""

ABOVE: dict[str, Any] = {
    "fontsize": "small",
    "loc": "lower left",
    "bbox_to_anchor": (0.0, 0.98),
    "ncols": 2,
    "frameon": False,
}
"""Legends stand above their panel, where no line can run through them."""

GRID_VALUES = {
    "accuracy": "accuracy (%)",
    "cost": "loss",
    "objective": "objective",
    "local_sparsity": "zero coefficients (%)",
    "global_sparsity": "unused features (%)",
    "n_features": "features in use",
}


@dataclass(repr=False, eq=False)
class StrengthPathDisplay:
    """Accuracy and cost, sparsity, and the features in use along a path of strengths.

    Parameters
    ----------
    strengths : array of shape (n_points,)
    columns : dict of str to array
        cost, local_sparsity, global_sparsity, and accuracy if it is known.
    sizes : array of shape (n_columns, n_points)
        Largest absolute weight of each feature.
    feature_names : list of str
    walked : str
        Name of the strength that varies.

    Attributes
    ----------
    ax_ : list of three axes
    figure_
    """

    strengths: FloatArray
    columns: dict[str, FloatArray]
    sizes: FloatArray
    feature_names: list[str]
    walked: str

    @classmethod
    def from_path(
        cls, path: StrengthPathResult, X: Any = None, y: Any = None, *, ax: Any = None
    ) -> StrengthPathDisplay:
        """Draw the result of ``strength_path`` over one strength.

        Parameters
        ----------
        path : StrengthPathResult
        X, y : rows and their classes, optional
            For the accuracy; better not the rows of the training.
        ax : sequence of three matplotlib axes, optional
        """
        frame = path.to_frame()
        walked = [
            name for name in ("local_strength", "global_strength") if frame[name].nunique() > 1
        ]
        if len(walked) == 2 and not _is_line(frame):
            raise ValueError("this path walks both strengths; draw it with StrengthGridDisplay.")
        if len(frame) < 2:
            raise ValueError("a path needs at least two points to be drawn.")
        shown = ("cost", "local_sparsity", "global_sparsity")
        columns = {name: frame[name].to_numpy(dtype=float) for name in shown}
        if X is not None:
            columns["accuracy"] = _accuracies(path, X, y)
        variables = path[0].classifier.tree_.table_coding.variables
        sizes = np.zeros((len(variables), len(path.points)))
        for own, point in zip(sizes.T, path.points, strict=True):
            weights = np.abs(point.classifier.weights_).max(axis=1)
            np.maximum.at(own, point.classifier.tree_.table_coding.homes, weights)
        names = [variable.name for variable in variables]
        strengths = frame[walked[-1]].to_numpy(dtype=float)
        return cls(strengths, columns, sizes, names, walked[-1]).plot(ax)

    def plot(self, ax: Any = None) -> StrengthPathDisplay:
        """Draw on three axes, or on a new figure."""
        order = self._by_stay()
        rows = max(2, len(order))
        size = (7.0, 4.4 + 0.17 * rows)
        self.ax_ = stacked_axes(ax, [1.6, 1.4, 0.17 * rows], size)
        self.figure_ = self.ax_[0].figure
        self._draw_cost(self.ax_[0])
        self._draw_sparsity(self.ax_[1])
        self._draw_features(self.ax_[2], order)
        for panel in self.ax_:
            panel.set_xscale("log" if np.all(self.strengths > 0) else "symlog")
        self.ax_[-1].set_xlabel(self.walked.replace("_", " "))
        return self

    def _by_stay(self) -> list[int]:
        """Features in use anywhere; those that stay up to the strongest penalty come first."""
        used = self.sizes > 0
        last = np.where(used, np.arange(used.shape[1]), -1).max(axis=1)
        order = sorted(np.flatnonzero(last >= 0), key=lambda j: (-last[j], -self.sizes[j].sum()))
        return [int(j) for j in order[:MOST_FEATURES]]

    def _draw_cost(self, panel: Any) -> None:
        lines = panel.plot(self.strengths, self.columns["cost"], "s--", color=ORANGE, ms=4)
        labels = ["loss, training"]
        panel.set_ylabel("loss")
        if "accuracy" in self.columns:
            right = panel.twinx()
            percent = 100 * self.columns["accuracy"]
            lines += right.plot(self.strengths, percent, "o-", color=BLUE, ms=4)
            labels.append("accuracy")
            right.set_ylabel("accuracy (%)")
        panel.legend(lines, labels, **ABOVE)

    def _draw_sparsity(self, panel: Any) -> None:
        # Under a global penalty both are often the same: a ring around a triangle shows it.
        for name, label, style, look in (
            ("local_sparsity", "zero coefficients", "o-", {"color": GREEN, "ms": 8}),
            ("global_sparsity", "unused features", "^:", {"color": VERMILLION, "ms": 4}),
        ):
            look |= {"mfc": "none"} if name == "local_sparsity" else {}
            panel.plot(self.strengths, self.columns[name], style, label=label, **look)
        panel.set(ylabel="sparsity (%)", ylim=(-4, 104))
        panel.legend(**ABOVE)

    def _draw_features(self, panel: Any, order: list[int]) -> None:
        """A line per feature over the strengths at which it is in use, darker where it weighs."""
        from matplotlib import colormaps

        shade = colormaps[SEQUENTIAL].reversed()
        edges, largest = _edges(self.strengths), max(1.0, float(self.sizes.max()))
        for row, j in enumerate(order):
            for i in np.flatnonzero(self.sizes[j] > 0):
                panel.barh(
                    row, edges[i + 1] - edges[i], left=edges[i], height=0.7,
                    color=shade(float(self.sizes[j, i]) / largest),
                )  # fmt: skip
        panel.set_yticks(
            range(len(order)), [plain(self.feature_names[j], 28) for j in order], fontsize="small"
        )
        panel.set_ylim(len(order) - 0.4, -0.6)
        hidden = int(np.count_nonzero(self.sizes.max(axis=1) > 0)) - len(order)
        more = f", {hidden} more not shown" if hidden else ""
        panel.set_title(f"features in use (darker: larger weight{more})", fontsize="small")


@dataclass(repr=False, eq=False)
class StrengthGridDisplay:
    """Heat map over local and global strengths.

    Parameters
    ----------
    local, overall : arrays of strengths
    values : array of shape (n_local, n_global)
        NaN where a path was cut short.
    label : str

    Attributes
    ----------
    ax_, figure_, image_
    """

    local: FloatArray
    overall: FloatArray
    values: FloatArray
    label: str

    @classmethod
    def from_path(
        cls,
        path: StrengthPathResult,
        X: Any = None,
        y: Any = None,
        *,
        value: str | None = None,
        ax: Any = None,
    ) -> StrengthGridDisplay:
        """Draw the result of ``strength_path(..., scope="both")``.

        Parameters
        ----------
        path : StrengthPathResult
        X, y : rows and their classes, optional
            For the accuracy.
        value : {"accuracy", "cost", "objective", "local_sparsity", "global_sparsity", \
"n_features"}, optional
            What is drawn; the accuracy if there are rows, else the cost.
        ax : matplotlib axes, optional
        """
        value = value or ("cost" if X is None else "accuracy")
        if value not in GRID_VALUES:
            raise unfit("value", value, f"must be one of {', '.join(GRID_VALUES)}")
        if value == "accuracy" and X is None:
            raise ValueError("the accuracy needs rows: give X and y.")
        frame = path.to_frame()
        if value == "accuracy":
            frame["accuracy"] = 100 * _accuracies(path, X, y)
        table = frame.pivot_table(index="local_strength", columns="global_strength", values=value)
        if min(table.shape) < 2 or _is_line(frame):
            raise ValueError("a grid needs at least two strengths of each scope.")
        display = cls(
            table.index.to_numpy(dtype=float),
            table.columns.to_numpy(dtype=float),
            table.to_numpy(dtype=float),
            GRID_VALUES[value],
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> StrengthGridDisplay:
        """Draw on ``ax`` or on a new figure."""
        rows, columns = self.values.shape
        ax = axes(ax, (1.8 + 0.52 * columns, 1.4 + 0.36 * rows))
        self.ax_, self.figure_ = ax, ax.figure
        self.image_ = ax.imshow(self.values, cmap=SEQUENTIAL, origin="lower", aspect="auto")
        ax.set_xticks(range(columns), [f"{s:.3g}" for s in self.overall], rotation=60)
        ax.set_yticks(range(rows), [f"{s:.3g}" for s in self.local])
        ax.set(xlabel="global strength", ylabel="local strength")
        ax.figure.colorbar(self.image_, ax=ax).set_label(self.label)
        low, high = np.nanmin(self.values), np.nanmax(self.values)
        for (i, j), value in np.ndenumerate(self.values):
            if np.isfinite(value):
                dark = high > low and (value - low) / (high - low) < 0.55
                text = f"{value:.3g}"
                ink = "white" if dark else INK
                ax.text(j, i, text, ha="center", va="center", fontsize=7, color=ink)
        return self


def _accuracies(path: StrengthPathResult, X: Any, y: Any) -> FloatArray:
    if y is None:
        raise ValueError("the accuracy needs the classes of the rows: give y as well.")
    return np.array([point.classifier.score(X, y) for point in path.points])


def _is_line(frame: pd.DataFrame) -> bool:
    """Whether the local strength follows the global one: no global strength comes twice."""
    return bool(frame["global_strength"].is_unique)


def _edges(strengths: FloatArray) -> FloatArray:
    """Where the cells around the strengths meet, half-way on a logarithmic axis if they may."""
    if np.all(strengths > 0):
        middle = np.sqrt(strengths[1:] * strengths[:-1])
        first, last = strengths[0] ** 2 / middle[0], strengths[-1] ** 2 / middle[-1]
    else:
        middle = (strengths[1:] + strengths[:-1]) / 2
        first, last = strengths[0], 2 * strengths[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])
