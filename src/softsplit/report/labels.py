"""Names, colours and figures as the page writes them."""

from __future__ import annotations

import unicodedata
from typing import Any

from softsplit.report.intervals import Interval
from softsplit.support.messages import visible

# Okabe and Ito's colours, which people with any common colour blindness can tell apart.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C8C8C",
)  # fmt: skip
DARK_INK, LIGHT_INK = "#14181d", "#ffffff"
CHARACTER, WIDE_CHARACTER = 7.5, 14.0
LONGEST_NAME = 28


def class_colour(k: int) -> str:
    """Colours repeat after eight classes; names stand beside them everywhere."""
    return COLOURS[k % len(COLOURS)]


def ink_on(colour: str) -> str:
    """Dark or light, whichever has the higher contrast on the colour."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return LIGHT_INK if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.058 else DARK_INK


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
