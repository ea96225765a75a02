"""``softsplit fit``: fit a tree to a table."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softsplit.cli import options
from softsplit.cli.console import INTERRUPTED, echo, heartbeat, print_json, say
from softsplit.cli.inputs import groups_by, read, training_rows
from softsplit.cli.numbers import Asked, fit_numbers, target_numbers
from softsplit.cli.outputs import (
    as_object,
    baseline_worker,
    check_files,
    ending,
    figures_object,
    figures_text,
    quality,
    tree_object,
    write_report,
    write_text,
)
from softsplit.cli.parameters import (
    Known,
    columns_of_rates,
    parse_feature_types,
    tree_parameters,
)
from softsplit.settings.regression import NumberParameters
from softsplit.settings.table import (
    ChoiceParameters,
    ColumnParameters,
    ProblemParameters,
    RunParameters,
    SingleTreeParameters,
)
from softsplit.support.messages import visible
from softsplit.support.options import service

if TYPE_CHECKING:
    from softsplit.data.learning import LabelledRows
    from softsplit.report import Fitted, ReportData

# Fraction of the time limit for model selection and training if a report follows.
FIT_SHARE = 0.6

EPILOG = (
    "Example: softsplit fit patients.csv --target outcome --model tree.json --report tree.html. "
    "Ctrl-C ends the choice and keeps the best tree so far (exit code 130)."
)


@options.takes(
    SingleTreeParameters, ProblemParameters, ColumnParameters, ChoiceParameters, RunParameters,
    NumberParameters,
)  # fmt: skip
def fit(
    context: typer.Context,
    data: options.Data,
    target: options.TargetOrEvent,
    given: dict[str, Any],
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="Write the tree to this file (JSON).")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", "-r", help="Write a report to this file (HTML).")
    ] = None,
    encoding: options.Encoding = None,
    by: options.By = None,
    refer: options.Refer = 0.9,
    task: options.Task = "auto",
    family: options.Family = None,
    exposure: options.Exposure = None,
    time_column: options.Time = None,
    dask: options.Dask = None,
    quiet: options.Quiet = False,
    text: options.Text = "short",
    as_json: options.AsJson = False,
) -> None:
    """Fit a small tree to a table and print it; it predicts a class, a number or a hazard.

    Cross-validation chooses depth, scaling and strength unless you give them; with both depth
    and strength nothing is chosen. On large tables settings are compared on a sample of the rows;
    the tree is trained on all of them.
    """
    # 1. What can be checked before anything is read.
    began = time.perf_counter()
    check_files({"--model": model, "--report": report}, table=data)
    if dask is not None:
        cluster = service("dask", "--dask", "leave it out, and give one table")
        source = context.get_parameter_source("time_limit")
        if source is not None and source.name == "DEFAULT":  # on a cluster no default limit
            given["time_limit"] = None
        alone: dict[str, Any] = {
            "--report": report,
            "--by": by,
            "--encoding": encoding,
            "--family": family,
        }
        alone |= {"--leaf-terms": given.pop("leaf_terms"), "--exposure": exposure}
        classes = task in ("auto", "classes")
        alone |= {"--task": None if classes else task, "--time": time_column}
        raise typer.Exit(
            cluster.fit_dask(
                data, target, dask, given, alone, model=model, quiet=quiet, as_json=as_json
            )
        )
    # 2. The table, what options say of its columns, and its rows as training takes them.
    table = read(data, encoding, quiet)
    asked = Asked.of(task, family, exposure, time_column)
    numbers = target_numbers(table, target, asked.task, quiet)
    if numbers is not None:
        fit_numbers(
            context,
            table,
            target,
            numbers,
            given,
            asked,
            model=model,
            report=report,
            quiet=quiet,
            as_json=as_json,
        )
        return
    if given.pop("leaf_terms") is not None:
        raise ValueError("--leaf-terms is for trees that predict a number; leave it out.")
    columns = [str(name) for name in table.frame.columns]
    with heartbeat(quiet, "looking at the columns"):
        apart = columns_of_rates(given, Known(columns))
    rows = training_rows(table, target, parse_feature_types(given, columns), apart, quiet=quiet)
    worker = baseline_worker(context, rows, given["jobs"]) if report is not None else None
    # 3. The parameters. The solver is imported after the first message, since it takes seconds, and
    # before training, so that Ctrl-C cannot come between a trained tree and what saves it.
    with heartbeat(quiet, "loading the solver"):
        from softsplit.fitted.conformal import checked_confidence
        from softsplit.persistence import dumps_model
        from softsplit.report.study import FitOptions, fit_tree

        refer, groups = checked_confidence(refer, "--refer"), groups_by(table, target, by)
        parameters = tree_parameters(given, Known(columns, sorted(set(rows.y.tolist()))))
        if given["class_weight"] == ["balanced"]:
            parameters["scoring"] = parameters["scoring"] or "balanced_accuracy"
        time_limit = parameters.pop("time_limit")
        settings = FitOptions(
            strength=given["strength"],
            scope=given["scope"],
            verbose=int(not quiet),
            time_limit=time_limit and (FIT_SHARE if report else 1.0) * time_limit,
            **parameters,
        )
    # 4. The tree; its file comes first, so that it is kept even if the report fails.
    start = time.perf_counter()
    with heartbeat(quiet, "fitting"):
        fitted = fit_tree(rows, settings)
    for note in fitted.notes:
        say(note)
    if model is not None:
        write_text(model, dumps_model(fitted.tree))
        if not quiet:
            say(f"the tree is in {model}")
    # 5. The report, in what is left of the time; it has no part in the time to compile.
    report_data, interrupted = None, fitted.interrupted
    if report is not None and not interrupted:
        left = None
        if time_limit:
            left = time_limit - min(time.perf_counter() - start, settings.time_limit or 0.0)
        with heartbeat(quiet, "making the report", left) as tell, suppress(KeyboardInterrupt):
            report_data = write_report(
                report, fitted.tree, rows, table.name, fitted.provenance,
                seed=settings.seed, jobs=settings.n_jobs, say=tell, time_limit=left,
                search=fitted.search, worker=worker, by=groups, refer=refer,
            )  # fmt: skip
        interrupted = report_data is None or report_data.interrupted
        if report_data is not None and interrupted:
            say("interrupted: accuracies in the report are incomplete.")
    if report is not None and report_data is None:
        how = f"; make it with: softsplit report {model} {data}" if model else ""
        say(f"no report is written after Ctrl-C{how}")
    # 6. What is printed.
    files = {"model": model, "report": report if report_data else None}
    _show(fitted, rows, report_data, files, as_json, text)
    if not quiet:
        say(f"done in {time.perf_counter() - began:.0f} s")
    if fitted.interrupted:
        say("interrupted: this is the best tree so far.")
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _details(fitted: Fitted, training_accuracy: float) -> dict[str, str]:
    """Return how the tree came about."""
    facts = {"training accuracy": f"{100 * training_accuracy:.1f} %"}
    if fitted.score is not None:
        facts["cross-validated accuracy"] = (
            f"{100 * fitted.score:.1f} % (used to choose the tree: slightly optimistic)"
        )
    return facts | {name.lower(): value for name, value in fitted.provenance}


def _show(
    fitted: Fitted,
    rows: LabelledRows,
    report_data: ReportData | None,
    files: dict[str, Path | None],
    as_json: bool,
    text: str,
) -> None:
    """Print the tree and facts of it, or all of these as JSON."""
    import numpy as np

    from softsplit.reading.case_costs import CaseCosts, arriving_shares
    from softsplit.reading.notes import turning_columns
    from softsplit.report.same_tree import strength_of

    tree = fitted.tree
    matrix = rows.coded_as(tree.tree_.coding).matrix
    predicted = tree.classes_[tree.tree_.predict_index(matrix)]
    training_accuracy = float(np.mean(predicted == rows.y))
    accuracy = None if report_data is None else report_data.accuracy(report_data.chosen)
    names = [tree.tree_.column_names[j] for j in tree.selected_features_]
    costs, shares = CaseCosts.of(tree.tree_), arriving_shares(tree.tree_, matrix).mean(axis=0)
    cost = float(shares @ costs.of_leaves)
    if as_json:
        print_json(
            {
                "rows": len(rows.y),
                "dropped_rows": rows.dropped_rows,
                "left_out": dict(rows.coding.left_out),
                "features": rows.coding.n_candidates,
                **tree_object(tree),
                **({} if tree.feature_costs is None else {"expected_cost": cost}),
                "strength": strength_of(tree),
                "steepness": float(tree.tree_.steepness),
                "training_accuracy": training_accuracy,
                "chosen_score": fitted.score,
                "accuracy": as_object(accuracy),
                **({} if report_data is None else figures_object(report_data)),
                "interrupted": fitted.interrupted,
                "files": {name: str(path) for name, path in files.items() if path is not None},
            }
        )
        return
    from softsplit.reading.text import export_text
    from softsplit.support.lines import wrapped

    facts: dict[str, str] = {}
    if report_data is not None and accuracy is not None:
        facts |= figures_text(report_data)
    of_leaves = set(tree.tree_.leaf_predictions.tolist())
    never = [visible(label) for k, label in enumerate(tree.classes_) if k not in of_leaves]
    if never:
        more = f" and {len(never) - 5} more" if len(never) > 5 else ""
        facts["never predicted"] = (
            f"{len(never)} of {len(tree.classes_)} classes: {', '.join(never[:5])}{more}"
        )
    if tree.feature_costs is not None and tree.tree_.walk is None:  # else the text says it
        facts["costs"] = costs.sentence(shares)
    if rows.dropped_rows:
        facts["rows not used"] = f"{rows.dropped_rows:,} without a class"
    if turns := turning_columns(tree.tree_):
        facts["beware"] = f"{turns}; --monotone COLUMN=+ or =- lets it only grow or only fall"
    if (search := tree.solution_.search) is not None and 2 < search.n_ends == search.n_starts:
        others = "the report shows others as good" if files["report"] else "--report shows others"
        facts["stability"] = f"{search.n_starts} starts gave {search.n_ends} trees; {others}"
    told = _details(fitted, training_accuracy)
    facts |= told if text == "full" else {k: v for k, v in told.items() if k == "training"}
    echo(export_text(tree, detail=text == "full") + "\n" * bool(facts))
    width = max(map(len, facts), default=0) + 2
    for name, value in facts.items():
        line = f"{name:<{width}}"
        for part in [f"{line}{value}"] if text == "full" else wrapped(line, value):
            echo(part)
    said = quality(fitted, rows, len(names))
    ending(said, len(names), rows.coding.n_candidates, files)
