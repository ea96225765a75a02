"""Model files as text and on disk."""

from __future__ import annotations

import json
import os
from typing import Any

from softsplit.classifier import SoftTreeClassifier
from softsplit.output_files import write_file
from softsplit.persistence.document import from_document, to_document
from softsplit.persistence.reader import ModelFileError, parse

MAX_BYTES = 64 * 2**20
"""Larger files are refused before they are parsed, unless the caller allows more."""


def dumps_model(estimator: Any) -> str:
    """A fitted tree as the text of a model file.

    Parameters
    ----------
    estimator : fitted SoftTreeClassifier, or a search that holds one as ``best_estimator_``
    """
    found = getattr(estimator, "best_estimator_", estimator)
    if not isinstance(found, SoftTreeClassifier):
        raise TypeError(f"a SoftTreeClassifier is needed, got {type(estimator).__name__}.")
    return _rendered(to_document(found)) + "\n"


def _rendered(value: Any, indent: str = "") -> str:
    """JSON with one entry per line, except lists of plain values, which stay on one."""
    nested = (dict, list)
    if isinstance(value, dict) and value:
        inner = [f"{_flat(name)}: {_rendered(v, indent + '  ')}" for name, v in value.items()]
        opening, closing = "{", "}"
    elif isinstance(value, list) and any(isinstance(v, nested) for v in value):
        inner = [_rendered(v, indent + "  ") for v in value]
        opening, closing = "[", "]"
    else:
        return _flat(value)
    body = f",\n{indent}  ".join(inner)
    return f"{opening}\n{indent}  {body}\n{indent}{closing}"


def _flat(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def loads_model(content: str | bytes, *, max_bytes: int = MAX_BYTES) -> SoftTreeClassifier:
    """The fitted tree in the text of a model file; nothing in it is run.

    The tree predicts the same bits as the one that was saved. It knows no training runs: there is
    no ``solution_`` and no ``starts_``.

    Parameters
    ----------
    content : str or bytes in UTF-8
    max_bytes : int
        Longer content is refused before it is parsed.
    """
    if len(content) > max_bytes:
        raise ModelFileError(
            f"the model file is larger than {max_bytes} bytes; if you trust it, raise max_bytes."
        )
    if isinstance(content, bytes):
        try:
            content = content.decode("utf-8")
        except UnicodeDecodeError:
            raise ModelFileError("the model file is not text in UTF-8.") from None
    return from_document(parse(content))


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted tree to a model file, which is replaced as a whole or not at all."""
    write_file(path, dumps_model(estimator).encode("utf-8"))


def load_model(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> SoftTreeClassifier:
    """Read a model file: see ``loads_model``."""
    with open(path, "rb") as file:
        content = file.read(max_bytes + 1)
    return loads_model(content, max_bytes=max_bytes)
