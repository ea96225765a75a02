"""Sections of a model file that tell of a tree what it does not need to predict.

"held_out" has the scores of held-out rows, by which prediction sets are made; "profile" the summary
of the training table, with which new rows are compared; "rates" what was required of rates and what
holds on the training rows; "edits" what was changed by hand.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from softsplit.fitted.conformal import HeldOutScores
from softsplit.fitted.edits import Edit, Edits
from softsplit.fitted.model import TreeModel
from softsplit.fitted.profile import ColumnProfile, TableProfile, has_levels, n_cells
from softsplit.fitted.rates import RateRecord
from softsplit.persistence.records import (
    Count,
    Number,
    Part,
    Place,
    Record,
    Text,
    below,
    read_plain,
    require,
    sized,
    written_plain,
)
from softsplit.variables import Variable

# --- held-out rows --------------------------------------------------------------------------------


class HeldOutRecord(Record):
    """Scores of held-out rows of each class in ascending order, and how many rows these are."""

    scores: list[list[Part]]
    rows: list[Count]

    def read(self, n_classes: int) -> HeldOutScores:
        sized(self.scores, n_classes, "held_out.scores")
        sized(self.rows, n_classes, "held_out.rows")
        scores = tuple(np.array(listed, dtype=float) for listed in self.scores)
        rows = np.array(self.rows, dtype=float)
        empty = [len(listed) == 0 for listed in scores]
        require(
            empty == (rows == 0).tolist() and all(np.all(np.diff(s) >= 0) for s in scores),
            "held_out.scores of the model file do not ascend or fit their rows.",
        )
        return HeldOutScores(scores, rows)


# --- the training table ---------------------------------------------------------------------------


class ColumnRecord(Record):
    """Rows in each bin of a number, or of each level and of all others; rows without a value."""

    counts: list[Count]
    missing: Count
    edges: list[Number] | None = None

    def read(self, where: str, variable: Variable) -> ColumnProfile:
        edges = None if self.edges is None else np.array(self.edges, dtype=float)
        require(
            has_levels(variable) == (edges is None)
            and len(self.counts) == n_cells(variable, edges),
            f"{where} of the model file does not fit its variable.",
        )
        require(
            edges is None or np.all(np.diff(edges) > 0),
            f"{where}.edges of the model file do not ascend.",
        )
        return ColumnProfile(np.array(self.counts, dtype=float), self.missing, edges)


class ProfileRecord(Record):
    """Training rows of each class, rows that arrive at each leaf (null after an edit), and the
    distribution of each variable (null where there is none)."""

    classes: list[Count]
    leaves: list[Count] | None
    columns: list[ColumnRecord | None]

    @classmethod
    def of(cls, profile: TableProfile) -> ProfileRecord:
        columns = [column and ColumnRecord.like(column) for column in profile.columns]
        return cls.like(profile, columns=columns)

    def read(self, model: TreeModel) -> TableProfile:
        variables = model.table_coding.variables
        sized(self.classes, len(model.answers), "profile.classes")
        sized(self.columns, len(variables), "profile.columns")
        leaves = None
        if self.leaves is not None:
            sized(self.leaves, model.topology.n_leaves, "profile.leaves")
            leaves = np.array(self.leaves, dtype=float)
        columns = tuple(
            None if record is None else record.read(f"profile.columns[{i}]", variable)
            for i, (record, variable) in enumerate(zip(self.columns, variables, strict=True))
        )
        return TableProfile(columns, np.array(self.classes, dtype=float), leaves)


# --- what was required of rates -------------------------------------------------------------------

Rate = Annotated[float, Meta(ge=0.0, le=1.0 + 1e-9)]


class RequirementRecord(Record):
    """A requirement on rates with the rates of the training rows, as in
    softsplit.fitted.rates.RateRecord; a bound that there is not is null."""

    name: Text
    of: Text
    groups: Annotated[tuple[Text, ...], Meta(min_length=1)]
    low: Number | None
    high: Number | None
    expected: tuple[Rate, ...]
    decided: tuple[Rate, ...]
    weights: tuple[Count, ...]
    multiplier: Number
    grain: Number

    @classmethod
    def written(cls, record: RateRecord) -> RequirementRecord:
        low, high = (end if np.isfinite(end) else None for end in (record.low, record.high))
        return cls.like(record, low=low, high=high)

    def read(self, where: str) -> RateRecord:
        values = msgspec.structs.asdict(self)
        for name in ("expected", "decided", "weights"):
            sized(values[name], len(self.groups), f"{where}.{name}")
        for name, unbounded in (("low", -np.inf), ("high", np.inf)):
            values[name] = unbounded if values[name] is None else values[name]
        return RateRecord(**values)


# --- what was changed by hand ---------------------------------------------------------------------


class EditRecord(Record):
    """An edit: its day, the method of ``EditedTree`` and its arguments, the reason that was given,
    and what else it changed."""

    date: Text
    verb: Text
    arguments: dict[Text, Any]
    reason: Text | None
    outcome: Text = ""

    @classmethod
    def of(cls, edit: Edit) -> EditRecord:
        arguments = {name: written_plain(value) for name, value in edit.arguments.items()}
        return cls.like(edit, arguments=arguments)

    def read(self, where: str) -> Edit:
        arguments = {
            name: read_plain(value, f"{where}.arguments") for name, value in self.arguments.items()
        }
        return Edit(self.verb, arguments, self.date, self.reason, self.outcome)


class EditsRecord(Record):
    """All edits, and the places of weights (branch, feature), thresholds and leaves that were
    set."""

    edits: list[EditRecord] = msgspec.field(name="list")
    weights: tuple[tuple[Place, Place], ...]
    thresholds: tuple[Place, ...]
    leaves: tuple[Place, ...]

    @classmethod
    def of(cls, edits: Edits) -> EditsRecord:
        return cls.like(edits, edits=list(map(EditRecord.of, edits.listed)))

    def read(self, model: TreeModel) -> Edits:
        n_branches = model.topology.n_branches
        below([t for t, _ in self.weights], n_branches, "edits.weights")
        below([j for _, j in self.weights], model.parameters.n_features, "edits.weights")
        below(self.thresholds, n_branches, "edits.thresholds")
        below(self.leaves, n_branches + 1, "edits.leaves")
        listed = tuple(edit.read(f"edits.list[{i}]") for i, edit in enumerate(self.edits))
        return Edits(listed, self.weights, self.thresholds, self.leaves)
