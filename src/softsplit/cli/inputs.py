"""From the arguments of a command to rows, and to files that are written as a whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softsplit.cli.console import say
from softsplit.support.output_files import check_outputs, write_file

if TYPE_CHECKING:
    from softsplit.data.files import Table
    from softsplit.data.schema import InputSchema, Learned, Rows
    from softsplit.estimators.classifier import SoftTreeClassifier


NAME_LENGTH = 60
"""Longer names are cut in sentences, so that they cannot be copied from there."""

STANDARD_INPUT = 0


def read(source: str, encoding: str | None = None, quiet: bool = False) -> Table:
    """The table; said before the work starts, since loading pandas takes a moment."""
    if not quiet:
        say(f"reading {'standard input' if source == '-' else source}")
    from softsplit.data.files import read_table

    table = read_table(source, encoding=encoding)
    for note in table.notes:
        say(note)
    return table


def training_rows(
    table: Table,
    target: str,
    *,
    categorical: Sequence[str] | None,
    drop: Sequence[str] | None,
    coding: str,
    missing: str,
) -> Learned:
    """Coded rows and the schema; hints name the options of the command."""
    from softsplit.data.schema import learn

    rules: Any = {"coding": coding, "missing": missing}
    try:
        return learn(table, target, categorical=categorical or (), drop=drop or (), **rules)
    except ValueError as error:
        raise ValueError(with_options(str(error))) from None


def load(path: Path) -> tuple[SoftTreeClassifier, InputSchema]:
    """A model file with the section that says which table it is for."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; give a model file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no model file {str(path)!r}.")
    from softsplit.persistence import ModelFileError, load_model

    try:
        tree = load_model(path)
    except ModelFileError as error:
        raise ValueError(
            f"{str(path)!r} is no model that can be used: {str(error).removesuffix('.')}; give a "
            "file that softsplit fit --model has written."
        ) from None
    if not hasattr(tree, "input_schema_"):
        raise ValueError(
            f"{str(path)!r} does not say which columns it was made for; write it with softsplit "
            "fit --model, or use it from Python."
        )
    return tree, tree.input_schema_


def needed_columns(tree: SoftTreeClassifier, schema: InputSchema) -> set[str]:
    """Columns that bear on what the tree says."""
    import numpy as np

    return schema.needed(np.flatnonzero(np.any(tree.weights_ != 0, axis=1)).tolist())


def rows_for(
    tree: SoftTreeClassifier,
    schema: InputSchema,
    table: Table,
    missing: str | None,
    unknown: str = "error",
) -> Rows:
    """Rows coded as the tree was trained; columns that it does not use need not be there."""
    rule: Any = missing or ("fill" if schema.missing == "fill" else "error")
    kind: Any = unknown
    try:
        return schema.code(table, needed_columns(tree, schema), rule, kind)
    except ValueError as error:
        raise ValueError(with_options(str(error), training=False)) from None


def framed(X: Any, schema: InputSchema) -> Any:
    """Rows with the names that the tree was trained with."""
    import pandas as pd

    return pd.DataFrame(X, columns=list(schema.feature_names))


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    write_file(path, text.encode("utf-8", errors="replace"))


def check_files(
    outputs: dict[str, Path | None], *, table: str | None = None, model: Path | None = None
) -> None:
    """Refuse, before any work is done, files that cannot be written or are read as well."""
    read_from = STANDARD_INPUT if table == "-" else table
    check_outputs(outputs, {"the table that is read": read_from, "the model that is read": model})


def with_options(message: str, training: bool = True) -> str:
    ways = "--missing drop or --missing fill" if training else "--missing blank or --missing fill"
    message = message.replace(
        "say with the option missing what to do with such rows", f"go on with {ways}"
    )
    if found := re.match(r"column (?P<name>.+) holds .*; leave it out", message):
        name = found["name"] if len(found["name"]) <= NAME_LENGTH else "and its name"
        message = message.replace("; leave it out", f"; leave it out with --drop {name}")
    if "which the training data did not have" in message:
        message = message.removesuffix(".") + "; go on with --unknown blank or --unknown none."
    return message
