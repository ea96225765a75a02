"""Charts of the page: the path, and curves of probabilities (ROC, precision, reliability).

Numbers become places here; ``charts.html`` draws them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve, roc_curve

from softsplit.report.metrics import Interval, share
from softsplit.report.report_data import ReportData
from softsplit.support.arrays import FloatArray


@dataclass(frozen=True)
class ChartLayout:
    """Sizes of the small charts, in units of the drawing."""

    size: float = 260.0
    """Side of a square chart."""

    left: float = 40.0
    """Space for the labels of the vertical axis."""

    right: float = 22.0
    """Space at the right."""

    foot: float = 36.0
    """Space for the labels of the horizontal axis."""

    top: float = 10.0
    """Space above."""

    most_points: int = 120
    """Points of a curve that a reader can tell apart at this size."""

    bins: int = 10
    """Bins of a reliability diagram."""

    fewest: int = 5
    """Rows of a bin at least: fewer say nothing about a rate."""

    path_width: float = 960.0
    """Width of the chart of a path of strengths."""

    path_height: float = 170.0
    """Its height."""

    path_top: float = 14.0
    """Space above it."""

    path_foot: float = 48.0
    """Space below it."""


LAYOUT = ChartLayout()


@dataclass(frozen=True)
class Axis:
    """Values from ``low`` to ``high`` on a line of the drawing from ``start`` to ``end``."""

    start: float
    end: float
    low: float = 0.0
    high: float = 1.0
    percent: bool = True

    def at(self, value: float) -> float:
        """The place of a value."""
        part = (float(value) - self.low) / max(self.high - self.low, 1e-9)
        return self.start + part * (self.end - self.start)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places and texts of the ends and of the middle."""
        values = [self.low + part * (self.high - self.low) for part in (0.0, 0.5, 1.0)]
        texts = [f"{100 * v:.3g} %" if self.percent else f"{v:.3g}" for v in values]
        return [(self.at(value), text) for value, text in zip(values, texts, strict=True)]


class ChartLine(NamedTuple):
    """One line of a chart, and the class of its style."""

    kind: str
    x: FloatArray
    y: FloatArray


class Spot(NamedTuple):
    """A point of a chart with the ends of its interval; ``said`` of it when it is pointed at."""

    x: float
    y: float
    low: float
    high: float
    said: str = ""


@dataclass(frozen=True)
class Chart:
    """A square chart; lines and spots are in the units of its axes."""

    label: str
    across: str
    up: str
    x: Axis
    y: Axis
    lines: Sequence[ChartLine] = ()
    spots: Sequence[Spot] = ()
    dots: ChartLine | None = None

    def points(self, line: ChartLine) -> str:
        """The points of a line in units of the drawing."""
        pairs = zip(line.x, line.y, strict=True)
        return " ".join(f"{self.x.at(x):.1f},{self.y.at(y):.1f}" for x, y in pairs)

    def dotted(self, dots: ChartLine) -> str:
        """The path of points that stand alone: lines without length."""
        pairs = zip(dots.x, dots.y, strict=True)
        return "".join(f"M{self.x.at(x):.1f} {self.y.at(y):.1f}h0" for x, y in pairs)


def square_axes(
    x: tuple[float, float] = (0.0, 1.0), y: tuple[float, float] = (0.0, 1.0)
) -> tuple[Axis, Axis]:
    """The axes of a square chart between these values."""
    foot = LAYOUT.top + LAYOUT.size
    return Axis(LAYOUT.left, LAYOUT.left + LAYOUT.size, *x), Axis(foot, LAYOUT.top, *y)


BY_CHANCE = ChartLine("diagonal", np.array([0.0, 1.0]), np.array([0.0, 1.0]))


def roc_line(kind: str, scores: FloatArray, positive: NDArray[np.bool_]) -> ChartLine:
    """Share found over the share of false alarms."""
    alarms, recall, _ = roc_curve(positive, scores, drop_intermediate=False)
    return ChartLine(kind, *_thinned(alarms, recall))


def precision_line(kind: str, scores: FloatArray, positive: NDArray[np.bool_]) -> ChartLine:
    """Share of alarms that are right over the share found, from where on something is found."""
    precision, recall, _ = precision_recall_curve(positive, scores)
    some = np.flatnonzero(recall > 0)[::-1]
    return ChartLine(kind, *_thinned(recall[some], precision[some]))


def _thinned(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    if len(x) <= LAYOUT.most_points:
        return x, y
    kept = np.unique(np.linspace(0, len(x) - 1, LAYOUT.most_points).astype(int))
    return x[kept], y[kept]


class Bin(NamedTuple):
    """Rows of about one probability: how many, what was said, what was true (with interval)."""

    rows: int
    said: float
    true: float
    low: float
    high: float


def reliability_bins(said: FloatArray, true: NDArray[np.bool_]) -> list[Bin]:
    """Rows in parts of equal number by what was said; equal probabilities are not parted."""
    order = np.argsort(said, kind="stable")
    count = max(1, min(LAYOUT.bins, len(said) // LAYOUT.fewest))
    edges = np.quantile(said[order], np.linspace(0, 1, count + 1)[1:-1])
    places = np.searchsorted(np.unique(edges), said, side="right")
    bins = []
    for part in np.unique(places):
        inside = places == part
        bins.append(Bin(int(inside.sum()), float(said[inside].mean()), *share(true[inside])))
    return bins


def reliability_chart(label: str, bins: Sequence[Bin]) -> Chart:
    """What was said against what was true; on the diagonal both agree."""
    # Of a rare class all probabilities may be small: then the chart shows that part only.
    largest = max(max(b.said, b.high) for b in bins)
    top = next(top for top in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if largest <= top or top == 1.0)
    diagonal = BY_CHANCE._replace(x=top * BY_CHANCE.x, y=top * BY_CHANCE.y)
    spots = [Spot(b.said, b.true, b.low, b.high, f"{b.rows:,} rows") for b in bins]
    axes = square_axes((0.0, top), (0.0, top))
    return Chart(label, "predicted probability", "observed frequency", *axes, [diagonal], spots)


def bounds_chart(label: str, points: Sequence[tuple[float, Interval]]) -> Chart:
    """Accuracy with its interval over the bound, both from their least to their largest value."""
    most = max(max(bound for bound, _ in points), 1e-9)
    ends = min(share.low for _, share in points), max(share.high for _, share in points)
    x, y = square_axes((0.0, most), ends)
    spots = [Spot(bound, *share) for bound, share in points]
    line = ChartLine("own", np.array([s.x for s in spots]), np.array([s.y for s in spots]))
    return Chart(label, "bound", "", replace(x, percent=False), y, [line], spots)


# --- The picture above the slider: accuracy along the path, a column for every tree ---------------


class PathColumn(NamedTuple):
    """A tree of the path: the middle of its column, and value, low and high of its figure."""

    x: float
    features: int
    ends: Interval | None


@dataclass(frozen=True)
class PathChart:
    """The leading figure over the number of features, left weak, right strong."""

    measure: str
    step: float
    levels: list[tuple[float, str]]
    columns: list[PathColumn]


def path_chart(data: ReportData) -> PathChart | None:
    """The chart of a path with several trees; it repeats what the table of the path says."""
    values = [data.lead(data.metrics(i)) for i in range(len(data.trees))]
    if len(values) < 2:
        return None
    judged = [value for value in values if value is not None]
    low = min((value.low for value in judged), default=0.0)
    high = max((value.high for value in judged), default=1.0)
    axis = Axis(LAYOUT.path_height - LAYOUT.path_foot, LAYOUT.path_top, low, high)
    step = LAYOUT.path_width / len(values)
    columns = [
        PathColumn(
            (i + 0.5) * step, len(tree.selected_features_),
            None if value is None else Interval(*map(axis.at, value)),
        )
        for i, (tree, value) in enumerate(zip(data.trees, values, strict=True))
    ]  # fmt: skip
    levels = [(axis.at(level), f"{100 * level:.0f} %") for level in (high, low)]
    return PathChart(data.measure, step, levels, columns)
