"""``softsplit report``: write the report of a saved tree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from softsplit.cli import options
from softsplit.cli.console import INTERRUPTED, echo, heartbeat, print_json, say
from softsplit.cli.inputs import groups_by, load, load_stored, read
from softsplit.cli.numbers import report_numbers
from softsplit.cli.outputs import (
    as_object,
    baseline_worker,
    check_files,
    figures_object,
    write_report,
    write_text,
)
from softsplit.support.messages import visible

EPILOG = "Example: softsplit report tree.json patients.csv --out tree.html"


def report(
    context: typer.Context,
    model: options.Model,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="The table that the tree was fitted to; - is standard input. Without it, a page "
            "of the tree alone.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The report.")] = Path("report.html"),
    target: Annotated[
        str | None, options.target_option("Column with the classes, if the model does not name it.")
    ] = None,
    page_rows: Annotated[
        int | None,
        typer.Option(
            "--page-rows",
            min=0,
            help="Number of rows in the page, for editing the tree there; default 500, 0 for none.",
        ),
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option(
            "--held-out",
            help="Table of rows with classes that the tree was not fitted to: the page uses them "
            "instead of training rows for the figures of an edited tree.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    by: options.By = None,
    refer: options.Refer = 0.9,
    encoding: options.Encoding = None,
    time_limit: options.TimeLimit = 0.0,
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Write the report of a tree: one HTML file with an explorer along the strength path.

    DATA is the table that the tree was fitted to, with its target. A model file that was saved from
    Python does not say which column that is: give --target. The report holds the tree, its metrics
    on held-out rows beside baselines, correct and wrong predictions, features, and a slider over
    trees of other strengths. It needs no internet connection.

    Without DATA the page has the tree, as a drawing and in words, and its columns.
    """
    check_files({"--out": out}, table=data, model=model)
    if data is None:
        given = {"--target": target, "--held-out": held_out, "--by": by, "--page-rows": page_rows}
        _write_page(model, out, [name for name, value in given.items() if value is not None])
        if as_json:
            print_json({"report": str(out)})
        else:
            echo(visible(out))
        return
    # 1. The rows of training, and others that the tree has not seen.
    tree = load(model, quiet, numbers=True)
    table = read(data, encoding, quiet)
    if tree.tree_.numbers is not None:
        classes = {"--held-out": held_out, "--by": by, "--page-rows": page_rows}
        figures = report_numbers(tree, table, target, out, classes, quiet=quiet)
        if as_json:
            print_json({"report": str(out)} | figures)
        else:
            echo(visible(out))
        return
    with heartbeat(quiet, "looking at the columns"):
        from softsplit.report.study import check_training_rows, rows_of

        rows = rows_of(tree, table, target)
        check_training_rows(tree, rows, f"{table.name!r}")
        unseen = None
        if held_out is not None:
            unseen = rows_of(tree, read(held_out, encoding, quiet), rows.target, every_class=False)
    from softsplit.fitted.conformal import checked_confidence

    groups, refer = groups_by(table, rows.target, by), checked_confidence(refer, "--refer")
    # 2. The page.
    provenance = (("Tree", f"read from {visible(model.name)}"),)
    with heartbeat(quiet, "making the report", time_limit or None) as tell:
        report_data = write_report(
            out, tree, rows, table.name, provenance,
            seed=seed, jobs=jobs, say=tell, time_limit=time_limit or None, by=groups, refer=refer,
            worker=baseline_worker(context, rows, jobs), held_out_rows=unseen,
            **({} if page_rows is None else {"page_rows": page_rows}),
        )  # fmt: skip
    if as_json:
        print_json(
            {
                "report": str(out),
                "points": len(report_data.trees),
                "chosen": report_data.chosen,
                "edited": report_data.edited,
                "accuracy": as_object(report_data.accuracy(report_data.chosen)),
                "majority": as_object(report_data.baseline("majority")),
                "logistic": as_object(report_data.baseline("logistic")),
                **figures_object(report_data),
            }
        )
    else:
        echo(visible(out))
    if report_data.interrupted:
        say("interrupted: accuracies in the report are incomplete.")
        raise typer.Exit(INTERRUPTED)


def _write_page(model: Path, out: Path, given: list[str]) -> None:
    """Write the page of a tree alone; ``given`` are options that need the training table."""
    if given:
        raise ValueError(
            f"{given[0]} needs the table that the tree was fitted to; give it as DATA, or leave "
            f"{given[0]} out for a page of the tree alone."
        )
    stored = load_stored(model)
    from softsplit.report.document import model_page

    parameters = [
        f"{name} {value}"
        for name in ("loss", "penalty", "local_strength", "global_strength", "ridge")
        if (value := stored.parameters.get(name)) not in (None, "auto")
    ]
    facts = [("Tree", f"read from {visible(model.name)}")]
    facts += [("Settings", ", ".join(parameters))] if parameters else []
    write_text(out, model_page(stored.tree_, facts))
