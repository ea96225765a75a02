"""Conversion of command arguments into tables, models, coded rows, and the weights, costs and
minimum rates of classes (CLASS=NUMBER, or a number); options of the table as they were given."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softsplit.cli.console import heartbeat, say
from softsplit.support.messages import counted, shown

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from softsplit.advice.limits import AdviceLimits
    from softsplit.data.files import Table
    from softsplit.data.learning import LabelledRows
    from softsplit.estimators.classifier import SoftTreeClassifier
    from softsplit.fitted.model import TreeModel
    from softsplit.persistence.saved import SavedTree
    from softsplit.variables import CodedRows

# Columns that a message names.
COLUMNS = 5


def read(source: str, encoding: str | None = None, quiet: bool = False) -> Table:
    """Read a table; announce it first, since importing pandas takes a moment."""
    activity = f"reading {'standard input' if source == '-' else source}"
    if not quiet:
        say(activity)
    with heartbeat(quiet, activity):
        from softsplit.data.files import read_table

        table = read_table(source, encoding=encoding)
    for note in table.notes:
        say(note)
    return table


def training_rows(
    table: Table,
    target: str,
    kinds: Mapping[str, str],
    apart: Sequence[str] = (),
    *,
    quiet: bool = False,
) -> LabelledRows:
    """Return the coded rows of a training table; columns ``apart`` are kept as they are too."""
    with heartbeat(quiet, "looking at the columns"), warnings.catch_warnings(record=True) as caught:
        from softsplit.data.learning import learn
        from softsplit.variables import ColumnsLeftOut

        warnings.simplefilter("always", ColumnsLeftOut)
        rows = learn(table, target, kinds, apart)
    # What is left out is said at once, with options in place of parameters of Python.
    for warning in caught:
        if isinstance(warning.message, ColumnsLeftOut):
            odd = shlex.quote(warning.message.nearly_dates or "")
            say(warning.message.advising("name it with --keep", f"--date {odd} lists them"))
    if rows.dropped_rows:
        say(
            f"rows without a class in column {shown(target)}: {rows.dropped_rows:,}; they are not "
            "used, fill the classes in to train on them."
        )
    if not quiet:
        variables = counted(rows.coding.n_candidates, "variable")
        say(f"{counted(len(rows.y), 'row')}, {variables}; loading the solver")
    return rows


def load(path: Path, quiet: bool = False, *, numbers: bool = False) -> SoftTreeClassifier:
    """Load the estimator of a model file, and with it the training code.

    Trees that predict ``numbers`` are for commands that serve them.
    """
    with heartbeat(quiet, f"reading {path}"):
        from softsplit.fitted.model import refuse_numbers
        from softsplit.persistence.files import load_model

        try:
            tree: SoftTreeClassifier = _load(path, load_model)
        except ImportError as error:  # the command says which package it needs
            raise (error.__cause__ or error) from None
    if not numbers:
        refuse_numbers(tree.tree_)
    return tree


def load_stored(path: Path, *, numbers: bool = False) -> SavedTree:
    """Load the tree of a model file, without importing the training code.

    Trees that predict ``numbers`` are for commands that serve them.
    """
    from softsplit.fitted.model import refuse_numbers
    from softsplit.persistence.files import load_tree

    saved: SavedTree = _load(path, load_tree)
    if not numbers:
        refuse_numbers(saved.tree_)
    return saved


def _load(path: Path, how: Callable[[Path], Any]) -> Any:
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; give a model file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no model file {str(path)!r}.")
    from softsplit.persistence.records import ModelFileError

    try:
        return how(path)
    except ModelFileError as error:
        why = str(error).removesuffix(".")
        why = "" if "not valid JSON" in why else f" that can be read ({why})"
        raise ValueError(
            f"{str(path)!r} is not a softsplit model file{why}; pass one written by softsplit fit "
            "--model or save_model."
        ) from None


def rows_for(
    tree: SavedTree, table: Table, target: str | None = None, *, remarks: bool = True
) -> CodedRows:
    """Return the rows of a table in the coding of the tree; unused columns may be absent.

    ``target`` is the column with the classes, if the tree does not know it.
    With ``remarks`` messages count values that are unlike all training rows; ``explain``
    says of each row how they are treated.
    """
    from softsplit.data.files import with_decimal_points
    from softsplit.data.learning import features_of
    from softsplit.fitted.ranges import far_columns

    model = tree.tree_
    rows = tree.code(features_of(with_decimal_points(table), target or model.target))
    if not remarks:
        return rows
    needed = model.selected_variables.tolist()
    used = [(rows.coding.variables[i], rows.cells[i]) for i in needed]
    new = {v.name: v.unseen(cells) for v, cells in used}
    missing = {v.name: cells.missing for v, cells in used if not v.has_missing}
    _say_counts(new, "have a value of {} that was not seen in training")
    _say_counts(missing, "have a missing value of {}, as no training row had")
    for column in far_columns(model, rows.X):
        _say_counts({column.name: column.rows}, f"have a value of {{}} {column.training}")
    return rows


def _say_counts(rows_by_column: Mapping[str, NDArray[np.bool_]], sentence: str) -> None:
    """Say for each column how many of its rows are marked, if any."""
    counts = {name: int(rows.sum()) for name, rows in rows_by_column.items() if rows.any()}
    for name, count in list(counts.items())[:COLUMNS]:
        verb = sentence if count > 1 else sentence.replace("have", "has", 1)
        which = f"{count:,} row{'s' if count > 1 else ''} {verb.format(shown(name, 40))}"
        say(f"{which}; softsplit explain shows how it is treated.")
    if len(counts) > COLUMNS:
        say(f"{len(counts) - COLUMNS} more columns have such values.")


def known_classes(
    table: Table, model: TreeModel, target: str | None
) -> tuple[str | None, NDArray[Any] | None]:
    """Return the column with the classes and their positions among those of a tree.

    The positions are -1 for other classes and -2 for none; None if there is no such column. Of a
    tree for a number it is the column with the numbers, NaN for what is none.
    """
    if target is not None and target not in table.frame.columns:
        raise ValueError(f"--target names {target!r}, which is not a column of the table.")
    name = target or model.target
    if name not in table.frame.columns:
        return name, None
    import numpy as np

    if model.numbers is not None:
        from pandas import to_numeric

        values = to_numeric(table.frame[name], errors="coerce")
        return name, values.to_numpy(dtype=float, na_value=np.nan)
    from softsplit.fitted.conformal import known_labels

    return name, known_labels(model.labels, np.asarray(table.frame[name], dtype=object))


def groups_by(table: Table, target: str, by: str | None) -> tuple[str, pd.Categorical] | None:
    """Return the column of --by and the group of each row that has a class; None without it."""
    if by is None:
        return None
    if by not in table.frame.columns:
        raise ValueError(f"--by names {shown(by)}, which is not a column of the table.")
    from softsplit.data.learning import class_texts
    from softsplit.report.groups import group_names

    kept = [label is not None for label in class_texts(table.frame[target])]
    return by, group_names(table.frame[by][kept])


def advice_limits(
    tree: SavedTree,
    fixed: Sequence[str] | None,
    ranges: Sequence[str] | None,
    only_decrease: Sequence[str] | None,
    only_increase: Sequence[str] | None,
) -> AdviceLimits:
    """Return limits for advice from lists of columns and from texts COLUMN=LOW:HIGH."""
    from softsplit.advice.limits import AdviceLimits
    from softsplit.data.learning import split_names
    from softsplit.variables.variable import CATEGORY

    coding = tree.tree_.table_coding
    kinds = {variable.name: variable.kind for variable in coding.variables}
    names = [*coding.names, *kinds]
    limits: dict[str, Any] = {}
    for text in ranges or ():
        fitting = [name for name in names if text.startswith(f"{name}=")]
        name = max(fitting, key=len, default="")
        value = text[len(name) + 1 :]
        if kinds.get(name) == CATEGORY:
            limits[name] = split_names([value], ())
        elif fitting and ":" in value:
            low, _, high = value.partition(":") if value.count(":") == 1 else _halves(value)
            limits[name] = (low.strip() or None, high.strip() or None)
        else:
            raise ValueError(
                f"--range {shown(text)} must be COLUMN=LOW:HIGH, with a column of the tree."
            )
    listed = [split_names(given or (), names) for given in (fixed, only_decrease, only_increase)]
    return AdviceLimits.of(listed[0], limits, listed[1], listed[2])


def _halves(text: str) -> tuple[str, str, str]:
    """Split two times, which have colons themselves, at the colon in the middle."""
    parts = text.split(":")
    half = len(parts) // 2
    return ":".join(parts[:half]), ":", ":".join(parts[half:])
