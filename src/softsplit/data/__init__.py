"""Data sets: those of the paper by name, and the user's own tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softsplit.support.options import late_names

if TYPE_CHECKING:
    from softsplit.data.dataset import Dataset, PlainCoding
    from softsplit.data.files import Table, read_table
    from softsplit.data.learning import LabelledRows, learn
    from softsplit.data.made_up import loans
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
    "loans",
    "read_dataset",
    "read_table",
]

# Names are imported at first use: reading a table must not import scikit-learn.
__getattr__, __dir__ = late_names(
    __name__, __all__, "files", "dataset", "tables", "learning", "named", "made_up"
)
