"""Sections of a model file that tell of a tree what it does not need to predict.

"held_out" has the scores of held-out rows, by which prediction sets are made; "profile" the summary
of the training table, with which new rows are compared; "rates" what was required of rates and what
holds on the training rows; "edits" what was changed by hand.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import numpy as np

from softsplit.fitted.conformal import HeldOutScores
from softsplit.fitted.edits import Edit, Edits
from softsplit.fitted.model import TreeModel
from softsplit.fitted.profile import ColumnProfile, TableProfile, has_levels, n_cells
from softsplit.fitted.rates import RateRecord
from softsplit.persistence.limits import LIMITS
from softsplit.persistence.plain_values import read_plain, written_plain
from softsplit.persistence.reader import ModelFileError, entries, items, real, reals, text, whole
from softsplit.variables import Variable

# --- held-out rows and the training table ---------------------------------------------------------


def written_held_out(known: HeldOutScores) -> dict[str, Any]:
    """The section "held_out"."""
    return {
        "scores": [scores.tolist() for scores in known.scores],
        "rows": known.rows.tolist(),
    }


def read_held_out(value: Any, n_classes: int) -> HeldOutScores:
    """The scores of held-out rows."""
    found = entries(value, "held_out", ("scores", "rows"))
    lists = items(found["scores"], "held_out.scores", n_classes)
    scores = [reals(v, f"held_out.scores[{k}]", None, 0.0, 1.0) for k, v in enumerate(lists)]
    rows = reals(found["rows"], "held_out.rows", n_classes, 0.0, LIMITS.number)
    empty = [len(known) == 0 for known in scores]
    if empty != (rows == 0).tolist() or any(np.any(np.diff(known) < 0) for known in scores):
        raise ModelFileError("held_out.scores of the model file do not ascend or fit their rows.")
    return HeldOutScores(tuple(scores), rows)


def written_profile(profile: TableProfile) -> dict[str, Any]:
    """The section "profile"."""
    return {
        "classes": profile.classes.tolist(),
        "leaves": None if profile.leaves is None else profile.leaves.tolist(),
        "columns": [
            None
            if one is None
            else {"counts": one.counts.tolist(), "missing": one.missing}
            | ({} if one.edges is None else {"edges": one.edges.tolist()})
            for one in profile.columns
        ],
    }


def read_profile(value: Any, model: TreeModel) -> TableProfile:
    """The summary of the training table of ``model``."""
    found = entries(value, "profile", ("classes", "leaves", "columns"))
    n_leaves, variables = model.topology.n_leaves, model.table_coding.variables
    classes = reals(found["classes"], "profile.classes", len(model.classes), 0.0, LIMITS.number)
    leaves = None
    if found["leaves"] is not None:
        leaves = reals(found["leaves"], "profile.leaves", n_leaves, 0.0, LIMITS.number)
    columns: list[ColumnProfile | None] = []
    listed = items(found["columns"], "profile.columns", len(variables))
    for i, (one, variable) in enumerate(zip(listed, variables, strict=True)):
        where = f"profile.columns[{i}]"
        columns.append(None if one is None else _read_column_profile(one, where, variable))
    return TableProfile(tuple(columns), classes, leaves)


def _read_column_profile(value: Any, where: str, variable: Variable) -> ColumnProfile:
    found = entries(value, where, ("counts", "missing"), ("edges",))
    counts = reals(found["counts"], f"{where}.counts", None, 0.0, LIMITS.number)
    edges = None
    if "edges" in found:
        edges = reals(found["edges"], f"{where}.edges", None, -LIMITS.number, LIMITS.number)
    if has_levels(variable) != (edges is None) or len(counts) != n_cells(variable, edges):
        raise ModelFileError(f"{where} of the model file does not fit its variable.")
    if edges is not None and np.any(np.diff(edges) <= 0):
        raise ModelFileError(f"{where}.edges of the model file do not ascend.")
    missing = real(found["missing"], f"{where}.missing", 0.0, LIMITS.number)
    return ColumnProfile(counts, missing, edges)


# --- the section "rates": what was required, and what holds on the training rows -----------------


def written_rates(record: RateRecord) -> dict[str, Any]:
    """A requirement of the section "rates"; infinite bounds are null."""
    written = asdict(record)
    for name in ("low", "high"):
        written[name] = written[name] if np.isfinite(written[name]) else None
    return {k: list(v) if isinstance(v, tuple) else v for k, v in written.items()}


def read_rates(value: Any, where: str) -> RateRecord:
    """One requirement; ``where`` names its place."""
    names = tuple(field.name for field in fields(RateRecord))
    found = entries(value, where, names)
    groups = tuple(text(v, f"{where}.groups") for v in items(found["groups"], f"{where}.groups"))
    if not groups:
        raise ModelFileError(f"{where} of the model file has no groups.")
    n = len(groups)

    def bound(name: str, default: float) -> float:
        return default if found[name] is None else real(found[name], f"{where}.{name}")

    def numbers(name: str, high: float = 1.0 + 1e-9) -> tuple[float, ...]:
        return tuple(reals(found[name], f"{where}.{name}", n, 0.0, high).tolist())

    return RateRecord(
        text(found["name"], f"{where}.name"),
        text(found["of"], f"{where}.of"),
        groups,
        bound("low", -np.inf),
        bound("high", np.inf),
        numbers("expected"),
        numbers("decided"),
        numbers("weights", LIMITS.number),
        real(found["multiplier"], f"{where}.multiplier"),
        real(found["grain"], f"{where}.grain"),
    )


# --- the section "edits": what was changed by hand ------------------------------------------------


def written_edits(edits: Edits) -> dict[str, Any]:
    """The section "edits"."""
    listed = [
        {
            "date": edit.date,
            "verb": edit.verb,
            "arguments": {name: written_plain(value) for name, value in edit.arguments.items()},
            "reason": edit.reason,
            **({"outcome": edit.outcome} if edit.outcome else {}),
        }
        for edit in edits.listed
    ]
    return {
        "list": listed,
        "weights": [list(pair) for pair in edits.weights],
        "thresholds": list(edits.thresholds),
        "leaves": list(edits.leaves),
    }


def read_edits(value: Any, model: TreeModel) -> Edits:
    """What was changed by hand in ``model``."""
    found = entries(value, "edits", ("list", "weights", "thresholds", "leaves"))
    n_branches, n_features = model.topology.n_branches, model.parameters.n_features
    listed = []
    for i, one in enumerate(items(found["list"], "edits.list")):
        where = f"edits.list[{i}]"
        edit = entries(one, where, ("date", "verb", "arguments", "reason"), ("outcome",))
        reason = edit["reason"]
        if not isinstance(edit["arguments"], dict):
            raise ModelFileError(f"{where}.arguments of the model file must be an object.")
        given = {
            text(name, f"{where}.arguments"): read_plain(content, f"{where}.arguments")
            for name, content in edit["arguments"].items()
        }
        listed.append(
            Edit(
                text(edit["verb"], f"{where}.verb"),
                given,
                text(edit["date"], f"{where}.date"),
                None if reason is None else text(reason, f"{where}.reason"),
                text(edit.get("outcome", ""), f"{where}.outcome"),
            )
        )

    def places(name: str, most: int) -> tuple[int, ...]:
        return tuple(
            whole(v, f"edits.{name}", 0, most) for v in items(found[name], f"edits.{name}")
        )

    weights = []
    for pair in items(found["weights"], "edits.weights"):
        t, j = items(pair, "edits.weights", 2)
        weights.append(
            (
                whole(t, "edits.weights", 0, n_branches - 1),
                whole(j, "edits.weights", 0, n_features - 1),
            )
        )
    return Edits(
        tuple(listed), tuple(weights), places("thresholds", n_branches - 1),
        places("leaves", n_branches),
    )  # fmt: skip
