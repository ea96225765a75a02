"""``softsplit demo``: a tree and its report on loans made up from a seed, or on a data set of
scikit-learn."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from softsplit.cli import options
from softsplit.cli.console import INTERRUPTED, echo, heartbeat, print_json, say
from softsplit.cli.outputs import as_object, check_files, ending, quality, write_report
from softsplit.support.parallel import n_threads

EPILOG = "Example: softsplit demo --data wdbc --out wdbc.html"


class DemoData(StrEnum):
    """Loans made up from a seed, and data sets bundled with scikit-learn."""

    loans = "loans"
    iris = "iris"
    wine = "wine"
    wdbc = "wdbc"


def demo(
    data: Annotated[DemoData, typer.Option("--data", help="Which data set.")] = DemoData.loans,
    out: Annotated[Path, typer.Option("--out", "-o", help="The report.")] = Path(
        "softsplit-demo.html"
    ),
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Fit a tree to a small table, print it and write its report.

    The table is of loan applications made up from a seed. The last line is the path of the report:
    open it in a browser.
    """
    check_files({"--out": out})
    if not quiet:
        say(f"loading {data.value} and the solver")
    with heartbeat(quiet, "loading the solver"):
        from softsplit.data.files import Table
        from softsplit.data.learning import learn
        from softsplit.data.made_up import loans
        from softsplit.data.named import bundled_frame
        from softsplit.reading.text import export_text
        from softsplit.report.study import FitOptions, fit_tree

        made_up = data is DemoData.loans
        frame = loans() if made_up else bundled_frame(data.value)
        rows = learn(Table(data.value, frame), "repaid" if made_up else "class")
    # The tree, its report, and what is printed of both.
    with heartbeat(quiet, "fitting") as tell:
        fitted = fit_tree(
            rows, FitOptions(seed=seed, n_jobs=jobs or n_threads(None), verbose=not quiet)
        )
        report_data = write_report(
            out, fitted.tree, rows, data.value, fitted.provenance, seed=seed, jobs=jobs, say=tell,
            points=5,
        )  # fmt: skip
    accuracy = report_data.accuracy(report_data.chosen)
    if as_json:
        print_json({"report": str(out.absolute()), "accuracy": as_object(accuracy)})
    else:
        if made_up:
            echo(f"{len(rows.y):,} loan applications (made up): which are repaid?")
        echo(f"\n{export_text(fitted.tree)}")
        n_used = len(fitted.tree.selected_features_)
        ending(
            quality(fitted, rows, n_used),
            n_used,
            rows.coding.n_candidates,
            {"report": out.absolute()},
        )
    if fitted.interrupted or report_data.interrupted:
        raise typer.Exit(INTERRUPTED)
