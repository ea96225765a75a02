"""Options: folders beside the core that can be deleted, and what they provide to the core.

An option is a folder of this package with a module ``option.py`` that holds ``OPTION``, an
``Option`` that names what the folder provides. The core imports no option. It asks the functions
below, which read those light modules, and loads what it asks for at that moment. To delete an
option, delete its folder and its line in ``OPTIONS``; whoever asks for it afterwards gets one
sentence. An option that uses another one asks here too.

``late`` loads a name of a package above the caller when it is first used: an estimator offers its
report and its picture as methods, and what makes them imports estimators.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Literal


def late(module: str, name: str) -> Any:
    """The object ``name`` of ``module``."""
    return getattr(import_module(module), name)


def late_names(
    package: str, names: Collection[str], *modules: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose public names are loaded when first used.

    Each name is taken from the first of the ``modules`` of the package that has it, so that light
    modules come first.
    """

    def getattribute(name: str) -> Any:
        if name in names:
            for module in modules:
                loaded = import_module(f"{package}.{module}")
                if hasattr(loaded, name):
                    return getattr(loaded, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names})

    return getattribute, listed


# Folders that are options, one per line, in the order in which users see what they provide.
OPTIONS = (
    "ipopt",
    "decomposition",
    "on_torch",
    "on_dask",
    "plots",
    "capacity",
    "experiments",
    "exports",
)

Kind = Literal["names", "solvers", "engines", "commands", "services", "requires"]


@dataclass(frozen=True)
class Option:
    """What one option provides.

    A value is a reference "module:attribute", or "module" for a whole module. Nothing is imported
    before somebody asks for it.

    Attributes
    ----------
    names : mapping
        Public names of the package: ``softsplit.<name>``.
    solvers : mapping
        Functions without arguments that make a solver, by the name that estimators take.
    engines : mapping
        Functions that make an engine of training rows, by the name that estimators take.
    commands : mapping
        Functions or Typer groups, by the name that the command line takes.
    services : mapping
        What the core or another option calls if it is there, by a name that both know.
    requires : mapping
        Distributions that the option needs, and the extra of softsplit that installs each.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    solvers: Mapping[str, str] = field(default_factory=dict)
    engines: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    services: Mapping[str, str] = field(default_factory=dict)
    requires: Mapping[str, str] = field(default_factory=dict)


def provided(kind: Kind) -> dict[str, str]:
    """References of one kind from all options, by name."""
    return {name: where for option in _options() for name, where in getattr(option, kind).items()}


def load(kind: Kind, name: str) -> Any:
    """The object that an option provides under ``name``; KeyError if no option does."""
    module, _, attribute = provided(kind)[name].partition(":")
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def service(name: str, wanted: str, advice: str) -> Any:
    """The service of that name.

    Raises
    ------
    ImportError
        If no option provides it: one sentence with what was ``wanted``, and the ``advice``.
    """
    if name not in provided("services"):
        raise ImportError(
            f"{wanted} needs an option that provides {name!r}, and this copy of softsplit has "
            f"none; {advice}."
        )
    return load("services", name)


@cache
def _options() -> tuple[Option, ...]:
    return tuple(map(read_option, OPTIONS))


def read_option(folder: str) -> Option:
    """What the option in that folder says of itself."""
    name = f"softsplit.{folder}.option"
    try:
        option: Option = import_module(name).OPTION
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        raise ImportError(
            f"softsplit has no folder {folder!r} with a module option.py; delete its line in "
            "OPTIONS of softsplit/support/options.py."
        ) from None
    return option
