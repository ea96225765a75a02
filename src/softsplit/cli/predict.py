"""``softsplit predict``: predict the classes of the rows of a table."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softsplit.cli import options
from softsplit.cli.console import print_json, say
from softsplit.cli.inputs import load_stored, read, rows_for
from softsplit.cli.outputs import check_files, write_text
from softsplit.support.messages import counted, visible

if TYPE_CHECKING:
    from softsplit.data.files import Table
    from softsplit.reading.model import TreeModel
    from softsplit.variables import CodedRows

EPILOG = "Example: softsplit predict tree.json new.csv --proba --out answers.csv"


def predict(
    model: options.Model,
    data: options.Data,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write CSV here; default: standard output.")
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of every class.")
    ] = False,
    encoding: options.Encoding = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Predict the class of every row, in the order of the table.

    Only the columns that the tree uses must be there. Every row gets a prediction, also with
    missing values and with texts that are absent from training. The output is a CSV with the number
    of the row (from 1, the header not counted) and its class.
    Labels are written unchanged: a spreadsheet may take one that begins with "=" for a formula.
    """
    check_files({"--out": out}, table=data, model=model)
    stored = load_stored(model)
    tree = stored.model
    table = read(data, encoding, quiet)
    predictions = _predictions(tree, rows_for(stored, table))
    _compare(table, tree, predictions, quiet)
    if as_json:
        print_json([_as_object(row, proba) for row in predictions])
        return
    classes = [str(c) for c in tree.classes]
    if out is None:  # labels are escaped on a terminal and left as they are in a pipe
        written = visible if sys.stdout.isatty() else str
        typer.echo(_csv(predictions, classes, proba, written), nl=False)
    else:
        write_text(out, _csv(predictions, classes, proba))
        if not quiet:
            say(f"{counted(len(predictions), 'row')} written to {out}")


def _predictions(tree: TreeModel, rows: CodedRows) -> list[tuple[int, str, Any]]:
    """Return for each row its number, its predicted class and its class probabilities."""
    if len(rows) == 0:
        return []
    probabilities = tree.predict_proba(rows.X)
    predicted = tree.classes[tree.predict_index(rows.X)]
    names = [str(label) for label in tree.classes]
    return [
        (i + 1, str(predicted[i]), dict(zip(names, probabilities[i], strict=True)))
        for i in range(len(rows))
    ]


def _compare(table: Table, tree: TreeModel, predictions: Any, quiet: bool) -> None:
    """If the table has the target column, print how many predictions agree with it."""
    from softsplit.data.learning import class_texts

    target = tree.target
    if quiet or target not in table.frame.columns:
        return
    known, classes = class_texts(table.frame[target]), {str(c) for c in tree.classes}
    pairs = [(known[i - 1], label) for i, label, _ in predictions if known[i - 1] in classes]
    if pairs:
        correct = sum(true == label for true, label in pairs)
        share = 100 * correct / len(pairs)
        say(f"accuracy on {counted(len(pairs), 'row')}: {share:.1f} %")


def _as_object(row: tuple[int, str, Any], proba: bool) -> dict[str, Any]:
    number, label, probabilities = row
    made: dict[str, Any] = {"row": number, "prediction": label}
    if proba:
        made["probabilities"] = {k: float(v) for k, v in probabilities.items()}
    return made


def _csv(
    predictions: Any, classes: list[str], proba: bool, written: Callable[[str], str] = str
) -> str:
    """Return the predictions as CSV; ``written`` converts a label to its text."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["row", "prediction", *(f"probability {written(c)}" for c in classes if proba)])
    for number, label, probabilities in predictions:
        values = [f"{probabilities[c]:.6g}" for c in classes] if proba else []
        writer.writerow([number, written(label), *values])
    return buffer.getvalue()
