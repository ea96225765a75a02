"""Values of a parsed JSON file, checked one by one: each refusal is one sentence with its place."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown


class ModelFileError(ValueError):
    """A model file that cannot be read, and why."""


def parse(text: str) -> Any:
    """JSON without duplicate keys and without numbers that are none."""
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse)
    except ModelFileError:
        raise
    except RecursionError:
        raise ModelFileError("the model file is nested too deeply for a tree.") from None
    except ValueError as error:
        what = str(error).split("\n")[0].rstrip(".;")
        raise ModelFileError(f"the model file is not valid JSON: {what}.") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            raise ModelFileError(f"the model file has the key {shown(name)} twice in one object.")
        made[name] = value
    return made


def _refuse(name: str) -> Any:
    raise ModelFileError(f"the model file holds {name}; all numbers must be finite.")


def entries(
    value: Any, where: str, required: Iterable[str], optional: Iterable[str] = ()
) -> dict[str, Any]:
    """An object with these keys and no others."""
    if not isinstance(value, dict):
        raise ModelFileError(f"{where} of the model file must be an object.")
    needed = list(required)
    for name in needed:
        if name not in value:
            raise ModelFileError(f"{where} of the model file lacks {name!r}.")
    known = {*needed, *optional}
    for name in value:
        if name not in known:
            raise ModelFileError(f"{where} of the model file has an unknown key {shown(name)}.")
    return value


def items(value: Any, where: str, length: int | None = None) -> list[Any]:
    """A list, of this length."""
    if not isinstance(value, list):
        raise ModelFileError(f"{where} of the model file must be a list.")
    if length is not None and len(value) != length:
        raise ModelFileError(
            f"{where} of the model file has {len(value)} entries where {length} are needed."
        )
    return value


def real(value: Any, where: str, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number between bounds."""
    if type(value) not in (int, float):
        raise ModelFileError(f"{where} of the model file must be a number, not {shown(value)}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ModelFileError(f"{where} of the model file is too large for a number.")
    if not low <= number <= high:
        raise ModelFileError(
            f"{where} of the model file is {number:g}, outside [{low:g}, {high:g}]."
        )
    return number


def whole(value: Any, where: str, low: int, high: int) -> int:
    """An integer between bounds."""
    if type(value) is not int or not low <= value <= high:
        raise ModelFileError(
            f"{where} of the model file must be an integer from {low} to {high}, "
            f"not {shown(value)}."
        )
    return value


def reals(
    value: Any,
    where: str,
    length: int | None = None,
    low: float = -math.inf,
    high: float = math.inf,
) -> FloatArray:
    """A list of finite numbers as an array."""
    listed = items(value, where, length)
    return np.array([real(v, f"{where}[{i}]", low, high) for i, v in enumerate(listed)], float)


def text(value: Any, where: str) -> str:
    """A string that can be written and shown: JSON also has escapes for halves of a character."""
    if not isinstance(value, str):
        raise ModelFileError(f"{where} of the model file must be a string, not {shown(value)}.")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ModelFileError(
            f"{where} of the model file holds an unpaired surrogate character: {shown(value)}."
        )
    return value
