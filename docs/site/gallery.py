"""The examples as pages: text, picture, what the script prints, and the script itself.

``python docs/site/gallery.py`` runs every ``examples/plot_*.py`` that is a plain script and
writes its picture and its output to docs/images/gallery, from where the pages take them; the
site itself runs nothing.
"""

from __future__ import annotations

import ast
import contextlib
import io
import runpy
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PICTURES = ROOT / "docs" / "images" / "gallery"


@dataclass(frozen=True)
class Example:
    """One script; its docstring begins with the title."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def source(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def words(self) -> tuple[str, str]:
        """Title and text of the docstring."""
        title, _, text = (ast.get_docstring(ast.parse(self.source)) or "").partition("\n")
        return title.rstrip("."), text.strip()

    @property
    def code(self) -> str:
        """The script without its docstring."""
        first = ast.parse(self.source).body[0]
        return "\n".join(self.source.splitlines()[first.end_lineno :]).strip()

    @property
    def picture(self) -> Path:
        return PICTURES / f"{self.name}.png"

    @property
    def printed(self) -> Path:
        return PICTURES / f"{self.name}.txt"

    def page(self) -> str:
        """The page in Markdown, as gallery/NAME.md."""
        title, text = self.words
        parts = [f"# {title}", text]
        if self.picture.is_file():
            parts.append(f"![{title}](../images/gallery/{self.picture.name})")
        if self.printed.is_file():
            parts.append(f"```text\n{self.printed.read_text(encoding='utf-8').rstrip()}\n```")
        parts.append(f"`examples/{self.path.name}`:\n\n```python\n{self.code}\n```")
        return "\n\n".join(part for part in parts if part) + "\n"


def examples() -> list[Example]:
    """All scripts with a page in the gallery, by name."""
    return [Example(p) for p in sorted(EXAMPLES.glob("plot_*.py"))]


def index_page() -> str:
    """The first page of the gallery."""
    lines = [
        "# Gallery",
        "",
        "Each script runs by itself in a few seconds, on data bundled with scikit-learn. "
        "`make documents` makes the pictures.",
        "",
    ]
    for example in examples():
        title, text = example.words
        lines += [f"## [{title}]({example.name}.md)", "", text.partition("\n\n")[0], ""]
        if example.picture.is_file():
            shown = f"![{title}](../images/gallery/{example.picture.name}){{ width=640 }}"
            lines += [f"[{shown}]({example.name}.md)", ""]
    return "\n".join(lines)


@contextlib.contextmanager
def without_screen() -> Iterator[None]:
    """Figures are drawn to memory, and ``plt.show`` leaves them there."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    plt.close("all")
    show, plt.show = plt.show, lambda *_, **__: None
    try:
        yield
    finally:
        plt.show = show
        plt.close("all")


def run(example: Example, picture: Path | None = None) -> tuple[str, int]:
    """What the script prints, and how many figures it leaves; the first goes to ``picture``."""
    import matplotlib.pyplot as plt

    printed = io.StringIO()
    with without_screen():
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(example.path), run_name="__main__")
        figures = plt.get_fignums()
        if figures and picture is not None:
            plt.figure(figures[0]).savefig(picture, dpi=120, bbox_inches="tight")
    return printed.getvalue(), len(figures)


def main() -> None:
    import machines

    PICTURES.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[1:]
    for example in examples():
        if wanted and example.name not in wanted:
            continue
        text, _ = run(example, example.picture)
        if text.strip():
            example.printed.write_text(text, encoding="utf-8")
        machines.record(f"examples/{example.name}")
        machines.drawn(example.picture)
        print(example.name)


if __name__ == "__main__":
    main()
