"""The section "table" of a model file: the variables of which the features were made."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from softsplit.persistence.limits import LIMITS
from softsplit.persistence.reader import ModelFileError, entries, items, real, text, whole
from softsplit.support.messages import shown
from softsplit.variables import KINDS, Coding, Variable
from softsplit.variables.dates import NAMES, UNITS, part_name
from softsplit.variables.dates import PARTS as DATE_PARTS
from softsplit.variables.variable import CATEGORY, DATE, DIGITS, NUMBER, ORDERED

PARTS = (
    "levels", "other", "whole", "origin", "form", "classes", "shares", "rare", "knots", "part",
    "since", "since_form",
)  # fmt: skip


def written_table(coding: Coding | None, target: str | None) -> dict[str, Any]:
    """Columns of the table in order, and the variables among them."""
    written: dict[str, Any] = {"target": target}
    if coding is None:
        return written
    return written | {
        "named": coding.named,
        "columns": list(coding.names),
        "left_out": [list(pair) for pair in coding.left_out],
        "variables": [
            _written_variable(variable, place)
            for variable, place in zip(coding.variables, coding.places, strict=True)
        ],
    }


def _written_variable(variable: Variable, place: int) -> dict[str, Any]:
    written: dict[str, Any] = {
        "column": place,
        "kind": variable.kind,
        "middle": float(variable.middle),
        "has_missing": variable.has_missing,
    }
    plain = Variable(variable.name, variable.kind)
    for part in PARTS:
        value = getattr(variable, part)
        if value != getattr(plain, part):
            written[part] = (
                [list(v) if isinstance(v, tuple) else v for v in value]
                if isinstance(value, tuple)
                else value
            )
    return written


def read_table_section(value: Any) -> tuple[Coding | None, str | None]:
    """The checked coding, None if features are columns as they are, and the target."""
    found = entries(value, "table", ("target",), ("named", "columns", "left_out", "variables"))
    target = None if found["target"] is None else text(found["target"], "table.target")
    if len(found) == 1:
        return None, target
    entries(value, "table", ("target", "named", "columns", "left_out", "variables"))
    names = tuple(text(v, "table.columns") for v in items(found["columns"], "table.columns"))
    if len(set(names)) < len(names):
        raise ModelFileError("table of the model file names a column twice.")
    listed = items(found["variables"], "table.variables")
    read = [_read_variable(v, f"table.variables[{i}]", names) for i, v in enumerate(listed)]
    places = tuple(place for place, _ in read)
    if not places or len({(place, v.part, v.since) for place, v in read}) < len(places):
        raise ModelFileError("table.variables of the model file must be distinct, at least one.")
    left_out = []
    for pair in items(found["left_out"], "table.left_out"):
        name, why = (text(v, "table.left_out") for v in items(pair, "table.left_out", 2))
        left_out.append((name, why))
    named = _truth(found["named"], "table.named")
    return Coding(names, tuple(v for _, v in read), places, tuple(left_out), named), target


def _read_variable(value: Any, where: str, names: tuple[str, ...]) -> tuple[int, Variable]:
    found = entries(value, where, ("column", "kind", "middle", "has_missing"), PARTS)
    place = whole(found["column"], f"{where}.column", 0, len(names) - 1)
    kind = text(found["kind"], f"{where}.kind")
    if kind not in KINDS:
        raise ModelFileError(f"{where}.kind of the model file is unknown: {shown(kind)}.")
    levels = _texts(found.get("levels", []), f"{where}.levels")
    if len(set(levels)) < len(levels) or bool(levels) != (kind in (CATEGORY, ORDERED)):
        raise ModelFileError(f"{where}.levels of the model file do not fit its kind.")
    part, since = _read_part(found, where, kind, names)
    if kind != DATE and ("origin" in found or ("form" in found and not part)):
        raise ModelFileError(f"{where} of the model file is no date.")
    if part in NAMES and not set(levels) <= set(NAMES[part]):
        raise ModelFileError(f"{where}.levels of the model file are no {part}s.")
    classes, shares = _read_shares(found, where, len(levels))
    middle = real(found["middle"], f"{where}.middle", -LIMITS.number, LIMITS.number)
    if levels and middle not in range(len(levels)):
        raise ModelFileError(f"{where}.middle of the model file is no level.")
    return place, Variable(
        name=part_name(part, names[place], since) if part else names[place],
        kind=kind,
        middle=middle,
        has_missing=_truth(found["has_missing"], f"{where}.has_missing"),
        levels=levels,
        other=_truth(found.get("other", False), f"{where}.other"),
        whole=_truth(found.get("whole", True), f"{where}.whole"),
        origin=real(found.get("origin", 0.0), f"{where}.origin", -1e9, 1e9),
        form=text(found.get("form", ""), f"{where}.form"),
        knots=_read_knots(found, where, kind),
        classes=classes,
        shares=shares,
        rare=_read_rare(found.get("rare"), f"{where}.rare", bool(levels)),
        part=part,
        source=names[place] if part else "",
        since=since,
        since_form=text(found.get("since_form", ""), f"{where}.since_form"),
    )


def _read_part(
    found: dict[str, Any], where: str, kind: str, names: tuple[str, ...]
) -> tuple[str, str]:
    """Which part of a date a variable is, and the column since which time is counted."""
    part = text(found.get("part", ""), f"{where}.part")
    since = text(found.get("since", ""), f"{where}.since")
    known = UNITS if since else DATE_PARTS[1:]
    needed = CATEGORY if part in NAMES else NUMBER
    if (part and (part not in known or kind != needed)) or (since and since not in names):
        raise ModelFileError(f"{where}.part of the model file is no part of a date.")
    if (since and not part) or ("since_form" in found and not since):
        raise ModelFileError(f"{where}.since of the model file is of no part of a date.")
    return part, since


def _read_rare(value: Any, where: str, has_levels: bool) -> str | None:
    if value is None:
        return None
    found = text(value, where)
    if not has_levels or len(found) % DIGITS or not re.fullmatch("[0-9a-f]*", found):
        raise ModelFileError(f"{where} of the model file must be checksums of {DIGITS} digits.")
    return found


def _read_knots(found: dict[str, Any], where: str, kind: str) -> tuple[float, ...]:
    """The knots of a number: finite, in ascending order."""
    listed = items(found.get("knots", []), f"{where}.knots")
    knots = tuple(real(v, f"{where}.knots", -LIMITS.number, LIMITS.number) for v in listed)
    if (knots and kind != NUMBER) or any(a >= b for a, b in pairwise(knots)):
        raise ModelFileError(f"{where}.knots of the model file are not those of a number.")
    return knots


def _read_shares(
    found: dict[str, Any], where: str, n_levels: int
) -> tuple[tuple[str, ...], tuple[tuple[float, ...], ...]]:
    classes = _texts(found.get("classes", []), f"{where}.classes")
    lines = items(found.get("shares", []), f"{where}.shares", n_levels + 1 if classes else 0)
    shares = tuple(
        tuple(real(v, f"{where}.shares", 0.0, 1.0) for v in items(line, where, len(classes)))
        for line in lines
    )
    return classes, shares


def _texts(value: Any, where: str) -> tuple[str, ...]:
    return tuple(text(v, where) for v in items(value, where))


def _truth(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ModelFileError(f"{where} of the model file must be true or false.")
    return value
