"""Small charts of probabilities on rows left out: ROC, precision over recall, reliability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from softsplit.report.elements import add, element
from softsplit.report.intervals import roc_curve, share
from softsplit.support.arrays import FloatArray

SIZE, LEFT, RIGHT, FOOT, TOP = 260.0, 40.0, 22.0, 36.0, 10.0
MOST_POINTS = 120
BINS = 10
FEWEST = 5
"""Rows that a point of the reliability diagram stands for at least."""


class Line(NamedTuple):
    """One line of a chart, and the class of its style."""

    kind: str
    x: FloatArray
    y: FloatArray


def chart(label: str, across: str, up: str, lines: Sequence[Line], top: float = 1.0) -> ET.Element:
    """A square chart from 0 to ``top`` both ways."""
    svg = element(
        "svg",
        {
            "class": "curve", "role": "img", "aria-label": label,
            "viewBox": f"0 0 {LEFT + SIZE + RIGHT:.0f} {TOP + SIZE + FOOT:.0f}",
        },
    )  # fmt: skip
    frame = {"class": "frame", "x": f"{LEFT:.0f}", "y": f"{TOP:.0f}"}
    add(svg, "rect", frame | {"width": f"{SIZE:.0f}", "height": f"{SIZE:.0f}"})
    for share_ in (0.0, 0.5, 1.0):
        text = f"{100 * top * share_:.3g} %"
        place = {"x": f"{_x(share_):.1f}", "y": f"{TOP + SIZE + 14:.1f}", "class": "tick"}
        add(svg, "text", place, text)
        place = {"x": f"{LEFT - 4:.1f}", "y": f"{_y(share_) + 4:.1f}", "class": "tick side"}
        add(svg, "text", place, text)
    middle = f"{LEFT + SIZE / 2:.1f}"
    add(svg, "text", {"class": "axis", "x": middle, "y": f"{TOP + SIZE + 30:.1f}"}, across)
    add(svg, "text", {"class": "axis up", "x": f"{LEFT + 6:.0f}", "y": f"{TOP + 14:.0f}"}, up)
    for line in lines:
        points = " ".join(f"{_x(a):.1f},{_y(b):.1f}" for a, b in zip(line.x, line.y, strict=True))
        add(svg, "polyline", {"class": line.kind, "points": points})
    return svg


def _x(value: float) -> float:
    return LEFT + SIZE * float(value)


def _y(value: float) -> float:
    return TOP + SIZE * (1 - float(value))


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
    if len(x) <= MOST_POINTS:
        return x, y
    kept = np.unique(np.linspace(0, len(x) - 1, MOST_POINTS).astype(int))
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
    count = max(1, min(BINS, len(said) // FEWEST))
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
    svg = chart(label, "what the tree says", "what is true", diagonal, top)
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
