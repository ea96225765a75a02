"""What benchmarks share: command lines, rows on file, tables on pages, clocks, busy processes.

Modules that tests share can be imported by scripts that import this one.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
FIGURES, RELIABILITY = RESULTS / "reliability", RESULTS / "reliability.md"
WRITE = {"write": (False, "figures to docs/results/reliability")}
"""The option of ``keep``."""

sys.path.append(str(ROOT / "tests"))

Row = dict[str, Any]


# --- command lines --------------------------------------------------------------------------------


def arguments(doc: str, parts: Collection[str] = (), **options: Any) -> Any:
    """Parse the command line of a script that has ``doc`` as its help; see ``add_options``."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if parts:
        parser.add_argument("part", choices=list(parts))
    return add_options(parser, **options).parse_args()


def add_options(parser: argparse.ArgumentParser, **options: Any) -> argparse.ArgumentParser:
    """Add options, each by its default, or by its default and help.

    False is a switch, a list takes several values, and a type is that of an option that may be
    absent.
    """
    for name, option in options.items():
        default, text = option if isinstance(option, tuple) else (option, None)
        given: Row = {"help": text}
        if default is False:
            given["action"] = "store_true"
        elif isinstance(default, type):
            given["type"] = default
        elif isinstance(default, list):
            given |= {"nargs": "*", "default": default, "type": type((default or [""])[0])}
        else:
            given |= {"default": default, "type": type(default)}
        parser.add_argument(f"--{name.replace('_', '-')}", **given)
    return parser


# --- rows on file ---------------------------------------------------------------------------------


def rows_of(path: Path | None) -> list[Row]:
    """The rows of a file; its last line may have been cut by a stop."""
    if path is None or not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


def add_row(path: Path | None, row: Row) -> Row:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, default=float) + "\n")
    return row


def resumed(
    path: Path | None, tasks: Iterable[tuple[Row, Callable[[], Row]]], rows: list[Row] | None = None
) -> Iterator[Row]:
    """Do the tasks whose keys no row of the file has; yield the new rows, each once it is kept."""
    known = rows_of(path) if rows is None else rows
    for key, measure in tasks:
        if not any(key.items() <= row.items() for row in known):
            yield add_row(path, key | measure())


# --- tables on pages ------------------------------------------------------------------------------


def markdown(columns: list[str], rows: Iterable[Iterable[Any]]) -> str:
    """A pipe table."""
    lines = [columns, ["---"] * len(columns), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_page(page: Path, texts: dict[str, str]) -> None:
    """Put every text in its place on the page; a part without a place is an error.

    The place of a part is between "<!-- begin PART -->" and "<!-- end PART -->".
    """
    content = page.read_text(encoding="utf-8")
    for part, text in texts.items():
        place = re.compile(f"(<!-- begin {part} -->\n).*?(<!-- end {part} -->)", re.DOTALL)
        if not place.search(content):
            raise SystemExit(
                f"{page} has no lines '<!-- begin {part} -->' and '<!-- end {part} -->'."
            )
        content = place.sub(
            lambda match, text=text: f"{match[1]}\n{text.strip()}\n\n{match[2]}", content
        )
    page.write_text(content, encoding="utf-8")


def put_into(document: Path | None, text: str, part: str = "figures") -> None:
    """Print a text, or put it in its place in a document."""
    if document is None:
        print(text)
    else:
        write_page(document, {part: text})


def keep(part: str, figures: Row, table: str, *, write: bool) -> None:
    """Print a table; if ``write``, put it on the page of reliability and keep its figures."""
    print(table)
    if write:
        FIGURES.mkdir(parents=True, exist_ok=True)
        figures = {"machine": platform.machine(), "python": platform.python_version(), **figures}
        _place_of(part).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        write_page(RELIABILITY, {part: table})


def kept(part: str) -> Row:
    """The figures that a part has on record; empty if it has none."""
    path = _place_of(part)
    figures = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: value for name, value in figures.items() if name not in ("machine", "python")}


def _place_of(part: str) -> Path:
    return FIGURES / f"{part.replace(' ', '_')}.json"


# --- clocks ---------------------------------------------------------------------------------------


def timed(action: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What a function returns, with the seconds of the clock and of all processors."""
    wall, busy = time.perf_counter(), time.process_time()
    result = action()
    return result, {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - busy}


def times_of(action: Callable[[], Any], repeats: int, clock: str = "seconds") -> list[float]:
    """Seconds of some calls."""
    return [timed(action)[1][clock] for _ in range(repeats)]


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Processes beside this one that do nothing but compute."""
    loop = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(loop) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()
