"""From the arguments of a command to tables, models and rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softsplit.cli.console import say
from softsplit.support.messages import AdvisedError, shown

if TYPE_CHECKING:
    from softsplit.data.files import Table
    from softsplit.data.schema import InputSchema, LabelledRows, Rows
    from softsplit.estimators.classifier import SoftTreeClassifier


NAME_LENGTH = 60
"""Longer names are cut in sentences, so that they cannot be copied from there."""


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
) -> LabelledRows:
    """Coded rows and the schema."""
    from softsplit.data.learning import learn

    rules: Any = {"coding": coding, "missing": missing}
    with option_advice("--missing drop or --missing fill"):
        return learn(table, target, categorical=categorical or (), drop=drop or (), **rules)


def load_any(path: Path) -> SoftTreeClassifier:
    """A model file, whether or not it says which table it is for."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; give a model file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no model file {str(path)!r}.")
    from softsplit.persistence import ModelFileError, load_model

    try:
        return load_model(path)
    except ModelFileError as error:
        raise ValueError(
            f"{str(path)!r} is no model that can be used: {str(error).removesuffix('.')}; give a "
            "file that softsplit fit --model has written."
        ) from None


def load(path: Path) -> tuple[SoftTreeClassifier, InputSchema]:
    """A model file with the section that says which table it is for."""
    tree = load_any(path)
    if not hasattr(tree, "input_schema_"):
        raise ValueError(
            f"{str(path)!r} does not say which columns it was made for; write it with softsplit "
            "fit --model, or use it from Python."
        )
    return tree, tree.input_schema_


def rows_for(
    tree: SoftTreeClassifier,
    schema: InputSchema,
    table: Table,
    missing: str | None,
    unknown: str = "error",
) -> Rows:
    """Rows coded as the tree was trained; columns that it does not use need not be there."""
    from softsplit.tree.sparsity import selected_features

    rule: Any = missing or ("fill" if schema.missing == "fill" else "error")
    kind: Any = unknown
    with option_advice():
        return schema.code(table, schema.needed(selected_features(tree.weights_)), rule, kind)


@contextmanager
def option_advice(missing: str = "--missing blank or --missing fill") -> Iterator[None]:
    """Errors that advise on arguments of Python advise on options of the command instead.

    ``missing`` are the options that settle missing values.
    """
    try:
        yield
    except AdvisedError as error:
        raise ValueError(error.advising(_advice(error, missing))) from None


def _advice(error: AdvisedError, missing: str) -> str:
    from softsplit.data import errors

    match error:
        case errors.MissingValues():
            return f"fill them in, or go on with {missing}"
        case errors.MissingClasses():
            return "go on without them by --missing drop"
        case errors.UnknownLevel():
            return "go on with --unknown blank or --unknown none"
        case errors.UselessColumn(column=column):
            name = shown(column)
            return (
                f"leave it out with --drop {name if len(name) <= NAME_LENGTH else 'and its name'}"
            )
        case errors.TooFewToChoose():
            return "give them with --depth and --strength, or more rows"
    return error.advice
