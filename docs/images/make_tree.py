"""Draw the tree of the README: `make picture` writes docs/images/tree.svg.

The tree is the one that the lines of Python in the README make.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import tempfile
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from softsplit.plots import TreeDisplay

README = Path(__file__).resolve().parents[2] / "README.md"


def snippet() -> dict[str, Any]:
    """The names that the Python of the README leaves."""
    found = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    printed = contextlib.redirect_stdout(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), printed:
        exec(found[1], names)
    return names


def draw() -> TreeDisplay:
    names = snippet()
    return TreeDisplay.from_estimator(names["tree"].simplify(), names["X"], names["y"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).with_name("tree.svg")
    parser.add_argument("output", nargs="?", type=Path, default=default)
    output = parser.parse_args().output
    # Outlines look the same without the font; the fixed salt makes the same tree the same file.
    matplotlib.rcParams.update(
        {"svg.fonttype": "path", "svg.hashsalt": "softsplit", "font.family": "DejaVu Sans"}
    )
    metadata = {"Date": None} if output.suffix == ".svg" else None
    draw().figure_.savefig(output, dpi=160, metadata=metadata)


if __name__ == "__main__":
    main()
