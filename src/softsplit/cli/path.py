"""``softsplit path``: the regularisation path, from a weak penalty to a strong one."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softsplit.cli import options
from softsplit.cli.console import INTERRUPTED, console, echo, heartbeat, print_json, say
from softsplit.cli.inputs import read, training_rows
from softsplit.cli.outputs import as_object
from softsplit.cli.parameters import Known, parse_feature_types, tree_parameters, typed
from softsplit.settings.table import (
    ColumnParameters,
    ProblemParameters,
    RunParameters,
    SingleTreeParameters,
)
from softsplit.support.messages import visible

if TYPE_CHECKING:
    from softsplit.report import ReportData

EPILOG = "Example: softsplit path patients.csv --target outcome --depth 2"

# Selected features that a line of ``softsplit path`` names.
PATH_FEATURES = 4


@options.takes(
    SingleTreeParameters,
    ProblemParameters,
    ColumnParameters,
    RunParameters,
    without=(
        "strength", "ridge", "steepness", "curves", "class_weight", "min_rate", "cost", "parity",
        "equal_opportunity", "equalized_odds", "favourable", "sensitive_only", "rate",
    ),
    depth={"help": "Default: by the number of classes."},
    time_limit={"default": 0.0},
)  # fmt: skip
def path(
    context: typer.Context,
    data: options.Data,
    target: options.Target,
    given: dict[str, Any],
    points: Annotated[int, typer.Option("--points", min=2, max=50, help="Trees on the path.")] = 9,
    encoding: options.Encoding = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """List trees along the strengths of the penalty: features, coefficients and accuracy.

    The trees share one depth and one scaling (standard if not given, minmax with --loss cost);
    they are found from weak to strong. Accuracies are cross-validated.
    """
    # 1. The rows, and the parameters that hold for all trees.
    table = read(data, encoding, quiet)
    columns = [str(name) for name in table.frame.columns]
    rows = training_rows(table, target, parse_feature_types(given, columns), quiet=quiet)
    with heartbeat(quiet, "loading the solver"):
        from softsplit.estimators.classifier import SoftTreeClassifier
        from softsplit.formulations import formulation_of
        from softsplit.report.comparison import walk_path
        from softsplit.selection.strengths import SHARES, shared

    usual = formulation_of(given["loss"]).choice.axes["scopes"][0]
    local, global_ = shared(SHARES[given["scope"] or usual], 1.0)
    parameters = tree_parameters(given, Known(columns))
    time_limit, jobs = parameters.pop("time_limit"), parameters.pop("n_jobs")
    settings = SoftTreeClassifier(
        local_strength=local,
        global_strength=global_,
        **{name: value for name, value in parameters.items() if value is not None},
    )
    with heartbeat(quiet, "walking along the path", time_limit) as tell:
        walked = walk_path(
            settings, rows, table.name, fitted=False, points=points, seed=given["seed"],
            n_jobs=jobs, time_limit=time_limit, say=tell,
        )  # fmt: skip
        lines = _lines(walked)
    if as_json:
        print_json(lines)
    else:
        _print(lines, rows.coding.n_candidates)
        if lines:
            first = walked.trees[0]
            depth = first.tree_.topology.depth if first.depth == "auto" else first.depth
            words = [str(data), "-t", target, *typed(context)]
            words += [] if given["depth"] else ["--depth", str(depth)]
            echo(f"\nthe tree of a line: softsplit fit {shlex.join(words)} --strength STRENGTH")
    if walked.interrupted:
        say(f"interrupted: {len(lines)} of {points} trees, of which some may not be judged.")
        raise typer.Exit(INTERRUPTED)


def _lines(report_data: ReportData) -> list[dict[str, Any]]:
    import numpy as np

    from softsplit.report.same_tree import strength_of

    lines = []
    for i, tree in enumerate(report_data.trees):
        accuracy = report_data.accuracy(i)
        lines.append(
            {
                "strength": strength_of(tree),
                "local_strength": float(tree.local_strength),
                "global_strength": float(tree.global_strength),
                "features": len(tree.selected_features_),
                "coefficients": int(np.count_nonzero(tree.weights_)),
                "accuracy": as_object(accuracy),
                "selected_features": [tree.tree_.column_names[j] for j in tree.selected_features_],
            }
        )
    return lines


def _print(lines: list[dict[str, Any]], n_features: int) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("strength", "features", "coefficients", "accuracy", "95 % interval"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("which")
    most = PATH_FEATURES
    for line in lines:
        accuracy = line["accuracy"]
        figures = ("-", "")
        if accuracy is not None:
            value, low, high = (100 * accuracy[name] for name in ("value", "low", "high"))
            figures = f"{value:.1f} %", f"{low:.1f} to {high:.1f}"
        names = line["selected_features"]
        more = f" and {len(names) - most} more" if len(names) > most else ""
        table.add_row(
            f"{line['strength']:.4g}",
            f"{line['features']} of {n_features}",
            str(line["coefficients"]),
            *figures,
            Text(", ".join(map(visible, names[:most])) + more),
        )
    console().print(table)
