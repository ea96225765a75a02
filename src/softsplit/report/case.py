"""Try a case: a form with the variables of the tree, and the numbers that its script needs.

The script (case.js) computes what ``predict`` and ``predict_proba`` do from the same parameters:
the walk through the questions; scaled values, scores, gates, the mixture of leaves; and along each
variable the nearest value at which the answer is another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.leaf_shares import BELOW
from softsplit.fitted.model import TreeModel
from softsplit.fitted.ranges import far_limits
from softsplit.fitted.summary import BINARY, INTEGER
from softsplit.fitted.walk import TIE
from softsplit.reading.outline import answer_words, outline, side_classes, side_words
from softsplit.reading.palette import class_colour
from softsplit.report.report_data import ReportData
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shortened
from softsplit.tree.scaling import FAR, QuantileScaling, scaled_rows
from softsplit.variables import Cells, CodedRows, Variable
from softsplit.variables.variable import BOOLEAN, UNKNOWN

MOST_FIELDS = 200
"""A form of more would not be filled in."""

LOOKUP_PARTS = ("points", "edges", "slopes", "knots", "unit")

FURTHEST = 1e308
"""Tables of points do not extrapolate: no number is far outside."""

GAP = Cells(np.array([np.nan]), np.array([True]), np.array([False]))
"""A missing value."""


def case_values(data: ReportData) -> dict[str, Any] | None:
    """The chosen tree as plain lists, and the fields of the form; None if it asks nothing."""
    model = data.drawn(data.chosen)
    used = np.flatnonzero(np.any(model.parameters.weights, axis=1)).tolist()
    right = model.predict_index(data.matrix) == data.labels
    typical = typical_row(model, data.matrix, used, right)
    fields = case_fields(model, data.rows.rows, used, typical)
    if not used or len(fields) > MOST_FIELDS:
        return None
    return tree_values(model, used) | {
        "point": data.chosen,
        "fields": fields,
        "sides": [
            [shortened(model.labels[k], 60) for k in side_classes(model, t)]
            for t in range(model.topology.n_branches)
        ],
        "shares": model.leaf_shares.T.tolist(),
        "votes": model.leaf_votes.T.tolist(),
        "factors": None if model.class_factors is None else model.class_factors.tolist(),
        "walk": walk_values(model, used),
        "below": BELOW,
        "classes": [shortened(name, 60) for name in data.classes],
        "sure": _sure(data),
        "colours": [class_colour(k) for k in range(len(data.classes))],
    }


def tree_values(model: TreeModel, used: list[int]) -> dict[str, Any]:
    """The questions of any tree, and how values become scaled ones, for the columns ``used``."""
    parameters, coding = model.parameters, model.table_coding
    return {
        "scales": [_scale(model, j) for j in used],
        "means": [float(model.summary.scaled_mean[j]) for j in used],
        "names": [shortened(_of_value(model, j, model.feature_names), 60) for j in used],
        "opposites": [shortened(_of_value(model, j, coding.opposites), 60) for j in used],
        "homes": [used.index(min(_hinged(model, j) & set(used))) for j in used],
        "weights": (parameters.weights[used].T / parameters.n_features).tolist(),
        "thresholds": parameters.thresholds.tolist(),
        "steepness": float(model.steepness),
        "questions": [question.node for question in outline(model).questions()],
        "answers": answer_words(model.labels),
        "pointed": _pointed_questions(model, used),
        "far": FAR,
    }


def _pointed_questions(model: TreeModel, used: list[int]) -> dict[int, dict[str, Any]]:
    """Of questions in points, by branch: their columns, and what is said of a sum or a row."""
    asked = {}
    for node in outline(model, lambda name: shortened(name, 60)).questions():
        question = node.split.points if node.split else None
        if question is not None:
            said = question.statement
            asked[node.node] = {
                "columns": [[used.index(c.column), c.name] for c in question.columns],
                "statement": said,
                "said": side_words(model, node) if said else question.answers_in_full,
            }
    return asked


def _sure(data: ReportData) -> dict[str, Any] | None:
    """The confidence at which cases go to a person, and the largest score of each class."""
    if data.held_out is None:
        return None
    limits = np.minimum(data.held_out.thresholds(data.refer), 2.0)  # JSON has no infinity
    return {"level": data.refer, "limits": limits.tolist()}


def walk_values(model: TreeModel, used: list[int]) -> dict[str, Any] | None:
    """The questions that decide the class, and the class of every leaf; None if mixtures do."""
    walk = model.walk
    if walk is None:
        return None
    return {
        "coefficients": walk.coefficients[:, used].tolist(),
        "thresholds": walk.thresholds.tolist(),
        "upwards": walk.upwards.tolist(),
        "ranked": walk.ranked.tolist(),
        "classes": walk.classes.tolist(),
        "tie": TIE,
    }


def _hinged(model: TreeModel, feature: int) -> set[int]:
    """The columns that move together: of a number its value and its hinges, else one alone."""
    coding = model.table_coding
    variable = int(coding.homes[feature])
    first, count = coding.firsts[variable], coding.variables[variable].n_hinges
    together = set(range(first, first + 1 + count))
    return together if feature in together and count else {feature}


def _of_value(model: TreeModel, feature: int, names: Sequence[str]) -> str:
    """The name of a column; that of its number for a hinge, of its variable for a look-up."""
    coding = model.table_coding
    if coding.pointed:
        return coding.variables[coding.homes[feature]].name
    return names[min(_hinged(model, feature))]


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


def case_fields(
    model: TreeModel, rows: CodedRows, used: list[int], typical: int
) -> list[dict[str, Any]]:
    """What the form asks for: a variable each, whatever the number of its columns.

    It begins with the row ``typical``.
    """
    row, coding = rows.X[typical], rows.coding
    place = {j: i for i, j in enumerate(used)}
    fields: list[dict[str, Any]] = []
    for i, variable in enumerate(coding.variables):
        columns = coding.columns_of(i).tolist()
        if not place.keys() & set(columns):
            continue
        # 1. A list of levels, or yes and no.
        if variable.levels or variable.kind == BOOLEAN:
            fields.append(_choice(variable, columns, place, row))
            if variable.lookups:
                fields[-1]["now"] = position_of(variable, rows.cells[i], typical)
            continue
        if variable.lookups:
            now = rows.cells[i].part(np.array([typical]))
            fields.append(_pointed(model, i, place, float(variable.imputed(now)[0])))
            continue
        # 2. A number, with its hinges; a date is one too.
        inside = [n for n in range(1 + variable.n_hinges) if columns[n] in place]
        if inside:
            name = shortened(model.feature_names[columns[0]], 60)
            asked = {
                "name": name,
                "at": [place[columns[n]] for n in inside],
                "knots": [variable.knots[n - 1] if n else None for n in inside],
            }
            asked |= _number(model, columns[0], float(row[columns[0]]))
            if "texts" not in asked and (variable.has_missing or coding.named):
                fields.append(asked | _empty(variable, columns, place, asked))
                continue
            fields.append(asked)
        # 3. Whether the value is known, where only that is asked for.
        if variable.has_missing and columns[-1] in place:
            fields.append(_known(variable, columns, place, row))
    return fields


def _pointed(model: TreeModel, i: int, place: dict[int, int], now: float) -> dict[str, Any]:
    """A number, or days, with the look-ups that are in use."""
    variable, columns = model.table_coding.variables[i], model.table_coding.columns_of(i).tolist()
    used = [n for n, j in enumerate(columns) if j in place]
    far = (
        {}
        if any(own.slopes for own in variable.lookups)
        else {"least": -FURTHEST, "most": FURTHEST}
    )
    asked = {
        "name": shortened(replace(variable, lookups=()).column_names[0], 60),
        "lookups": [
            {name: getattr(variable.lookups[n], name) for name in LOOKUP_PARTS} for n in used
        ],
    }
    asked |= _number(model, columns[0], now, choice=False) | far
    asked |= _empty(variable, columns, place, asked)
    return asked | ({"counts": ""} if variable.has_missing else {})


def _choice(
    variable: Variable, columns: list[int], place: dict[int, int], row: FloatArray
) -> dict[str, Any]:
    """One of the levels of a variable; what is rare or unknown too, where training had it."""
    count = 2 if variable.kind == BOOLEAN else len(variable.levels)
    values = [float(i) for i in range(count)]
    texts = [str(variable.display(value)) for value in values]
    strange, missing = [False] * len(values), [False] * len(values)
    for shown, word, marks in (
        (
            variable.places_others if variable.lookups else variable.other,
            variable.other_name,
            strange,
        ),
        (variable.has_missing, UNKNOWN, missing),
    ):
        if shown:
            texts.append(word)
            values.append(np.nan)
            strange.append(marks is strange)
            missing.append(marks is missing)
    coded = variable.coded(Cells(np.array(values), np.array(missing), np.array(strange)))
    inside = [n for n, j in enumerate(columns) if j in place]
    same = [i for i, line in enumerate(coded) if np.allclose(line, row[columns])]
    return {
        "name": shortened(variable.name, 60),
        "at": [place[columns[n]] for n in inside],
        "texts": [shortened(text, 60) for text in texts],
        "codes": coded[:, inside].tolist(),
        "pointed": bool(variable.lookups),
        "now": same[0] if same else 0,
    }


def position_of(variable: Variable, cells: Cells, row: int) -> int:
    """The place of the value of a row among the texts of ``_choice``."""
    count = 2 if variable.kind == BOOLEAN else len(variable.levels)
    if cells.missing[row] and variable.has_missing:
        return count + variable.places_others
    return int(variable.imputed(cells.part(np.array([row])))[0])


def _empty(
    variable: Variable, columns: list[int], place: dict[int, int], asked: dict[str, Any]
) -> dict[str, Any]:
    """What an empty number counts as, with the indicator of a missing value if it is in use."""
    used = [n for n, j in enumerate(columns) if j in place]
    middle = float(variable.middle)
    return {
        "at": [place[columns[n]] for n in used],
        "missing": variable.coded(GAP)[0, used].tolist(),
        "middle": float(np.rint(middle)) if asked["whole"] else middle,
        "counts": variable.display_imputed,
    }


def _known(
    variable: Variable, columns: list[int], place: dict[int, int], row: FloatArray
) -> dict[str, Any]:
    """Whether a number is known; an unknown one counts as the middle, and something on top."""
    coded = variable.coded(GAP)[0].tolist()
    moving = [(j, code) for j, code in zip(columns[:-1], coded, strict=False) if j in place]
    return {
        "name": shortened(f"Is {variable.unknown_name} known?", 60),
        "at": [place[columns[-1]], *(place[j] for j, _ in moving)],
        "texts": ["known", UNKNOWN],
        "codes": [[0.0], [1.0, *(code for _, code in moving)]],
        "now": int(row[columns[-1]] >= 0.5),
    }


def _number(model: TreeModel, feature: int, now: float, *, choice: bool = True) -> dict[str, Any]:
    """The range of a number, and the one it begins with; 0 and 1 may be a ``choice``."""
    low, high = float(model.summary.low[feature]), float(model.summary.high[feature])
    kind = model.summary.kinds[feature]
    if kind == BINARY and choice:
        return {"texts": ["0", "1"], "codes": [[0.0], [1.0]], "now": int(now >= 0.5)}
    least, most = far_limits(model, feature)
    return {
        "low": low, "high": high, "least": least, "most": most, "now": now,
        "whole": kind in (BINARY, INTEGER),
    }  # fmt: skip


def typical_row(model: TreeModel, X: FloatArray, used: list[int], right: NDArray[np.bool_]) -> int:
    """A row of the leaf of most rows, predicted ``right`` and in the middle of its like."""
    leaves = model.arrive(X)
    most = np.bincount(leaves, minlength=model.topology.n_leaves).argmax()
    alike = np.flatnonzero((leaves == most) & right)
    rows = alike if len(alike) else np.arange(len(leaves))
    scaled = scaled_rows(model.scaling, np.asarray(X[rows], dtype=float))[:, used]
    return int(rows[np.argmin(np.abs(scaled - np.median(scaled, axis=0)).sum(axis=1))])


WAYS = {"free": "may change", "fixed": "stays", "less": "only less", "more": "only more"}
"""What the form lets a value do in a change."""
