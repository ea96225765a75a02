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
from softsplit.cli.inputs import load, read, rows_for
from softsplit.cli.outputs import check_files, write_text
from softsplit.support.messages import visible

if TYPE_CHECKING:
    from softsplit.data.files import Table

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
    missing: options.RowMissingOption = None,
    unknown: options.UnknownOption = options.Unknown.error,
    encoding: options.Encoding = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Predict the class of every row, in the order of the table.

    Only the columns that the tree uses must be there; texts are coded as in training. The answer
    is a CSV with the number of the row (from 1, the line of names not counted) and its class.
    Labels are written as they are: a spreadsheet may take one that begins with "=" for a formula.
    """
    check_files({"--out": out}, table=data, model=model)
    tree, schema = load(model)
    table = read(data, encoding, quiet)
    rule = missing.value if missing else None
    rows = rows_for(tree, schema, table, rule, unknown.value)
    from softsplit.data.schema import framed

    answers = _answers(tree, framed(rows.X, schema), rows.complete, rule == "drop")
    if not rows.complete.all():
        lost = int((~rows.complete).sum())
        total = len(rows.complete)
        say(f"{lost:,} of {total:,} rows have no answer: a value is missing or unknown.")
    _compare(table, tree, answers, quiet)
    if as_json:
        print_json([_as_object(row, proba) for row in answers])
        return
    classes = [str(c) for c in tree.classes_]
    if out is None:  # to a person or, bit by bit, to a program
        written = visible if sys.stdout.isatty() else str
        typer.echo(_csv(answers, classes, proba, written), nl=False)
    else:
        write_text(out, _csv(answers, classes, proba))
        if not quiet:
            say(f"{len(answers):,} rows are in {out}")


def _answers(tree: Any, frame: Any, complete: Any, drop: bool) -> list[tuple[int, str | None, Any]]:
    """Number of the row, its class, its probabilities."""
    if len(frame) == 0:
        return []
    chances, called = tree.predict_proba(frame), tree.predict(frame)
    names = [str(label) for label in tree.classes_]
    return [
        (i + 1, str(called[i]) if complete[i] else None, dict(zip(names, chances[i], strict=True)))
        for i in range(len(frame))
        if complete[i] or not drop
    ]


def _compare(table: Table, tree: Any, answers: Any, quiet: bool) -> None:
    """Where the table has the target, say how many answers are right."""
    target = tree.input_schema_.target
    if quiet or target not in table.frame.columns:
        return
    known = table.frame[target]
    pairs = [(str(known.iloc[i - 1]), said) for i, said, _ in answers if said is not None]
    pairs = [(was, said) for was, said in pairs if was in {str(c) for c in tree.classes_}]
    if pairs:
        right = sum(was == said for was, said in pairs)
        share = 100 * right / len(pairs)
        say(f"{right:,} of {len(pairs):,} answers agree with column {target!r} ({share:.1f} %).")


def _as_object(row: tuple[int, str | None, Any], proba: bool) -> dict[str, Any]:
    number, label, chances = row
    made: dict[str, Any] = {"row": number, "prediction": label}
    if proba:
        made["probabilities"] = None if label is None else {k: float(v) for k, v in chances.items()}
    return made


def _csv(answers: Any, classes: list[str], proba: bool, written: Callable[[str], str] = str) -> str:
    """The answers; ``written`` says how a label is put."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["row", "prediction", *(f"probability {written(c)}" for c in classes if proba)])
    for number, label, chances in answers:
        shown = ["" if label is None else f"{chances[c]:.6g}" for c in classes] if proba else []
        writer.writerow([number, "" if label is None else written(label), *shown])
    return buffer.getvalue()
