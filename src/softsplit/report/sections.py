"""The parts of the report that do not depend on the slider, and the glossary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from softsplit.reading.outline import answer_words, outline
from softsplit.reading.palette import class_colour
from softsplit.report.charts import path_chart
from softsplit.report.elements import add, add_table
from softsplit.report.measures import (
    add_curves,
    add_figures,
    add_groups,
    add_referral,
    add_threshold,
    class_sentence,
    verdict,
)
from softsplit.report.pages import percent, shortened, with_interval
from softsplit.report.panels import headline, panel, strength_text
from softsplit.report.report_data import ReportData
from softsplit.support.messages import counted, visible
from softsplit.support.numbers import number
from softsplit.variables import Cells, Variable
from softsplit.variables.variable import BOOLEAN, DATE, ORDERED

OPEN_ROWS = 20
"""Tables up to this length are shown open."""


def add_summary(parent: ET.Element, data: ReportData) -> None:
    part = section(parent, "summary", "In short")
    found, tree = data.lead(data.metrics(data.chosen)), data.tree
    cards = add(part, "div", {"class": "cards"})
    if data.watched is not None:
        most, base = data.base_rate
        always = f"accuracy of always predicting {shortened(most, 40)}"
        _card(cards, "base rate", percent(base), always)
    value = "not judged" if found is None else percent(found.value)
    note = "" if found is None else f"between {percent(found.low)} and {percent(found.high)}"
    name = f"{data.measure} on held-out rows"
    of_others = data.undertrained or data.edited
    if of_others:  # what others reach is no figure of this tree
        value, note = percent(data.in_training), "more cannot be expected on new rows"
        name = f"{data.measure} on its own training rows"
    _card(cards, name, value, note)
    unseen = data.in_held_out_rows
    if unseen is not None and data.held_out_rows is not None:
        ends = f"between {percent(unseen.low)} and {percent(unseen.high)}"
        name = f"accuracy on the {len(data.held_out_rows.y):,} rows given as held out"
        _card(cards, name, percent(unseen.value), ends)
    if data.watched is not None and not of_others:
        one = data.class_metrics(data.chosen, data.watched)
        name = shortened(data.classes[data.watched], 40)
        for share, what in (
            (one and one.found, f"of class {name} are found (recall)"),
            (one and one.trusted, f"of predicted {name} are right (precision)"),
        ):
            if share is not None:
                ends = f"between {percent(share.low, 0)} and {percent(share.high, 0)}"
                _card(cards, what, percent(share.value, 0), ends)
    used = f"{len(tree.selected_features_)} of {data.n_variables}"
    questions = len(outline(tree.tree_).questions())
    _card(cards, "features used", used, f"in {counted(questions, 'question')}")
    told = None if data.edited else class_sentence(data, data.chosen)
    if told is not None:
        add(part, "p", {"id": "classes"}, told)
    add(part, "p", {"id": "verdict"}, verdict(data))


def add_quality(parent: ET.Element, data: ReportData) -> None:
    part = section(parent, "quality", "How good it is")
    add_figures(part, data)
    add_curves(part, data)
    add_threshold(part, data)
    add_referral(part, data)
    if data.by_group is not None:
        add_groups(section(parent, "groups", "By group"), data)


def add_explorer(parent: ET.Element, data: ReportData) -> None:
    part = section(parent, "explorer", "Simpler and more detailed trees")
    n_points = len(data.trees)
    if n_points > 1:
        controls = add(part, "div", {"class": "controls"})
        controls.append(path_chart(data))
        add(
            controls, "label", {"for": "slider"},
            "Strength of the penalty: weak uses more features, strong fewer",
        )  # fmt: skip
        slider = {
            "type": "range", "id": "slider", "min": "0", "max": str(n_points - 1), "step": "1",
            "value": str(data.chosen), "autocomplete": "off",
            "aria-valuetext": headline(data, data.chosen),
        }  # fmt: skip
        add(controls, "input", slider)
        add(controls, "button", {"type": "button", "id": "back"}, "Back to the chosen tree")
    add(
        part, "p", {"id": "headline", "class": "headline", "role": "status"},
        headline(data, data.chosen),
    )  # fmt: skip
    add(part, "p", {"id": "rule"}, rule_sentence(data))
    if data.missing:
        add(
            part, "p", {"class": "missing"},
            f"Missing here: {counted(data.missing, 'tree')} at other strengths. "
            f"{data.cut_by[0].upper()}{data.cut_by[1:]} before; {data.more('all of them')}.",
        )  # fmt: skip
    panels = add(part, "div", {"id": "panels"})
    for point in range(n_points):
        panels.append(panel(data, point))
    if n_points > 1:
        _path_table(part, data)


def rule_sentence(data: ReportData) -> str:
    """Why this tree and no other, and what the others are."""
    why = dict(data.provenance).get("Settings", "it is the tree that was given")
    said = f"Why tree {data.chosen + 1}: {why}." if len(data.trees) > 1 else f"Why this one: {why}."
    if len(data.trees) == 1:
        return said
    found = [data.lead(data.metrics(i)) for i in range(len(data.trees))]
    own = None if data.edited else found[data.chosen]
    sizes = [len(t.selected_features_) for t in data.trees]
    simpler = [
        i
        for i, value in enumerate(found)
        if own is not None
        and value is not None
        and i != data.chosen
        and 0 < sizes[i] < sizes[data.chosen]
        and value.value >= own.value
    ]
    if simpler:
        i = max(simpler, key=lambda i: (found[i] or own, -sizes[i]))
        said += (
            f" On the held-out rows tree {i + 1}, with {counted(sizes[i], 'feature')}, has no "
            f"lower {data.measure}: it may serve as well."
        )
    return said + (
        " The other stops are the best trees for their number of features; move the slider to see "
        "them."
    )


def _path_table(parent: ET.Element, data: ReportData) -> None:
    details = add(parent, "details", {"id": "path"})
    add(details, "summary", {}, "All trees of the path as a table")
    rows = []
    for i, tree in enumerate(data.trees):
        mark = " (chosen)" if i == data.chosen else ""
        if mark and data.edited:
            mark = f" (chosen; {data.measure} of {data.own_title})"
        weights = np.count_nonzero(tree.weights_)
        rows.append(
            [
                f"{i + 1}{mark}",
                strength_text(tree),
                with_interval(data.lead(data.metrics(i))),
                str(len(tree.selected_features_)),
                str(weights),
            ]
        )
    head = ["tree", "strength", data.measure, "features", "coefficients"]
    add_table(details, "Trees from weak to strong penalty", head, rows, (1, 2, 3, 4))


def add_data(parent: ET.Element, data: ReportData) -> None:
    part = section(parent, "data", "The data")
    counts = np.bincount(data.labels, minlength=len(data.classes))
    listed = add(part, "ul", {"class": "classes"})
    for k, name in enumerate(data.classes[:OPEN_ROWS]):
        item = add(listed, "li")
        swatch = add(
            item, "svg", {"class": "swatch", "viewBox": "0 0 10 10", "aria-hidden": "true"}
        )
        add(swatch, "rect", {"width": "10", "height": "10", "rx": "2", "fill": class_colour(k)})
        share = percent(counts[k] / len(data.y), 0)
        add(
            item,
            "span",
            {"title": visible(name)},
            f"{shortened(name, 60)}: {counted(counts[k], 'row')}, {share}",
        )
    if data.rows.dropped_rows:
        lost = f"{data.rows.dropped_rows:,} rows without a class were left out."
        add(part, "p", {}, lost)
    rows = _column_rows(data)
    holder = part
    if len(rows) > OPEN_ROWS:
        holder = add(part, "details")
        add(holder, "summary", {}, f"All {len(rows)} columns")
    head = ["column", "kind", "values", "missing"]
    add_table(holder, "Columns of the table", head, rows, (3,))


def _column_rows(data: ReportData) -> list[list[str]]:
    """Columns in the order of the table: what they are, what they hold, how often nothing."""
    coding = data.rows.coding
    known: dict[int, list[tuple[Variable, Cells]]] = {}
    for i, place in enumerate(coding.places):
        known.setdefault(place, []).append((coding.variables[i], data.rows.rows.cells[i]))
    reasons = dict(coding.left_out)
    rows = []
    for place, name in enumerate(coding.names):
        if place not in known and name not in reasons:
            continue  # of a wide sparse matrix: it took no part
        if place not in known:
            rows.append([shortened(name, 60), "left out", reasons.get(name, ""), ""])
            continue
        variable, cells = known[place][0]
        kind, said = _described(variable, cells)
        parts = [shortened(part.name, 60) for part, _ in known[place] if part.part]
        if parts:  # of a date
            kind, said = "dates", "; ".join([*([said] if not variable.part else []), *parts])
        rows.append([shortened(name, 60), kind, said, f"{int(cells.missing.sum()):,}"])
    return rows


def _described(variable: Variable, cells: Cells) -> tuple[str, str]:
    """What a variable is, and its values."""
    if variable.levels:
        shown = ", ".join(shortened(level, 24) for level in variable.levels[:6])
        more = f" and {len(variable.levels) - 6} more" if len(variable.levels) > 6 else ""
        order = ", in order" if variable.kind == ORDERED else ""
        return f"{len(variable.levels)} levels{order}", shown + more
    numbers = cells.numbers[~cells.missing]
    if not len(numbers):
        return "no values", ""
    if variable.kind == BOOLEAN:
        return "true or false", f"{percent(float(numbers.mean()), 0)} true"
    ends = [variable.display(float(value)) for value in np.quantile(numbers, [0, 0.5, 1])]
    low, middle, high = (e if isinstance(e, str) else number(e) for e in ends)
    kind = "dates" if variable.kind == DATE else "numbers"
    return kind, f"{low} to {high}, median {middle}"


def _card(parent: ET.Element, name: str, value: str, note: str) -> None:
    card = add(parent, "div", {"class": "card"})
    add(card, "p", {"class": "value"}, value)
    add(card, "p", {"class": "what"}, name)
    if note:
        add(card, "p", {"class": "quiet"}, note)


def section(parent: ET.Element, name: str, title: str) -> ET.Element:
    """A part of the page with its heading."""
    made = add(parent, "section", {"id": name, "aria-labelledby": f"{name}-title"})
    add(made, "h2", {"id": f"{name}-title"}, title)
    return made


# --- Words that the page, the texts and the documents use in one sense each ----------------------


GLOSSARY = {
    "question": "What a box of the tree asks of a row: is a weighted sum of some features above "
    "(or below) a number? If it is, the answer is {yes} and the row goes left, otherwise right. "
    "A sum equal to the number is {no}.",
    "walk": "The way of one row through the tree: {yes} or {no} at every question, down to a leaf. "
    "The class of that leaf is predicted.",
    "leaf": "Where a walk ends. It has a class, a number of training rows, and their shares by "
    "class.",
    "mixture": "The class probabilities of all leaves, each weighted by the probability of "
    "reaching it. Class probabilities are computed in this way.",
    "sure": "Of a tree that predicts by the mixture: an answer is sure if it has a probability of "
    "95 % or more.",
    "feature": "A column of the table that the tree may use. A column of text is one feature, "
    "whatever the number of its levels; a question may weigh each level by itself.",
    "term": "One summand of a question. A feature that bends or has levels has several; max_terms "
    "limits the features.",
    "strength": "How much a feature and a coefficient must improve the fit to stay in the tree. "
    "A weak penalty keeps many, a strong one few.",
    "steepness": "How quickly a question passes from one answer to the other.",
    "held out": "Rows that a model has not seen in training. Figures on held-out rows estimate "
    "those on new rows.",
    "interval": "The range of a figure, given the number of rows: such an interval contains the "
    "true figure 95 times in 100.",
    "balanced accuracy": "The mean over the classes of the share of correct predictions in each.",
    "rare": "A class with less than a fifth of an even share of the rows, that is under 10 % of "
    "two classes.",
}


def glossary(labels: Iterable[Any] = ()) -> dict[str, str]:
    """The glossary with the words for answers that a tree of these classes uses."""
    yes, no = answer_words(labels)
    return {word: meaning.format(yes=yes, no=no) for word, meaning in GLOSSARY.items()}
