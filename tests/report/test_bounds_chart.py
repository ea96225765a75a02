"""The curve of accuracy against the bound of a requirement."""

import pytest

from softsplit.report.charts import LAYOUT, bounds_chart
from softsplit.report.metrics import Interval


def test_points_and_intervals_are_in_the_frame_and_in_order():
    points = [
        (0.01, Interval(0.80, 0.75, 0.85)),
        (0.05, Interval(0.83, 0.78, 0.88)),
        (0.2, Interval(0.86, 0.80, 0.90)),
    ]
    svg = bounds_chart("accuracy", points)
    line = svg.find("polyline")
    places = [tuple(map(float, one.split(","))) for one in line.get("points").split()]
    assert places == sorted(places) and [y for _, y in places] == sorted(
        (y for _, y in places), reverse=True
    )
    assert places[-1][0] == pytest.approx(LAYOUT.left + LAYOUT.size)
    whiskers = svg.findall("line")
    assert len(whiskers) == len(svg.findall("circle")) == 3
    ends = [float(one.get(end)) for one in whiskers for end in ("y1", "y2")]
    assert min(ends) == pytest.approx(LAYOUT.top)
    assert max(ends) == pytest.approx(LAYOUT.top + LAYOUT.size)
    assert "75 %" in [text.text for text in svg.findall("text")]


def test_one_point_has_a_place():
    svg = bounds_chart("accuracy", [(0.0, Interval(1.0, 1.0, 1.0))])
    assert "nan" not in svg.find("polyline").get("points")
