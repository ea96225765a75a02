"""Figures of a script: kept as JSON, and shown as tables on a page between two marks."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parent.parent / "docs" / "results" / "reliability"
PAGE = Path(__file__).parent.parent / "docs" / "reliability.md"


def keep(part: str, figures: dict[str, Any], table: str, *, write: bool) -> None:
    """Print the table; if ``write``, put it on the page and the figures beside the other results.

    The page has a place for each part between "<!-- begin PART -->" and "<!-- end PART -->".
    """
    print(table)
    if not write:
        return
    FIGURES.mkdir(parents=True, exist_ok=True)
    figures = {"machine": platform.machine(), "python": platform.python_version(), **figures}
    text = json.dumps(figures, indent=2) + "\n"
    (FIGURES / f"{part}.json").write_text(text, encoding="utf-8")
    content = PAGE.read_text(encoding="utf-8")
    place = re.compile(f"(<!-- begin {part} -->\n).*?(<!-- end {part} -->)", re.DOTALL)
    if not place.search(content):
        raise SystemExit(f"{PAGE.name} has no lines '<!-- begin {part} -->' and '... end ...'.")
    content = place.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", content)
    PAGE.write_text(content, encoding="utf-8")


def markdown(columns: list[str], rows: list[list[Any]]) -> str:
    """A pipe table."""
    lines = [columns, ["---"] * len(columns), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
