"""What the library says: single lines through the log, and values as they stand in a sentence."""

from __future__ import annotations

import logging
import multiprocessing
from typing import Any

logger = logging.getLogger("softsplit")


def announce(message: str) -> None:
    """Say one sentence to the user.

    Where logging is not set up, Python prints a record of this level as a plain line on standard
    error; where it is, its handlers and levels decide. Of the processes of a pool, which all do
    the same, only the first one speaks.
    """
    name = multiprocessing.current_process().name
    if multiprocessing.parent_process() is None or name.endswith("-1"):
        logger.warning("softsplit: %s", message)


def shown(value: Any, length: int = 60) -> str:
    """A value as it may stand in a sentence: on one line, and not longer than that."""
    try:
        # Of what is very long only the beginning is written out at all.
        begin = value[: length + 1] if isinstance(value, str | list | tuple) else value
        text = " ".join(repr(begin).split())
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "a very long integer"
    return cut(text, length)


def cut(text: str, length: int = 60) -> str:
    """A text, not longer than that."""
    return text if len(text) <= length else f"{text[:length]}..."
