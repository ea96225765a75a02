"""One panel for every tree of the path; the report shows one of them at a time."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.reading.outline import direction
from softsplit.report.drawing import rows_flow, tree_outline, tree_svg
from softsplit.report.elements import add, add_markup, add_table, element
from softsplit.report.pages import percent, shortened, with_interval
from softsplit.report.report_data import ReportData, fit_options, strength_of
from softsplit.report.scales import questions_html
from softsplit.support.messages import counted, visible
from softsplit.variables.variable import CATEGORY, UNKNOWN, Variable


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


def headline(data: ReportData, point: int) -> str:
    """A point of the path in one sentence, for the eye and for screen readers."""
    tree = data.trees[point]
    count = len(tree.selected_features_)
    found = data.lead(data.metrics(point))
    features = f"{count} of {counted(data.n_variables, 'feature')}"
    said = "not judged" if found is None else f"{data.measure} {percent(found.value)}"
    if data.edited and point == data.chosen:
        said = f"edited or refitted ({data.own_title}: {said})"
    chosen = ", the chosen tree" if point == data.chosen else ""
    return (
        f"Tree {point + 1} of {len(data.trees)}{chosen}: strength {strength_text(tree)}, "
        f"{said}, {features}."
    )


def strength_text(tree: Any) -> str:
    """The number of --strength; "auto" for a tree that nobody has put on a path of strengths."""
    strength = strength_of(tree)
    return "auto" if strength is None else f"{strength:.4g}"


def panel(data: ReportData, point: int) -> ET.Element:
    """Everything about one tree of the path."""
    shown = {} if point == data.chosen else {"hidden": "hidden"}
    made = element("div", {"class": "panel", "data-point": str(point), **shown})
    _picture(made, data, point)
    _facts(made, data, point)
    _features(made, data, point)
    _confusion(made, data, point)
    _python(made, data, point)
    return made


def _facts(parent: ET.Element, data: ReportData, point: int) -> None:
    tree = data.trees[point]
    weights = tree.weights_
    right = float(np.mean(tree.tree_.predict_index(data.matrix) == data.labels))
    whose = f" of {data.own_title}" if data.edited and point == data.chosen else ""
    facts = [
        (
            f"{data.measure.capitalize()}{whose} on held-out rows",
            with_interval(data.lead(data.metrics(point))),
            "accuracy",
        ),
        ("Accuracy on training rows", percent(right), ""),
        ("Features", f"{len(tree.selected_features_)} of {data.n_variables}", "features"),
        ("Coefficients", f"{np.count_nonzero(weights)} of {weights.size}", ""),
        ("Strength", strength_text(tree), "strength"),
    ]
    listed = add(parent, "dl", {"class": "facts"})
    for name, value, role in facts:
        pair = add(listed, "div")
        add(pair, "dt", {}, name)
        add(pair, "dd", {"data-fact": role} if role else {}, value)


def _picture(parent: ET.Element, data: ReportData, point: int) -> None:
    model = data.drawn(point)
    figure = add(parent, "figure")
    box = add(
        figure, "div",
        {"class": "scroll sheet", "tabindex": "0", "role": "region",
         "aria-label": "Drawing of the tree"},
    )  # fmt: skip
    flow = rows_flow(model, data.matrix, data.labels)
    said = f"Drawing of tree {point + 1}; the same in words is below it."
    anchor = f"question-{point + 1}-"
    add_markup(box, tree_svg(model, flow, said, anchor))
    add(
        figure, "p", {"class": "quiet more-aside", "aria-hidden": "true"},
        "The drawing is wider than the screen: move it sideways.",
    )  # fmt: skip
    add(
        figure, "figcaption", {"class": "quiet"},
        "Bands are the training rows, in the colours of their classes. Each box asks a question; "
        "the small chart in it shows how far its rows are from its threshold. "
        + (
            "Follow the answers: the class of the leaf is the predicted one. "
            if model.walk is not None
            else "Rows near a threshold are shared between both sides. A leaf lists the rows most "
            "likely to end there; some of them are predicted as another class because other leaves "
            "also contribute. "
        )
        + "Click a question to see its terms.",
    )  # fmt: skip
    for part in ET.fromstring(f"<div>{questions_html(model, anchor)}</div>"):
        figure.append(part)
    words = add(figure, "details", {"class": "words"})
    add(words, "summary", {}, "The tree in words")
    add_markup(words, tree_outline(model))


def _features(parent: ET.Element, data: ReportData, point: int) -> None:
    tree = data.trees[point]
    add(parent, "h3", {}, "Features it uses")
    shares = getattr(tree, "feature_importances_", None)
    names = tree.tree_.column_names
    used = [int(j) for j in tree.selected_features_]
    if not used:
        add(parent, "p", {}, "None: it predicts the same class for all rows.")
        return
    if shares is not None:
        used.sort(key=lambda j: (-shares[j], j))
    listed = add(parent, "ul", {"class": "bars"})
    for j in used[: SHOWN.features]:
        item = add(listed, "li")
        name = {"class": "bar-name", "title": visible(names[j])}
        name_box = add(item, "span", name, shortened(names[j], 60))
        if told := _direction(tree.tree_, j):
            add(name_box, "span", {"class": "quiet aside"}, f" {told}")
        if shares is not None:
            value = f"{float(shares[j]):.3f}"
            add(item, "meter", {"min": "0", "max": "1", "value": value, "aria-hidden": "true"})
            add(item, "span", {"class": "number"}, percent(float(shares[j]), 0))
    if len(used) > SHOWN.features:
        add(parent, "p", {"class": "quiet"}, f"and {len(used) - SHOWN.features} more.")
    add(
        parent, "p", {"class": "quiet"},
        "Shares say how much each feature changes the predictions on the training rows.",
    )  # fmt: skip


def _direction(model: TreeModel, place: int) -> str | None:
    """Which class higher values of a column of the table speak for; None if there is no such."""
    if model.coding is None:
        return _number_direction(model, place)
    used = [i for i in model.selected_variables.tolist() if model.coding.places[i] == place]
    told = []
    for i in used:
        variable, columns = model.coding.variables[i], model.coding.columns_of(i).tolist()
        if variable.kind == CATEGORY:
            one = _level_directions(model, variable, columns)
        else:
            one = _number_direction(model, columns[0])
        if one is not None:
            told.append(f"{shortened(variable.name, 40)} {one}" if len(used) > 1 else one)
    return "; ".join(told) or None


def _number_direction(model: TreeModel, feature: int) -> str | None:
    label = direction(model, feature)
    return None if label is None else f"(higher speaks for {shortened(label, 30)})"


def _level_directions(model: TreeModel, variable: Variable, columns: list[int]) -> str | None:
    """Which classes the weightiest levels of a category speak for."""
    if not variable.shown_levels:
        return None
    sizes = np.abs(model.parameters.weights[columns]).max(axis=1)
    names = [*variable.shown_levels, *[variable.other_name] * variable.other]
    names += [UNKNOWN] * variable.has_missing
    told = []
    for n in np.argsort(-sizes, kind="stable")[: SHOWN.levels]:
        label = direction(model, columns[n])
        if sizes[n] > 0 and label is not None:
            told.append(f"{shortened(names[n], 24)} speaks for {shortened(label, 24)}")
    return f"({', '.join(told)})" if told else None


def _confusion(parent: ET.Element, data: ReportData, point: int) -> None:
    counts = data.confusion(point)
    add(parent, "h3", {}, "Correct and wrong predictions")
    if counts is None:
        add(parent, "p", {}, "This tree was not judged: the work was cut short.")
        return
    said = "A held-out row is predicted by a tree that was trained without it at this strength"
    said += ", and not edited or refitted" if data.edited and point == data.chosen else ""
    add(parent, "p", {"class": "quiet"}, f"{said}; its questions may differ from those above.")
    if len(counts) > SHOWN.classes:
        _rates(parent, data, counts)
        return
    names = [shortened(name) for name in data.classes]
    rows = [
        [name, *(f"{n:,}" for n in row), percent(row[k] / max(row.sum(), 1), 0)]
        for k, (name, row) in enumerate(zip(names, counts, strict=True))
    ]
    table = add_table(
        parent,
        "Held-out rows, by true class (rows) and predicted class (columns)",
        ["class", *names, "right"],
        rows,
        range(1, len(names) + 2),
    )
    for k, line in enumerate(table.iter("tr")):
        if k > 0:
            line[k].set("class", "number hit")


def _rates(parent: ET.Element, data: ReportData, counts: NDArray[np.int64]) -> None:
    """For many classes: how often each is right, and what it is mostly taken for."""
    rows = []
    for k, row in enumerate(counts):
        others = np.where(np.arange(len(row)) == k, 0, row)
        worst = int(np.argmax(others))
        said = f"{shortened(data.classes[worst])} ({others[worst]:,})" if others.any() else ""
        rate = percent(row[k] / max(row.sum(), 1), 0)
        rows.append([shortened(data.classes[k]), f"{row.sum():,}", rate, said])
    head = ["class", "rows", "right", "mostly taken for"]
    add_table(parent, "Held-out rows, by class", head, rows, (1, 2))


def _python(parent: ET.Element, data: ReportData, point: int) -> None:
    add(parent, "h3", {}, "In Python")
    whole = data.python_tree(point)
    if whole is not None:
        _code(parent, "Python line that holds this tree", whole)
        said = "After import softsplit this line gives the same tree without training."
        add(parent, "p", {"class": "quiet"}, said)
    more = add(parent, "details", {"class": "anew"})
    add(more, "summary", {}, "Train a tree with these settings again")
    _code(more, "Python line that trains a tree with these settings", data.python_line(point))
    again = point < len(data.repeatable) and data.repeatable[point]
    said = (
        "It gives this tree again."
        if again
        else "Training starts anew, from several starts, and may end in another tree."
    )
    add(more, "p", {"class": "quiet"}, f"{said} X is the table without its target, y the target.")
    given = fit_options(data.trees[point], data.of_table)
    if again and given is not None:
        others = ", with the options of its fit about columns, class weights and effort"
        said = f"The same on the command line{others if data.of_table is None else ''}:"
        add(more, "p", {"class": "quiet"}, said)
        target = shlex.quote(data.rows.target)
        _code(more, "Command that fits this tree", f"softsplit fit DATA -t {target} {given}")


def _code(parent: ET.Element, label: str, line: str) -> None:
    """A line of Python that can be copied."""
    box = add(parent, "div", {"class": "code"})
    shown = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": label}
    add(add(box, "pre", shown), "code", {}, line)
    add(box, "button", {"type": "button", "class": "copy"}, "Copy")
