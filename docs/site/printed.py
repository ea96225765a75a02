"""What the documents show: texts and pictures, made by the code that stands beside them.

    <!-- run first: CODE -->      Python that runs before the next block and is not shown
    <!-- not run: REASON -->      the next block is not run
    <!-- printed above -->        the next block holds what the block before it prints
    <!-- printed by: CODE -->     the next block holds what CODE prints, Python or "softsplit ..."
    <!-- draw PATH: CODE -->      the picture at PATH, seen from the page, is the display CODE

Fenced blocks have a language; indented ones have none and hold shell lines or formulas. Python of a
page runs in one namespace and ``softsplit`` lines of ``sh`` blocks in between, in an empty folder.

``python docs/site/printed.py [PAGE ...]`` runs the pages that show something and writes all of it
anew; the tests compare. Texts in pictures are compared where a picture is SVG. README.md is
README.source.md without these comments.
"""

from __future__ import annotations

import contextlib
import html
import io
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PART = re.compile(
    r"^<!-- run first:(?P<setup>.*?)-->"
    r"|^<!-- not run:(?P<reason>.*?)-->"
    r"|^<!-- printed(?: by:(?P<printer>.*?)|(?P<above> above)) -->"
    r"|^<!-- draw (?P<picture>\S+):(?P<display>.*?)-->"
    r"|^(?P<fence>`{3,}|~{3,})(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=fence)\s*$"
    r"|^(?P<plain>(?: {4}[^\n]*\n|\n(?= {4}))+)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One block, or a picture to draw.

    Attributes
    ----------
    language, code : str
        Of a picture "draw" and the display.
    line : int
        Where it stands; ``place`` are the first and last character of its code.
    setup : str
        Python that runs before it.
    reason : str
        Why it is not run.
    printer : str, optional
        What prints it; "" is the block before it.
    picture : str
        Path of the picture, seen from the page.
    """

    language: str
    code: str
    line: int
    place: tuple[int, int] = (0, 0)
    setup: str = ""
    reason: str = ""
    printer: str | None = None
    picture: str = ""

    @property
    def runs(self) -> bool:
        """Whether it is code that is run."""
        shell = self.language in ("sh", "bash") and shell_commands(self, "softsplit")
        return not self.reason and (self.language in ("python", "draw") or bool(shell))


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    setup, reason, printer = "", "", None
    for match in PART.finditer(text):
        if match["setup"] is not None:
            setup += match["setup"].strip() + "\n"
            continue
        if match["reason"] is not None:
            reason = match["reason"].strip()
            continue
        if match["printer"] is not None or match["above"] is not None:
            printer = (match["printer"] or "").strip()
            continue
        line = text.count("\n", 0, match.start()) + 2
        if match["picture"] is not None:
            code = match["display"].strip()
            found.append(Block("draw", code, line, setup=setup, picture=match["picture"]))
            setup = ""
            continue
        group = "code" if match["plain"] is None else "plain"
        language = match["language"] or ""
        found.append(Block(language, match[group], line, match.span(group), setup, reason, printer))
        setup, reason, printer = "", "", None
    return found


def shell_commands(block: Block, program: str) -> list[list[str]]:
    """Words of every line of a block that calls ``program``, which is left out."""
    joined = re.sub(r"\\\n\s*", " ", block.code)
    lines = [line.strip().removeprefix("$ ") for line in joined.splitlines()]
    return [shlex.split(s, comments=True)[1:] for s in lines if s.split(" ")[0] == program]


# --- running a page ------------------------------------------------------------------------------


@dataclass
class Session:
    """A page that runs in the working folder.

    Attributes
    ----------
    page : Path
    draws : callable
        Whether a picture, given by its path, is drawn.
    fresh : list of (Block, str)
        Printed blocks and what they should hold.
    displays : dict of Path to display
        Pictures that were drawn.
    """

    page: Path
    draws: Callable[[str], bool] = lambda path: True
    fresh: list[tuple[Block, str]] = field(default_factory=list)
    displays: dict[Path, Any] = field(default_factory=dict)

    def run(self) -> Session:
        """Run all code of the page."""
        namespace = ModuleType("document_" + re.sub(r"\W", "_", self.page.stem))
        sys.modules[namespace.__name__] = namespace  # dataclasses look it up
        printed = ""
        try:
            for block in blocks(self.page):
                self.python(block.setup, block.line, namespace)
                if block.printer is not None:
                    text = (
                        self.output(block.printer, block, namespace) if block.printer else printed
                    )
                    self.fresh.append((block, tidy(text)))
                elif block.picture and self.draws(block.picture):
                    code = compile(block.code, self.page.name, "eval")
                    target = (self.page.parent / block.picture).resolve()
                    self.displays[target] = eval(code, namespace.__dict__)
                elif block.runs and not block.picture:
                    printed = self.output(block.code, block, namespace)
        finally:
            del sys.modules[namespace.__name__]
        return self

    def output(self, code: str, block: Block, namespace: ModuleType) -> str:
        """What code of a block prints: Python, or lines that call softsplit."""
        if block.language not in ("sh", "bash") and not code.startswith("softsplit "):
            return self.python(code, block.line, namespace)
        commands = shell_commands(Block("sh", code, block.line), "softsplit")
        return "".join(run_command(words, f"{self.page.name}, {block.line}") for words in commands)

    def python(self, code: str, line: int, namespace: ModuleType) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            lines = "\n" * (line - 1) + code
            exec(compile(lines, self.page.name, "exec"), namespace.__dict__)
        return printed.getvalue()

    def text(self) -> str:
        """The page with everything that is printed anew."""
        text = self.page.read_text(encoding="utf-8")
        for block, printed in reversed(self.fresh):
            first, last = block.place
            text = text[:first] + printed + text[last:]
        return text


def tidy(printed: str) -> str:
    """Printed text without spaces at the ends of lines and lines at its end."""
    return "\n".join(line.rstrip() for line in printed.rstrip().splitlines()) + "\n"


def run_command(words: list[str], where: str) -> str:
    """What ``softsplit WORDS`` prints; "> FILE" writes it there."""
    from typer.testing import CliRunner

    from softsplit.cli.app import app

    target = None
    if ">" in words:
        *words, _, target = words
    if words[0] == "fit" and "--time-limit" not in words:
        words = [*words, "--time-limit", "0"]  # on a busy machine the same text
    result = CliRunner().invoke(app, words)
    if result.exit_code:
        raise RuntimeError(f"{where}: softsplit {' '.join(words)}\n{result.output}")
    if target is not None:
        Path(target).write_text(result.stdout, encoding="utf-8")
        return ""
    return str(result.stdout)


def shows(page: Path) -> bool:
    """Whether a page holds something that is printed or drawn."""
    return any(block.printer is not None or block.picture for block in blocks(page))


README, SOURCE = ROOT / "README.md", ROOT / "README.source.md"


def pages() -> list[Path]:
    """All documents, README by its source."""
    return sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {README})


def readme() -> str:
    """The text of README.md."""
    text = re.sub(r"<!--.*?-->\n", "", SOURCE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"\n{3,}", "\n\n", text)


# --- pictures ------------------------------------------------------------------------------------


def save(display: Any, path: Path) -> None:
    """Write a picture; the same display gives the same SVG."""
    import matplotlib

    # Outlines look the same without the font; the fixed salt makes the same tree the same file.
    style = {"svg.fonttype": "path", "svg.hashsalt": "softsplit", "font.family": "DejaVu Sans"}
    with matplotlib.rc_context(style):
        metadata = {"Date": None, "Creator": None} if path.suffix == ".svg" else None
        display.figure_.savefig(path, dpi=90, metadata=metadata)


def picture_texts(path: Path) -> list[str]:
    """Texts of an SVG picture, which matplotlib writes as comments beside the outlines."""
    found = re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"))
    return [html.unescape(text) for text in found]


@contextlib.contextmanager
def empty_folder() -> Iterator[None]:
    """Work in a temporary folder, without a screen."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield
    plt.close("all")


def main() -> None:
    import machines

    wanted = [Path(name).resolve() for name in sys.argv[1:]]
    for page in wanted or filter(shows, pages()):
        print(page.relative_to(ROOT), flush=True)
        with empty_folder():
            session = Session(page).run()
            page.write_text(session.text(), encoding="utf-8")
            for path, display in session.displays.items():
                save(display, path)
                machines.drawn(path)
        machines.record(page.relative_to(ROOT).as_posix())
    README.write_text(readme(), encoding="utf-8")


if __name__ == "__main__":
    main()
