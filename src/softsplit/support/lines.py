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
        first = f"{' ' * indent}{name:<{width}}   "
        parts = [said] if len(first) + len(said) <= WIDTH else re.split(r"(?<= \|) ", said)
        for part in parts:  # a long list of parts has a line for each
            lines += wrapped(first, part)
            first = " " * max(len(first), CONTINUED)
    return lines


def columns_of_text(rows: Sequence[Sequence[str]], indent: int = 2) -> list[str]:
    """A table with its columns three spaces apart."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        " " * indent + "   ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def blocks(rows: Sequence[Sequence[str]], indent: int = 2) -> list[str]:
    """A table of numbers whose first cells are names, in blocks of at most ``WIDTH`` characters."""
    first = indent + max(len(row[0]) for row in rows)
    columns = list(zip(*(row[1:] for row in rows), strict=True))
    widths = [2 + max(map(len, cells)) for cells in columns]
    n_blocks = max(1, -(-sum(widths) // max(WIDTH - first, 20)))
    while True:  # blocks of about equally many columns
        size = -(-len(columns) // n_blocks)
        starts = range(0, len(columns), size)
        if size == 1 or max(sum(widths[i : i + size]) for i in starts) <= WIDTH - first:
            break
        n_blocks += 1
    return [
        f"{' ' * indent + row[0]:<{first}}"
        + "".join(f"{row[1 + k]:>{widths[k]}}" for k in range(i, min(i + size, len(columns))))
        for i in starts
        for row in rows
    ]


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
