"""``softsplit report``: the report of a tree that was fitted before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softsplit.cli import options
from softsplit.cli.console import INTERRUPTED, echo, print_json, say
from softsplit.cli.heartbeat import signs_of_life
from softsplit.cli.inputs import load_any, option_advice, read
from softsplit.cli.outputs import as_object, check_files, figures_object, write_report
from softsplit.support.messages import shown, visible

if TYPE_CHECKING:
    from softsplit.data.files import Table
    from softsplit.data.schema import LabelledRows
    from softsplit.estimators.classifier import SoftTreeClassifier

EPILOG = "Example: softsplit report tree.json patients.csv --out tree.html"


def report(
    model: options.Model,
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The report.")] = Path("report.html"),
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            help="Column with the classes; only for a model file that was saved from Python.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    missing: options.RowMissingOption = None,
    encoding: options.Encoding = None,
    time_limit: options.TimeLimit = 0.0,
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Write the report of a tree: one HTML file with an explorer along the strength path.

    DATA is the table that the tree was fitted to, with its target. A model file that was saved from
    Python does not say which column that is: give --target. The report holds the tree, its figures
    on rows left out beside plain methods, right and wrong answers, features, and a slider over
    trees of other strengths. It needs no internet connection.
    """
    check_files({"--out": out}, table=data, model=model)
    tree = load_any(model)
    table = read(data, encoding, quiet)
    tree, rows = _rows(tree, table, target, missing.value if missing else None)
    story = (("Tree", f"read from {visible(model.name)}"),)
    with signs_of_life(quiet):
        subject, interrupted = write_report(
            out, table.name, rows, tree, story,
            seed=seed, jobs=jobs, quiet=quiet, time_limit=time_limit or None,
        )  # fmt: skip
    if as_json:
        print_json(
            {
                "report": str(out),
                "points": len(subject.trees),
                "chosen": subject.chosen,
                "accuracy": as_object(subject.accuracy(subject.chosen)),
                "majority": as_object(subject.baseline("majority")),
                "logistic": as_object(subject.baseline("logistic")),
                **figures_object(subject),
            }
        )
    else:
        echo(visible(out))
    if interrupted:
        say("interrupted: accuracies in the report are incomplete.")
        raise typer.Exit(INTERRUPTED)


def _rows(
    tree: SoftTreeClassifier, table: Table, target: str | None, missing: Any
) -> tuple[SoftTreeClassifier, LabelledRows]:
    """Rows as the tree takes them, whether or not its file knows the table."""
    from softsplit.report.anywhere import labelled_rows
    from softsplit.report.study import rows_of

    if hasattr(tree, "input_schema_"):
        if target not in (None, tree.input_schema_.target):
            raise ValueError(
                f"the model was fitted to the target {shown(tree.input_schema_.target)}, not "
                f"{shown(target)}; leave --target out."
            )
        with option_advice():
            return tree, rows_of(tree, table, missing)
    if target is None:
        raise ValueError(
            "this model file was saved from Python and does not say which column holds the "
            "classes; name it with --target."
        )
    return labelled_rows(tree, *_numbers(tree, table, target))


def _numbers(tree: SoftTreeClassifier, table: Table, target: str) -> tuple[Any, Any]:
    """Features and classes of a table for a tree that was trained on numbers, in Python."""
    from softsplit.data.checks import require_columns
    from softsplit.data.files import as_numbers

    require_columns(table.frame, [target], "target")
    named = getattr(tree, "feature_names_in_", None)
    if named is None:
        named = [name for name in table.frame.columns if name != target]
        if len(named) != tree.n_features_in_:
            raise ValueError(
                f"the model has {tree.n_features_in_} features without names, and the table "
                f"{len(named)} columns beside the target; give a table with just those."
            )
    require_columns(table.frame, list(named))
    frame = table.frame[list(named)].copy()
    for name in named:
        values = as_numbers(frame[name], table.decimal_comma)
        if values is None or values.isna().any():
            raise ValueError(f"column {shown(str(name))} must hold a number in every row.")
        frame[name] = values
    words = {str(label): label for label in tree.classes_.tolist()}
    labels = [words.get(str(value), value) for value in table.frame[target]]
    return frame, labels
