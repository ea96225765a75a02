"""What the library says: single lines through the log; values and names as they are shown."""

from __future__ import annotations

import inspect
import logging
import multiprocessing
import re
import unicodedata
import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

logger = logging.getLogger("softsplit")

# Unicode's categories of control, format and half characters, and of ends of lines.
UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")

JOINER = "\N{ZERO WIDTH JOINER}"


def announce(message: str) -> None:
    """Say one sentence to the user.

    Where logging is not set up, Python prints a record of this level as a plain line on standard
    error; where it is, its handlers and levels decide. Of the processes of a pool, which all do
    the same, only the first one speaks.
    """
    name = multiprocessing.current_process().name
    if multiprocessing.parent_process() is None or name.endswith("-1"):
        logger.warning("softsplit: %s", message)


def warn_user(warning: Warning) -> None:
    """A warning that points at the first line outside of this library, however deep it arose."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("softsplit"):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


class AdvisedError(ValueError):
    """An error that keeps apart what is wrong and what to do about it.

    A program that offers other ways out than Python does, such as the command line, says the same
    with its own advice.

    Attributes
    ----------
    problem : str
    advice, typed : str
        What to do in Python, and on the command line; empty if there is nothing to say.
    """

    def __init__(self, problem: str, advice: str = "", typed: str = "") -> None:
        super().__init__(problem, advice, typed)
        self.problem, self.advice, self.typed = problem, advice, typed

    def spelled(self, spellings: Mapping[str, str]) -> str:
        """The sentence with the advice of the command line."""
        return f"{self.problem}; {self.typed or self.advice}."

    def __str__(self) -> str:
        return f"{self.problem}; {self.advice}." if self.advice else f"{self.problem}."


# What only Python calls a table and its classes.
PYTHON_WORDS = ("column of X", "columns of X", "class of y")


class ParameterError(ValueError):
    """A value that a parameter cannot have.

    A program that spells parameters otherwise than Python does, such as the command line, says the
    same sentence with its own spelling.

    Attributes
    ----------
    parameter : str
    value : object
    what : str
        The sentence after the name of the parameter.
    others : tuple of str
        Names of other parameters in it.
    typed : str
        The same for a value that was typed, where ``what`` speaks of objects of Python.
    """

    def __init__(
        self,
        parameter: str,
        value: Any,
        what: str,
        others: tuple[str, ...] = (),
        typed: str = "",
    ) -> None:
        super().__init__(parameter, value, what, others, typed)
        self.parameter, self.value, self.what, self.others = parameter, value, what, others
        self.typed = typed

    def spelled(self, spellings: Mapping[str, str]) -> str:
        """The sentence for a value that was typed, with other spellings than those of Python."""
        what = self.typed or self.what
        for other in (*self.others, *PYTHON_WORDS):
            if other in spellings:  # an option is followed by its value, without quotation marks
                name, option = rf"(?<![\w-]){re.escape(other)}", spellings[other]
                what = re.sub(rf"{name}='?([\w.]+)'?", rf"{option} \1", what)
                what = re.sub(name, option, what)
        return f"{spellings.get(self.parameter, self.parameter)} {what}"

    def __str__(self) -> str:
        return f"{self.parameter} {self.what}"


def unfit(parameter: str, value: Any, rule: str) -> ParameterError:
    """The error of a value that breaks a rule such as "must lie in [0, 1]": rule and value."""
    return ParameterError(parameter, value, f"{rule}, got {shown(value)}.")


def visible(value: Any) -> str:
    """A name as it may stand in a text for people: one line that does not steer the reader.

    Names come from files that others wrote. Characters that break lines, move the cursor, turn the
    direction of writing or cannot be seen are written as escapes, such as "\\n" or "\\u202e". All
    else stays as it is, also spaces of other widths and the joiners inside an emoji. What is
    written so is for the eye; programs are given the name itself.
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        c if _can_be_seen(c) or (c == JOINER and _joins_emoji(text, i)) else _escape(c)
        for i, c in enumerate(text)
    )


def _can_be_seen(character: str) -> bool:
    return unicodedata.category(character) not in UNSEEN


def _joins_emoji(text: str, place: int) -> bool:
    """Whether symbols are on both sides; the first may have a colour of skin or a style."""
    before, after = text[max(place - 1, 0) : place], text[place + 1 : place + 2]
    if not before or not after:
        return False
    styled = before == "\N{VARIATION SELECTOR-16}" or unicodedata.category(before) in ("So", "Sk")
    return styled and unicodedata.category(after) == "So"


def _escape(character: str) -> str:
    """As Python writes it: a byte, or four or eight digits."""
    return character.encode("unicode_escape").decode("ascii")


LONGEST_NAME = 28


def shortened(name: Any, length: int | None = LONGEST_NAME) -> str:
    """A name on one line, its middle left out if it is long."""
    text = " ".join(visible(name).split())
    if length is None or len(text) <= length:
        return text
    ending = (length - 1) // 3
    return f"{text[: length - 1 - ending]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - ending :]}"


def shown(value: Any, length: int = 60) -> str:
    """A value as it may stand in a sentence: on one line, and not longer than that."""
    try:
        # Of what is very long only the beginning is written out at all.
        begin = value[: length + 1] if isinstance(value, str | list | tuple) else value
        text = visible(" ".join(repr(begin).split()))
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "a very long integer"
    return cut(text, length)


def counted(count: int, word: str) -> str:
    """A number of things: "1 row", "2,000 rows"."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


# Similarity from which on a name may be what a misspelt one means.
LIKE = 0.65


def nearest(word: Any, known: Iterable[Any]) -> str | None:
    """Of ``known`` names the one that a misspelt ``word`` is most like, as it is shown.

    A name that differs in upper and lower case alone comes first.
    """
    names = {str(name): name for name in known}
    close = (
        [name for name in names if name.casefold() == str(word).casefold()]
        or get_close_matches(str(word), list(names), 1, LIKE)
        or [name for name in names if len(str(word)) > 1 and name.startswith(str(word))]
    )
    return shown(names[close[0]], 40) if close else None


def cut(text: str, length: int = 60) -> str:
    """A text, not longer than that."""
    return text if len(text) <= length else f"{text[:length]}..."


# Names on the package index of modules that are called otherwise.
PACKAGES = {"sklearn": "scikit-learn"}


def without_package(error: ModuleNotFoundError, user: str = "training") -> str | None:
    """Say which package ``user`` lacks, and what works without it; None for a module of our own."""
    module = (error.name or "").partition(".")[0]
    if module in ("", "softsplit"):
        return None
    package = PACKAGES.get(module, module)
    return (
        f"{user} needs {package}, which is not installed; install it with pip install {package}. "
        "A saved tree predicts without it: use softsplit.load_tree or softsplit predict."
    )
