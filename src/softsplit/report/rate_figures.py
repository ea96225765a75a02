"""The figures of a page about rates or hazards: what is expected beside what is observed.

rates      ten parts of rows of equal exposure, by predicted rate: sum y / sum t over sum mu / sum t
hazards    in each leaf exp(-H(t)) of its rows (Nelson and Aalen) beside the mean curve of the
           tree, and how many rows are still at risk
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.baseline import Baseline
from softsplit.reading.leaf_formulas import grouped, per_unit
from softsplit.reading.outline import outline
from softsplit.report.charts import Chart, ChartLine, Spot, square_axes
from softsplit.report.pages import PageTable
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import counted, visible

if TYPE_CHECKING:
    from softsplit.report.number_figures import NumberReport

PARTS = 10
"""Parts of the rows whose rates are compared."""

RISK_TIMES = 5
"""Times at which the rows at risk are counted."""

MOST_CURVES = 8
"""Leaves that have a chart of their own."""


def rate_chart(report: NumberReport) -> list[Chart]:
    """Observed over predicted rates; a whisker is two standard errors of the sum of residuals."""
    rows = report.known
    y, predicted, units = report.y[rows], report.predicted[rows], report.exposure[rows]
    order = np.argsort(predicted / units, kind="stable")
    share = np.cumsum(units[order]) / units.sum()
    spots = []
    for part in np.split(order, np.searchsorted(share, np.arange(1, PARTS) / PARTS)):
        if len(part):
            total = float(units[part].sum())
            said, true = float(predicted[part].sum()) / total, float(y[part].sum()) / total
            noise = 2.0 * float(np.sqrt(np.sum((y - predicted)[part] ** 2))) / total
            ends = max(true - noise, 0.0), true + noise
            spots.append(Spot(said, true, *ends, counted(len(part), "row")))
    top = float(f"{max(max(spot.x, spot.high) for spot in spots):.1e}") or 1.0
    x, y_axis = (replace(axis, percent=False) for axis in square_axes((0.0, top), (0.0, top)))
    level = ChartLine("diagonal", np.array([0.0, top]), np.array([0.0, top]))
    label = "Predicted and observed rates"
    return [Chart(label, "predicted", "observed", x, y_axis, [level], spots)]


def rate_table(report: NumberReport) -> PageTable:
    """Observed and expected sums by leaf."""
    unit = visible(report.numbers.per or "exposure")
    rate = per_unit(report.numbers.per)
    head = ["leaf", "rows", unit, "observed", "expected", f"observed {rate}", f"expected {rate}"]
    rows = []
    for number, inside in leaf_rows(report):
        total = float(report.exposure[inside].sum())
        sums = float(report.y[inside].sum()), float(report.predicted[inside].sum())
        figures = (total, *sums, sums[0] / total, sums[1] / total)
        rows.append([str(number), f"{len(inside):,}", *(grouped(value, 4) for value in figures)])
    return PageTable("Observed and expected by leaf", head, rows, range(1, len(head)))


def curve_charts(report: NumberReport) -> list[Chart]:
    """The share without event over time in each leaf: of its rows, and as the tree says."""
    baseline, times = report.numbers.baseline, report.times
    assert baseline is not None and times is not None
    last, unit = float(times.max()), visible(report.numbers.per or "time")
    charts = []
    for number, inside in leaf_rows(report)[:MOST_CURVES]:
        ones = np.ones(len(inside))
        rows = Baseline.of(times[inside], report.y[inside], ones, ones)
        at = np.concatenate([[0.0], rows.times, [last]])
        said = baseline.free(report.predicted[inside], at).mean(axis=0)
        lines = [
            _steps("own", at, rows.free(np.ones(1), at)[0]),
            _steps("diagonal", at, said),
        ]
        x, y = square_axes((0.0, last), (0.0, 1.0))
        axes = replace(x, percent=False), y
        charts.append(Chart(f"Leaf {number}", unit, "event-free", *axes, lines))
    return charts


def risk_table(report: NumberReport) -> PageTable:
    """Rows at risk by leaf, with events and those that the tree expects until the last sight."""
    times = report.times
    assert times is not None
    last = float(times.max())
    at = [float(f"{last * k / RISK_TIMES:.2g}") for k in range(RISK_TIMES)]
    head = ["leaf", "events", "expected", *(f"at risk at {grouped(t)}" for t in at)]
    rows = []
    for number, inside in leaf_rows(report):
        expected = float(report.predicted[inside] @ report.exposure[inside])
        left = [int(np.sum(times[inside] >= t)) for t in at]
        events = f"{int(report.y[inside].sum()):,}"
        rows.append([str(number), events, grouped(expected, 3), *(f"{n:,}" for n in left)])
    return PageTable("Rows at risk by leaf", head, rows, range(1, len(head)))


def leaf_rows(report: NumberReport) -> list[tuple[int, NDArray[np.intp]]]:
    """The leaves by their numbers in the text, with the known rows that arrive there, if any."""
    arrived = report.leaves
    places = [
        (number, report.known[np.isin(arrived[report.known], list(end.leaves))])
        for number, end in enumerate(outline(report.model).ends(), 1)
    ]
    return [(number, inside) for number, inside in places if len(inside)]


def _steps(kind: str, x: FloatArray, y: FloatArray) -> ChartLine:
    """A line that stays level until the next value."""
    return ChartLine(kind, np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1])
