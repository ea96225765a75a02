"""Write the live report of the home page: the command that docs/index.md shows, run on its data.

python docs/site/live.py
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_wine

DOCS = Path(__file__).resolve().parents[1]
PAGE = DOCS / "live" / "wine.html"


def command() -> list[str]:
    """The command of the home page, without the name of the program."""
    shown = re.search(r"`softsplit (fit wine\.csv [^`]*)` writes this page", _home())
    assert shown, "docs/index.md shows no command that writes the live report"
    return shlex.split(shown[1])


def _home() -> str:
    return (DOCS / "index.md").read_text(encoding="utf-8")


def main() -> None:
    X, y = load_wine(return_X_y=True, as_frame=True)
    with tempfile.TemporaryDirectory() as folder:
        X.assign(cultivar=y).to_csv(Path(folder) / "wine.csv", index=False)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        call = [sys.executable, "-m", "softsplit", *command(), "--quiet"]
        subprocess.run(call, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        PAGE.write_bytes((Path(folder) / "wine.html").read_bytes())


if __name__ == "__main__":
    main()
