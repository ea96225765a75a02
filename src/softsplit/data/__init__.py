"""Data sets: the paper's by name, and the user's own tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softsplit.data.coding import PlainCoding
    from softsplit.data.dataset import Dataset
    from softsplit.data.files import Table, read_table
    from softsplit.data.learning import LabelledRows, learn
    from softsplit.data.named import BUNDLED, Coding, catalogue, load_dataset
    from softsplit.data.tables import read_dataset

__all__ = [
    "BUNDLED",
    "Coding",
    "Dataset",
    "LabelledRows",
    "PlainCoding",
    "Table",
    "catalogue",
    "learn",
    "load_dataset",
    "read_dataset",
    "read_table",
]

_HOMES = {
    "BUNDLED": "named",
    "Coding": "named",
    "Dataset": "dataset",
    "LabelledRows": "learning",
    "PlainCoding": "coding",
    "Table": "files",
    "catalogue": "named",
    "learn": "learning",
    "load_dataset": "named",
    "read_dataset": "tables",
    "read_table": "files",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: to read a table takes no scikit-learn."""
    if name not in _HOMES:
        raise AttributeError(f"module 'softsplit.data' has no attribute {name!r}")
    return getattr(import_module(f"softsplit.data.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
