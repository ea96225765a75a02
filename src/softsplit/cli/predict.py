"""``softsplit predict``: predict the classes of the rows of a table."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softsplit.cli import options
from softsplit.cli.console import print_json, say
from softsplit.cli.inputs import known_classes, load_stored, read, rows_for
from softsplit.cli.numbers import Asked, number_answers
from softsplit.cli.outputs import check_files, write_text
from softsplit.support.messages import counted, visible

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from softsplit.fitted.model import TreeModel
    from softsplit.variables import CodedRows

EPILOG = "Example: softsplit predict tree.json new.csv --proba --refer 0.9 --out answers.csv"


# What is written about a row: "row", "prediction" and, if asked for, "probabilities", "set" (the
# prediction set) and "refer" (whether the row goes to a person).
Answer = dict[str, Any]


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
    """Predict the class of every row, or its number, in the order of the table.

    Only the columns that the tree uses must be there. Every row gets a prediction, also with
    missing values and with texts that are absent from training. The output is a CSV with the number
    of the row (from 1, the header not counted) and its class.
    Labels are written unchanged: a spreadsheet may take one that begins with "=" for a formula.
    Prediction sets, or of a number low and high of the interval at --confidence, need a tree that
    was chosen by cross-validation or calibrated.
    """
    # 1. What can be checked before the table is read.
    check_files({"--out": out}, table=data, model=model)
    from softsplit.fitted.conformal import checked_confidence, known_scores

    levels = {
        name: checked_confidence(level, option)
        for name, option, level in (
            ("set", "--confidence", confidence),
            ("refer", "--refer", refer),
        )
        if level is not None
    }
    if class_conditional and not levels:
        raise ValueError("--class-conditional is for prediction sets; add --confidence or --refer.")
    stored = load_stored(model, numbers=not (proba or refer or class_conditional))
    tree = stored.tree_
    if tree.numbers is not None:
        table = read(data, encoding, quiet)
        exposure = None
        if tree.numbers.totals is not None and tree.numbers.baseline is None:
            asked = Asked("number", None, tree.numbers.per)
            exposure = asked.column_apart(table.frame) if asked.apart in table.frame else None
        rows = rows_for(stored, table, target)
        told, names = number_answers(tree, rows.X, levels.get("set"), exposure)
        if as_json:
            print_json(told)
        elif out is None:
            typer.echo(_lines(names, [list(line.values()) for line in told]), nl=False)
        else:
            write_text(out, _lines(names, [list(line.values()) for line in told]))
        return
    if levels:
        known_scores(tree.held_out)
    # 2. An answer for each row, and how many are right where classes are known.
    table = read(data, encoding, quiet)
    labels = known_classes(table, tree, target)[1]
    answers = _answers(tree, rows_for(stored, table, target), levels, class_conditional, proba)
    if not quiet:
        _compare(tree, answers, labels)
    # 3. JSON, or CSV with the columns that were asked for.
    if as_json:
        print_json(answers)
        return
    classes = [str(c) for c in tree.classes] if proba else []
    if out is None:  # labels are escaped on a terminal and left as they are in a pipe
        written = visible if sys.stdout.isatty() else str
        typer.echo(as_csv(answers, classes, list(levels), written), nl=False)
    else:
        write_text(out, as_csv(answers, classes, list(levels)))
        if not quiet:
            say(f"{counted(len(answers), 'row')} written to {out}")


def _answers(
    tree: TreeModel, rows: CodedRows, levels: dict[str, float], class_conditional: bool, proba: bool
) -> list[Answer]:
    """Return what is written about each row; ``levels`` are confidences of "set" and "refer"."""
    if len(rows) == 0:
        return []
    from softsplit.fitted.conformal import known_scores, passed_on

    probabilities, calls = tree.predict_proba(rows.X), tree.predict_index(rows.X)
    names = [str(label) for label in tree.classes]
    answers: list[Answer] = [
        {"row": i, "prediction": names[call]} for i, call in enumerate(calls.tolist(), 1)
    ]
    if proba:
        for answer, shares in zip(answers, probabilities.tolist(), strict=True):
            answer["probabilities"] = dict(zip(names, shares, strict=True))
    for name, level in levels.items():
        sets = known_scores(tree.held_out).sets(
            probabilities, level, class_conditional=class_conditional
        )
        passed = passed_on(sets, calls)
        for i, answer in enumerate(answers):
            own = [names[k] for k in sets[i].nonzero()[0]]
            answer[name] = own if name == "set" else bool(passed[i])
    return answers


def _compare(tree: TreeModel, answers: list[Answer], labels: NDArray[np.int64] | None) -> None:
    """Print how many rows go to a person and, where classes are known, how many are right."""
    from softsplit.fitted.conformal import told_decisions

    hits: dict[int, bool] = {}
    if labels is not None:
        names = [str(label) for label in tree.classes]
        hits = {
            answer["row"]: names[k] == answer["prediction"]
            for answer, k in zip(answers, labels.tolist(), strict=True)
            if k >= 0
        }
    if hits:
        say(f"accuracy on {counted(len(hits), 'row')}: {_share(hits.values())}")
    if answers and "refer" in answers[0]:
        kept = [answer["row"] for answer in answers if not answer["refer"]]
        rest = [hits[row] for row in kept if row in hits]
        some = len(rest) < len(kept)
        among = f" (of the {counted(len(rest), 'row')} with a known class)" if some else ""
        right = _share(rest) if rest else None
        say(told_decisions("row", len(answers) - len(kept), len(answers), right, among))


def _share(hits: Collection[bool]) -> str:
    return f"{100 * sum(hits) / len(hits):.1f} %"


def as_csv(
    answers: list[Answer], classes: list[str], more: list[str], written: Callable[[str], str] = str
) -> str:
    """Return the answers as CSV with the probabilities of ``classes``.

    ``written`` converts a label to its text; ``more`` are further entries that become columns.
    """
    rows = []
    for answer in answers:
        values = [f"{answer['probabilities'][c]:.6g}" for c in classes]
        if "set" in more:
            values.append(" | ".join(map(written, answer["set"])))
        if "refer" in more:
            values.append("yes" if answer["refer"] else "no")
        rows.append([answer["row"], written(answer["prediction"]), *values])
    return _lines(
        ["row", "prediction", *(f"probability {written(c)}" for c in classes), *more], rows
    )


def _lines(names: list[str], rows: list[list[Any]]) -> str:
    """Return a table as CSV."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([names, *rows])
    return buffer.getvalue()
