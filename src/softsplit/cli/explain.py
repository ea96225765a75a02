"""``softsplit explain``: why a tree predicts what it predicts for a row."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from softsplit.cli import options
from softsplit.cli.console import echo, print_json
from softsplit.cli.inputs import advice_limits, load_stored, read, rows_for

EPILOG = "Example: softsplit explain tree.json new.csv --row 3 --fixed age --range bmi=18:35"

# Rows that one call of ``softsplit explain`` accepts.
EXPLAINED_ROWS = 100


def explain(
    model: options.Model,
    data: options.Data,
    row: Annotated[
        list[int] | None,
        typer.Option(
            "--row", min=1, help="Number of the row, from 1; may be repeated. Default: 1."
        ),
    ] = None,
    fixed: Annotated[
        list[str] | None,
        typer.Option(
            "--fixed", help="Columns that must not change, separated by commas; may be repeated."
        ),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="COLUMN=LOW:HIGH",
            help="Range within which a column may change; either end may be omitted. For a "
            "category: COLUMN=LEVEL,LEVEL. May be repeated.",
        ),
    ] = None,
    only_decrease: Annotated[
        list[str] | None, typer.Option("--only-decrease", help="Columns that may only decrease.")
    ] = None,
    only_increase: Annotated[
        list[str] | None, typer.Option("--only-increase", help="Columns that may only increase.")
    ] = None,
    encoding: options.Encoding = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Explain the prediction for a row, question by question, and what would change it.

    For every feature the smallest change within its training range is given that leads to another
    class. Limits (--fixed, --range, --only-decrease, --only-increase) narrow what may change. Of a
    number its formula is added up, term by term, and no change is looked for.
    """
    wanted = row or [1]
    if len(wanted) > EXPLAINED_ROWS:
        raise ValueError(f"at most {EXPLAINED_ROWS} rows are explained at once.")
    import numpy as np

    from softsplit.advice.explanation import explain as explained

    tree = load_stored(model, numbers=True)
    table = read(data, encoding, quiet)
    count = len(table.frame)
    for number in wanted:
        if number > count:
            raise ValueError(f"there is no row {number}; the table has {count}.")
    frame = table.frame.iloc[[n - 1 for n in wanted]]
    rows = rows_for(tree, replace(table, frame=frame), remarks=False)
    limits = advice_limits(tree, fixed, ranges, only_decrease, only_increase)
    explanations: list[Any] = []
    for i, number in enumerate(wanted):
        case = rows.part(np.array([i]))
        explanation = explained(tree.tree_, case.X[0], case.cells, limits)
        explanations.append({"row": number, **explanation.to_dict()})
        if not as_json:
            echo(f"row {number}: {explanation}\n")
    if as_json:
        print_json(explanations)
