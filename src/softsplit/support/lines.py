"""Lines of at most a given width, which a program can join again."""

from __future__ import annotations

import re
from collections.abc import Sequence

WIDTH = 100

# Lines that begin with so many spaces, or more, continue the one before them.
CONTINUED = 8

# Names up to this length are padded, so that what follows them stands in one column.
WIDEST_NAME = 40


def aligned(rows: Sequence[tuple[str, str]], indent: int) -> list[str]:
    """Names with what is said of each, in two columns."""
    width = max((len(name) for name, _ in rows if len(name) <= WIDEST_NAME), default=0)
    lines = []
    for name, said in rows:
        lines += wrapped(f"{' ' * indent}{name:<{width}}   ", said)
    return lines


def wrapped(first: str, text: str) -> list[str]:
    """A text after ``first`` in lines of at most ``WIDTH`` characters."""
    indent = len(first) if CONTINUED <= len(first) <= WIDTH // 2 else CONTINUED
    return cut_lines(text, WIDTH, first, indent)


def cut_lines(text: str, width: int, first: str = "", indent: int = 2) -> list[str]:
    """A text after ``first`` in lines of at most so many characters, the later ones indented.

    It is cut after a separator where that is possible, else at single spaces.
    """
    lines, line = [], ""
    for piece in re.split(r"(?<=[|;,]) ", text):
        long = len(piece) > width - indent
        for word in re.split(r"(?<! ) (?! )", piece) if long else [piece]:
            joined = f"{line} {word}" if line else first + word
            if len(joined) > width and (line or len(first) > indent):
                lines.append((line or first).rstrip())
                joined = " " * indent + word
            line = joined
    return [*lines, line]
