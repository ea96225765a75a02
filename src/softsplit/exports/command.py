"""``softsplit export``: a tree as code in another language."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from softsplit.cli import options
from softsplit.cli.console import say
from softsplit.cli.inputs import load_stored
from softsplit.cli.outputs import check_files
from softsplit.support.options import late

# What writes each language; it is loaded when it is asked for.
WRITERS = {
    "sql": "softsplit.exports.sql:export_sql",
    "python": "softsplit.exports.code:export_python",
    "javascript": "softsplit.exports.code:export_javascript",
    "c": "softsplit.exports.code:export_c",
    "excel": "softsplit.exports.excel:export_excel",
}

Language = Literal["sql", "python", "javascript", "c", "excel"]
DialectName = Literal["postgres", "sqlite", "duckdb", "mssql", "bigquery"]


def export(
    model: options.Model,
    to: Annotated[Language, typer.Option("--to", help="Language of the code.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write here; default: standard output.")
    ] = None,
    dialect: Annotated[
        DialectName | None,
        typer.Option("--dialect", help="SQL: the database.", show_default="postgres"),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option("--table", help="SQL: name of the table; it is quoted.", show_default="rows"),
    ] = None,
    schema: Annotated[
        str | None, typer.Option("--schema", help="SQL: schema of the table.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            help="SQL: a column to pass through, such as a key; may be repeated. "
            "Default: the columns that the tree uses.",
        ),
    ] = None,
    reasons: Annotated[
        bool,
        typer.Option("--reasons", help="Add the contribution of each variable to each question."),
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a tree as code that needs no other package, or as an Excel workbook.

    The code gives the probabilities and the class, or the number, that softsplit predict gives,
    also for missing values, dates, and texts that are absent from training.
    Example: softsplit export tree.json --to sql --dialect duckdb --table patients --keep id
    """
    check_files({"--out": out}, model=model)
    if to == "excel" and out is None:
        raise ValueError("a workbook is no text; name a file with --out, such as tree.xlsx.")
    of_sql = {"--dialect": dialect, "--table": table, "--schema": schema, "--keep": keep}
    given = [option for option, value in of_sql.items() if value]
    if given and to != "sql":
        raise ValueError(f"{given[0]} is for --to sql; leave it out with --to {to}.")
    tree = load_stored(model, numbers=True)
    module, _, function = WRITERS[to].partition(":")
    arguments: dict[str, Any] = {}
    if to == "sql":
        name = table or "rows"
        arguments["table"] = name if schema is None else (schema, name)
        arguments |= {"dialect": dialect or "postgres", "keep": keep}
    text = late(module, function)(tree, path=out, reasons=reasons, **arguments)
    if out is None:
        typer.echo(text, nl=False)
    elif not quiet:
        say(f"the tree is in {out}")
