"""Sparse multivariate randomized classification trees."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from softsplit.support.version import __version__

if TYPE_CHECKING:
    from softsplit import capacity, decomposition, plots, report
    from softsplit.data import load_dataset, read_dataset
    from softsplit.decomposition import NodeDecomposition
    from softsplit.decomposition.proximal import select_proximal
    from softsplit.estimators.classifier import SoftTreeClassifier
    from softsplit.estimators.classifier_cv import SoftTreeClassifierCV
    from softsplit.estimators.path import strength_path
    from softsplit.on_dask.classifiers import DaskSoftTreeClassifier, DaskSoftTreeClassifierCV
    from softsplit.persistence import dumps_model, export_onnx, load_model, loads_model, save_model
    from softsplit.reading.export import export_markdown, export_text

__all__ = [
    "DaskSoftTreeClassifier",
    "DaskSoftTreeClassifierCV",
    "NodeDecomposition",
    "SoftTreeClassifier",
    "SoftTreeClassifierCV",
    "__version__",
    "capacity",
    "decomposition",
    "dumps_model",
    "export_markdown",
    "export_onnx",
    "export_text",
    "load_dataset",
    "load_model",
    "loads_model",
    "plots",
    "read_dataset",
    "report",
    "save_model",
    "select_proximal",
    "strength_path",
]

_HOMES = {
    "DaskSoftTreeClassifier": "softsplit.on_dask.classifiers",
    "DaskSoftTreeClassifierCV": "softsplit.on_dask.classifiers",
    "NodeDecomposition": "softsplit.decomposition",
    "SoftTreeClassifier": "softsplit.estimators.classifier",
    "SoftTreeClassifierCV": "softsplit.estimators.classifier_cv",
    "dumps_model": "softsplit.persistence",
    "export_markdown": "softsplit.reading.export",
    "export_onnx": "softsplit.persistence",
    "export_text": "softsplit.reading.export",
    "load_dataset": "softsplit.data",
    "load_model": "softsplit.persistence",
    "loads_model": "softsplit.persistence",
    "read_dataset": "softsplit.data",
    "save_model": "softsplit.persistence",
    "select_proximal": "softsplit.decomposition.proximal",
    "strength_path": "softsplit.estimators.path",
}

_SUBPACKAGES = ("capacity", "decomposition", "plots", "report")


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: scikit-learn and numba take a second or two."""
    if name in _SUBPACKAGES:
        return import_module(f"softsplit.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'softsplit' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_SUBPACKAGES])
