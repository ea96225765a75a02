"""Names of rooms above, found when they are first used.

An estimator offers its report and its picture as methods, since that is where people look for them;
what makes them lies above it and imports it. As for the public names of the package, the name is
looked up at the call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def late(module: str, name: str) -> Any:
    """The object ``name`` of ``module``."""
    return getattr(import_module(module), name)


def late_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose public names are loaded when first used.

    ``homes`` says in which module of the package each name is.
    """

    def getattribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return late(f"{package}.{homes[name]}", name)

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return getattribute, listed
