"""A tree as a table: one row for each question and each end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from softsplit.fitted.model import TreeModel
from softsplit.reading.outline import OutlineNode, outline
from softsplit.support.arrays import wilson


def tree_frame(model: TreeModel) -> pd.DataFrame:
    """One row per question and leaf of the printed tree, in its order.

    Columns
    -------
    node, parent : int
        Numbers as of ``apply``: the root is 0, the children of t are 2 t + 1 (yes) and 2 t + 2.
        The parent of the root is missing.
    depth : int
    answer : bool
        Whether the row is reached by yes; missing at the root.
    question : int
        Number of a question in the text of the tree; missing at a leaf.
    condition : str
        Of a question: where it holds, the answer is yes.
    class : object
        Of a leaf, the class that is predicted there.
    rows : float
        Of a leaf, the training rows that arrive; missing where they are not known.
    p_<class> : float
        Of a leaf, its class probabilities, which are mixed over all leaves.
    formula : str
        Of a leaf that predicts a number, in place of its class and what follows; ``mean`` and
        ``error`` are those of its training rows.
    low_<class>, high_<class> : float
        Of a leaf, the 95 % interval of the share of the class among the training rows that arrive
        there, by Wilson; missing where they are not known.
    """
    lines = [_line(model, node) for node in outline(model, str).walk()]
    frame = pd.DataFrame(lines, columns=list(lines[0]))
    for name, kind in (("parent", "Int64"), ("question", "Int64"), ("answer", "boolean")):
        frame[name] = frame[name].astype(kind)
    return frame


def _line(model: TreeModel, place: OutlineNode) -> dict[str, Any]:
    node, end = place.node, place.split is None
    proba = model.leaf_shares[:, place.leaf] if end else np.full(len(model.classes), np.nan)
    numbers = model.numbers
    line: dict[str, Any] = {
        "node": node,
        "parent": (node - 1) // 2 if node else None,
        "depth": place.depth,
        "answer": None if place.side is None else place.side == 0,
        "question": place.number or None,
        "condition": place.split.condition() if place.split is not None else None,
    }
    rows = _rows(model, place) if end else np.nan
    if numbers is not None:
        line |= {"formula": place.label or None, "rows": rows}
        for name, known in (("mean", numbers.means), ("error", numbers.errors)):
            line[name] = float(known[place.leaf]) if end else np.nan
        return line
    predicted = model.labels[model.leaf_predictions[place.leaf]] if end else None
    line |= {"class": predicted, "rows": rows}
    line |= {f"p_{label}": float(p) for label, p in zip(model.labels, proba, strict=True)}
    for k, label in enumerate(model.labels):
        line[f"low_{label}"], line[f"high_{label}"] = _interval(model, place, k)
    return line


def _interval(model: TreeModel, place: OutlineNode, k: int) -> tuple[float, float]:
    if model.walk is None or place.split is not None:
        return np.nan, np.nan
    counts = model.walk.counts[:, list(place.leaves)].sum(axis=1)
    return wilson(float(counts[k]), float(counts.sum()))[1:]


def _rows(model: TreeModel, place: OutlineNode) -> float:
    if model.walk is None:
        return np.nan
    return float(model.walk.counts[:, list(place.leaves)].sum())
