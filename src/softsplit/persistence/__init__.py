"""Model files: JSON that holds a tree and nothing that runs.

The format is described in docs/model-files.md and in ``model-1.schema.json`` next to this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softsplit.support.options import late_names

if TYPE_CHECKING:
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

_HOMES = {
    "MAX_BYTES": "files",
    "SKOPS_TYPES": "files",
    "ModelFileError": "records",
    "SavedTree": "saved",
    "dumps_model": "files",
    "load_model": "files",
    "load_tree": "files",
    "loads_model": "files",
    "save_model": "files",
}

# To read a tree takes no estimator.
__getattr__, __dir__ = late_names(__name__, _HOMES)
