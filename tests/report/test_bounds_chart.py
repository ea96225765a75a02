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
    chart = bounds_chart("accuracy", points)
    places = [(chart.x.at(spot.x), chart.y.at(spot.y)) for spot in chart.spots]
    assert chart.points(chart.lines[0]) == " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    assert places == sorted(places) and len(places) == 3
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)
    assert places[-1][0] == pytest.approx(LAYOUT.left + LAYOUT.size)
    ends = [chart.y.at(end) for spot in chart.spots for end in (spot.low, spot.high)]
    assert min(ends) == pytest.approx(LAYOUT.top)
    assert max(ends) == pytest.approx(LAYOUT.top + LAYOUT.size)
    assert [text for _, text in chart.y.ticks] == ["75 %", "82.5 %", "90 %"]
    assert [text for _, text in chart.x.ticks] == ["0", "0.1", "0.2"]


def test_one_point_has_a_place():
    chart = bounds_chart("accuracy", [(0.0, Interval(1.0, 1.0, 1.0))])
    assert "nan" not in chart.points(chart.lines[0])
