"""The section "input" in model files of former versions: the table behind the features."""

from __future__ import annotations

from typing import Any, cast

from softsplit.data.schema import SCHEMA_CODINGS, Column, InputSchema, MissingRule
from softsplit.persistence.reader import ModelFileError, entries, items, real, text
from softsplit.support.messages import shown

MISSING_RULES = ("error", "drop", "fill")


def read_input(value: Any, names: tuple[str, ...]) -> InputSchema:
    """The checked schema; its columns must give the features of the tree."""
    found = entries(value, "input", ("target", "coding", "missing", "columns"))
    coding, missing = text(found["coding"], "input.coding"), text(found["missing"], "input.missing")
    if coding not in SCHEMA_CODINGS:
        raise ModelFileError(f"input.coding of the model file is unknown: {shown(coding)}.")
    if missing not in MISSING_RULES:
        raise ModelFileError(f"input.missing of the model file is unknown: {shown(missing)}.")
    listed = items(found["columns"], "input.columns")
    columns = tuple(_read_column(v, f"input.columns[{i}]") for i, v in enumerate(listed))
    target = text(found["target"], "input.target")
    if len({target, *(column.name for column in columns)}) <= len(columns):
        raise ModelFileError("input of the model file names a column twice.")
    schema = InputSchema(target, columns, cast(Any, coding), cast(MissingRule, missing))
    if schema.feature_names != names:
        raise ModelFileError("input of the model file does not fit the features of its tree.")
    return schema


def _read_column(value: Any, where: str) -> Column:
    found = entries(value, where, ("name", "levels", "fill"))
    name = text(found["name"], f"{where}.name")
    if found["levels"] is None:
        return Column(name, None, real(found["fill"], f"{where}.fill"))
    levels = tuple(text(v, f"{where}.levels") for v in items(found["levels"], f"{where}.levels"))
    if not levels or len(set(levels)) < len(levels):
        raise ModelFileError(f"{where}.levels of the model file must be distinct, at least one.")
    fill = text(found["fill"], f"{where}.fill")
    if fill not in levels:
        raise ModelFileError(f"{where}.fill of the model file is none of the levels.")
    return Column(name, levels, fill)
