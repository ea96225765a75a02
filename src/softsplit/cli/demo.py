"""``softsplit demo``: a tree and its report on a bundled data set."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from softsplit.cli import options
from softsplit.cli.console import INTERRUPTED, echo, heartbeat, print_json, say
from softsplit.cli.outputs import as_object, check_files, write_report
from softsplit.support.messages import visible
from softsplit.support.parallel import n_threads

EPILOG = "Example: softsplit demo --data wdbc --out wdbc.html"


class DemoData(StrEnum):
    """Data sets bundled with scikit-learn."""

    iris = "iris"
    wine = "wine"
    wdbc = "wdbc"


def demo(
    data: Annotated[DemoData, typer.Option("--data", help="Which data set.")] = DemoData.wine,
    out: Annotated[Path, typer.Option("--out", "-o", help="The report.")] = Path(
        "softsplit-demo.html"
    ),
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Fit a tree to a bundled data set, print it and write its report.

    The last line is the path of the report: open it in a browser and move the slider.
    """
    check_files({"--out": out})
    if not quiet:
        say(f"loading {data.value} and the solver")
    with heartbeat(quiet, "loading the solver"):
        from softsplit.data.files import Table
        from softsplit.data.learning import learn
        from softsplit.data.named import bundled_frame
        from softsplit.reading.text import export_text
        from softsplit.report.study import FitOptions, fit_tree

        rows = learn(Table(data.value, bundled_frame(data.value)), "class")
    # The tree, its report, and what is printed of both.
    with heartbeat(quiet, "fitting") as tell:
        fitted = fit_tree(
            rows, FitOptions(seed=seed, n_jobs=jobs or n_threads(None), verbose=not quiet)
        )
        report_data = write_report(
            out, fitted.tree, rows, data.value, fitted.provenance, seed=seed, jobs=jobs, say=tell
        )
    accuracy = report_data.accuracy(report_data.chosen)
    if as_json:
        print_json({"report": str(out.absolute()), "accuracy": as_object(accuracy)})
    else:
        echo(export_text(fitted.tree) + "\n")
        if accuracy is not None:
            echo(
                f"accuracy on held-out rows: {100 * accuracy.value:.1f} % "
                f"({100 * accuracy.low:.1f} to {100 * accuracy.high:.1f}), "
                f"{len(fitted.tree.selected_features_)} of {rows.coding.n_candidates} features"
            )
        echo(f"the report, to open in a browser:\n{visible(out.absolute())}")
    if fitted.interrupted or report_data.interrupted:
        raise typer.Exit(INTERRUPTED)
