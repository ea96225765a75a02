"""``softsplit check``: whether new rows are like those that a tree was trained on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from softsplit.cli import options
from softsplit.cli.console import MOVED, echo, print_json, say
from softsplit.cli.inputs import known_classes, load_stored, read
from softsplit.cli.outputs import check_files, write_text

EPILOG = (
    "Example: softsplit check tree.json new.csv --html check.html. "
    "Exit codes: 0 nothing has moved, 1 something has, 2 something is wrong with the request."
)


def check(
    model: options.Model,
    data: options.Data,
    target: Annotated[
        str | None,
        options.target_option(
            "Column with the classes, if the model does not name it; it may be absent."
        ),
    ] = None,
    level: Annotated[
        float, typer.Option("--level", help="Chance of a false alarm over all columns together.")
    ] = 0.05,
    used_only: Annotated[
        bool, typer.Option("--used-only", help="Look only at the columns that the tree uses.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the result as an HTML page to this file.")
    ] = None,
    encoding: options.Encoding = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Compare a table with the training rows of a tree; exit code 1 if something has moved.

    Compared are, for each column, the distribution of its values, values outside of the training
    range and missing values; the leaves at which rows arrive; and, where the table has the classes,
    their shares, the accuracy beside that on held-out rows of training, and the mean probabilities;
    of a number its mean, and the error beside that in training. The chance of a false alarm holds
    for all tests together. Columns that the tree does not use may be absent.
    """
    # 1. What can be checked before the table is read.
    check_files({"--html": html}, table=data, model=model)
    from softsplit.fitted.conformal import checked_confidence

    level = checked_confidence(level, "--level")
    stored = load_stored(model, numbers=True)
    table = read(data, encoding, quiet)
    from softsplit.data.files import with_decimal_points
    from softsplit.data.learning import features_of
    from softsplit.drift.table_check import check_table, coded_with_missing

    # 2. Its rows in the coding of the tree; columns that the tree does not use may be absent.
    tree = stored.tree_
    name, labels = known_classes(table, tree, target)
    rest = features_of(with_decimal_points(table), name)
    if stored.named:
        rows, absent = coded_with_missing(tree, rest)
    else:
        rows, absent = replace(tree.table_coding, named=False).code(rest), []
    # 3. The tests.
    result = check_table(tree, rows, labels, absent=absent, level=level, used_only=used_only)
    if html is not None:
        write_text(html, result.to_html())
        if not quiet:
            say(f"the page is in {html}")
    if as_json:
        print_json(result.to_dict())
    else:
        echo(str(result))
    if not result.fine:
        raise typer.Exit(MOVED)
