"""Charts of the page: the path, and curves of probabilities (ROC, precision, reliability)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from softsplit.report.elements import add, element
from softsplit.report.metrics import Interval, roc_curve, share
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


class Line(NamedTuple):
    """One line of a chart, and the class of its style."""

    kind: str
    x: FloatArray
    y: FloatArray


def _frame(label: str) -> ET.Element:
    """An empty square chart."""
    svg = element(
        "svg",
        {
            "class": "curve", "role": "img", "aria-label": label,
            "viewBox": f"0 0 {LAYOUT.left + LAYOUT.size + LAYOUT.right:.0f} "
            f"{LAYOUT.top + LAYOUT.size + LAYOUT.foot:.0f}",
        },
    )  # fmt: skip
    frame = {"class": "frame", "x": f"{LAYOUT.left:.0f}", "y": f"{LAYOUT.top:.0f}"}
    add(svg, "rect", frame | {"width": f"{LAYOUT.size:.0f}", "height": f"{LAYOUT.size:.0f}"})
    return svg


def chart(label: str, across: str, up: str, lines: Sequence[Line], top: float = 1.0) -> ET.Element:
    """A square chart from 0 to ``top`` both ways."""
    svg = _frame(label)
    for share_ in (0.0, 0.5, 1.0):
        text = f"{100 * top * share_:.3g} %"
        place = {
            "x": f"{_x(share_):.1f}",
            "y": f"{LAYOUT.top + LAYOUT.size + 14:.1f}",
            "class": "tick",
        }
        add(svg, "text", place, text)
        place = {"x": f"{LAYOUT.left - 4:.1f}", "y": f"{_y(share_) + 4:.1f}", "class": "tick side"}
        add(svg, "text", place, text)
    middle = f"{LAYOUT.left + LAYOUT.size / 2:.1f}"
    add(
        svg,
        "text",
        {"class": "axis", "x": middle, "y": f"{LAYOUT.top + LAYOUT.size + 30:.1f}"},
        across,
    )
    add(
        svg,
        "text",
        {"class": "axis up", "x": f"{LAYOUT.left + 6:.0f}", "y": f"{LAYOUT.top + 14:.0f}"},
        up,
    )
    for line in lines:
        points = " ".join(f"{_x(a):.1f},{_y(b):.1f}" for a, b in zip(line.x, line.y, strict=True))
        add(svg, "polyline", {"class": line.kind, "points": points})
    return svg


def _x(value: float) -> float:
    return LAYOUT.left + LAYOUT.size * float(value)


def _y(value: float) -> float:
    return LAYOUT.top + LAYOUT.size * (1 - float(value))


def roc_line(kind: str, scores: FloatArray, positive: NDArray[np.bool_]) -> Line:
    """Share found over the share of false alarms."""
    return Line(kind, *_thinned(*roc_curve(scores, positive)))


def precision_line(kind: str, scores: FloatArray, positive: NDArray[np.bool_]) -> Line:
    """Share of alarms that are right over the share found, from where on something is found."""
    alarms, hits = roc_curve(scores, positive)
    found, false = hits * positive.sum(), alarms * (~positive).sum()
    some = found > 0
    return Line(kind, *_thinned(hits[some], found[some] / (found[some] + false[some])))


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
        found = share(true[inside])
        bins.append(Bin(int(inside.sum()), float(said[inside].mean()), *found))
    return bins


def reliability_chart(label: str, bins: Sequence[Bin]) -> ET.Element:
    """What was said against what was true; on the diagonal both agree."""
    ends = np.array([0.0, 1.0])
    # Of a rare class all probabilities may be small: then the chart shows that part only.
    largest = max(max(one.said, one.high) for one in bins)
    top = next(top for top in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if largest <= top or top == 1.0)
    diagonal = [Line("diagonal", ends, ends)]
    svg = chart(label, "predicted probability", "observed frequency", diagonal, top)
    for one in bins:
        x = f"{_x(one.said / top):.1f}"
        ends_at = {"y1": f"{_y(one.low / top):.1f}", "y2": f"{_y(one.high / top):.1f}"}
        add(svg, "line", {"class": "whisker", "x1": x, "x2": x} | ends_at)
        spot = {
            "class": "spot",
            "cx": x,
            "cy": f"{_y(one.true / top):.1f}",
            "r": "4",
        }
        add(add(svg, "circle", spot), "title", {}, f"{one.rows:,} rows")
    return svg


def bounds_chart(label: str, points: Sequence[tuple[float, Interval]]) -> ET.Element:
    """Accuracy with its interval over the bound, both from their least to their largest value."""
    svg = _frame(label)
    most = max(max(bound for bound, _ in points), 1e-9)
    low, high = min(one.low for _, one in points), max(one.high for _, one in points)
    span = max(high - low, 1e-9)
    foot = LAYOUT.top + LAYOUT.size
    for part in (0.0, 0.5, 1.0):
        across = {"x": f"{_x(part):.1f}", "y": f"{foot + 14:.1f}", "class": "tick"}
        add(svg, "text", across, f"{part * most:.3g}")
        up = {"x": f"{LAYOUT.left - 4:.1f}", "y": f"{_y(part) + 4:.1f}", "class": "tick side"}
        add(svg, "text", up, f"{100 * (low + part * span):.3g} %")
    middle = f"{LAYOUT.left + LAYOUT.size / 2:.1f}"
    add(svg, "text", {"class": "axis", "x": middle, "y": f"{foot + 30:.1f}"}, "bound")
    drawn = [
        (_x(bound / most), *(_y((end - low) / span) for end in (one.value, one.low, one.high)))
        for bound, one in points
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, *_ in drawn)
    add(svg, "polyline", {"class": "own", "points": line})
    for x, y, bottom, top in drawn:
        ends = {"x1": f"{x:.1f}", "x2": f"{x:.1f}", "y1": f"{bottom:.1f}", "y2": f"{top:.1f}"}
        add(svg, "line", {"class": "whisker"} | ends)
        add(svg, "circle", {"class": "spot", "cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "4"})
    return svg


# --- The picture above the slider: accuracy along the path, a column for every tree ---------------


def path_chart(data: ReportData) -> ET.Element:
    """Accuracy with its interval over the number of features, left weak, right strong.

    It repeats what the table of the path says and is hidden from screen readers.
    """
    svg = element(
        "svg",
        {
            "class": "chart",
            "viewBox": f"0 0 {LAYOUT.path_width:.0f} {LAYOUT.path_height:.0f}",
            "aria-hidden": "true",
        },
    )  # fmt: skip
    values = [data.lead(data.metrics(i)) for i in range(len(data.trees))]
    known = [v for v in values if v is not None]
    low = min((v.low for v in known), default=0.0)
    high = max((v.high for v in known), default=1.0)
    span = max(high - low, 1e-9)

    def height(share: float) -> float:
        return LAYOUT.path_top + (high - share) / span * (
            LAYOUT.path_height - LAYOUT.path_top - LAYOUT.path_foot
        )

    step = LAYOUT.path_width / len(values)
    for level in (high, low):
        y = f"{height(level):.1f}"
        add(
            svg,
            "line",
            {"class": "base", "x1": "0", "x2": f"{LAYOUT.path_width:.0f}", "y1": y, "y2": y},
        )
    for i, value in enumerate(values):
        _column(svg, i, (i + 0.5) * step, step, value, height, data)
    for level in (high, low):  # last, so that no column hides them
        place = {"x": "4", "y": f"{height(level) - 3:.1f}", "class": "scale"}
        add(svg, "text", place, f"{100 * level:.0f} %")
    place = {
        "x": f"{LAYOUT.path_width / 2:.0f}",
        "y": f"{LAYOUT.path_height - 6:.0f}",
        "class": "axis",
    }
    add(
        svg,
        "text",
        place,
        f"{data.measure} with interval, and features used, from weak to strong penalty",
    )
    return svg


def _column(
    svg: ET.Element,
    point: int,
    x: float,
    step: float,
    value: Interval | None,
    height: Callable[[float], float],
    data: ReportData,
) -> None:
    group = add(svg, "g", {"class": "column", "data-point": str(point)})
    back = {
        "x": f"{x - step / 2 + 2:.1f}", "width": f"{step - 4:.1f}", "y": "2", "rx": "6",
        "height": f"{LAYOUT.path_height - 24:.0f}", "class": "back",
    }  # fmt: skip
    add(group, "rect", back)
    if value is not None:
        bar = {"x1": f"{x:.1f}", "x2": f"{x:.1f}", "class": "whisker"}
        ends = {"y1": f"{height(value.low):.1f}", "y2": f"{height(value.high):.1f}"}
        add(group, "line", bar | ends)
        add(group, "circle", {"cx": f"{x:.1f}", "cy": f"{height(value.value):.1f}", "r": "5"})
    count = len(data.trees[point].selected_features_)
    place = {
        "x": f"{x:.1f}",
        "y": f"{LAYOUT.path_height - LAYOUT.path_foot + 12:.0f}",
        "class": "count",
    }
    add(group, "text", place, str(count))
