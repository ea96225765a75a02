"""Parts of the reader's own, named ``module:attribute`` in a spec."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load_attribute(place: str) -> Any:
    """What ``module:attribute`` names, or one sentence that says what is missing."""
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{place!r} cannot be loaded: {error}.") from None
