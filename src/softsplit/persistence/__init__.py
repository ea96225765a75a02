"""Model files: JSON that holds a tree and nothing that runs.

The format is described in docs/model-files.md and in ``model-1.schema.json`` next to this file. To
read a tree takes no estimator.
"""

from softsplit.persistence.files import (
    MAX_BYTES,
    SKOPS_TYPES,
    dumps_model,
    load_model,
    load_tree,
    loads_model,
    save_model,
)
from softsplit.persistence.records import ModelFileError
from softsplit.persistence.saved import SavedTree

__all__ = [
    "MAX_BYTES",
    "SKOPS_TYPES",
    "ModelFileError",
    "SavedTree",
    "dumps_model",
    "load_model",
    "load_tree",
    "loads_model",
    "save_model",
]
