"""The section "What must hold": requirements on rates, on training rows and on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from softsplit.fitted.rates import RateRecord
from softsplit.problem.rates import RateRequirement
from softsplit.report.charts import Chart, bounds_chart
from softsplit.report.metrics import Interval, mean_interval, share
from softsplit.report.pages import PageTable, percent, with_interval
from softsplit.report.report_data import ReportData
from softsplit.selection.assessment import Assessment
from softsplit.support.arrays import FloatArray


class Requirement(NamedTuple):
    """A requirement: rates of its groups, and a sentence about them."""

    rates: PageTable
    sentence: str


@dataclass(frozen=True)
class Requirements:
    """The part "What must hold".

    ``compared`` says whether other bounds are worth asking for; ``bounds`` and ``chart`` are None
    where no other tree was trained, or where there are several bounds.
    """

    listed: list[Requirement]
    compared: bool
    bounds: PageTable | None = None
    chart: Chart | None = None


def requirements(data: ReportData) -> Requirements:
    """A table for each requirement, and what its bound costs."""
    rated, judged = data.assessment.rated, data.assessment.trees[data.chosen]
    known = () if rated is None or not judged.complete else rated.requirements
    listed = []
    for record in data.tree.tree_.rates:
        required = next((other for other in known if other.name == record.name), None)
        listed.append(Requirement(_rates(data, record, required), _sentence(record)))
    if not any(record.compares for record in data.tree.tree_.rates):
        return Requirements(listed, False)
    return Requirements(listed, True, *_bounds(data))


def _bounds(data: ReportData) -> tuple[PageTable | None, Chart | None]:
    """Accuracy and differences of rates on held-out rows, against the bound."""
    assessment, own = data.assessment, data.assessment.trees[data.chosen]
    given = (
        data.tree.fairness if isinstance(data.tree.fairness, list | tuple) else [data.tree.fairness]
    )
    bounds = tuple(required.bound for required in given)
    points = [(bounds, assessment, own)] if own.complete and assessment.rated is not None else []
    points += [(other.bounds, other.assessment, other.assessment.trees[0]) for other in data.bounds]
    if len(points) < 2:
        return None, None
    rows, drawn = [], []
    for stated, judged, tree in sorted(points, key=lambda point: point[0]):
        accuracy = share(tree.calls == judged.labels)
        decisions = np.eye(len(data.classes))[tree.calls]
        drawn.append((stated[0], accuracy))
        rows.append(
            [
                ", ".join(f"{bound:.3g}" for bound in stated), with_interval(accuracy),
                percent(_largest_difference(judged, tree.proba)),
                percent(_largest_difference(judged, decisions)),
            ]
        )  # fmt: skip
    head = ["bound", "accuracy, held out", "difference, expected", "difference, decided"]
    title = "Accuracy against the bound, on held-out rows"
    chart = bounds_chart(title, drawn) if len(bounds) == 1 else None
    return PageTable(title, head, rows, range(1, 4)), chart


def _largest_difference(judged: Assessment, values: FloatArray) -> float:
    """Largest difference of rates that any requirement compares; ``values`` (n_rows, n_classes)."""
    assert judged.rated is not None
    differences = [0.0]
    for required in judged.rated.requirements:
        own = [np.isin(judged.rated.cells, cells) for _, cells in required.groups]
        rates = [float(values[mask, required.of].mean()) for mask in own if np.any(mask)]
        if required.compares and len(rates) > 1:
            differences.append(max(rates) - min(rates))
    return max(differences)


def _rates(data: ReportData, record: RateRecord, required: RateRequirement | None) -> PageTable:
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
    return PageTable(f"{record.name}, {record.bound}", head, rows, range(1, 6))


def _held_out(data: ReportData, required: RateRequirement) -> dict[str, tuple[Interval, Interval]]:
    """Expected and decided rates of the groups on held-out rows, with intervals."""
    rated, judged = data.assessment.rated, data.assessment.trees[data.chosen]
    assert rated is not None
    rates = {}
    for name, cells in required.groups:
        own = np.isin(rated.cells, cells)
        if np.any(own):
            decided = share(judged.calls[own] == required.of)
            rates[name] = mean_interval(judged.proba[own, required.of]), decided
    return rates


def _sentence(record: RateRecord) -> str:
    """Whether the bound holds, and what it costs."""
    kept = "hold the bound" if record.decisions_hold else "miss it"
    text = f"On the training rows expected rates hold the bound, and decisions {kept}. "
    text += "On new rows neither is guaranteed: the intervals say how far rates may be off. "
    if record.multiplier <= 0:
        return text + "The bound costs nothing: the tree meets it by itself."
    return text + (
        f"A bound that is tighter by 0.01 raises the training loss by about "
        f"{0.01 * record.multiplier:.3g}."
    )
