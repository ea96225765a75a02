"""Errors in the words of the command line.

``in_options`` says sentences of the library with options in place of arguments of Python,
``usage`` what Typer says of a wrong call, whose wording depends on its version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from softsplit.settings.parameter import spellings
from softsplit.settings.regression import NUMBER_SEARCH
from softsplit.settings.table import CLASSIFIER, SEARCH
from softsplit.support.messages import AdvisedError, ParameterError, nearest, shown

# What the command line calls otherwise than Python does.
SPELLINGS = spellings(*CLASSIFIER, *SEARCH, *NUMBER_SEARCH) | {
    "feature_types": "--kind",
    "fixed": "--fixed",
    "ranges": "--range",
    "only_decrease": "--only-decrease",
    "only_increase": "--only-increase",
    "penalty='count'": "--scope size",
    "X": "the table",
    "column of X": "column of the table",
    "columns of X": "columns of the table",
    "class of y": "class of the target",
}


def in_options(error: Exception) -> str:
    """The sentence of an error."""
    advised = isinstance(error, ParameterError | AdvisedError)
    return error.spelled(SPELLINGS) if advised else str(error)


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
