"""``softsplit predict``: what a tree says about the rows of a table."""

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
from softsplit.support.messages import visible

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

    Only the columns that the tree uses must be there; every row has an answer, also with gaps and
    with texts that training did not have. It is a CSV with the number of the row (from 1, the line
    of names not counted) and its class.
    Labels are written as they are: a spreadsheet may take one that begins with "=" for a formula.
    """
    check_files({"--out": out}, table=data, model=model)
    stored = load_stored(model)
    tree = stored.model
    table = read(data, encoding, quiet)
    answers = _answers(tree, rows_for(stored, table))
    _compare(table, tree, answers, quiet)
    if as_json:
        print_json([_as_object(row, proba) for row in answers])
        return
    classes = [str(c) for c in tree.classes]
    if out is None:  # to a person or, bit by bit, to a program
        written = visible if sys.stdout.isatty() else str
        typer.echo(_csv(answers, classes, proba, written), nl=False)
    else:
        write_text(out, _csv(answers, classes, proba))
        if not quiet:
            say(f"{len(answers):,} rows are in {out}")


def _answers(tree: TreeModel, rows: CodedRows) -> list[tuple[int, str, Any]]:
    """Number of the row, its class, its probabilities."""
    if len(rows) == 0:
        return []
    chances, called = tree.predict_proba(rows.X), tree.classes[tree.predict_index(rows.X)]
    names = [str(label) for label in tree.classes]
    return [
        (i + 1, str(called[i]), dict(zip(names, chances[i], strict=True))) for i in range(len(rows))
    ]


def _compare(table: Table, tree: TreeModel, answers: Any, quiet: bool) -> None:
    """Where the table has the target, say how many answers are right."""
    from softsplit.data.learning import class_texts

    target = tree.target
    if quiet or target not in table.frame.columns:
        return
    known, classes = class_texts(table.frame[target]), {str(c) for c in tree.classes}
    pairs = [(known[i - 1], said) for i, said, _ in answers if known[i - 1] in classes]
    if pairs:
        right = sum(was == said for was, said in pairs)
        share = 100 * right / len(pairs)
        say(f"{right:,} of {len(pairs):,} answers agree with column {target!r} ({share:.1f} %).")


def _as_object(row: tuple[int, str, Any], proba: bool) -> dict[str, Any]:
    number, label, chances = row
    made: dict[str, Any] = {"row": number, "prediction": label}
    if proba:
        made["probabilities"] = {k: float(v) for k, v in chances.items()}
    return made


def _csv(answers: Any, classes: list[str], proba: bool, written: Callable[[str], str] = str) -> str:
    """The answers; ``written`` says how a label is put."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["row", "prediction", *(f"probability {written(c)}" for c in classes if proba)])
    for number, label, chances in answers:
        shown = [f"{chances[c]:.6g}" for c in classes] if proba else []
        writer.writerow([number, written(label), *shown])
    return buffer.getvalue()
