"""What a new user does first, with an installed softsplit and nothing else: no pytest, no clone.

    python -I tests/smoke.py            # seconds of every step; ends with an error if one fails

The steps are those of README: six lines of Python, then the command line with a CSV file.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import sysconfig
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

SIX_LINES = """
from softsplit import SoftTreeClassifierCV, export_text
from softsplit.data import loans

X = loans()
y = X.pop("repaid")
tree = SoftTreeClassifierCV(random_state=0).fit(X, y)
print(export_text(tree))
"""
TABLE = "X.assign(repaid=y).to_csv('the loans.csv', index=False)\n"
COMMANDS = (
    "--version",
    "fit|the loans.csv|--target|repaid|--max-features|3|--model|tree.json|--report|tree.html",
    "info|tree.json",
    "predict|tree.json|the loans.csv|--out|answers.csv",
    "explain|tree.json|the loans.csv|--row|3",
    "export|tree.json|--to|sql|--out|tree.sql",
)


def step(name: str, command: list[str], folder: Path) -> str:
    """What a command prints; the script ends where it fails."""
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8")
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stdout}\n{done.stderr}")
    print(f"{time.perf_counter() - began:8.1f} s  {name}", flush=True)
    return done.stdout


def main() -> None:
    script = Path(sysconfig.get_path("scripts")) / "softsplit"
    names = ("softsplit", "numpy", "scipy", "pandas", "scikit-learn", "numba")
    print(f"Python {platform.python_version()} on {platform.platform()}")
    print(*(f"{name} {version(name)}" for name in names), sep=", ")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        python = [sys.executable, "-I", "-c"]
        text = step("six lines of Python, cold", [*python, SIX_LINES + TABLE], folder)
        assert "past_loans" in text and "class yes" in text, text
        again = step("the same again", [*python, SIX_LINES], folder)
        assert again == text, again
        for command in COMMANDS:
            words = command.split("|")
            said = step(f"softsplit {words[0]}", [str(script), *words], folder)
            assert words[0] != "explain" or "class" in said, said
        answers = (folder / "answers.csv").read_text(encoding="utf-8").splitlines()
        assert len(answers) == 1201, answers[:3]
        assert "<svg" in (folder / "tree.html").read_text(encoding="utf-8")
        assert "SELECT" in (folder / "tree.sql").read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
