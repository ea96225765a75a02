"""``softsplit export``: a tree as code in another language."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from softsplit.cli import options
from softsplit.cli.console import say
from softsplit.cli.inputs import load_stored
from softsplit.cli.outputs import check_files


class Language(StrEnum):
    """What the tree is written in."""

    sql = "sql"
    python = "python"
    javascript = "javascript"
    c = "c"
    excel = "excel"


class DialectName(StrEnum):
    """The database that a statement is for."""

    postgres = "postgres"
    sqlite = "sqlite"
    duckdb = "duckdb"
    mssql = "mssql"
    bigquery = "bigquery"


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

    The code gives the probabilities and the class that softsplit predict gives, also for missing
    values, dates, and texts that are absent from training.
    Example: softsplit export tree.json --to sql --dialect duckdb --table patients --keep id
    """
    check_files({"--out": out}, model=model)
    if to == Language.excel and out is None:
        raise ValueError("a workbook is no text; name a file with --out, such as tree.xlsx.")
    of_sql = {"--dialect": dialect, "--table": table, "--schema": schema, "--keep": keep}
    given = [option for option, value in of_sql.items() if value]
    if given and to != Language.sql:
        raise ValueError(f"{given[0]} is for --to sql; leave it out with --to {to.value}.")
    tree = load_stored(model)
    if to == Language.excel:
        from softsplit.exports.excel import export_excel

        assert out is not None
        export_excel(tree, out, reasons=reasons)
        text = ""
    elif to == Language.sql:
        from softsplit.exports.sql import export_sql

        name, database = table or "rows", dialect or DialectName.postgres
        place = name if schema is None else (schema, name)
        text = export_sql(tree, place, out, dialect=database.value, keep=keep, reasons=reasons)
    else:
        from softsplit.exports.c import export_c
        from softsplit.exports.javascript import export_javascript
        from softsplit.exports.python import export_python

        writers = {"python": export_python, "javascript": export_javascript, "c": export_c}
        text = writers[to.value](tree, out, reasons=reasons)
    if out is None:
        typer.echo(text, nl=False)
    elif not quiet:
        say(f"the tree is in {out}")
