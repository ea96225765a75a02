"""Modules that have moved are found under their former names, so that old pickles can be read.

A pickle names the module of every class in it. The import of a module that has moved is answered
with the module in its present place; nothing is loaded before it is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "classifier": "estimators.classifier",
    "classifier_cv": "estimators.classifier_cv",
    "constraints": "problem.leaves",
    "decomposition.evaluation": "solvers.decomposition.evaluation",
    "decomposition.nodes": "solvers.decomposition.nodes",
    "decomposition.run": "solvers.decomposition.run",
    "decomposition.stopping": "solvers.decomposition.stopping",
    "decomposition.trace": "solvers.decomposition.trace",
    "decomposition.working_sets": "solvers.decomposition.working_sets",
    "loss": "problem.loss",
    "optimality": "problem.optimality",
    "penalties": "problem.penalties",
    "proximal": "problem.proximal",
    "routing": "tree.routing",
    "samples": "engines.samples",
    "scaling": "tree.scaling",
    "solvers.hops": "solvers.native.search",
    "solvers.stages": "solvers.native.stages",
    "sparsity": "tree.sparsity",
}
"""Former and present names of modules, without that of the package."""

MOVED_NAMES = {
    "selection.PathPoint": "estimators.path",
    "selection.StrengthPathResult": "estimators.path",
}
"""Names in a module whose own name means something else today, and where they are now."""


def moved_name(package: str, name: str) -> Any:
    """What a package used to hold under that name: its answer to unknown attributes."""
    home = MOVED_NAMES.get(f"{package.partition('.')[2]}.{name}")
    if home is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(f"softsplit.{home}"), name)


class FormerNames(MetaPathFinder, Loader):
    """Answers imports of moved modules."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, rest = name.partition(".")
        return ModuleSpec(name, self) if package == "softsplit" and rest in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module in its present place where the import looks for the one it asked for."""
        former = module.__name__
        sys.modules[former] = import_module(f"softsplit.{MOVED[former.partition('.')[2]]}")


def answer() -> None:
    """Answer such imports from now on."""
    if not any(isinstance(finder, FormerNames) for finder in sys.meta_path):
        sys.meta_path.append(FormerNames())
