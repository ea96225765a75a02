"""Data sets: the paper's by name, and the user's own tables."""

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
