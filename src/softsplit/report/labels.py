"""Names and figures as the page writes them."""

from __future__ import annotations

import unicodedata
from typing import Any

from softsplit.report.intervals import Interval
from softsplit.support.messages import visible

CHARACTER, WIDE_CHARACTER = 7.5, 14.0
LONGEST_NAME = 28


def text_width(text: str) -> float:
    """Width of a line in the drawing, estimated without a browser."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return WIDE_CHARACTER * wide + CHARACTER * (len(text) - wide)


def shortened(name: Any, length: int = LONGEST_NAME) -> str:
    """A name on one line, its middle left out if it is long."""
    text = " ".join(visible(name).split())
    if len(text) <= length:
        return text
    ending = (length - 1) // 3
    return f"{text[: length - 1 - ending]}\N{HORIZONTAL ELLIPSIS}{text[-ending:]}"


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def with_interval(found: Interval | None) -> str:
    """A share in percent with the ends of its interval."""
    if found is None:
        return "not judged"
    return f"{percent(found.value)} ({100 * found.low:.1f} to {100 * found.high:.1f})"


def counted(count: int, word: str) -> str:
    """A number of things: "1 row", "2,000 rows"."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"
