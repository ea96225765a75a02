"""What all commands share: printing results, progress and errors.

While a command works, a line on standard error says so at least every two seconds.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperGroup

from softsplit.cli.options import ON_THIS_MACHINE
from softsplit.support.messages import visible

USAGE = 2
"""Exit code of everything that went wrong."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, whether or not a tree was kept."""

EXIT_CODES = "Exit codes: 0 done, 2 something is wrong with the request or the data, 130 Ctrl-C."

SHOW_TRACEBACK = "SOFTSPLIT_TRACEBACK"
"""Environment variable for developers: any value shows where an error arose."""


ADDRESS = re.compile(r"(\w+://)?[^/\s]+:\d+")
"""Of a scheduler of Dask."""

LONGEST = 600
"""Characters of an error that are still a sentence."""


def console() -> Console:
    """A console for results; a new one each time, since standard output may be redirected."""
    return Console(highlight=False, soft_wrap=False)


def print_json(values: Any) -> None:
    """Results for programs: indented JSON and nothing else on standard output."""
    typer.echo(json.dumps(values, indent=2, allow_nan=False))


def echo(text: str) -> None:
    """Results for people, one or several lines; what would steer a terminal is escaped."""
    typer.echo("\n".join(visible(line) for line in text.split("\n")))


def say(message: str) -> None:
    """A line about the work itself, on standard error."""
    typer.echo(f"softsplit: {visible(message)}", err=True)


class PlainErrors(TyperGroup):
    """A group of commands whose errors are one sentence on standard error and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Ctrl-C that it has not dealt with is said, not swallowed."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interruption:
            raise typer.Abort from interruption

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
            args = with_address(sys.argv[1:] if args is None else args)
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except Exception as error:
            if not standalone_mode or os.environ.get(SHOW_TRACEBACK):
                raise
            fail(sentence(error), INTERRUPTED if isinstance(error, typer.Abort) else USAGE)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


def with_address(args: Sequence[str]) -> list[str]:
    """The arguments with an address behind --dask of ``fit``, where none follows it."""
    made: list[str] = []
    for one, following in zip(args, [*args, ""][1:], strict=True):
        alone = one == "--dask" and args[0] == "fit" and not ADDRESS.fullmatch(following)
        made.append(f"--dask={ON_THIS_MACHINE}" if alone else one)
    return made


def fail(message: str, code: int = USAGE) -> NoReturn:
    """Say ``message`` on standard error and leave."""
    say(message)
    sys.exit(code)


def sentence(error: Exception) -> str:
    """An error in one line.

    Errors of the command line itself (a missing option, a wrong value) format their own message;
    they are recognised by that, since Typer has them from different places in different versions.
    """
    if isinstance(error, typer.Abort):
        return "interrupted before there was anything to keep."
    if hasattr(error, "format_message"):
        return _one_line(" ".join(error.format_message().split()))
    if isinstance(error, ValueError | OSError | ImportError):
        return _one_line(str(error))
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; use fewer rows or columns."
    kind = type(error).__name__
    return _one_line(
        f"unexpected {kind}: {str(error) or 'no message'}; please report it "
        f"({SHOW_TRACEBACK}=1 shows where it arose)."
    )


def _one_line(message: str) -> str:
    """Of a long text, which is of another library and holds traces, the first line only."""
    short = message if len(message) <= LONGEST else message.strip().split("\n", 1)[0][:LONGEST]
    line = " ".join(short.split())
    return line if line.endswith((".", "?")) else f"{line}."


SILENCE = 2.0
"""Seconds."""


class _Noted:
    """A stream that knows when something was last written to it."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.last = time.monotonic()

    def write(self, text: str) -> Any:
        self.last = time.monotonic()
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def signs_of_life(quiet: bool) -> Iterator[None]:
    """While this runs, a line with the seconds gone whenever nothing else was said for a while."""
    if quiet:
        yield
        return
    began, noted, done = time.monotonic(), _Noted(sys.stderr), threading.Event()

    def watch() -> None:
        while not done.wait(SILENCE / 4):
            if time.monotonic() - noted.last >= SILENCE - SILENCE / 4:
                say(f"at work, {time.monotonic() - began:.0f} s")

    watcher = threading.Thread(target=watch, daemon=True)
    sys.stderr = noted
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        sys.stderr = noted.stream
