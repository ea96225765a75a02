"""Arguments of estimators and of edits as a model file holds them.

Numbers, texts, None and lists are those of JSON; mappings are lists of pairs, since their keys need
not be texts; a requirement on rates is an object with its fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softsplit.persistence.limits import LIMITS
from softsplit.persistence.reader import ModelFileError, entries, items, real, text


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
    if depth > LIMITS.nesting:
        raise ModelFileError(f"{where} of the model file is nested too deeply for a parameter.")
    if isinstance(value, list):
        return [read_plain(v, where, depth + 1) for v in value]
    if isinstance(value, dict) and "requirement" in value:
        from softsplit.formulations.rates import from_plain

        given = entries(value, where, ("requirement",))["requirement"]
        try:
            return from_plain(read_plain(given, where, depth + 1))
        except (AttributeError, TypeError, ValueError):
            raise ModelFileError(f"{where} of the model file is no requirement on rates.") from None
    if isinstance(value, dict):
        pairs = items(entries(value, where, ("pairs",))["pairs"], where)
        read = {}
        for pair in pairs:
            key, content = items(pair, where, 2)
            if isinstance(key, list | dict):
                raise ModelFileError(f"{where} of the model file has a key that is no plain value.")
            read[key] = read_plain(content, where, depth + 1)
        return read
    if isinstance(value, str):
        return text(value, where)
    return real(value, where) if isinstance(value, float) else value
