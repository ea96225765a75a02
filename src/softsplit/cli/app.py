"""The root command. To add a command, write a module beside this one and register it at the end.

Option packages provide further commands (``support/options.py``), imported when called or listed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.main import get_command, get_group

from softsplit.cli import check, compare, compile, demo, explain, fit, info, path, predict, report
from softsplit.cli.console import EXIT_CODES, PlainErrors
from softsplit.support import options
from softsplit.support.version import __version__


class Commands(PlainErrors):
    """The commands of the core, then those of the option packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        self._add_options()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            self._add_options()
        return super().get_command(ctx, cmd_name)

    def _add_options(self) -> None:
        for name in options.provided("commands"):
            if name not in self.commands:
                self.commands[name] = _command(name)


def _command(name: str) -> Any:
    """Return the Click command or group that an option package provides."""
    loaded = options.load("commands", name)
    if isinstance(loaded, typer.Typer):
        group: Any = get_group(loaded)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False)
    alone.command(name=name, help=help_of(loaded))(loaded)
    return get_command(alone)


def help_of(command: Callable[..., None]) -> str:
    """The docstring of a command, a line for each paragraph: terminals break lines themselves."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


app = typer.Typer(
    name="softsplit",
    cls=Commands,
    help="Sparse multivariate randomized classification trees.",
    epilog="Begin with: softsplit fit data.csv --target y --model tree.json --report tree.html. "
    + EXIT_CODES,
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
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Small trees that people can read: fit, look, predict, explain."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line: entry point of ``softsplit`` and of ``python -m softsplit``."""
    app(prog_name="softsplit")


for name, command, epilog in (
    ("fit", fit.fit, fit.EPILOG),
    ("predict", predict.predict, predict.EPILOG),
    ("explain", explain.explain, explain.EPILOG),
    ("compare", compare.compare, compare.EPILOG),
    ("check", check.check, check.EPILOG),
    ("report", report.report, report.EPILOG),
    ("path", path.path, path.EPILOG),
    ("demo", demo.demo, demo.EPILOG),
    ("info", info.info, info.EPILOG),
    ("compile", compile.compile_code, compile.EPILOG),
):
    app.command(name=name, help=help_of(command), epilog=epilog)(command)
