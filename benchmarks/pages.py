"""Figures of a script: kept as JSON, and shown as tables on a page between two marks."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parent.parent / "docs" / "results" / "reliability"
PAGE = Path(__file__).parent.parent / "docs" / "results" / "reliability.md"


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
    (FIGURES / f"{part.replace(' ', '_')}.json").write_text(text, encoding="utf-8")
    write_page(PAGE, {part: table})


def kept(part: str) -> dict[str, Any]:
    """The figures that a part has on record; empty if it has none."""
    path = FIGURES / f"{part.replace(' ', '_')}.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: value for name, value in found.items() if name not in ("machine", "python")}


def write_page(page: Path, texts: dict[str, str]) -> None:
    """Put every text in its place on the page; a part without a place is an error."""
    content = page.read_text(encoding="utf-8")
    for part, text in texts.items():
        place = re.compile(f"(<!-- begin {part} -->\n).*?(<!-- end {part} -->)", re.DOTALL)
        if not place.search(content):
            raise SystemExit(
                f"{page} has no lines '<!-- begin {part} -->' and '<!-- end {part} -->'."
            )
        content = place.sub(lambda found, text=text: f"{found[1]}\n{text}\n\n{found[2]}", content)
    page.write_text(content, encoding="utf-8")


def markdown(columns: list[str], rows: list[list[Any]]) -> str:
    """A pipe table."""
    lines = [columns, ["---"] * len(columns), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
