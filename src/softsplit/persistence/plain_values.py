"""Arguments of estimators and of edits as a model file holds them.

Numbers, texts, None and lists are those of JSON; mappings are lists of pairs, since their keys need
not be texts; a requirement on rates is an object with its fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softsplit.persistence.records import (
    HALVES,
    LARGEST,
    NESTING,
    ModelFileError,
    has_halves,
    require,
)
from softsplit.support.messages import shown


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
    from softsplit.formulations.rates import from_plain  # loads compiled code

    try:
        return from_plain(fields)
    except (AttributeError, TypeError, ValueError):
        raise ModelFileError(f"{place} is no requirement on rates.") from None
