"""The root command. A new command is a module beside this one and a line at the end."""

from __future__ import annotations

from typing import Annotated

import typer

from softsplit import __version__
from softsplit.cli import experiment, vc
from softsplit.cli.console import PlainErrors

app = typer.Typer(
    name="softsplit",
    cls=PlainErrors,
    help="Sparse multivariate randomized classification trees.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"softsplit {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and leave.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Sparse multivariate randomized classification trees."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """The entry point of the ``softsplit`` script and of ``python -m softsplit``."""
    app(prog_name="softsplit")


app.command(name="vc")(vc.vc)
app.add_typer(experiment.app, name="experiment")
