"""Try a case: a form with the variables of the tree, and the numbers that its script needs.

The script (case.js) computes what ``predict_proba`` does from the same parameters: scaled values,
scores, gates, the mixture of leaves; and along each variable the nearest value at which the answer
is another one.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from softsplit.data.schema import Column
from softsplit.reading.equations import number
from softsplit.reading.leaf_shares import BELOW
from softsplit.reading.model import TreeModel
from softsplit.reading.summary import BINARY, INTEGER
from softsplit.report.drawing import question_nodes
from softsplit.report.elements import add
from softsplit.report.labels import class_colour, shortened
from softsplit.report.subject import Subject
from softsplit.tree.scaling import FAR, QuantileScaling

MOST_FIELDS = 200
"""A form of more would not be filled in."""


def case_values(subject: Subject) -> dict[str, Any] | None:
    """The chosen tree as plain lists, and the fields of the form; None if it asks nothing."""
    model = subject.drawn(subject.chosen)
    used = np.flatnonzero(np.any(model.parameters.weights, axis=1)).tolist()
    fields = _fields(subject, model, used)
    if not used or len(fields) > MOST_FIELDS:
        return None
    parameters = model.parameters
    return {
        "point": subject.chosen,
        "fields": fields,
        "scales": [_scale(model, j) for j in used],
        "means": [float(model.summary.scaled_mean[j]) for j in used],
        "names": [shortened(model.feature_names[j], 60) for j in used],
        "weights": (parameters.weights[used].T / parameters.n_features).tolist(),
        "thresholds": parameters.thresholds.tolist(),
        "steepness": float(model.steepness),
        "questions": question_nodes(model),
        "shares": model.leaf_shares.T.tolist(),
        "votes": model.leaf_votes.T.tolist(),
        "unsure": model.largest_unsure if model.levels else None,
        "below": BELOW,
        "far": FAR,
        "classes": [shortened(name, 60) for name in subject.classes],
        "colours": [class_colour(k) for k in range(len(subject.classes))],
    }


def _scale(model: TreeModel, feature: int) -> dict[str, Any]:
    """How a value becomes a scaled one."""
    scaling = model.scaling
    if isinstance(scaling, QuantileScaling):
        knots, ranks = scaling.curve(feature)
        return {"knots": knots.tolist(), "ranks": ranks.tolist()}
    arrays = scaling.arrays()
    span = float(arrays["span"][feature])
    # A constant column has no span and counts as 0 throughout.
    return {"low": float(arrays["low"][feature]), "span": span if np.isfinite(span) else None}


def _fields(subject: Subject, model: TreeModel, used: list[int]) -> list[dict[str, Any]]:
    """What the form asks for: a variable each, whatever the number of its columns."""
    row = _typical(subject, model, used)
    place = {j: i for i, j in enumerate(used)}
    fields, first = [], 0
    for column in subject.schema.columns:
        width = len(column.feature_names(subject.schema.coding))
        inside = [j for j in range(first, first + width) if j in place]
        if inside:
            made = {"name": shortened(column.name, 60), "at": [place[j] for j in inside]}
            fields.append(made | _asked(subject, model, column, first, inside, row))
        first += width
    return fields


def _asked(
    subject: Subject, model: TreeModel, column: Column, first: int, inside: list[int], row: Any
) -> dict[str, Any]:
    """The kind of a field, its values, and the one it begins with."""
    if column.levels is not None:
        coding = subject.schema.coding
        coded = column.coded(np.array(column.levels, dtype=object), coding)
        places = [j - first for j in inside]
        now = next(
            (i for i, line in enumerate(coded) if np.array_equal(line, _part(row, first, line))), 0
        )
        texts = [shortened(level, 60) for level in column.levels]
        return {"texts": texts, "codes": coded[:, places].tolist(), "now": now}
    j = inside[0]
    low, high = float(model.summary.low[j]), float(model.summary.high[j])
    kind = model.summary.kinds[j]
    if kind == BINARY:
        now = int(row[j] >= 0.5)
        return {"texts": ["0", "1"], "codes": [[0.0], [1.0]], "now": now}
    return {"low": low, "high": high, "whole": bool(kind == INTEGER), "now": float(row[j])}


def _part(row: Any, first: int, line: Any) -> Any:
    return row[first : first + len(line)]


def _typical(subject: Subject, model: TreeModel, used: list[int]) -> Any:
    """The training row nearest to the middle of all, in scaled units."""
    scaled = model.scaled(subject.X)[:, used]
    return subject.X[int(np.argmin(np.abs(scaled - np.median(scaled, axis=0)).sum(axis=1)))]


def add_case(parent: ET.Element, subject: Subject, values: dict[str, Any]) -> None:
    """The form and the places of its answers."""
    add(
        parent, "p", {},
        "Change a value: the way through the chosen tree lights up in the drawing above, and "
        "probabilities and reasons follow. The form begins with a typical row.",
    )  # fmt: skip
    form = add(parent, "form", {"id": "case", "autocomplete": "off"})
    for i, field in enumerate(values["fields"]):
        _field(form, i, field)
    add(form, "button", {"type": "reset"}, "Back to the typical row")
    said = add(parent, "div", {"class": "case-said"})
    add(said, "p", {"id": "case-answer", "class": "headline", "role": "status"}, "")
    add(said, "ul", {"id": "case-proba", "class": "bars"})
    add(said, "h3", {}, "Why")
    add(said, "div", {"id": "case-why"})
    add(said, "h3", {}, "What would change the answer")
    add(said, "ul", {"id": "case-changes"})
    add(said, "noscript", {}, "This part needs scripts, which are switched off here.")


def _field(form: ET.Element, i: int, field: dict[str, Any]) -> None:
    box = add(form, "div", {"class": "field"})
    key = f"case-{i}"
    label = add(box, "label", {"for": key}, field["name"])
    if "texts" in field:
        choice = add(box, "select", {"id": key, "name": key})
        for n, text in enumerate(field["texts"]):
            chosen = {"selected": "selected"} if n == field["now"] else {}
            add(choice, "option", {"value": str(n), **chosen}, text)
        return
    low, high = field["low"], field["high"]
    span = f"{number(low)} to {number(high)}"
    add(label, "span", {"class": "quiet"}, f" ({span})")
    given = {
        "type": "number", "id": key, "name": key, "step": "1" if field["whole"] else "any",
        "value": repr(int(field["now"]) if field["whole"] else field["now"]),
        "required": "required", "inputmode": "decimal",
    }  # fmt: skip
    add(box, "input", given)
