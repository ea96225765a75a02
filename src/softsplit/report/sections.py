"""The parts of the report that do not depend on the slider."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

import numpy as np

from softsplit.reading.equations import number
from softsplit.reading.outline import outline
from softsplit.reading.palette import class_colour
from softsplit.report.chart import path_chart
from softsplit.report.elements import add, add_table
from softsplit.report.labels import counted, percent, shortened, with_interval
from softsplit.report.measures import (
    add_curves,
    add_figures,
    add_threshold,
    rare_sentence,
    verdict,
)
from softsplit.report.panels import headline, panel, strength_text
from softsplit.report.subject import Subject
from softsplit.support.messages import visible
from softsplit.variables import Cells, Variable
from softsplit.variables.variable import BOOLEAN, DATE, ORDERED

OPEN_ROWS = 20
"""Tables up to this length are shown open."""


def title_of(subject: Subject) -> str:
    return f"A tree for {shortened(subject.rows.target, 60)}"


def add_header(parent: ET.Element, subject: Subject) -> None:
    header = add(parent, "header")
    add(header, "h1", {}, title_of(subject))
    rows, columns = len(subject.y), len(subject.rows.coding.names)
    parts = [f"{rows:,} rows", f"{columns:,} columns", f"{len(subject.classes)} classes"]
    add(header, "p", {"class": "lead"}, f"{shortened(subject.name, 60)}: {', '.join(parts)}")


def add_summary(parent: ET.Element, subject: Subject) -> None:
    part = section(parent, "summary", "In short")
    found, tree = subject.lead(subject.merits(subject.chosen)), subject.tree
    cards = add(part, "div", {"class": "cards"})
    value = "not judged" if found is None else percent(found.value)
    note = "" if found is None else f"between {percent(found.low)} and {percent(found.high)}"
    name = f"{subject.measure} on rows left out"
    if subject.behind_twins:  # what others reach is no figure of this tree
        value, note = percent(subject.in_training), "more cannot be expected on new rows"
        name = f"{subject.measure} on its own training rows"
    _card(cards, name, value, note)
    rare = None if subject.rare is None else subject.class_merits(subject.chosen, subject.rare)
    if subject.rare is not None and rare is not None and rare.found is not None:
        name = shortened(subject.classes[subject.rare], 40)
        ends = f"between {percent(rare.found.low, 0)} and {percent(rare.found.high, 0)}"
        _card(cards, f"of class {name} are found", percent(rare.found.value, 0), ends)
    used = f"{len(tree.selected_features_)} of {subject.n_variables}"
    questions = len(outline(tree.tree_).questions())
    _card(cards, "features used", used, f"in {counted(questions, 'question')}")
    told = rare_sentence(subject, subject.chosen)
    if told is not None:
        add(part, "p", {"id": "rare"}, told)
    add(part, "p", {"id": "verdict"}, verdict(subject))


def add_quality(parent: ET.Element, subject: Subject) -> None:
    part = section(parent, "quality", "How good it is")
    add_figures(part, subject)
    add_curves(part, subject)
    add_threshold(part, subject)


def add_explorer(parent: ET.Element, subject: Subject) -> None:
    part = section(parent, "explorer", "The tree, and its rivals along the path")
    n_points = len(subject.trees)
    if n_points > 1:
        controls = add(part, "div", {"class": "controls"})
        controls.append(path_chart(subject))
        add(
            controls, "label", {"for": "slider"},
            "Strength of the penalty: weak uses more features, strong fewer",
        )  # fmt: skip
        slider = {
            "type": "range", "id": "slider", "min": "0", "max": str(n_points - 1), "step": "1",
            "value": str(subject.chosen), "autocomplete": "off",
            "aria-valuetext": headline(subject, subject.chosen),
        }  # fmt: skip
        add(controls, "input", slider)
        add(controls, "button", {"type": "button", "id": "back"}, "Back to the chosen tree")
    add(
        part, "p", {"id": "headline", "class": "headline", "role": "status"},
        headline(subject, subject.chosen),
    )  # fmt: skip
    add(part, "p", {"id": "rule"}, rule_sentence(subject))
    panels = add(part, "div", {"id": "panels"})
    for point in range(n_points):
        panels.append(panel(subject, point))
    if n_points > 1:
        _path_table(part, subject)


def rule_sentence(subject: Subject) -> str:
    """Why this tree and no other, and what the others are."""
    why = dict(subject.story).get("Settings", "it is the tree that was given")
    said = (
        f"Why tree {subject.chosen + 1}: {why}."
        if len(subject.trees) > 1
        else f"Why this one: {why}."
    )
    if len(subject.trees) == 1:
        return said
    found = [subject.lead(subject.merits(i)) for i in range(len(subject.trees))]
    own, sizes = found[subject.chosen], [len(t.selected_features_) for t in subject.trees]
    simpler = [
        i
        for i, value in enumerate(found)
        if own is not None
        and value is not None
        and i != subject.chosen
        and 0 < sizes[i] < sizes[subject.chosen]
        and value.value >= own.value
    ]
    if simpler:
        i = max(simpler, key=lambda i: (found[i] or own, -sizes[i]))
        said += (
            f" On the rows left out tree {i + 1}, with {counted(sizes[i], 'feature')}, has no "
            f"lower {subject.measure}: it may serve as well."
        )
    return said + (
        " The others are those that no tree with as few features beats; move the slider for a "
        "simpler or a more accurate one."
    )


def _path_table(parent: ET.Element, subject: Subject) -> None:
    details = add(parent, "details", {"id": "path"})
    add(details, "summary", {}, "All trees of the path as a table")
    rows = []
    for i, tree in enumerate(subject.trees):
        mark = " (chosen)" if i == subject.chosen else ""
        weights = np.count_nonzero(tree.weights_)
        rows.append(
            [
                f"{i + 1}{mark}",
                strength_text(tree),
                with_interval(subject.lead(subject.merits(i))),
                str(len(tree.selected_features_)),
                str(weights),
            ]
        )
    head = ["tree", "strength", subject.measure, "features", "coefficients"]
    add_table(details, "Trees from weak to strong penalty", head, rows, (1, 2, 3, 4))


def add_data(parent: ET.Element, subject: Subject) -> None:
    part = section(parent, "data", "The data")
    counts = np.bincount(subject.labels, minlength=len(subject.classes))
    listed = add(part, "ul", {"class": "classes"})
    for k, name in enumerate(subject.classes[:OPEN_ROWS]):
        item = add(listed, "li")
        swatch = add(
            item, "svg", {"class": "swatch", "viewBox": "0 0 10 10", "aria-hidden": "true"}
        )
        add(swatch, "rect", {"width": "10", "height": "10", "rx": "2", "fill": class_colour(k)})
        share = percent(counts[k] / len(subject.y), 0)
        add(
            item,
            "span",
            {"title": visible(name)},
            f"{shortened(name, 60)}: {counts[k]:,} rows, {share}",
        )
    if subject.rows.dropped_rows:
        lost = f"{subject.rows.dropped_rows:,} rows without a class were left out."
        add(part, "p", {}, lost)
    rows = _column_rows(subject)
    holder = part
    if len(rows) > OPEN_ROWS:
        holder = add(part, "details")
        add(holder, "summary", {}, f"All {len(rows)} columns")
    head = ["column", "kind", "values", "missing"]
    add_table(holder, "Columns of the table", head, rows, (3,))


def _column_rows(subject: Subject) -> list[list[str]]:
    """Columns in the order of the table: what they are, what they hold, how often nothing."""
    coding = subject.rows.coding
    read = dict(zip(coding.places, subject.rows.rows.cells, strict=True))
    known = dict(zip(coding.places, coding.variables, strict=True))
    reasons = dict(coding.left_out)
    rows = []
    for place, name in enumerate(coding.names):
        if place not in known and name not in reasons:
            continue  # of a wide sparse matrix: it took no part
        if place not in known:
            rows.append([shortened(name, 60), "left out", reasons.get(name, ""), ""])
            continue
        kind, said = _described(known[place], read[place])
        rows.append([shortened(name, 60), kind, said, f"{int(read[place].gaps.sum()):,}"])
    return rows


def _described(variable: Variable, cells: Cells) -> tuple[str, str]:
    """What a variable is, and its values."""
    if variable.levels:
        shown = ", ".join(shortened(level, 24) for level in variable.levels[:6])
        more = f" and {len(variable.levels) - 6} more" if len(variable.levels) > 6 else ""
        order = ", in order" if variable.kind == ORDERED else ""
        return f"{len(variable.levels)} levels{order}", shown + more
    numbers = cells.numbers[~cells.gaps]
    if not len(numbers):
        return "no values", ""
    if variable.kind == BOOLEAN:
        return "true or false", f"{percent(float(numbers.mean()), 0)} true"
    ends = [variable.told(float(value)) for value in np.quantile(numbers, [0, 0.5, 1])]
    low, middle, high = (e if isinstance(e, str) else number(e) for e in ends)
    kind = "dates" if variable.kind == DATE else "numbers"
    return kind, f"{low} to {high}, median {middle}"


def add_story(parent: ET.Element, story: Sequence[tuple[str, str]]) -> None:
    part = section(parent, "story", "How it was fitted")
    listed = add(part, "dl", {"class": "story"})
    for name, value in story:
        pair = add(listed, "div")
        add(pair, "dt", {}, name)
        add(pair, "dd", {}, value)


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
