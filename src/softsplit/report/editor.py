"""Change the tree on the page: thresholds and terms, live figures, and the Python that repeats it.

The script (edit.js) changes the numbers of the chosen tree as ``softsplit.editing.edit`` does,
and asks both trees about the rows that the page holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from softsplit.editing.edit import read_gate
from softsplit.fitted.model import TreeModel
from softsplit.reading.outline import OutlineNode, outline
from softsplit.report.elements import add
from softsplit.report.pages import shortened
from softsplit.report.report_data import ReportData


@dataclass(frozen=True)
class EditorOptions:
    """What the page holds for edits."""

    cells: int = 20_000
    """Numbers of the rows that the page holds, altogether."""

    terms: int = 60
    """Terms of all questions; a tree with more is not changed by hand on a page."""


OPTIONS = EditorOptions()

FIGURES = (
    ("accuracy", "accuracy"),
    ("balanced", "balanced accuracy"),
    ("loss", "log-loss"),
    ("area", "area under the ROC curve"),
)


def editor_values(data: ReportData) -> dict[str, Any] | None:
    """The questions that can be changed, and rows with their classes; None if there are none."""
    model = data.drawn(data.chosen)
    used = np.flatnonzero(np.any(model.parameters.weights, axis=1)).tolist()
    asked = [q for q in outline(model, str).questions() if q.split and q.split.features]
    questions = [_question(model, found, used) for found in asked]
    n_terms = sum(len(question["terms"]) for question in questions)
    if not questions or n_terms > OPTIONS.terms or not data.page_rows:
        return None
    matrix, labels = data.matrix, data.labels
    if data.held_out_rows is not None:
        matrix = data.held_out_rows.matrix
        labels = np.searchsorted(data.tree.classes_, data.held_out_rows.y)
    count = min(len(matrix), data.page_rows, max(1, OPTIONS.cells // len(used)))
    rows = np.unique(np.linspace(0, len(matrix) - 1, count).astype(int))
    return {
        "questions": questions,
        "rows": matrix[rows][:, used].tolist(),
        "labels": labels[rows].tolist(),
        "of": len(matrix),
    }


def _question(model: TreeModel, found: OutlineNode, used: list[int]) -> dict[str, Any]:
    """A question in the units of its text, and how its gate depends on the sum.

    Terms can be changed where the numbers of the text are those of the gate: in a walk, and not in
    a question on one rank that is printed in the units of the data.
    """
    split, gate = found.split, read_gate(model, found.node)
    assert split is not None
    plain = model.walk is not None and (model.scaling.linear or split.ranked)
    return {
        "node": found.node,
        "number": found.number,
        "text": shortened(split.condition(), 200),
        "sign": split.sign,
        "threshold": None if split.lefts is not None else split.threshold,
        "slope": gate.slope,
        "centre": gate.centre,
        "ranked": split.ranked,
        "terms": [
            {
                "at": used.index(j),
                "name": shortened(name, 60),
                "feature": model.feature_names[j],
                "value": float(gate.coefficients[j]),
            }
            for j, name in zip(split.features, split.names, strict=True)
            if plain and split.lefts is None
        ],
    }


def add_editor(parent: ET.Element, data: ReportData, values: dict[str, Any]) -> None:
    """The form and the places of its figures."""
    shown, total = len(values["rows"]), values["of"]
    kind = "training" if data.held_out_rows is None else "held-out"
    part = f"{shown:,} of the" if shown < total else "the"
    part = f"{part} {total:,} {kind} rows"
    advice = (
        "The tree was trained on them, so compare before and after, not with held-out figures."
        if data.held_out_rows is None
        else "The tree was not trained on them."
    )
    add(
        parent, "p", {},
        "Change a threshold or a coefficient of the chosen tree; 0 removes a term. The figures are "
        f"those of {part}. {advice}",
    )  # fmt: skip
    form = add(parent, "form", {"id": "edit", "autocomplete": "off"})
    for n, question in enumerate(values["questions"]):
        _fields(form, n, question)
    add(form, "button", {"type": "reset"}, "Back to the tree as it is")
    said = add(parent, "div", {"class": "edit-said"})
    add(said, "p", {"id": "edit-changed", "class": "headline", "role": "status"}, "")
    caption = f"Figures on {part}"
    aside = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": caption}
    table = add(add(said, "div", aside), "table")
    add(table, "caption", {}, caption)
    head = add(add(table, "thead"), "tr")
    for name in ("figure", "before", "after"):
        add(head, "th", {"scope": "col"}, name)
    body = add(table, "tbody")
    for key, name in FIGURES:
        if key == "area" and len(data.classes) > 2:
            continue
        line = add(body, "tr")
        add(line, "th", {"scope": "row"}, name)
        for when in ("before", "after"):
            add(line, "td", {"class": "number", "data-figure": key, "data-when": when}, "")
    add(said, "p", {"class": "quiet"}, "The same in Python, for the fitted tree:")
    box = add(said, "div", {"class": "code"})
    shown_code = {"class": "scroll", "tabindex": "0", "role": "region",
                  "aria-label": "Python that repeats the edits"}  # fmt: skip
    add(add(box, "pre", shown_code), "code", {"id": "edit-code"}, "")
    add(box, "button", {"type": "button", "class": "copy"}, "Copy")
    add(said, "noscript", {}, "This part needs scripts, which are switched off here.")


def _fields(form: ET.Element, n: int, question: dict[str, Any]) -> None:
    group = add(form, "fieldset")
    add(group, "legend", {}, f"Question {question['number']}")
    add(group, "p", {"class": "quiet"}, f"{question['text']}?")
    if question["threshold"] is None:
        add(group, "p", {"class": "quiet"}, "It asks whether something holds: no number to change.")
        return
    box = add(group, "div", {"class": "fields"})
    for i, term in enumerate(question["terms"]):
        _number(box, f"edit-{n}-{i}", term["name"], term["value"])
    _number(box, f"edit-{n}-threshold", f"threshold ({question['sign']})", question["threshold"])


def _number(box: ET.Element, key: str, name: str, value: float) -> None:
    field = add(box, "div", {"class": "field"})
    add(field, "label", {"for": key}, name)
    add(
        field, "input",
        {"type": "number", "id": key, "name": key, "step": "any", "value": repr(float(value)),
         "required": "required", "inputmode": "decimal"},
    )  # fmt: skip
