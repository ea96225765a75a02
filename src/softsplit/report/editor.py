"""Change the tree on the page: thresholds and terms, live figures, and the Python that repeats it.

The script (edit.js) changes the numbers of the chosen tree as ``softsplit.editing.edit`` does,
and asks both trees about the rows that the page holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softsplit.editing.printed import read_gate
from softsplit.fitted.model import TreeModel
from softsplit.reading.outline import OutlineNode, outline
from softsplit.report.report_data import ReportData
from softsplit.support.messages import shortened


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
    if model.coding is not None and model.coding.pointed:
        return None  # points are edited in Python
    used = np.flatnonzero(np.any(model.parameters.weights, axis=1)).tolist()
    asked = [q for q in outline(model, str).questions() if q.split and q.split.features]
    questions = [_question(model, node, used) for node in asked]
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


def _question(model: TreeModel, node: OutlineNode, used: list[int]) -> dict[str, Any]:
    """A question in the units of its text, and how its gate depends on the sum.

    Terms can be changed where the numbers of the text are those of the gate: in a walk, and not in
    a question on one rank that is printed in the units of the data.
    """
    split, gate = node.split, read_gate(model, node.node)
    assert split is not None
    plain = model.walk is not None and (model.scaling.linear or split.ranked)
    # Whole points have no weights, and their threshold is the fewest at which the question holds.
    offset = 1.0 if model.table_coding.pointed else 0.0
    plain = plain and not offset
    return {
        "node": node.node,
        "number": node.number,
        "text": shortened(split.condition(), 200),
        "sign": split.sign,
        "threshold": None if split.lefts is not None else split.threshold + offset,
        "offset": offset,
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
