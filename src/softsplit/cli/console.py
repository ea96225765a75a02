"""Output of all commands: results, progress and errors.

While a command works, ``heartbeat`` shows on standard error what it does (support/status_line.py).
Errors are said with options in place of parameters of Python; what Typer says of a wrong call
depends on its version, and ``usage`` makes the same sentences of all.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from rich.console import Console
from typer.core import TyperGroup

from softsplit.cli.options import ON_THIS_MACHINE, SPELLINGS
from softsplit.support.messages import (
    AdvisedError,
    ParameterError,
    nearest,
    shown,
    visible,
    without_package,
)

# Exit code of all errors.
USAGE = 2

# Exit code of ``softsplit check`` if something has moved.
MOVED = 1

# Exit code after Ctrl-C (128 + SIGINT), whether or not a tree was kept.
INTERRUPTED = 130

EXIT_CODES = "Exit codes: 0 done, 2 something is wrong with the request or the data, 130 Ctrl-C."

# Environment variable for developers: any value shows the traceback of an error.
SHOW_TRACEBACK = "SOFTSPLIT_TRACEBACK"


# The address of a Dask scheduler.
ADDRESS = re.compile(r"(\w+://)?[^/\s]+:\d+")


# Longer errors come from other libraries and hold tracebacks: only the first line is shown.
ERROR_CHARACTERS = 600


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
            user = f"softsplit {args[0]}" if args and args[0] in self.commands else "training"
            fail(sentence(error, user), INTERRUPTED if isinstance(error, typer.Abort) else USAGE)
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
    """Print ``message``, if there is one, on standard error and exit with ``code``."""
    if message:
        say(message)
    sys.exit(code)


def sentence(error: Exception, user: str = "training") -> str:
    """Return an error as one line; ``user`` is what needs a package that is not installed.

    Usage errors (a missing option, a wrong value) are recognised by ``format_message``, since their
    class has a different home in different versions of Typer.
    """
    if isinstance(error, typer.Abort):
        return "interrupted before there was anything to keep."
    if hasattr(error, "format_message"):
        return usage(error)
    if isinstance(error, ModuleNotFoundError):
        return _one_line(without_package(error, user) or str(error))
    if isinstance(error, ParameterError | AdvisedError):
        return _one_line(error.spelled(SPELLINGS))
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
    most = ERROR_CHARACTERS
    short = message if len(message) <= most else message.strip().split("\n", 1)[0][:most]
    line = " ".join(short.split())
    return line if line.endswith((".", "?")) else f"{line}."


@contextmanager
def heartbeat(
    quiet: bool, what: str, time_limit: float | None = None
) -> Iterator[Callable[[str], None]]:
    """Show what a command does and how long it has done so; yields a function to say what it does
    now. With ``time_limit``, the time left is shown."""
    if quiet:
        yield lambda _: None
        return
    from softsplit.support.status_line import Activity, seconds, status_line, time_left

    began, now = time.monotonic(), [what]

    def describe() -> Activity:
        gone = time.monotonic() - began
        left = "" if time_limit is None else f", {time_left(time_limit - gone)}"
        return Activity(f"softsplit: {visible(now[0])}", f"{seconds(gone)}{left}")

    def tell(text: str) -> None:
        now[0] = text

    with status_line(describe):
        yield tell


# --- wrong calls ----------------------------------------------------------------------------------

# What versions of Typer say of a value, and what it must be.
NEEDED = (
    (r"Input should be less than or equal to (\S+)", r"at most \1"),
    (r"Input should be greater than or equal to (\S+)", r"at least \1"),
    (r"Input should be less than (\S+)", r"less than \1"),
    (r"Input should be greater than (\S+)", r"more than \1"),
    (r"Input should be a valid number\b.*", "a number"),
    (r"Input should be a valid integer\b.*", "a whole number"),
    (r".* is not a valid float(?: range)?", "a number"),
    (r".* is not a valid integer(?: range)?", "a whole number"),
    (r".* is not in the range x?>=?(\S+)", r"at least \1"),
    (r".* is not in the range x?<=?(\S+)", r"at most \1"),
)


def usage(error: Any) -> str:
    """The sentence for a wrong call: a value, an option or an argument; "" if there is none."""
    text = " ".join(error.format_message().split()).rstrip(".")
    path = getattr(getattr(error, "ctx", None), "command_path", "softsplit")
    if match := re.match(r"Invalid value for '([^']+)'[^:]*: (?:Value error, )?(.*)", text):
        return _wrong_value(match[1], match[2], _given(error))
    if match := re.match(
        r"Missing (?:option|argument) '([^']+)'[^.]*(?:\. Choose from: (.*))?", text
    ):
        if match[2]:
            return f"{match[1]} is missing; choose {_either(match[2].split(', '))}."
        return f"{match[1]} is missing; {path} --help says what to give."
    if match := re.match(r"No such option:? '?(-[^\s'(]+)", text):
        known = [name for option in error.ctx.command.params for name in option.opts]
        near = _nearest_name(match[1], known)
        hint = f"did you mean {near}?" if near else f"{path} --help lists the options."
        return f"there is no option {match[1]}; {hint}"
    if match := re.match(r"No such command '(.*?)'", text):
        near = _nearest_name(match[1], error.ctx.command.list_commands(error.ctx))
        hint = f"did you mean {near}?" if near else f"{path} --help lists all."
        return f"there is no command {shown(match[1])}; {hint}"
    if match := re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", text):
        return f"{shown(match[1])} is more than was expected; {path} --help shows the arguments."
    return f"{text}." if text else ""


def _nearest_name(word: str, known: Iterable[str]) -> str:
    """The name that a misspelt option or command is most like; "" if there is none."""
    return (nearest(word, known) or "").strip("'\"")


def _wrong_value(name: str, why: str, given: str | None) -> str:
    got = "" if given is None else f", got {shown(given)}"
    if match := re.match(r"'?(.*?)'? is not one of (.*)", why):
        listed = _either(re.findall("'(.*?)'", match[2]))
        return f"{name} must be {listed}, got {shown(match[1])}."
    if match := re.fullmatch(r"(\S+) is not in the range (\S+?)<=x<=(\S+)", why):
        value, low, high = map(float, match.groups())
        bound = f"x>={low:g}" if value < low else f"x<={high:g}"
        why = f"{value:g} is not in the range {bound}"
    for pattern, needed in NEEDED:
        if match := re.fullmatch(pattern, why):
            own = re.match(r"'?(.*?)'? is not ", why)
            got = f", got {shown(own[1])}" if own else got
            return f"{name} must be {match.expand(needed)}{got}."
    return f"{why}." if why.startswith(f"{name} ") else f"{name}: {why}."


def _given(error: Any) -> str | None:
    """The value that was given, where the error holds it."""
    problems = getattr(error.__cause__, "errors", None)
    errors = problems() if callable(problems) else []
    return str(errors[0]["input"]) if errors and "input" in errors[0] else None


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
