"""Errors in the words of the command line.

``usage`` rewrites what Typer says of a wrong call, whose wording depends on its version;
``as_options`` rewrites sentences of the library, which speak of arguments of Python.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Any

from softsplit.support.messages import nearest, shown

OPTIONS = {
    "at_most_one": "--at-most-one",
    "class_weight": "--class-weight",
    "cost_matrix": "--cost",
    "feature_costs": "--feature-cost",
    "feature_types": "--kind",
    "forbidden_together": "--forbidden-together",
    "global_strength": "--strength",
    "max_features": "--max-features",
    "max_questions": "--max-questions",
    "max_terms": "--max-terms",
    "min_class_rate": "--min-rate",
    "n_jobs": "--jobs",
    "only_decrease": "--only-decrease",
    "only_increase": "--only-increase",
    "random_state": "--seed",
    "time_limit": "--time-limit",
}
"""Arguments of Python, which are no words of English, and the options that give them."""

WORDS = {
    "curves": "--curves",
    "depth": "--depth",
    "effort": "--effort",
    "fixed": "--fixed",
    "groups": "--groups",
    "loss": "--loss",
    "monotone": "--monotone",
    "ranges": "--range",
    "required": "--required",
    "ridge": "--ridge",
    "scale": "--scale",
    "scoring": "--metric",
    "selection": "--selection",
    "steepness": "--steepness",
    "teacher": "--teacher",
}
"""Arguments that are words of English too: they are meant where a sentence begins with them, or
says "out of", "leave" or "=" beside them."""

PHRASES = (
    (r"\b(columns?) of X\b", r"\1 of the table"),
    (r"\bclass of y\b", "class of the target"),
    (r"\by does not have\b", "the target does not have"),
    (r"^X (?=has |holds |is )", "the table "),
    (r"^y (?=has |holds )", "the target "),
    (r"\bpenalty='count'", "--scope size"),
    (r"\bfeature_types=\{\.\.\.: 'drop'\}", "--drop"),
    (r"\bleave (it|them) at 'auto'", r"leave \1 out"),
    (r"^ranges of (.+?) hold ", r"--range of \1 holds "),
    (r"^ranges of (.+?) begin above their end", r"--range of \1 begins above its end"),
    (r"\bones in ranges\b", "ones with --range"),
    (r"\badd depths\b", "give another --depth"),
    (r"\bname its encoding, such as", "name its encoding with --encoding, such as"),
    (r"\bgive cut=\.\.\., or a column", "write COLUMN>NUMBER=BOUND, or name a column"),
    (r"\bmust be None, a callable or the name", "must be the name"),
    (r"\bmust be 'auto', False or\b", "must be auto, 0 or"),
    (
        r"\bmust be None, an integer (from 0 to \d+) or a numpy\.random\.RandomState",
        r"must be a whole number \1",
    ),
)
"""What the command line calls otherwise."""

NAMES = OPTIONS | WORDS
MEANT = re.compile(
    r"feature_types=\{(?P<q>['\"])(?P<column>.*?)(?P=q): (?P<r>['\"])(?P<kind>.*?)(?P=r)\}"
    rf"|(?<![\w-])(?P<set>{'|'.join(NAMES)})=(?:'(?P<text>\w+)'|(?P<value>[\w.]*\w))(?![\w{{])"
    r"|(?P<quoted>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    rf"|(?<![\w-])(?P<name>{'|'.join(OPTIONS)})(?!\w)"
    rf"|(?:^|(?<=out of )|(?<=leave ))(?P<word>{'|'.join(WORDS)})(?=[ .;:]|$)"
)
"""Arguments in a sentence, and quoted texts, which may hold anything and stay."""


def as_options(message: str) -> str:
    """A sentence of the library with options instead of arguments."""
    for pattern, words in PHRASES:
        message = re.sub(pattern, words, message)
    return MEANT.sub(_as_option, message)


def _as_option(found: re.Match[str]) -> str:
    if found["kind"]:
        return f"--kind {shlex.quote(found['column'] + '=' + found['kind'])}"
    if found["set"]:
        return f"{NAMES[found['set']]} {found['text'] or found['value']}"
    return NAMES.get(found["name"] or found["word"], found[0])


# --- wrong calls ----------------------------------------------------------------------------------

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
"""What versions of Typer say of a value, and what it must be."""


def usage(error: Any) -> str:
    """The sentence for a wrong call: a value, an option or an argument; "" if there is none."""
    said = " ".join(error.format_message().split()).rstrip(".")
    path = getattr(getattr(error, "ctx", None), "command_path", "softsplit")
    if found := re.match(r"Invalid value for '([^']+)'[^:]*: (?:Value error, )?(.*)", said):
        return _wrong_value(found[1], found[2], _given(error))
    if found := re.match(
        r"Missing (?:option|argument) '([^']+)'[^.]*(?:\. Choose from: (.*))?", said
    ):
        if found[2]:
            return f"{found[1]} is missing; choose {_either(found[2].split(', '))}."
        return f"{found[1]} is missing; {path} --help says what to give."
    if found := re.match(r"No such option:? '?(-[^\s'(]+)", said):
        known = [name for one in error.ctx.command.params for name in one.opts]
        near = _nearest_name(found[1], known)
        hint = f"did you mean {near}?" if near else f"{path} --help lists the options."
        return f"there is no option {found[1]}; {hint}"
    if found := re.match(r"No such command '(.*?)'", said):
        near = _nearest_name(found[1], error.ctx.command.list_commands(error.ctx))
        hint = f"did you mean {near}?" if near else f"{path} --help lists all."
        return f"there is no command {shown(found[1])}; {hint}"
    if found := re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", said):
        return f"{shown(found[1])} is more than was expected; {path} --help shows the arguments."
    return f"{said}." if said else ""


def _nearest_name(word: str, known: Iterable[str]) -> str:
    """The name that a misspelt option or command is most like; "" if there is none."""
    return (nearest(word, known) or "").strip("'\"")


def _wrong_value(name: str, why: str, given: str | None) -> str:
    got = "" if given is None else f", got {shown(given)}"
    if found := re.match(r"'?(.*?)'? is not one of (.*)", why):
        listed = _either(re.findall("'(.*?)'", found[2]))
        return f"{name} must be {listed}, got {shown(found[1])}."
    if found := re.fullmatch(r"(\S+) is not in the range (\S+?)<=x<=(\S+)", why):
        value, low, high = map(float, found.groups())
        bound = f"x>={low:g}" if value < low else f"x<={high:g}"
        why = f"{value:g} is not in the range {bound}"
    for pattern, needed in NEEDED:
        if found := re.fullmatch(pattern, why):
            own = re.match(r"'?(.*?)'? is not ", why)
            got = f", got {shown(own[1])}" if own else got
            return f"{name} must be {found.expand(needed)}{got}."
    return f"{name}: {why}."


def _given(error: Any) -> str | None:
    """The value that was given, where the error holds it."""
    problems = getattr(error.__cause__, "errors", None)
    found = problems() if callable(problems) else []
    return str(found[0]["input"]) if found and "input" in found[0] else None


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
