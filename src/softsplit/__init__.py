"""Sparse multivariate randomized classification trees, and soft trees that predict numbers.

Public names are those listed here and those that options provide (``support/options.py``).
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from softsplit.support.version import __version__

if TYPE_CHECKING:
    from softsplit import report
    from softsplit.data import load_dataset, read_dataset
    from softsplit.estimators.classifier import SoftTreeClassifier
    from softsplit.estimators.classifier_cv import SoftTreeClassifierCV
    from softsplit.estimators.path import strength_path
    from softsplit.estimators.regressor import SoftTreeRegressor, SoftTreeRegressorCV
    from softsplit.estimators.row_reading import check_rows
    from softsplit.estimators.survival import SoftTreeSurvival, SoftTreeSurvivalCV
    from softsplit.fitted.ranges import FarOutsideWarning
    from softsplit.formulations.rates import EqualizedOdds, EqualOpportunity, Parity, RateConstraint
    from softsplit.persistence import dumps_model, load_model, load_tree, loads_model, save_model
    from softsplit.reading.text import export_markdown, export_text
    from softsplit.report.groups import group_figures

__all__ = [
    "EqualOpportunity",
    "EqualizedOdds",
    "FarOutsideWarning",
    "Parity",
    "RateConstraint",
    "SoftTreeClassifier",
    "SoftTreeClassifierCV",
    "SoftTreeRegressor",
    "SoftTreeRegressorCV",
    "SoftTreeSurvival",
    "SoftTreeSurvivalCV",
    "__version__",
    "check_rows",
    "dumps_model",
    "export_markdown",
    "export_text",
    "group_figures",
    "load_dataset",
    "load_model",
    "load_tree",
    "loads_model",
    "read_dataset",
    "report",
    "save_model",
    "strength_path",
]

# Where the public names of the core are; options provide further ones.
_HOMES = {
    "EqualOpportunity": "softsplit.formulations.rates",
    "EqualizedOdds": "softsplit.formulations.rates",
    "Parity": "softsplit.formulations.rates",
    "RateConstraint": "softsplit.formulations.rates",
    "FarOutsideWarning": "softsplit.fitted.ranges",
    "SoftTreeClassifier": "softsplit.estimators.classifier",
    "SoftTreeClassifierCV": "softsplit.estimators.classifier_cv",
    "SoftTreeRegressor": "softsplit.estimators.regressor",
    "SoftTreeRegressorCV": "softsplit.estimators.regressor",
    "SoftTreeSurvival": "softsplit.estimators.survival",
    "SoftTreeSurvivalCV": "softsplit.estimators.survival",
    "check_rows": "softsplit.estimators.row_reading",
    "dumps_model": "softsplit.persistence",
    "export_markdown": "softsplit.reading.text",
    "export_text": "softsplit.reading.text",
    "group_figures": "softsplit.report.groups",
    "load_dataset": "softsplit.data",
    "load_model": "softsplit.persistence",
    "load_tree": "softsplit.persistence",
    "loads_model": "softsplit.persistence",
    "read_dataset": "softsplit.data",
    "report": "softsplit.report",
    "save_model": "softsplit.persistence",
    "strength_path": "softsplit.estimators.path",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: scikit-learn and numba take a second or two."""
    if name in _HOMES:
        module = _imported(_HOMES[name])
        return module if name == "report" else getattr(module, name)
    if not name.startswith("_"):
        from softsplit.support import options

        if name in options.provided("names"):
            return options.load("names", name)
    raise AttributeError(f"module 'softsplit' has no attribute {name!r}")


def _imported(home: str) -> ModuleType:
    """Import a module; one sentence names a package that is not installed."""
    try:
        return import_module(home)
    except ModuleNotFoundError as error:
        from softsplit.support.messages import without_package

        sentence = without_package(error)
        if sentence is None:
            raise
        raise ImportError(sentence, name=error.name) from error


def __dir__() -> list[str]:
    from softsplit.support import options

    return sorted([*globals(), *_HOMES, *options.provided("names")])
