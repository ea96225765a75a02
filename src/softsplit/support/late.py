"""Names of rooms above, found when they are first used.

An estimator offers its report and its picture as methods, since that is where people look for them;
what makes them lies above it and imports it. As for the public names of the package, the name is
looked up at the call.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def late(module: str, name: str) -> Any:
    """The object ``name`` of ``module``."""
    return getattr(import_module(module), name)
