"""The section "What must hold": requirements on rates, on training rows and on held-out rows."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np

from softsplit.fitted.rates import RateRecord
from softsplit.problem.rates import RateRequirement
from softsplit.report.charts import bounds_chart
from softsplit.report.elements import add, add_table
from softsplit.report.metrics import Interval, mean_interval, share
from softsplit.report.pages import percent, with_interval
from softsplit.report.report_data import ReportData
from softsplit.selection.assessment import Assessment
from softsplit.support.arrays import FloatArray


def add_rates(parent: ET.Element, data: ReportData) -> None:
    """A table for each requirement, and what its bound costs."""
    rated, judged = data.assessment.rated, data.assessment.trees[data.chosen]
    known = () if rated is None or not judged.complete else rated.requirements
    for record in data.tree.tree_.rates:
        required = next((one for one in known if one.name == record.name), None)
        _add_record(parent, data, record, required)
    if any(record.compares for record in data.tree.tree_.rates):
        _add_bounds(parent, data)


def _add_bounds(parent: ET.Element, data: ReportData) -> None:
    """Accuracy and differences of rates on held-out rows, against the bound."""
    found, own = data.assessment, data.assessment.trees[data.chosen]
    given = data.tree.fairness
    bounds = [one.bound for one in (given if isinstance(given, list | tuple) else [given])]
    points = [(tuple(bounds), found, own)] if own.complete and found.rated is not None else []
    points += [(one.bounds, one.assessment, one.assessment.trees[0]) for one in data.bounds]
    if len(points) < 2:
        said = "Accuracy against the bound is not shown: there was no time to train other trees."
        add(parent, "p", {}, said)
        return
    rows, drawn = [], []
    for stated, judged, tree in sorted(points, key=lambda point: point[0]):
        accuracy = share(tree.calls == judged.labels)
        expected, decided = (
            _largest_difference(judged, values)
            for values in (tree.proba, np.eye(len(data.classes))[tree.calls])
        )
        drawn.append((stated[0], accuracy))
        rows.append(
            [
                ", ".join(f"{bound:.3g}" for bound in stated), with_interval(accuracy),
                percent(expected), percent(decided),
            ]
        )  # fmt: skip
    head = ["bound", "accuracy, held out", "difference, expected", "difference, decided"]
    title = "Accuracy against the bound, on held-out rows"
    add_table(parent, title, head, rows, range(1, 4))
    if len(bounds) == 1:
        figure = add(parent, "figure", {"class": "bounds"})
        add(figure, "figcaption", {}, f"{title}, with 95 % intervals")
        figure.append(bounds_chart(title, drawn))


def _largest_difference(judged: Assessment, values: FloatArray) -> float:
    """Largest difference of rates that any requirement compares; ``values`` (n_rows, n_classes)."""
    assert judged.rated is not None
    differences = [0.0]
    for one in judged.rated.requirements:
        own = [np.isin(judged.rated.cells, cells) for _, cells in one.groups]
        rates = [float(values[mask, one.of].mean()) for mask in own if np.any(mask)]
        differences.append(max(rates) - min(rates) if one.compares and len(rates) > 1 else 0.0)
    return max(differences)


def _add_record(
    parent: ET.Element, data: ReportData, record: RateRecord, required: RateRequirement | None
) -> None:
    rows = []
    held = _held_out(data, required) if required is not None else {}
    for n, name in enumerate(record.groups):
        expected, decided = held.get(name, (None, None))
        rows.append(
            [
                name or "rows", f"{record.weights[n]:,.0f}", percent(record.expected[n]),
                percent(record.decided[n]), with_interval(expected), with_interval(decided),
            ]
        )  # fmt: skip
    head = ["group", "rows", "expected, training", "decided, training"]
    head += ["expected, held out", "decided, held out"]
    add_table(parent, f"{record.name}, {record.bound}", head, rows, range(1, 6))
    add(parent, "p", {}, _sentence(record))


def _held_out(data: ReportData, required: RateRequirement) -> dict[str, tuple[Interval, Interval]]:
    """Expected and decided rates of the groups on held-out rows, with intervals."""
    rated, judged = data.assessment.rated, data.assessment.trees[data.chosen]
    assert rated is not None
    found = {}
    for name, cells in required.groups:
        own = np.isin(rated.cells, cells)
        if np.any(own):
            decided = share(judged.calls[own] == required.of)
            found[name] = mean_interval(judged.proba[own, required.of]), decided
    return found


def _sentence(record: RateRecord) -> str:
    """Whether the bound holds, and what it costs."""
    kept = "hold the bound" if record.decisions_hold else "miss it"
    said = f"On the training rows expected rates hold the bound, and decisions {kept}. "
    said += "On new rows neither is guaranteed: the intervals say how far rates may be off. "
    if record.multiplier <= 0:
        return said + "The bound costs nothing: the tree meets it by itself."
    return said + (
        f"A bound that is tighter by 0.01 raises the training loss by about "
        f"{0.01 * record.multiplier:.3g}."
    )
