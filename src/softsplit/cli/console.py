"""What all commands share: how results are printed, and how errors are said."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperGroup

USAGE = 2
"""Exit code of everything that went wrong."""

SHOW_TRACEBACK = "SOFTSPLIT_TRACEBACK"
"""Environment variable for developers: any value shows where an error arose."""


def console() -> Console:
    """The console for results; made anew, since standard output may be redirected in between."""
    return Console(highlight=False, soft_wrap=False)


def print_json(values: Any) -> None:
    """Results for programs: indented JSON and nothing else on standard output."""
    typer.echo(json.dumps(values, indent=2, allow_nan=False))


class PlainErrors(TyperGroup):
    """A group of commands whose errors are one sentence on standard error and exit code 2."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except Exception as error:
            if not standalone_mode or os.environ.get(SHOW_TRACEBACK):
                raise
            fail(sentence(error))
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


def fail(message: str) -> NoReturn:
    """Say ``message`` on standard error and leave."""
    typer.echo(f"softsplit: {message}", err=True)
    sys.exit(USAGE)


def sentence(error: Exception) -> str:
    """An error in one line.

    Errors of the command line itself (a missing option, a wrong value) format their own message;
    they are recognised by that, since Typer has them from different places in different versions.
    """
    if isinstance(error, typer.Abort):
        return "aborted."
    if hasattr(error, "format_message"):
        return _one_line(error.format_message())
    if isinstance(error, ValueError | OSError | ImportError):
        return _one_line(str(error))
    kind = type(error).__name__
    return _one_line(
        f"unexpected {kind}: {str(error) or 'no message'}; please report it "
        f"({SHOW_TRACEBACK}=1 shows where it arose)."
    )


def _one_line(message: str) -> str:
    line = " ".join(message.split())
    return line if line.endswith((".", "?")) else f"{line}."
