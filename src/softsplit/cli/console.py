"""Output of all commands: results, progress and errors.

While a command works, ``heartbeat`` prints a line on standard error at least every two seconds.
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
from dataclasses import dataclass
from typing import Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperGroup

from softsplit.cli.options import ON_THIS_MACHINE
from softsplit.support.messages import visible

USAGE = 2
"""Exit code of all errors."""

MOVED = 1
"""Exit code of ``softsplit check`` if something has moved."""

INTERRUPTED = 130
"""Exit code after Ctrl-C (128 + SIGINT), whether or not a tree was kept."""

EXIT_CODES = "Exit codes: 0 done, 2 something is wrong with the request or the data, 130 Ctrl-C."

SHOW_TRACEBACK = "SOFTSPLIT_TRACEBACK"
"""Environment variable for developers: any value shows the traceback of an error."""


ADDRESS = re.compile(r"(\w+://)?[^/\s]+:\d+")
"""The address of a Dask scheduler."""


@dataclass(frozen=True)
class ConsoleOptions:
    """Limits of what commands print."""

    error_characters: int = 600
    """Longer errors come from other libraries and hold tracebacks: only the first line is shown."""

    silence: float = 2.0
    """Longest time without a line on standard error, in seconds."""

    columns: int = 5
    """Columns that a message names."""

    path_features: int = 4
    """Selected features that a line of ``softsplit path`` names."""

    facts: int = 12
    """Entries of a list that ``softsplit info`` shows."""

    explained_rows: int = 100
    """Rows that one call of ``softsplit explain`` accepts."""


OPTIONS = ConsoleOptions()


def console() -> Console:
    """Return a console for results; a new one each time, since stdout may be redirected."""
    return Console(highlight=False, soft_wrap=False)


def print_json(values: Any) -> None:
    """Print ``values`` as indented JSON, the only text on standard output."""
    typer.echo(json.dumps(values, indent=2, allow_nan=False))


def echo(text: str) -> None:
    """Print results as text, with terminal control characters escaped."""
    typer.echo("\n".join(visible(line) for line in text.split("\n")))


def say(message: str) -> None:
    """Print a progress or error message on standard error."""
    typer.echo(f"softsplit: {visible(message)}", err=True)


class PlainErrors(TyperGroup):
    """A group of commands that reports an error as one sentence and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; turn an unhandled Ctrl-C into ``typer.Abort``."""
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
    """Return ``args`` with a default address for --dask of ``fit`` where none follows it."""
    completed: list[str] = []
    for argument, following in zip(args, [*args, ""][1:], strict=True):
        alone = argument == "--dask" and args[0] == "fit" and not ADDRESS.fullmatch(following)
        completed.append(f"--dask={ON_THIS_MACHINE}" if alone else argument)
    return completed


def fail(message: str, code: int = USAGE) -> NoReturn:
    """Print ``message`` on standard error and exit with ``code``."""
    say(message)
    sys.exit(code)


def sentence(error: Exception) -> str:
    """Return an error as one line.

    Usage errors (a missing option, a wrong value) are recognised by ``format_message``, since their
    class has a different home in different versions of Typer.
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
    """Return ``message`` as one line that ends in a full stop; of a long one the first line."""
    most = OPTIONS.error_characters
    short = message if len(message) <= most else message.strip().split("\n", 1)[0][:most]
    line = " ".join(short.split())
    return line if line.endswith((".", "?")) else f"{line}."


class _TimedStream:
    """A stream that records when it was last written to."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.last = time.monotonic()

    def write(self, text: str) -> Any:
        self.last = time.monotonic()
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def heartbeat(quiet: bool, silence: float = OPTIONS.silence) -> Iterator[None]:
    """Print the elapsed time whenever nothing was written to stderr for ``silence`` seconds."""
    if quiet:
        yield
        return
    began, timed, done = time.monotonic(), _TimedStream(sys.stderr), threading.Event()

    def watch() -> None:
        while not done.wait(silence / 4):
            if time.monotonic() - timed.last >= silence - silence / 4:
                say(f"at work, {time.monotonic() - began:.0f} s")

    watcher = threading.Thread(target=watch, daemon=True)
    sys.stderr = timed
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        sys.stderr = timed.stream
