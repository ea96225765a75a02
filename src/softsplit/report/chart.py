"""The picture above the slider: accuracy along the path, a column for every tree."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree as ET

from softsplit.report.elements import add, element
from softsplit.report.intervals import Interval
from softsplit.report.subject import Subject

WIDTH, HEIGHT, TOP, FOOT = 960.0, 170.0, 14.0, 48.0


def path_chart(subject: Subject) -> ET.Element:
    """Accuracy with its interval over the number of features, left weak, right strong.

    It repeats what the table of the path says and is hidden from screen readers.
    """
    svg = element(
        "svg",
        {"class": "chart", "viewBox": f"0 0 {WIDTH:.0f} {HEIGHT:.0f}", "aria-hidden": "true"},
    )
    values = [subject.lead(subject.merits(i)) for i in range(len(subject.trees))]
    known = [v for v in values if v is not None]
    low = min((v.low for v in known), default=0.0)
    high = max((v.high for v in known), default=1.0)
    span = max(high - low, 1e-9)

    def height(share: float) -> float:
        return TOP + (high - share) / span * (HEIGHT - TOP - FOOT)

    step = WIDTH / len(values)
    for share in (high, low):
        y = f"{height(share):.1f}"
        add(svg, "line", {"class": "base", "x1": "0", "x2": f"{WIDTH:.0f}", "y1": y, "y2": y})
    for i, value in enumerate(values):
        _column(svg, i, (i + 0.5) * step, step, value, height, subject)
    for share in (high, low):  # last, so that no column hides them
        place = {"x": "4", "y": f"{height(share) - 3:.1f}", "class": "scale"}
        add(svg, "text", place, f"{100 * share:.0f} %")
    place = {"x": f"{WIDTH / 2:.0f}", "y": f"{HEIGHT - 6:.0f}", "class": "axis"}
    add(
        svg,
        "text",
        place,
        f"{subject.measure} with interval, and features used, from weak to strong penalty",
    )
    return svg


def _column(
    svg: ET.Element,
    point: int,
    x: float,
    step: float,
    value: Interval | None,
    height: Callable[[float], float],
    subject: Subject,
) -> None:
    group = add(svg, "g", {"class": "column", "data-point": str(point)})
    back = {
        "x": f"{x - step / 2 + 2:.1f}", "width": f"{step - 4:.1f}", "y": "2", "rx": "6",
        "height": f"{HEIGHT - 24:.0f}", "class": "back",
    }  # fmt: skip
    add(group, "rect", back)
    if value is not None:
        bar = {"x1": f"{x:.1f}", "x2": f"{x:.1f}", "class": "whisker"}
        ends = {"y1": f"{height(value.low):.1f}", "y2": f"{height(value.high):.1f}"}
        add(group, "line", bar | ends)
        add(group, "circle", {"cx": f"{x:.1f}", "cy": f"{height(value.value):.1f}", "r": "5"})
    count = len(subject.trees[point].selected_features_)
    place = {"x": f"{x:.1f}", "y": f"{HEIGHT - FOOT + 12:.0f}", "class": "count"}
    add(group, "text", place, str(count))
