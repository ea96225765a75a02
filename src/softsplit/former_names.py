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
    "arguments": "support.arguments",
    "candidate_search": "selection.candidates",
    "classifier": "estimators.classifier",
    "classifier_cv": "estimators.classifier_cv",
    "collapse": "engines.block",
    "constraints": "problem.leaves",
    "cross_validation": "selection.cross_validation",
    "fitted_tree": "estimators.fitted",
    "folds": "selection.folds",
    "forest": "engines.block_pass",
    "gram": "engines.gram",
    "inputs": "support.inputs",
    "loss": "problem.loss",
    "messages": "support.messages",
    "observer": "training.observer",
    "optimality": "problem.optimality",
    "penalties": "problem.penalties",
    "progress": "training.progress",
    "proximal": "problem.proximal",
    "proximal_selection": "estimators.proximal",
    "report.text": "reading.export",
    "routing": "tree.routing",
    "samples": "engines.samples",
    "scaling": "tree.scaling",
    "scoreboard": "selection.scoreboard",
    "settings": "training.settings",
    "solvers.descent": "solvers.native.descent",
    "solvers.engine": "solvers.native.run",
    "solvers.faces": "solvers.native.faces",
    "solvers.grouping": "solvers.starts.grouping",
    "solvers.hops": "solvers.native.search",
    "solvers.ipopt_bridge": "solvers.ipopt.bridge",
    "solvers.ipopt_progress": "solvers.ipopt.progress",
    "solvers.ipopt_worker": "solvers.ipopt.worker",
    "solvers.logistic": "solvers.starts.logistic",
    "solvers.newton": "solvers.native.newton",
    "solvers.nlp": "solvers.ipopt.program",
    "solvers.nlp_blocks": "solvers.ipopt.blocks",
    "solvers.nlp_explicit": "solvers.ipopt.explicit",
    "solvers.nlp_substituted": "solvers.ipopt.substituted",
    "solvers.nlp_variables": "solvers.ipopt.variables",
    "solvers.second_order": "solvers.ipopt.second_order",
    "solvers.second_order_blocks": "solvers.ipopt.second_order_blocks",
    "solvers.stages": "solvers.native.stages",
    "sparsity": "tree.sparsity",
    "starts": "solvers.starts.rules",
    "strength_bound": "problem.strength_bound",
}
"""Former and present names of modules, without that of the package."""

MOVED_FOLDERS = {
    "capacity.": "tree.capacity.",
    "decomposition.": "solvers.decomposition.",
    "page.": "report.",
    "plots.": "report.plots.",
}
"""The same for all modules of a folder."""

MOVED_NAMES = {
    "selection.PathPoint": "estimators.path",
    "selection.StrengthPathResult": "estimators.path",
    "training.NoFeasibleTreeError": "training.multistart",
}
"""Names in a module whose own name means something else today, and where they are now."""


def moved_name(package: str, name: str) -> Any:
    """What a package used to hold under that name: its answer to unknown attributes."""
    home = MOVED_NAMES.get(f"{package.partition('.')[2]}.{name}")
    if home is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(f"softsplit.{home}"), name)


def present_name(former: str) -> str | None:
    """Where a module that has moved is now; None for all others."""
    package, _, rest = former.partition(".")
    if package != "softsplit":
        return None
    if rest in MOVED:
        return f"softsplit.{MOVED[rest]}"
    folders = [(old, new) for old, new in MOVED_FOLDERS.items() if rest.startswith(old)]
    return f"softsplit.{folders[0][1]}{rest.removeprefix(folders[0][0])}" if folders else None


class FormerNames(MetaPathFinder, Loader):
    """Answers imports of moved modules."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if present_name(name) is None else ModuleSpec(name, self)

    def exec_module(self, module: ModuleType) -> None:
        """Put the module in its present place where the import looks for the one it asked for."""
        sys.modules[module.__name__] = import_module(str(present_name(module.__name__)))


def answer() -> None:
    """Answer such imports from now on."""
    if not any(isinstance(finder, FormerNames) for finder in sys.meta_path):
        sys.meta_path.append(FormerNames())
