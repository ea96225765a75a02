"""Code blocks of Markdown pages, with what comments around them say about running them.

    <!-- run first: CODE -->         Python that runs before the next block and is not shown
    <!-- not run: REASON -->         the next block is not run

Fenced blocks have a language; indented ones have none and hold shell lines or formulas.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

PART = re.compile(
    r"^<!-- run first:(?P<setup>.*?)-->"
    r"|^<!-- not run:(?P<reason>.*?)-->"
    r"|^(?P<fence>`{3,}|~{3,})(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=fence)\s*$"
    r"|^(?P<plain>(?: {4}[^\n]*\n|\n(?= {4}))+)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One block; ``setup`` runs before it, ``reason`` says why it is not run."""

    language: str
    code: str
    line: int
    setup: str = ""
    reason: str = ""


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    found, setup, reason = [], "", ""
    for match in PART.finditer(text):
        if match["setup"] is not None:
            setup += match["setup"].strip() + "\n"
            continue
        if match["reason"] is not None:
            reason = match["reason"].strip()
            continue
        code = match["code"] if match["plain"] is None else match["plain"]
        language = match["language"] or ""
        line = text.count("\n", 0, match.start()) + 2
        found.append(Block(language, code, line, setup, reason))
        setup = reason = ""
    return found


def shell_commands(block: Block, program: str) -> list[list[str]]:
    """Words of every line of a block that calls ``program``, which is left out."""
    joined = re.sub(r"\\\n\s*", " ", block.code)
    lines = [line.strip().removeprefix("$ ") for line in joined.splitlines()]
    return [shlex.split(s, comments=True)[1:] for s in lines if s.split(" ")[0] == program]
