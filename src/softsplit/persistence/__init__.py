"""Model files: JSON that holds a tree and nothing that runs, and ONNX graphs.

The format is described in docs/model-files.md and in ``model-1.schema.json`` next to this file.
"""

from softsplit.persistence.files import (
    MAX_BYTES,
    dumps_model,
    load_model,
    loads_model,
    save_model,
)
from softsplit.persistence.graph import export_onnx
from softsplit.persistence.reader import ModelFileError
from softsplit.persistence.skops_types import SKOPS_TYPES

__all__ = [
    "MAX_BYTES",
    "SKOPS_TYPES",
    "ModelFileError",
    "dumps_model",
    "export_onnx",
    "load_model",
    "loads_model",
    "save_model",
]
