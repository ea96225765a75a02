"""One panel for every tree of the path; the report shows one of them at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.reading.outline import direction
from softsplit.report.drawing import rows_flow, tree_outline, tree_svg
from softsplit.report.pages import PageTable, percent, with_interval
from softsplit.report.report_data import ReportData
from softsplit.report.same_tree import strength_of, training_line, tree_line
from softsplit.support.messages import counted, shortened
from softsplit.variables.variable import CATEGORY, UNKNOWN, Variable

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class PanelLimits:
    """How much a panel shows before it is cut."""

    features: int = 20
    """Features in a list."""

    classes: int = 12
    """Classes in a table."""

    levels: int = 2
    """Levels of a category in a line."""


SHOWN = PanelLimits()


class Fact(NamedTuple):
    """A figure of a tree; the script finds it by its role."""

    name: str
    value: str
    role: str = ""


class FeatureShare(NamedTuple):
    """A feature, which class it speaks for, and its share in the predictions if it is known."""

    name: Any
    direction: str
    share: float | None


class PythonLines(NamedTuple):
    """Lines that give a tree: itself, and its training."""

    tree: str | None
    training: str


@dataclass(frozen=True)
class Panel:
    """All that is shown of one tree of the path."""

    point: int
    drawing: Markup
    outline: Markup
    walks: bool
    facts: list[Fact]
    features: list[FeatureShare]
    confusion: PageTable | None
    lines: PythonLines


def headline(data: ReportData, point: int) -> str:
    """A point of the path in one sentence, for the eye and for screen readers."""
    tree = data.trees[point]
    count = len(tree.selected_features_)
    figure = data.lead(data.metrics(point))
    features = f"{count} of {counted(data.n_variables, 'feature')}"
    judged = "not judged" if figure is None else f"{data.measure} {percent(figure.value)}"
    if data.edited and point == data.chosen:
        judged = f"edited or refitted ({data.own_title}: {judged})"
    chosen = ", the chosen tree" if point == data.chosen else ""
    return (
        f"Tree {point + 1} of {len(data.trees)}{chosen}: strength {strength_text(tree)}, "
        f"{judged}, {features}."
    )


def strength_text(tree: Any) -> str:
    """The number of --strength; "auto" for a tree that nobody has put on a path of strengths."""
    strength = strength_of(tree)
    return "auto" if strength is None else f"{strength:.4g}"


def panel(data: ReportData, point: int) -> Panel:
    """Everything about one tree of the path."""
    model = data.drawn(point)
    label = f"Drawing of tree {point + 1}; the same in words is below."
    anchor = "question-" if point == data.chosen and model.table_coding.pointed else ""
    flow = rows_flow(model, data.matrix_of(point), data.labels)
    return Panel(
        point=point,
        drawing=tree_svg(model, flow, label, anchor),
        outline=tree_outline(model, anchor),
        walks=model.walk is not None,
        facts=_facts(data, point),
        features=_features(data.trees[point]),
        confusion=_confusion(data, point),
        lines=_lines(data, point),
    )


def _facts(data: ReportData, point: int) -> list[Fact]:
    tree, model = data.trees[point], data.trees[point].tree_
    weights = f"{np.count_nonzero(tree.weights_)} of {tree.weights_.size}"
    right = float(np.mean(model.predict_index(data.matrix_of(point)) == data.labels))
    whose = f" of {data.own_title}" if data.edited and point == data.chosen else ""
    figure = with_interval(data.lead(data.metrics(point)))
    used = f"{len(tree.selected_features_)} of {data.n_variables}"
    return [
        Fact(f"{data.measure.capitalize()}{whose} on held-out rows", figure, "accuracy"),
        Fact("Accuracy on training rows", percent(right)),
        Fact("Features", used, "features"),
        *([] if model.table_coding.pointed else [Fact("Coefficients", weights)]),
        Fact("Strength", strength_text(tree), "strength"),
    ]


def _features(tree: Any) -> list[FeatureShare]:
    """The features of a tree, the most important first."""
    shares = getattr(tree, "feature_importances_", None)
    used = [int(j) for j in tree.selected_features_]
    if shares is not None:
        used.sort(key=lambda j: (-shares[j], j))
    names = tree.tree_.column_names
    return [
        FeatureShare(
            names[j], _direction(tree.tree_, j) or "", None if shares is None else float(shares[j])
        )
        for j in used
    ]


def _direction(model: TreeModel, place: int) -> str | None:
    """Which class higher values of a column of the table speak for; None if there is no such."""
    if model.coding is None:
        return _number_direction(model, place)
    used = [i for i in model.selected_variables.tolist() if model.coding.places[i] == place]
    directions = []
    for i in used:
        variable, columns = model.coding.variables[i], model.coding.columns_of(i).tolist()
        if variable.kind == CATEGORY:
            speaks = _level_directions(model, variable, columns)
        else:
            speaks = _number_direction(model, columns[0])
        if speaks is not None:
            name = f"{shortened(variable.name, 40)} " if len(used) > 1 else ""
            directions.append(f"{name}{speaks}")
    return "; ".join(directions) or None


def _number_direction(model: TreeModel, feature: int) -> str | None:
    label = direction(model, feature)
    return None if label is None else f"(higher speaks for {shortened(label, 30)})"


def _level_directions(model: TreeModel, variable: Variable, columns: list[int]) -> str | None:
    """Which classes the weightiest levels of a category speak for."""
    if not variable.shown_levels or variable.lookups:
        return None
    sizes = np.abs(model.parameters.weights[columns]).max(axis=1)
    names = [*variable.shown_levels, *[variable.other_name] * variable.other]
    names += [UNKNOWN] * variable.has_missing
    directions = []
    for n in np.argsort(-sizes, kind="stable")[: SHOWN.levels]:
        label = direction(model, columns[n])
        if sizes[n] > 0 and label is not None:
            directions.append(f"{shortened(names[n], 24)} speaks for {shortened(label, 24)}")
    return f"({', '.join(directions)})" if directions else None


def _confusion(data: ReportData, point: int) -> PageTable | None:
    """Held-out rows by their true and their predicted class; None for a tree not judged."""
    counts = data.confusion(point)
    if counts is None:
        return None
    if len(counts) > SHOWN.classes:
        return _rates(data, counts)
    names = [shortened(name) for name in data.classes]
    rows = [
        [name, *(f"{n:,}" for n in row), percent(row[k] / max(row.sum(), 1), 0)]
        for k, (name, row) in enumerate(zip(names, counts, strict=True))
    ]
    caption = "Held-out rows, by true class (rows) and predicted class (columns)"
    return PageTable(caption, ["class", *names, "right"], rows, range(1, len(names) + 2), True)


def _rates(data: ReportData, counts: NDArray[np.int64]) -> PageTable:
    """For many classes: how often each is right, and what it is mostly taken for."""
    rows = []
    for k, row in enumerate(counts):
        others = np.where(np.arange(len(row)) == k, 0, row)
        worst = int(np.argmax(others))
        taken = f"{shortened(data.classes[worst])} ({others[worst]:,})" if others.any() else ""
        rate = percent(row[k] / max(row.sum(), 1), 0)
        rows.append([shortened(data.classes[k]), f"{row.sum():,}", rate, taken])
    head = ["class", "rows", "right", "mostly taken for"]
    return PageTable("Held-out rows, by class", head, rows, (1, 2))


def _lines(data: ReportData, point: int) -> PythonLines:
    tree = data.trees[point]
    return PythonLines(tree_line(tree), training_line(tree))
