"""``softsplit predict``: predict the classes of the rows of a table."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softsplit.cli import options
from softsplit.cli.console import print_json, say
from softsplit.cli.inputs import known_classes, load_stored, read, rows_for
from softsplit.cli.outputs import check_files, write_text
from softsplit.support.messages import counted, visible

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from softsplit.fitted.model import TreeModel
    from softsplit.variables import CodedRows

EPILOG = "Example: softsplit predict tree.json new.csv --proba --refer 0.9 --out answers.csv"


COLUMNS = {"--confidence": "set", "--refer": "refer"}
"""Columns that options add, in order."""


@dataclass(frozen=True)
class Answer:
    """What is written about one row; ``classes`` is its prediction set, if one was asked for."""

    row: int
    label: str
    probabilities: dict[str, float]
    classes: list[str] | None = None
    refer: bool | None = None


def predict(
    model: options.Model,
    data: options.Data,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write CSV here; default: standard output.")
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of every class.")
    ] = False,
    confidence: Annotated[
        float | None,
        typer.Option(
            "--confidence",
            help="Add a set of classes that holds the true class in this share of cases, such as "
            "0.9.",
        ),
    ] = None,
    refer: Annotated[
        float | None,
        typer.Option(
            "--refer",
            help="Mark the rows for a person to decide: those whose set at this confidence holds "
            "other classes or none.",
        ),
    ] = None,
    class_conditional: Annotated[
        bool,
        typer.Option(
            "--class-conditional",
            help="Make the share hold within each class, not only over all rows.",
        ),
    ] = False,
    target: Annotated[
        str | None,
        options.target_option(
            "Column with the classes, to compute the accuracy, if the model does not name it."
        ),
    ] = None,
    encoding: options.Encoding = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Predict the class of every row, in the order of the table.

    Only the columns that the tree uses must be there. Every row gets a prediction, also with
    missing values and with texts that are absent from training. The output is a CSV with the number
    of the row (from 1, the header not counted) and its class.
    Labels are written unchanged: a spreadsheet may take one that begins with "=" for a formula.
    Prediction sets need a tree that was chosen by cross-validation or calibrated.
    """
    check_files({"--out": out}, table=data, model=model)
    from softsplit.fitted.conformal import checked_confidence, known_scores

    asked = {"--confidence": confidence, "--refer": refer}
    levels = {n: checked_confidence(v, n) for n, v in asked.items() if v is not None}
    if class_conditional and not levels:
        raise ValueError("--class-conditional is for prediction sets; add --confidence or --refer.")
    stored = load_stored(model)
    tree = stored.tree_
    if levels:
        known_scores(tree.held_out)
    table = read(data, encoding, quiet)
    labels = known_classes(table, tree, target)[1]
    answers = _answers(tree, rows_for(stored, table, target), levels, class_conditional)
    if not quiet:
        _compare(tree, answers, labels)
    if as_json:
        print_json([_as_object(answer, proba) for answer in answers])
        return
    classes = [str(c) for c in tree.classes] if proba else []
    if out is None:  # labels are escaped on a terminal and left as they are in a pipe
        written = visible if sys.stdout.isatty() else str
        typer.echo(_csv(answers, classes, list(levels), written), nl=False)
    else:
        write_text(out, _csv(answers, classes, list(levels)))
        if not quiet:
            say(f"{counted(len(answers), 'row')} written to {out}")


def _answers(
    tree: TreeModel, rows: CodedRows, levels: dict[str, float], class_conditional: bool
) -> list[Answer]:
    """Return what is written about each row; ``levels`` are confidences by option."""
    if len(rows) == 0:
        return []
    from softsplit.fitted.conformal import known_scores, passed_on

    probabilities = tree.predict_proba(rows.X)
    calls = tree.predict_index(rows.X)
    predicted = tree.classes[calls]
    names = [str(label) for label in tree.classes]
    sets = {
        option: known_scores(tree.held_out).sets(
            probabilities, level, class_conditional=class_conditional
        )
        for option, level in levels.items()
    }
    found, passed = sets.get("--confidence"), sets.get("--refer")
    passed = None if passed is None else passed_on(passed, calls)
    return [
        Answer(
            row=i + 1,
            label=str(predicted[i]),
            probabilities=dict(zip(names, map(float, probabilities[i]), strict=True)),
            classes=None if found is None else [names[k] for k in found[i].nonzero()[0]],
            refer=None if passed is None else bool(passed[i]),
        )
        for i in range(len(rows))
    ]


def _compare(tree: TreeModel, answers: list[Answer], labels: NDArray[np.int64] | None) -> None:
    """Print how many rows go to a person and, where classes are known, how many are right."""
    from softsplit.fitted.conformal import told_decisions

    asked = any(answer.refer is not None for answer in answers)
    hits: dict[int, bool] = {}
    if labels is not None:
        names = [str(label) for label in tree.classes]
        hits = {a.row: names[k] == a.label for a in answers if (k := labels[a.row - 1]) >= 0}
    if hits:
        say(f"accuracy on {counted(len(hits), 'row')}: {_share(hits.values())}")
    if asked:
        passed = sum(bool(answer.refer) for answer in answers)
        rest = [hits[a.row] for a in answers if not a.refer and a.row in hits]
        some = len(rest) < len(answers) - passed
        among = f" (of the {counted(len(rest), 'row')} with a known class)" if some else ""
        right = _share(rest) if rest else None
        say(told_decisions("row", passed, len(answers), right, among))


def _share(hits: Collection[bool]) -> str:
    return f"{100 * sum(hits) / len(hits):.1f} %"


def _as_object(answer: Answer, proba: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"row": answer.row, "prediction": answer.label}
    if proba:
        made["probabilities"] = answer.probabilities
    if answer.classes is not None:
        made["set"] = answer.classes
    if answer.refer is not None:
        made["refer"] = answer.refer
    return made


def _csv(
    answers: list[Answer],
    classes: list[str],
    asked: list[str],
    written: Callable[[str], str] = str,
) -> str:
    """Return the answers as CSV with the probabilities of ``classes``.

    ``written`` converts a label to its text, ``asked`` are the options that add columns.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    more = [name for option, name in COLUMNS.items() if option in asked]
    writer.writerow(["row", "prediction", *(f"probability {written(c)}" for c in classes), *more])
    for answer in answers:
        values = [f"{answer.probabilities[c]:.6g}" for c in classes]
        if answer.classes is not None:
            values.append(" | ".join(map(written, answer.classes)))
        if answer.refer is not None:
            values.append("yes" if answer.refer else "no")
        writer.writerow([answer.row, written(answer.label), *values])
    return buffer.getvalue()
