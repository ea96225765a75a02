"""What the records of a model file are made of, and how a file is refused.

A section of a file is a ``Record``: a msgspec struct whose fields are the keys, with their types
and ranges. ``checked`` reads plain dictionaries and lists as a record and names the place of what
does not fit; the JSON schema of the format is made from the same records. What depends on several
keys (lengths, places of features, order) is checked where a record is turned into a part of a tree,
by ``require``, ``sized``, ``table`` and ``below``.

A small or damaged file must not ask for much memory, and numbers that it holds must not overflow.

The last part writes and reads arguments of estimators and of edits as plain values. Numbers, texts,
None and lists are those of JSON; mappings are lists of pairs, since their keys need not be texts; a
requirement on rates is an object with its fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Annotated, Any, Self, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown, visible

# As large as in any fitted tree; differences of two such numbers stay finite.
LARGEST = 8e307

# Trees by likelihood have no bounds on weights and thresholds.
LARGEST_WEIGHT = 1e12

# How far the class shares of a leaf may be from adding up to one.
SHARE_ERROR = 1e-3

# Features times branches.
MOST_COEFFICIENTS = 50_000_000

# Classes times the longest label: an array of strings gives every label that much room.
LABEL_CHARACTERS = 50_000_000

# Lists in lists among the training parameters; a cost matrix has two.
NESTING = 20

Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, Meta(ge=1e-300, le=LARGEST)]
Count = Annotated[float, Meta(ge=0.0, le=LARGEST)]
Weight = Annotated[float, Meta(ge=-LARGEST_WEIGHT, le=LARGEST_WEIGHT)]
Part = Annotated[float, Meta(ge=0.0, le=1.0)]
Share = Annotated[float, Meta(ge=-SHARE_ERROR, le=1.0 + SHARE_ERROR)]
Place = Annotated[int, Meta(ge=0, le=2**31)]
# Text that can be written and shown: JSON also has escapes for halves of a character.
Text = Annotated[str, Meta(pattern=r"^[^\ud800-\udfff]*$")]

HALVES = "an unpaired surrogate character"

T = TypeVar("T")


class ModelFileError(ValueError):
    """A model file that cannot be read, and why."""


class Record(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An object of a model file; keys that it does not know are refused, defaults are left out."""

    @classmethod
    def like(cls, source: Any, **others: Any) -> Self:
        """The record of an object with attributes of the same names; ``others`` have other values.

        Arrays and numbers of numpy stay what they are until the document is written.
        """
        fields = [name for name in cls.__struct_fields__ if name not in others]
        return cls(**{name: getattr(source, name) for name in fields}, **others)


def checked(value: Any, kind: type[T]) -> T:
    """Dictionaries and lists as records; a refusal is one sentence with its place."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        fault, _, place = str(error).rpartition(" - at `$")
        if not fault:
            fault, place = place, ""
        where = f"{place.strip('`.') or 'the top level'} of the model file"
        if "matching regex" in fault:
            raise ModelFileError(f"{where} holds {HALVES}.") from None
        fault = visible(fault[:1].lower() + fault[1:].replace("`", "'"))[:120]
        raise ModelFileError(f"{where}: {fault}.") from None


def require(holds: Any, sentence: str) -> None:
    """Refuse the file where a condition does not hold."""
    if not holds:
        raise ModelFileError(sentence)


def sized(values: Sized, length: int, where: str) -> None:
    """Refuse a list of another length."""
    require(
        len(values) == length,
        f"{where} of the model file has {len(values)} entries where {length} are needed.",
    )


def table(rows: Sequence[Sequence[float | None]], shape: tuple[int, int], where: str) -> FloatArray:
    """Rows of numbers as an array of this shape; null is NaN."""
    sized(rows, shape[0], where)
    for i, row in enumerate(rows):
        sized(row, shape[1], f"{where}[{i}]")
    return np.array(rows, dtype=float).reshape(shape)


def below(places: Iterable[int], end: int, where: str) -> list[int]:
    """Places among ``end`` things."""
    listed = list(places)
    for place in listed:
        require(
            place < end,
            f"{where} of the model file must be an integer from 0 to {end - 1}, not {place}.",
        )
    return listed


# --- JSON -----------------------------------------------------------------------------------------


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


def has_halves(text: str) -> bool:
    """Whether a text holds half of a character (a lone surrogate), which no file can hold."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for name, value in pairs:
        require(
            name not in entries,
            f"the model file has the key {shown(name)} twice in one object.",
        )
        require(not has_halves(name), f"a key of the model file holds {HALVES}: {shown(name)}.")
        entries[name] = value
    return entries


def _refuse(name: str) -> Any:
    raise ModelFileError(f"the model file holds {name}; all numbers must be finite.")


# --- plain values ---------------------------------------------------------------------------------


def written_plain(value: Any) -> Any:
    """The value as JSON holds it; TypeError if it cannot."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and np.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [written_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {"pairs": [[written_plain(k), written_plain(v)] for k, v in value.items()]}
    if type(value).__module__ == "softsplit.formulations.rates":
        from softsplit.formulations.rates import as_plain  # loads compiled code

        return {"requirement": written_plain(as_plain(value))}
    raise TypeError


def read_plain(value: Any, where: str, depth: int = 0) -> Any:
    """The value of ``written_plain``; ``where`` names its place in a refusal."""
    place = f"{where} of the model file"
    require(depth <= NESTING, f"{place} is nested too deeply for a parameter.")
    if isinstance(value, list):
        return [read_plain(v, where, depth + 1) for v in value]
    if isinstance(value, dict):
        require(
            list(value) in (["pairs"], ["requirement"]),
            f"{place} must be an object with 'pairs' or with a 'requirement'.",
        )
        if "requirement" in value:
            return _read_requirement(read_plain(value["requirement"], where, depth + 1), place)
        return _read_pairs(value["pairs"], where, depth)
    if isinstance(value, str):
        require(not has_halves(value), f"{place} holds {HALVES}: {shown(value)}.")
    if isinstance(value, float):
        require(abs(value) <= LARGEST, f"{place} is too large for a number.")
    return value


def _read_pairs(pairs: Any, where: str, depth: int) -> dict[Any, Any]:
    mapping = {}
    require(isinstance(pairs, list), f"{where} of the model file must be a list of pairs.")
    for pair in pairs:
        require(
            isinstance(pair, list) and len(pair) == 2 and not isinstance(pair[0], list | dict),
            f"{where} of the model file has a pair whose key is no plain value.",
        )
        mapping[read_plain(pair[0], where)] = read_plain(pair[1], where, depth + 1)
    return mapping


def _read_requirement(fields: Any, place: str) -> Any:
    try:
        from softsplit.formulations.rates import from_plain  # loads compiled code
    except ModuleNotFoundError:  # without what trains trees nobody asks for requirements
        return fields
    try:
        return from_plain(fields)
    except (AttributeError, TypeError, ValueError):
        raise ModelFileError(f"{place} is no requirement on rates.") from None
